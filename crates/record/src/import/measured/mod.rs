//! What other tools measured: histograms and single values, read into one type, [`Measured`].
//!
//! A format is a file here and a line in `FORMATS`. Files are read as a stream. Nothing is dropped in silence: values
//! beyond a tool's histogram are an [`Overflow`], and a quantile that reaches into them is "above" or unknown, never the
//! last bucket. What a file leaves open becomes a note; contradictions are refused.

mod cyclictest_json;
mod cyclictest_text;
mod cyclictest_verbose;
mod distribution;
mod hackbench;
mod hdr_log;
mod iterations;
mod jitterdebugger;
mod jitterdebugger_text;
mod json;
mod oslat_text;
mod raw;
mod rt_app_log;
mod rt_tests_json;
mod rt_tests_text;
mod rteval_xml;
mod rtla;
mod rtla_top;
mod sense;
mod tally;
mod timecell_csv;
mod timecell_intervals;
mod timecell_parquet;
mod timecell_rows;

use std::fs::File;
use std::io::Read;

pub use distribution::{Distribution, Overflow, Reach, Said};
pub use sense::Format;

use model::InputError;

pub use super::source::MOST_BYTES;
use super::source::Source;
pub use super::taskset::Unit;
use super::words::{bounded, excerpt, shortened};

/// Every format. The first that recognises a file's opening reads it, so narrower formats come first.
const FORMATS: &[sense::Reader] = &[
    rt_tests_json::READER,
    cyclictest_json::OSLAT,
    cyclictest_json::READER,
    jitterdebugger::READER,
    rtla::READER,
    rtla_top::READER,
    rteval_xml::READER,
    hdr_log::READER,
    timecell_csv::READER,
    timecell_intervals::READER,
    timecell_parquet::READER,
    rt_app_log::READER,
    oslat_text::READER,
    jitterdebugger_text::READER,
    rt_tests_text::SIGNALTEST,
    rt_tests_text::PAIRS,
    cyclictest_verbose::READER,
    cyclictest_text::READER,
    iterations::READER,
    hackbench::READER,
    raw::READER,
];

/// A file of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its name in messages, usually its path.
    pub file: String,
    /// The format that it was read as; `None` for a run of our own.
    pub format: Option<Format>,
    /// The tool, such as `cyclictest`.
    pub tool: String,
    /// Its version, if the file has it.
    pub version: Option<String>,
    /// Its command line, if the file has it.
    pub command: Option<String>,
    /// The machine, if the file has it: kernel release, version and architecture.
    pub machine: Option<String>,
    /// One entry per thread, cpu or task; at least one.
    pub distributions: Vec<Distribution>,
    /// What the file claims to hold but does not, as a clause; its content then cannot show that a limit is kept.
    pub incomplete: Option<String>,
    /// What was assumed, rounded or left out by the tool or the import, one sentence each without a full stop.
    pub notes: Vec<String>,
}

/// What a file does not say itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Unit of the values, for formats that do not state it; `None`: the tool's default, with a note.
    pub unit: Option<Unit>,
}

/// Maximum number of distributions in one file.
const MOST_DISTRIBUTIONS: usize = 65_536;

impl Measured {
    /// Suffix of quantities whose values are figures of intervals, not single measurements.
    pub const OF_EACH_INTERVAL: &str = "of each interval";

    /// Empty, for this tool; [`import`] adds file and format.
    fn by(tool: &str) -> Measured {
        Measured {
            file: String::new(),
            format: None,
            tool: tool.to_owned(),
            version: None,
            command: None,
            machine: None,
            distributions: Vec::new(),
            incomplete: None,
            notes: Vec::new(),
        }
    }

    /// Adds a distribution, or replaces one of the same name: tools print a line repeatedly while they run. Returns a clause if
    /// both cannot be of one run.
    fn latest(&mut self, d: Distribution) -> Result<(), String> {
        match self.distributions.iter_mut().find(|old| old.name == d.name) {
            Some(old) => {
                d.said.follows(&old.said)?;
                *old = d;
            }
            None => self.distributions.push(d),
        }
        Ok(())
    }
}

/// Reads a file from its bytes; as [`import_from`].
///
/// # Errors
/// As [`import_from`].
pub fn import(
    format: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: Options,
) -> Result<Measured, InputError> {
    read(format, Source::new(name, bytes, None), options).map_err(bounded)
}

