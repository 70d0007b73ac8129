//! Skipped releases of a periodic task: no job reports them, yet each is a missed deadline.
//!
//! A loop that continues at the next period after a stall ends fewer jobs than periods have passed, each of them in time.
//! So the releases of its jobs are compared with a grid of the task's period. The grid follows a release that comes late
//! to within half a period, so that neither the jitter of a loop nor a clock that runs a little slower adds up to a
//! skipped release.

use crate::page::Job;

/// The grid of one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    period_ns: i64,
    /// How long after its arrival a release may come.
    jitter_ns: i64,
    /// Number of the last job, and where it stands on the grid.
    last: Option<(u64, i64)>,
    skipped: u64,
}

impl Grid {
    /// Of a task with this period, from 1 ns, and release jitter.
    pub(super) fn new(period_ns: i64, jitter_ns: i64) -> Grid {
        Grid {
            period_ns: period_ns.max(1),
            jitter_ns: jitter_ns.max(0),
            last: None,
            skipped: 0,
        }
    }

    /// The same of another life.
    pub(super) fn anew(self) -> Grid {
        Grid::new(self.period_ns, self.jitter_ns)
    }

    /// Forgets where it was, as after a time in which nobody expected a job.
    pub(super) fn interrupt(&mut self) {
        self.last = None;
    }

    /// Releases that were left out before this job, the one after the last that was told or a later one.
    pub(super) fn go_on(&mut self, job: &Job) -> u64 {
        let Some((number, at_ns)) = self.last else {
            self.last = Some((job.number, job.release_ns));
            return 0;
        };
        let jobs = i64::try_from(job.number.saturating_sub(number)).unwrap_or(i64::MAX);
        let since_ns = job.release_ns.saturating_sub(at_ns);
        let periods = since_ns.saturating_sub(self.jitter_ns).max(0) / self.period_ns;
        let skipped = periods.saturating_sub(jobs).max(0);
        let steps = jobs.saturating_add(skipped);
        let due_ns = at_ns.saturating_add(steps.saturating_mul(self.period_ns));
        let slack_ns = (self.period_ns / 2).max(self.jitter_ns);
        // An early release restarts the grid; a late one moves it.
        let next_ns = due_ns
            .min(job.release_ns)
            .max(job.release_ns.saturating_sub(slack_ns));
        self.last = Some((job.number, next_ns));
        let skipped = skipped.unsigned_abs();
        self.skipped = self.skipped.saturating_add(skipped);
        skipped
    }

    /// All of this life.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Releases left out before each job that is released at these instants, ms.
    fn of(period_ms: i64, releases: &[i64]) -> Vec<u64> {
        let mut grid = Grid::new(period_ms * MS, 0);
        let job = |(number, release_ms): (usize, &i64)| Job {
            number: number as u64,
            release_ns: release_ms * MS,
            begin_ns: release_ms * MS,
            end_ns: Some(release_ms * MS + 1),
        };
        let jobs = releases.iter().enumerate().map(job);
        jobs.map(|job| grid.go_on(&job)).collect()
    }

    #[test]
    fn a_loop_that_goes_on_at_the_next_period_has_left_some_out() {
        assert_eq!(of(10, &[0, 10, 20, 50, 60, 90]), [0, 0, 0, 2, 0, 2]);
    }

    #[test]
    fn a_late_loop_that_catches_up_has_left_none_out() {
        assert_eq!(of(10, &[0, 10, 29, 30, 40]), [0; 5]);
    }

    #[test]
    fn a_slow_clock_adds_up_to_nothing() {
        let releases: Vec<i64> = (0..1_000).map(|job| job * 102).collect();
        assert!(of(100, &releases).iter().all(|skipped| *skipped == 0));
    }

    #[test]
    fn jobs_that_nobody_saw_are_not_taken_for_left_out() {
        let mut grid = Grid::new(10 * MS, 0);
        let job = |number, at_ms: i64| Job {
            number,
            release_ns: at_ms * MS,
            begin_ns: at_ms * MS,
            end_ns: None,
        };
        assert_eq!(grid.go_on(&job(0, 0)), 0);
        assert_eq!(grid.go_on(&job(40, 430)), 3);
        grid.interrupt();
        assert_eq!((grid.go_on(&job(41, 9_000)), grid.skipped()), (0, 3));
    }

    #[test]
    fn whatever_a_cell_writes_is_taken() {
        let mut grid = Grid::new(1, i64::MAX);
        for (number, release_ns) in [(0, 0), (u64::MAX, i64::MAX), (3, i64::MIN), (4, i64::MAX)] {
            grid.go_on(&Job {
                number,
                release_ns,
                begin_ns: 0,
                end_ns: None,
            });
        }
    }
}
