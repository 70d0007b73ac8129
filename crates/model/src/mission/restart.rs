//! The reaction to the end of a cell's program on its own.

use super::keys::{COUNT, SOME_TIME};
use crate::Duration;
use crate::file::table;

table! {
    /// The reaction to the end of the cell's program on its own. The first restart within the window is immediate, the second waits for `backoff_min`, and each further one twice as long as the one before, up to `backoff_max`.
    pub struct Restart(Copy): "restart", "[cell.restart]" {
        /// when it is restarted; `on-failure`: after a signal or a status other than 0
        policy: RestartPolicy, Default "\"on-failure\"";
        /// wait before the second restart
        backoff_min: Duration, Default "\"100ms\"";
        /// longest wait
        ///
        /// At least `backoff_min`.
        backoff_max: Duration, Default "\"10s\"";
        /// restarts allowed within the window; at the next one the cell stays stopped
        ///
        /// From 1.
        limit: u32 = COUNT, Default "5";
        /// how long a restart counts
        window: Duration = SOME_TIME, Default "\"1min\"";
    }
}

choice! {
    /// When a cell whose program has ended is restarted.
    pub enum RestartPolicy {
        /// It stays stopped.
        Never = "never",
        /// If it was killed by a signal or has ended with a status other than 0.
        OnFailure = "on-failure",
        /// However it ended.
        Always = "always",
    }
}

impl Restart {
    /// The wait before a restart after `before` earlier ones within the window: none before the first, `backoff_min` before the
    /// second, twice as long before each further one, at most `backoff_max`. `None`: the limit is reached.
    pub fn wait(&self, before: u32) -> Option<Duration> {
        if before >= self.limit {
            return None;
        }
        let Some(doublings) = before.checked_sub(1) else {
            return Some(Duration::from_ns(0));
        };
        let factor = 1i64.checked_shl(doublings).filter(|factor| *factor > 0);
        let wait = factor.and_then(|factor| self.backoff_min.ns().checked_mul(factor));
        let longest = self.backoff_max.ns();
        Some(Duration::from_ns(
            wait.map_or(longest, |ns| ns.min(longest)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_end() {
        let restart = Restart {
            policy: RestartPolicy::Always,
            backoff_min: Duration::from_ns(100),
            backoff_max: Duration::from_ns(350),
            limit: 200,
            window: Duration::from_ns(1),
        };
        let waits: Vec<_> = (0..5).map(|n| restart.wait(n).map(Duration::ns)).collect();
        assert_eq!(waits, [Some(0), Some(100), Some(200), Some(350), Some(350)]);
        assert_eq!(restart.wait(64).map(Duration::ns), Some(350));
        assert_eq!(restart.wait(199).map(Duration::ns), Some(350));
        assert_eq!(restart.wait(200), None);
        let eager = Restart {
            backoff_min: Duration::from_ns(0),
            ..restart
        };
        assert_eq!(eager.wait(9).map(Duration::ns), Some(0));
    }
}
