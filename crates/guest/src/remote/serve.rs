//! The server on the other machine: answers about one order on its standard input and output until they close. It holds nothing that
//! the next one needs: all is in the order's directory.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};

use super::keep;
use super::message::{Ended, FromRemote, PIECE, Sum, ToRemote};
use super::place::{self, MISSING, Place, State};
use crate::cache::hexadecimal;
use crate::channel::message::Ready;
use crate::channel::{Sender, received};
use crate::tree::Tree;

/// How often a sign of life is sent.
const ALIVE: Duration = Duration::from_secs(4);
/// How often output is looked for: rarely, as somebody measures here.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is noted that somebody follows.
const NOTED: Duration = Duration::from_secs(20);

/// Serves until the line closes.
pub fn run(base: &Path) -> i32 {
    let line = |end: BorrowedFd<'_>| end.try_clone_to_owned().map(File::from);
    let lines = line(io::stdin().as_fd()).and_then(|from| Ok((from, line(io::stdout().as_fd())?)));
    match lines.and_then(|(from, to)| serve(base, from, to)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("timecell: the line fails: {error}");
            1
        }
    }
}

/// One connection.
struct Server {
    base: PathBuf,
    to: Arc<Sender<FromRemote>>,
    place: Option<Place>,
    /// Counts questions with streamed answers: a newer question ends the answer to an older one.
    turn: Arc<AtomicU64>,
}

fn serve(base: &Path, from: File, to: File) -> io::Result<()> {
    let mut server = Server {
        base: base.to_owned(),
        to: Arc::new(Sender::new(to)),
        place: None,
        turn: Arc::default(),
    };
    let to = server.to.clone();
    thread::spawn(move || {
        while to.send(&FromRemote::Alive).is_ok() {
            thread::sleep(ALIVE);
        }
    });
    for (asked, _) in received(from) {
        if asked == ToRemote::Leave {
            break;
        }
        if let Some(answer) = server.answer(asked).unwrap_or_else(fault) {
            server.to.send(&answer)?;
        }
    }
    Ok(())
}

fn fault(error: io::Error) -> Option<FromRemote> {
    Some(FromRemote::Fault(error.to_string()))
}

impl Server {
    /// Answers a question; returns the answer, unless it is streamed.
    fn answer(&mut self, asked: ToRemote) -> io::Result<Option<FromRemote>> {
        if let ToRemote::Hello(order) = asked {
            self.turn.fetch_add(1, Ordering::Relaxed);
            self.place = Some(Place::of(&self.base, &order)?);
            let left = place::left(&self.base, &order)?;
            return Ok(Some(FromRemote::Ready(Ready::here(), left)));
        }
        let place = self.place.clone();
        let place = place.ok_or_else(|| io::Error::other("no order was named"))?;
        Ok(match asked {
            ToRemote::Give(at, piece) => {
                place.give(at, &piece)?;
                Some(FromRemote::Have(place.have()))
            }
            ToRemote::Start(sum) => {
                place.complete(&sum)?;
                keep::start(&place)?;
                Some(FromRemote::Started)
            }
            ToRemote::Signal(signal, asker) => {
                let begun = Instant::now();
                // A keeper that was just started has not said its number yet.
                while place.state()? == Some(State::Runs(0)) && begun.elapsed() < ALIVE {
                    thread::sleep(LOOK);
                }
                match place.state()? {
                    // It is asked again.
                    Some(State::Runs(0)) => None,
                    Some(State::Runs(keeper)) => {
                        tell(&place, keeper, signal, asker)?;
                        Some(FromRemote::Told)
                    }
                    _ => Some(FromRemote::Told),
                }
            }
            ToRemote::Remove => {
                if let Some(State::Runs(_)) = place.state()? {
                    return Err(io::Error::other("the order is still carried out"));
                }
                place.remove()?;
                Some(FromRemote::Removed)
            }
            ToRemote::Follow(out, err) => {
                self.stream(move |stream| follow(&place, stream, out, err));
                None
            }
            ToRemote::Fetch(from) => {
                self.stream(move |stream| fetch(&place, stream, from));
                None
            }
            ToRemote::Hello(_) | ToRemote::Leave => None,
        })
    }

