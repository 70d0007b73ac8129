/// Whether a cell has used more cpu time than its tasks could have if every job kept to its wcet.
///
/// Cpu time of single jobs is not to be had from outside, so it is that of the whole process which is compared, between an
/// anchor and now, with what the jobs since then may have used: the wcet of each that has ended, and of the one of each
/// task that may be running. What is found is certain; what is not found may be an overrun all the same, shorter than a wcet of
/// each task together. The anchor moves on whenever the cell has used less than its jobs may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Overrun {
    wcets_ns: Vec<i64>,
    /// Cpu time at the anchor, ns.
    anchor_ns: Option<i64>,
    /// What the jobs that have ended since may have used, ns.
    allowed_ns: i64,
}

impl Overrun {
    /// Of tasks with these wcets, ns.
    pub(super) fn new(wcets_ns: Vec<i64>) -> Overrun {
        Overrun {
            wcets_ns,
            anchor_ns: None,
            allowed_ns: 0,
        }
    }

    /// The process is another one.
    pub(super) fn forget(&mut self) {
        self.anchor_ns = None;
        self.allowed_ns = 0;
    }

    /// So many more jobs of a task have ended.
    pub(super) fn ended(&mut self, task: usize, jobs: u64) {
        let wcet_ns = self.wcets_ns.get(task).copied().unwrap_or(0);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.allowed_ns = self.allowed_ns.saturating_add(wcet_ns.saturating_mul(jobs));
    }

    /// Whether there was an overrun, when the process had used `used_ns` of cpu time before the jobs were looked at that
    /// [`Overrun::ended`] was last told of.
    pub(super) fn look(&mut self, used_ns: i64) -> bool {
        let Some(anchor_ns) = self.anchor_ns else {
            self.anchor_ns = Some(used_ns);
            self.allowed_ns = 0;
            return false;
        };
        let running_ns = self
            .wcets_ns
            .iter()
            .fold(0, |sum: i64, wcet_ns| sum.saturating_add(*wcet_ns));
        let since_ns = used_ns.saturating_sub(anchor_ns);
        let found = since_ns > self.allowed_ns.saturating_add(running_ns);
        if found || since_ns <= self.allowed_ns {
            // What jobs have left over is not lent to the next ones.
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
            let mut overrun = Overrun::new(vec![100]);
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

        /// Jobs that always take nearly twice their wcet are found within three jobs.
        #[test]
        fn lasting_overruns_are_found(percent in 160i64..400) {
            let mut overrun = Overrun::new(vec![100]);
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
        let mut overrun = Overrun::new(vec![100, 50]);
        assert!(!overrun.look(1_000));
        assert!(!overrun.look(1_150));
        assert!(overrun.look(1_151));
        overrun.forget();
        assert!(!overrun.look(5));
    }
}
