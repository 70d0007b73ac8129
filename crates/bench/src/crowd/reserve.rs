//! The reservation of each cell of a crowd: an equal share of every second, by a real-time group or by SCHED_DEADLINE.

use std::time::Duration;

use host::root::Root;
use host::rtgroup::RtGroup;
use host::sched::SchedError;
use host::sched::bandwidth::{free_bandwidth_us, period_bounds_us};
use model::Enforcer;
use model::{Experiment, Requirement};
use record::crowd::Reservation;

use crate::session::{Progress, Session};
use crate::{BenchError, Plan, tasks};

const SECOND_US: u64 = 1_000_000;
/// A deadline runtime in whole us that is not below the kernel's least, 1024 ns.
const LEAST_DEADLINE_US: u64 = 2;
/// Kept free on each cpu, us of every second. Deadline threads run before all others, and the cost of switching between thousands of them
/// is charged to no runtime: with a tenth of that kept, 2,048 cells of short jobs let nothing else run for 7 s.
const KEPT_DEADLINE_US: u64 = 100_000;
/// Below this percentage of the cpus, others hold more than the kernel's own server for ordinary work.
const USUAL_PERCENT: u64 = 85;
/// How long ended threads may still be counted, where they held as much as ours do.
const GIVEN_BACK: Duration = Duration::from_millis(1_100);

/// Bandwidth of all cells of a trial together: the same for every trial of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pot {
    enforcer: Enforcer,
    /// In every second: of each cpu for groups, of all cpus together for deadline threads.
    all_us: u64,
    cpus: u64,
    /// Period of every part, us.
    period_us: u64,
}

impl Pot {
    /// The bandwidth for the cells of `plan`, and for a study that reserves by groups, in `group`; `None` where nothing is reserved.
    ///
    /// # Errors
    /// When the kernel does not say how much deadline bandwidth it would admit.
    pub(crate) fn find(
        plan: &Plan,
        group: Option<&RtGroup>,
        session: &mut Session,
        progress: &mut dyn Progress,
    ) -> Result<Option<Pot>, BenchError> {
        let reserve = plan
            .experiment
            .scale
            .as_ref()
            .and_then(|scale| scale.reserve);
        match reserve {
            Some(Enforcer::RtCgroup) => Ok(group.map(|group| Pot {
                enforcer: Enforcer::RtCgroup,
                all_us: group.budget().per_second_us(),
                cpus: 1,
                period_us: SECOND_US,
            })),
            Some(Enforcer::Deadline) => {
                let cpus = &plan.experiment.scheduling.cpus;
                let free_us = settled(cpus).map_err(|error| {
                    BenchError::Failed(format!(
                        "cannot find out how many SCHED_DEADLINE threads the kernel would admit: {error}"
                    ))
                })?;
                let pot = Pot::of_deadline(free_us, cpus.len(), period_bounds_us(&Root::live()));
                if free_us * 100 < USUAL_PERCENT * SECOND_US * pot.cpus {
                    let remark = format!(
                        "only {} ms of deadline bandwidth in every second of {} cpus were free for the cells; other \
                         deadline threads, or kernel.sched_rt_runtime_us, kept the rest",
                        free_us / 1_000,
                        pot.cpus
                    );
                    session.remark(remark, progress);
                }
                Ok(Some(pot))
            }
            // None, or one that shares out no machine.
            _ => Ok(None),
        }
    }

    /// The kernel runs deadline threads before all others: the rest is kept for the coordinator.
    fn of_deadline(free_us: u64, cpus: usize, bounds_us: (u64, u64)) -> Pot {
        let cpus = cpus.max(1) as u64;
        Pot {
            enforcer: Enforcer::Deadline,
            all_us: free_us.saturating_sub(KEPT_DEADLINE_US * cpus),
            cpus,
            period_us: SECOND_US.clamp(bounds_us.0, bounds_us.1.max(bounds_us.0)),
        }
    }

    /// The part of each of so many cells. One cell has at most one cpu's part: it is one thread.
    pub(crate) fn part(&self, cells: usize) -> Reservation {
        let cells = (cells as u64).max(self.cpus).max(1);
        let least = match self.enforcer.is_by_thread() {
            true => LEAST_DEADLINE_US,
            false => 1,
        };
        let in_period = u128::from(self.all_us) * u128::from(self.period_us)
            / u128::from(SECOND_US)
            / u128::from(cells);
        Reservation {
            runtime_us: u64::try_from(in_period).unwrap_or(u64::MAX).max(least),
            period_us: self.period_us,
            enforcer: self.enforcer,
        }
    }
}

