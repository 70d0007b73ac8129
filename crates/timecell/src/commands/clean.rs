//! `timecell clean`.

use bench::Unsaved;
use supervise::enforce::sweep_partitions;
use supervise::ledger::Ledger;

use crate::cli::Clean;
use crate::commands::bench::give_to_sudo_user;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes what killed coordinators of this user had measured to their runs, and removes what they have left behind, and of missions of
/// which nothing runs any more the cpuset partitions.
pub fn run(options: &Clean) -> Result<Ended, CommandError> {
    let unsaved = if options.discard {
        Unsaved::Discard
    } else {
        Unsaved::Keep
    };
    let swept = bench::sweep_stale(unsaved);
    for line in swept.iter().flat_map(|swept| &swept.sentences) {
        out::print(line);
    }
    let partitions = sweep_partitions(&Ledger::default())?;
    if swept.is_empty() && partitions.is_empty() {
        out::print("nothing was left behind");
    }
    for left in &partitions {
        out::print(&left.text);
    }
    for run in swept.iter().filter_map(|swept| swept.run.as_deref()) {
        give_to_sudo_user(run, None);
    }
    let whole = swept.iter().all(|swept| swept.whole) && !partitions.iter().any(|left| left.failed);
    Ok(if whole { Ended::Fine } else { Ended::Failed })
}
