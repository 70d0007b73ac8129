//! Brings timecell to the other machine and starts its server there: a conversation of lines with a small script of its shell, which
//! describes the machine, takes the program in pieces with checksums where it does not have it, checks its SHA-256 and runs it.

use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};

use crate::Program;
use crate::cache::hexadecimal;

/// The script, for any POSIX shell: it does not replace a program that somebody else has brought meanwhile and runs; it has no single quotes, and its marks are not in it, since a console echoes it.
/// A piece says its place, so that one whose answer was damaged is not added twice. Programs are synced before they get their name.
pub const SCRIPT: &str = r#"tc() {
d=$1; [ -n "$d" ] || d=${XDG_CACHE_HOME:-$HOME/.cache}/timecell/remote
say() { printf "%s-%s\n" "timecell" "$*"; }
sum() { s=$(sha256sum <"$1"); [ "${s%% *}" = "$a" ]; }
gz=no; command -v gzip >/dev/null && gz=yes
say here $(uname -m) $gz
while read -r word a b c; do case $word in
look) t=$d/bin/$a/timecell; n=$d/bin/$a/${b:-new.$$}
if [ -x "$t" ] && sum "$t"; then say yes; else rm -f "$t" 2>/dev/null
e=$( (umask 077; mkdir -p "$d/bin/$a" && : >>"$n") 2>&1 ) || { say fault "$e"; return 1; }
find "$d/bin/$a" -name "new.*" -mmin +60 -exec rm -f {} + 2>/dev/null
say no $(wc -c <"$n"); fi;;
piece) e=$( { head -c "$a" >"$n.p"; } 2>&1 ) || { say fault "$e"; rm -f "$n" "$n.p"; return 1; }
y=no; if [ "$(cksum <"$n.p")" = "$b $a" ]; then z=$(wc -c <"$n")
if [ "$z" = "$c" ]; then y="yes $c"
e=$( { cat "$n.p" >>"$n"; } 2>&1 ) || { say fault "$e"; rm -f "$n" "$n.p"; return 1; }; fi
[ "$((z-a))" = "$c" ] && y="yes $c"; fi; say $y;;
keep) rm -f "$n.p"
if [ "$b" = gz ]; then e=$( { mv "$n" "$n.gz" && gzip -dc "$n.gz" >"$n" && rm "$n.gz"; } 2>&1 ) ||
{ say fault "$e"; rm -f "$n" "$n.gz"; return 1; }; fi
if sum "$n"; then chmod 755 "$n"; sync
ln "$n" "$t" 2>/dev/null || [ -x "$t" ] || mv "$n" "$t"; rm -f "$n"
[ -x "$t" ] || { say fault "programs may not run from $d"; return 1; }
say yes; else rm -f "$n"; say no; fi;;
serve) say serve; "$d/bin/$a/timecell" remote serve "$d"; return $?;;
quit) return 1;;
esac; done; }
"#;

/// How long an answer may take, beside the time that a piece needs on its way.
const ANSWER: Duration = Duration::from_secs(60);
/// How often it is looked at whether a line is wanted any more.
const LOOK: Duration = Duration::from_millis(200);
/// How often a piece is brought before the line is given up.
const TRIES: usize = 8;
/// Longest line that is read.
const LINE: usize = 4096;

/// The fault of a line on which nothing is said.
pub const SILENT: &str = "no answer";

/// Why the program was not brought.
#[derive(Debug)]
pub enum Unbrought {
    /// The line ended, was silent, or damages its bytes.
    Line(String),
    /// The other machine's system said this.
    There(String),
    /// The caller has no program for such a processor, or wants to end.
    Here(crate::GuestError),
    /// The user ended it.
    Stopped,
}

impl From<io::Error> for Unbrought {
    fn from(error: io::Error) -> Unbrought {
        Unbrought::Line(error.to_string())
    }
}

/// The two directions of a line to a server.
pub type Ends = (Box<dyn Read + Send>, File);

/// A line to the other machine's shell.
pub struct Talk<'s> {
    from: File,
    to: File,
    /// Bytes that have arrived and were not used.
    left: Vec<u8>,
    stop: &'s dyn Fn() -> bool,
}

/// How large the pieces are, and whether they are worth compressing.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Bytes of a piece.
    pub piece: usize,
    /// How long a piece takes on its way, at most.
    pub takes: Duration,
    /// Whether the line is so slow that compressing pays.
    pub slow: bool,
}

impl<'s> Talk<'s> {
    /// Over these two directions of a line; `stop` says whether the user wants to end.
    pub fn new(from: File, to: File, stop: &'s dyn Fn() -> bool) -> Talk<'s> {
        Talk {
            from,
            to,
            left: Vec::new(),
            stop,
        }
    }

    /// Sends text.
    ///
    /// # Errors
    /// Those of the line.
    pub fn type_in(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())
    }

