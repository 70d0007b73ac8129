//! Reads a TOML table key by key so that every fault names its line and the nearest known key.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::value::{self, Wrong};
use crate::{Bytes, Duration, InputError};

/// The candidate most like `text`, if any is like it at all. Damerau-Levenshtein sees swapped letters in
/// short words, Jaro-Winkler sees shared beginnings of long ones.
pub fn nearest<'a>(text: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|name| {
            let swaps = strsim::normalized_damerau_levenshtein(text, name);
            ((swaps + 0.15).max(strsim::jaro_winkler(text, name)), *name)
        })
        .filter(|(likeness, _)| *likeness > 0.78)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The text and its name, for turning byte offsets into lines.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn line(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    }

    pub fn error(
        &self,
        offset: usize,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> InputError {
        InputError::new(self.name, what, mend).at(self.line(offset))
    }
}

/// A key as messages write it.
pub(crate) fn label(key: &str) -> String {
    format!("`{key}`")
}

/// One table with the keys it may hold.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    /// As a user would write it: `[workload]`, or `the file's top level`.
    title: String,
    start: usize,
    table: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub fn new(
        source: Source<'a>,
        title: &str,
        start: usize,
        table: &'a DeTable<'a>,
        keys: &[&str],
    ) -> Result<Table<'a>, InputError> {
        let table = Table::lenient(source, title, start, table);
        match table.unknown(keys).into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(table),
        }
    }

    /// The table whatever its keys are.
    pub fn lenient(
        source: Source<'a>,
        title: &str,
        start: usize,
        table: &'a DeTable<'a>,
    ) -> Table<'a> {
        Table {
            source,
            title: title.to_owned(),
            start,
            table,
        }
    }

    /// Every key that is none of `keys`, in the order of the file, with the known one that was probably meant.
    pub fn unknown<'k>(&self, keys: &[&'k str]) -> Vec<(Option<&'k str>, InputError)> {
        let mut unknown: Vec<_> = (self.table.iter())
            .filter(|(key, _)| !keys.contains(&key.get_ref().as_ref()))
            .map(|(key, _)| (key.span().start, key.get_ref().as_ref()))
            .collect();
        unknown.sort_unstable();
        let error = |(offset, key): (usize, &str)| {
            let near = nearest(key, keys);
            let mend = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", keys.join(", ")),
            };
            let what = format!("unknown key `{}` in {}", key.escape_debug(), self.title);
            (near, self.source.error(offset, what, mend))
        };
        unknown.into_iter().map(error).collect()
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    pub fn fault(&self, key: &str, what: impl Into<String>, mend: impl Into<String>) -> InputError {
        let offset = self.get(key).map_or(self.start, |v| v.span().start);
        self.source.error(offset, what, mend)
    }

    pub fn missing(&self, key: &str, example: &str) -> InputError {
        self.source.error(
            self.start,
            format!("{} has no `{key}`", self.title),
            format!("add a line such as `{key} = {example}`"),
        )
    }

    pub fn wrong_type(&self, key: &str, found: &DeValue<'_>, wanted: &str) -> InputError {
        self.wrong(key, Wrong::of_type(&label(key), found, wanted))
    }

    fn wrong(&self, key: &str, Wrong { what, mend }: Wrong) -> InputError {
        self.fault(key, what, mend)
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>, InputError> {
        self.get(key)
            .map(|value| value::text(&label(key), value.get_ref()))
            .transpose()
            .map_err(|wrong| self.wrong(key, wrong))
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A number with or without a fraction.
    pub fn number(&self, key: &str) -> Result<Option<f64>, InputError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = match value.get_ref() {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) => number.as_str(),
            other => return Err(self.wrong_type(key, other, "a number such as 0.3")),
        };
        match text.replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.fault(
                key,
                format!("`{key}` is {text}"),
                "it must be a number such as 0.3",
            )),
        }
    }

    pub fn integer(
        &self,
        key: &str,
        range: &RangeInclusive<i64>,
    ) -> Result<Option<i64>, InputError> {
        self.get(key)
            .map(|value| value::integer(&label(key), value.get_ref(), range))
            .transpose()
            .map_err(|wrong| self.wrong(key, wrong))
    }

    pub fn duration(&self, key: &str) -> Result<Option<Duration>, InputError> {
        self.get(key)
            .map(|value| value::duration(&label(key), value.get_ref()))
            .transpose()
            .map_err(|wrong| self.wrong(key, wrong))
    }

    pub fn bytes(&self, key: &str) -> Result<Option<Bytes>, InputError> {
        self.get(key)
            .map(|value| value::bytes(&label(key), value.get_ref()))
            .transpose()
            .map_err(|wrong| self.wrong(key, wrong))
    }

    pub fn table(&self, key: &str, keys: &[&str]) -> Result<Option<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let table = value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong_type(key, value.get_ref(), &format!("a table [{key}]")))?;
        Table::new(
            self.source,
            &format!("[{key}]"),
            value.span().start,
            table,
            keys,
        )
        .map(Some)
    }

    pub fn tables(&self, key: &str, keys: &[&str]) -> Result<Vec<Table<'a>>, InputError> {
        self.tables_below("", key, keys)
    }

    /// The tables of an array that messages call by its full name, such as `[[cell.task]]` for a `parent` of `cell.`.
    pub fn tables_below(
        &self,
        parent: &str,
        key: &str,
        keys: &[&str],
    ) -> Result<Vec<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wanted = format!("tables [[{key}]]");
        let array = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.wrong_type(key, value.get_ref(), &wanted))?;
        array
            .iter()
            .map(|item| {
                let table = item
                    .get_ref()
                    .as_table()
                    .ok_or_else(|| self.wrong_type(key, item.get_ref(), &wanted))?;
                Table::new(
                    self.source,
                    &format!("[[{parent}{key}]]"),
                    item.span().start,
                    table,
                    keys,
                )
            })
            .collect()
    }

    /// The value of a key, whatever it is.
    pub fn item(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.get(key)
    }

    /// The items of an array as they stand.
    pub fn items(
        &self,
        key: &str,
        wanted: &str,
    ) -> Result<Option<&'a [Spanned<DeValue<'a>>]>, InputError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let array = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.wrong_type(key, value.get_ref(), wanted))?;
        Ok(Some(array))
    }

    /// A fault of a value that is no key's own, such as an item of an array.
    pub fn fault_at(
        &self,
        item: &Spanned<DeValue<'_>>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> InputError {
        self.source.error(item.span().start, what, mend)
    }

    /// A table that is an item of an array or the value of a key.
    pub fn inner<'b>(
        &self,
        title: &str,
        item: &Spanned<DeValue<'b>>,
        table: &'b DeTable<'b>,
        keys: &[&str],
    ) -> Result<Table<'b>, InputError>
    where
        'a: 'b,
    {
        Table::new(self.source, title, item.span().start, table, keys)
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>, InputError> {
        self.get(key)
            .map(|value| value::boolean(&label(key), value.get_ref()))
            .transpose()
            .map_err(|wrong| self.wrong(key, wrong))
    }

    /// A list of cpu numbers.
    pub fn cpus(&self, key: &str) -> Result<Option<Vec<u32>>, InputError> {
        self.array(key, "a list of cpu numbers such as [1]", |item| {
            let number = item.as_integer().and_then(|n| {
                i64::from_str_radix(n.as_str(), n.radix())
                    .ok()
                    .and_then(|n| u32::try_from(n).ok())
            });
            number.ok_or_else(|| "a cpu is a whole number of 0 or more".to_owned())
        })
    }

    /// The items of an array, each read by `read`, which answers `Err(what, mend)` for a bad one.
    pub fn array<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&DeValue<'a>) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, InputError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let array = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.wrong_type(key, value.get_ref(), wanted))?;
        array
            .iter()
            .map(|item| {
                read(item.get_ref()).map_err(|what| self.source.error(item.span().start, what, ""))
            })
            .collect::<Result<Vec<T>, InputError>>()
            .map(Some)
    }
}
