//! Whether an ample budget was used up after all: a sign that something other than its tasks ran in the cell, its start
//! included, that a job exceeded its wcet, or that the enforcer checked later than the budget allows for.

const SECOND_NS: i64 = 1_000_000_000;
/// How often it is looked whether budgets were used up, ns.
pub(super) const LOOK_NS: i64 = SECOND_NS;
/// The least time between reports for one cell, ns.
const AGAIN_NS: i64 = 60 * SECOND_NS;

/// The observations of a cell with an ample budget in its present life.
#[derive(Debug, Default)]
pub(super) struct AmpleUse {
    /// When to look again, CLOCK_MONOTONIC ns.
    pub(super) next_ns: i64,
    /// Until when it is starting: that is no job, and may take more than the tasks do.
    start: Start,
    /// Periods whose budget was used up before.
    before: u64,
    /// The process that counted them, and the budget and period, ns.
    of: Option<(i32, u64, i64)>,
    /// When that was told the last time, and of how many periods then.
    told: Option<(i64, u64)>,
    /// The count at the last look after the start, and when it had grown, CLOCK_MONOTONIC ns.
    grown: (u64, Option<i64>),
}

/// How far a start is. Its use beyond its budgets is charged to those after it, so that it is over once none was used up for a while.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The cell is not ready.
    #[default]
    Begun,
    /// It is; over at the first of these times unless a budget is used up again, and at the second one in any case, CLOCK_MONOTONIC ns.
    Until(i64, i64),
    Over,
}

/// The data of a look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) now_ns: i64,
    pub(super) budget_ns: u64,
    pub(super) period_ns: i64,
    /// How long a start may take, ns.
    pub(super) start_ns: i64,
    pub(super) is_ready: bool,
    /// Periods in which the budget was used up since the cell is held.
    pub(super) exhausted: u64,
    /// The process that has counted them.
    pub(super) by: i32,
    /// Whether an earlier supervisor has reported some in this life.
    pub(super) was_told: bool,
}

impl AmpleUse {
    /// A look at a cell; returns how many used-up budgets to report.
    pub(super) fn see(&mut self, look: Look) -> Option<u64> {
        let Look {
            now_ns, exhausted, ..
        } = look;
        if !look.is_ready {
            self.start = Start::Begun;
            return None;
        }
        let two_ns = look.period_ns.saturating_mul(2);
        let after = |ns: i64| now_ns.saturating_add(ns);
        let of = Some((look.by, look.budget_ns, look.period_ns));
        // Of the period in which another budget or holder came nothing is promised, either, and the first of them comes with the start.
        if self.of != of {
            self.start = match self.start {
                Start::Over => Start::Until(after(two_ns), after(two_ns)),
                start => start,
            };
            self.of = of;
        }
        if self.start == Start::Begun {
            self.start = Start::Until(after(two_ns), after(two_ns.max(look.start_ns)));
        }
        if let Start::Until(quiet_ns, latest_ns) = self.start {
            let more = exhausted > self.before;
            self.start = match (more, now_ns < latest_ns) {
                (true, true) => Start::Until(after(two_ns).max(quiet_ns), latest_ns),
                _ if now_ns < quiet_ns && now_ns < latest_ns => self.start,
                _ => Start::Over,
            };
            self.begin_at(exhausted);
            return None;
        }
        if exhausted < self.before {
            self.begin_at(exhausted);
            return None;
        }
        if look.was_told && self.told.is_none() {
            self.told = Some((now_ns, 0));
        }
        let periods = exhausted - self.before;
        if periods > self.grown.0 {
            self.grown.1 = Some(now_ns);
        }
        self.grown.0 = periods;
        if let Some((_, known)) = &mut self.told {
            // The current holder may count from the beginning.
            *known = (*known).min(periods);
        }
        let is_due = self.told.is_none_or(|(told_ns, known)| {
            periods > known && now_ns.saturating_sub(told_ns) >= AGAIN_NS
        });
        (periods > 0 && is_due).then(|| {
            self.told = Some((now_ns, periods));
            periods
        })
    }

    /// Whether a look after the start has found it used up again in the last two seconds.
    pub(super) fn was_used_up(&self, now_ns: i64) -> bool {
        (self.grown.1).is_some_and(|grown_ns| now_ns.saturating_sub(grown_ns) < 2 * SECOND_NS)
    }

