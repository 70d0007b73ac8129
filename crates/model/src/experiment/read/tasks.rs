//! Reading `[workload] kind = "taskset"`: the tasks, and the reservations of their cells.

use crate::Duration;
use crate::file::{Faults, Node};
use crate::task_load::{TaskLoad, TaskPolicy};
use crate::taskset::{
    CellServer, CellTask, Order, Policy, Refill, Reservation, ServerKind, TaskCell, TaskSet,
};

/// Length of a trial unless the file sets it.
const DURATION: Duration = Duration::from_ns(10_000_000_000);

/// The task set of `[workload]`.
pub(super) fn task_load(workload: &Node<'_>, faults: &mut Faults<'_>) -> TaskLoad {
    let policy = workload.choice("policy", &TaskPolicy::NAMES);
    let policy = policy.unwrap_or(TaskPolicy::Fifo);
    let margin = workload.time("margin");
    if margin.is_some() && policy == TaskPolicy::Fifo {
        faults.report(
            &workload.place,
            &["margin", "policy"],
            "a FIFO thread has no runtime to which a margin could be added",
            "remove the line or set policy = \"deadline\"",
        );
    }
    let nodes = workload.tables("task");
    let file = workload.some_text("tasks");
    if file.is_some() != nodes.is_empty() {
        faults.report(
            &workload.place,
            &["tasks", "task"],
            match file {
                Some(_) => "the task set is given both as a file and below [workload]",
                None => "no task set is given",
            },
            "write either tasks = \"FILE\", or [[workload.task]] with name, wcet and period",
        );
    }
    let mut cells: Vec<TaskCell> = Vec::new();
    for node in &nodes {
        let (cell, task) = (node.text("cell"), task(node));
        match cells.iter_mut().find(|known| known.name == cell) {
            Some(known) => {
                if known.tasks.iter().any(|other| other.name == task.name) {
                    let what = format!("there are two tasks named `{}`", task.name);
                    faults.report(
                        &node.place,
                        &["name", "cell"],
                        what,
                        "give each a different name",
                    );
                }
                known.tasks.push(task);
            }
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
        } else if given > 0 && faults.is_whole(&workload.place.key("task")) {
            faults.report(
                &workload.place,
                &["task"],
                format!("only some tasks of cell `{}` have a priority", cell.name),
                "give every task one, or none to order them by deadline",
            );
        }
    }
    reserve(workload, &mut cells, file.as_deref(), faults);
    let mut load = TaskLoad {
        policy,
        margin,
        duration: workload.time("duration").unwrap_or(DURATION),
        file,
        cells,
    };
    // Whether the set can be run is asked of one that is in order.
    if faults.is_empty() {
        let set = TaskSet {
            cpus: None,
            refill: Refill::default(),
            enforcer: None,
            cells: load.cells,
        };
        load.cells = TaskLoad::cells_of(&set, policy).unwrap_or_else(|(what, fix)| {
            faults.report(&workload.place, &["task"], what, fix);
            set.cells
        });
    }
    load
}

fn task(node: &Node<'_>) -> CellTask {
    let (wcet, period) = (node.time_or_zero("wcet"), node.time_or_zero("period"));
    CellTask {
        deadline: node.time("deadline").unwrap_or(period),
        priority: node.integer("priority"),
        ..CellTask::new(node.text("name"), wcet, period)
    }
}

/// Gives the cells of a set the reservations of `[workload]`.
fn reserve(
    workload: &Node<'_>,
    cells: &mut [TaskCell],
    file: Option<&str>,
    faults: &mut Faults<'_>,
) {
    let nodes = workload.tables("reservation");
    if let (false, Some(file)) = (nodes.is_empty(), file) {
        faults.report(
            &workload.place,
            &["reservation"],
            format!("the tasks are in {file}, so the reservations of their cells belong there too"),
            "write `reservation = { budget = \"3ms\", period = \"10ms\" }` below [[cell]] in that file, or move the tasks here as [[workload.task]]",
        );
        return;
    }
    let names: Vec<String> = cells.iter().map(|cell| cell.name.clone()).collect();
    for node in nodes {
        let mut fault = |keys: &[&str], what: String, fix: &str| {
            faults.report(&node.place, keys, what, fix);
        };
        let name = node.text("cell");
        let Some(cell) = cells.iter_mut().find(|cell| cell.name == name) else {
            let known = format!("the cells are {}", names.join(", "));
            fault(&["cell"], format!("cell `{name}` has no task"), &known);
            continue;
        };
        if cell.reservation.is_some() || cell.server.is_some() {
            let what = format!("cell `{name}` has two reservations");
            fault(&["cell"], what, "remove one");
            continue;
        }
        let (budget, period) = (node.time("budget"), node.time("period"));
        for (key, other, example, is_lacking) in [
            (
                "period",
                "budget",
                "\"10ms\"",
                budget.is_some() && period.is_none(),
            ),
            (
                "budget",
                "period",
                "\"3ms\"",
                period.is_some() && budget.is_none(),
            ),
        ] {
            if is_lacking {
                let (what, fix) = node.lacks(key, example);
                fault(&[key, other], what, &fix);
            }
        }
        let reservation = budget.zip(period).map(|(budget, period)| Reservation {
            budget,
            period,
            deadline: period,
        });
        if let Some(found) = reservation.and_then(|own| own.fault()) {
            fault(&[found.key], found.what, &found.fix);
        }
        let (cpu, priority) = (node.count("cpu"), node.integer("priority"));
        if (budget, period, cpu, priority) == (None, None, None, None) {
            let what = format!("the reservation of cell `{name}` is empty");
            let fix = "give budget and period, or cpu, or priority";
            fault(&["cell", "budget", "period", "cpu", "priority"], what, fix);
        }
        cell.reservation = reservation;
        cell.server = (cpu.is_some() || priority.is_some()).then_some(CellServer {
            kind: ServerKind::Deferrable,
            priority,
            cpu,
        });
    }
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
    fn faults_have_their_line_and_fix() {
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
                "x:5: `steps` has no meaning for kind \"taskset\"",
            ),
            (
                parse("jobs = 5\n", TASKS, TRIAL),
                "x:5: `jobs` has no meaning for kind \"taskset\"",
            ),
            (parse("", "", TRIAL), "no task set is given"),
            (
                parse("tasks = \"y\"\n", TASKS, TRIAL),
                "both as a file and below",
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
            (parse("", TASKS, &own_period), "name one engine"),
        ] {
            let error = found.unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
