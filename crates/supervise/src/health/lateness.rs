//! Constraints on how many jobs may be late.

use std::collections::VecDeque;

/// An (m, n) constraint on the jobs of one task: fewer than m of any n jobs in a row are late. When it is broken the late jobs
/// that broke it are used up.
#[derive(Debug, Clone)]
pub(super) struct Lateness {
    misses: u64,
    jobs: u64,
    /// Number of the next job.
    next: u64,
    /// Numbers of the late jobs among the last n that are not used up: fewer than m of them.
    late: VecDeque<u64>,
}

impl Lateness {
    pub(super) fn new(misses: u32, jobs: u32) -> Lateness {
        Lateness {
            misses: u64::from(misses.max(1)),
            jobs: u64::from(jobs),
            next: 0,
            late: VecDeque::new(),
        }
    }

    /// Advances by `jobs` jobs, the last `late` of which were late. Returns whether that broke the constraint; however
    /// many jobs come at once, they break it once.
    pub(super) fn go_on(&mut self, jobs: u64, late: u64) -> bool {
        let late = late.min(jobs);
        self.next = self.next.saturating_add(jobs - late);
        // More than m in a row say nothing more than m.
        let told = late.min(self.misses);
        self.next = self.next.saturating_add(late - told);
        let mut broken = false;
        for _ in 0..told {
            if broken {
                self.next = self.next.saturating_add(1);
                continue;
            }
            broken = self.late_one();
        }
        broken
    }

    /// Advances by `jobs` jobs, `late` of which were late, spread evenly among them.
    pub(super) fn go_on_spread(&mut self, jobs: u64, late: u64) -> bool {
        let late = late.min(jobs);
        self.next = self.next.saturating_add(jobs);
        if jobs > 0 {
            self.late.clear();
        }
        let apart = jobs.checked_div(late).unwrap_or(u64::MAX);
        late >= self.misses && (self.misses - 1).saturating_mul(apart) < self.jobs
    }

    fn late_one(&mut self) -> bool {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        while let Some(first) = self.late.front()
            && number - first >= self.jobs
        {
            self.late.pop_front();
        }
        self.late.push_back(number);
        let broken = self.late.len() as u64 >= self.misses;
        if broken {
            self.late.clear();
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_spread_breaks_it_by_its_rate() {
        let mut of = Lateness::new(2, 3);
        assert!(!of.go_on_spread(800, 8) && !of.go_on_spread(800, 1) && !of.go_on_spread(0, 0));
        assert!(of.go_on_spread(800, 400) && of.go_on_spread(u64::MAX, u64::MAX));
        // One late job of any is one of the unseen, too.
        assert!(Lateness::new(1, 1).go_on_spread(800, 1));
        // Those before it are not known to be near it.
        assert!(!of.go_on(1, 1));
        assert!(!of.go_on_spread(10, 0) && !of.go_on(1, 1));
    }

    /// The answer of [`Lateness`], by looking at every job: instants at which of the last n jobs since the last break m are late.
    fn brute_force(misses: usize, jobs: usize, late: &[bool]) -> Vec<usize> {
        let mut broken = Vec::new();
        let mut since = 0;
        for now in 0..late.len() {
            let from = since.max((now + 1).saturating_sub(jobs));
            let count = late[from..=now].iter().filter(|late| **late).count();
            if late[now] && count >= misses {
                broken.push(now);
                since = now + 1;
            }
        }
        broken
    }

    #[test]
    fn two_of_three_are_told_from_two_of_four() {
        let broken = |jobs| {
            let mut lateness = Lateness::new(2, jobs);
            [1, 0, 0, 1].map(|late| lateness.go_on(1, late))
        };
        assert_eq!(broken(3), [false; 4]);
        assert_eq!(broken(4), [false, false, false, true]);
    }

    #[test]
    fn any_number_of_jobs_at_once_is_counted_at_once() {
        let mut lateness = Lateness::new(3, 10);
        assert!(!lateness.go_on(u64::MAX - 5, 2));
        assert!(lateness.go_on(1, 1));
        assert!(!lateness.go_on(2, 2));
        assert!(lateness.go_on(u64::MAX, u64::MAX));
        assert!(!lateness.go_on(0, 9));
    }

    proptest! {
        #[test]
        fn m_in_n_is_exact(misses in 1u32..6, more in 0u32..8, late in prop::collection::vec(any::<bool>(), 0..200)) {
            let jobs = misses + more;
            let mut lateness = Lateness::new(misses, jobs);
            let told: Vec<usize> = (late.iter().enumerate())
                .filter(|(_, late)| lateness.go_on(1, u64::from(**late)))
                .map(|(now, _)| now)
                .collect();
            prop_assert_eq!(told, brute_force(misses as usize, jobs as usize, &late));
        }

        #[test]
        fn jobs_that_come_together_break_it_as_they_would_alone(
            misses in 1u32..6,
            more in 0u32..8,
            groups in prop::collection::vec((0u64..12, 0u64..12), 0..20),
        ) {
            let (mut together, mut alone) = (Lateness::new(misses, misses + more), Lateness::new(misses, misses + more));
            for (jobs, late) in groups {
                let late = late.min(jobs);
                let broken = (0..jobs).filter(|job| alone.go_on(1, u64::from(*job >= jobs - late))).count();
                let told = together.go_on(jobs, late);
                prop_assert_eq!(told, broken > 0);
                // Several breaks are told as one, and the rest of them is dropped.
                if broken > 0 {
                    (together, alone) = (Lateness::new(misses, misses + more), Lateness::new(misses, misses + more));
                }
            }
        }
    }
}
