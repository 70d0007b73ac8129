use std::collections::HashSet;

use super::super::CellTask;
use super::field::{faulty, name};
use crate::reader::Table;
use crate::{Duration, InputError};

pub(super) const TASK: [&str; 7] = [
    "name", "wcet", "period", "deadline", "jitter", "blocking", "priority",
];

pub(super) fn task(table: &Table<'_>, taken: &mut HashSet<String>) -> Result<CellTask, InputError> {
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
