//! The entries of the list of formats, and recognising a file's format by its opening.

use std::borrow::Cow;

use model::InputError;

use super::grammar::{Grammar, Table, matches};
use super::lines::{self, Lines};
use super::small::HACKBENCH;
use super::{FORMATS, Measured, Options, Source};
use crate::export::not_read_back;
use crate::import::format::{self, Described};
use crate::import::source::LOGGED;
use crate::import::taskset;

/// How a format is recognised and read; each file of this folder provides some.
pub struct Reader {
    /// The name by which users ask for it.
    pub(super) name: &'static str,
    /// Which files these are, for `--help`.
    pub(super) files: &'static str,
    how: How,
    /// Whether files do not state their unit, so that the caller may.
    pub(super) unit_is_open: bool,
    /// Whether a file without values is a valid result, as for tools that write only values above a threshold.
    pub(super) may_be_empty: bool,
}

/// Reads a file; the caller sets `file` and `format` and makes the checks that are common to all formats.
type Read = fn(&mut Source, Options) -> Result<Measured, InputError>;

/// How a file of a format is recognised and read.
enum How {
    /// By its opening.
    Head(fn(&Head) -> bool, Read),
    /// By a line of text.
    Line(fn(&str) -> bool, Read),
    /// By a line that is a sign in a table of patterns.
    Table(&'static Grammar),
}

impl Reader {
    /// A format that states its unit and has at least one value.
    pub(super) const fn new(
        name: &'static str,
        files: &'static str,
        is: fn(&Head) -> bool,
        read: Read,
    ) -> Reader {
        Reader::by(name, files, How::Head(is, read))
    }

    const fn by(name: &'static str, files: &'static str, how: How) -> Reader {
        Reader {
            name,
            files,
            how,
            unit_is_open: false,
            may_be_empty: false,
        }
    }

    /// The same for text, whose lines mean something to `L`; one of its own lines recognises it.
    pub(super) const fn text<L: Lines + Default>(
        name: &'static str,
        files: &'static str,
        is: fn(&str) -> bool,
    ) -> Reader {
        let read: Read = |source, options| lines::read(source, options, L::default);
        Reader::by(name, files, How::Line(is, read))
    }

    /// The same for a table of patterns.
    pub(super) const fn table(grammar: &'static Grammar) -> Reader {
        let mut reader = Reader::by(grammar.name, grammar.files, How::Table(grammar));
        reader.unit_is_open = grammar.unit_ns.is_none();
        reader
    }

    /// The same without a unit in its files.
    pub(super) const fn without_unit(mut self) -> Reader {
        self.unit_is_open = true;
        self
    }

    /// The same for a tool that may find nothing.
    pub(super) const fn maybe_empty(mut self) -> Reader {
        self.may_be_empty = true;
        self
    }

    /// Whether this is one of its lines, if lines recognise it.
    fn is_of(&self, line: &str) -> bool {
        match self.how {
            How::Head(..) => false,
            How::Line(is, _) => is(line),
            How::Table(grammar) => matches(grammar.signs, line),
        }
    }

    pub(super) fn read(
        &self,
        source: &mut Source,
        options: Options,
    ) -> Result<Measured, InputError> {
        match self.how {
            How::Head(_, read) | How::Line(_, read) => read(source, options),
            How::Table(grammar) => lines::read(source, options, || Table::of(grammar)),
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
    /// The format of a file with this opening.
    pub(in crate::import) fn of(source: &Source) -> Option<Format> {
        let head = Head::of(source);
        Format::all().find(|format| match format.entry().how {
            How::Head(is, _) => is(&head),
            _ => head.line(|line| format.entry().is_of(line)),
        })
    }
}

/// The opening of a file.
pub struct Head<'a> {
    /// The bytes.
    pub(super) bytes: &'a [u8],
    text: Cow<'a, str>,
    /// The lines of text that is not JSON.
    lines: Vec<String>,
}

impl<'a> Head<'a> {
    fn of(source: &'a Source) -> Head<'a> {
        let mut head = Head {
            bytes: source.head(),
            text: String::from_utf8_lossy(source.head()),
            lines: Vec::new(),
        };
        if !head.binary() && !head.is_json() {
            head.lines.extend(source.opening());
        }
        head
    }

    /// Whether it contains zero bytes, as no text does.
    pub(super) fn binary(&self) -> bool {
        self.bytes.contains(&0)
    }

    /// Whether it is text, not JSON, and some line passes a test.
    pub(super) fn line(&self, test: impl Fn(&str) -> bool) -> bool {
        self.lines.iter().any(|line| test(line))
    }

    /// Whether it begins as JSON does.
    pub(super) fn is_json(&self) -> bool {
        let text = self.text.trim_start();
        !self.binary() && text.starts_with('{') && !text.starts_with(LOGGED)
    }

    /// Whether it is JSON whose outermost object has this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The text from the value of that key on.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        super::json::value(&self.text, key).filter(|_| self.is_json())
    }

    /// The program that wrote a file of rt-tests, by the command line in it.
    pub(super) fn program(&self) -> Option<&str> {
        super::json::program(&self.text)
    }
}

/// The format of which this is a line, unless it is of a load that may run beside a measurement.
pub(super) fn of_line(line: &str) -> Option<&'static str> {
    let is_of = |reader: &&Reader| reader.is_of(line) && reader.name != HACKBENCH.name;
    FORMATS.iter().find(is_of).map(|reader| reader.name)
}

/// The format of a file, by its opening.
pub(super) fn sense(source: &Source) -> Result<Format, InputError> {
    if let Some(format) = Format::of(source) {
        return Ok(format);
    }
    let head = Head::of(source);
    // Before task sets, which share columns with an isolation table.
    if let Some(study) = head.text.lines().next().and_then(not_read_back) {
        return Err(InputError::new(
            "",
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
        "",
        format!("not a file that can be drawn: {what}"),
        "`timecell report --help` lists the formats; --format chooses one",
    ))
}
