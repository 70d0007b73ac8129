//! Has an order carried out on another machine: brings it, follows its output, fetches its results and removes its remains
//! there. A lost link is made again, and every step goes on where it was.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::hearing::{ANSWER, Hearing, SILENT};
use super::link::{Heard, Link, Programs, Reach, Unlinked};
use super::message::{Ended, FromRemote, PIECE, Sum, ToRemote};
use super::place::{MISSING, ORDER, Order, WORK};
use super::target::Target;
use crate::cache::{Cache, hexadecimal};
use crate::tree::Tree;
use crate::{GuestError, machine::Output};

/// How long a lost link is tried again, and how long once the user wants to end.
const PATIENCE: Duration = Duration::from_secs(900);
const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// The longest pause between two tries.
const PAUSE: Duration = Duration::from_secs(15);
/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often an archive is sent that does not arrive whole.
const TRIES: u32 = 3;
/// Pieces on their way that are not confirmed.
const WINDOW: u64 = 32;

/// A command for the other machine.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// Arguments of timecell.
    pub args: Vec<String>,
    /// More variables of its environment.
    pub env: BTreeMap<String, String>,
    /// Whether it goes on when nobody has followed it for long.
    pub lasting: bool,
    /// Files and directories to take along, by the names that they have there.
    pub with: Vec<(String, PathBuf)>,
    /// The name of an order that was begun earlier, to go on with instead.
    pub attach: Option<String>,
}

/// Sees an order on its way.
pub trait Watch {
    /// The order prints this.
    fn see(&self, of: Output, bytes: &[u8]);
    /// Something about the link or the order.
    fn note(&self, text: &str);
    /// The signal that the order is to get, if the user wants it to end.
    fn signal(&self) -> Option<i32>;
    /// All results of the order are here, for [`unpack`]; it is removed there once this succeeds.
    ///
    /// # Errors
    /// Those of keeping it.
    fn made(&self, archive: File) -> Result<(), GuestError>;
}

/// Another machine, and all that is needed to have something done there.
pub struct Remote<'r> {
    /// The machine.
    pub target: &'r Target,
    /// How it is reached.
    pub reach: &'r Reach,
    /// Finds timecell for its processor.
    pub programs: &'r Programs<'r>,
    /// Where archives are kept until they are whole.
    pub cache: &'r Cache,
}

/// Why a step did not end.
enum Broken {
    /// The link was lost.
    Lost(String),
    /// The order cannot be carried out.
    Failed(GuestError),
}

/// The steps, each of which may be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Give,
    Start,
    Follow,
    Fetch,
    Remove,
    Done,
}

/// An order on its way.
struct Going<'g> {
    remote: &'g Remote<'g>,
    watch: &'g dyn Watch,
    name: String,
    step: Step,
    is_first: bool,
    /// Whether the server of this link has answered.
    greeted: bool,
    given: (File, Sum),
    out: u64,
    err: u64,
    signal: Option<i32>,
    /// Whether the order has got the signal.
    told: bool,
    status: Option<i32>,
    fetched: (File, u64, Sha256),
    tries: u32,
}

