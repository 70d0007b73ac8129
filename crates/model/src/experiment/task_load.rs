//! A periodic task set as the workload of cells: `[workload] kind = "taskset"` of an experiment file.
//!
//! Cells of the set become cells of every trial; tasks become threads in them. Anything else in the set's file
//! (release jitter, blocking) cannot be run as it is and is listed here. Reservations are in `held`.

use super::ExecutionStage;
use super::work::{Limits, Pacing, Work, Workload};
use crate::Duration;
use crate::taskset::{CellTask, Order, Policy, ServerKind, TaskCell, TaskSet};

choice! {
    /// How the threads of a task set are scheduled.
    pub enum TaskPolicy {
        /// SCHED_FIFO: a priority for every task, the cell pinned to its own cpu.
        Fifo = "fifo",
        /// SCHED_DEADLINE: a runtime, deadline and period for every task, on all cpus that the process may use: the kernel does
        /// not accept pinned deadline threads.
        Deadline = "deadline",
    }
}

/// A task set that the cells of every trial run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLoad {
    /// How the threads are scheduled.
    pub policy: TaskPolicy,
    /// Added to a task's wcet for the runtime of its SCHED_DEADLINE thread; `None`: a tenth of the wcet, at least 100 us.
    pub margin: Option<Duration>,
    /// Length of a trial, which decides how many jobs a task has.
    pub duration: Duration,
    /// The task-set file that has yet to be read; `None` once the cells are known.
    pub file: Option<String>,
    /// The cells, each with its tasks in the order of urgency, the most urgent first; the `priority` of a task is its rank
    /// from the least urgent, which has 1.
    pub cells: Vec<TaskCell>,
}

/// Period of the competitor's task.
pub const COMPETITOR_PERIOD: Duration = Duration::from_ns(10_000_000);
/// Name of the competitor's task.
pub const COMPETITOR: &str = "competitor";
/// Largest utilisation of a competitor, in thousandths of a cpu.
pub const MOST_COMPETITION: u32 = 900;
/// Tasks of one cell, so that each has a SCHED_FIFO priority of its own.
pub const MOST_TASKS: usize = 60;
/// Longest job, ns.
const MOST_WORK_NS: i64 = 1_000_000_000;
/// Cells of one set.
pub const MOST_CELLS: usize = 64;

impl TaskLoad {
    /// Converts the cells of a task set into the form in which they run.
    ///
    /// # Errors
    /// A cell that cannot be run, and the remedy.
    pub fn cells_of(set: &TaskSet, policy: TaskPolicy) -> Result<Vec<TaskCell>, (String, String)> {
        if set.cells.len() > MOST_CELLS {
            return Err((
                format!("the task set has {} cells", set.cells.len()),
                format!("at most {MOST_CELLS} can run"),
            ));
        }
        set.cells
            .iter()
            .map(|cell| runnable(cell, policy))
            .collect()
    }

    /// The runtime that a task's SCHED_DEADLINE thread gets in every period.
    pub fn runtime(&self, task: &CellTask) -> Duration {
        let margin = match self.margin {
            Some(margin) => margin.ns(),
            None => (task.wcet.ns() / 10).max(100_000),
        };
        let most = task.deadline.ns().min(task.period.ns());
        Duration::from_ns((task.wcet.ns().saturating_add(margin)).min(most))
    }

    /// The workload as one for all cells: the shortest period and the most jobs of any task.
    pub fn workload(&self) -> Workload {
        let tasks = || self.cells.iter().flat_map(|cell| &cell.tasks);
        let shortest = tasks().map(|task| task.period).min();
        Workload {
            work: Work::Busy,
            jobs: tasks().map(|task| self.jobs(task)).max().unwrap_or(1),
            period: shortest.unwrap_or(COMPETITOR_PERIOD),
            pacing: Pacing::Periodic,
            deadline: None,
            program: None,
            stage: ExecutionStage::InBand,
        }
    }

