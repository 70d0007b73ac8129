//! The task-set file: TOML to [`TaskSet`].

use std::collections::HashSet;

use toml::de::DeTable;

use super::{CellTask, Fault, Limits, Order, Policy, Reservation, SCHEMA, TaskCell, TaskSet};
use crate::reader::{Source, Table, nearest};
use crate::{Duration, InputError};

const TOP: [&str; 3] = ["schema", "cpus", "cell"];
const CELL: [&str; 5] = ["name", "policy", "order", "reservation", "task"];
const RESERVATION: [&str; 3] = ["budget", "period", "deadline"];
const TASK: [&str; 7] = [
    "name", "wcet", "period", "deadline", "jitter", "blocking", "priority",
];

impl TaskSet {
    /// Reads a task-set file; `name` is what messages call it, usually its path.
    ///
    /// # Errors
    /// The first fault, with its line and what would be right.
    pub fn parse(name: &str, text: &str) -> Result<TaskSet, InputError> {
        let source = Source { name, text };
        let document = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = error.message().replace('\n', ", ");
            source.error(offset, format!("not TOML: {message}"), "")
        })?;
        let top = Table::new(source, "the top level", 0, document.get_ref(), &TOP)?;
        schema(&top)?;
        let cpus = top.integer("cpus", &Limits::CPUS)?;
        Ok(TaskSet {
            cpus: cpus.and_then(|n| u32::try_from(n).ok()),
            cells: cells(&top)?,
        })
    }
}

fn schema(top: &Table<'_>) -> Result<(), InputError> {
    let schema = top
        .integer("schema", &(1..=i64::MAX))?
        .ok_or_else(|| top.missing("schema", &SCHEMA.to_string()))?;
    if schema > SCHEMA {
        return Err(top.fault(
            "schema",
            format!("schema {schema} is newer than this timecell, which reads up to {SCHEMA}"),
            "use a newer timecell",
        ));
    }
    Ok(())
}

fn faulty(table: &Table<'_>, fault: Fault) -> InputError {
    table.fault(fault.key, fault.what, fault.mend)
}

fn choice<T: Copy>(
    table: &Table<'_>,
    key: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, InputError> {
    let Some(text) = table.text(key)? else {
        return Ok(None);
    };
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(Some(*value));
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let near = nearest(text, &names)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default();
    Err(table.fault(
        key,
        format!("unknown {key} `{text}`"),
        format!("{near}it is one of {}", names.join(", ")),
    ))
}

/// A name that tables can show: not empty, not long, nothing that a terminal obeys.
fn name(table: &Table<'_>, taken: &mut HashSet<String>, kind: &str) -> Result<String, InputError> {
    let name = table
        .text("name")?
        .ok_or_else(|| table.missing("name", &format!("\"my-{kind}\"")))?;
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(table.fault(
            "name",
            format!("this is no name for a {kind}"),
            "use 1 to 64 characters",
        ));
    }
    if !taken.insert(name.to_owned()) {
        return Err(table.fault(
            "name",
            format!("there are two {kind}s named `{name}`"),
            "give each its own name",
        ));
    }
    Ok(name.to_owned())
}

fn cells(top: &Table<'_>) -> Result<Vec<TaskCell>, InputError> {
    let tables = top.tables("cell", &CELL)?;
    if tables.is_empty() {
        return Err(top.fault(
            "cell",
            "the file has no cell",
            "add [[cell]] with a name, and [[cell.task]] below it",
        ));
    }
    if tables.len() > Limits::CELLS {
        return Err(top.fault(
            "cell",
            format!("there are {} cells", tables.len()),
            format!("a task set has at most {}", Limits::CELLS),
        ));
    }
    let mut names = HashSet::new();
    let mut room = Limits::TASKS;
    tables
        .iter()
        .map(|table| cell(table, &mut names, &mut room))
        .collect()
}

fn cell(
    table: &Table<'_>,
    names: &mut HashSet<String>,
    room: &mut usize,
) -> Result<TaskCell, InputError> {
    let name = name(table, names, "cell")?;
    let edf = choice(table, "policy", &[("fp", false), ("edf", true)])?.unwrap_or(false);
    let order = choice(table, "order", &Order::NAMES)?;
    if edf && order.is_some() {
        return Err(table.fault(
            "order",
            "policy \"edf\" has no order",
            "remove the line or set policy = \"fp\"",
        ));
    }
    let tables = table.tables_below("cell.", "task", &TASK)?;
    if tables.is_empty() {
        return Err(table.fault(
            "task",
            format!("cell `{name}` has no task"),
            "add [[cell.task]] with name, wcet and period",
        ));
    }
    let within = room.checked_sub(tables.len());
    *room = within.ok_or_else(|| {
        let most = format!("a task set has at most {}", Limits::TASKS);
        table.fault("task", "there are too many tasks", most)
    })?;
    let mut taken = HashSet::new();
    let tasks = tables
        .iter()
        .map(|table| task(table, &mut taken))
        .collect::<Result<Vec<_>, _>>()?;
    // Priorities that nobody would look at are a mistake that nobody would see.
    let by_priority = !edf && matches!(order, None | Some(Order::Priority));
    let given = tasks.iter().position(|task| task.priority.is_some());
    if let Some(place) = given.filter(|_| !by_priority) {
        let who = order.map_or("policy = \"edf\"".to_owned(), |o| {
            format!("order = \"{}\"", o.name())
        });
        return Err(tables[place].fault(
            "priority",
            format!("`priority` has no meaning with {who}"),
            "remove one of the two",
        ));
    }
    let order = order.unwrap_or(match given {
        Some(_) => Order::Priority,
        None => Order::Deadline,
    });
    let policy = if edf {
        Policy::Edf
    } else {
        Policy::Fixed(order)
    };
    let cell = TaskCell {
        name,
        policy,
        reservation: reservation(table)?,
        tasks,
    };
    match cell.priority_fault() {
        Some((place, fault)) => Err(faulty(&tables[place], fault)),
        None => Ok(cell),
    }
}