impl Remote<'_> {
    /// Carries out a job to its end. Returns its exit code; `None` if it was killed from outside, or the machine was started again.
    ///
    /// # Errors
    /// If the machine cannot be reached, stays away for long, or has no room.
    pub fn carry(&self, job: &Job, watch: &dyn Watch) -> Result<Option<i32>, GuestError> {
        let name = match &job.attach {
            Some(name) => name.clone(),
            None => new_name()?,
        };
        let mut going = Going {
            remote: self,
            watch,
            step: match job.attach {
                Some(_) => Step::Follow,
                None => Step::Give,
            },
            is_first: true,
            greeted: false,
            given: match job.attach {
                Some(_) => (self.cache.nameless()?, Sum::default()),
                None => self.packed(job)?,
            },
            name,
            out: 0,
            err: 0,
            signal: None,
            told: false,
            status: None,
            fetched: (self.cache.nameless()?, 0, Sha256::new()),
            tries: 0,
        };
        let (since, mut pause) = (Cell::new(Instant::now()), Duration::ZERO);
        let reached = Cell::new(false);
        loop {
            let is_begun = reached.get() && going.step != Step::Give;
            let heard = Heard {
                // A machine that takes the program lives.
                tell: &|text| {
                    since.set(Instant::now());
                    watch.note(text);
                },
                stop: &|| !is_begun && watch.signal().is_some(),
                reached: &reached,
            };
            let why = match Link::open(self.target, self.reach, self.programs, &heard) {
                Ok(mut link) => {
                    going.greeted = false;
                    match going.advance(&mut link) {
                        Ok(()) => return Ok(going.status),
                        Err(Broken::Failed(error)) if going.is_kept(&error) => {
                            return Err(self.kept(&going, &error.to_string()));
                        }
                        Err(Broken::Failed(error)) => return Err(error),
                        Err(Broken::Lost(why)) => {
                            if going.greeted {
                                since.set(Instant::now());
                                pause = Duration::ZERO;
                            }
                            why
                        }
                    }
                }
                Err(Unlinked::Stopped) => return Ok(watch.signal().map(|signal| 128 + signal)),
                Err(Unlinked::Lost(error)) if reached.get() => error.to_string(),
                Err(Unlinked::Lost(error) | Unlinked::Hopeless(error)) if !is_begun => {
                    return Err(error);
                }
                Err(Unlinked::Lost(error) | Unlinked::Hopeless(error)) => {
                    return Err(self.kept(&going, &format!("the link is lost: {error}")));
                }
            };
            let patience = match watch.signal() {
                Some(_) => LAST_PATIENCE,
                None => PATIENCE,
            };
            if since.get().elapsed() > patience {
                return Err(self.kept(&going, &format!("the link is lost: {why}")));
            }
            pause = (2 * pause).clamp(Duration::from_millis(500), PAUSE);
            watch.note(&format!("the link was lost ({why}); it is made again"));
            std::thread::sleep(pause);
        }
    }

    /// The error of a machine that stays away, or keeps results that cannot be fetched.
    fn kept(&self, going: &Going<'_>, why: &str) -> GuestError {
        let fix = match going.step {
            Step::Give => "begin again".to_owned(),
            _ => format!(
                "the order is kept there; the same command with `--attach {}` goes on with it",
                going.name
            ),
        };
        let target = self.target.to_string();
        // It may begin with the target already.
        let why = why.replacen(&format!("{target}: "), "", 1);
        let what = format!("{why} ({fix})");
        GuestError::Remote { target, what }
    }

    /// The order and its files as an archive.
    fn packed(&self, job: &Job) -> Result<(File, Sum), GuestError> {
        let order = Order {
            args: job.args.clone(),
            env: job.env.clone(),
            lasting: job.lasting,
            brought: job.with.iter().map(|(name, _)| name.clone()).collect(),
        };
        let json = serde_json::to_vec(&order).map_err(|error| {
            GuestError::file(Path::new(ORDER), "write it")(io::Error::other(error))
        })?;
        let mut tree = Tree::default();
        tree.text(ORDER, 0o600, json);
        for (name, path) in &job.with {
            let told = |doing| GuestError::file(path, doing);
            let place = format!("{WORK}/{name}");
            let about = path.metadata().map_err(told("read it"))?;
            if about.is_dir() {
                tree.directory(&place, 0o755);
                let below = |path| Some(format!("{place}/{path}"));
                tree.add_placed(path, &below).map_err(told("read it"))?;
            } else {
                let mode = std::os::unix::fs::MetadataExt::mode(&about) & 0o777;
                tree.file(&place, mode, path);
            }
        }
        let told = || GuestError::file(self.cache.dir(), "pack the files to bring");
        let out = io::BufWriter::with_capacity(1 << 20, self.cache.nameless()?);
        let out = tree.write(out).map_err(told())?;
        let mut file = out
            .into_inner()
            .map_err(|error| told()(error.into_error()))?;
        let length = file.stream_position().map_err(told())?;
        file.rewind().map_err(told())?;
        let digest = crate::cache::digest(BufReader::new(&file)).map_err(told())?;
        Ok((file, Sum { length, digest }))
    }
}

