//! `timecell clean`.

use bench::Unsaved;
use supervise::enforce::{sweep_partitions, sweep_servers};
use supervise::ledger::Ledger;

use crate::cli::Clean;
use crate::commands::bench::give_to_sudo_user;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes what killed coordinators of this user had measured to their runs, and removes what they have left behind, and of missions of
/// which nothing runs any more the cpuset partitions, what cpu.rt.max reserves for them and what the ledger says of them.
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
    for run in swept.iter().filter_map(|swept| swept.run.as_deref()) {
        give_to_sudo_user(run, None);
    }
    // Each is told before what comes next can fail.
    let ledger = Ledger::default();
    let mut kept = Vec::new();
    for sweep in [sweep_partitions, sweep_servers] {
        let left = sweep(&ledger)?;
        left.iter().for_each(|left| out::print(&left.text));
        kept.extend(left);
    }
    let over = ledger.forget_over()?;
    if swept.is_empty() && kept.is_empty() && over.is_empty() {
        out::print("nothing was left behind");
    }
    for holder in &over {
        out::print(&format!(
            "{holder}: nothing of it runs any more, and nothing is granted to it any more"
        ));
    }
    let whole = swept.iter().all(|swept| swept.whole) && !kept.iter().any(|left| left.failed);
    Ok(if whole { Ended::Fine } else { Ended::Failed })
}
