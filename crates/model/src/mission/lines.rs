//! The line of every key and item of a file.

use std::collections::HashMap;

use toml::de::{DeTable, DeValue};

use super::Place;

/// The line of every key and item of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lines(HashMap<Place, usize>);

impl Lines {
    /// The lines of a document that was read from this text.
    pub fn of(text: &str, document: &DeTable<'_>) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        let ends: Vec<usize> = ends.map(|(offset, _)| offset).collect();
        let mut lines = Lines::default();
        lines.table(&ends, &Place::top(), document);
        lines
    }

    fn table(&mut self, ends: &[usize], at: &Place, table: &DeTable<'_>) {
        for (key, value) in table {
            let place = at.key(key.get_ref());
            self.value(ends, place, value.span().start, value.get_ref());
        }
    }

    fn value(&mut self, ends: &[usize], place: Place, offset: usize, value: &DeValue<'_>) {
        match value {
            DeValue::Table(table) => self.table(ends, &place, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(ends, place.item(index), item.span().start, item.get_ref());
                }
            }
            _ => {}
        }
        self.0
            .insert(place, 1 + ends.partition_point(|end| *end < offset));
    }

    /// The line of a place, or of the nearest one around it that the file has, from 1.
    pub fn nearest(&self, place: &Place) -> usize {
        let mut at = Some(place.clone());
        while let Some(place) = at {
            if let Some(line) = self.0.get(&place) {
                return *line;
            }
            at = place.parent();
        }
        1
    }

    /// Whether the file has this key or item.
    pub fn has(&self, place: &Place) -> bool {
        self.0.contains_key(place)
    }
}
