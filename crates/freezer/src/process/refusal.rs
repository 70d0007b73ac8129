//! Why a keeper does not carry out a command.

use std::path::PathBuf;

use super::wire::CommandError;
use crate::keeper::KeeperError;
use crate::stats::MOST_GROUPS;

/// Why a keeper does not carry out a command, as it answers.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The line is not a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The enforcing thread refuses.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The group is held on another cpu than the one asked for.
    #[error("{} is held on cpu {cpu}", path.display())]
    Elsewhere { path: PathBuf, cpu: u32 },
    /// The group is on the page for another cpu, and no thread could take it up.
    #[error("{} is not held, and belongs to cpu {cpu}", path.display())]
    Unheld { path: PathBuf, cpu: u32 },
    /// The same group is held under another path.
    #[error("{} is held as {}", path.display(), held.display())]
    OtherName { path: PathBuf, held: PathBuf },
    /// The cpu is not online.
    #[error("cpu {0} is not online")]
    Offline(u32),
    /// The page has no room for another group.
    #[error("{MOST_GROUPS} groups are already held")]
    Full,
}
