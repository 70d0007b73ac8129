//! Raises this process above the loads.

use host::sched;

/// Raises the coordinator above the loads that share its few cpus: below hundreds of them it would take minutes to start and end a trial.
/// Its children stay in class OTHER.
pub(crate) struct Ahead {
    before: sched::Class,
}

impl Ahead {
    pub(crate) fn of_loads() -> Option<Ahead> {
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
