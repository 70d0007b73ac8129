//! The server on the other machine: answers about one order on its standard input and output until they close. It holds nothing that
//! the next one needs: all is in the order's directory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};
use sha2::{Digest, Sha256};

use super::keep;
use super::message::{Ended, FromRemote, PIECE, Sum, ToRemote};
use super::place::{self, Place, State};
use crate::cache::hexadecimal;
use crate::channel::message::{Message, Ready};
use crate::channel::{Sender, frame::Decoder};

/// How often a sign of life is sent.
const ALIVE: Duration = Duration::from_secs(4);
/// How often output is looked for: rarely, as somebody measures here.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is noted that somebody follows.
const NOTED: Duration = Duration::from_secs(20);

/// Serves until the line closes.
pub fn run(base: &Path) -> i32 {
    match serve(base) {
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

fn serve(base: &Path) -> io::Result<()> {
    let mut line = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
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
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = line.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        decoder.push(&buffer[..read]);
        while let Some(frame) = decoder.frame() {
            match ToRemote::decode(frame.kind, &frame.content) {
                Some(ToRemote::Leave) => return Ok(()),
                Some(asked) => {
                    if let Some(answer) = server.answer(asked).unwrap_or_else(fault) {
                        server.to.send(&answer)?;
                    }
                }
                None => {}
            }
        }
    }
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
            ToRemote::Signal(signal) => {
                let begun = Instant::now();
                // A keeper that was just started has not said its number yet.
                while place.state()? == Some(State::Runs(0)) && begun.elapsed() < ALIVE {
                    thread::sleep(LOOK);
                }
                if let Some(State::Runs(keeper)) = place.state()? {
                    let to = Pid::from_raw(keeper).zip(Signal::from_named_raw(signal));
                    let (keeper, signal) =
                        to.ok_or_else(|| io::Error::other("the command cannot be told to end"))?;
                    kill_process_group(keeper, signal)?;
                }
                None
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

/// Sends the output of an order as it appears, and its end.
fn follow(place: &Place, stream: &Stream, mut out: u64, mut err: u64) -> io::Result<()> {
    let missing = || io::Error::other("there is no such order");
    place.state()?.ok_or_else(missing)?;
    let files = (
        File::open(place.path("out"))?,
        File::open(place.path("err"))?,
    );
    let mut noted: Option<Instant> = None;
    while stream.is_wanted() {
        // Before its output: nothing is written after its end.
        let state = place.state()?;
        let begun = (out, err);
        send_new(&files.0, &mut out, stream, FromRemote::Out)?;
        send_new(&files.1, &mut err, stream, FromRemote::Err)?;
        match state {
            Some(State::Ended(status)) => {
                return stream.send(&FromRemote::Ended(Ended { status, out, err }));
            }
            None => return Err(missing()),
            Some(State::New) => return Err(io::Error::other("the order was not begun")),
            Some(State::Runs(_)) => {}
        }
        if noted.is_none_or(|noted| noted.elapsed() >= NOTED) {
            noted = Some(Instant::now());
            let followed = File::options().write(true).open(place.path("followed"))?;
            followed.set_modified(SystemTime::now())?;
        }
        if begun == (out, err) {
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

fn send_new(
    file: &File,
    at: &mut u64,
    stream: &Stream,
    message: fn(u64, Vec<u8>) -> FromRemote,
) -> io::Result<()> {
    let mut buffer = [0; PIECE];
    loop {
        let read = file.read_at(&mut buffer, *at)?;
        if read == 0 || !stream.is_wanted() {
            return Ok(());
        }
        stream.send(&message(*at, buffer[..read].to_vec()))?;
        *at += read as u64;
    }
}

/// Sends the results of an order from a place in its archive on: the same files give the same bytes.
fn fetch(place: &Place, stream: &Stream, from: u64) -> io::Result<()> {
    let pieces = Pieces {
        stream,
        from,
        at: 0,
        sum: Sha256::new(),
    };
    let out = (place.made()?).write(io::BufWriter::with_capacity(PIECE, pieces))?;
    let pieces = out.into_inner().map_err(io::IntoInnerError::into_error)?;
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
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.stream.is_wanted() {
            return Err(io::Error::other("it is not wanted any more"));
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        let known = self.from.saturating_sub(self.at).min(piece.len() as u64);
        let new = &piece[known as usize..];
        if !new.is_empty() {
            (self.stream).send(&FromRemote::Files(self.at + known, new.to_vec()))?;
        }
        self.sum.update(piece);
        self.at += piece.len() as u64;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
