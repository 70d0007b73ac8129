//! rt-app's JSON: tasks that ask for SCHED_DEADLINE with `dl-runtime`, `dl-period` (default: the runtime) and
//! `dl-deadline` (default: the period), all in microseconds. The files have what JSON forbids and rt-app's parser
//! lets pass: comments, commas before a closing bracket, and keys that occur twice.

use std::fmt;

use model::InputError;
use model::taskset::{CellTask, Limits, Policy};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Cells, Imported, Names, fault_at, faulty, time};

pub(super) fn read(name: &str, text: &str) -> Result<Imported, InputError> {
    let text = plain(text);
    let source = Source { name, text: &text };
    let top: Object = serde_json::from_str(&text)
        .map_err(|error| fault_at(name, error.line().max(1), format!("not JSON: {error}"), ""))?;
    let tasks = top.last("tasks").ok_or_else(|| {
        InputError::new(
            name,
            "the file has no `tasks`",
            "an rt-app file holds { \"tasks\": { ... } }",
        )
    })?;
    let mut notes = Vec::new();
    let mut cells = Cells::default();
    let mut names = Names::default();
    let mut without = Vec::new();
    for (title, raw) in source.object(tasks, "tasks")?.0 {
        let task = source.object(raw, &title)?;
        let instances = source.instances(&task)?;
        let Some(found) = source.task(&title, raw, &task)? else {
            without.push(title);
            continue;
        };
        let cpus = cpus(&task);
        if cpus.contains(',') {
            notes.push(format!(
                "task `{title}` may run on cpus {cpus}; it is analysed as if those were one"
            ));
        }
        let cell = match cpus.as_str() {
            "" => "all".to_owned(),
            cpus => format!("cpu {cpus}"),
        };
        for _ in 0..instances {
            cells.count(name, source.line(raw))?;
            let task = CellTask {
                name: names.unique(&title),
                ..found.clone()
            };
            cells.of(&cell, &cell, Policy::Edf).tasks.push(task);
        }
    }
    if !without.is_empty() {
        notes.push(format!(
            "left out, since they have no dl-runtime: {}",
            without.join(", ")
        ));
    }
    let set = cells.finish(
        name,
        "timecell reads the tasks that have dl-runtime, dl-period and dl-deadline",
    )?;
    Ok(Imported { set, notes })
}

/// The text and what it is called.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    /// The line on which a value begins; the value must be a part of the text.
    fn line(&self, raw: &RawValue) -> usize {
        let offset = (raw.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|b| **b == b'\n').count()
    }

    fn fault(&self, raw: &RawValue, what: String, mend: &str) -> InputError {
        fault_at(self.name, self.line(raw), what, mend)
    }

    fn object(&self, raw: &'a RawValue, title: &str) -> Result<Object<'a>, InputError> {
        serde_json::from_str(raw.get())
            .map_err(|_| self.fault(raw, format!("`{title}` is no object {{ ... }}"), ""))
    }

    /// How many copies of the task there are.
    fn instances(&self, task: &Object<'a>) -> Result<usize, InputError> {
        let Some(raw) = task.last("instance") else {
            return Ok(1);
        };
        raw.get()
            .parse()
            .ok()
            .filter(|n| *n <= Limits::TASKS)
            .ok_or_else(|| {
                self.fault(
                    raw,
                    format!("`instance` is {}", raw.get()),
                    "it must be a whole number of 0 to 100000",
                )
            })
    }

    /// A time in us. One that occurs twice with different values is a mistake, whichever rt-app would take.
    fn time(&self, object: &Object<'a>, key: &str) -> Result<Option<model::Duration>, InputError> {
        let mut all = object.0.iter().filter(|(name, _)| name == key);
        let Some((_, raw)) = all.next() else {
            return Ok(None);
        };
        if let Some((_, other)) = all.find(|(_, other)| other.get() != raw.get()) {
            return Err(self.fault(
                other,
                format!(
                    "`{key}` occurs twice, as {} and as {}",
                    raw.get(),
                    other.get()
                ),
                "keep one",
            ));
        }
        time(raw.get(), "us").map(Some).map_err(|what| {
            self.fault(
                raw,
                format!("`{key}`: {what}"),
                "it is a number of microseconds",
            )
        })
    }

    /// The task, if it asks for SCHED_DEADLINE, itself or in all of its phases alike.
    fn task(
        &self,
        title: &str,
        raw: &'a RawValue,
        task: &Object<'a>,
    ) -> Result<Option<CellTask>, InputError> {
        let mut found = self.reserved(title, raw, task)?;
        let Some(phases) = task.last("phases") else {
            return Ok(found);
        };
        for (phase, raw) in self.object(phases, "phases")?.0 {
            let object = self.object(raw, &phase)?;
            let Some(here) = self.reserved(title, raw, &object)? else {
                continue;
            };
            if found.as_ref().is_some_and(|known| *known != here) {
                return Err(self.fault(
                    raw,
                    format!("phase `{phase}` of task `{title}` asks for another reservation than what went before"),
                    "timecell analyses tasks whose parameters stay the same",
                ));
            }
            found = Some(here);
        }
        Ok(found)
    }

    fn reserved(
        &self,
        title: &str,
        raw: &RawValue,
        object: &Object<'a>,
    ) -> Result<Option<CellTask>, InputError> {
        let Some(runtime) = self.time(object, "dl-runtime")? else {
            return Ok(None);
        };
        let period = self.time(object, "dl-period")?.unwrap_or(runtime);
        let task = CellTask {
            deadline: self.time(object, "dl-deadline")?.unwrap_or(period),
            ..CellTask::new(title, runtime, period)
        };
        match task.fault() {
            Some(fault) => Err(faulty(self.name, self.line(raw), fault)),
            None => Ok(Some(task)),
        }
    }
}

