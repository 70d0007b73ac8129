//! The process that serves the channel: it runs what it is told to, passes on what that prints, and sends directories.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use sha2::{Digest, Sha256};

use crate::cache::hexadecimal;
use crate::channel::Sender;
use crate::channel::frame::{Decoder, MOST};
use crate::channel::message::{FromGuest, Message, Order, Ready, ToGuest};
use crate::image::WORK;
use crate::tree::Tree;

/// How often a sign of life is sent, and how often the guest says that it has booted.
const ALIVE: Duration = Duration::from_secs(4);
const READY: Duration = Duration::from_millis(500);
/// How long the next output is waited for after its program has ended, and all of it: what it leaves running may hold it open.
const LAST_WORDS: Duration = Duration::from_secs(2);
const ALL_LAST_WORDS: Duration = Duration::from_secs(60);

type Line = Arc<Sender<FromGuest>>;

/// Serves the channel until the line fails.
pub fn run(line: &str) -> i32 {
    match serve(line) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("timecell: the channel {line} fails: {error}");
            1
        }
    }
}

fn serve(name: &str) -> io::Result<()> {
    let mut line = super::open(name)?;
    let mut settings = tcgetattr(&line)?;
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Flush, &settings)?;
    let sender: Line = Arc::new(Sender::new(line.try_clone()?));
    let life = Arc::new(Mutex::new(FromGuest::Ready(Ready::here())));
    let (to, signs) = (sender.clone(), life.clone());
    thread::spawn(move || tell(&to, &signs));
    let mut input = None;
    let mut decoder = Decoder::default();
    let mut started = 0;
    let mut buffer = [0; 4096];
    loop {
        let read = line.read(&mut buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        decoder.push(&buffer[..read]);
        while let Some(frame) = decoder.frame() {
            match ToGuest::decode(frame.kind, &frame.content) {
                Some(ToGuest::Run(order)) => {
                    sender.send(&FromGuest::Started(order.id))?;
                    if order.id > started {
                        started = order.id;
                        be(&life, FromGuest::Alive);
                        input = begin(&order, &sender, &life);
                    }
                }
                // A program that has ended, or reads no input, does not miss it.
                Some(ToGuest::In(bytes)) if bytes.is_empty() => input = None,
                Some(ToGuest::In(bytes)) => {
                    let _ = input
                        .as_mut()
                        .map(|to: &mut ChildStdin| to.write_all(&bytes));
                }
                Some(ToGuest::Fetch(path)) => send_directory(&sender, Path::new(&path))?,
                Some(ToGuest::Off) => {
                    super::first::off();
                }
                None => {}
            }
        }
    }
}

/// Sends the sign of life again and again: that the guest has booted until something is asked of it, and then that it lives, or how
/// the last program ended.
fn tell(to: &Sender<FromGuest>, life: &Mutex<FromGuest>) {
    loop {
        let sign = life.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let waits = matches!(sign, FromGuest::Ready(_));
        if to.send(&sign).is_err() {
            return;
        }
        thread::sleep(if waits { READY } else { ALIVE });
    }
}

/// Sets the sign of life.
fn be(life: &Mutex<FromGuest>, sign: FromGuest) {
    *life.lock().unwrap_or_else(PoisonError::into_inner) = sign;
}

/// Starts the program of an order and passes on what it prints and how it ends. Returns its standard input, if that is wanted.
fn begin(order: &Order, to: &Line, life: &Arc<Mutex<FromGuest>>) -> Option<ChildStdin> {
    set_clock(order.now_ns);
    let id = order.id;
    match started(order) {
        Ok(mut child) => {
            let input = child.stdin.take();
            let (to, life) = (to.clone(), life.clone());
            thread::spawn(move || {
                let status = carried_out(child, &to);
                be(&life, FromGuest::Ended(id, status));
                // Said again as the sign of life.
                let _ = to.send(&FromGuest::Ended(id, status));
            });
            input
        }
        Err(error) => {
            let name = order.args.first().map_or("", String::as_str);
            let said = format!("{name}: cannot be started in the guest: {error}\n");
            let _ = to.send(&FromGuest::Err(said.into_bytes()));
            be(life, FromGuest::Ended(id, 127));
            let _ = to.send(&FromGuest::Ended(id, 127));
            None
        }
    }
}

