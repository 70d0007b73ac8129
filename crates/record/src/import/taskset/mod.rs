//! Importing task sets of other tools: SchedCAT and CARTS (XML), rt-app (JSON), and tables (CSV) whose header names the units. Nothing is
//! guessed in silence: all parts of a file that timecell does not use are notes.

mod carts;
mod csv;
mod rt_app;
mod schedcat;
mod timecell;

use std::collections::{BTreeSet, HashSet};
use std::io::Read;

use super::format::{self, Described};
use super::measured;
use super::source::Source;
use super::words::{bounded, excerpt, fault, noted};
use model::taskset::{Fault, Limits, Order, Policy, Refill, TaskCell, TaskSet};
use model::{Duration, InputError, InputErrors};

/// Every format, in the order in which options name them. Of those that share a file extension, the first that recognises the
/// file reads it.
const FORMATS: &[Reader] = &[
    timecell::READER,
    schedcat::READER,
    carts::READER,
    rt_app::READER,
    csv::READER,
];

/// How a format is recognised and read; each file of this folder provides one.
pub struct Reader {
    /// The name by which users ask for it.
    name: &'static str,
    /// Which files these are, for `--help`.
    files: &'static str,
    /// The extensions of its files.
    endings: &'static [&'static str],
    /// Whether a text with this opening is of this format; the file name alone may decide.
    looks_like: fn(&str) -> bool,
    /// The origin, as the end of a clause.
    whose: &'static str,
    /// Whether its numbers have no units, and whether its files may lack a policy: elsewhere, the options for these have no effect.
    takes: Takes,
    /// Reads one: name, text, and facts that are left open.
    read: fn(&str, &str, Options) -> Result<Imported, InputErrors>,
}

/// Which options a format makes use of.
struct Takes {
    unit: bool,
    policy: bool,
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

/// A format of task sets.
pub type Format = format::Format<Reader>;

impl Format {
    /// The format indicated by a file's name, without the extension of gzip; if several have the extension, the content decides.
    /// A file called XML that is not goes to a reader of XML, which reports where it breaks off.
    fn of(name: &str, text: &str) -> Option<Format> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let (_, ending) = name.rsplit_once('.')?;
        let ending = ending.to_ascii_lowercase();
        let mut ends =
            Format::all().filter(|format| format.entry().endings.contains(&ending.as_str()));
        let first = ends.next()?;
        let mut all = std::iter::once(first).chain(ends);
        let alike = all.find(|format| (format.entry().looks_like)(text));
        Some(alike.unwrap_or(first))
    }

    /// The origin of a task set, by its opening, as the end of a clause, for readers of other kinds of files.
    pub(super) fn sensed(head: &str) -> Option<&'static str> {
        let mut all = Format::all().map(Format::entry);
        all.find(|reader| (reader.looks_like)(head))
            .map(|reader| reader.whose)
    }
}

model::choice! {
    /// The unit of numbers in a format without units.
    pub enum Unit {
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// Milliseconds.
        Ms = "ms",
        /// Seconds.
        S = "s",
    }
}

impl Unit {
    /// Nanoseconds in one unit.
    pub const fn ns(self) -> i64 {
        match self {
            Unit::Ns => 1,
            Unit::Us => 1_000,
            Unit::Ms => 1_000_000,
            Unit::S => 1_000_000_000,
        }
    }
}

/// Facts that a file leaves open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Unit of the numbers in SchedCAT and CARTS files; `None`: microseconds, with a note.
    pub unit: Option<Unit>,
    /// Policy for formats without one; `None`: earliest deadline first, with a note.
    pub policy: Option<Policy>,
    /// Number of cpus, for threads of rt-app files that may run on all; `None`: such files are refused.
    pub cpus: Option<u32>,
}

/// A task set, and its file's other facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The tasks.
    pub set: TaskSet,
    /// Assumptions and omissions, one sentence each.
    pub notes: Vec<String>,
    /// Names of cells whose threads have no real-time class: results on them would hold only if they had one.
    pub unguaranteed: Vec<String>,
    /// Parts of the file that the set lacks though they may matter to deadlines, a clause each: no verdict on the set is one on the file.
    pub uncovered: Vec<String>,
    /// Names of cells whose threads may run on several cpus and are to be tested on one of them.
    pub on_one_cpu: Vec<String>,
}

