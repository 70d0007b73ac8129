//! The words of the two ends about one order. Every piece says where it belongs and every question may be asked again, so that a line
//! may lose or double them.

use serde::{Deserialize, Serialize};

use crate::channel::frame::MOST;
use crate::channel::message::{Message, Ready};

/// Longest piece of a stream.
pub const PIECE: usize = MOST - 8;

/// An archive: its length and the SHA-256 of its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Bytes.
    pub length: u64,
    /// The digest in hexadecimal digits.
    pub digest: String,
}

/// How an order ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The exit code, 128 and the signal if one killed it; `None` if its machine or its keeper ended before it.
    pub status: Option<i32>,
    /// Bytes of its standard output.
    pub out: u64,
    /// Bytes of its standard error.
    pub err: u64,
}

/// From here to the other machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToRemote {
    /// All that follows is about the order of this name; answered by `Ready`.
    Hello(String),
    /// A piece of the order's archive, at this place; answered by `Have`.
    Give(u64, Vec<u8>),
    /// The archive is complete: carry it out; answered by `Started`.
    Start(Sum),
    /// Send its output from these places on, and then its end.
    Follow(u64, u64),
    /// Send this signal to its processes, once for the one here of this number; answered by `Told`.
    Signal(i32, u32),
    /// Send its results, as an archive, from this place on.
    Fetch(u64),
    /// Remove all that is kept of it; answered by `Removed`.
    Remove,
    /// End the server.
    Leave,
}

/// From the other machine to here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRemote {
    /// The server is there; other orders that nobody follows, each in words.
    Ready(Ready, Vec<String>),
    /// So many bytes of the order's archive are there.
    Have(u64),
    /// The order is carried out, or was.
    Started,
    /// Standard output from this place on.
    Out(u64, Vec<u8>),
    /// Standard error from this place on.
    Err(u64, Vec<u8>),
    /// The order has ended, and its output has been sent.
    Ended(Ended),
    /// Its processes have got the signal, or have ended.
    Told,
    /// A piece of its results; without bytes, it is still looked for.
    Files(u64, Vec<u8>),
    /// The archive of its results is complete; of no results, it has no bytes.
    FilesEnd(Sum),
    /// Nothing is kept of the order.
    Removed,
    /// The server lives.
    Alive,
    /// It could not do so: the system's answer.
    Fault(String),
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Of plain texts and numbers, which always have a form.
    serde_json::to_vec(value).unwrap_or_default()
}

fn from_json<T: for<'de> Deserialize<'de>>(content: &[u8]) -> Option<T> {
    serde_json::from_slice(content).ok()
}

fn piece(at: u64, bytes: &[u8]) -> Vec<u8> {
    [&at.to_le_bytes()[..], bytes].concat()
}

fn from_piece(content: &[u8]) -> Option<(u64, Vec<u8>)> {
    let (at, bytes) = content.split_first_chunk()?;
    Some((u64::from_le_bytes(*at), bytes.to_vec()))
}

impl Message for ToRemote {
    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            ToRemote::Hello(order) => (1, order.clone().into_bytes()),
            ToRemote::Give(at, bytes) => (2, piece(*at, bytes)),
            ToRemote::Start(sum) => (3, json(sum)),
            ToRemote::Follow(out, err) => (4, json(&(out, err))),
            ToRemote::Signal(signal, from) => (5, json(&(signal, from))),
            ToRemote::Fetch(at) => (6, json(at)),
            ToRemote::Remove => (7, Vec::new()),
            ToRemote::Leave => (8, Vec::new()),
        }
    }

    fn decode(kind: u8, content: &[u8]) -> Option<ToRemote> {
        Some(match kind {
            1 => ToRemote::Hello(String::from_utf8(content.to_vec()).ok()?),
            2 => from_piece(content).map(|(at, bytes)| ToRemote::Give(at, bytes))?,
            3 => ToRemote::Start(from_json(content)?),
            4 => from_json(content).map(|(out, err)| ToRemote::Follow(out, err))?,
            5 => from_json(content).map(|(signal, from)| ToRemote::Signal(signal, from))?,
            6 => ToRemote::Fetch(from_json(content)?),
            7 => ToRemote::Remove,
            8 => ToRemote::Leave,
            _ => return None,
        })
    }
}

impl Message for FromRemote {
    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            FromRemote::Ready(ready, left) => (65, json(&(ready, left))),
            FromRemote::Have(bytes) => (66, json(bytes)),
            FromRemote::Started => (67, Vec::new()),
            FromRemote::Out(at, bytes) => (68, piece(*at, bytes)),
            FromRemote::Err(at, bytes) => (69, piece(*at, bytes)),
            FromRemote::Ended(ended) => (70, json(ended)),
            FromRemote::Files(at, bytes) => (71, piece(*at, bytes)),
            FromRemote::FilesEnd(sum) => (72, json(sum)),
            FromRemote::Removed => (73, Vec::new()),
            FromRemote::Alive => (74, Vec::new()),
            FromRemote::Fault(why) => (75, why.clone().into_bytes()),
            FromRemote::Told => (76, Vec::new()),
        }
    }

    fn decode(kind: u8, content: &[u8]) -> Option<FromRemote> {
        Some(match kind {
            65 => from_json(content).map(|(ready, left)| FromRemote::Ready(ready, left))?,
            66 => FromRemote::Have(from_json(content)?),
            67 => FromRemote::Started,
            68 => from_piece(content).map(|(at, bytes)| FromRemote::Out(at, bytes))?,
            69 => from_piece(content).map(|(at, bytes)| FromRemote::Err(at, bytes))?,
            70 => FromRemote::Ended(from_json(content)?),
            71 => from_piece(content).map(|(at, bytes)| FromRemote::Files(at, bytes))?,
            72 => FromRemote::FilesEnd(from_json(content)?),
            73 => FromRemote::Removed,
            74 => FromRemote::Alive,
            75 => FromRemote::Fault(String::from_utf8_lossy(content).into_owned()),
            76 => FromRemote::Told,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<M: Message + PartialEq + std::fmt::Debug>(messages: impl IntoIterator<Item = M>) {
        for message in messages {
            let (kind, content) = message.encode();
            assert!(content.len() <= MOST);
            assert_eq!(M::decode(kind, &content), Some(message));
        }
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let sum = Sum {
            length: 3 << 32,
            digest: "ab".into(),
        };
        comes_back([
            ToRemote::Hello("00".into()),
            ToRemote::Give(5, vec![7; PIECE]),
            ToRemote::Start(sum.clone()),
            ToRemote::Follow(u64::MAX, 0),
            ToRemote::Signal(2, 7),
            ToRemote::Fetch(9),
            ToRemote::Remove,
            ToRemote::Leave,
        ]);
        comes_back([
            FromRemote::Have(3),
            FromRemote::Started,
            FromRemote::Out(1 << 40, vec![7; PIECE]),
            FromRemote::Err(0, vec![]),
            FromRemote::Ended(Ended {
                status: None,
                out: 1,
                err: 2,
            }),
            FromRemote::Told,
            FromRemote::Files(1, vec![2]),
            FromRemote::FilesEnd(sum),
            FromRemote::Removed,
            FromRemote::Alive,
            FromRemote::Fault("why".into()),
        ]);
        assert_eq!(FromRemote::decode(1, b""), None);
        assert_eq!(ToRemote::decode(2, b"short"), None);
    }
}
