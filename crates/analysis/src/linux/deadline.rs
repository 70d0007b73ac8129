//! Admission of SCHED_DEADLINE, as the kernel does it.

use serde::{Deserialize, Serialize};

use super::ratio::{Bandwidth, to_ratio};
use super::refusal::Refusal;
use super::standing::Standing;
use crate::multi::{BinTest, bcl_edf_with_slack, gfb, overloaded};
use crate::{Ns, Task, Undecided, Verdict, edf};

/// The capacity of the fastest cpu (`SCHED_CAPACITY_SCALE`).
const FULL: u32 = 1024;

/// The least runtime: `1 << DL_SCALE`, ns.
const LEAST_RUNTIME: Ns = 1024;

/// The parameters of a SCHED_DEADLINE thread, as `sched_setattr` takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadlineParams {
    /// `sched_runtime`, ns.
    pub runtime: Ns,
    /// `sched_deadline`, ns.
    pub deadline: Ns,
    /// `sched_period`, ns; 0 stands for the deadline.
    pub period: Ns,
}

impl DeadlineParams {
    /// A budget in every period, due at its end.
    ///
    /// ```
    /// use timecell_analysis::linux::DeadlineParams;
    ///
    /// let thread = DeadlineParams::new(10_000_000, 100_000_000);
    /// assert_eq!((thread.deadline, thread.ratio()), (100_000_000, 104_857));
    /// ```
    pub const fn new(runtime: Ns, period: Ns) -> DeadlineParams {
        DeadlineParams {
            runtime,
            deadline: period,
            period,
        }
    }

    /// The period that counts, ns: the deadline where `period` is 0.
    ///
    /// ```
    /// use timecell_analysis::linux::DeadlineParams;
    ///
    /// let thread = DeadlineParams { runtime: 1_000_000, deadline: 4_000_000, period: 0 };
    /// assert_eq!(thread.effective_period(), 4_000_000);
    /// ```
    pub const fn effective_period(&self) -> Ns {
        if self.period == 0 {
            self.deadline
        } else {
            self.period
        }
    }

    /// The ratio that the kernel charges: runtime by period, even where the deadline is shorter.
    ///
    /// ```
    /// use timecell_analysis::linux::DeadlineParams;
    ///
    /// let short = DeadlineParams { runtime: 1_000_000, deadline: 1_000_000, period: 10_000_000 };
    /// assert_eq!(short.ratio(), 104_857);
    /// ```
    pub fn ratio(&self) -> u64 {
        to_ratio(self.effective_period(), self.runtime)
    }

    /// The demand of such a thread: C is the runtime.
    ///
    /// ```
    /// use timecell_analysis::{Task, linux::DeadlineParams};
    ///
    /// let thread = DeadlineParams { runtime: 1_000_000, deadline: 4_000_000, period: 10_000_000 };
    /// assert_eq!(thread.task(), Task::new(1_000_000, 10_000_000).due(4_000_000));
    /// ```
    pub const fn task(&self) -> Task {
        Task::new(self.runtime, self.effective_period()).due(self.deadline)
    }

    /// The checks of `__checkparam_dl` (kernel/sched/deadline.c); `index` is for the message.
    ///
    /// # Errors
    /// The first check that fails, all of them EINVAL.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineLimits, DeadlineParams};
    ///
    /// let limits = DeadlineLimits::default();
    /// assert!(DeadlineParams::new(1_024, 1_000_000).check(0, &limits).is_ok());
    /// assert!(DeadlineParams::new(1_023, 1_000_000).check(0, &limits).is_err());
    /// ```
    pub fn check(&self, index: usize, limits: &DeadlineLimits) -> Result<(), Refusal> {
        let DeadlineParams {
            runtime, deadline, ..
        } = *self;
        if deadline == 0 {
            return Err(Refusal::NoDeadline { index });
        }
        if runtime < LEAST_RUNTIME {
            return Err(Refusal::RuntimeTooShort { index, runtime });
        }
        let period = self.effective_period();
        if runtime > deadline || deadline > period {
            return Err(Refusal::OutOfOrder {
                index,
                runtime,
                deadline,
                period,
            });
        }
        let DeadlineLimits {
            least_period: least,
            longest_period: most,
        } = *limits;
        // The top bit is the kernel's sign.
        if period < least || period > most || period >> 63 != 0 {
            return Err(Refusal::PeriodOutOfRange {
                index,
                period,
                least,
                most,
            });
        }
        Ok(())
    }
}

/// `sched_deadline_period_min_us` and `sched_deadline_period_max_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeadlineLimits {
    /// The least period, ns.
    pub least_period: Ns,
    /// The longest period, ns.
    pub longest_period: Ns,
}

