//! The reservations of a task set on this machine: which cell is on which cpu and how urgent there, and its enforcer and budget.

use analysis::Task;
use analysis::linux::{DeadlineParams, Held, thread_of};
use host::root::Root;
use model::grouped;
use model::taskset::{CellTask, TaskCell};
use model::{Enforcer, Requirement};
use record::trial::HeldBy;
use record::{Budget, Machine};

use crate::held::{self, Holder, Spot, per_second_us, together_us};

/// Budget and period used to check whether the mechanism exists at all, ns.
const SMALL_NS: (u64, u64) = (1_000_000, 1_000_000_000);

/// How to request smaller budgets for a trial.
const SMALLER: &str = "give the cells smaller ones (--reservation, or [[workload.reservation]]), run them one by one (`parts` of a [[trial]])";

/// The place that a cell names by its `cpu`.
pub(super) fn named(cell: &TaskCell) -> Option<usize> {
    let cpu = cell.server.and_then(|server| server.cpu)?;
    usize::try_from(cpu).ok()
}

/// For each cell its place among the cpus that are used, from 0: its own where it names one, else the first that is free.
pub(super) fn places(cells: &[&TaskCell]) -> Vec<usize> {
    let mut taken: Vec<usize> = cells.iter().filter_map(|cell| named(cell)).collect();
    let mut places = Vec::new();
    for cell in cells {
        let place = named(cell).or_else(|| (0..).find(|place| !taken.contains(place)));
        let place = place.unwrap_or_default();
        taken.push(place);
        places.push(place);
    }
    places
}

/// For each cell how many tasks of cells that are more urgent are on its cpu: those of a higher priority, then those of shorter
/// periods of their budgets, then those before it.
pub(super) fn before(cells: &[&TaskCell], places: &[usize]) -> Vec<usize> {
    let urgency = |at: usize| {
        let cell = cells[at];
        let priority = cell.server.and_then(|server| server.priority);
        let period = cell.reservation.map(|own| own.period);
        (std::cmp::Reverse(priority), period, at)
    };
    let tasks_before = |own: usize| {
        let others = (0..cells.len()).filter(|&at| places[at] == places[own]);
        others
            .filter(|&at| urgency(at) < urgency(own))
            .map(|at| cells[at].tasks.len())
            .sum()
    };
    (0..cells.len()).map(tasks_before).collect()
}

/// Where the cells of a trial run, and beside whom.
pub(super) struct Ground<'a> {
    /// The cpu of each cell.
    pub cpus: &'a [u32],
    /// All that this process may use.
    pub allowed: &'a [u32],
    /// The top of the band of priorities; `None`: the threads are of no real-time class.
    pub priority: Option<u8>,
    /// The competitor of the cells on each of their cpus, before all of them, held by nothing.
    pub rival: Option<&'a CellTask>,
    /// Whether the cells are virtual cpus of one machine: then a thread of the host's has all tasks of a cell.
    pub in_machine: bool,
}

/// Enforcer and budget of each of these cells; or the unmet need of one, or of all together.
pub(super) fn holds(
    enforcer: Enforcer,
    cells: &[&TaskCell],
    ground: &Ground<'_>,
) -> Result<Vec<HeldBy>, Requirement> {
    let Some(priority) = ground.priority else {
        return Err(Requirement::unmet(
            format!("cells held by {}", enforcer.name()),
            "only real-time threads can be held, and these are of class \"other\"",
            "run the same command with sudo and class \"fifo\", or leave out `reserve`",
        ));
    };
    let Some(holder) = held::by(enforcer) else {
        return Err(Requirement::unmet(
            format!("cells held by {}", enforcer.name()),
            "timecell cannot hold cells of task sets by it here",
            "name another enforcer",
        ));
    };
    let mut all = Vec::new();
    for (cell, &cpu) in cells.iter().zip(ground.cpus) {
        let of_cpu = ground.cpus.iter().filter(|other| **other == cpu);
        let needs = |budget_ns: u64, period_ns: u64| {
            let held = Budget {
                enforcer,
                budget_ns,
                period_ns,
            };
            let spot = Spot {
                cpu,
                allowed: ground.allowed.to_vec(),
                priority,
            };
            let mut needs = holder.needs(&held, &spot).into_iter();
            needs.find(|one| !one.met).map_or(Ok(held), Err)
        };
        if cell.reservation.is_none() {
            // If the mechanism itself is missing, do not search for a budget.
            needs(SMALL_NS.0, SMALL_NS.1)?;
        }
        let (budget_ns, period_ns) = budget(holder, cell, of_cpu.count() == 1, ground)?;
        all.push(HeldBy {
            held: needs(budget_ns, period_ns)?,
            given: cell.reservation.is_some(),
        });
    }
    fit_together(holder, &all, ground)?;
    Ok(all)
}