/// Passes on what a program prints, until it has ended; returns its status.
fn carried_out(mut child: Child, to: &Line) -> i32 {
    let (done, finished) = mpsc::channel();
    let out = child.stdout.take();
    pass_on(out, to.clone(), FromGuest::Out, done.clone());
    pass_on(child.stderr.take(), to.clone(), FromGuest::Err, done);
    let ended = child.wait();
    let until = Instant::now() + ALL_LAST_WORDS;
    while Instant::now() < until && finished.recv_timeout(LAST_WORDS).is_ok() {}
    ended.map_or(1, super::status)
}

fn started(order: &Order) -> io::Result<Child> {
    let (program, arguments) = order
        .args
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    let input = match order.input {
        true => Stdio::piped(),
        false => Stdio::null(),
    };
    Command::new(program)
        .args(arguments)
        .current_dir(WORK)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn pass_on(
    from: Option<impl Read + Send + 'static>,
    to: Line,
    message: fn(Vec<u8>) -> FromGuest,
    done: mpsc::Sender<()>,
) {
    let Some(mut from) = from else { return };
    thread::spawn(move || {
        let mut buffer = [0; MOST];
        while let Ok(read) = from.read(&mut buffer)
            && read > 0
            && to.send(&message(buffer[..read].to_vec())).is_ok()
            && done.send(()).is_ok()
        {}
    });
}

/// Sets the clock to the host's, unless it is within a second of it: boards without a battery begin in 1970.
fn set_clock(now_ns: u64) {
    let own = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    if own.abs_diff(Duration::from_nanos(now_ns)) < Duration::from_secs(1) {
        return;
    }
    let time = libc::timespec {
        tv_sec: (now_ns / 1_000_000_000) as _,
        tv_nsec: (now_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the time is a valid timespec for the duration of the call.
    unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) };
}

/// Sends what is in a directory; nothing if it is not there.
fn send_directory(to: &Line, path: &Path) -> io::Result<()> {
    let mut tree = Tree::default();
    let packed = match path.is_dir() {
        true => tree.add(path),
        false => Ok(()),
    };
    let chunks = Chunks {
        to: to.clone(),
        sum: Sha256::new(),
    };
    let packed = packed.and_then(|()| tree.write(io::BufWriter::with_capacity(MOST, chunks)));
    let packed = packed.and_then(|out| out.into_inner().map_err(io::IntoInnerError::into_error));
    to.send(&match packed {
        Ok(chunks) => FromGuest::FilesEnd(hexadecimal(chunks.sum)),
        Err(error) => FromGuest::Fault(format!("{}: cannot be sent: {error}", path.display())),
    })
}

/// Pieces of an archive on their way.
struct Chunks {
    to: Line,
    sum: Sha256,
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(MOST)];
        self.to.send(&FromGuest::Files(piece.to_vec()))?;
        self.sum.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// Beside a real line these are tested with a guest: crates/timecell/tests/behaviour.
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::Seek;

    /// What was sent to a file.
    fn messages(file: &mut File) -> Vec<FromGuest> {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        let frames = std::iter::from_fn(|| decoder.frame());
        frames
            .map(|frame| FromGuest::decode(frame.kind, &frame.content).unwrap())
            .collect()
    }

    #[test]
    fn a_directory_arrives_whole() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), vec![7; 3 * MOST]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let line: Line = Arc::new(Sender::new(file.try_clone().unwrap()));
        send_directory(&line, dir.path()).unwrap();
        let mut archive = Vec::new();
        let mut end = None;
        for message in messages(&mut file) {
            match message {
                FromGuest::Files(piece) => archive.extend(piece),
                FromGuest::FilesEnd(digest) => end = Some(digest),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(end.unwrap(), crate::cache::digest(&archive[..]).unwrap());
        let into = tempfile::tempdir().unwrap();
        crate::tree::unpack(&archive[..], into.path()).unwrap();
        assert_eq!(fs::read(into.path().join("a")).unwrap(), vec![7; 3 * MOST]);
    }
}