impl Default for DeadlineLimits {
    /// 100 us to 2^22 us (about 4.2 s).
    fn default() -> DeadlineLimits {
        DeadlineLimits {
            least_period: 100_000,
            longest_period: (1 << 22) * 1_000,
        }
    }
}

/// A root domain: the cpus over which SCHED_DEADLINE threads may migrate, and their common bandwidth.
///
/// The whole machine is one, until exclusive cpusets divide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootDomain {
    /// The capacity of each active cpu, 1024 for the fastest.
    pub capacities: Vec<u32>,
    /// `sched_rt_runtime_us` by `sched_rt_period_us`, the share for real time on each cpu.
    pub share: Bandwidth,
    /// The fair server of each cpu (Linux 6.12 and later: 50 ms in every second), if there is one.
    pub fair_server: Option<Bandwidth>,
    /// Ratio of the threads that are admitted already, in 2^-20.
    pub taken: u64,
    /// The range of periods.
    pub limits: DeadlineLimits,
    /// Whether the threads may run on every cpu of the domain; narrower affinities are refused.
    pub spanned: bool,
}

impl RootDomain {
    /// An empty root domain of this number of equal cpus, with the kernel's defaults and without a fair server.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, RootDomain};
    ///
    /// let domain = RootDomain::of_cpus(2);
    /// let threads = [DeadlineParams::new(10_000_000, 100_000_000); 20];
    /// assert!(domain.admits(&threads[..19]).is_ok());
    /// assert!(domain.admits(&threads).is_err());
    /// ```
    pub fn of_cpus(cpus: usize) -> RootDomain {
        RootDomain {
            capacities: vec![FULL; cpus],
            share: Bandwidth::default(),
            fair_server: None,
            taken: 0,
            limits: DeadlineLimits::default(),
            spanned: true,
        }
    }

    /// The same with the fair server of Linux 6.12 on each cpu: 50 ms in every second.
    ///
    /// ```
    /// use timecell_analysis::linux::RootDomain;
    ///
    /// // floor(0.05 * 2^20) for each of two cpus.
    /// assert_eq!(RootDomain::of_cpus(2).with_fair_server().given(), 2 * 52_428);
    /// ```
    #[must_use]
    pub fn with_fair_server(self) -> RootDomain {
        RootDomain {
            fair_server: Some(Bandwidth::new(50_000_000, 1_000_000_000)),
            ..self
        }
    }

    /// The bandwidth that the domain may give in all, in 2^-20: the share scaled by the capacities; `None` is no limit.
    ///
    /// `cap_scale(dl_b->bw, cap)` in `__dl_overflow`.
    ///
    /// ```
    /// use timecell_analysis::linux::RootDomain;
    ///
    /// assert_eq!(RootDomain::of_cpus(2).available(), Some(2 * 996_147)); // floor(0.95 * 2^20)
    /// ```
    pub fn available(&self) -> Option<u64> {
        self.share.runtime?;
        let capacity: u128 = self.capacities.iter().map(|&each| u128::from(each)).sum();
        let available = (u128::from(self.share.ratio()) * capacity) / u128::from(FULL);
        Some(u64::try_from(available).unwrap_or(u64::MAX))
    }

    /// The bandwidth given already, in 2^-20: the threads admitted, and the fair servers.
    ///
    /// ```
    /// use timecell_analysis::linux::RootDomain;
    ///
    /// let domain = RootDomain { taken: 104_857, ..RootDomain::of_cpus(1) };
    /// assert_eq!(domain.given(), 104_857);
    /// ```
    pub fn given(&self) -> u64 {
        let server = self.fair_server.map_or(0, |server| server.ratio());
        self.taken
            .saturating_add(server.saturating_mul(self.capacities.len() as u64))
    }

    /// Whether `sched_setattr` admits all of these threads, one after the other.
    ///
    /// The kernel's own arithmetic (`__checkparam_dl`, `sched_dl_overflow`): a yes is Linux's answer, and no promise
    /// that deadlines hold. On more than one cpu it bounds tardiness only, and deadlines shorter than periods do not
    /// count in it at all.
    ///
    /// # Errors
    /// The first thread that is refused, and why.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, Errno, RootDomain};
    ///
    /// // 9 of 10 % each fit below 95 %; the tenth does not: EBUSY.
    /// let domain = RootDomain::of_cpus(1);
    /// let threads = [DeadlineParams::new(10_000_000, 100_000_000); 10];
    /// assert_eq!(domain.admits(&threads[..9]), Ok(()));
    /// assert_eq!(domain.admits(&threads).unwrap_err().errno(), Errno::Ebusy);
    /// ```
    pub fn admits(&self, threads: &[DeadlineParams]) -> Result<(), Refusal> {
        let available = self.available();
        let mut demanded = self.given();
        for (index, thread) in threads.iter().enumerate() {
            thread.check(index, &self.limits)?;
            if !self.spanned {
                return Err(Refusal::Affinity { index });
            }
            if available.is_some() && self.share.ratio() == 0 {
                return Err(Refusal::NoBandwidth { index });
            }
            demanded = demanded.saturating_add(thread.ratio());
            if let Some(available) = available.filter(|&available| available < demanded) {
                return Err(Refusal::DomainFull {
                    index,
                    demanded,
                    available,
                });
            }
        }
        Ok(())
    }

