//! The table of a study without jobs in trials: which columns it has and how its rows are read, in any format of writing.

use super::{isolation, series, supply};
use crate::run::Run;
use crate::{Kind, RecordError};

/// A column behind `run` and `host`: its name and type. Numbers may be absent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    Text(&'static str),
    Integer(&'static str),
    Real(&'static str),
}

impl Column {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Column::Text(name) | Column::Integer(name) | Column::Real(name) => name,
        }
    }
}

/// Takes a row: the texts of its columns, empty where a number is absent.
pub(super) type Sink<'a> = dyn FnMut(&[String]) -> Result<(), RecordError> + 'a;

/// The table of one kind of run.
pub(super) struct Table {
    /// Its subject, as messages say it.
    pub of: &'static str,
    pub columns: &'static [Column],
    /// Reads the rows of a run, in the order of the record.
    pub rows: fn(&Run, &mut Sink<'_>) -> Result<(), RecordError>,
}

impl Table {
    /// All of them.
    pub(super) const ALL: [&'static Table; 3] = [&series::TABLE, &isolation::TABLE, &supply::TABLE];

    /// The table of runs of this kind; `None`: they have jobs in trials.
    pub(super) const fn of(kind: Kind) -> Option<&'static Table> {
        match kind {
            Kind::Series => Some(&series::TABLE),
            Kind::Supply => Some(&supply::TABLE),
            Kind::Isolation => Some(&isolation::TABLE),
            Kind::Jobs | Kind::Scale => None,
        }
    }

    /// The head line, without the columns that every table has.
    pub(super) fn head(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name()).collect();
        names.join(",")
    }
}