/// Budget and period of a cell, ns: its own, or the least that is proven sufficient.
fn budget(
    holder: &dyn Holder,
    cell: &TaskCell,
    is_alone: bool,
    ground: &Ground<'_>,
) -> Result<(u64, u64), Requirement> {
    let rival = ground.rival;
    let (name, enforcer) = (&cell.name, holder.enforcer().name());
    let tasks: Vec<Task> = cell.tasks.iter().map(task).collect();
    if let (Some(why), 2.., false) = (holder.unshared(), tasks.len(), ground.in_machine) {
        return Err(Requirement::unmet(
            format!("a reservation of {enforcer} for cell `{name}`"),
            format!(
                "cell `{name}` has {} tasks, and in a cell held by {enforcer} {why}",
                tasks.len()
            ),
            format!(
                "give each task a cell of its own, or hold the cell by {}",
                held::of_whole_cells().join(" or ")
            ),
        ));
    }
    if let Some(own) = cell.reservation {
        let ns = |time: model::Duration| time.ns().unsigned_abs();
        return Ok((ns(own.budget), ns(own.period)));
    }
    let unmet = |reason: String, fix: &str| {
        let what = format!("a budget for cell `{name}`");
        Requirement::unmet(what, reason, fix)
    };
    if ground.in_machine {
        return Err(unmet(
            format!("cell `{name}` is a virtual cpu and has no budget"),
            "give it one (--reservation, or [[workload.reservation]] with cell, budget and period)",
        ));
    }
    if !is_alone {
        return Err(unmet(
            format!("cell `{name}` shares its cpu with another one and has no budget"),
            "give it one ([[workload.reservation]] with cell, budget and period)",
        ));
    }
    let Some(means) = holder.means(&Machine::here()) else {
        // A whole runtime by each deadline: a period of a thread that is held ends with its deadline.
        let DeadlineParams {
            runtime, deadline, ..
        } = thread_of(&tasks[0]);
        if runtime > deadline {
            return Err(unmet(
                format!(
                    "{} and what the kernel bills on top do not fit in the deadline of {} of cell `{name}`",
                    cell.tasks[0].wcet, cell.tasks[0].deadline
                ),
                "set a budget yourself, which need not be certain to suffice ([[workload.reservation]])",
            ));
        }
        return Ok((runtime, deadline));
    };
    let rivals = rival.map(task);
    let before: Vec<Held> = (rivals.iter())
        .map(|rival| Held::exactly(rival.wcet, rival.period))
        .collect();
    let taken_us = before
        .iter()
        .map(|held| per_second_us(held.budget, held.period))
        .fold(0, u64::saturating_add);
    let share = match holder.is_throttled() {
        true => {
            let real_time_us = held::real_time_us(&Root::live());
            (holder.free_us()).min(real_time_us.saturating_sub(taken_us))
        }
        // The competitor gets the rest.
        false => holder.free_us(),
    };
    let least = means.least(&tasks, (share, 1_000_000), &before);
    least.ok_or_else(|| {
        let beside = match rival {
            Some(_) => ", beside the cell that competes with it",
            None => "",
        };
        unmet(
            format!(
                "no budget of at most {:.0} % of a cpu is certain to suffice for cell `{name}` by what {enforcer} supplies{beside}",
                share as f64 / 10_000.0
            ),
            "set one yourself, which need not be certain to suffice ([[workload.reservation]]), or hold it by another enforcer (timecell analyze shows what each needs)",
        )
    })
}

fn task(task: &CellTask) -> Task {
    let ns = |time: model::Duration| time.ns().unsigned_abs();
    Task {
        deadline: ns(task.deadline),
        ..Task::new(ns(task.wcet), ns(task.period))
    }
}

/// Whether these budgets can be had at the same time.
fn fit_together(
    holder: &dyn Holder,
    all: &[HeldBy],
    ground: &Ground<'_>,
) -> Result<(), Requirement> {
    let budgets: Vec<Budget> = all.iter().map(|by| by.held).collect();
    holder.together(&budgets, ground.cpus, ground.allowed, SMALLER)?;
    if holder.is_throttled() {
        cpus_fit(&budgets, ground, held::real_time_us(&Root::live()))?;
    }
    Ok(())
}