    /// Streams an answer beside the questions, in place of the one before.
    fn stream(&self, answer: impl FnOnce(&Stream) -> io::Result<()> + Send + 'static) {
        let stream = Stream {
            to: self.to.clone(),
            turn: self.turn.clone(),
            mine: self.turn.fetch_add(1, Ordering::Relaxed) + 1,
        };
        thread::spawn(move || {
            if let Err(error) = answer(&stream) {
                // If the line is closed, its reader finds out.
                let _ = stream.send(&FromRemote::Fault(error.to_string()));
            }
        });
    }
}

/// An answer in several messages.
struct Stream {
    to: Arc<Sender<FromRemote>>,
    turn: Arc<AtomicU64>,
    mine: u64,
}

impl Stream {
    fn is_wanted(&self) -> bool {
        self.turn.load(Ordering::Relaxed) == self.mine
    }

    fn send(&self, message: &FromRemote) -> io::Result<()> {
        match self.is_wanted() {
            true => self.to.send(message),
            false => Ok(()),
        }
    }
}

/// Sends a signal to the processes of an order, once for each asker: a second one would end them at once.
fn tell(place: &Place, keeper: i32, signal: i32, asker: u32) -> io::Result<()> {
    let to = Pid::from_raw(keeper).zip(Signal::from_named_raw(signal));
    let (keeper, signal) =
        to.ok_or_else(|| io::Error::other("the command cannot be told to end"))?;
    // On a full disk it is told twice rather than never.
    let told = File::create_new(place.path(&format!("told-{asker}")));
    if told.is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        return Ok(());
    }
    match kill_process_group(keeper, signal) {
        // It has ended meanwhile.
        Err(Errno::SRCH) => Ok(()),
        told => Ok(told?),
    }
}

