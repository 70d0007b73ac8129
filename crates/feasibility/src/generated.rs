//! A random set as a task set of one cell.

use analysis::generate::{GenerateError, Recipe};
use model::Duration;
use model::taskset::{CellTask, Policy, Refill, TaskCell, TaskSet};

/// The first set of a recipe as a task set of one cell.
///
/// # Errors
/// When the recipe makes no set.
pub fn generated(recipe: &Recipe, policy: Policy) -> Result<TaskSet, GenerateError> {
    let time = |ns: u64| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    let tasks = recipe.set(0)?;
    let tasks = tasks.iter().enumerate().map(|(place, task)| CellTask {
        deadline: time(task.deadline),
        ..CellTask::new(
            format!("t{}", place + 1),
            time(task.wcet),
            time(task.period),
        )
    });
    Ok(TaskSet {
        cpus: None,
        refill: Refill::default(),
        enforcer: None,
        cells: vec![TaskCell {
            name: "generated".to_owned(),
            policy,
            reservation: None,
            server: None,
            tasks: tasks.collect(),
        }],
    })
}
