//! Planning a task set for this machine: which thread runs in which cell, on which cpu, in which class. `held` plans their budgets.

mod held;

use host::sched::bandwidth::{Asker, GIVEN_BACK, set_class_when_free};
use host::sched::{self, SchedError};
use model::task_load::{COMPETITOR, TaskLoad, TaskPolicy};
use model::taskset::{CellTask, TaskCell};
use model::{Class, Enforcer, Experiment, Requirement, TrialPlan};
use record::Budget;
use record::trial::HeldBy;

/// A task that will run as a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTask {
    /// Number of its cell in the trial, from 1: threads of the same number share a cell.
    pub cell: usize,
    /// Name of its cell in the set.
    pub cell_name: String,
    /// The task.
    pub task: CellTask,
    /// Its activations.
    pub jobs: u32,
    /// Its class.
    pub class: sched::Class,
    /// Cpus that it may use.
    pub cpus: Vec<u32>,
    /// Enforcer and budget of its cell, if held.
    pub held: Option<HeldBy>,
}

impl PlannedTask {
    /// The part of its identity in the trial that comes from the task.
    pub(crate) fn id(&self, place: usize) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = &self.task.name;
        if name.chars().all(plain) {
            format!("{place}-{name}")
        } else {
            format!("{place}-task")
        }
    }

    /// The cpu that its cell is pinned to, or calibrated on.
    pub(crate) fn cpu(&self) -> u32 {
        self.cpus.last().copied().unwrap_or_default()
    }

    /// Declarations of the set that a run ignores.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let task = &self.task;
        [("jitter", task.jitter), ("blocking", task.blocking)]
            .into_iter()
            .filter(|(_, time)| time.ns() > 0)
            .map(|(what, time)| {
                format!(
                    "the set declares {time} of {what} for it, which the run does not produce and the bound here leaves out"
                )
            })
            .collect()
    }

    /// Whether it competes with the set instead of belonging to it.
    pub fn competes(&self) -> bool {
        self.cell_name == COMPETITOR
    }
}

/// The threads of a trial, cell by cell; or the unmet requirement.
pub(crate) fn planned(
    experiment: &Experiment,
    load: &TaskLoad,
    trial: &TrialPlan,
    allowed: &[u32],
) -> Result<Vec<PlannedTask>, Requirement> {
    let in_machine = trial.cells.iter().any(|kind| kind.is_machine());
    let cells: Vec<&TaskCell> = (load.cells.iter())
        .filter(|cell| trial.parts.is_empty() || trial.parts.contains(&cell.name))
        .collect();
    let places = held::places(&cells);
    let before = held::before(&cells, &places);
    let usable = cpus(experiment, &places, &cells, allowed)?;
    let cpus: Vec<u32> = places.iter().map(|place| usable[*place]).collect();
    let holds = match trial.reserve {
        Some(enforcer) => {
            let priority = match experiment.scheduling.class {
                Class::Fifo { priority } => Some(priority),
                Class::Other => None,
            };
            let rival = (trial.competitors > 0).then(|| TaskLoad::competitor(trial.competitors));
            let ground = held::Ground {
                in_machine,
                cpus: &cpus,
                allowed,
                priority,
                rival: rival.as_ref(),
            };
            let holds = held::holds(enforcer, &cells, &ground)?;
            holds.into_iter().map(Some).collect()
        }
        None => vec![None; cells.len()],
    };
    let mut tasks = Vec::new();
    let mut number = 0;
    for (at, cell) in cells.iter().enumerate() {
        number += 1;
        for (rank, task) in cell.tasks.iter().enumerate() {
            // In a machine, what is held is the virtual cpu; the threads on it have priorities.
            let held = holds[at].filter(|_| !in_machine);
            let by_thread = held.and_then(|by: HeldBy| of_thread(&by.held));
            let of_vcpu = holds[at].filter(|by| in_machine && of_thread(&by.held).is_some());
            let below = 1 + (before[at] + rank) as i64;
            tasks.push(PlannedTask {
                cell: number,
                cell_name: cell.name.clone(),
                task: task.clone(),
                jobs: load.jobs(task),
                cpus: match by_thread {
                    Some(_) => allowed.to_vec(),
                    None if of_vcpu.is_some() => allowed.to_vec(),
                    None => of_policy(load, cpus[at], allowed),
                },
                class: match by_thread {
                    Some(class) => class,
                    None => class(experiment, load, task, below)?,
                },
                held: holds[at],
            });
        }
    }
    if trial.competitors > 0 {
        let mut with_cells = cpus.clone();
        with_cells.sort_unstable_by_key(|cpu| usable.iter().position(|one| one == cpu));
        with_cells.dedup();
        for cpu in &with_cells {
            let task = CellTask {
                name: format!("{COMPETITOR}-cpu{cpu}"),
                ..TaskLoad::competitor(trial.competitors)
            };
            number += 1;
            tasks.push(PlannedTask {
                cell: number,
                cell_name: COMPETITOR.to_owned(),
                jobs: load.jobs(&task),
                class: class(experiment, load, &task, 0)?,
                task,
                cpus: of_policy(load, *cpu, allowed),
                held: None,
            });
        }
    }
    if load.policy == TaskPolicy::Deadline {
        let granted = deadline_requirement(allowed);
        if !granted.met {
            return Err(granted);
        }
    }
    Ok(tasks)
}

