//! Keeping the cells' cpus free of other work, where a trial asks for it.

use host::isolate::Isolation;
use host::sched;
use record::trial::TrialRecord;

use super::{Ended, Members, Trial};

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

/// The coordinator in front of the loads that share its few cpus: behind hundreds of them it would take minutes to
/// start and end a trial. What it starts is in class OTHER as ever.
pub(super) struct Ahead {
    before: sched::Class,
}

impl Ahead {
    fn of_loads() -> Option<Ahead> {
        let before = sched::get_class(0).ok()?;
        sched::set_class_reset_on_fork(0, &sched::Class::Fifo { priority: 1 })
            .ok()
            .map(|()| Ahead { before })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let _ = sched::set_class(0, &self.before);
    }
}
