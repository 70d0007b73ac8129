//! The shape of a file: tables and their keys, each declared once with its kind, its range, whether it is required, its default,
//! and its meaning.

use toml::de::DeTable;

use super::Faults;

/// A kind of file.
pub(crate) struct Format {
    /// Its name in messages, such as `mission`.
    pub name: &'static str,
    /// The version that is read and written.
    pub schema: i64,
    /// Maximum size of a file in bytes.
    pub most_bytes: usize,
    pub top: &'static Shape,
    /// The range of a key in this document if its top level narrows the declared one. Keys of the top level are checked in
    /// the order of their declaration: only those before a table are known to be clear.
    pub narrower: fn(&str, &DeTable<'_>, &Faults<'_>) -> Option<&'static Kind>,
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its name in messages: `[[cell.task]]`.
    pub title: &'static str,
    /// Its name among the definitions of the schema; unique.
    pub name: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// Whether only one of its keys may be set.
    pub choice: bool,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
    /// Its meaning: one clause.
    pub doc: &'static str,
}

/// Whether a key is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Required; an example of its value in TOML, or for a list of tables the table to add.
    Required(&'static str),
    /// Optional; the default value, valid both as TOML and as JSON.
    Default(&'static str),
    /// Optional; the default in words.
    Without(&'static str),
}

/// The type and range of a value.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A text for a program: anything but NUL.
    Word,
    /// A part of a directory name, a letter or digit first.
    Name,
    /// A part of a directory name.
    Part,
    /// 1 to 64 characters that a terminal can show.
    Label,
    /// The name of a thread.
    Thread,
    /// A word of the kernel's command line.
    KernelWord,
    /// The name by which an engine knows an image.
    Reference,
    /// A path on the host.
    HostPath,
    /// An absolute path inside the cell.
    CellPath,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer { least: i64, most: i64 },
    /// A number with or without a fraction.
    Number { least: f64, most: f64 },
    /// `true` or `false`.
    Boolean,
    /// A time of at least `least_ns`, and at most the longest that the analysis accepts.
    Time { least_ns: i64 },
    /// A time with a lower and an upper bound.
    Within { least_ns: i64, most_ns: i64 },
    /// An amount of memory of at least this many bytes.
    Size { least: u64 },
    /// A list with bounds on the number of its items.
    List {
        of: &'static Kind,
        least: usize,
        most: usize,
        unique: bool,
    },
    /// A table whose keys are the names of environment variables.
    Environment,
    /// A table.
    Table(&'static Shape),
    /// One or more tables under one key.
    Tables { of: &'static Shape, most: usize },
    /// One of these, distinguished by the type of the value; and their common name in messages.
    Any(&'static [Kind], &'static str),
}

/// The longest time that exact analysis accepts, ns: 2^60, 36 years.
pub(crate) const LONGEST_NS: i64 = 1 << 60;

/// Rows of keys: name, kind, need with its example, default or words, and meaning.
macro_rules! keys {
    ($($name:literal: $kind:expr, $need:ident $value:literal, $doc:literal;)*) => {
        &[$($crate::file::Key {
            name: $name,
            kind: $kind,
            need: $crate::file::Need::$need($value),
            doc: $doc,
        }),*]
    };
}
pub(crate) use keys;

impl Shape {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// This table and every one below it, each once, in the order of the documentation.
    pub fn all(&'static self) -> Vec<&'static Shape> {
        let mut shapes: Vec<&'static Shape> = vec![self];
        let mut next = 0;
        while let Some(shape) = shapes.get(next).copied() {
            let mut below = Vec::new();
            shape
                .keys
                .iter()
                .for_each(|key| key.kind.shapes(&mut below));
            for shape in below {
                if shapes.iter().all(|known| known.name != shape.name) {
                    shapes.push(shape);
                }
            }
            next += 1;
        }
        shapes
    }
}

impl Kind {
    /// Adds the tables that the kind is, contains as items, or may be.
    fn shapes(&self, found: &mut Vec<&'static Shape>) {
        match self {
            Kind::Table(shape) | Kind::Tables { of: shape, .. } => found.push(shape),
            Kind::List { of, .. } => of.shapes(found),
            Kind::Any(kinds, _) => kinds.iter().for_each(|kind| kind.shapes(found)),
            _ => {}
        }
    }
}

/// The names of pairs of names and values.
pub(crate) const fn names<T: Copy, const N: usize>(
    pairs: &[(&'static str, T); N],
) -> [&'static str; N] {
    let mut names = [""; N];
    let mut place = 0;
    while place < N {
        names[place] = pairs[place].0;
        place += 1;
    }
    names
}

/// The names of all values, after words for none of them.
macro_rules! names_of {
    ($first:expr, $all:expr) => {{
        const FIRST: &[&str] = &$first;
        let mut names = [""; FIRST.len() + $all.len()];
        let mut place = 0;
        while place < names.len() {
            names[place] = if place < FIRST.len() {
                FIRST[place]
            } else {
                $all[place - FIRST.len()].name()
            };
            place += 1;
        }
        names
    }};
}
pub(crate) use names_of;
