//! `timecell clean`.

use bench::Unsaved;

use crate::cli::Clean;
use crate::commands::bench::give_to_sudo_user;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Writes what killed coordinators of this user had measured to their runs, and removes what they have left behind.
pub fn run(options: &Clean) -> Result<Ended, CommandError> {
    let unsaved = if options.discard {
        Unsaved::Discard
    } else {
        Unsaved::Keep
    };
    let swept = bench::sweep_stale(unsaved);
    if swept.is_empty() {
        out::print("nothing was left behind");
    }
    for line in swept.iter().flat_map(|swept| &swept.sentences) {
        out::print(line);
    }
    for run in swept.iter().filter_map(|swept| swept.run.as_deref()) {
        give_to_sudo_user(run, None);
    }
    let whole = swept.iter().all(|swept| swept.whole);
    Ok(if whole { Ended::Fine } else { Ended::Failed })
}
