//! Tables of a document that was found to be in order.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use crate::mission::keys::{Kind, Need, Shape};
use crate::mission::{Place, keys};
use crate::{Bytes, Duration};

/// A table of a surveyed document. Each getter answers with the value of a key, with its default where the file does not say it,
/// and with nothing where it could not be read.
pub(in super::super) struct Node<'a> {
    pub place: Place,
    shape: &'static Shape,
    /// Nothing for an item of a list of tables that is none, so that the others keep their places.
    table: Option<&'a DeTable<'a>>,
}

impl<'a> Node<'a> {
    pub fn new(place: Place, shape: &'static Shape, table: &'a DeTable<'a>) -> Node<'a> {
        Node {
            place,
            shape,
            table: Some(table),
        }
    }

    fn key(&self, key: &str) -> Option<&'static keys::Key> {
        let known = self.shape.key(key);
        debug_assert!(known.is_some(), "{} declares no `{key}`", self.shape.title);
        known
    }

    fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        (self.table?.iter())
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value.get_ref())
    }

    /// What stands in for an absent key, without the quotation marks of a text.
    fn default(&self, key: &str) -> Option<&'static str> {
        match self.key(key)?.need {
            Need::Default(default) => Some(default.trim_matches('"')),
            Need::Required(_) | Need::Without(_) => None,
        }
    }

    fn str(&self, key: &str) -> Option<&'a str> {
        let own: Option<&'a str> = self.value(key).and_then(|value| value.as_str());
        own.or_else(|| self.default(key))
    }

    pub fn text(&self, key: &str) -> String {
        self.str(key).unwrap_or_default().to_owned()
    }

    pub fn some_text(&self, key: &str) -> Option<String> {
        self.str(key).map(str::to_owned)
    }

    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.str(key).map(PathBuf::from)
    }

    pub fn time(&self, key: &str) -> Option<Duration> {
        self.str(key).and_then(|text| text.parse().ok())
    }

    pub fn time_or_zero(&self, key: &str) -> Duration {
        self.time(key).unwrap_or(Duration::from_ns(0))
    }

    pub fn size(&self, key: &str) -> Option<Bytes> {
        self.str(key).and_then(|text| text.parse().ok())
    }

    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.value(key) {
            Some(value) => integer(value),
            None => self.default(key).and_then(|text| text.parse().ok()),
        }
    }

    /// A number of 0 to `u32::MAX`, as its kind demands.
    pub fn count(&self, key: &str) -> Option<u32> {
        self.integer(key).and_then(|n| u32::try_from(n).ok())
    }

    pub fn boolean(&self, key: &str) -> bool {
        match self.value(key) {
            Some(value) => value.as_bool().unwrap_or(false),
            None => self.default(key) == Some("true"),
        }
    }

    pub fn choice<T: Copy>(&self, key: &str, names: &[(&str, T)]) -> Option<T> {
        let text = self.str(key)?;
        (names.iter().find(|(name, _)| *name == text)).map(|(_, value)| *value)
    }

    fn items<T>(&self, key: &str, read: impl Fn(&'a DeValue<'a>) -> Option<T>) -> Vec<T> {
        let items = self.value(key).and_then(|value| value.as_array());
        items.map_or_else(Vec::new, |items| {
            items
                .iter()
                .filter_map(|item| read(item.get_ref()))
                .collect()
        })
    }

    pub fn texts(&self, key: &str) -> Vec<String> {
        self.items(key, |item| item.as_str().map(str::to_owned))
    }

    pub fn cpus(&self, key: &str) -> Vec<u32> {
        self.items(key, |item| {
            integer(item).and_then(|cpu| u32::try_from(cpu).ok())
        })
    }

    pub fn environment(&self, key: &str) -> BTreeMap<String, String> {
        let table = self.value(key).and_then(|value| value.as_table());
        table.map_or_else(BTreeMap::new, |table| {
            (table.iter())
                .filter_map(|(name, value)| {
                    let value = value.get_ref().as_str()?;
                    Some((name.get_ref().as_ref().to_owned(), value.to_owned()))
                })
                .collect()
        })
    }

    /// The table under a key, if the file has it.
    pub fn table(&self, key: &str) -> Option<Node<'a>> {
        self.table_or_defaults(key)
            .filter(|node| node.table.is_some())
    }

    /// The table under a key; one without any key where the file does not have it, so that every key has its default. Nothing
    /// only where no such table is declared.
    pub fn table_or_defaults(&self, key: &str) -> Option<Node<'a>> {
        let Kind::Table(shape) = self.key(key)?.kind else {
            return None;
        };
        Some(Node {
            place: self.place.key(key),
            shape,
            table: self.value(key).and_then(|value| value.as_table()),
        })
    }

    /// The tables under one key.
    pub fn tables(&self, key: &str) -> Vec<Node<'a>> {
        let Some(Kind::Tables { of, most }) = self.key(key).map(|key| &key.kind) else {
            return Vec::new();
        };
        let place = self.place.key(key);
        let Some(items) = self.value(key).and_then(|value| value.as_array()) else {
            return Vec::new();
        };
        (items.iter().take(*most).enumerate())
            .map(|(index, item)| Node {
                place: place.item(index),
                shape: of,
                table: item.get_ref().as_table(),
            })
            .collect()
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}
