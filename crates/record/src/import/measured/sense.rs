//! The entries of the list of formats, and recognising a file's format by its first bytes.

use std::borrow::Cow;

use model::InputError;

use super::{FORMATS, Measured, Options, Source};
use crate::export::not_read_back;
use crate::import::format::{self, Described};
use crate::import::taskset;

/// How a format is recognised and read; each file of this folder provides one.
pub struct Reader {
    /// The name by which users ask for it.
    pub(super) name: &'static str,
    /// Which files these are, for `--help`.
    pub(super) files: &'static str,
    /// Whether a file with this opening is of this format.
    pub(super) looks_like: fn(&Head) -> bool,
    /// Whether files do not state their unit, so that the caller may.
    pub(super) unit_is_open: bool,
    /// Whether a file without values is a valid result, as for tools that write only what is above a threshold.
    pub(super) may_be_empty: bool,
    /// Reads one; the caller sets `file` and `format` and makes the checks that are common to all formats.
    pub(super) read: fn(&mut Source, Options) -> Result<Measured, InputError>,
}

impl Reader {
    /// A format that states its unit and has at least one value.
    pub(super) const fn new(
        name: &'static str,
        files: &'static str,
        looks_like: fn(&Head) -> bool,
        read: fn(&mut Source, Options) -> Result<Measured, InputError>,
    ) -> Reader {
        Reader {
            name,
            files,
            looks_like,
            unit_is_open: false,
            may_be_empty: false,
            read,
        }
    }
}

impl Described for Reader {
    const ALL: &'static [Reader] = FORMATS;

    fn name(&self) -> &'static str {
        self.name
    }

    fn files(&self) -> &'static str {
        self.files
    }
}

/// A format of measured values.
pub type Format = format::Format<Reader>;

impl Format {
    /// The format whose files have this opening.
    pub fn of(bytes: &[u8]) -> Option<Format> {
        let head = Head::of(bytes);
        Format::all().find(|format| (format.entry().looks_like)(&head))
    }
}

/// The opening of a file.
pub struct Head<'a> {
    /// The bytes.
    pub(super) bytes: &'a [u8],
    text: Cow<'a, str>,
}

impl Head<'_> {
    fn of(bytes: &[u8]) -> Head<'_> {
        Head {
            bytes,
            text: String::from_utf8_lossy(bytes),
        }
    }

    /// Whether it contains zero bytes, as no text does.
    pub(super) fn binary(&self) -> bool {
        self.bytes.contains(&0)
    }

    /// Whether it is text and contains this.
    pub(super) fn has(&self, part: &str) -> bool {
        !self.binary() && self.text.contains(part)
    }

    /// Whether it begins as JSON does.
    pub(super) fn is_json(&self) -> bool {
        !self.binary() && self.text.trim_start().starts_with('{')
    }

    /// Whether it is text, not JSON, and some line passes a test.
    pub(super) fn line(&self, test: impl Fn(&str) -> bool) -> bool {
        !self.binary()
            && !self.is_json()
            && self.text.split(['\n', '\r']).any(|line| test(line.trim()))
    }

    /// The program that wrote a file of rt-tests, by the command line in it.
    pub(super) fn program(&self) -> Option<&str> {
        super::json::program(&self.text)
    }
}

/// The format of a file, by its opening.
pub(super) fn sense(name: &str, bytes: &[u8]) -> Result<Format, InputError> {
    if let Some(format) = Format::of(bytes) {
        return Ok(format);
    }
    let head = Head::of(bytes);
    // Before task sets, which share columns with an isolation table.
    if let Some(study) = head.text.lines().next().and_then(not_read_back) {
        return Err(InputError::new(
            name,
            format!("timecell does not read back its own table of {study}"),
            "use `timecell report RUN` on the run from which it was exported",
        ));
    }
    let tasks = taskset::Format::sensed(&head.text);
    let what = match tasks {
        Some(tool) => format!("it is a task set{tool}, which `timecell analyze` reads"),
        None if head.binary() => {
            "it is binary, but does not have the records of jitterdebugger's samples.raw".to_owned()
        }
        None if head.is_json() => match head.program() {
            Some("ssdd") => {
                "ssdd counts forks and steps but writes no times into its JSON".to_owned()
            }
            Some(program) => format!(
                "it is JSON of `{}`, which timecell does not read",
                super::excerpt(program)
            ),
            None => "it is JSON of an unknown tool".to_owned(),
        },
        None => "its format is unknown".to_owned(),
    };
    Err(InputError::new(
        name,
        format!("not a file that can be drawn: {what}"),
        format!(
            "the formats are {}; choose one with --format",
            Format::names().join(", ")
        ),
    ))
}
