//! Collecting the faults of one file.

use std::collections::HashSet;

use super::{Lines, Place};
use crate::{InputError, InputErrors};

/// The faults of one file as they are found. Consequences of a reported fault are withheld: a value that could not be read is
/// not compared with others.
pub(crate) struct Faults<'a> {
    name: &'a str,
    lines: &'a Lines,
    /// Places whose value is missing or was not understood.
    unclear: HashSet<Place>,
    list: Vec<InputError>,
    more: bool,
}

impl<'a> Faults<'a> {
    /// Maximum number of faults that are listed; of more, only the existence is reported.
    pub const MOST: usize = 1_000;

    pub fn new(name: &'a str, lines: &'a Lines) -> Faults<'a> {
        Faults {
            name,
            lines,
            unclear: HashSet::new(),
            list: Vec::new(),
            more: false,
        }
    }

    /// A value that cannot be read.
    pub fn unclear(&mut self, place: &Place, error: InputError) {
        self.unclear.insert(place.clone());
        self.push(error);
    }

    /// A value that must not be relied on because of a fault reported elsewhere.
    pub fn doubt(&mut self, place: &Place) {
        self.unclear.insert(place.clone());
    }

    pub fn is_clear(&self, place: &Place) -> bool {
        !self.unclear.contains(place)
    }

    /// Whether everything at and below a place is clear.
    pub fn is_whole(&self, place: &Place) -> bool {
        !self.more && !self.unclear.iter().any(|unclear| place.holds(unclear))
    }

    /// Whether the file has this key.
    pub fn says(&self, place: &Place) -> bool {
        self.lines.has(place)
    }

    /// The line of a place.
    pub fn line(&self, place: &Place) -> usize {
        self.lines.nearest(place)
    }

    /// A fault at the first of `keys` of the table at `place`, unless one of them is unclear.
    pub fn report(
        &mut self,
        place: &Place,
        keys: &[&str],
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        if !keys.iter().all(|key| self.is_clear(&place.key(key))) {
            return;
        }
        let first = keys.first().map_or_else(|| place.clone(), |k| place.key(k));
        self.report_at(&first, what, fix);
    }

    /// A fault at this place, unless it is unclear.
    pub fn report_at(&mut self, place: &Place, what: impl Into<String>, fix: impl Into<String>) {
        if self.is_clear(place) {
            let error = InputError::new(self.name, what, fix).at(self.lines.nearest(place));
            self.push(error);
        }
    }

    pub fn push(&mut self, error: InputError) {
        if self.list.len() < Faults::MOST {
            self.list.push(error);
        } else {
            self.more = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether no further fault would be listed, so that looking for more is pointless.
    pub fn are_many(&self) -> bool {
        self.more
    }

    /// All faults, once the file has been read to its end.
    pub fn into_errors(self) -> Option<InputErrors> {
        let mut list = self.list;
        if self.more {
            let last = list.iter().filter_map(|fault| fault.line).max();
            list.push(
                InputError::new(
                    self.name,
                    format!("there are more than {} faults", Faults::MOST),
                    "fix these first",
                )
                .at(last.unwrap_or(1)),
            );
        }
        InputErrors::of(list)
    }
}
