//! Detects that a cell uses more cpu time than its tasks can.

/// Whether a cell has used more cpu time than its tasks could have if every job kept to its wcet.
///
/// The cpu time of single jobs cannot be measured from outside, so the cpu time of all processes of the cell, between
/// an anchor and now, is compared with the time that the jobs since then may have used: the wcet of each that has
/// ended, and of the one of each task that may be running. A found overrun is certain; an unfound one may exist,
/// shorter than a wcet of each task together. The anchor moves on whenever the cell has used less than its jobs may.
///
/// The kernel adds to the cpu time that others see of a thread at its tick and when the thread stops: at the anchor a tick of each cpu
/// may be missing, which is allowed once more.
///
/// The number of ended jobs is the cell's word. It is believed up to one a period, however long ago the look before was, and
/// those of a second before that which were late: a cell that makes jobs up is found when it has used that up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Overrun {
    tasks: Vec<Believed>,
    /// Cpu time at the anchor, ns.
    anchor_ns: Option<i64>,
    /// The time that the jobs that have ended since may have used, ns.
    allowed_ns: i64,
    /// Until when jobs have been earned.
    earned_ns: Option<i64>,
    /// The time that may have been used at any instant and is not counted yet, ns.
    unseen_ns: i64,
}

/// How many ended jobs of a task are believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Believed {
    wcet_ns: i64,
    /// From 1 ns.
    period_ns: i64,
    /// Time for which no job was told yet, ns; each costs a period.
    credit_ns: i64,
}

/// Jobs that were late by this may all be told at once, ns.
const LATE_NS: i64 = 1_000_000_000;

impl Believed {
    fn most_ns(self) -> i64 {
        LATE_NS.max(self.period_ns.saturating_mul(4))
    }
}

impl Overrun {
    /// For tasks with these wcets and periods, ns, whose reported cpu time lacks up to `unseen_ns`.
    pub(in crate::run) fn new(
        tasks: impl IntoIterator<Item = (i64, i64)>,
        unseen_ns: i64,
    ) -> Overrun {
        let believed = |(wcet_ns, period_ns): (i64, i64)| Believed {
            wcet_ns,
            period_ns: period_ns.max(1),
            credit_ns: 0,
        };
        let mut overrun = Overrun {
            tasks: tasks.into_iter().map(believed).collect(),
            anchor_ns: None,
            allowed_ns: 0,
            earned_ns: None,
            unseen_ns,
        };
        overrun.forget();
        overrun
    }

    /// The process is another one.
    pub(in crate::run) fn forget(&mut self) {
        self.anchor_ns = None;
        self.allowed_ns = 0;
        self.earned_ns = None;
        for task in &mut self.tasks {
            task.credit_ns = task.most_ns();
        }
    }

    /// It is now so late, on any clock; to be told before the jobs that have ended until then.
    pub(in crate::run) fn earn(&mut self, now_ns: i64) {
        let since_ns = now_ns.saturating_sub(self.earned_ns.replace(now_ns).unwrap_or(now_ns));
        for task in &mut self.tasks {
            // Only the remainder is bounded: the cpu time of a look that is late is of all this time, too.
            let left_ns = task.credit_ns.min(task.most_ns());
            task.credit_ns = left_ns.saturating_add(since_ns.max(0));
        }
    }

    /// More jobs of a task have ended, according to the cell.
    pub(in crate::run) fn ended(&mut self, task: usize, jobs: u64) {
        let Some(task) = self.tasks.get_mut(task) else {
            return;
        };
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        let believed = jobs.min(task.credit_ns / task.period_ns);
        task.credit_ns -= believed * task.period_ns;
        self.allowed_ns = (self.allowed_ns).saturating_add(task.wcet_ns.saturating_mul(believed));
    }