    /// Whether every budget is guaranteed to be supplied by its deadline.
    ///
    /// On one cpu exact, by the processor demand of EDF (Baruah, Mok & Rosier, RTSS 1990), with the fair server as a thread of its own; threads that
    /// are admitted already (`taken`) are not known well enough, so that only an empty domain can be schedulable. On
    /// several cpus sufficient only ([`gfb`], [`bcl_edf_with_slack`]), and not with fair servers, which do not migrate.
    ///
    /// # Undecided
    /// Sets that neither the sufficient tests nor the necessary ones decide; unequal capacities.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, RootDomain};
    ///
    /// let late = DeadlineParams { runtime: 600_000, deadline: 1_000_000, period: 2_000_000 };
    /// let domain = RootDomain::of_cpus(1);
    /// assert!(domain.admits(&[late; 2]).is_ok());
    /// assert!(!domain.feasible(&[late; 2]).is_schedulable());
    /// ```
    pub fn feasible(&self, threads: &[DeadlineParams]) -> Verdict {
        let undecided = |why: &str| Verdict::Undecided(Undecided::NotCovered(why.into()));
        let Some((&capacity, rest)) = self.capacities.split_first() else {
            return match threads {
                [] => Verdict::Schedulable,
                _ => undecided("the root domain has no cpu"),
            };
        };
        if capacity == 0 || capacity > FULL || rest.iter().any(|&other| other != capacity) {
            return undecided("the cpus of the root domain differ in capacity");
        }
        // The kernel stretches a runtime on a slow cpu in proportion to its capacity.
        let stretched = |time: Ns| {
            let stretched = (u128::from(time) * u128::from(FULL)).div_ceil(u128::from(capacity));
            Ns::try_from(stretched).unwrap_or(Ns::MAX)
        };
        let mut tasks: Vec<Task> = threads
            .iter()
            .map(|thread| {
                let task = thread.task();
                Task {
                    wcet: stretched(task.wcet),
                    ..task
                }
            })
            .collect();
        let cpus = self.capacities.len() as u32;
        if cpus == 1 {
            let server = self.fair_server.and_then(|server| {
                let runtime = server.runtime.filter(|&runtime| runtime > 0)?;
                Some(Task::new(stretched(runtime), server.period))
            });
            tasks.extend(server);
            return match edf::verdict(&tasks) {
                Verdict::Schedulable if self.taken > 0 => {
                    undecided("the threads admitted before are not known one by one")
                }
                verdict => verdict,
            };
        }
        if let Some(witness) = overloaded(&tasks, cpus) {
            return Verdict::Unschedulable(witness);
        }
        if self.taken > 0 {
            return undecided("the threads admitted before are not known one by one");
        }
        if self.fair_server.is_some() {
            return undecided(
                "fair servers do not migrate, and no global test here covers them; divide the root domain with exclusive cpusets",
            );
        }
        if gfb(&tasks, cpus).is_schedulable() || bcl_edf_with_slack(&tasks, cpus).is_schedulable() {
            return Verdict::Schedulable;
        }
        undecided("no global EDF test shows that the deadlines hold, nor that they do not")
    }

    /// Both at once: the kernel's answer, and the truth.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, RootDomain, Standing};
    ///
    /// let whole = DeadlineParams::new(98_000_000, 100_000_000);
    /// let standing = RootDomain::of_cpus(1).standing(&[whole]);
    /// assert!(matches!(standing, Standing::RefusedThoughFeasible(_)));
    /// assert!(standing.to_string().starts_with("feasible in theory, but refused by the kernel"));
    /// ```
    pub fn standing(&self, threads: &[DeadlineParams]) -> Standing {
        Standing::of(self.admits(threads), self.feasible(threads))
    }
}