    /// Activations of a task in one trial: all that are released before its end.
    pub fn jobs(&self, task: &CellTask) -> u32 {
        let period = task.period.ns().max(1);
        let jobs = self.duration.ns() / period + i64::from(self.duration.ns() % period > 0);
        u32::try_from(jobs.clamp(1, *Limits::JOBS.end())).unwrap_or(u32::MAX)
    }

    /// A competitor's task that uses this many thousandths of a cpu.
    pub fn competitor(per_mille: u32) -> CellTask {
        let wcet = COMPETITOR_PERIOD.ns() / 1000 * i64::from(per_mille);
        CellTask::new(COMPETITOR, Duration::from_ns(wcet), COMPETITOR_PERIOD)
    }
}

fn runnable(cell: &TaskCell, policy: TaskPolicy) -> Result<TaskCell, (String, String)> {
    let name = &cell.name;
    check_cell(cell, policy)?;
    let known = matches!(
        (cell.policy, policy),
        (
            Policy::Fixed(Order::Deadline | Order::Rate | Order::Listed | Order::Priority),
            _
        ) | (Policy::Edf, TaskPolicy::Deadline)
    );
    if !known {
        return Err((
            format!(
                "cell `{name}` has policy \"{}\", which class {} cannot run",
                cell.policy.name(),
                policy.name()
            ),
            "set policy = \"fp\" with an order, or policy = \"edf\" with deadline threads"
                .to_owned(),
        ));
    }
    if cell.tasks.len() > MOST_TASKS {
        return Err((
            format!("cell `{name}` has {} tasks", cell.tasks.len()),
            format!("at most {MOST_TASKS} can run in a cell"),
        ));
    }
    let count = cell.tasks.len();
    let order = cell.by_urgency();
    let tasks = order.iter().enumerate().map(|(rank, &place)| {
        let task = &cell.tasks[place];
        if !Limits::PERIOD_NS.contains(&task.period.ns()) {
            return Err((
                format!("the period of task `{}` is {}", task.name, task.period),
                "to run it, the period must be 10us to 1h".to_owned(),
            ));
        }
        if task.wcet > task.deadline || task.wcet > task.period {
            return Err((
                format!(
                    "task `{}` needs more than its deadline or period",
                    task.name
                ),
                "to run it, it must fit into both".to_owned(),
            ));
        }
        if task.wcet.ns() > MOST_WORK_NS {
            return Err((
                format!("the wcet of task `{}` is {}", task.name, task.wcet),
                "to run it, the wcet must be at most 1s".to_owned(),
            ));
        }
        if policy == TaskPolicy::Deadline && task.deadline > task.period {
            return Err((
                format!("the deadline of task `{}` exceeds its period", task.name),
                "SCHED_DEADLINE allows deadlines up to the period".to_owned(),
            ));
        }
        Ok(CellTask {
            deadline: task.deadline,
            priority: Some((count - rank) as i64),
            ..CellTask::new(task.name.clone(), task.wcet, task.period)
        })
    });
    Ok(TaskCell {
        name: name.clone(),
        policy: Policy::Fixed(Order::Priority),
        reservation: cell.reservation,
        server: cell.server,
        tasks: tasks.collect::<Result<_, _>>()?,
    })
}