/// Free bandwidth once ended threads no longer count.
fn settled(cpus: &[u32]) -> Result<u64, SchedError> {
    let free_us = free_bandwidth_us(cpus)?;
    if free_us * 100 >= USUAL_PERCENT * SECOND_US * cpus.len() as u64 {
        return Ok(free_us);
    }
    std::thread::sleep(GIVEN_BACK);
    Ok(free_us.max(free_bandwidth_us(cpus)?))
}

/// Each cell's reservation, a sentence.
pub(super) fn told(held: Reservation) -> String {
    let ms = held.runtime_us as f64 / 1e3;
    let of = held.period_us as f64 / 1e3;
    match held.enforcer.is_by_thread() {
        true => {
            format!("each cell holds {ms:.3} ms in every {of} ms, on any cpu (SCHED_DEADLINE)")
        }
        false => {
            format!("each cell holds {ms:.3} ms in every {of} ms of each cpu")
        }
    }
}

/// The unmet requirement for a reservation of each cell, if one is requested.
pub(crate) fn requirement(experiment: &Experiment, real_time: bool) -> Option<Requirement> {
    let reserve = experiment.scale.as_ref()?.reserve?;
    let (what, reason, fix) = match reserve {
        Enforcer::RtCgroup => {
            let what = "a real-time group for each cell";
            match host::rtgroup::detect() {
                _ if !real_time => (
                    what,
                    "a real-time group holds only a real-time class".to_owned(),
                    "set class = \"fifo\" and run with sudo, or leave out `reserve`",
                ),
                Ok(_) => return None,
                Err(error) => (
                    what,
                    error.to_string(),
                    "boot a kernel with RT_GROUP_SCHED and cgroup v1, or leave out `reserve`",
                ),
            }
        }
        Enforcer::Deadline if real_time => return None,
        Enforcer::Deadline => {
            let granted = tasks::deadline_requirement(&experiment.scheduling.cpus);
            if !granted.met {
                return Some(granted);
            }
            (
                "a deadline reservation for each cell",
                "class \"other\" is requested, but SCHED_DEADLINE is a real-time class".to_owned(),
                "leave out class \"other\" or `reserve`",
            )
        }
        // It shares out no machine.
        _ => return None,
    };
    Some(Requirement::unmet(what, reason, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::deadline_class;

    const BOUNDS: (u64, u64) = (100, 4_194_304);

    #[test]
    fn all_parts_together_stay_below_what_is_free_and_no_cell_has_more_than_a_cpu() {
        let pot = Pot::of_deadline(1_800_000, 2, BOUNDS);
        let part = |cells| pot.part(cells).runtime_us;
        // 100 ms of each cpu are kept for the coordinator.
        assert_eq!([part(1), part(2), part(64)], [800_000, 800_000, 25_000]);
        for cells in [1, 3, 64, 2_048, 4_096] {
            assert!(part(cells) * cells as u64 <= 1_600_000);
        }
        let class = deadline_class(pot.part(64)).unwrap();
        assert_eq!(class.to_string(), "DEADLINE 25 ms/1 s/1 s");
    }

    #[test]
    fn a_part_is_never_below_what_the_kernel_takes() {
        assert_eq!(Pot::of_deadline(5, 2, BOUNDS).part(7).runtime_us, 2);
        let short = Pot::of_deadline(1_800_000, 2, (100, 50_000)).part(4);
        assert_eq!((short.runtime_us, short.period_us), (20_000, 50_000));
    }

    #[test]
    fn a_group_has_its_part_on_every_cpu() {
        let pot = Pot {
            enforcer: Enforcer::RtCgroup,
            all_us: 940_000,
            cpus: 1,
            period_us: SECOND_US,
        };
        assert_eq!(pot.part(64).runtime_us, 14_687);
        assert_eq!(deadline_class(pot.part(64)), None);
        assert!(told(pot.part(64)).ends_with("of each cpu"));
    }
}
