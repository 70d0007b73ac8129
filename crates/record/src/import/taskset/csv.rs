//! Tables with a header that names columns and their units, such as rt-audit's
//! `task_name,runtime_us,period_us,deadline_us`. The order of columns differs from tool to tool, so a file without a
//! header, or a time without a unit, is refused rather than guessed.

use std::collections::HashMap;

use csv::{Position, ReaderBuilder, StringRecord};
use model::taskset::{CellTask, Order, Policy};
use model::{Duration, InputError};

use super::{
    Cells, Imported, Names, Options, Reader, Takes, Unit, excerpt, fault, faulty, policy, time,
};
use crate::import::source::cut;

/// The fields of columns, and their names.
const FIELDS: [(Field, &str); 8] = [
    (Field::Name, "name task task_name id task_id"),
    (Field::Cell, "cell partition container cpu core"),
    (
        Field::Wcet,
        "wcet runtime execution_time exec_time cost c e",
    ),
    (Field::Period, "period t p"),
    (Field::Deadline, "deadline relative_deadline d"),
    (Field::Jitter, "jitter release_jitter j"),
    (Field::Blocking, "blocking b"),
    (Field::Priority, "priority prio"),
];

/// Columns without which the verdict is the same: of remarks, of values derived from others, and of release instants, of which the analysis
/// takes the worst.
const IRRELEVANT: &str = "note notes comment comments description remark utilization utilisation util u offset phase index no nr number color colour";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Cell,
    Wcet,
    Period,
    Deadline,
    Jitter,
    Blocking,
    Priority,
}

impl Field {
    fn is_time(self) -> bool {
        !matches!(self, Field::Name | Field::Cell | Field::Priority)
    }
}

/// A column that is used: its index and unit.
struct Column {
    field: Field,
    place: usize,
    unit: Unit,
    title: String,
}

pub(super) const READER: Reader = Reader {
    name: "csv",
    files: "Comma-separated values, units in the header",
    endings: &["csv", "tsv"],
    looks_like: begins,
    whose: ", a table",
    takes: Takes {
        unit: false,
        policy: true,
    },
    read: |_, text, options| Ok(read(text, options)?),
};

/// Whether a text with this beginning is a table of tasks.
fn begins(head: &str) -> bool {
    let mut reader = reader(head);
    let header = reader.headers();
    header.is_ok_and(|header| columns(1, header, &mut Vec::new(), &mut Vec::new()).is_ok())
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(delimiter(text))
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes())
}

fn read(text: &str, options: Options) -> Result<Imported, InputError> {
    if !text.is_empty() && !text.ends_with(['\n', '\r']) {
        return Err(cut(text.lines().count()));
    }
    let mut reader = reader(text);
    let bad = |error: csv::Error| {
        let at = line_of(text, error.position());
        fault(at, format!("not CSV: {}", plain(&error)), fix(&error, text))
    };
    let header = reader.headers().map_err(bad)?.clone();
    let top = line_of(text, header.position());
    let mut notes = Vec::new();
    let mut uncovered = Vec::new();
    let columns = columns(top, &header, &mut notes, &mut uncovered)?;
    let has = |field| columns.iter().any(|column: &Column| column.field == field);
    let by_priority = has(Field::Priority) && !matches!(options.policy, Some(Policy::Edf));
    let policy = if by_priority {
        Policy::Fixed(Order::Priority)
    } else {
        policy(options, &mut notes)
    };
    let mut cells = Cells::default();
    let mut names = Names::default();
    let mut lines = HashMap::new();
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(bad)?;
        let at = line_of(text, record.position());
        let row = Row {
            at,
            columns: &columns,
            record: &record,
        };
        let title = match row.text(Field::Name) {
            Some(title) => title.to_owned(),
            None => format!("task {}", number + 1),
        };
        if !names.take(&title) {
            return Err(fault(
                at,
                format!(
                    "`{}` cannot be the name of a task, or is already taken",
                    excerpt(&title)
                ),
                "give each task a different name of 1 to 64 characters",
            ));
        }
        let task = row.task(title, by_priority)?;
        lines.insert(task.name.clone(), at);
        cells.count(at)?;
        let cell = match row.text(Field::Cell) {
            Some(cell) => cells.of(cell, cell, policy),
            None => cells.of("", "all", policy),
        };
        cell.tasks.push(task);
    }
    let set = cells.finish("write one line for each task below the header")?;
    for cell in &set.cells {
        if let Some((place, fault)) = cell.priority_fault() {
            let at = lines.get(&cell.tasks[place].name).copied().unwrap_or(1);
            return Err(faulty(at, fault));
        }
    }
    Ok(Imported {
        uncovered,
        ..Imported::of(set, notes)
    })
}