/// The cpus of a task, as `1` or `0,2`; empty if it names none.
fn cpus(task: &Object<'_>) -> String {
    let listed: Vec<u32> = task
        .last("cpus")
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let texts: Vec<String> = listed.iter().map(u32::to_string).collect();
    texts.join(",")
}

/// An object with every key it holds, those that occur twice too.
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    fn last(&self, key: &str) -> Option<&'a RawValue> {
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
fn plain(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
    /* two tasks and one that is not for us */
    "tasks" : {
        "video" : {
            "instance" : 2,
            "policy" : "SCHED_DEADLINE",
            "dl-runtime" : 2000, "dl-period" : 16000, "dl-deadline" : 10000,
            "run" : 1000, "sleep" : 10, "run" : 500, // twice
        },
        "hard" : { "dl-runtime" : 500, "dl-period": 5000, "cpus" : [1] },
        "other" : { "run" : 100, "timer" : { "ref" : "x", "period" : 1000 } },
    },
    "global" : { "duration" : 5 }
}"#;

    fn error(text: &str) -> String {
        read("r.json", text)
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn deadline_tasks_are_read() {
        let read = read("r.json", GOOD).expect("good");
        let [all, cpu] = read.set.cells.as_slice() else {
            panic!("two cells: {:?}", read.set);
        };
        assert_eq!(all.policy, Policy::Edf);
        let names: Vec<&str> = all.tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["video", "video-2"]);
        assert_eq!(all.tasks[1].wcet.ns(), 2_000_000);
        assert_eq!(all.tasks[1].deadline.ns(), 10_000_000);
        assert_eq!(
            (cpu.name.as_str(), cpu.tasks[0].deadline.ns()),
            ("cpu 1", 5_000_000)
        );
        assert_eq!(
            read.notes,
            ["left out, since they have no dl-runtime: other"]
        );
    }

    #[test]
    fn defaults_are_those_of_rt_app() {
        let text = r#"{"tasks":{"a":{"dl-runtime":100}}}"#;
        let task = read("r.json", text).expect("good").set.cells[0].tasks[0].clone();
        assert_eq!((task.period.ns(), task.deadline.ns()), (100_000, 100_000));
    }

    #[test]
    fn one_task_name_twice_is_two_tasks() {
        let text =
            r#"{"tasks":{"a":{"dl-runtime":1,"dl-period":9},"a":{"dl-runtime":2,"dl-period":9}}}"#;
        let set = read("r.json", text).expect("good").set;
        assert_eq!(set.cells[0].tasks[1].name, "a-2");
        assert_eq!(set.cells[0].tasks[1].wcet.ns(), 2_000);
    }

    #[test]
    fn phases_that_agree_are_one_task() {
        let phases = |second: &str| {
            format!(
                r#"{{"tasks":{{"a":{{"phases":{{"p":{{"dl-runtime":1,"dl-period":9}},
            "q":{{"dl-runtime":{second},"dl-period":9}}}}}}}}}}"#
            )
        };
        assert_eq!(read("r.json", &phases("1")).expect("good").set.tasks(), 1);
        assert!(error(&phases("2")).contains("r.json:2: phase `q`"));
    }

    #[test]
    fn each_fault_has_its_line() {
        for (from, to, parts) in [
            ("2000,", "\"2 ms\",", ["r.json:7:", "microseconds"]),
            ("2000,", "-3,", ["r.json:7:", "negative"]),
            ("2000,", "20000,", ["r.json:4:", "at most the deadline"]),
            (
                "500, \"dl-period\"",
                "500, \"dl-runtime\": 600, \"dl-period\"",
                ["r.json:10:", "occurs twice"],
            ),
            (
                "\"instance\" : 2",
                "\"instance\" : 1e9",
                ["r.json:5:", "0 to 100000"],
            ),
            ("\"global\" :", "\"global\"", ["r.json:13:", "not JSON"]),
            ("\"tasks\" :", "\"task\" :", ["r.json:", "no `tasks`"]),
        ] {
            let error = error(&GOOD.replacen(from, to, 1));
            for part in parts {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        assert!(error(r#"{"tasks":{"a":{"run":1}}}"#).contains("dl-runtime"));
        assert!(error(r#"{"tasks":[]}"#).contains("no object"));
        assert!(error(&"[".repeat(100_000)).contains("not JSON"));
    }
}
