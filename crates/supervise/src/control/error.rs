//! Why a mission cannot be controlled.

use std::io;
use std::path::PathBuf;

use super::Refusal;

/// Why a mission cannot be controlled.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing in the directory says that there ever was a mission.
    #[error("there is no mission in {}; start one with `timecell up`, or name its directory with --dir", dir.display())]
    NoMission {
        /// The directory.
        dir: PathBuf,
    },
    /// No mission of this name.
    #[error(
        "there is no mission `{name}`{}",
        among(known, "the missions here are")
    )]
    UnknownMission {
        /// The name asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No mission was named, and none runs.
    #[error(
        "no mission runs below {}; a mission started with --dir needs the same --dir here",
        base.display()
    )]
    NoneRuns {
        /// Where missions are.
        base: PathBuf,
    },
    /// No mission was named, and several run.
    #[error(
        "several missions run{}; name one with -m NAME, or write NAME/CELL for CELL",
        among(running, "here:")
    )]
    Several {
        /// Their names.
        running: Vec<String>,
    },
    /// The last mission of the directory was ended.
    #[error("no mission is up in {}; the last one has ended", dir.display())]
    NothingIsUp {
        /// The directory.
        dir: PathBuf,
    },
    /// Nobody listens.
    #[error("the mission in {} has no supervisor; `timecell up` adopts the cells that still run, `timecell down` ends them", dir.display())]
    NobodyListens {
        /// The directory.
        dir: PathBuf,
    },
    /// The system does not let this user in.
    #[error("{}: no permission; only root and the user who started the mission may control it", path.display())]
    NoPermission {
        /// The socket or the directory.
        path: PathBuf,
    },
    /// Somebody else can change the contents of the mission's directory.
    #[error(transparent)]
    Foreign(#[from] host::ground::Foreign),
    /// The listener is neither root nor the user of this process.
    #[error(
        "{}: user {user} listens there, who is neither root nor you; no request was sent",
        path.display()
    )]
    ForeignServer {
        /// The socket.
        path: PathBuf,
        /// The listener.
        user: u32,
    },
    /// The supervisor refused.
    #[error("{}", why.join("\n"))]
    Refused {
        /// Why, in one word.
        kind: Refusal,
        /// Why, as sentences.
        why: Vec<String>,
    },
    /// The supervisor ended in the midst of it.
    #[error("the supervisor ended before it answered; `timecell ps` shows what runs")]
    Ended,
    /// The supervisor says something that this version does not understand.
    #[error(
        "the supervisor's answer is not understood ({reason}); use the timecell that started it"
    )]
    NotUnderstood {
        /// The reader's error.
        reason: String,
    },
    /// The operating system refused something.
    #[error("{} cannot be {tried}: {source}", path.display())]
    System {
        /// The file, socket or directory.
        path: PathBuf,
        /// The operation, as a participle.
        tried: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

fn among(names: &[String], word: &str) -> String {
    const MOST: usize = 12;
    if names.is_empty() {
        return String::new();
    }
    let mut listed = names[..names.len().min(MOST)].join(", ");
    if names.len() > MOST {
        listed.push_str(", ...");
    }
    format!("; {word} {listed}")
}
