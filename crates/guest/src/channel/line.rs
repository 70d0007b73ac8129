//! The two halves of a channel: one that sends, for several threads, and one that receives.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::frame::{self, Decoder};
use super::message::Message;

/// Sends messages over a line, one after the other.
#[derive(Debug)]
pub struct Sender<M> {
    line: Mutex<(File, u32)>,
    sends: PhantomData<fn(M)>,
}

impl<M: Message> Sender<M> {
    /// Sends over this line, whose frames it numbers from 0.
    pub fn new(line: File) -> Sender<M> {
        Sender {
            line: Mutex::new((line, 0)),
            sends: PhantomData,
        }
    }

    /// Sends a message; waits while the line takes no more.
    ///
    /// # Errors
    /// Those of the line.
    pub fn send(&self, message: &M) -> io::Result<()> {
        let (kind, content) = message.encode();
        if content.len() > frame::MOST {
            let what = format!("{} bytes are too many for the channel", content.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        // Whoever panicked while writing has written a damaged frame at most.
        let mut line = self.line.lock().unwrap_or_else(|held| held.into_inner());
        let mut bytes = Vec::with_capacity(content.len() + 32);
        frame::encode(kind, line.1, &content, &mut bytes);
        line.1 = line.1.wrapping_add(1);
        line.0.write_all(&bytes)
    }
}

/// The messages that arrive on a line, until it closes, with the number of frames lost before each.
pub fn received<M: Message + Send + 'static>(
    mut line: impl Read + Send + 'static,
) -> Receiver<(M, u32)> {
    // So that one who sends faster than its messages are used waits.
    let (found, messages) = mpsc::sync_channel(64);
    thread::spawn(move || {
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read) = line.read(&mut buffer)
            && read > 0
        {
            decoder.push(&buffer[..read]);
            while let Some(frame) = decoder.frame() {
                let message = M::decode(frame.kind, &frame.content);
                if let Some(message) = message
                    && found.send((message, frame.lost)).is_err()
                {
                    return;
                }
            }
        }
    });
    messages
}
