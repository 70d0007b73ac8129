//! What readers of JSON have in common: values read as they come, a histogram without a map in between, the frame that
//! all tools of rt-tests write, and faults in one sentence.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::marker::PhantomData;

use model::InputError;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::tally::Tally;
use super::{MOST_DISTRIBUTIONS, Source, excerpt, fault};

/// The frame of rt-tests; `T` is a thread.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct Frame<T> {
    #[serde(alias = "cmdline:")]
    pub cmdline: Option<String>,
    #[serde(alias = "rt_test_version:")]
    pub rt_test_version: Option<String>,
    pub sysinfo: Option<BTreeMap<String, serde_json::Value>>,
    pub num_threads: Option<u64>,
    #[serde(default)]
    pub resolution_in_ns: u64,
    pub return_code: Option<i64>,
    /// What it claims to hold but does not, found by [`Frame::threads`].
    #[serde(skip)]
    pub incomplete: Option<String>,
    #[serde(deserialize_with = "few")]
    thread: BTreeMap<String, T>,
}

/// The threads, at most as many as are read of any file: each takes more memory than room in the file.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object of threads by their numbers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut threads = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if threads.len() == MOST_DISTRIBUTIONS {
                    return Err(A::Error::custom("there are more than 65,536 threads"));
                }
                if threads.insert(key, map.next_value()?).is_some() {
                    return Err(A::Error::custom("a thread occurs twice"));
                }
            }
            Ok(threads)
        }
    }
    deserializer.deserialize_map(Few(PhantomData))
}

impl<T: DeserializeOwned> Frame<T> {
    /// Reads the frame. The tools do not escape their command line, so that is done here.
    pub fn read(source: &mut Source) -> Result<Frame<T>, InputError> {
        let name = source.name().to_owned();
        let length = source.head().len() as u64;
        let head = escaped(&String::from_utf8_lossy(source.head())).map(String::into_bytes);
        let reader = source.reader();
        let read = match head {
            None => serde_json::from_reader(reader),
            Some(head) => {
                let passed = io::copy(&mut reader.by_ref().take(length), &mut io::sink());
                passed.map_err(|error| {
                    InputError::new(&name, super::super::source::cannot(&error), "")
                })?;
                serde_json::from_reader(Cursor::new(head).chain(reader))
            }
        };
        read.map_err(|error| json_fault(&name, &error))
    }
}

impl<T> Frame<T> {
    /// The program, by the command line.
    pub fn program(&self) -> Option<&str> {
        basename(self.cmdline.as_deref()?)
    }

    /// The threads by their numbers, at least one; what the frame says about their number and its end becomes notes.
    pub fn threads(
        &mut self,
        name: &str,
        tool: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<(u64, T)>, InputError> {
        let mut threads: Vec<(u64, T)> = Vec::new();
        for (key, thread) in std::mem::take(&mut self.thread) {
            let number = key.parse().map_err(|_| {
                let what = format!("`{}` is not the number of a thread", excerpt(&key));
                InputError::new(name, what, "")
            })?;
            threads.push((number, thread));
        }
        threads.sort_by_key(|thread| thread.0);
        if threads.is_empty() {
            let what = "the file has no thread";
            return Err(InputError::new(name, what, "the tool measured nothing"));
        }
        if let Some(planned) = self.num_threads.filter(|n| *n != threads.len() as u64) {
            let held = threads.len();
            let what = format!("the file says {planned} threads but holds {held}");
            notes.push(what.clone());
            self.incomplete = Some(what);
        }
        if let Some(code) = self.return_code.filter(|code| *code != 0) {
            notes.push(format!("{tool} ended with return code {code}"));
        }
        Ok(threads)
    }

    /// Kernel and architecture.
    pub fn machine(&self) -> Option<String> {
        let sysinfo = self.sysinfo.as_ref()?;
        let of = |key: &str| sysinfo.get(key).and_then(|value| value.as_str());
        let parts = ["sysname", "release", "version", "machine"];
        let parts: Vec<&str> = parts.into_iter().filter_map(of).collect();
        Some(parts.join(" "))
    }
}

/// Beginnings of the command line of rt-tests.
const COMMAND: [&str; 2] = ["\"cmdline:\": \"", "\"cmdline\": \""];

/// The program that a file of rt-tests names.
pub(super) fn program(head: &str) -> Option<&str> {
    let start = COMMAND
        .iter()
        .find_map(|key| head.find(key).map(|at| at + key.len()))?;
    basename(head[start..].split('"').next()?)
}

fn basename(command: &str) -> Option<&str> {
    command
        .split_whitespace()
        .next()?
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
}

/// The text with the command line escaped; `None` if that changes nothing.
fn escaped(text: &str) -> Option<String> {
    for key in COMMAND {
        let Some(start) = text.find(key).map(|at| at + key.len()) else {
            continue;
        };
        let Some(next) = text[start..].find("\"rt_test_version").map(|at| start + at) else {
            continue;
        };
        let Some(end) = text[start..next].rfind('"').map(|at| start + at) else {
            continue;
        };
        let raw = &text[start..end];
        if serde_json::from_str::<String>(&format!("\"{raw}\"")).is_ok() {
            return None;
        }
        let quoted = serde_json::Value::String(raw.to_owned()).to_string();
        return Some(format!(
            "{}{quoted}{}",
            &text[..start - 1],
            &text[end + 1..]
        ));
    }
    None
}

/// An object of buckets with their counts, those of 0 left out.
#[derive(Debug, Default)]
pub(super) struct Buckets(pub Tally);

impl<'de> Deserialize<'de> for Buckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Buckets, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Buckets;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a histogram: an object of buckets with their counts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Buckets, A::Error> {
                let mut counts = Tally::default();
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    let bucket = key.parse().map_err(|_| {
                        A::Error::custom(format!(
                            "the histogram has a bucket `{}`, which is not a whole number",
                            excerpt(&key)
                        ))
                    })?;
                    counts.add_times(bucket, map.next_value()?);
                }
                Ok(Buckets(counts))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The fault of JSON that does not parse; one that ends early is reported as such.
pub(super) fn json_fault(name: &str, error: &serde_json::Error) -> InputError {
    use serde_json::error::Category;
    let line = error.line().max(1);
    match error.classify() {
        Category::Eof => fault(
            name,
            line,
            "cut short: the JSON ends here",
            "the tool that wrote it may have been stopped early",
        ),
        Category::Syntax => fault(name, line, format!("not JSON: {error}"), ""),
        Category::Io => fault(name, line, error.to_string(), ""),
        Category::Data => fault(name, line, format!("not what its tool writes: {error}"), ""),
    }
}