/// Whether the cells of each cpu, and their competitor, have their budgets before the kernel stops all real-time threads of it, which
/// it does after so many us of every second.
fn cpus_fit(all: &[Budget], ground: &Ground<'_>, real_time_us: u64) -> Result<(), Requirement> {
    let rival_us = ground
        .rival
        .map(task)
        .map_or(0, |rival| per_second_us(rival.wcet, rival.period));
    for &cpu in ground.cpus {
        let of_cpu: Vec<Budget> = (all.iter().zip(ground.cpus))
            .filter(|(_, other)| **other == cpu)
            .map(|(held, _)| *held)
            .collect();
        let asked_us = together_us(&of_cpu).saturating_add(rival_us);
        if asked_us > real_time_us {
            let competes = if rival_us > 0 {
                ", including their competitor,"
            } else {
                ""
            };
            return Err(Requirement::unmet(
                format!("budgets of the cells on cpu {cpu} together"),
                format!(
                    "{} us in every second are requested on cpu {cpu}{competes} and the kernel lets real-time threads run \
                     {} us (sched_rt_runtime_us)",
                    grouped(asked_us),
                    grouped(real_time_us)
                ),
                "give them smaller budgets, or run them one by one (`parts` of a [[trial]])",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::linux::{Means, Reaction};
    use model::taskset::TaskSet;

    fn by(enforcer: Enforcer) -> &'static dyn Holder {
        held::by(enforcer).unwrap()
    }

    fn set(text: &str) -> TaskSet {
        TaskSet::parse("x", &format!("schema = 1\n{text}")).unwrap()
    }

    fn cell(name: &str, more: &str, tasks: usize) -> String {
        let tasks: String = (1..=tasks)
            .map(|at| {
                format!("[[cell.task]]\nname = \"t{at}\"\nwcet = \"1ms\"\nperiod = \"{at}0ms\"\n")
            })
            .collect();
        format!("[[cell]]\nname = \"{name}\"\n{more}{tasks}")
    }

    const OWN: &str =
        "reservation = { budget = \"5ms\", period = \"10ms\" }\nserver = \"deferrable\"\n";

    #[test]
    fn cells_have_the_cpu_they_name_or_one_of_their_own() {
        let longer = OWN.replace("\"10ms\"", "\"12ms\"");
        let text = [
            cell("a", "", 1),
            cell("b", &format!("{longer}cpu = 0\npriority = 1\n"), 2),
            cell("c", &format!("{OWN}cpu = 0\npriority = 2\n"), 3),
            cell("d", "", 1),
        ];
        let set = set(&text.concat());
        let cells: Vec<&TaskCell> = set.cells.iter().collect();
        let places = places(&cells);
        assert_eq!(places, [1, 0, 0, 2]);
        assert_eq!(before(&cells, &places), [0, 3, 0, 0]);
        let mut by_period = set.clone();
        for cell in &mut by_period.cells {
            if let Some(server) = &mut cell.server {
                server.priority = None;
            }
        }
        let cells: Vec<&TaskCell> = by_period.cells.iter().collect();
        assert_eq!(
            before(&cells, &places),
            [0, 3, 0, 0],
            "the shorter period first"
        );
    }

    #[test]
    fn threads_of_sched_deadline_cannot_share_a_budget() {
        let set = set(&(cell("two", OWN, 2) + &cell("one", "", 1)));
        let refused = budget(
            by(Enforcer::Deadline),
            &set.cells[0],
            true,
            &ground(&[], None),
        )
        .unwrap_err();
        assert!(
            refused.reason.starts_with("cell `two` has 2 tasks"),
            "{}",
            refused.reason
        );
        let in_machine = Ground {
            in_machine: true,
            ..ground(&[], None)
        };
        let of_vcpu = |at: usize| budget(by(Enforcer::Deadline), &set.cells[at], true, &in_machine);
        assert_eq!(of_vcpu(0), Ok((5_000_000, 10_000_000)));
        let lacking = of_vcpu(1).unwrap_err().reason;
        assert!(
            lacking.ends_with("is a virtual cpu and has no budget"),
            "{lacking}"
        );
        let (runtime, period) = budget(
            by(Enforcer::Deadline),
            &set.cells[1],
            true,
            &ground(&[], None),
        )
        .unwrap();
        assert!(runtime > 1_000_000 && period == 10_000_000);
        assert_eq!(
            budget(
                by(Enforcer::Freezer),
                &set.cells[0],
                true,
                &ground(&[], None)
            ),
            Ok((5_000_000, 10_000_000))
        );
    }

    #[test]
    fn a_budget_that_no_file_names_is_certain_to_do() {
        let set = set(
            "[[cell]]\nname = \"a\"\n[[cell.task]]\nname = \"t\"\nwcet = \"2ms\"\nperiod = \"50ms\"\n",
        );
        let (budget_ns, period_ns) = budget(
            by(Enforcer::Freezer),
            &set.cells[0],
            true,
            &ground(&[], None),
        )
        .unwrap();
        let tasks = [task(&set.cells[0].tasks[0])];
        assert!(Means::Freezer(Reaction::MEASURED).keeps(&tasks, budget_ns, period_ns));
        let crowded = budget(
            by(Enforcer::Freezer),
            &set.cells[0],
            false,
            &ground(&[], None),
        )
        .unwrap_err();
        assert!(
            crowded.reason.contains("shares its cpu"),
            "{}",
            crowded.reason
        );
    }

    fn ground<'a>(cpus: &'a [u32], rival: Option<&'a CellTask>) -> Ground<'a> {
        Ground {
            cpus,
            allowed: cpus,
            priority: Some(80),
            rival,
            in_machine: false,
        }
    }

    #[test]
    fn a_thread_of_sched_deadline_has_a_whole_runtime_by_each_deadline() {
        let of = |task: &str| {
            let set = set(&format!(
                "[[cell]]\nname = \"a\"\n[[cell.task]]\nname = \"t\"\n{task}"
            ));
            budget(
                by(Enforcer::Deadline),
                &set.cells[0],
                true,
                &ground(&[], None),
            )
        };
        let early = "wcet = \"9ms\"\nperiod = \"100ms\"\ndeadline = \"20ms\"\n";
        assert_eq!(of(early), Ok((10_000_000, 20_000_000)));
        let refused = of(&early.replace("20ms", "9500us")).unwrap_err();
        assert!(refused.reason.contains("do not fit"), "{}", refused.reason);
    }

    #[test]
    fn a_budget_that_is_certain_to_do_comes_behind_what_competes() {
        let set = set(
            "[[cell]]\nname = \"a\"\n[[cell.task]]\nname = \"t\"\nwcet = \"10ms\"\nperiod = \"100ms\"\n",
        );
        let rival = model::task_load::TaskLoad::competitor(400);
        let least = |rival| {
            budget(
                by(Enforcer::Freezer),
                &set.cells[0],
                true,
                &ground(&[], rival),
            )
        };
        let (budget_ns, period_ns) = least(Some(&rival)).unwrap();
        let before = task(&rival);
        let above = [(before.wcet, before.period)];
        let means = Means::Freezer(Reaction::MEASURED);
        let mut all = means.costs([(budget_ns, period_ns)].into_iter());
        all.extend(above.map(|(budget, period)| Held::exactly(budget, period)));
        let comes = |(budget, period)| {
            analysis::linux::postponement(means.held(budget, period), &all).is_ok()
        };
        assert!(comes((budget_ns, period_ns)));
        assert!(!comes(least(None).unwrap()), "alone less would do");
        let most = model::task_load::TaskLoad::competitor(900);
        let refused = least(Some(&most)).unwrap_err();
        assert!(refused.reason.contains("competes"), "{}", refused.reason);
    }

    #[test]
    fn what_the_machine_lacks_is_told_before_a_budget_is_looked_for() {
        let set = set(
            "[[cell]]\nname = \"a\"\n[[cell.task]]\nname = \"t\"\nwcet = \"49ms\"\nperiod = \"50ms\"\n",
        );
        let cells: Vec<&TaskCell> = set.cells.iter().collect();
        let too_urgent = Ground {
            priority: Some(97),
            ..ground(&[0], None)
        };
        let refused = holds(Enforcer::Freezer, &cells, &too_urgent).unwrap_err();
        assert!(!refused.reason.contains("no budget"), "{}", refused.reason);
    }

    #[test]
    fn budgets_of_a_cpu_and_what_competes_there_are_within_the_kernels_limit() {
        let of = |share: u64| Budget {
            enforcer: Enforcer::Freezer,
            budget_ns: share * 100_000,
            period_ns: 10_000_000,
        };
        let rival = model::task_load::TaskLoad::competitor(100);
        let fit = |shares: [u64; 2], cpus: [u32; 2], rival| {
            cpus_fit(&shares.map(of), &ground(&cpus, rival), 950_000)
        };
        assert_eq!(fit([60, 35], [1, 1], None), Ok(()));
        assert_eq!(fit([60, 50], [1, 0], None), Ok(()));
        let crowded = fit([60, 50], [1, 1], None).unwrap_err().reason;
        assert!(crowded.starts_with("1,100,000 us"), "{crowded}");
        assert!(fit([86, 50], [1, 0], Some(&rival)).is_err());
        assert_eq!(fit([85, 50], [1, 0], Some(&rival)), Ok(()));
    }
}
