//! Common parts of readers of JSON: values read as they come, a histogram without a map in between, the frame that all
//! tools of rt-tests write, and faults in one sentence.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Cursor, Read};
use std::marker::PhantomData;

use model::InputError;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::lines::{CUT, SECOND};
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
    pub sysinfo: Option<System>,
    pub num_threads: Option<u64>,
    resolution_in_ns: Option<u64>,
    /// Of the file, as jitterdebugger numbers it.
    pub version: Option<u64>,
    pub return_code: Option<i64>,
    /// Content that it claims but lacks, found by [`Frame::threads`].
    #[serde(skip)]
    pub incomplete: Option<String>,
    #[serde(alias = "cpu", deserialize_with = "few")]
    thread: BTreeMap<u64, T>,
}

/// Its facts on the machine; other keys are passed over, of any size.
#[derive(Deserialize)]
pub(super) struct System {
    sysname: Option<String>,
    release: Option<String>,
    version: Option<String>,
    machine: Option<String>,
    resolution_in_ns: Option<u64>,
}

/// The threads, at most as many as are read of any file: each takes more memory than room in the file.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u64, T>, D::Error> {
    struct Few<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = BTreeMap<u64, T>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object of threads by their numbers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut threads = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if threads.len() == MOST_DISTRIBUTIONS {
                    return Err(A::Error::custom("there are more than 65,536 threads"));
                }
                let number = key.parse().map_err(|_| {
                    let key = excerpt(&key);
                    A::Error::custom(format!("`{key}` is not the number of a thread"))
                })?;
                if threads.insert(number, map.next_value()?).is_some() {
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
        let length = source.head().len() as u64;
        let head = escaped(&String::from_utf8_lossy(source.head())).map(String::into_bytes);
        match head {
            None => parsed(source.reader()),
            Some(head) => {
                let reader = source.reader();
                let passed = io::copy(&mut reader.by_ref().take(length), &mut io::sink());
                passed.map_err(|error| {
                    InputError::new("", super::super::source::cannot(&error), "")
                })?;
                parsed(Cursor::new(head).chain(reader))
            }
        }
    }
}

/// The object with which a file begins; other text may follow, but no other object.
pub(super) fn parsed<T: DeserializeOwned>(mut reader: impl Read) -> Result<T, InputError> {
    let mut json = serde_json::Deserializer::from_reader(&mut reader);
    let value = T::deserialize(&mut json).map_err(|error| json_fault(&error))?;
    match json.into_iter::<serde::de::IgnoredAny>().next() {
        Some(Ok(_)) => Err(InputError::new("", SECOND, "")),
        Some(Err(error)) if error.is_io() => Err(json_fault(&error)),
        _ => Ok(value),
    }
}

impl<T> Frame<T> {
    /// The program, by the command line.
    pub fn program(&self) -> Option<&str> {
        basename(self.cmdline.as_deref()?)
    }

    /// The threads by their numbers, at least one; the frame's remarks on their number and its end become notes.
    pub fn threads(
        &mut self,
        tool: &str,
        notes: &mut Vec<String>,
    ) -> Result<BTreeMap<u64, T>, InputError> {
        let threads = std::mem::take(&mut self.thread);
        if threads.is_empty() {
            let what = "the file has no thread";
            return Err(InputError::new("", what, "the tool measured nothing"));
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

    /// The unit of values: microseconds, or nanoseconds with -N. A clause says which resolution no tool has.
    pub fn unit_ns(&self, in_sysinfo: bool, notes: &mut Vec<String>) -> Result<i64, String> {
        let sysinfo = self.sysinfo.as_ref().filter(|_| in_sysinfo);
        let known = sysinfo.and_then(|sysinfo| sysinfo.resolution_in_ns);
        match (in_sysinfo, known.or(self.resolution_in_ns)) {
            (true, None) => {
                notes.push("the file gives no resolution; microseconds are assumed".to_owned());
                Ok(1_000)
            }
            (true, Some(1_000)) | (false, None | Some(0)) => Ok(1_000),
            (_, Some(1)) => Ok(1),
            (_, Some(other)) => Err(format!("`resolution_in_ns` is {other}")),
        }
    }

    /// Kernel and architecture.
    pub fn machine(&self) -> Option<String> {
        let known = self.sysinfo.as_ref()?;
        let parts = [
            &known.sysname,
            &known.release,
            &known.version,
            &known.machine,
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        Some(parts.join(" "))
    }
}

/// Beginnings of the command line of rt-tests.
const COMMAND: [&str; 2] = ["\"cmdline:\": \"", "\"cmdline\": \""];

/// The program that a file of rt-tests names.
pub(super) fn program(head: &str) -> Option<&str> {
    let command = ["cmdline:", "cmdline"]
        .iter()
        .find_map(|key| value(head, key))?;
    basename(command.strip_prefix('"')?.split('"').next()?)
}

/// The text from the value of a key of the outermost object on.
pub(super) fn value<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let (mut depth, mut string, mut is_escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (string, c) {
            (Some(_), _) if std::mem::take(&mut is_escaped) => {}
            (Some(_), '\\') => is_escaped = true,
            (Some(begin), '"') => {
                string = None;
                let rest = text[at + 1..].trim_start().strip_prefix(':');
                if let Some(rest) = rest.filter(|_| depth == 1 && text[begin..at] == *wanted) {
                    return Some(rest.trim_start());
                }
            }
            (Some(_), _) => {}
            (None, '"') => string = Some(at + 1),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
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
pub(super) fn json_fault(error: &serde_json::Error) -> InputError {
    use serde_json::error::Category;
    let line = error.line().max(1);
    match error.classify() {
        Category::Eof => fault(line, "cut short: the JSON ends here", CUT),
        Category::Syntax => fault(line, format!("not JSON: {error}"), ""),
        Category::Io => fault(line, error.to_string(), ""),
        Category::Data => fault(line, format!("not what its tool writes: {error}"), ""),
    }
}
