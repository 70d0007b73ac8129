//! The cells of a task-set file.

use std::collections::HashSet;

use super::super::{Limits, Policy, Reservation, TaskCell};
use super::field::{faulty, name, time};
use super::policy::{ordered, policy};
use super::server::server;
use super::task::{TASK, task};
use crate::InputError;
use crate::reader::Table;

const CELL: [&str; 9] = [
    "name",
    "policy",
    "order",
    "cpus",
    "reservation",
    "server",
    "priority",
    "cpu",
    "task",
];
const RESERVATION: [&str; 4] = ["budget", "period", "deadline", "cpus"];

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
    let reserved = table.table("reservation", &RESERVATION)?;
    let (policy, order) = policy(table, reserved.as_ref())?;
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
    let policy = ordered(policy, order, &tasks, &tables)?;
    let cell = TaskCell {
        name,
        policy,
        reservation: reserved
            .map(|table| reservation(&table, policy))
            .transpose()?,
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

fn reservation(table: &Table<'_>, policy: Policy) -> Result<Reservation, InputError> {
    let budget = time(table, "budget")?.ok_or_else(|| table.missing("budget", "\"2ms\""))?;
    let period = time(table, "period")?.ok_or_else(|| table.missing("period", "\"10ms\""))?;
    let reservation = Reservation {
        budget,
        period,
        deadline: time(table, "deadline")?.unwrap_or(period),
    };
    if reservation.deadline != period && policy.cpus().is_some() {
        return Err(table.fault(
            "deadline",
            "a reservation on several cpus has no deadline of its own",
            "remove it: the budget is supplied by the end of each period",
        ));
    }
    match reservation.fault_on(policy.cpus().unwrap_or(1)) {
        Some(fault) => Err(faulty(table, fault)),
        None => Ok(reservation),
    }
}