fn of_policy(load: &TaskLoad, cpu: u32, allowed: &[u32]) -> Vec<u32> {
    match load.policy {
        TaskPolicy::Fifo => vec![cpu],
        TaskPolicy::Deadline => allowed.to_vec(),
    }
}

/// The class that holds a thread to its budget by itself; `None`: something else holds it.
pub(crate) fn of_thread(held: &Budget) -> Option<sched::Class> {
    (held.enforcer == Enforcer::Deadline).then_some(sched::Class::Deadline {
        runtime_ns: held.budget_ns,
        deadline_ns: held.period_ns,
        period_ns: held.period_ns,
    })
}

/// A cpu for every place of a cell: the requested ones, else the highest.
fn cpus(
    experiment: &Experiment,
    places: &[usize],
    cells: &[&TaskCell],
    allowed: &[u32],
) -> Result<Vec<u32>, Requirement> {
    let wanted = places.iter().max().map_or(0, |last| last + 1);
    // A cpu that is named twice is one cpu: cells of two places never share it unnoticed.
    let mut cpus: Vec<u32> = Vec::new();
    for cpu in &experiment.scheduling.cpus {
        if !cpus.contains(cpu) {
            cpus.push(*cpu);
        }
    }
    if cpus.len() < wanted {
        let mut rest: Vec<u32> = (allowed.iter().copied())
            .filter(|cpu| !cpus.contains(cpu))
            .collect();
        rest.sort_unstable_by_key(|cpu| std::cmp::Reverse(*cpu));
        cpus.extend(rest);
    }
    let is_absent = |place: &usize| *place >= cpus.len();
    let named = (cells.iter()).find_map(|cell| Some((cell, held::named(cell).filter(is_absent)?)));
    if let Some((cell, place)) = named {
        let all: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let (there, fix) = match all.as_slice() {
            [only] => (format!("only 0 (cpu {only})"), "0".to_owned()),
            [.., _] | [] => {
                let known = format!("0 to {}", all.len().saturating_sub(1));
                (
                    format!("only {known} (cpus {})", all.join(", ")),
                    format!("one of {known}"),
                )
            }
        };
        return Err(Requirement::unmet(
            "cpus",
            format!(
                "cell `{}` names cpu {place}, counted from 0 among those that the set uses; this machine has {there}",
                cell.name
            ),
            format!("set its `cpu` to {fix}, or use a machine with more cpus"),
        ));
    }
    if cpus.len() < wanted {
        return Err(Requirement::unmet(
            "cpus",
            format!(
                "the task set has {} cells, which need {wanted} cpus: one each, unless a reservation names another cell's; there are {} \
                 cpus",
                cells.len(),
                cpus.len()
            ),
            "give the set fewer cells, or use a machine with more cpus",
        ));
    }
    cpus.truncate(wanted);
    Ok(cpus)
}

/// The class of a task that is `below` places below the top of the band.
fn class(
    experiment: &Experiment,
    load: &TaskLoad,
    task: &CellTask,
    below: i64,
) -> Result<sched::Class, Requirement> {
    let Class::Fifo { priority } = experiment.scheduling.class else {
        return Ok(sched::Class::Other);
    };
    if load.policy == TaskPolicy::Deadline {
        let ns = |time: model::Duration| time.ns().unsigned_abs();
        return Ok(sched::Class::Deadline {
            runtime_ns: ns(load.runtime(task)),
            deadline_ns: ns(task.deadline),
            period_ns: ns(task.period),
        });
    }
    let own = i64::from(priority) - below;
    match u8::try_from(own) {
        Ok(priority) if priority >= 1 => Ok(sched::Class::Fifo { priority }),
        _ => Err(Requirement::unmet(
            "priorities",
            format!("there are not enough priorities below {priority} for every task of a cell"),
            "raise `priority`",
        )),
    }
}

