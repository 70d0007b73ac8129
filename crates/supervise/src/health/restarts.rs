//! How often and how soon a cell is restarted.

use super::counting::Within;
use model::mission::Restart;

/// The restarts of a cell: how long the next one waits, and whether there may be one.
#[derive(Debug, Clone)]
pub(super) struct Restarts {
    within: Within,
}

impl Restarts {
    /// With the restarts that earlier supervisors have made, ascending.
    pub(super) fn new(restart: &Restart, past_ns: &[i64]) -> Restarts {
        let mut within = Within::new(Some(restart.window.ns()), restart.limit);
        for at_ns in past_ns {
            within.add(*at_ns);
        }
        Restarts { within }
    }

    /// Restarts within the window.
    pub(super) fn count(&mut self, now_ns: i64) -> u32 {
        self.within.count(now_ns)
    }

    /// One more, at once or after the wait that is due: how long it waits in ns. `None`: there were too many.
    pub(super) fn next(&mut self, restart: &Restart, now_ns: i64, at_once: bool) -> Option<i64> {
        let wait = restart.wait(self.count(now_ns))?;
        self.within.add(now_ns);
        Some(if at_once { 0 } else { wait.ns() })
    }

    pub(super) fn forget(&mut self) {
        self.within.clear();
    }
}