/// The separator of the header's fields.
fn delimiter(text: &str) -> u8 {
    let is_header = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let header = text.lines().find(is_header).unwrap_or_default();
    let count = |byte: u8| header.bytes().filter(|b| *b == byte).count();
    let most = [b';', b'\t', b',']
        .into_iter()
        .max_by_key(|&byte| count(byte));
    most.unwrap_or(b',')
}

/// The line of a record: the reader's own count does not include the empty lines and comments that it is about to skip.
fn line_of(text: &str, position: Option<&Position>) -> usize {
    let Some(position) = position else {
        return 1;
    };
    let mut line = usize::try_from(position.line()).unwrap_or(1).max(1);
    let offset = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = text.get(offset..).unwrap_or_default();
    for skipped in rest.lines() {
        if !skipped.trim_end_matches('\r').is_empty() && !skipped.starts_with('#') {
            break;
        }
        line += 1;
    }
    line
}

fn plain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("the line has {len} fields, but the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "the line is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

/// A decimal comma splits a number if commas separate the fields.
fn fix(error: &csv::Error, text: &str) -> &'static str {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } if len > expected_len && delimiter(text) == b',' => {
            "a number with a decimal comma, such as 1,5, counts as two fields; write 1.5"
        }
        _ => "",
    }
}

/// The columns that are used; the others are noted.
fn columns(
    line: usize,
    header: &StringRecord,
    notes: &mut Vec<String>,
    uncovered: &mut Vec<String>,
) -> Result<Vec<Column>, InputError> {
    const EXAMPLE: &str = "the first line must name columns and units, such as task_name,runtime_us,period_us,deadline_us";
    let mut columns: Vec<Column> = Vec::new();
    let mut unused = Vec::new();
    let mut relevant = Vec::new();
    for (place, title) in header.iter().enumerate() {
        let quoted = excerpt(title);
        let (stem, unit) = split_unit(title);
        let is_in = |names: &str| names.split(' ').any(|name| name == stem);
        let known = FIELDS.iter().find(|(_, names)| is_in(names));
        let Some((field, _)) = known.copied() else {
            if !is_in(IRRELEVANT) {
                relevant.push(quoted.clone());
            }
            unused.push(quoted);
            continue;
        };
        let unit = match (field.is_time(), unit) {
            (true, None) => {
                return Err(fault(
                    line,
                    format!("column `{quoted}` has no unit"),
                    &format!("name it `{quoted}_us`, `{quoted}_ms` or `{quoted}_ns`"),
                ));
            }
            (_, unit) => unit.unwrap_or(Unit::Us),
        };
        if let Some(first) = columns.iter().find(|column| column.field == field) {
            return Err(fault(
                line,
                format!("columns `{}` and `{quoted}` mean the same", first.title),
                "keep one",
            ));
        }
        columns.push(Column {
            field,
            place,
            unit,
            title: quoted.into_owned(),
        });
    }
    if columns.is_empty() && header.iter().any(|field| field.parse::<f64>().is_ok()) {
        return Err(fault(
            line,
            "the file begins with data, not with a header",
            EXAMPLE,
        ));
    }
    for (field, title) in [(Field::Wcet, "wcet"), (Field::Period, "period")] {
        if !columns.iter().any(|column| column.field == field) {
            return Err(fault(line, format!("there is no {title} column"), EXAMPLE));
        }
    }
    if !unused.is_empty() {
        notes.push(format!("unused columns: {}", unused.join(", ")));
    }
    if !relevant.is_empty() {
        uncovered.push(format!("columns are not used: {}", relevant.join(", ")));
    }
    Ok(columns)
}

