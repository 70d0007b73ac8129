//! What other tools measured: histograms and raw values, read into one type, [`Measured`].
//!
//! One file per format. Nothing is dropped in silence: values beyond a tool's histogram are an [`Overflow`], and a
//! quantile that reaches into them is "above" or unknown, never the last bucket. What a file leaves open is a note.

mod cyclictest_json;
mod cyclictest_text;
mod distribution;
mod hackbench;
mod iterations;
mod jitterdebugger;
mod raw;
mod rt_app_log;
mod rtla;
mod sense;

pub use distribution::{Distribution, Overflow, Reach, Said, Timed};
pub use sense::Format;

use model::InputError;

pub use super::taskset::Unit;

/// A file of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What it is called in messages, usually its path.
    pub file: String,
    /// The format that it was read as; `None` for a run of our own.
    pub format: Option<Format>,
    /// The tool, such as `cyclictest`.
    pub tool: String,
    /// Its version, where the file says it.
    pub version: Option<String>,
    /// How it was called, where the file says it.
    pub command: Option<String>,
    /// The machine, where the file says it: kernel release, version and architecture.
    pub machine: Option<String>,
    /// One entry per thread, cpu or task; at least one.
    pub distributions: Vec<Distribution>,
    /// What was assumed, rounded or left out by the tool or the import, a sentence each without a full stop.
    pub notes: Vec<String>,
}

/// What a file does not say itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Unit of the values of jitterdebugger's samples.raw and of cyclictest's text; `None`: microseconds, with a note.
    pub unit: Option<Unit>,
}

/// Largest file that is read, in bytes.
pub const MOST_BYTES: u64 = 1 << 30;
/// Most distributions in one file.
const MOST_DISTRIBUTIONS: usize = 65_536;

/// Reads a file; `name` is what messages call it. Without a `format` the content tells it.
///
/// # Errors
/// One sentence with the line, where there is one: the file is empty, cut short, of no known format, or faulty.
pub fn import(
    format: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: Options,
) -> Result<Measured, InputError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::new(
            name,
            "the file is empty",
            "the tool that wrote it may have been stopped before its end",
        ));
    }
    let format = match format {
        Some(format) => format,
        None => sense::sense(name, bytes)?,
    };
    if options.unit.is_some()
        && !matches!(format, Format::JitterdebuggerRaw | Format::CyclictestText)
    {
        return Err(InputError::new(
            name,
            format!("a {} file says its unit itself", format.name()),
            "remove --unit; it is for cyclictest's text and jitterdebugger's samples.raw",
        ));
    }
    if format == Format::JitterdebuggerRaw {
        return raw::read(name, bytes, options);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + count_lines(&bytes[..error.valid_up_to()]);
        fault(name, line, "not UTF-8 text", "")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut measured = match format {
        Format::CyclictestJson | Format::OslatJson => cyclictest_json::read(name, text, format)?,
        Format::CyclictestText => cyclictest_text::read(name, text, options)?,
        Format::RtlaHist => rtla::read(name, text)?,
        Format::JitterdebuggerJson => jitterdebugger::read(name, text)?,
        Format::RtAppLog => rt_app_log::read(name, text)?,
        Format::Iterations => iterations::read(name, text)?,
        Format::Hackbench => hackbench::read(name, text)?,
        Format::JitterdebuggerRaw => raw::read(name, bytes, options)?,
    };
    for distribution in &mut measured.distributions {
        distribution.notice_hidden_overflow();
    }
    Ok(measured)
}

/// Newlines in a text.
fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// A fault at a line.
fn fault(name: &str, line: usize, what: impl Into<String>, mend: &str) -> InputError {
    InputError::new(name, what, mend).at(line)
}

/// The fault of JSON that does not parse; one that ends early is called so.
fn json_fault(name: &str, error: &serde_json::Error) -> InputError {
    use serde_json::error::Category;
    let line = error.line().max(1);
    match error.classify() {
        Category::Eof => fault(
            name,
            line,
            "cut short: the JSON ends here",
            "the tool that wrote it may have been stopped before its end",
        ),
        Category::Syntax => fault(name, line, format!("not JSON: {error}"), ""),
        _ => fault(
            name,
            line,
            format!("not as its tool writes it: {error}"),
            "",
        ),
    }
}

/// `value` of `unit_ns` each as ns, or a clause that says why not.
fn scaled(value: i64, unit_ns: i64) -> Result<i64, String> {
    value
        .checked_mul(unit_ns)
        .ok_or_else(|| format!("the value {value} is larger than any time"))
}

/// A decimal number of `unit_ns` each, in ns, exact to the nanosecond and rounded beyond; a clause says why not.
fn decimal(text: &str, unit_ns: i64) -> Result<i64, String> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let value: f64 = text
        .parse()
        .ok()
        .filter(|_| text.chars().all(plain))
        .ok_or_else(|| format!("`{text}` is no number"))?;
    let ns = value * unit_ns as f64;
    // Beyond 2^53 a double no longer holds every nanosecond: 104 days.
    if ns.abs() < 9.007e15 {
        Ok(ns.round() as i64)
    } else {
        Err(format!("the value {text} is larger than any time"))
    }
}

#[cfg(test)]
mod tests;
