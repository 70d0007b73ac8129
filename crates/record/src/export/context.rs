//! The columns with which every row of a table identifies its run, trial and cell, so that tables of several runs can
//! be combined.

use std::path::Path;

use model::Experiment;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::RecordError;
use crate::run::Run;
use crate::trial::{CellRecord, TrialRecord};

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Integer(i64),
    Flag(bool),
    Text(String),
    /// ns since 1970 UTC; `None` if the record does not say.
    Instant(Option<i64>),
}

impl Value {
    /// As written in CSV: `true` and `false`, instants in RFC 3339.
    pub fn text(&self) -> String {
        match self {
            Value::Integer(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Text(text) => text.clone(),
            Value::Instant(ns) => ns.and_then(rfc_3339).unwrap_or_default(),
        }
    }
}

fn rfc_3339(ns: i64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ns)).ok()?;
    time.format(&Rfc3339).ok()
}

/// The columns with which every table begins.
pub(super) const WHERE: [&str; 2] = ["run", "host"];

/// The values of [`WHERE`]. The name of an emulated machine says that it is one.
pub(super) fn place_of(run: &Run) -> Result<[String; 2], RecordError> {
    let provenance = run.provenance()?;
    let mut host = provenance.hostname.unwrap_or_default();
    if provenance.virtualization.emulated.is_some() {
        host += &format!(" ({})", host::virt::NOT_REPRESENTATIVE);
    }
    Ok([run.name(), host])
}

/// Converts a failure to write a row.
pub(super) fn failed(path: &Path) -> impl Fn(::csv::Error) -> RecordError {
    let path = path.to_owned();
    move |error| match error.into_kind() {
        ::csv::ErrorKind::Io(error) => RecordError::io(&path, "write")(error),
        other => RecordError::malformed(&path, format!("{other:?}")),
    }
}

/// The facts of a run as a whole.
pub(super) struct Context {
    run: String,
    host: String,
    plan: Experiment,
}

/// The type of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Integer,
    Flag,
    Text,
    Instant,
}

/// One column: its name, its type, and where its value comes from.
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub of: fn(&Context, &TrialRecord, &CellRecord) -> Value,
}

/// The columns, in order.
pub(super) const COLUMNS: [Column; 13] = {
    use Value::{Flag, Instant, Integer, Text};
    [
        Column {
            name: "run",
            kind: Kind::Text,
            of: |context, _, _| Text(context.run.clone()),
        },
        Column {
            name: "host",
            kind: Kind::Text,
            of: |context, _, _| Text(context.host.clone()),
        },
        Column {
            name: "trial",
            kind: Kind::Integer,
            of: |_, trial, _| Integer(i64::from(trial.number)),
        },
        Column {
            name: "round",
            kind: Kind::Integer,
            of: |_, trial, _| Integer(i64::from(trial.round)),
        },
        Column {
            name: "trial_failed",
            kind: Kind::Flag,
            of: |_, trial, _| Flag(trial.failure.is_some()),
        },
        Column {
            name: "trial_name",
            kind: Kind::Text,
            of: |_, trial, _| Text(trial.name.clone()),
        },
        Column {
            name: "started",
            kind: Kind::Instant,
            of: |_, trial, _| Instant(trial.go_unix_ns),
        },
        Column {
            name: "cell",
            kind: Kind::Text,
            of: |_, _, cell| Text(cell.id.clone() + cell.caution()),
        },
        Column {
            name: "engine",
            kind: Kind::Text,
            of: |_, _, cell| Text(cell.engine.to_string()),
        },
        Column {
            name: "class",
            kind: Kind::Text,
            of: |_, _, cell| {
                Text(
                    cell.class_got
                        .as_ref()
                        .unwrap_or(&cell.class_wanted)
                        .clone(),
                )
            },
        },
        Column {
            name: "cpu",
            kind: Kind::Integer,
            of: |_, _, cell| Integer(i64::from(cell.cpu)),
        },
        Column {
            name: "load",
            kind: Kind::Text,
            of: |_, trial, _| Text(loads(trial)),
        },
        Column {
            name: "period_ns",
            kind: Kind::Integer,
            of: |context, trial, cell| Integer(context.period(trial, cell)),
        },
    ]
};

/// The loads of a trial, `idle` if there were none.
fn loads(trial: &TrialRecord) -> String {
    if trial.loads.is_empty() {
        return model::IDLE.to_owned();
    }
    let kinds: Vec<String> = trial
        .loads
        .iter()
        .map(|load| load.kind.to_string())
        .collect();
    kinds.join("+")
}

impl Context {
    pub fn of(run: &Run) -> Result<Context, RecordError> {
        let plan = run.experiment()?;
        let [name, host] = place_of(run)?;
        Ok(Context {
            run: name,
            host,
            plan,
        })
    }

    /// The values of [`COLUMNS`].
    pub fn values(&self, trial: &TrialRecord, cell: &CellRecord) -> Vec<Value> {
        COLUMNS
            .iter()
            .map(|column| (column.of)(self, trial, cell))
            .collect()
    }

    fn period(&self, trial: &TrialRecord, cell: &CellRecord) -> i64 {
        if let Some(task) = &cell.task {
            return task.period_ns;
        }
        match self.plan.trial(&trial.name) {
            Some(of) => {
                let place = of.place_of(&cell.id).unwrap_or(usize::MAX);
                self.plan.task_of(of, place).period.ns()
            }
            None => self.plan.workload.period.ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_csv_has_them() {
        assert_eq!(Value::Flag(true).text(), "true");
        assert_eq!(Value::Instant(None).text(), "");
        assert_eq!(
            Value::Instant(Some(1_500_000_000)).text(),
            "1970-01-01T00:00:01.5Z"
        );
    }
}
