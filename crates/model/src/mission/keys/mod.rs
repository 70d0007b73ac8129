//! The keys of the mission file, each declared once: its kind, its range, whether it must be there, what holds without it, and
//! what it means. The reader, the JSON Schema and the tables of the documentation all follow these declarations.

mod cell;
mod health;
mod kind;
mod rights;
mod survey;
mod top;

pub(super) use health::PARAMETERS;
pub(super) use kind::Kind;
pub(super) use survey::{newer, survey};
pub(super) use top::TOP;

/// A table of the file.
#[derive(Debug)]
pub(super) struct Shape {
    /// As messages call it: `[[cell.task]]`.
    pub title: &'static str,
    /// Its name among the definitions of the schema; unique.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Whether just one of its keys may be there.
    pub choice: bool,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
    /// What it means: one clause.
    pub doc: &'static str,
}

/// Whether a key must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It must; an example of its value in TOML, or of a list of tables the table to add.
    Required(&'static str),
    /// It need not; the value that holds without it, both in TOML and in JSON.
    Default(&'static str),
    /// It need not; what holds without it, in words.
    Without(&'static str),
}

impl Key {
    const fn required(
        name: &'static str,
        kind: Kind,
        example: &'static str,
        doc: &'static str,
    ) -> Key {
        Key {
            name,
            kind,
            need: Need::Required(example),
            doc,
        }
    }

    const fn default(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
    ) -> Key {
        Key {
            name,
            kind,
            need: Need::Default(default),
            doc,
        }
    }

    const fn without(
        name: &'static str,
        kind: Kind,
        without: &'static str,
        doc: &'static str,
    ) -> Key {
        Key {
            name,
            kind,
            need: Need::Without(without),
            doc,
        }
    }
}

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
            for key in shape.keys {
                if let Some(below) = key.kind.shape()
                    && shapes.iter().all(|known| known.name != below.name)
                {
                    shapes.push(below);
                }
            }
            next += 1;
        }
        shapes
    }
}

/// The names of pairs of names and values.
pub(super) const fn names<T: Copy, const N: usize>(
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
