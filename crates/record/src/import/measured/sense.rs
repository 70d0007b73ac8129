//! What an entry in the list of formats says, and which of them a file is of, by what its opening holds.

use std::borrow::Cow;

use model::InputError;

use super::{FORMATS, Measured, Options, Source};
use crate::export::not_read_back;
use crate::import::format::{self, Described};
use crate::import::taskset;

/// How a format is known and read: what each file of this folder gives.
pub struct Reader {
    /// The name by which users ask for it.
    pub(super) name: &'static str,
    /// Which files these are, for `--help`.
    pub(super) files: &'static str,
    /// Whether a file that opens so is of this format.
    pub(super) looks_like: fn(&Head) -> bool,
    /// Whether files leave their unit open, so that the caller may say it.
    pub(super) unit_is_open: bool,
    /// Whether a file without any value is a result, as of tools that write only what is above a threshold.
    pub(super) may_be_empty: bool,
    /// Reads one; `file`, `format` and what is true of every file are set and checked by the caller.
    pub(super) read: fn(&mut Source, Options) -> Result<Measured, InputError>,
}

impl Reader {
    /// One that says its unit and holds at least one value.
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
    /// The one whose files open so.
    pub fn of(bytes: &[u8]) -> Option<Format> {
        let head = Head::of(bytes);
        Format::all().find(|format| (format.entry().looks_like)(&head))
    }
}

/// The opening of a file.
pub struct Head<'a> {
    /// As it is.
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

    /// Whether it holds bytes of 0, as no text does.
    pub(super) fn binary(&self) -> bool {
        self.bytes.contains(&0)
    }

    /// Whether it is text and holds this.
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
            Format::names().join(", ")
        ),
    ))
}