/// Sends the output of an order as it appears, and its end.
fn follow(place: &Place, stream: &Stream, mut out: u64, mut err: u64) -> io::Result<()> {
    let missing = || io::Error::other(MISSING);
    place.state()?.ok_or_else(missing)?;
    let files = (
        File::open(place.path("out"))?,
        File::open(place.path("err"))?,
    );
    let mut noted: Option<Instant> = None;
    while stream.is_wanted() {
        // Before its output: nothing is written after its end.
        let state = place.state()?;
        let is_more = send_new(&files.0, &mut out, stream, FromRemote::Out)?
            | send_new(&files.1, &mut err, stream, FromRemote::Err)?;
        match state {
            Some(State::Ended(status)) if !is_more => {
                return stream.send(&FromRemote::Ended(Ended { status, out, err }));
            }
            None => return Err(missing()),
            Some(State::New) => return Err(io::Error::other("the order was not begun")),
            Some(State::Runs(_) | State::Ended(_)) => {}
        }
        if noted.is_none_or(|noted| noted.elapsed() >= NOTED) {
            noted = Some(Instant::now());
            let followed = File::options().write(true).open(place.path("followed"))?;
            followed.set_modified(SystemTime::now())?;
        }
        if !is_more {
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// Sends one piece of what is new in a file; whether there was any.
fn send_new(
    file: &File,
    at: &mut u64,
    stream: &Stream,
    message: fn(u64, Vec<u8>) -> FromRemote,
) -> io::Result<bool> {
    let mut buffer = [0; PIECE];
    let read = file.read_at(&mut buffer, *at)?;
    if read > 0 {
        stream.send(&message(*at, buffer[..read].to_vec()))?;
        *at += read as u64;
    }
    Ok(read > 0)
}

/// Sends the results of an order from a place in its archive on: the same files give the same bytes.
fn fetch(place: &Place, stream: &Stream, from: u64) -> io::Result<()> {
    let mut pieces = Pieces {
        stream,
        from,
        at: 0,
        sum: Sha256::new(),
        told: Instant::now(),
    };
    let made = place.made()?;
    if made != Tree::default() {
        let out = made.write(io::BufWriter::with_capacity(PIECE, pieces))?;
        pieces = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    }
    stream.send(&FromRemote::FilesEnd(Sum {
        length: pieces.at,
        digest: hexadecimal(pieces.sum),
    }))
}

/// Pieces of an archive on their way, without those before a place.
struct Pieces<'s> {
    stream: &'s Stream,
    from: u64,
    at: u64,
    sum: Sha256,
    /// When a piece was sent.
    told: Instant,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.stream.is_wanted() {
            return Err(io::Error::other("it is not wanted any more"));
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        let known = self.from.saturating_sub(self.at).min(piece.len() as u64);
        let new = &piece[known as usize..];
        // Reading as far as the place may take long: that it goes on is told as well.
        if !new.is_empty() || self.told.elapsed() >= ALIVE {
            let at = self.from.max(self.at);
            (self.stream).send(&FromRemote::Files(at, new.to_vec()))?;
            self.told = Instant::now();
        }
        self.sum.update(piece);
        self.at += piece.len() as u64;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Read as _, pipe};
    use std::os::fd::OwnedFd;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::Receiver;

    use super::super::place::{ORDER, Order, WORK};
    use super::*;

    /// An order that has ended.
    fn ended(dir: &Path) -> Place {
        let place = Place::of(dir, "0123456789abcdef").unwrap();
        fs::create_dir_all(place.path(WORK)).unwrap();
        for name in ["out", "err", "followed", "lock", "status"] {
            File::create(place.path(name)).unwrap();
        }
        let order = serde_json::to_vec(&Order::default()).unwrap();
        fs::write(place.path(ORDER), order).unwrap();
        place.write_status("ended 0").unwrap();
        place
    }

    fn stream() -> (Stream, Receiver<(FromRemote, u32)>) {
        let (from, to) = pipe().unwrap();
        let stream = Stream {
            to: Arc::new(Sender::new(File::from(OwnedFd::from(to)))),
            turn: Arc::default(),
            mine: 0,
        };
        (stream, received(from))
    }

    #[test]
    fn much_output_does_not_hold_back_errors_and_the_end_comes_last() {
        let dir = tempfile::tempdir().unwrap();
        let place = ended(dir.path());
        fs::write(place.path("out"), [7; 2 * PIECE + 1]).unwrap();
        fs::write(place.path("err"), "x").unwrap();
        let (to, came) = stream();
        follow(&place, &to, 0, 0).unwrap();
        drop(to);
        let came: Vec<FromRemote> = came.iter().map(|(message, _)| message).collect();
        let out = |piece: usize, bytes| FromRemote::Out((piece * PIECE) as u64, vec![7; bytes]);
        let end = Ended {
            status: Some(0),
            out: 2 * PIECE as u64 + 1,
            err: 1,
        };
        let err = FromRemote::Err(0, b"x".to_vec());
        let end = FromRemote::Ended(end);
        assert_eq!(came, [out(0, PIECE), err, out(1, PIECE), out(2, 1), end]);
    }

    #[test]
    fn of_no_results_there_are_no_bytes_and_of_small_ones_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let place = ended(dir.path());
        let (to, came) = stream();
        fetch(&place, &to, 0).unwrap();
        let none = FromRemote::FilesEnd(Sum {
            length: 0,
            digest: hexadecimal(Sha256::new()),
        });
        assert_eq!(came.recv().unwrap().0, none);
        File::create(place.path(WORK).join("empty")).unwrap();
        fetch(&place, &to, 0).unwrap();
        assert!(matches!(came.recv().unwrap().0, FromRemote::Files(0, _)));
    }

    #[test]
    fn reading_as_far_as_the_place_is_told() {
        let (stream, came) = stream();
        let mut pieces = Pieces {
            stream: &stream,
            from: 100,
            at: 0,
            sum: Sha256::new(),
            told: Instant::now(),
        };
        pieces.write_all(&[0; 10]).unwrap();
        pieces.told -= ALIVE;
        pieces.write_all(&[0; 10]).unwrap();
        pieces.write_all(&[0; 90]).unwrap();
        for bytes in [0, 10] {
            let piece = FromRemote::Files(100, vec![0; bytes]);
            assert_eq!(came.recv().unwrap().0, piece);
        }
    }

    #[test]
    fn a_signal_that_is_asked_for_again_is_sent_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = ended(dir.path());
        let script = "trap 'echo told' USR1; echo ready; while :; do sleep 0.01; done";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let keeper = shell.id().cast_signed();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line
        };
        assert_eq!(line(), "ready\n");
        tell(&place, keeper, libc::SIGUSR1, 1).unwrap();
        assert_eq!(line(), "told\n");
        tell(&place, keeper, libc::SIGKILL, 1).unwrap();
        tell(&place, keeper, libc::SIGUSR1, 2).unwrap();
        assert_eq!(line(), "told\n");
        tell(&place, keeper, libc::SIGKILL, 3).unwrap();
        shell.wait().unwrap();
        // To one that has ended.
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        tell(&place, keeper, libc::SIGKILL, 4).unwrap();
        assert_eq!(rest, "");
    }
}