/// A root domain is a bin: [`crate::multi::partition`] with it puts reservations where the kernel admits them **and**
/// their budgets are certain. The reservations are tasks with C the runtime.
impl BinTest for RootDomain {
    fn holds(&self, _bin: usize, tasks: &[Task]) -> bool {
        let threads: Vec<DeadlineParams> = tasks
            .iter()
            .map(|task| DeadlineParams {
                runtime: task.wcet,
                deadline: task.deadline,
                period: task.period,
            })
            .collect();
        self.standing(&threads) == Standing::Guaranteed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Errno;

    const MS: Ns = 1_000_000;

    #[test]
    fn the_fair_server_takes_its_share() {
        let domain = RootDomain::of_cpus(2).with_fair_server();
        assert_eq!(domain.given(), 2 * 52_428);
        let threads = [DeadlineParams::new(10 * MS, 100 * MS); 19];
        assert!(domain.admits(&threads[..18]).is_ok());
        let refusal = domain.admits(&threads).unwrap_err();
        assert_eq!(refusal.errno(), Errno::Ebusy);
        assert!(matches!(refusal, Refusal::DomainFull { index: 18, .. }));
    }

    #[test]
    fn slow_cpus_count_for_less_and_take_longer() {
        let slow = RootDomain {
            capacities: vec![512],
            ..RootDomain::of_cpus(1)
        };
        assert_eq!(slow.available(), Some(498_073));
        let half = DeadlineParams::new(50 * MS, 100 * MS);
        assert!(matches!(
            slow.standing(&[half]),
            Standing::RefusedThoughFeasible(_)
        ));
        let more = DeadlineParams::new(51 * MS, 100 * MS);
        assert!(matches!(
            slow.standing(&[more]),
            Standing::RefusedAndInfeasible(..)
        ));
        let mixed = RootDomain {
            capacities: vec![1024, 512],
            ..slow
        };
        assert_eq!(mixed.available(), Some(996_147 * 3 / 2));
        assert!(matches!(
            mixed.standing(&[half]),
            Standing::AdmittedUndecided(_)
        ));
    }

    #[test]
    fn without_a_limit_the_kernel_admits_anything() {
        let open = RootDomain {
            share: Bandwidth {
                runtime: None,
                period: 1_000 * MS,
            },
            ..RootDomain::of_cpus(1)
        };
        let whole = DeadlineParams::new(90 * MS, 100 * MS);
        assert!(matches!(
            open.standing(&[whole; 2]),
            Standing::AdmittedThoughInfeasible(_)
        ));
        assert_eq!(open.standing(&[whole]), Standing::Guaranteed);
    }

    #[test]
    fn narrow_affinities_and_no_bandwidth_are_not_permitted() {
        let thread = [DeadlineParams::new(MS, 10 * MS)];
        let narrow = RootDomain {
            spanned: false,
            ..RootDomain::of_cpus(2)
        };
        assert_eq!(narrow.admits(&thread).unwrap_err().errno(), Errno::Eperm);
        let none = RootDomain {
            share: Bandwidth::new(0, 1_000 * MS),
            ..RootDomain::of_cpus(2)
        };
        assert_eq!(none.admits(&thread).unwrap_err().errno(), Errno::Eperm);
    }

    #[test]
    fn short_deadlines_fool_the_kernel_and_not_us() {
        let short = DeadlineParams {
            runtime: 6 * MS,
            deadline: 10 * MS,
            period: 100 * MS,
        };
        let domain = RootDomain::of_cpus(1);
        let standing = domain.standing(&[short; 2]);
        assert!(
            matches!(standing, Standing::AdmittedThoughInfeasible(_)),
            "{standing}"
        );
        let two = RootDomain::of_cpus(2).standing(&[short; 2]);
        assert_eq!(two, Standing::Guaranteed);
    }

    #[test]
    fn global_edf_may_miss_what_the_kernel_admits() {
        // Dhall's effect: two light threads and one that needs a cpu to itself.
        let light = DeadlineParams::new(20 * MS, 100 * MS);
        let heavy = DeadlineParams::new(100 * MS, 101 * MS);
        let standing = RootDomain::of_cpus(2).standing(&[light, light, heavy]);
        assert!(
            matches!(standing, Standing::AdmittedUndecided(_)),
            "{standing}"
        );
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let huge = DeadlineParams {
            runtime: u64::MAX,
            deadline: u64::MAX,
            period: 0,
        };
        for domain in [
            RootDomain::of_cpus(0),
            RootDomain::of_cpus(1),
            RootDomain {
                taken: u64::MAX,
                capacities: vec![1; 3],
                ..RootDomain::of_cpus(3).with_fair_server()
            },
        ] {
            assert!(domain.admits(&[huge; 2]).is_err());
            assert!(!domain.feasible(&[huge; 2]).is_schedulable());
        }
    }
}