fn reservation(cell: &Table<'_>) -> Result<Option<Reservation>, InputError> {
    let Some(table) = cell.table("reservation", &RESERVATION)? else {
        return Ok(None);
    };
    let budget = table
        .duration("budget")?
        .ok_or_else(|| table.missing("budget", "\"2ms\""))?;
    let period = table
        .duration("period")?
        .ok_or_else(|| table.missing("period", "\"10ms\""))?;
    let reservation = Reservation {
        budget,
        period,
        deadline: table.duration("deadline")?.unwrap_or(period),
    };
    match reservation.fault() {
        Some(fault) => Err(faulty(&table, fault)),
        None => Ok(Some(reservation)),
    }
}

fn task(table: &Table<'_>, taken: &mut HashSet<String>) -> Result<CellTask, InputError> {
    let name = name(table, taken, "task")?;
    let wcet = table
        .duration("wcet")?
        .ok_or_else(|| table.missing("wcet", "\"1ms\""))?;
    let period = table
        .duration("period")?
        .ok_or_else(|| table.missing("period", "\"10ms\""))?;
    let zero = Duration::from_ns(0);
    let task = CellTask {
        name,
        wcet,
        period,
        deadline: table.duration("deadline")?.unwrap_or(period),
        jitter: table.duration("jitter")?.unwrap_or(zero),
        blocking: table.duration("blocking")?.unwrap_or(zero),
        priority: table.integer("priority", &(i64::from(i32::MIN)..=i64::from(i32::MAX)))?,
    };
    match task.fault() {
        Some(fault) => Err(faulty(table, fault)),
        None => Ok(task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"schema = 1
cpus = 2

[[cell]]
name = "control"
reservation = { budget = "5ms", period = "10ms", deadline = "8ms" }

[[cell.task]]
name = "loop"
wcet = "1ms"
period = "10ms"
deadline = "9ms"
jitter = "100us"

[[cell.task]]
name = "log"
wcet = "2.5ms"
period = "40ms"

[[cell]]
name = "vision"
policy = "edf"

[[cell.task]]
name = "frame"
wcet = "8ms"
period = "33ms"
"#;

    fn error(text: &str) -> String {
        TaskSet::parse("set.toml", text)
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn defaults_are_filled_in() {
        let set = TaskSet::parse("set.toml", GOOD).expect("good");
        assert_eq!(set.cpus, Some(2));
        let [control, vision] = set.cells.as_slice() else {
            panic!("two cells");
        };
        assert_eq!(control.policy, Policy::Fixed(Order::Deadline));
        assert_eq!(vision.policy, Policy::Edf);
        assert_eq!(vision.reservation, None);
        assert_eq!(control.tasks[0].deadline.ns(), 9_000_000);
        assert_eq!(control.tasks[1].deadline.ns(), 40_000_000);
        assert_eq!(control.tasks[1].jitter.ns(), 0);
        assert_eq!(set.tasks(), 3);
    }

    #[test]
    fn each_fault_has_its_line_and_mend() {
        for (from, to, parts) in [
            ("schema = 1\n", "", ["set.toml:1:", "schema = 1"]),
            ("schema = 1", "schema = 2", ["set.toml:1:", "newer"]),
            ("cpus = 2", "cpus = 0", ["set.toml:2:", "1 to 4096"]),
            (
                "cpus = 2",
                "cpu = 2",
                ["set.toml:2:", "did you mean `cpus`?"],
            ),
            (
                "jitter =",
                "jiter =",
                ["set.toml:13:", "did you mean `jitter`?"],
            ),
            ("jitter =", "foo =", ["set.toml:13:", "in [[cell.task]]"]),
            (
                "wcet = \"1ms\"",
                "wcet = 1",
                ["set.toml:10:", "has no unit"],
            ),
            (
                "wcet = \"1ms\"",
                "wcet = \"-1ms\"",
                ["set.toml:10:", "negative"],
            ),
            (
                "wcet = \"1ms\"",
                "wcet = \"0ms\"",
                ["set.toml:10:", "at least 1ns"],
            ),
            (
                "wcet = \"1ms\"",
                "wcet = \"11ms\"",
                ["set.toml:10:", "at most the deadline"],
            ),
            ("wcet = \"1ms\"\n", "", ["set.toml:8:", "wcet = \"1ms\""]),
            (
                "period = \"40ms\"",
                "period = \"40y\"",
                ["set.toml:18:", "unknown unit `y`"],
            ),
            (
                "period = \"40ms\"",
                "period = \"900000h\"",
                ["set.toml:18:", "36 years"],
            ),
            (
                "name = \"log\"",
                "name = \"loop\"",
                ["set.toml:16:", "two tasks named `loop`"],
            ),
            (
                "name = \"vision\"",
                "name = \"control\"",
                ["set.toml:21:", "two cells named"],
            ),
            (
                "\"edf\"",
                "\"efd\"",
                ["set.toml:22:", "did you mean `edf`?"],
            ),
            (
                "policy = \"edf\"",
                "policy = \"edf\"\norder = \"rm\"",
                ["set.toml:23:", "has no order"],
            ),
            (
                "budget = \"5ms\"",
                "budget = \"9ms\"",
                ["set.toml:6:", "at most the deadline"],
            ),
            ("budget = \"5ms\", ", "", ["set.toml:6:", "has no `budget`"]),
            (
                "deadline = \"8ms\"",
                "deadline = \"11ms\"",
                ["set.toml:6:", "at most the period"],
            ),
            (
                "deadline = \"9ms\"",
                "priority = 5",
                ["set.toml:15:", "has no priority"],
            ),
            (
                "name = \"frame\"",
                "name = \"frame\"\npriority = 3",
                ["set.toml:26:", "policy = \"edf\""],
            ),
            (
                "[[cell.task]]\nname = \"frame\"",
                "[cell.more]",
                ["set.toml:24:", "unknown key `more`"],
            ),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            for part in parts {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        assert!(error("schema = 1\n").contains("[[cell]]"));
        assert!(error("schema = 1\n[[cell]]\nname = \"x\"\n").contains("has no task"));
        assert!(error("schema = ").contains("not TOML"));
    }

    #[test]
    fn equal_priorities_are_refused() {
        let text = GOOD
            .replace("deadline = \"9ms\"", "priority = 5")
            .replace("period = \"40ms\"", "period = \"40ms\"\npriority = 5");
        assert!(error(&text).contains("both have priority 5"));
        let set = TaskSet::parse("x", &text.replacen("priority = 5", "priority = 6", 1));
        assert_eq!(
            set.expect("good").cells[0].policy,
            Policy::Fixed(Order::Priority)
        );
    }

    fn sets() -> impl Strategy<Value = TaskSet> {
        let time = 1i64..=Limits::LONGEST_NS / 4;
        let task = (time.clone(), time.clone(), time.clone(), 0i64..1000).prop_map(
            |(wcet, period, slack, jitter)| CellTask {
                deadline: Duration::from_ns(wcet + slack),
                jitter: Duration::from_ns(jitter),
                ..CellTask::new("", Duration::from_ns(wcet), Duration::from_ns(period))
            },
        );
        let reservation = (time.clone(), time.clone(), time).prop_map(|(a, b, c)| Reservation {
            budget: Duration::from_ns(a),
            deadline: Duration::from_ns(a + b),
            period: Duration::from_ns(a + b + c),
        });
        let policy = prop::sample::select(vec![
            Policy::Edf,
            Policy::Fixed(Order::Rate),
            Policy::Fixed(Order::Deadline),
            Policy::Fixed(Order::Priority),
            Policy::Fixed(Order::Listed),
        ]);
        let cell = (
            policy,
            prop::option::of(reservation),
            prop::collection::vec(task, 1..5),
        )
            .prop_map(|(policy, reservation, tasks)| TaskCell {
                name: String::new(),
                policy,
                reservation,
                tasks,
            });
        (
            prop::option::of(1u32..=4096),
            prop::collection::vec(cell, 1..5),
        )
            .prop_map(|(cpus, mut cells)| {
                for (i, cell) in cells.iter_mut().enumerate() {
                    cell.name = format!("cell \"{i}\" \\");
                    let by_priority = cell.policy == Policy::Fixed(Order::Priority);
                    for (i, task) in cell.tasks.iter_mut().enumerate() {
                        task.name = format!("t{i}");
                        task.priority = by_priority.then_some(i as i64 - 2);
                    }
                }
                TaskSet { cpus, cells }
            })
    }

    proptest! {
        #[test]
        fn writing_and_reading_give_the_same(set in sets()) {
            let text = set.to_toml();
            prop_assert_eq!(TaskSet::parse("x", &text).map_err(|e| e.to_string()), Ok(set));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = TaskSet::parse("x", &text);
        }

        #[test]
        fn no_mutilated_file_panics(at in 0usize..420, with in "\\PC{0,8}") {
            let mut text = GOOD.to_owned();
            let at = at.min(text.len());
            text.replace_range(at..(at + 3).min(GOOD.len()), &with);
            if let Err(error) = TaskSet::parse("x", &text) {
                prop_assert!(!error.what.is_empty());
                prop_assert!(error.line.is_some_and(|l| l >= 1 && l <= text.lines().count() + 1));
            }
        }
    }
}