impl Imported {
    /// For threads that all have a real-time class.
    fn of(set: TaskSet, notes: Vec<String>) -> Imported {
        Imported {
            set,
            notes,
            unguaranteed: Vec::new(),
            uncovered: Vec::new(),
            on_one_cpu: Vec::new(),
        }
    }
}

/// The largest file that is read, in MiB: 100,000 tasks with long names.
const MOST_MIB: u64 = 64;

/// Reads a task set from its bytes; as [`import_from`].
///
/// # Errors
/// As [`import_from`].
pub fn import(
    format: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: Options,
) -> Result<Imported, InputErrors> {
    import_from(format, name, bytes, options)
}

/// Reads the task set from `reader`, decompressed if it is gzip; `name` names it in messages, usually its path. Without a
/// `format`, the name decides.
///
/// # Errors
/// The first fault (for our own format, every fault), with its line if it has one and how to fix it, in one sentence that
/// quotes no more than a few words of the file.
pub fn import_from(
    format: Option<Format>,
    name: &str,
    reader: impl Read,
    options: Options,
) -> Result<Imported, InputErrors> {
    let mut imported = read(format, name, reader, options)
        .map_err(|faults| faults.map(|fault| bounded(name, fault)))?;
    for note in imported.notes.iter_mut().chain(&mut imported.uncovered) {
        *note = noted(note);
    }
    Ok(imported)
}

fn read(
    format: Option<Format>,
    name: &str,
    reader: impl Read,
    options: Options,
) -> Result<Imported, InputErrors> {
    let mut source = Source::new(name, reader)?;
    // Measurements of a tool are not a task set, even with such a name.
    let measured = measured::Format::of(&source);
    let read = text(format, &mut source, options);
    let looks_like = measured.map(|measured| {
        let measured = measured.name();
        format!("it looks like {measured}, which `timecell report` reads")
    });
    read.map_err(|faults| {
        faults.map(|fault| InputError {
            fix: looks_like.clone().unwrap_or(fault.fix),
            ..fault
        })
    })
}

fn text(
    format: Option<Format>,
    source: &mut Source,
    options: Options,
) -> Result<Imported, InputErrors> {
    let text = source.text(MOST_MIB)?;
    let name = source.name();
    if text.trim().is_empty() {
        let fix = "the program that wrote it may have been stopped early";
        return Err(InputError::new(name, "the file is empty", fix).into());
    }
    let format = format.or_else(|| Format::of(name, &text));
    let format = format.ok_or_else(|| match model::foreign(&text) {
        Some((kind, fix)) if kind != "JSON" && kind != "XML" => {
            InputError::new(name, format!("it is {kind}, not a task set"), fix)
        }
        _ => {
            let fix = format!("add --format with one of {}", Format::names().join(", "));
            InputError::new(name, "the name does not show the format", fix)
        }
    })?;
    let reader = format.entry();
    let mut imported = (reader.read)(name, &text, options)?;
    let idle = [
        (
            "--unit",
            options.unit.is_some() && !reader.takes.unit,
            "their units",
        ),
        (
            "--policy",
            options.policy.is_some() && !reader.takes.policy,
            "their policies",
        ),
    ];
    for (option, _, what) in idle.into_iter().filter(|(_, is_idle, _)| *is_idle) {
        imported.notes.push(format!(
            "{option} has no effect: files of the format {} say {what} themselves",
            reader.name
        ));
    }
    imported.notes.splice(0..0, source.take_notes());
    Ok(imported)
}

/// The fault of a task that was read.
fn faulty(line: usize, fault: Fault) -> InputError {
    InputError::new("", fault.what, fault.fix).at(line)
}

