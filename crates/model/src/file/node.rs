//! Tables of a surveyed document.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use super::{Key, Kind, Need, Place, Shape, value};
use crate::{Bytes, Duration};

/// A table of a surveyed document. Each getter returns the value of a key, its default if the file does not set it, and nothing
/// if it could not be read.
pub(crate) struct Node<'a> {
    pub place: Place,
    shape: &'static Shape,
    /// `None` for an item of a list of tables that is not a table, so that the others keep their indices.
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

    /// A table that sets nothing, so that every key has its default.
    pub fn empty(shape: &'static Shape) -> Node<'a> {
        Node {
            place: Place::top(),
            shape,
            table: None,
        }
    }

    fn key(&self, key: &str) -> Option<&'static Key> {
        let known = self.shape.key(key);
        debug_assert!(known.is_some(), "{} declares no `{key}`", self.shape.title);
        known
    }

    fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        (self.table?.iter())
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value.get_ref())
    }

    /// The default of an absent key, without the quotation marks of a text.
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
            Some(value) => value::whole(value),
            None => self.default(key).and_then(|text| text.parse().ok()),
        }
    }

    /// A number of 0 to `u32::MAX`, as its kind requires.
    pub fn count(&self, key: &str) -> Option<u32> {
        self.integer(key).and_then(|n| u32::try_from(n).ok())
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(value::number)
    }

    /// Whether the table has this key.
    pub fn says(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The fault of a missing key, with a line that would fix it.
    pub fn lacks(&self, key: &str, example: &str) -> (String, String) {
        lacks(self.shape, key, example)
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

    /// Numbers of 0 to `u32::MAX`, as their kind requires.
    pub fn counts(&self, key: &str) -> Vec<u32> {
        self.items(key, |item| {
            value::whole(item).and_then(|number| u32::try_from(number).ok())
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
        Some(self.below(key)).filter(|node| node.table.is_some())
    }

    /// The table under a key; an empty one if the file does not have it, so that every key has its default.
    pub fn below(&self, key: &str) -> Node<'a> {
        let shape = match self.key(key).map(|key| &key.kind) {
            Some(Kind::Table(shape)) => shape,
            _ => self.shape,
        };
        Node {
            place: self.place.key(key),
            shape,
            table: self.value(key).and_then(|value| value.as_table()),
        }
    }

    /// The tables under one key.
    pub fn tables(&self, key: &str) -> Vec<Node<'a>> {
        let Some(Kind::Tables { of, most }) = self.key(key).map(|key| &key.kind) else {
            return Vec::new();
        };
        let place = self.place.key(key);
        let items = self.value(key).and_then(|value| value.as_array());
        (items
            .into_iter()
            .flat_map(|items| items.iter())
            .take(*most)
            .enumerate())
        .map(|(index, item)| Node {
            place: place.item(index),
            shape: of,
            table: item.get_ref().as_table(),
        })
        .collect()
    }

    /// The value of a key that may have several types.
    pub fn any(&self, key: &str) -> Option<Value<'a>> {
        Some(Value {
            place: self.place.key(key),
            kind: &self.key(key)?.kind,
            value: self.value(key)?,
        })
    }
}

/// A value of a surveyed document.
pub(crate) struct Value<'a> {
    pub place: Place,
    kind: &'static Kind,
    value: &'a DeValue<'a>,
}

impl<'a> Value<'a> {
    /// The allowed kind that matches the value's type.
    fn kind(&self) -> &'static Kind {
        match self.kind {
            Kind::Any(kinds, _) => (kinds.iter())
                .find(|kind| kind.takes(self.value))
                .unwrap_or(self.kind),
            kind => kind,
        }
    }

    pub fn boolean(&self) -> Option<bool> {
        self.value.as_bool()
    }

    pub fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub fn table(&self) -> Option<Node<'a>> {
        match (self.kind(), self.value) {
            (Kind::Table(shape), DeValue::Table(table)) => {
                Some(Node::new(self.place.clone(), shape, table))
            }
            _ => None,
        }
    }

    /// The items of a list.
    pub fn items(&self) -> Option<Vec<Value<'a>>> {
        let (Kind::List { of, most, .. }, DeValue::Array(items)) = (self.kind(), self.value) else {
            return None;
        };
        let items = items.iter().take(*most).enumerate();
        let item = |(index, item): (usize, &'a toml::Spanned<DeValue<'a>>)| Value {
            place: self.place.item(index),
            kind: of,
            value: item.get_ref(),
        };
        Some(items.map(item).collect())
    }
}

/// The fault of a key that a table lacks, with a line that would fix it.
pub(super) fn lacks(shape: &Shape, key: &str, example: &str) -> (String, String) {
    (
        format!("{} has no `{key}`", shape.title),
        format!("add a line such as `{key} = {example}`"),
    )
}