    /// Whether there was an overrun, if the process had used `used_ns` of cpu time before the look at the jobs that
    /// [`Overrun::ended`] was last given.
    pub(in crate::run) fn look(&mut self, used_ns: i64) -> bool {
        let Some(anchor_ns) = self.anchor_ns else {
            self.anchor_ns = Some(used_ns);
            self.allowed_ns = 0;
            return false;
        };
        let running_ns =
            (self.tasks.iter()).fold(self.unseen_ns, |sum, task| sum.saturating_add(task.wcet_ns));
        let since_ns = used_ns.saturating_sub(anchor_ns);
        let found = since_ns > self.allowed_ns.saturating_add(running_ns);
        if found || since_ns <= self.allowed_ns {
            // Time that jobs have left over is not lent to the next ones.
            self.anchor_ns = Some(used_ns);
            self.allowed_ns = 0;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the looks fall, jobs within their wcet are no overrun.
        #[test]
        fn none_is_found_where_there_is_none(
            jobs in prop::collection::vec((1i64..=100, 1i64..=60), 1..200),
        ) {
            let mut overrun = Overrun::new([(100, 1_000)], 0);
            // Each job uses at most its wcet, and is looked at somewhere in between and once behind its end.
            let mut used = 0;
            for (cost, part) in jobs {
                prop_assert!(!overrun.look(used + cost * part / 60));
                used += cost;
                // The cpu time is read before the jobs.
                let before = used;
                overrun.ended(0, 1);
                prop_assert!(!overrun.look(before));
            }
        }

        /// Nor are they where use comes into the counts only at ticks and at the ends of jobs.
        #[test]
        fn none_is_found_in_counts_that_are_a_tick_old(
            jobs in prop::collection::vec((1i64..=100, 0i64..=100), 1..200),
            tick in 1i64..=400,
        ) {
            let mut overrun = Overrun::new([(100, 1_000)], tick);
            // Back to back, so that the thread never stops: only ticks count.
            let mut used = 0;
            let seen = |used: i64| used - used % tick;
            for (cost, at) in jobs {
                prop_assert!(!overrun.look(seen(used + at.min(cost))));
                used += cost;
                overrun.ended(0, 1);
                prop_assert!(!overrun.look(seen(used)));
            }
        }

        /// Jobs that always take nearly twice their wcet are found within three jobs.
        #[test]
        fn lasting_overruns_are_found(percent in 160i64..400) {
            let mut overrun = Overrun::new([(100, 1_000)], 0);
            overrun.look(0);
            let found = (1..=3).any(|job| {
                overrun.ended(0, 1);
                overrun.look(percent * job)
            });
            prop_assert!(found);
        }
    }

    #[test]
    fn a_job_that_never_ends_is_found() {
        let mut overrun = Overrun::new([(100, 1_000), (50, 1_000)], 0);
        assert!(!overrun.look(1_000));
        assert!(!overrun.look(1_150));
        assert!(overrun.look(1_151));
        overrun.forget();
        assert!(!overrun.look(5));
    }

    #[test]
    fn what_was_not_counted_at_the_anchor_is_allowed_for() {
        let mut overrun = Overrun::new([(100, 1_000)], 4_000);
        // 4,000 more had been used by then.
        assert!(!overrun.look(0));
        assert!(!overrun.look(4_100));
        assert!(overrun.look(4_101));
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn a_cell_that_makes_jobs_up_is_found() {
        // All at once, or as many as the cpu time of a whole cpu asks for.
        for told in [1_000, 10] {
            let mut overrun = Overrun::new([(MS, 10 * MS)], 0);
            overrun.earn(0);
            overrun.look(0);
            let found = (1..=100).find(|look| {
                overrun.earn(look * 10 * MS);
                overrun.ended(0, told);
                overrun.look(look * 10 * MS)
            });
            // 100 jobs of the second before, and one of each period since.
            assert!((1..=14).contains(&found.unwrap_or(0)), "{told}: {found:?}");
        }
    }

    proptest! {
        /// However late a look is, jobs within their wcet are no overrun, and one that lasts is found as before.
        #[test]
        fn a_late_look_finds_what_a_punctual_one_does(
            waits in prop::collection::vec(1i64..=1_000, 1..20),
            percent in prop::sample::select(vec![100, 300]),
        ) {
            let mut overrun = Overrun::new([(5 * MS, 50 * MS)], 0);
            overrun.earn(0);
            overrun.look(0);
            let (mut now, mut used, mut found) = (0, 0, false);
            for jobs in waits {
                now += jobs * 50 * MS;
                used += jobs * 5 * MS * percent / 100;
                overrun.earn(now);
                overrun.ended(0, jobs.unsigned_abs());
                found |= overrun.look(used);
            }
            prop_assert_eq!(found, percent > 100);
        }
    }

    #[test]
    fn jobs_that_were_held_up_are_made_good_at_once() {
        let mut overrun = Overrun::new([(MS, 10 * MS)], 0);
        overrun.earn(0);
        overrun.look(0);
        let mut used = 0;
        for look in 1..=50 {
            overrun.earn(look * 10 * MS);
            // For 200 ms nothing runs, then all the jobs of that time do.
            let jobs = match look {
                0..20 => 0,
                20 => 20,
                _ => 1,
            };
            used += jobs * MS;
            overrun.ended(0, jobs.unsigned_abs());
            assert!(!overrun.look(used), "{look}");
        }
    }
}