    /// Counts from here on.
    fn begin_at(&mut self, exhausted: u64) {
        self.before = exhausted;
        if let Some((_, known)) = &mut self.told {
            *known = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: i64 = SECOND_NS / 10;

    fn look(now_ns: i64, exhausted: u64) -> Look {
        Look {
            now_ns,
            budget_ns: 1_000_000,
            period_ns: PERIOD_NS,
            start_ns: 10 * SECOND_NS,
            is_ready: true,
            exhausted,
            by: 1,
            was_told: false,
        }
    }

    /// Of a cell whose start is over before this time.
    fn started(was_told: bool) -> AmpleUse {
        let mut ample = AmpleUse::default();
        for now_ns in [-2 * SECOND_NS, -SECOND_NS] {
            let look = Look {
                was_told,
                ..look(now_ns, 0)
            };
            assert_eq!(ample.see(look), None);
        }
        ample
    }

    #[test]
    fn a_start_may_use_a_budget_up_and_what_comes_after_may_not() {
        let mut ample = AmpleUse::default();
        let mut see = |now_ns, is_ready, exhausted| {
            let look = look(now_ns, exhausted);
            ample.see(Look { is_ready, ..look })
        };
        assert_eq!(see(0, false, 3), None);
        assert_eq!(see(SECOND_NS, true, 4), None);
        assert_eq!(see(SECOND_NS + 2 * PERIOD_NS - 1, true, 5), None);
        // It may have been before as well as after.
        assert_eq!(see(2 * SECOND_NS, true, 6), None);
        assert_eq!(see(3 * SECOND_NS, true, 6), None);
        assert_eq!(see(4 * SECOND_NS, true, 8), Some(2));
    }

    #[test]
    fn a_start_is_forgiven_what_it_owes_and_no_longer_than_it_may_take() {
        let seen = |until_s: i64| {
            let mut ample = AmpleUse::default();
            let each = |s: i64| {
                let exhausted = u64::try_from(10 * s.min(until_s)).unwrap();
                ample.see(look(s * SECOND_NS, exhausted)).map(|_| s)
            };
            (0..20).find_map(each)
        };
        assert_eq!(seen(0), None);
        assert_eq!(seen(5), None);
        // A use without end is no start.
        assert_eq!(seen(20), Some(11));
    }

    #[test]
    fn what_another_holder_finds_and_the_period_of_another_budget_are_not_told() {
        let others = [(2, 1_000_000), (1, 2_000_000)];
        for (by, budget_ns) in others {
            let mut ample = started(false);
            let mut see = |now_s: i64, exhausted| {
                let look = look(now_s * SECOND_NS, exhausted);
                ample.see(Look {
                    by,
                    budget_ns,
                    ..look
                })
            };
            assert_eq!(see(0, 2), None);
            assert_eq!(see(1, 2), None);
            assert_eq!(see(2, 3), Some(1));
        }
    }

    #[test]
    fn it_is_told_once_a_minute_at_most_and_only_of_more() {
        let mut ample = started(false);
        let mut see = |now_ns, exhausted| ample.see(look(now_ns, exhausted));
        assert_eq!(see(0, 0), None);
        assert_eq!(see(SECOND_NS, 1), Some(1));
        assert_eq!(see(2 * SECOND_NS, 9), None);
        assert_eq!(see(AGAIN_NS + SECOND_NS - 1, 20), None);
        assert_eq!(see(AGAIN_NS + SECOND_NS, 20), Some(20));
        assert_eq!(see(9 * AGAIN_NS, 20), None, "nothing new");
        // A new holder may count from the beginning.
        let mut ample = started(false);
        let mut see = |now_ns, exhausted| ample.see(look(now_ns, exhausted));
        assert_eq!(see(0, 20), Some(20));
        assert_eq!(see(AGAIN_NS, 0), None);
        assert_eq!(see(AGAIN_NS + 1, 1), Some(1));
    }

    #[test]
    fn who_takes_over_tells_no_sooner_than_a_minute_after() {
        let mut ample = started(true);
        let mut see = |now_ns, exhausted| {
            let look = look(now_ns, exhausted);
            ample.see(Look {
                was_told: true,
                ..look
            })
        };
        assert_eq!(see(0, 0), None);
        assert_eq!(see(SECOND_NS, 1), None);
        assert_eq!(see(AGAIN_NS, 1), Some(1));
    }
}