/// Reads a file on a disk; as [`import_from`].
///
/// # Errors
/// As [`import_from`].
pub fn import_file(
    format: Option<Format>,
    name: &str,
    file: File,
    options: Options,
) -> Result<Measured, InputError> {
    let again = file.try_clone().ok();
    read(format, Source::new(name, file, again), options).map_err(bounded)
}

/// Reads from `reader`, decompressed if it is gzip; `name` names it in messages. Without a `format`, the content decides.
///
/// # Errors
/// One sentence with the line, where there is one, that quotes no more than a few words of the file: the file is empty,
/// cut short, of no known format, says what cannot be true, or is larger than [`MOST_BYTES`].
pub fn import_from(
    format: Option<Format>,
    name: &str,
    reader: impl Read,
    options: Options,
) -> Result<Measured, InputError> {
    read(format, Source::new(name, reader, None), options).map_err(bounded)
}

fn read(
    format: Option<Format>,
    source: Result<Source, InputError>,
    options: Options,
) -> Result<Measured, InputError> {
    let mut source = source?;
    let name = source.name().to_owned();
    let stopped = "the tool that wrote it may have been stopped early";
    if source.head().iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::new(name, "the file is empty", stopped));
    }
    let format = match format {
        Some(format) => format,
        None => sense::sense(&name, source.head())?,
    };
    let reader = format.entry();
    if options.unit.is_some() && !reader.unit_is_open {
        let open = Format::all().filter(|format| format.entry().unit_is_open);
        let open: Vec<&str> = open.map(Format::name).collect();
        return Err(InputError::new(
            name,
            format!("a {} file states its unit itself", format.name()),
            format!("remove --unit; it is for {}", open.join(", ")),
        ));
    }
    let mut measured = (reader.read)(&mut source, options)?;
    measured.file.clone_from(&name);
    measured.format = Some(format);
    measured.notes.splice(0..0, source.take_notes());
    for d in &mut measured.distributions {
        d.notice_hidden_overflow();
        d.consistent().map_err(|what| {
            let what = format!("its figures contradict each other: {}: {what}", d.name);
            InputError::new(&name, what, "the file may be cut short, edited or damaged")
        })?;
    }
    measured.notes.extend(bins(&measured.distributions));
    let empty = measured.distributions.iter().all(Distribution::is_empty);
    if empty && !reader.may_be_empty {
        let what = "the file contains no measured value";
        return Err(InputError::new(name, what, stopped));
    }
    for text in [
        &mut measured.version,
        &mut measured.command,
        &mut measured.machine,
    ] {
        *text = text.take().map(|text| shortened(&text, 400).into_owned());
    }
    Ok(measured)
}

/// The note on values that are kept in bins.
fn bins(distributions: &[Distribution]) -> Option<String> {
    let bits = distributions.iter().filter_map(|d| d.bits).min()?;
    Some(format!(
        "there are too many different values to keep each: some series are rounded up to bins \
         that are up to {:.1} % of a value wide, except for the smallest and the largest value",
        100.0 / f64::from(1 << bits)
    ))
}

/// A fault at a line.
fn fault(name: &str, line: usize, what: impl Into<String>, fix: &str) -> InputError {
    InputError::new(name, what, fix).at(line)
}

/// `value` in units of `unit_ns` as ns, or a clause that says why not.
fn scaled(value: i64, unit_ns: i64) -> Result<i64, String> {
    value
        .checked_mul(unit_ns)
        .ok_or_else(|| format!("the value {value} is too large for a time"))
}

/// A decimal number in units of `unit_ns`, as ns, exact to the nanosecond and rounded beyond; or a clause that says why
/// not.
fn decimal(text: &str, unit_ns: i64) -> Result<i64, String> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let value: f64 = text
        .parse()
        .ok()
        .filter(|_| text.chars().all(plain))
        .ok_or_else(|| format!("`{}` is not a number", excerpt(text)))?;
    let ns = value * unit_ns as f64;
    // Beyond 2^53 a double no longer holds every nanosecond: 104 days.
    if ns.abs() < 9.007e15 {
        Ok(ns.round() as i64)
    } else {
        Err(format!(
            "the value {} is too large for a time",
            excerpt(text)
        ))
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_contradictions;
#[cfg(test)]
mod tests_of_rteval;
#[cfg(test)]
mod tests_of_truth;
