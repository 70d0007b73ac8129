//! Makes sure that nobody else measures on the machine, and that nothing is left of killed runs.

use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::BenchError;
use crate::place;
use crate::sweep::{Unsaved, sweep_stale};

/// Makes sure that nobody else measures, listens for signals, and removes remains of killed runs. Returns remarks on others who measure.
pub(crate) fn alone(progress: &mut dyn Progress) -> Result<(Interrupt, Vec<String>), BenchError> {
    if let Some(pid) = place::another() {
        return Err(BenchError::Unmet(format!(
            "another timecell (process {pid}) is measuring on this machine; wait until it has ended, or the two would disturb each other"
        )));
    }
    let others = place::of_other_users().into_iter();
    let remarks: Vec<String> = others
        .map(|pid| {
            format!("another user's timecell (process {pid}) is measuring on this machine: each disturbs what the other measures")
        })
        .collect();
    remarks.iter().for_each(|remark| progress.note(remark));
    let interrupt = Interrupt::listen()
        .map_err(|error| BenchError::Failed(format!("cannot listen for signals: {error}")))?;
    for swept in sweep_stale(Unsaved::Keep) {
        swept.sentences.iter().for_each(|line| progress.note(line));
    }
    Ok((interrupt, remarks))
}