    /// Reads bytes that have arrived; false if none have within this time.
    fn read(&mut self, patience: Duration) -> Result<bool, Unbrought> {
        let until = Instant::now() + patience;
        loop {
            if (self.stop)() {
                return Err(Unbrought::Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if !is_ready(&self.from, left.min(LOOK))? {
                continue;
            }
            let mut buffer = [0; 4096];
            let read = self.from.read(&mut buffer)?;
            if read == 0 {
                return Err(Unbrought::Line("it closed".to_owned()));
            }
            self.left.extend_from_slice(&buffer[..read]);
            return Ok(true);
        }
    }

    /// The bytes that arrive within this time, at most some lines; they are forgotten.
    ///
    /// # Errors
    /// Those of the line.
    pub fn drain(&mut self, time: Duration) -> Result<Vec<u8>, Unbrought> {
        let until = Instant::now() + time;
        while self.left.len() < LINE
            && self.read(until.saturating_duration_since(Instant::now()))?
        {}
        Ok(std::mem::take(&mut self.left))
    }

    /// The next answer of the script, among other things that the line says; `None` if there is none within this time.
    fn answer(&mut self, patience: Duration) -> Result<Option<String>, Unbrought> {
        const MARK: &[u8] = b"timecell-";
        let until = Instant::now() + patience;
        loop {
            let begin = self.left.windows(MARK.len()).position(|nine| nine == MARK);
            if let Some(begin) = begin {
                let rest = &self.left[begin + MARK.len()..];
                if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line = String::from_utf8_lossy(&rest[..end]).trim().to_owned();
                    self.left.drain(..begin + MARK.len() + end + 1);
                    return match line.strip_prefix("fault ") {
                        Some(why) => Err(Unbrought::There(why.to_owned())),
                        None => Ok(Some(line)),
                    };
                }
            } else {
                let spent = self.left.len().saturating_sub(MARK.len());
                self.left.drain(..spent);
            }
            let left = until.saturating_duration_since(Instant::now());
            if !self.read(left)? {
                return Ok(None);
            }
        }
    }

    fn expect(&mut self, patience: Duration) -> Result<String, Unbrought> {
        let answer = self.answer(patience)?;
        answer.ok_or_else(|| Unbrought::Line(SILENT.to_owned()))
    }

    /// Waits until the script describes the machine: its processor as `uname -m` has it, and whether it has gzip.
    ///
    /// # Errors
    /// Those of the line, or if the script says nothing within this time.
    pub fn here(&mut self, patience: Duration) -> Result<(String, bool), Unbrought> {
        loop {
            let said = self.expect(patience)?;
            if let ["here", machine, gzip] = said.split(' ').collect::<Vec<_>>()[..] {
                return Ok((machine.to_owned(), gzip == "yes"));
            }
        }
    }

    /// Brings the program unless it is there; whether it was not.
    ///
    /// # Errors
    /// Those of the line and of the other machine.
    pub fn bring(
        &mut self,
        program: &Program,
        gzip: bool,
        pace: Pace,
        tell: &dyn Fn(&str),
    ) -> Result<String, Unbrought> {
        let mut sum = Sha256::new();
        sum.update(&program.loaded);
        let digest = hexadecimal(sum);
        let gzip = gzip && pace.slow;
        // On a slow line, pieces of an earlier try are kept.
        let part = if gzip { "part" } else { "" };
        self.type_in(&format!("look {digest} {part}\n"))?;
        let said = self.expect(ANSWER)?;
        if said == "yes" {
            return Ok(digest);
        }
        let have = said
            .strip_prefix("no ")
            .and_then(|size| size.trim().parse().ok());
        let have: usize = have.unwrap_or(0);
        let packed = if gzip {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            packed.write_all(&program.loaded)?;
            packed.finish()?
        } else {
            Vec::new()
        };
        let bytes = if gzip { &packed } else { &program.loaded };
        let bytes = bytes.get(have..).unwrap_or_default();
        tell(&format!("brings timecell there, {} kB", bytes.len() / 1000));
        let mut told = Instant::now();
        for (number, piece) in bytes.chunks(pace.piece).enumerate() {
            self.piece(have + number * pace.piece, piece, pace)?;
            if told.elapsed() > Duration::from_secs(30) {
                told = Instant::now();
                let part = 100 * number * pace.piece / bytes.len();
                tell(&format!("brings timecell there, {part} %"));
            }
        }
        let how = if gzip { "gz" } else { "plain" };
        self.type_in(&format!("keep {digest} {how}\n"))?;
        match self.expect(2 * ANSWER)?.as_str() {
            "yes" => Ok(digest),
            _ => Err(Unbrought::There(
                "timecell arrives there with another SHA-256 than here, or sha256sum is not there"
                    .to_owned(),
            )),
        }
    }

    fn piece(&mut self, at: usize, piece: &[u8], pace: Pace) -> Result<(), Unbrought> {
        let (sum, length) = (cksum(piece), piece.len());
        let kept = format!("yes {at}");
        for _ in 0..TRIES {
            self.type_in(&format!("piece {length} {sum} {at}\n"))?;
            if let Err(error) = self.to.write_all(piece) {
                // It has said why it does not read on.
                self.answer(Duration::from_secs(2))?;
                return Err(error.into());
            }
            let answer = loop {
                match self.answer(pace.takes)? {
                    // About an earlier piece, or damaged.
                    Some(said) if said != kept && said != "no" => {}
                    answer => break answer,
                }
            };
            match answer {
                Some(said) if said == kept => return Ok(()),
                Some(_) => continue,
                // Bytes were lost: the missing ones are filled up.
                None => {
                    let _ = self.type_in(&"\n".repeat(length));
                    self.drain(Duration::from_secs(1))?;
                }
            }
        }
        Err(Unbrought::Line("it damages its bytes".to_owned()))
    }

    /// Starts the server.
    ///
    /// # Errors
    /// Those of the line.
    pub fn serve(&mut self, digest: &str) -> Result<(), Unbrought> {
        self.type_in(&format!("serve {digest}\n"))?;
        self.expect(ANSWER).map(drop)
    }

    /// The line to a server, with all that has arrived of it; its reader ends once `closed` is true.
    pub fn ends(self, closed: Arc<AtomicBool>) -> Ends {
        let from = Closable {
            from: self.from,
            closed,
        };
        (Box::new(Cursor::new(self.left).chain(from)), self.to)
    }
}

/// A line that one waits for only until it is closed: a serial line never ends by itself.
struct Closable {
    from: File,
    closed: Arc<AtomicBool>,
}

impl Read for Closable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.closed.load(Ordering::Relaxed) {
            if is_ready(&self.from, LOOK)? {
                return self.from.read(buffer);
            }
        }
        Ok(0)
    }
}

