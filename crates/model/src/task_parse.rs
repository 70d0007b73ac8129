//! `[workload] kind = "taskset"` of an experiment file: TOML to [`TaskLoad`] and back.

use std::fmt::Write as _;

use crate::parse::{choice, quoted};
use crate::reader::Table;
use crate::task_held;
use crate::task_load::{TaskLoad, TaskPolicy};
use crate::taskset::{CellTask, Order, Policy, Refill, TaskCell, TaskSet};
use crate::{Duration, InputError};

/// Keys of `[workload]` that only a task set has.
pub(crate) const KEYS: [&str; 6] = [
    "policy",
    "margin",
    "duration",
    "tasks",
    "task",
    "reservation",
];
const TASK: [&str; 6] = ["name", "cell", "wcet", "period", "deadline", "priority"];
/// Name of the cell of tasks that name none.
const ONLY_CELL: &str = "set";
/// Length of a trial unless the file says it.
const DURATION: Duration = Duration::from_ns(10_000_000_000);

/// The task set of `[workload]`.
pub(crate) fn task_load(workload: &Table<'_>) -> Result<TaskLoad, InputError> {
    let policy = choice(workload, "policy", &TaskPolicy::NAMES)?.unwrap_or(TaskPolicy::Fifo);
    let margin = workload.duration("margin")?;
    if margin.is_some() && policy == TaskPolicy::Fifo {
        return Err(workload.fault(
            "margin",
            "a FIFO thread has no runtime that a margin could be added to",
            "remove the line or set policy = \"deadline\"",
        ));
    }
    let duration = workload.duration("duration")?.unwrap_or(DURATION);
    if duration.ns() < 1 {
        return Err(workload.fault("duration", "`duration` is 0", "give some seconds"));
    }
    let tables = workload.tables_below("workload.", "task", &TASK)?;
    let file = workload.text("tasks")?.map(str::to_owned);
    if file.is_some() != tables.is_empty() {
        return Err(workload.fault(
            "tasks",
            "a task set stands either in a file or below [workload]",
            "write tasks = \"FILE\", or [[workload.task]] with name, wcet and period",
        ));
    }
    let mut cells: Vec<TaskCell> = Vec::new();
    for table in &tables {
        let (cell, task) = task(table)?;
        match cells.iter_mut().find(|known| known.name == cell) {
            Some(known) if known.tasks.iter().any(|other| other.name == task.name) => {
                return Err(table.fault(
                    "name",
                    format!("there are two tasks named `{}`", task.name),
                    "give each its own name",
                ));
            }
            Some(known) => known.tasks.push(task),
            None => cells.push(TaskCell {
                name: cell,
                policy: Policy::Fixed(Order::Deadline),
                reservation: None,
                server: None,
                tasks: vec![task],
            }),
        }
    }
    for cell in &mut cells {
        let given = cell.tasks.iter().filter(|t| t.priority.is_some()).count();
        if given == cell.tasks.len() {
            cell.policy = Policy::Fixed(Order::Priority);
        } else if given > 0 {
            return Err(workload.fault(
                "task",
                format!("only some tasks of cell `{}` have a priority", cell.name),
                "give every task one, or none: then deadlines order them",
            ));
        }
    }
    task_held::reserve(workload, &mut cells)?;
    let set = TaskSet {
        cpus: None,
        refill: Refill::default(),
        enforcer: None,
        cells,
    };
    let cells = TaskLoad::cells_of(&set, policy)
        .map_err(|(what, mend)| workload.fault("task", what, mend))?;
    Ok(TaskLoad {
        policy,
        margin,
        duration,
        file,
        cells,
    })
}

fn task(table: &Table<'_>) -> Result<(String, CellTask), InputError> {
    let text = |key: &str| -> Result<Option<String>, InputError> {
        match table.text(key)? {
            Some(name)
                if name.is_empty()
                    || name.chars().count() > 64
                    || name.chars().any(char::is_control) =>
            {
                Err(table.fault(
                    key,
                    format!("this is no name for a {key}"),
                    "use 1 to 64 characters",
                ))
            }
            name => Ok(name.map(str::to_owned)),
        }
    };
    let name = text("name")?.ok_or_else(|| table.missing("name", "\"control\""))?;
    let wcet = (table.duration("wcet")?).ok_or_else(|| table.missing("wcet", "\"1ms\""))?;
    let period = (table.duration("period")?).ok_or_else(|| table.missing("period", "\"10ms\""))?;
    for (key, time) in [("wcet", wcet), ("period", period)] {
        if time.ns() < 1 {
            return Err(table.fault(key, format!("`{key}` is 0"), "give some time"));
        }
    }
    let task = CellTask {
        deadline: table.duration("deadline")?.unwrap_or(period),
        priority: table.integer("priority", &(i64::from(i32::MIN)..=i64::from(i32::MAX)))?,
        ..CellTask::new(name, wcet, period)
    };
    if task.deadline.ns() < 1 {
        return Err(table.fault("deadline", "`deadline` is 0", "give some time"));
    }
    Ok((text("cell")?.unwrap_or_else(|| ONLY_CELL.to_owned()), task))
}