/// A number of another tool and its unit as a time; the error is a clause on the fault.
fn time(number: &str, unit: &str) -> Result<Duration, String> {
    let number = number.trim();
    // 1000.0 and 1000. are how Python and Java print a whole number.
    let digits = number.strip_suffix('.').unwrap_or(number);
    if digits.starts_with('-') {
        return Err(format!("`{}` is negative", excerpt(number)));
    }
    if let Some((whole, fraction)) = digits.split_once(',')
        && [whole, fraction]
            .iter()
            .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(format!(
            "`{}` has a decimal comma; write {}.{}",
            excerpt(number),
            excerpt(whole),
            excerpt(fraction)
        ));
    }
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if digits.is_empty() || !plain {
        return Err(format!("`{}` is not a decimal number", excerpt(number)));
    }
    format!("{digits}{unit}")
        .parse::<Duration>()
        .map_err(|error| error.to_string())
}

/// Names as task sets allow them: 1 to 64 characters, no control characters, unique.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// The name itself, or the most similar one that is still free.
    fn unique(&mut self, wanted: &str) -> String {
        let clean = |c: char| if c.is_control() { '?' } else { c };
        let mut base: String = wanted.trim().chars().map(clean).take(64).collect();
        if base.is_empty() {
            base.push('?');
        }
        let mut name = base.clone();
        let mut number = self.0.len().max(2);
        if self.0.contains(&name) {
            number = 2;
        }
        while !self.0.insert(name.clone()) {
            let short: String = base.chars().take(52).collect();
            name = format!("{short}-{number}");
            number += 1;
        }
        name
    }

    /// Takes the name unchanged if it is valid and free.
    fn take(&mut self, name: &str) -> bool {
        self.unique(name) == name
    }
}

/// The cells of a file in which tasks name their cell.
#[derive(Default)]
struct Cells {
    cells: Vec<(String, TaskCell)>,
    names: Names,
    tasks: usize,
}

impl Cells {
    /// The tasks of the cell that the file calls `key`; the cell is created, named `name`, at its first mention.
    fn of(&mut self, key: &str, name: &str, policy: Policy) -> &mut TaskCell {
        let known = self.cells.iter().position(|(known, _)| known == key);
        let place = known.unwrap_or_else(|| {
            let cell = TaskCell {
                name: self.names.unique(name),
                policy,
                reservation: None,
                server: None,
                tasks: Vec::new(),
            };
            self.cells.push((key.to_owned(), cell));
            self.cells.len() - 1
        });
        &mut self.cells[place].1
    }

    /// Counts a task, and says so when there are too many.
    fn count(&mut self, line: usize) -> Result<(), InputError> {
        self.tasks += 1;
        if self.tasks > Limits::TASKS || self.cells.len() > Limits::CELLS {
            return Err(fault(
                line,
                "there are too many tasks or cells",
                "a task set has at most 100,000 tasks and 10,000 cells",
            ));
        }
        Ok(())
    }

    /// The set, if it has any task.
    fn finish(self, fix: &str) -> Result<TaskSet, InputError> {
        let cells: Vec<TaskCell> = self
            .cells
            .into_iter()
            .map(|(_, cell)| cell)
            .filter(|cell| !cell.tasks.is_empty())
            .collect();
        if cells.is_empty() {
            return Err(InputError::new("", "the file has no task", fix));
        }
        Ok(TaskSet {
            cpus: None,
            refill: Refill::default(),
            enforcer: None,
            cells,
        })
    }
}

/// The requested policy, or EDF with a note that it is assumed.
fn policy(options: Options, notes: &mut Vec<String>) -> Policy {
    options.policy.unwrap_or_else(|| {
        notes.push("the file gives no policy; edf is assumed (--policy fp for deadline-monotonic priorities)".to_owned());
        Policy::Edf
    })
}

/// The requested unit, or microseconds with a note that they are assumed.
fn unit(options: Options, notes: &mut Vec<String>) -> Unit {
    options.unit.unwrap_or_else(|| {
        notes.push("the file gives no units; microseconds are assumed (--unit)".to_owned());
        Unit::Us
    })
}

/// The meaning of `--policy fp` for tasks without priorities.
pub const FIXED: Policy = Policy::Fixed(Order::Deadline);

/// Whether a text may be XML.
fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

/// The name of the outermost element, if the text is XML to its end.
fn root(text: &str) -> Option<String> {
    let document = roxmltree::Document::parse(text).ok()?;
    Some(document.root_element().tag_name().name().to_owned())
}

