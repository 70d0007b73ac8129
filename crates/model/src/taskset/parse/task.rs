//! The tasks of a cell.

use std::collections::HashSet;

use super::super::CellTask;
use super::field::{choice, faulty, name, time};
use crate::reader::Table;
use crate::{Duration, InputError};

pub(super) const TASK: [&str; 9] = [
    "name",
    "wcet",
    "period",
    "deadline",
    "jitter",
    "blocking",
    "priority",
    "criticality",
    "wcet_hi",
];

pub(super) fn task(table: &Table<'_>, taken: &mut HashSet<String>) -> Result<CellTask, InputError> {
    let name = name(table, taken, "task")?;
    let wcet = time(table, "wcet")?.ok_or_else(|| table.missing("wcet", "\"1ms\""))?;
    let period = time(table, "period")?.ok_or_else(|| table.missing("period", "\"10ms\""))?;
    let zero = Duration::from_ns(0);
    let task = CellTask {
        name,
        wcet,
        period,
        deadline: time(table, "deadline")?.unwrap_or(period),
        jitter: time(table, "jitter")?.unwrap_or(zero),
        blocking: time(table, "blocking")?.unwrap_or(zero),
        priority: table.integer("priority", &(i64::from(i32::MIN)..=i64::from(i32::MAX)))?,
        wcet_high: wcet_high(table, wcet)?,
    };
    match task.fault() {
        Some(fault) => Err(faulty(table, fault)),
        None => Ok(task),
    }
}

/// The execution time in high mode of a task of high criticality, the same as in low mode unless the file says it.
fn wcet_high(table: &Table<'_>, wcet: Duration) -> Result<Option<Duration>, InputError> {
    let high = choice(table, "criticality", &[("lo", false), ("hi", true)])?.unwrap_or(false);
    let wcet_high = time(table, "wcet_hi")?;
    if wcet_high.is_some() && !high {
        return Err(table.fault(
            "wcet_hi",
            "only a task of high criticality runs on in high mode",
            "add criticality = \"hi\" or remove `wcet_hi`",
        ));
    }
    Ok(high.then(|| wcet_high.unwrap_or(wcet)))
}
