use std::collections::HashSet;

use super::super::{Limits, Order, Policy, Reservation, TaskCell};
use super::field::{choice, faulty, name};
use super::server::server;
use super::task::{TASK, task};
use crate::InputError;
use crate::reader::Table;

const CELL: [&str; 8] = [
    "name",
    "policy",
    "order",
    "reservation",
    "server",
    "priority",
    "cpu",
    "task",
];
const RESERVATION: [&str; 3] = ["budget", "period", "deadline"];

/// The tables of the cells.
pub(super) fn tables<'a>(top: &Table<'a>) -> Result<Vec<Table<'a>>, InputError> {
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
    Ok(tables)
}

pub(super) fn cells(tables: &[Table<'_>]) -> Result<Vec<TaskCell>, InputError> {
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
        server: server(table)?,
        tasks,
    };
    if let Some(fault) = cell.server_fault() {
        return Err(faulty(table, fault));
    }
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
