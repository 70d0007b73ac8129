//! Keeping the cells' cpus free of other work, where a trial asks for it.

use host::isolate::Isolation;
use record::trial::TrialRecord;

use super::ahead::Ahead;
use super::members::{Ended, Members};
use crate::context::Trial;

/// Takes other work off the cells' cpus, if the trial asks for it.
pub(super) fn isolate(
    trial: &Trial<'_>,
    record: &mut TrialRecord,
    live: &mut Members,
) -> Result<(), Ended> {
    if trial.planned.isolate {
        let journal = trial.place.isolation_journal(trial.number);
        let isolation = Isolation::hold(&trial.planned.cpus(), &journal)
            .map_err(|error| Ended::Failed(format!("the cpus cannot be kept free: {error}")))?;
        record.isolation = Some(isolation.found().clone());
        live.isolation = Some(isolation);
        live.ahead = Ahead::of_loads();
    }
    Ok(())
}
