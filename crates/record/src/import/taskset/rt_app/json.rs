//! rt-app's JSON, with forms JSON forbids but rt-app's parser accepts: comments, commas before a closing bracket, and
//! duplicate keys.

use std::fmt;

use model::{Duration, InputError};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::super::{excerpt, fault, time};

/// The text and its name.
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

    pub(super) fn fault(&self, raw: &RawValue, what: String, fix: &str) -> InputError {
        fault(self.line(raw), what, fix)
    }

    pub(super) fn top(&self) -> Result<Object<'a>, InputError> {
        serde_json::from_str(self.text)
            .map_err(|error| fault(error.line().max(1), format!("not JSON: {error}"), ""))
    }

    pub(super) fn object(&self, raw: &'a RawValue, title: &str) -> Result<Object<'a>, InputError> {
        serde_json::from_str(raw.get()).map_err(|_| {
            self.fault(
                raw,
                format!("`{}` is not an object {{ ... }}", excerpt(title)),
                "",
            )
        })
    }

    /// A value other than a time; `fix` says which kind.
    pub(super) fn value<T: Deserialize<'a>>(
        &self,
        object: &Object<'a>,
        key: &str,
        fix: &str,
    ) -> Result<Option<T>, InputError> {
        let Some(raw) = object.last(key) else {
            return Ok(None);
        };
        let refused = |_| self.fault(raw, format!("`{key}` is {}", excerpt(raw.get())), fix);
        serde_json::from_str(raw.get()).map(Some).map_err(refused)
    }

    /// A time in us. Two different values are an error, whichever rt-app would use.
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
                    excerpt(raw.get()),
                    excerpt(other.get())
                ),
                "keep one",
            ));
        }
        self.micros(key, raw).map(Some)
    }

    /// A number of microseconds.
    pub(super) fn micros(&self, key: &str, raw: &RawValue) -> Result<Duration, InputError> {
        time(raw.get(), "us").map_err(|what| {
            self.fault(
                raw,
                format!("`{key}`: {what}"),
                "it must be a number of microseconds",
            )
        })
    }
}

/// An object with all its keys, including duplicates.
pub(super) struct Object<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The value of a key; of a duplicate key the last value, as in rt-app.
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

/// The text as JSON: spaces in place of comments and of commas before a closing bracket, and `null` as the value of a
/// key that has none; lines stay where they are.
pub(super) fn plain(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut comma: Option<usize> = None;
    // The brackets that are open, whether a key comes next, and where one ended that may have no value.
    let mut open: Vec<u8> = Vec::new();
    let mut before_key = false;
    let mut key: Option<usize> = None;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'"' => {
                comma = None;
                let end = string_end(bytes, at);
                out.extend_from_slice(&bytes[at..end]);
                at = end;
                key = before_key.then_some(out.len());
                before_key = false;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                let end = comment_end(bytes, at);
                let blank = |byte: &u8| if *byte == b'\n' { b'\n' } else { b' ' };
                out.extend(bytes[at..end].iter().map(blank));
                at = end;
                continue;
            }
            b',' => {
                no_value(&mut out, key.take());
                comma = Some(out.len());
                before_key = open.last() == Some(&b'{');
            }
            b'}' | b']' => {
                no_value(&mut out, key.take());
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
                open.pop();
                before_key = false;
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => {
                comma = None;
                key = None;
                before_key = byte == b'{';
                if matches!(byte, b'{' | b'[') {
                    open.push(byte);
                }
            }
        }
        out.push(byte);
        at += 1;
    }
    // Whole comments and single ASCII bytes were replaced, and ASCII was added, so it is still UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// Gives the key that ended here the value `null`, since rt-app's own examples leave out that of `"suspend"`. Keys that
/// need a value refuse it: it is not a number, text or object.
fn no_value(out: &mut Vec<u8>, key: Option<usize>) {
    if let Some(end) = key {
        out.splice(end..end, *b":null");
    }
}

/// The end of the string literal that begins at `at`.
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

/// The end of the comment that begins at `at`.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 2..];
    let length = if bytes[at + 1] == b'*' {
        rest.windows(2).position(|two| two == b"*/").map(|n| n + 2)
    } else {
        rest.iter().position(|byte| *byte == b'\n')
    };
    length.map_or(bytes.len(), |length| at + 2 + length)
}
