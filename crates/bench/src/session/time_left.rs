//! How long a run still takes.

use std::time::{Duration, Instant};

/// How long a run still takes: as planned at first, stretched by its pace as it goes on.
pub(crate) struct TimeLeft {
    began: Instant,
    /// Of the whole run, ns.
    planned_ns: i64,
    /// Of past trials, ns.
    past_ns: i64,
}

impl TimeLeft {
    /// Of a run that begins now and should take so long, ns.
    pub(crate) fn new(planned_ns: i64) -> TimeLeft {
        TimeLeft {
            began: Instant::now(),
            planned_ns,
            past_ns: 0,
        }
    }

    /// A part planned for so many ns is done, or left out.
    pub(crate) fn past(&mut self, planned_ns: i64) {
        self.past_ns = self.past_ns.saturating_add(planned_ns);
    }

    /// A part planned for so many ns is on record already: it takes no time, and tells nothing of how long the rest will take.
    pub(crate) fn without(&mut self, planned_ns: i64) {
        self.planned_ns = self.planned_ns.saturating_sub(planned_ns);
    }

    /// Another plan: so many ns from here on.
    pub(crate) fn replan(&mut self, planned_ns: i64) {
        self.planned_ns = self.past_ns.saturating_add(planned_ns);
    }

    /// Since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The rest, ns.
    pub(crate) fn ns(&self) -> i64 {
        stretched(
            self.planned_ns.saturating_sub(self.past_ns),
            self.past_ns,
            self.elapsed(),
        )
    }
}

/// The rest of a plan of which `past_ns` took `seen`, ns.
fn stretched(left_ns: i64, past_ns: i64, seen: Duration) -> i64 {
    if past_ns <= 0 {
        return left_ns;
    }
    (left_ns as f64 * seen.as_nanos() as f64 / past_ns as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_stretched_by_what_was_seen() {
        assert_eq!(stretched(700, 0, Duration::from_nanos(40)), 700);
        assert_eq!(stretched(700, 100, Duration::from_nanos(150)), 1_050);
        let mut left = TimeLeft::new(700);
        assert_eq!(left.ns(), 700);
        left.past(700);
        assert_eq!(left.ns(), 0);
        left.replan(100);
        assert!(left.ns() >= 0 && left.planned_ns == 800);
        left.without(50);
        assert_eq!((left.planned_ns, left.past_ns), (750, 700));
    }
}