/// A part of a cell's reservation that no enforcer can hold, and the remedy.
fn check_cell(cell: &TaskCell, policy: TaskPolicy) -> Result<(), (String, String)> {
    let name = &cell.name;
    if let Some(server) = cell.server
        && server.kind != ServerKind::Deferrable
    {
        return Err((
            format!(
                "cell `{name}` has a server of kind `{}`, but the enforcers keep budgets until the period ends",
                server.kind.name()
            ),
            "set server = \"deferrable\", or remove the line".to_owned(),
        ));
    }
    let Some(own) = cell.reservation else {
        return Ok(());
    };
    if let Some(fault) = own.fault() {
        return Err((fault.what, fault.fix));
    }
    if policy == TaskPolicy::Deadline {
        return Err((
            format!(
                "cell `{name}` has a reservation, but its SCHED_DEADLINE threads already have runtimes"
            ),
            "remove `reservation` and `server`, or set policy = \"fifo\"".to_owned(),
        ));
    }
    if own.deadline != own.period {
        return Err((
            format!("the reservation of cell `{name}` has a deadline, which no enforcer supports"),
            "remove the deadline".to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Duration {
        Duration::from_ns(ms * 1_000_000)
    }

    fn load(policy: TaskPolicy, text: &str) -> Result<Vec<TaskCell>, (String, String)> {
        TaskLoad::cells_of(&TaskSet::parse("x", text).unwrap(), policy)
    }

    const SET: &str = "schema = 1\n[[cell]]\nname = \"a\"\n\
        [[cell.task]]\nname = \"slow\"\nwcet = \"1ms\"\nperiod = \"50ms\"\n\
        [[cell.task]]\nname = \"fast\"\nwcet = \"1ms\"\nperiod = \"5ms\"\njitter = \"1ms\"\n";

    #[test]
    fn the_most_urgent_comes_first_and_has_the_highest_priority() {
        let cells = load(TaskPolicy::Fifo, SET).unwrap();
        let tasks: Vec<(&str, Option<i64>, i64)> = (cells[0].tasks.iter())
            .map(|t| (t.name.as_str(), t.priority, t.jitter.ns()))
            .collect();
        assert_eq!(tasks, [("fast", Some(2), 0), ("slow", Some(1), 0)]);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let edf = SET.replace("name = \"a\"\n", "name = \"a\"\npolicy = \"edf\"\n");
        assert!(load(TaskPolicy::Deadline, &edf).is_ok());
        assert!(
            load(TaskPolicy::Fifo, &edf)
                .unwrap_err()
                .0
                .contains("policy \"edf\"")
        );
        let reserved = SET.replace(
            "name = \"a\"\n",
            "name = \"a\"\nreservation = { budget = \"2ms\", period = \"5ms\" }\n",
        );
        let cells = load(TaskPolicy::Fifo, &reserved).unwrap();
        assert_eq!(cells[0].reservation.map(|own| own.period), Some(ms(5)));
        assert!(
            load(TaskPolicy::Deadline, &reserved)
                .unwrap_err()
                .0
                .contains("already have runtimes")
        );
        let early = reserved.replace("\"5ms\" }", "\"5ms\", deadline = \"4ms\" }");
        assert!(
            load(TaskPolicy::Fifo, &early)
                .unwrap_err()
                .0
                .contains("has a deadline")
        );
        let periodic = reserved.replace(" }\n", " }\nserver = \"periodic\"\n");
        assert!(
            load(TaskPolicy::Fifo, &periodic)
                .unwrap_err()
                .0
                .contains("of kind `periodic`")
        );
        let short = SET
            .replace("\"5ms\"", "\"5us\"")
            .replace("\"1ms\"", "\"1us\"");
        assert!(
            load(TaskPolicy::Fifo, &short)
                .unwrap_err()
                .1
                .contains("10us")
        );
    }

    #[test]
    fn jobs_and_runtimes() {
        let mut load = TaskLoad {
            policy: TaskPolicy::Deadline,
            margin: None,
            duration: ms(100),
            file: None,
            cells: Vec::new(),
        };
        let task = |wcet, period| CellTask::new("t", ms(wcet), ms(period));
        assert_eq!(
            [30, 50, 200].map(|period| load.jobs(&task(1, period))),
            [4, 2, 1]
        );
        assert_eq!(load.runtime(&task(20, 50)), ms(22));
        assert_eq!(load.runtime(&task(50, 50)), ms(50));
        load.margin = Some(ms(5));
        assert_eq!(load.runtime(&task(20, 50)), ms(25));
        assert_eq!(TaskLoad::competitor(300).wcet, ms(3));
    }
}
