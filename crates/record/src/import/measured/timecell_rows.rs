//! The rows of timecell's own CSV, of any kind of run.

use std::str::FromStr;

use model::InputError;

use super::{Source, excerpt, fault};

/// A table that is being read, after its header line.
pub(super) struct Table {
    name: String,
    head: csv::StringRecord,
}

/// One line of it, with a field for each of the header's.
pub(super) struct Row<'a> {
    table: &'a Table,
    record: csv::StringRecord,
    number: usize,
}

impl Table {
    /// Takes the header line.
    pub(super) fn begin(source: &mut Source) -> Result<Table, InputError> {
        let name = source.name().to_owned();
        match source.line()?.and_then(|(line, _)| fields(line)) {
            Some(head) => Ok(Table { name, head }),
            None => Err(InputError::new(&name, "the file has no header line", "")),
        }
    }

    /// Index of a column.
    pub(super) fn column(&self, wanted: &str) -> Option<usize> {
        self.head.iter().position(|field| field == wanted)
    }

    /// Index of a required column.
    pub(super) fn need(&self, wanted: &str) -> Result<usize, InputError> {
        let missing = || format!("the header has no column `{wanted}`");
        (self.column(wanted)).ok_or_else(|| fault(&self.name, 1, missing(), ""))
    }

    /// The next row; `None` at the end.
    pub(super) fn next(&self, source: &mut Source) -> Result<Option<Row<'_>>, InputError> {
        let Some((line, number)) = source.line()? else {
            return Ok(None);
        };
        let most = self.head.len();
        let record = fields(line).filter(|record| record.len() == most);
        let unlike = || format!("the row does not have the {most} fields of the header");
        let record = record.ok_or_else(|| fault(&self.name, number, unlike(), ""))?;
        Ok(Some(Row {
            table: self,
            record,
            number,
        }))
    }
}

impl Row<'_> {
    /// The text in a column.
    pub(super) fn text(&self, at: usize) -> &str {
        &self.record[at]
    }

    /// The whole number in a column.
    pub(super) fn whole<T: FromStr>(&self, at: usize) -> Result<T, InputError> {
        let text = self.text(at);
        let no_number = || self.fault(format!("`{}` is not a whole number", excerpt(text)));
        text.parse().map_err(|_| no_number())
    }

    /// What is wrong with this row.
    pub(super) fn fault(&self, what: impl Into<String>) -> InputError {
        fault(&self.table.name, self.number, what, "")
    }
}

/// The fields of one line.
fn fields(line: &str) -> Option<csv::StringRecord> {
    // Most lines quote nothing, and creating a reader of quotes takes 0.1 ms.
    if !line.contains('"') {
        return Some(line.split(',').collect());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(line.as_bytes());
    reader.records().next()?.ok()
}
