//! rt-app's JSON, with what JSON forbids and rt-app's parser lets pass: comments, commas before a closing bracket, and
//! keys that occur twice.

use std::fmt;

use model::{Duration, InputError};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::{fault_at, time};

/// The text and what it is called.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    /// The line on which a value begins; the value must be a part of the text.
    pub(super) fn line(&self, raw: &RawValue) -> usize {
        let offset = (raw.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|b| **b == b'\n').count()
    }

    pub(super) fn fault(&self, raw: &RawValue, what: String, mend: &str) -> InputError {
        fault_at(self.name, self.line(raw), what, mend)
    }

    pub(super) fn top(&self) -> Result<Object<'a>, InputError> {
        serde_json::from_str(self.text).map_err(|error| {
            fault_at(
                self.name,
                error.line().max(1),
                format!("not JSON: {error}"),
                "",
            )
        })
    }

    pub(super) fn object(&self, raw: &'a RawValue, title: &str) -> Result<Object<'a>, InputError> {
        serde_json::from_str(raw.get())
            .map_err(|_| self.fault(raw, format!("`{title}` is no object {{ ... }}"), ""))
    }

    /// A value of another kind than time; `mend` says which.
    pub(super) fn value<T: Deserialize<'a>>(
        &self,
        object: &Object<'a>,
        key: &str,
        mend: &str,
    ) -> Result<Option<T>, InputError> {
        let Some(raw) = object.last(key) else {
            return Ok(None);
        };
        let refused = |_| self.fault(raw, format!("`{key}` is {}", short(raw.get())), mend);
        serde_json::from_str(raw.get()).map(Some).map_err(refused)
    }

    /// A time in us. One that occurs twice with different values is a mistake, whichever rt-app would take.
    pub(super) fn time(
        &self,
        object: &Object<'a>,
        key: &str,
    ) -> Result<Option<Duration>, InputError> {
        let mut all = object.0.iter().filter(|(name, _)| name == key);
        let Some((_, raw)) = all.next() else {
            return Ok(None);
        };
        if let Some((_, other)) = all.find(|(_, other)| other.get() != raw.get()) {
            return Err(self.fault(
                other,
                format!(
                    "`{key}` occurs twice, as {} and as {}",
                    short(raw.get()),
                    short(other.get())
                ),
                "keep one",
            ));
        }
        self.micros(key, raw).map(Some)
    }

    /// A number of us.
    pub(super) fn micros(&self, key: &str, raw: &RawValue) -> Result<Duration, InputError> {
        time(raw.get(), "us").map_err(|what| {
            self.fault(
                raw,
                format!("`{key}`: {what}"),
                "it is a number of microseconds",
            )
        })
    }
}

/// As much of a value as a message needs.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain("...".chars()).collect()
}

/// An object with every key it holds, those that occur twice too.
pub(super) struct Object<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The value of a key; of one that occurs twice the last, as rt-app has it.
    pub(super) fn last(&self, key: &str) -> Option<&'a RawValue> {
        let mut named = self.0.iter().filter(|(name, _)| name == key);
        named.next_back().map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object<'de>, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The text with spaces in place of comments and of commas before a closing bracket; lines stay where they are.
pub(super) fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = string_end(&bytes, at);
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                let end = comment_end(&bytes, at);
                for byte in &mut bytes[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Whole comments and single ASCII bytes were replaced, so it is still UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

/// Where the text literal that begins at `at` is over.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Where the comment that begins at `at` is over.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 2..];
    let length = if bytes[at + 1] == b'*' {
        rest.windows(2).position(|two| two == b"*/").map(|n| n + 2)
    } else {
        rest.iter().position(|byte| *byte == b'\n')
    };
    length.map_or(bytes.len(), |length| at + 2 + length)
}
