//! What host and guest say to each other.

use serde::{Deserialize, Serialize};

/// A program to run in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number: an order that arrives twice is carried out once.
    pub id: u32,
    /// The program, looked for in the guest's PATH, and its arguments.
    pub args: Vec<String>,
    /// Whether its standard input comes over the channel; else it is empty.
    pub input: bool,
    /// The host's time when it was sent, ns since 1970; the guest's clock is set to it.
    pub now_ns: u64,
}

/// What a guest says when it has booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Version of the timecell in it.
    pub timecell: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Number of its cpus.
    pub cpus: usize,
}

impl Ready {
    /// What this machine says.
    pub fn here() -> Ready {
        Ready {
            timecell: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// From the host to the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToGuest {
    /// Run a program.
    Run(Order),
    /// More of the standard input of the program that was started last; nothing: it ends here.
    In(Vec<u8>),
    /// Send what is in this directory, as a newc archive.
    Fetch(String),
    /// Switch off.
    Off,
}

/// From the guest to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromGuest {
    /// It has booted; repeated until something is asked of it.
    Ready(Ready),
    /// The program of this order runs.
    Started(u32),
    /// What the program wrote to its standard output.
    Out(Vec<u8>),
    /// What the program wrote to its standard error.
    Err(Vec<u8>),
    /// The program of this order has ended with this status; 128 and the signal if one killed it. Repeated as the sign of life until
    /// the next order.
    Ended(u32, i32),
    /// A piece of the archive; its frames are in order.
    Files(Vec<u8>),
    /// The archive is complete: the SHA-256 of its bytes.
    FilesEnd(String),
    /// It lives, and the program of its last order has not ended.
    Alive,
    /// It could not do what was asked.
    Fault(String),
}

/// The kind and content of a message, for [`super::frame`].
pub trait Message: Sized {
    /// Kind and content.
    fn encode(&self) -> (u8, Vec<u8>);
    /// The message of a frame; `None` if this version does not know it.
    fn decode(kind: u8, content: &[u8]) -> Option<Self>;
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Of plain texts and numbers, which always have a form.
    serde_json::to_vec(value).unwrap_or_default()
}

impl Message for ToGuest {
    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            ToGuest::Run(order) => (1, json(order)),
            ToGuest::Fetch(path) => (2, path.clone().into_bytes()),
            ToGuest::Off => (3, Vec::new()),
            ToGuest::In(bytes) => (4, bytes.clone()),
        }
    }

    fn decode(kind: u8, content: &[u8]) -> Option<ToGuest> {
        match kind {
            1 => serde_json::from_slice(content).ok().map(ToGuest::Run),
            2 => String::from_utf8(content.to_vec()).ok().map(ToGuest::Fetch),
            3 => Some(ToGuest::Off),
            4 => Some(ToGuest::In(content.to_vec())),
            _ => None,
        }
    }
}

impl Message for FromGuest {
    fn encode(&self) -> (u8, Vec<u8>) {
        match self {
            FromGuest::Ready(ready) => (65, json(ready)),
            FromGuest::Started(id) => (66, json(id)),
            FromGuest::Out(bytes) => (67, bytes.clone()),
            FromGuest::Err(bytes) => (68, bytes.clone()),
            FromGuest::Ended(id, status) => (69, json(&(id, status))),
            FromGuest::Files(bytes) => (70, bytes.clone()),
            FromGuest::FilesEnd(digest) => (71, digest.clone().into_bytes()),
            FromGuest::Alive => (72, Vec::new()),
            FromGuest::Fault(why) => (73, why.clone().into_bytes()),
        }
    }

    fn decode(kind: u8, content: &[u8]) -> Option<FromGuest> {
        let text = || String::from_utf8_lossy(content).into_owned();
        match kind {
            65 => serde_json::from_slice(content).ok().map(FromGuest::Ready),
            66 => serde_json::from_slice(content).ok().map(FromGuest::Started),
            67 => Some(FromGuest::Out(content.to_vec())),
            68 => Some(FromGuest::Err(content.to_vec())),
            69 => {
                let ended: Option<(u32, i32)> = serde_json::from_slice(content).ok();
                ended.map(|(id, status)| FromGuest::Ended(id, status))
            }
            70 => Some(FromGuest::Files(content.to_vec())),
            71 => Some(FromGuest::FilesEnd(text())),
            72 => Some(FromGuest::Alive),
            73 => Some(FromGuest::Fault(text())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<M: Message + PartialEq + std::fmt::Debug>(message: M) {
        let (kind, content) = message.encode();
        assert_eq!(M::decode(kind, &content), Some(message));
    }

    #[test]
    fn messages_come_back_as_they_were() {
        comes_back(ToGuest::Run(Order {
            id: 3,
            args: vec!["timecell".into(), "ä\n".into()],
            input: true,
            now_ns: u64::MAX,
        }));
        comes_back(ToGuest::Fetch("/board/runs".into()));
        comes_back(ToGuest::In(vec![0, 10]));
        comes_back(ToGuest::Off);
        comes_back(FromGuest::Ready(Ready {
            timecell: "0.1.0".into(),
            kernel: "6.1".into(),
            cpus: 4,
        }));
        comes_back(FromGuest::Started(9));
        comes_back(FromGuest::Out(vec![0, 255]));
        comes_back(FromGuest::Err(Vec::new()));
        comes_back(FromGuest::Ended(9, -1));
        comes_back(FromGuest::Files(vec![1]));
        comes_back(FromGuest::FilesEnd("ab".into()));
        comes_back(FromGuest::Alive);
        comes_back(FromGuest::Fault("why".into()));
    }

    #[test]
    fn what_is_unknown_is_nothing() {
        assert_eq!(FromGuest::decode(1, b""), None);
        assert_eq!(ToGuest::decode(1, b"{"), None);
        assert_eq!(ToGuest::decode(200, b""), None);
    }
}