/// A name that no other order has.
fn new_name() -> Result<String, GuestError> {
    let mut bytes = [0; 8];
    let path = Path::new("/dev/urandom");
    (File::open(path).and_then(|mut file| file.read_exact(&mut bytes)))
        .map_err(GuestError::file(path, "read it"))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// The new part of a piece that begins at `at`, where `have` bytes are known; `None` if something before it is missing.
fn new_of(at: u64, piece: &[u8], have: u64) -> Option<&[u8]> {
    let known = usize::try_from(have.checked_sub(at)?).ok()?;
    Some(piece.get(known..).unwrap_or_default())
}

impl Going<'_> {
    /// Goes on until all is done. Of an order that could not be begun, nothing stays there.
    fn advance(&mut self, link: &mut Link) -> Result<(), Broken> {
        let ended = self.steps(link);
        if matches!(ended, Err(Broken::Failed(_))) && matches!(self.step, Step::Give | Step::Start)
        {
            let is_done = |said: &FromRemote| matches!(said, FromRemote::Removed);
            // The first failure is told; this one leaves at most a directory.
            let _ = self.ask(link, &ToRemote::Remove, is_done);
        }
        ended
    }

    /// Whether the order is there still after this error, and can be gone on with.
    fn is_kept(&self, error: &GuestError) -> bool {
        matches!(self.step, Step::Follow | Step::Fetch | Step::Remove)
            && !error.to_string().contains(MISSING)
    }

    fn steps(&mut self, link: &mut Link) -> Result<(), Broken> {
        let hello = ToRemote::Hello(self.name.clone());
        let is_ready = |said: &FromRemote| matches!(said, FromRemote::Ready(..));
        let ready = self.ask(link, &hello, is_ready)?;
        self.greeted = true;
        if let FromRemote::Ready(_, left) = ready
            && self.is_first
        {
            for order in left {
                (self.watch).note(&format!("order {order} (--attach takes it from there)"));
            }
        }
        self.is_first = false;
        loop {
            self.step = match self.step {
                Step::Give => self.give(link)?,
                Step::Start => self.start(link)?,
                Step::Follow => self.follow(link)?,
                Step::Fetch => self.fetch(link)?,
                Step::Remove => {
                    let is_done = |said: &FromRemote| matches!(said, FromRemote::Removed);
                    self.ask(link, &ToRemote::Remove, is_done)?;
                    Step::Done
                }
                Step::Done => {
                    // If it is not heard, the closed line says the same.
                    let _ = link.to.send(&ToRemote::Leave);
                    return Ok(());
                }
            };
        }
    }

    fn send(&self, link: &mut Link, message: &ToRemote) -> Result<(), Broken> {
        let sent = link.to.send(message);
        sent.map_err(|error| Broken::Lost(link.said().unwrap_or_else(|| error.to_string())))
    }

    /// The next message within this time, and whether some were lost before it.
    fn next(
        &self,
        link: &mut Link,
        patience: Duration,
    ) -> Result<Option<(FromRemote, bool)>, Broken> {
        match link.from.recv_timeout(patience) {
            Ok((FromRemote::Fault(why), _)) => {
                let target = self.remote.target.to_string();
                let fix = match why.contains("No space left") {
                    true => " (make room there, or name another directory by --remote-dir)",
                    false => "",
                };
                let what = format!("it cannot be done there: {why}{fix}");
                Err(Broken::Failed(GuestError::Remote { target, what }))
            }
            Ok((message, lost)) => Ok(Some((message, lost > 0))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let why = link.said().unwrap_or_else(|| "it closed".to_owned());
                Err(Broken::Lost(why))
            }
        }
    }

    /// Asks until an answer has come, for long if the server lives.
    fn ask(
        &self,
        link: &mut Link,
        question: &ToRemote,
        is_answer: impl Fn(&FromRemote) -> bool,
    ) -> Result<FromRemote, Broken> {
        let begun = Instant::now();
        let mut heard = begun;
        while heard.elapsed() < 6 * SILENT && begun.elapsed() < PATIENCE {
            self.send(link, question)?;
            let again = Instant::now() + ANSWER;
            while let Some(left) = again.checked_duration_since(Instant::now()) {
                match self.next(link, left)? {
                    Some((message, _)) if is_answer(&message) => return Ok(message),
                    Some(_) => heard = Instant::now(),
                    None => {}
                }
            }
        }
        Err(Broken::Lost("it does not answer".to_owned()))
    }

    fn own(&self, doing: &'static str) -> impl Fn(io::Error) -> Broken + use<> {
        let dir = self.remote.cache.dir().to_owned();
        move |error| Broken::Failed(GuestError::file(&dir, doing)(error))
    }

    /// Brings the archive from where it is known to be there.
    fn give(&mut self, link: &mut Link) -> Result<Step, Broken> {
        let is_answer = |said: &FromRemote| matches!(said, FromRemote::Have(_));
        let have = self.ask(link, &ToRemote::Give(0, Vec::new()), is_answer)?;
        let FromRemote::Have(mut have) = have else {
            return Ok(Step::Give);
        };
        let (most, window) = match self.remote.target {
            Target::Ssh(_) => (PIECE, WINDOW * PIECE as u64),
            // Nothing holds back a serial line whose other end has no time: a piece, of a second at most, is under way.
            Target::Serial { baud, .. } => (PIECE.min(*baud as usize / 10), 1),
        };
        let length = self.given.1.length;
        let (mut sent, mut moved) = (have, Instant::now());
        let mut piece = vec![0; most];
        while have < length {
            if let Some(signal) = self.watch.signal() {
                self.status = Some(128 + signal);
                return Ok(Step::Remove);
            }
            while sent < length && sent < have + window {
                let size = (length - sent).min(most as u64) as usize;
                let read = self.given.0.read_exact_at(&mut piece[..size], sent);
                read.map_err(self.own("read the files to bring"))?;
                self.send(link, &ToRemote::Give(sent, piece[..size].to_vec()))?;
                sent += size as u64;
            }
            match self.next(link, ANSWER)? {
                Some((FromRemote::Have(more), _)) if more > have => {
                    (have, moved) = (more, Instant::now());
                }
                _ if moved.elapsed() > SILENT => {
                    return Err(Broken::Lost("it does not answer".to_owned()));
                }
                _ if moved.elapsed() > ANSWER => sent = have,
                _ => {}
            }
        }
        Ok(Step::Start)
    }

    fn start(&mut self, link: &mut Link) -> Result<Step, Broken> {
        let start = ToRemote::Start(self.given.1.clone());
        match self.ask(link, &start, |said| matches!(said, FromRemote::Started)) {
            Ok(_) => Ok(Step::Follow),
            Err(Broken::Failed(GuestError::Remote { what, .. }))
                if what.contains("damaged") && self.tries < TRIES =>
            {
                self.tries += 1;
                Ok(Step::Give)
            }
            Err(error) => Err(error),
        }
    }

    /// Shows the output of the order until it ends.
    fn follow(&mut self, link: &mut Link) -> Result<Step, Broken> {
        let mut hearing = Hearing::new();
        self.send(link, &ToRemote::Follow(self.out, self.err))?;
        let mut asked: Option<Instant> = None;
        loop {
            if self.signal.is_none() {
                self.signal = self.watch.signal();
                if self.signal.is_some() {
                    self.watch.note("it is told to end");
                }
            }
            if let Some(signal) = self.signal.filter(|_| !self.told)
                && asked.is_none_or(|asked| asked.elapsed() > ANSWER)
            {
                asked = Some(Instant::now());
                self.send(link, &ToRemote::Signal(signal, std::process::id()))?;
            }
            let Some(message) = hearing
                .heard(self.next(link, LOOK)?)
                .map_err(Broken::Lost)?
            else {
                continue;
            };
            match message {
                FromRemote::Out(at, piece) => {
                    hearing.is_gap |= self.shown(Output::Out, at, &piece);
                }
                FromRemote::Err(at, piece) => {
                    hearing.is_gap |= self.shown(Output::Err, at, &piece);
                }
                FromRemote::Ended(Ended { status, out, err }) => {
                    if (out, err) == (self.out, self.err) {
                        self.status = status;
                        return Ok(Step::Fetch);
                    }
                    hearing.is_gap = true;
                }
                FromRemote::Told => self.told = true,
                _ => {}
            }
            if hearing.asks_again() {
                self.send(link, &ToRemote::Follow(self.out, self.err))?;
            }
        }
    }

    /// Shows the new part of a piece; whether something before it is missing.
    fn shown(&mut self, of: Output, at: u64, piece: &[u8]) -> bool {
        let have = match of {
            Output::Out => &mut self.out,
            Output::Err => &mut self.err,
        };
        let Some(new) = new_of(at, piece, *have) else {
            return true;
        };
        *have += new.len() as u64;
        if !new.is_empty() {
            self.watch.see(of, new);
        }
        false
    }

    /// Fetches the results of the order.
    fn fetch(&mut self, link: &mut Link) -> Result<Step, Broken> {
        let mut hearing = Hearing::new();
        self.send(link, &ToRemote::Fetch(self.fetched.1))?;
        loop {
            let Some(message) = hearing
                .heard(self.next(link, LOOK)?)
                .map_err(Broken::Lost)?
            else {
                continue;
            };
            let (file, have, sum) = &mut self.fetched;
            match message {
                FromRemote::Files(at, piece) => match new_of(at, &piece, *have) {
                    Some(new) => {
                        let kept = file.write_all(new);
                        sum.update(new);
                        *have += new.len() as u64;
                        kept.map_err(self.own("keep the results"))?;
                    }
                    None => hearing.is_gap = true,
                },
                FromRemote::FilesEnd(whole) if whole.length == *have => {
                    if hexadecimal(sum.clone()) == whole.digest {
                        self.keep()?;
                        return Ok(Step::Remove);
                    }
                    self.tries += 1;
                    if self.tries > TRIES {
                        let target = self.remote.target.to_string();
                        let what = "its results arrive damaged again and again".to_owned();
                        return Err(Broken::Failed(GuestError::Remote { target, what }));
                    }
                    let again = self.remote.cache.nameless().map_err(Broken::Failed)?;
                    self.fetched = (again, 0, Sha256::new());
                    hearing.is_gap = true;
                }
                FromRemote::FilesEnd(_) => hearing.is_gap = true,
                _ => {}
            }
            if hearing.asks_again() {
                self.send(link, &ToRemote::Fetch(self.fetched.1))?;
            }
        }
    }

    fn keep(&mut self) -> Result<(), Broken> {
        let (file, have, _) = &mut self.fetched;
        // There are none.
        if *have == 0 {
            return Ok(());
        }
        let whole = file.rewind().and_then(|()| file.try_clone());
        let whole = whole.map_err(self.own("read the results"))?;
        self.watch.made(whole).map_err(Broken::Failed)
    }
}

#[cfg(test)]
mod tests;