/// Whether this process may have a SCHED_DEADLINE thread on these cpus; tried with a small one.
pub(crate) fn deadline_requirement(cpus: &[u32]) -> Requirement {
    const WHAT: &str = "SCHED_DEADLINE";
    const TRIED: sched::Class = sched::Class::Deadline {
        runtime_ns: 100_000,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    let cpus = cpus.to_vec();
    let tried = Asker::new(move || {
        sched::set_affinity(0, &cpus)?;
        // The kernel still counts the threads of a run that has just ended for a while.
        set_class_when_free(0, &TRIED, GIVEN_BACK)
    });
    match tried.map(|(_, tried)| tried) {
        Some(Ok(())) => Requirement::met(WHAT, "granted to this process"),
        Some(Err(SchedError::NoPrivilege { why, fix, .. })) => Requirement::unmet(WHAT, why, fix),
        Some(Err(SchedError::AffinityTooNarrow { .. })) => Requirement::unmet(
            WHAT,
            "the kernel cannot restrict a SCHED_DEADLINE thread to some of the cpus of its root domain",
            "leave out --cpus (or `cpus`), or run timecell in an exclusive cpuset partition of these cpus",
        ),
        Some(Err(error)) => Requirement::unmet(WHAT, error.to_string(), "see timecell doctor"),
        None => Requirement::unmet(WHAT, "the thread that tried it died", "try again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(policy: &str, competitors: &str) -> Experiment {
        let text = format!(
            "schema = 1\nname = \"x\"\n[workload]\nkind = \"taskset\"\npolicy = \"{policy}\"\nduration = \"100ms\"\n\
             [[workload.task]]\nname = \"slow\"\nwcet = \"2ms\"\nperiod = \"50ms\"\n\
             [[workload.task]]\nname = \"fast one\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
             [[workload.task]]\nname = \"other\"\ncell = \"second\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
             [[trial]]\ncells = [\"bare\"]\n{competitors}"
        );
        Experiment::parse("x", &text).unwrap()
    }

    fn tasks(experiment: &Experiment, allowed: &[u32]) -> Result<Vec<PlannedTask>, Requirement> {
        let load = experiment.tasks.as_ref().unwrap();
        planned(experiment, load, &experiment.trials[0], allowed)
    }

    #[test]
    fn threads_have_priorities_by_deadline_and_a_cpu_for_each_cell() {
        let found = tasks(&experiment("fifo", ""), &[0, 1, 2]).unwrap();
        let seen: Vec<(String, usize, String, u32, u32)> = (found.iter().enumerate())
            .map(|(at, t)| (t.id(at + 1), t.cell, t.class.to_string(), t.cpu(), t.jobs))
            .collect();
        assert_eq!(
            seen,
            [
                ("1-task".to_owned(), 1, "FIFO 79".to_owned(), 2, 10),
                ("2-slow".to_owned(), 1, "FIFO 78".to_owned(), 2, 2),
                ("3-other".to_owned(), 2, "FIFO 79".to_owned(), 1, 5),
            ]
        );
        let mut twice = experiment("fifo", "");
        twice.scheduling.cpus = vec![1, 1];
        let found = tasks(&twice, &[0, 1, 2]).unwrap();
        let cpus: Vec<u32> = found.iter().map(PlannedTask::cpu).collect();
        assert_eq!(cpus, [1, 1, 2]);
        let lacking = tasks(&experiment("fifo", ""), &[0]).unwrap_err();
        assert!(lacking.reason.contains("2 cells"), "{}", lacking.reason);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_told_with_those_that_are() {
        let named = |cpu: u32| {
            let text = format!(
                "schema = 1\nname = \"x\"\n[workload]\nkind = \"taskset\"\n\
                 [[workload.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
                 [[workload.reservation]]\ncell = \"set\"\ncpu = {cpu}\n[[trial]]\ncells = [\"bare\"]\n"
            );
            Experiment::parse("x", &text).unwrap()
        };
        let lacking = tasks(&named(7), &[0, 1, 2, 3]).unwrap_err();
        let told = format!("{}; {}", lacking.reason, lacking.fix.unwrap());
        assert_eq!(
            told,
            "cell `set` names cpu 7, counted from 0 among those that the set uses; this machine has only 0 to 3 (cpus 3, 2, 1, 0); set \
             its `cpu` to one of 0 to 3, or use a machine with more cpus"
        );
        let lacking = tasks(&named(1), &[5]).unwrap_err();
        let told = format!("{}; {}", lacking.reason, lacking.fix.unwrap());
        assert!(told.contains("this machine has only 0 (cpu 5)"), "{told}");
        assert_eq!(tasks(&named(3), &[0, 1, 2, 3]).unwrap()[0].cpus, [0]);
    }

    #[test]
    fn competitors_are_cells_above_the_set() {
        let found = tasks(&experiment("fifo", "competitors = 0.3"), &[0, 1]).unwrap();
        let rivals: Vec<&PlannedTask> = found.iter().filter(|t| t.competes()).collect();
        assert_eq!(rivals.len(), 2);
        assert_eq!(rivals[0].class.to_string(), "FIFO 80");
        assert_eq!(rivals[0].task.wcet.ns(), 3_000_000);
        assert_eq!((rivals[0].cell, rivals[1].cell), (3, 4));
    }
}