/// `runtime_us`, `runtime (us)` and `runtime [us]` are the runtime in us.
fn split_unit(title: &str) -> (String, Option<Unit>) {
    let lower = title
        .trim()
        .to_lowercase()
        .replace(['\u{b5}', '\u{3bc}'], "u");
    let open = lower.trim_end_matches([')', ']']).trim_end();
    for (symbol, unit) in Unit::NAMES {
        let Some(stem) = open.strip_suffix(symbol) else {
            continue;
        };
        let bare = stem.trim_end_matches(['_', ' ', '(', '[', '-', '.']);
        if bare.len() < stem.len() && !bare.is_empty() {
            return (bare.replace([' ', '-'], "_"), Some(unit));
        }
    }
    (lower.replace([' ', '-'], "_"), None)
}

/// One line of the table.
struct Row<'a> {
    at: usize,
    columns: &'a [Column],
    record: &'a StringRecord,
}

impl Row<'_> {
    /// The column and its text, if the file has the column and the line the text.
    fn cell(&self, field: Field) -> Option<(&Column, &str)> {
        let column = self.columns.iter().find(|column| column.field == field)?;
        let text = self
            .record
            .get(column.place)
            .filter(|text| !text.is_empty())?;
        Some((column, text))
    }

    fn text(&self, field: Field) -> Option<&str> {
        self.cell(field).map(|(_, text)| text)
    }

    fn time(&self, field: Field) -> Result<Option<Duration>, InputError> {
        let Some((column, text)) = self.cell(field) else {
            return Ok(None);
        };
        time(text, column.unit.name())
            .map(Some)
            .map_err(|what| fault(self.at, format!("`{}`: {what}", column.title), ""))
    }

    fn required(&self, field: Field, title: &str) -> Result<Duration, InputError> {
        self.time(field)?
            .ok_or_else(|| fault(self.at, format!("the {title} is empty"), ""))
    }

    fn task(&self, title: String, by_priority: bool) -> Result<CellTask, InputError> {
        let wcet = self.required(Field::Wcet, "wcet")?;
        let period = self.required(Field::Period, "period")?;
        let zero = Duration::from_ns(0);
        let mut task = CellTask {
            deadline: self.time(Field::Deadline)?.unwrap_or(period),
            jitter: self.time(Field::Jitter)?.unwrap_or(zero),
            blocking: self.time(Field::Blocking)?.unwrap_or(zero),
            ..CellTask::new(title, wcet, period)
        };
        if by_priority {
            let text = self.text(Field::Priority).unwrap_or_default();
            let priority: i32 = text.parse().map_err(|_| {
                fault(
                    self.at,
                    format!("the priority is `{}`", excerpt(text)),
                    "it must be a whole number; a larger one is more urgent",
                )
            })?;
            task.priority = Some(priority.into());
        }
        match task.fault() {
            Some(fault) => Err(faulty(self.at, fault)),
            None => Ok(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::taskset::FIXED;
    use crate::import::taskset::{Format, import};
    use model::InputErrors;

    fn read(name: &str, text: &str, options: Options) -> Result<Imported, InputErrors> {
        import(Format::named("csv"), name, text.as_bytes(), options)
    }

    const GOOD: &str =
        "task_name,runtime_us,period_us,deadline_us\nvideo,2000,16000,10000\naudio,500.5,5000,\n";

    fn read_it(text: &str) -> Result<Imported, InputErrors> {
        read(
            "t.csv",
            text,
            Options {
                cpus: None,
                unit: None,
                policy: Some(Policy::Edf),
            },
        )
    }

    fn error(text: &str) -> String {
        read_it(text).expect_err("must be refused").to_string()
    }

    #[test]
    fn rows_are_tasks() {
        let read = read_it(GOOD).expect("good");
        assert!(read.notes.is_empty());
        let tasks = &read.set.cells[0].tasks;
        assert_eq!(
            (tasks[0].name.as_str(), tasks[0].deadline.ns()),
            ("video", 10_000_000)
        );
        assert_eq!(
            (tasks[1].wcet.ns(), tasks[1].deadline.ns()),
            (500_500, 5_000_000)
        );
    }

    #[test]
    fn columns_may_stand_anywhere_and_units_be_written_as_people_do() {
        let text = "# made by hand\nPeriod (ms);WCET [us];cell;Jitter-ns;note\n10;1000;a;5;x\n20;1000;b;0;y\n";
        let read = read_it(text).expect("good");
        assert_eq!(read.set.cells.len(), 2);
        let task = &read.set.cells[0].tasks[0];
        assert_eq!(
            (task.period.ns(), task.wcet.ns(), task.jitter.ns()),
            (10_000_000, 1_000_000, 5)
        );
        assert_eq!(read.notes, ["unused columns: note"]);
        assert_eq!(read.uncovered, [""; 0]);
    }

    #[test]
    fn priorities_make_it_fixed_priority() {
        let text = "name,c_ms,t_ms,priority\na,1,10,5\nb,1,20,9\n";
        let by_priority = read("t.csv", text, Options::default()).expect("good");
        assert_eq!(
            by_priority.set.cells[0].policy,
            Policy::Fixed(Order::Priority)
        );
        assert_eq!(by_priority.set.cells[0].by_urgency(), [1, 0]);
        let edf = read_it(text).expect("good");
        assert_eq!(edf.set.cells[0].policy, Policy::Edf);
        let fixed = read(
            "t.csv",
            GOOD,
            Options {
                cpus: None,
                unit: None,
                policy: Some(FIXED),
            },
        );
        assert_eq!(fixed.expect("good").set.cells[0].policy, FIXED);
    }

    #[test]
    fn equal_priorities_are_refused() {
        let text = "name,c_ms,t_ms,priority\na,1,10,5\nb,1,20,5\n";
        let error = read("t.csv", text, Options::default()).expect_err("refused");
        assert!(
            error
                .to_string()
                .starts_with("t.csv:3: tasks `a` and `b` both"),
            "{error}"
        );
    }

    #[test]
    fn each_fault_has_its_line() {
        for (text, parts) in [
            (
                "video,2000,16000,10000\n",
                ["t.csv:1:", "data, not with a header"],
            ),
            (
                "name,wcet,period\na,1,2\n",
                ["t.csv:1:", "name it `wcet_us`"],
            ),
            (
                "# who\nname,wcet_us\na,1\n",
                ["t.csv:2:", "no period column"],
            ),
            (
                "name,wcet_us,runtime_us,period_us\n",
                ["t.csv:1:", "mean the same"],
            ),
            (
                "name,wcet_us,period_us\na,1\n",
                ["t.csv:2:", "2 fields, but the header has 3"],
            ),
            (
                "name,wcet_ms,period_ms\na,1,5,20\n",
                ["t.csv:2:", "decimal comma"],
            ),
            (
                "name;wcet_ms;period_ms\na;1,5;20\n",
                ["t.csv:2:", "write 1.5"],
            ),
            (
                "name,wcet_us,period_us\n\n# b\na,x,10\n",
                ["t.csv:4:", "not a decimal number"],
            ),
            (
                "name,wcet_us,period_us\na,,10\n",
                ["t.csv:2:", "the wcet is empty"],
            ),
            (
                "name,wcet_us,period_us\na,11,10\n",
                ["t.csv:2:", "at most the deadline"],
            ),
            (
                "name,wcet_us,period_us\na,1,10\na,1,10\n",
                ["t.csv:3:", "taken"],
            ),
            ("name,wcet_us,period_us\n", ["t.csv:", "no task"]),
            ("", ["t.csv:", "the file is empty"]),
        ] {
            let error = error(text);
            for part in parts {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
    }
}
