//! `timecell clean`.

use crate::cli::Clean;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Removes what killed coordinators of this user have left behind.
pub fn run(_: &Clean) -> Result<Ended, CommandError> {
    let said = bench::sweep_stale();
    if said.is_empty() {
        out::print("nothing was left behind");
    }
    for line in &said {
        out::print(line);
    }
    let failed = said.iter().any(|line| line.starts_with("could not"));
    Ok(if failed { Ended::Failed } else { Ended::Fine })
}
