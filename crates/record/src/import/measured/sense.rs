//! The formats, one entry each, and which of them a file is of, by what its opening holds.

use std::borrow::Cow;
use std::fmt;

use model::InputError;

use super::{Measured, Options, Source};
use super::{
    cyclictest_json, cyclictest_text, cyclictest_verbose, hackbench, hdr_log, iterations,
    jitterdebugger, jitterdebugger_text, oslat_text, raw, rt_app_log, rt_tests_json, rt_tests_text,
    rteval_xml, rtla, rtla_top, timecell_csv, timecell_intervals, timecell_parquet,
};
use crate::export::not_read_back;
use crate::import::taskset;

/// Every format. The first that knows a file's opening as its own reads it, so what is narrower stands first.
static READERS: &[Reader] = &[
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

/// How a format is known and read: what each file of this folder gives.
pub(super) struct Reader {
    /// The name by which users ask for it.
    pub name: &'static str,
    /// Whether a file that opens so is of this format.
    pub senses: fn(&Head) -> bool,
    /// Whether files leave their unit open, so that the caller may say it.
    pub unit_is_open: bool,
    /// Whether a file without any value is a result, as of tools that write only what is above a threshold.
    pub may_be_empty: bool,
    /// Reads one; `file`, `format` and what is true of every file are set and checked by the caller.
    pub read: fn(&mut Source, Options) -> Result<Measured, InputError>,
}

impl Reader {
    /// One that says its unit and holds at least one value.
    pub(super) const fn new(
        name: &'static str,
        senses: fn(&Head) -> bool,
        read: fn(&mut Source, Options) -> Result<Measured, InputError>,
    ) -> Reader {
        Reader {
            name,
            senses,
            unit_is_open: false,
            may_be_empty: false,
            read,
        }
    }
}

/// A format of measured values.
#[derive(Clone, Copy)]
pub struct Format(&'static Reader);

impl Format {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Format> {
        READERS.iter().map(Format)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::all().find(|format| format.name() == name)
    }

    /// The one whose files open so.
    pub fn of(bytes: &[u8]) -> Option<Format> {
        let head = Head::of(bytes);
        Format::all().find(|format| (format.0.senses)(&head))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn reader(self) -> &'static Reader {
        self.0
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The opening of a file.
pub(super) struct Head<'a> {
    /// As it is.
    pub bytes: &'a [u8],
    text: Cow<'a, str>,
}

impl Head<'_> {
    fn of(bytes: &[u8]) -> Head<'_> {
        Head {
            bytes,
            text: String::from_utf8_lossy(bytes),
        }
    }

    /// Whether it holds bytes of 0, as no text does.
    pub fn binary(&self) -> bool {
        self.bytes.contains(&0)
    }

    /// Whether it is text and holds this.
    pub fn has(&self, part: &str) -> bool {
        !self.binary() && self.text.contains(part)
    }

    /// Whether it begins as JSON does.
    pub fn is_json(&self) -> bool {
        !self.binary() && self.text.trim_start().starts_with('{')
    }

    /// Whether it is text, not JSON, and some line passes a test.
    pub fn line(&self, test: impl Fn(&str) -> bool) -> bool {
        !self.binary()
            && !self.is_json()
            && self.text.split(['\n', '\r']).any(|line| test(line.trim()))
    }

    /// The program that wrote a file of rt-tests, by the command line in it.
    pub fn program(&self) -> Option<&str> {
        super::json::program(&self.text)
    }
}

/// Names of all formats, for messages.
pub(super) fn names() -> String {
    let names: Vec<&str> = Format::all().map(Format::name).collect();
    names.join(", ")
}

/// The format of a file, by its opening.
pub(super) fn sense(name: &str, bytes: &[u8]) -> Result<Format, InputError> {
    if let Some(format) = Format::of(bytes) {
        return Ok(format);
    }
    let head = Head::of(bytes);
    // Before task sets, which have columns in common with a table of isolation.
    if let Some(study) = head.text.lines().next().and_then(not_read_back) {
        return Err(InputError::new(
            name,
            format!("timecell's own table of {study} is not read back"),
            "`timecell report RUN` draws the run that it was exported from",
        ));
    }
    let tasks = taskset::Format::sensed(&head.text);
    let what = match tasks {
        Some(tool) => format!("it is a task set{tool}: `timecell analyze` reads it"),
        None if head.binary() => {
            "it is binary, and its records are not those of jitterdebugger's samples.raw".to_owned()
        }
        None if head.is_json() => match head.program() {
            Some("ssdd") => {
                "ssdd counts forks and steps and writes no time into its JSON".to_owned()
            }
            Some(program) => format!(
                "it is JSON of `{}`, which is not known here",
                super::excerpt(program)
            ),
            None => "it is JSON of no tool that is known here".to_owned(),
        },
        None => "its content is of no format that is known here".to_owned(),
    };
    Err(InputError::new(
        name,
        format!("not a file that can be drawn: {what}"),
        format!(
            "the formats are {}; --format says outright which it is",
            names()
        ),
    ))
}