/// Whether something has arrived, or arrives within this time.
fn is_ready(from: &File, time: Duration) -> io::Result<bool> {
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: time.as_nanos() as _,
    };
    let fd = from.as_fd();
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&time)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The CRC32 of POSIX's `cksum`, by the byte that leaves it.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = ((byte as u32) << 24, 0);
        while bit < 8 {
            sum = (sum << 1) ^ (0x04c1_1db7 * (sum >> 31));
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// The checksum of POSIX's `cksum`: a CRC of the bytes and of their number.
fn cksum(bytes: &[u8]) -> u32 {
    let mut sum = 0_u32;
    let mut add = |byte: u8| sum = (sum << 8) ^ TABLE[usize::from((sum >> 24) as u8 ^ byte)];
    for byte in bytes {
        add(*byte);
    }
    let mut length = bytes.len();
    while length > 0 {
        add(length as u8);
        length >>= 8;
    }
    !sum
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Carries bytes from one end to the other without those at these places.
    fn carry(
        mut from: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
        lost: Lost,
    ) {
        std::thread::spawn(move || {
            let (mut at, mut byte) = (0, [0]);
            while matches!(from.read(&mut byte), Ok(1)) {
                at += 1;
                if !lost.contains(&at) && to.write_all(&byte).is_err() {
                    return;
                }
            }
        });
    }

    type Lost = &'static [usize];

    /// A shell with the script; of the bytes that go to it and come from it, those at these places are lost.
    fn shell(dir: &std::path::Path, lost: Lost, unheard: Lost) -> (Child, File, File) {
        let mut shell = Command::new("sh")
            .args(["-c", &format!("{SCRIPT}tc \"$1\""), "sh"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (typed, to) = io::pipe().unwrap();
        carry(typed, shell.stdin.take().unwrap(), lost);
        let (from, said) = io::pipe().unwrap();
        carry(shell.stdout.take().unwrap(), said, unheard);
        let file = |end: OwnedFd| File::from(end);
        (shell, file(from.into()), file(to.into()))
    }

    fn program() -> Program {
        let text = "#!/bin/sh\necho served \"$@\"\nexit\n".to_owned();
        let mut loaded = text.into_bytes();
        let mut random = 1_u32;
        loaded.extend((0..40_000).map(|_| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"#0123456789abcde"[(random >> 28) as usize]
        }));
        Program {
            architecture: model::Architecture::X86_64,
            loaded,
        }
    }

    #[test]
    fn a_program_is_brought_once_over_a_line_that_loses_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("it's there");
        let pace = Pace {
            piece: 2048,
            takes: Duration::from_secs(1),
            slow: true,
        };
        let told = std::cell::Cell::new(0);
        // Of the answers to pieces, one loses a byte of its mark, and one a digit of its place.
        let (lost, unheard) = (&[3_000, 9_000][..], &[60, 140][..]);
        for (lost, unheard, gzip, times) in [(lost, unheard, false, 1), (&[], &[], true, 1)] {
            let (mut shell, from, to) = shell(&there, lost, unheard);
            let mut talk = Talk::new(from, to, &|| false);
            let (machine, _) = talk.here(ANSWER).unwrap();
            assert!(!machine.is_empty());
            let tell = |_: &str| told.set(told.get() + 1);
            let digest = talk.bring(&program(), gzip, pace, &tell).unwrap();
            assert_eq!(told.get(), times);
            talk.serve(&digest).unwrap();
            let mut said = String::new();
            talk.ends(Arc::default())
                .0
                .read_to_string(&mut said)
                .unwrap();
            assert!(said.starts_with("served remote serve "), "{said}");
            shell.wait().unwrap();
        }
    }

    #[test]
    fn pieces_that_a_slow_line_has_carried_are_not_brought_again() {
        let dir = tempfile::tempdir().unwrap();
        let pace = Pace {
            piece: 512,
            takes: Duration::from_secs(5),
            slow: true,
        };
        let told = std::cell::RefCell::new(Vec::new());
        let tell = |text: &str| told.borrow_mut().push(text.to_owned());
        for is_cut in [true, false] {
            let (shell, from, to) = shell(dir.path(), &[], &[]);
            let begun = std::cell::Cell::new(false);
            let part = || {
                std::fs::read_dir(dir.path().join("bin"))
                    .into_iter()
                    .flatten()
                    .flatten()
                    .next()
            };
            let arrived = || {
                let part = part().and_then(|dir| dir.path().join("part").metadata().ok());
                part.is_some_and(|part| part.len() > 4_096)
            };
            let stop = || is_cut && begun.get() && arrived();
            let mut talk = Talk::new(from, to, &stop);
            assert!(talk.here(ANSWER).unwrap().1);
            begun.set(true);
            let brought = talk.bring(&program(), true, pace, &tell);
            assert_eq!(brought.is_err(), is_cut, "{brought:?}");
            drop(talk);
            let ended = shell.wait_with_output();
            assert!(ended.is_ok());
        }
        let told = told.take();
        let size = |text: &String| text.split(' ').nth(3).unwrap().parse::<u32>().unwrap();
        assert!(size(&told[1]) + 3 < size(&told[0]), "{told:?}");
    }

    #[test]
    fn a_program_that_is_damaged_there_is_brought_again() {
        let dir = tempfile::tempdir().unwrap();
        let pace = Pace {
            piece: 2048,
            takes: Duration::from_secs(5),
            slow: false,
        };
        let told = std::cell::Cell::new(0);
        let digest = hexadecimal(Sha256::new_with_prefix(program().loaded));
        let there = dir.path().join("bin").join(&digest).join("timecell");
        for (is_damaged, times) in [(false, 1), (false, 1), (true, 2)] {
            if is_damaged {
                std::fs::write(&there, "damaged").unwrap();
            }
            let (_shell, from, to) = shell(dir.path(), &[], &[]);
            let mut talk = Talk::new(from, to, &|| false);
            talk.here(ANSWER).unwrap();
            let tell = |_: &str| told.set(told.get() + 1);
            let brought = talk.bring(&program(), false, pace, &tell).unwrap();
            assert_eq!((&brought, told.get()), (&digest, times));
            assert_eq!(std::fs::read(&there).unwrap(), program().loaded);
        }
    }

    #[test]
    fn a_machine_without_room_says_so() {
        let (_shell, from, to) = shell(std::path::Path::new("/proc/none"), &[], &[]);
        let mut talk = Talk::new(from, to, &|| false);
        talk.here(ANSWER).unwrap();
        let pace = Pace {
            piece: 2048,
            takes: Duration::from_secs(1),
            slow: false,
        };
        match talk.bring(&program(), false, pace, &|_| ()) {
            Err(Unbrought::There(why)) => assert!(why.contains("/proc/none"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn checksums_are_those_of_cksum() {
        for (bytes, sum) in [(&b""[..], 4_294_967_295), (b"123456789", 930_766_865)] {
            assert_eq!(cksum(bytes), sum);
        }
    }

    #[test]
    fn the_script_can_be_quoted_and_does_not_answer_itself() {
        assert!(!SCRIPT.contains('\'') && !SCRIPT.contains("timecell-"));
        assert!(SCRIPT.lines().all(|line| line.len() < 160));
    }
}
