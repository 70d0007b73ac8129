//! Formats as users name them. [`super::measured`] and [`super::taskset`] have one list each, from which options, help, docs and
//! tests follow.

use std::fmt;

/// An entry in the list of the formats that are read into one type.
pub trait Described: Sized + 'static {
    /// The list.
    const ALL: &'static [Self];

    /// The name by which users ask for it.
    fn name(&self) -> &'static str;

    /// Which files these are, for `--help`.
    fn files(&self) -> &'static str;
}

/// One of the formats of a list.
pub struct Format<E: 'static>(&'static E);

impl<E: Described> Format<E> {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Format<E>> {
        E::ALL.iter().map(Format)
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Format<E>> {
        Format::all().find(|format| format.name() == name)
    }

    /// All names, in the order of the list.
    pub fn names() -> Vec<&'static str> {
        Format::<E>::all().map(Format::name).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Which files are of it, in a few words for `--help`.
    pub fn files(self) -> &'static str {
        self.0.files()
    }

    pub(super) fn entry(self) -> &'static E {
        self.0
    }
}

// Derived implementations would require the same of the entry.
impl<E> Clone for Format<E> {
    fn clone(&self) -> Format<E> {
        *self
    }
}

impl<E> Copy for Format<E> {}

impl<E: Described> PartialEq for Format<E> {
    fn eq(&self, other: &Format<E>) -> bool {
        self.name() == other.name()
    }
}

impl<E: Described> Eq for Format<E> {}

impl<E: Described> fmt::Debug for Format<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
