//! The task-set file: TOML to [`TaskSet`]. The top level is here, a cell with its reservation, its policy, a task, and what every
//! table's fields share in files of their own.

mod cell;
mod field;
mod policy;
mod server;
mod task;
#[cfg(test)]
mod tests;

use field::choice;
use toml::de::DeTable;

use super::{Limits, Refill, SCHEMA, TaskSet};
use crate::Enforcer;
use crate::InputError;
use crate::reader::{Source, Table};

const TOP: [&str; 5] = ["schema", "cpus", "refill", "enforcer", "cell"];

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
        let tables = cell::tables(&top)?;
        let set = TaskSet {
            cpus: cpus.and_then(|n| u32::try_from(n).ok()),
            refill: choice(&top, "refill", &Refill::NAMES)?.unwrap_or_default(),
            enforcer: choice(&top, "enforcer", &Enforcer::names(Enforcer::OF_ANALYSIS))?,
            cells: cell::cells(&tables)?,
        };
        server::check(&top, &tables, &set)?;
        Ok(set)
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