/// The lines of `[workload]` below `kind`, and the tasks.
pub(crate) fn write(out: &mut String, load: &TaskLoad) {
    let _ = writeln!(out, "policy = \"{}\"", load.policy.name());
    if let Some(margin) = load.margin {
        let _ = writeln!(out, "margin = \"{margin}\"");
    }
    let _ = writeln!(out, "duration = \"{}\"", load.duration);
    if let Some(file) = &load.file {
        let _ = writeln!(out, "tasks = {}", quoted(file));
    }
    for cell in &load.cells {
        for task in &cell.tasks {
            let _ = writeln!(
                out,
                "\n[[workload.task]]\nname = {}\ncell = {}\nwcet = \"{}\"\nperiod = \"{}\"\ndeadline = \"{}\"",
                quoted(&task.name),
                quoted(&cell.name),
                task.wcet,
                task.period,
                task.deadline
            );
            if let Some(priority) = task.priority {
                let _ = writeln!(out, "priority = {priority}");
            }
        }
    }
    task_held::write(out, &load.cells);
}

#[cfg(test)]
mod tests {
    use crate::{Duration, Experiment, TaskPolicy, Work};

    const HEAD: &str = "schema = 1\nname = \"x\"\n[workload]\nkind = \"taskset\"\n";
    const TASKS: &str = "[[workload.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
        [[workload.task]]\nname = \"b\"\ncell = \"two\"\nwcet = \"1ms\"\nperiod = \"20ms\"\ndeadline = \"5ms\"\n";
    const TRIAL: &str = "[[trial]]\ncells = [\"bare\"]\ncompetitors = 0.25\n";

    fn parse(more: &str, tasks: &str, trial: &str) -> Result<Experiment, String> {
        let text = format!("{HEAD}{more}{tasks}{trial}");
        Experiment::parse("x", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_set_is_read_and_written() {
        let more = "policy = \"deadline\"\nmargin = \"200us\"\nduration = \"3s\"\n";
        for (more, policy) in [("", TaskPolicy::Fifo), (more, TaskPolicy::Deadline)] {
            let read = parse(more, TASKS, TRIAL).unwrap();
            let tasks = read.tasks.as_ref().unwrap();
            assert_eq!((read.workload.work, tasks.policy), (Work::Busy, policy));
            assert_eq!(read.trials[0].competitors, 250);
            assert_eq!(tasks.cells.len(), 2);
            assert_eq!(
                tasks.cells[1].tasks[0].deadline,
                Duration::from_ns(5_000_000)
            );
            assert_eq!(Experiment::parse("x", &read.to_toml()), Ok(read));
        }
        let of_file = parse("tasks = \"set.toml\"\n", "", TRIAL).unwrap();
        assert_eq!(
            of_file.tasks.as_ref().unwrap().file.as_deref(),
            Some("set.toml")
        );
        assert_eq!(Experiment::parse("x", &of_file.to_toml()), Ok(of_file));
    }

    #[test]
    fn faults_have_their_line_and_mend() {
        let prioritized = TASKS.replacen("\"10ms\"\n", "\"10ms\"\npriority = 3\n", 1)
            + "[[workload.task]]\nname = \"c\"\nwcet = \"1ms\"\nperiod = \"30ms\"\n";
        let twice = TASKS.replace("\"b\"\ncell = \"two\"", "\"a\"");
        let own_period = TRIAL.replace("competitors = 0.25", "period = \"1ms\"");
        for (found, wanted) in [
            (
                parse("margin = \"1ms\"\n", TASKS, TRIAL),
                "x:5: a FIFO thread has no runtime",
            ),
            (
                parse("steps = 5\n", TASKS, TRIAL),
                "x:5: `steps` says nothing of kind \"taskset\"",
            ),
            (parse("", "", TRIAL), "either in a file or below"),
            (
                parse("tasks = \"y\"\n", TASKS, TRIAL),
                "either in a file or below",
            ),
            (
                parse("", &prioritized, TRIAL),
                "only some tasks of cell `set` have a priority",
            ),
            (
                parse("", &twice, TRIAL),
                "x:10: there are two tasks named `a`",
            ),
            (
                parse("", &TASKS.replace("\"1ms\"", "\"0ms\""), TRIAL),
                "`wcet` is 0",
            ),
            (parse("", TASKS, &own_period), "names one engine"),
        ] {
            let error = found.unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
