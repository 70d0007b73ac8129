//! The line number of every key and item of a file.

use toml::de::{DeTable, DeValue};

use super::Place;

/// Byte offsets of the line ends of a text, ascending.
pub(super) fn ends(text: &str) -> Vec<usize> {
    let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
    ends.map(|(offset, _)| offset).collect()
}

/// The line, from 1, of a byte offset.
pub(super) fn line(ends: &[usize], offset: usize) -> usize {
    1 + ends.partition_point(|end| *end < offset)
}

/// The line of every key and item of a file, as a tree like the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lines {
    line: usize,
    /// Children: the keys of a table, or the items of a list, which have no names.
    below: Vec<(Box<str>, Lines)>,
}

impl Lines {
    /// The lines of a document whose text has these line ends.
    pub fn of(ends: &[usize], document: &DeTable<'_>) -> Lines {
        Lines {
            line: 1,
            below: Lines::table(ends, document),
        }
    }

    fn table(ends: &[usize], table: &DeTable<'_>) -> Vec<(Box<str>, Lines)> {
        (table.iter())
            .map(|(name, value)| {
                let below = Lines::value(ends, value.span().start, value.get_ref());
                (name.get_ref().as_ref().into(), below)
            })
            .collect()
    }

    fn value(ends: &[usize], offset: usize, value: &DeValue<'_>) -> Lines {
        let below = match value {
            DeValue::Table(table) => Lines::table(ends, table),
            DeValue::Array(items) => (items.iter())
                .map(|item| {
                    (
                        "".into(),
                        Lines::value(ends, item.span().start, item.get_ref()),
                    )
                })
                .collect(),
            _ => Vec::new(),
        };
        Lines {
            line: line(ends, offset),
            below,
        }
    }

    /// The deepest node that the file has on the way to a place, and whether it is the place itself.
    fn follow(&self, place: &Place) -> (&Lines, bool) {
        let mut at = self;
        for name in place.names() {
            let item = name
                .parse()
                .ok()
                .and_then(|index: usize| at.below.get(index));
            let item = item.filter(|(key, _)| key.is_empty());
            match item.or_else(|| at.below.iter().find(|(key, _)| **key == *name)) {
                Some((_, below)) => at = below,
                None => return (at, false),
            }
        }
        (at, true)
    }

    /// The line, from 1, of a place, or of the nearest enclosing one that the file has.
    pub fn nearest(&self, place: &Place) -> usize {
        self.follow(place).0.line
    }

    /// Whether the file has this key or item.
    pub fn has(&self, place: &Place) -> bool {
        self.follow(place).1
    }
}