/// Parses XML, without entities or any other file.
fn xml(text: &str) -> Result<roxmltree::Document<'_>, InputError> {
    roxmltree::Document::parse(text).map_err(|error| {
        let line = usize::try_from(error.pos().row).unwrap_or(1);
        let fix = match error {
            roxmltree::Error::UnclosedRootNode | roxmltree::Error::UnexpectedEndOfStream => {
                "the file may be cut short"
            }
            _ => "",
        };
        fault(line, format!("not XML: {error}"), fix)
    })
}

/// The line on which an element begins.
fn line(node: roxmltree::Node<'_, '_>) -> usize {
    let position = node.document().text_pos_at(node.range().start);
    usize::try_from(position.row).unwrap_or(1)
}

/// Elements and attributes of an XML file that are not read, each once.
#[derive(Default)]
struct Unread {
    elements: BTreeSet<String>,
    attributes: BTreeSet<String>,
}

/// Number of kinds of elements or attributes that are named; others are only counted.
const UNREAD: usize = 8;

impl Unread {
    /// Notes the children of `node` that are neither read nor `known` to be irrelevant.
    ///
    /// # Errors
    /// When one of these contains a task: a set without it would be a different one.
    fn elements(
        &mut self,
        node: roxmltree::Node<'_, '_>,
        read: &[&str],
        known: &[&str],
    ) -> Result<(), InputError> {
        let is = |node: &roxmltree::Node<'_, '_>, names: &[&str]| {
            names.contains(&node.tag_name().name()) && node.tag_name().namespace().is_none()
        };
        let children = node.children().filter(roxmltree::Node::is_element);
        for child in children.filter(|child| !is(child, read)) {
            let is_task = |inner: &roxmltree::Node<'_, '_>| {
                inner.tag_name().name().eq_ignore_ascii_case("task")
            };
            if let Some(task) = child.descendants().find(is_task) {
                let within = task.parent_element().unwrap_or(node);
                return Err(fault(
                    line(task),
                    format!(
                        "a task is inside <{}>, where none is read",
                        excerpt(within.tag_name().name())
                    ),
                    "put it next to the others",
                ));
            }
            if !is(&child, known) {
                self.elements
                    .insert(format!("<{}>", excerpt(child.tag_name().name())));
            }
        }
        Ok(())
    }

    /// Notes the attributes of `node` that are not read.
    fn attributes(&mut self, node: roxmltree::Node<'_, '_>, read: &str) {
        let is_read = |name: &str| read.split(' ').any(|known| known == name);
        let others = node.attributes().filter(|other| !is_read(other.name()));
        self.attributes
            .extend(others.map(|other| format!("`{}`", excerpt(other.name()))));
    }

    /// Notes them; unread ones may matter.
    fn tell(self, notes: &mut Vec<String>, uncovered: &mut Vec<String>) {
        for (what, names) in [
            ("elements", self.elements),
            ("attributes of tasks", self.attributes),
        ] {
            let named = |names: &[&str]| {
                let more = match names.len().saturating_sub(UNREAD) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let first = &names[..names.len().min(UNREAD)];
                (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
            };
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            // The analysis takes the worst of all release instants.
            let relevant = all.iter().copied().filter(|name| *name != "`offset`");
            let relevant: Vec<&str> = relevant.collect();
            notes.extend(named(&all).map(|names| format!("unused {what}: {names}")));
            uncovered.extend(named(&relevant).map(|names| format!("{what} are not used: {names}")));
        }
    }
}

/// A time in an element's attribute.
fn attribute_time(
    node: roxmltree::Node<'_, '_>,
    key: &str,
    unit: Unit,
) -> Result<Option<Duration>, InputError> {
    let Some(number) = node.attribute(key) else {
        return Ok(None);
    };
    let at = line(node);
    time(number, unit.name())
        .map(Some)
        .map_err(|what| fault(at, format!("`{key}`: {what}"), ""))
}

/// A required time of the element.
fn required_time(
    node: roxmltree::Node<'_, '_>,
    key: &str,
    unit: Unit,
) -> Result<Duration, InputError> {
    attribute_time(node, key, unit)?.ok_or_else(|| {
        let fix = format!("write {key}=\"...\"");
        fault(line(node), format!("a task has no `{key}`"), &fix)
    })
}

#[cfg(test)]
mod tests;
