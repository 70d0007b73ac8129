//! Incidents: a fault of a cell, its time, the evidence, and the action. Every observation of the health monitor
//! becomes one, with and without a rule. They are written to the journal and given to subscribers as JSON, with the unit
//! in each field's name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::end::End;
use crate::stamp::Stamp;

/// Version of the shape of [`Incident`]; it rises when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// One incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Version of this shape, [`SCHEMA`].
    pub schema: u32,
    /// Its number within the mission, from 1.
    pub number: u64,
    /// Name of the mission.
    pub mission: String,
    /// Name of the cell; `None`: it concerns the whole mission.
    pub cell: Option<String>,
    /// How often the cell had been started.
    pub generation: Option<u64>,
    /// When it was observed, on both clocks.
    pub at: Stamp,
    /// The wall clock of [`Incident::at`], as people read it.
    pub at_utc: String,
    /// The observation.
    pub observed: Seen,
    /// The evidence from the time before.
    pub evidence: Evidence,
    /// The action.
    pub action: Taken,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its kind, in the words of mission files: `exit`, `heartbeat`, `deadline-misses`, ...
    pub what: String,
    /// The task that it is about.
    pub task: Option<String>,
    /// The observation in words, with its figures.
    pub detail: String,
}

/// The evidence from the time before an incident.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The last jobs, oldest first; at most [`Evidence::MOST_JOBS`].
    pub jobs: Vec<JobSample>,
    /// Counters of the cell, by a name that ends with its unit, such as `throttled_ns` or `memory_limit_hits`.
    pub counters: BTreeMap<String, i64>,
    /// How its program ended, if it has.
    pub end: Option<End>,
    /// The end of its standard output and standard error.
    pub output_tail: Option<OutputTail>,
}

/// A job before an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSample {
    /// Name of its task.
    pub task: String,
    /// Its number, from 0.
    pub number: u64,
    /// When it was released; CLOCK_MONOTONIC, ns, as all times of jobs.
    pub release_ns: i64,
    /// When it began.
    pub begin_ns: i64,
    /// When it ended; `None`: it runs, or was abandoned.
    pub end_ns: Option<i64>,
    /// Whether its response time was longer than the deadline.
    pub late: bool,
}

/// The end of a cell's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTail {
    /// Whole lines where possible; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// How much came before it.
    pub dropped_bytes: u64,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The action, in the words of mission files; `None`: nothing.
    pub action: Option<String>,
    /// Index of the rule that asked for it, in the order of the mission file; `None`: no rule did.
    pub rule: Option<usize>,
    /// How long it waits before it acts, in ns.
    pub wait_ns: i64,
    /// Why this and nothing else.
    pub reason: String,
}

impl Evidence {
    /// Most jobs of one incident.
    pub const MOST_JOBS: usize = 64;

    /// Keeps the last jobs only, so that no incident is longer than is useful.
    #[must_use]
    pub fn bounded(mut self) -> Evidence {
        let surplus = self.jobs.len().saturating_sub(Evidence::MOST_JOBS);
        self.jobs.drain(..surplus);
        self
    }
}

impl OutputTail {
    /// Most bytes that are kept.
    pub const MOST_BYTES: usize = 4096;

    /// The last [`OutputTail::MOST_BYTES`] of a cell's output, from a line's beginning if one is near; `None` if it wrote
    /// nothing. `before_bytes` came before `output` and are not in it.
    pub fn of(output: &[u8], before_bytes: u64) -> Option<OutputTail> {
        if output.is_empty() && before_bytes == 0 {
            return None;
        }
        let mut from = output.len().saturating_sub(OutputTail::MOST_BYTES);
        if from > 0 && output.get(from - 1) != Some(&b'\n') {
            let tail = &output[from..];
            let half = &tail[..tail.len() / 2];
            let line = half.iter().position(|byte| *byte == b'\n');
            from += line.map_or(0, |newline| newline + 1);
        }
        Some(OutputTail {
            text: String::from_utf8_lossy(&output[from..]).into_owned(),
            dropped_bytes: before_bytes.saturating_add(from as u64),
        })
    }
}

/// One line: `2026-11-21T21:05:03.123Z control: exit: killed by signal 11 (SIGSEGV): restart (rule 1)`.
impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.cell.as_ref().unwrap_or(&self.mission);
        write!(f, "{} {place}: {}", self.at_utc, self.observed.what)?;
        if let Some(task) = &self.observed.task {
            write!(f, " of task {task}")?;
        }
        write!(f, ": {}: ", self.observed.detail)?;
        match &self.action.action {
            Some(action) => write!(f, "{action} ({})", self.action.reason),
            None => write!(f, "no action ({})", self.action.reason),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example(number: u64) -> Incident {
        let at = Stamp {
            monotonic_ns: 5_000_000_000,
            wall_unix_ns: 1_795_295_103_123_000_000,
        };
        Incident {
            schema: SCHEMA,
            number,
            mission: "rover".to_owned(),
            cell: Some("control".to_owned()),
            generation: Some(3),
            at,
            at_utc: at.utc(),
            observed: Seen {
                what: "exit".to_owned(),
                task: None,
                detail: "killed by signal 11 (SIGSEGV)".to_owned(),
            },
            evidence: Evidence {
                jobs: vec![JobSample {
                    task: "loop".to_owned(),
                    number: 7,
                    release_ns: 4_990_000_000,
                    begin_ns: 4_990_001_000,
                    end_ns: None,
                    late: false,
                }],
                counters: BTreeMap::from([("throttled_ns".to_owned(), 12)]),
                end: Some(End::Killed {
                    signal: 11,
                    core_dumped: false,
                }),
                output_tail: OutputTail::of(b"bad pointer\n", 0),
            },
            action: Taken {
                action: Some("restart".to_owned()),
                rule: Some(0),
                wait_ns: 0,
                reason: "rule 1".to_owned(),
            },
        }
    }

    #[test]
    fn an_incident_is_a_line_and_a_record() {
        let incident = example(1);
        assert_eq!(
            incident.to_string(),
            "2026-11-21T21:05:03.123Z control: exit: killed by signal 11 (SIGSEGV): restart (rule 1)"
        );
        let json = serde_json::to_string(&incident).unwrap();
        for field in [
            r#""monotonic_ns":5000000000"#,
            r#""at_utc":"2026-11-21T21:05:03.123Z""#,
            r#""end":{"killed":{"signal":11,"core_dumped":false}}"#,
            r#""wait_ns":0"#,
        ] {
            assert!(json.contains(field), "{field} in {json}");
        }
        assert_eq!(serde_json::from_str::<Incident>(&json).unwrap(), incident);
    }

    #[test]
    fn the_tail_of_the_output_begins_with_a_line() {
        assert_eq!(OutputTail::of(b"", 0), None);
        let lines: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let tail = OutputTail::of(lines.as_bytes(), 10).unwrap();
        assert!(tail.text.starts_with("line ") && tail.text.ends_with("line 999\n"));
        assert!(tail.text.len() <= OutputTail::MOST_BYTES);
        assert_eq!(
            tail.dropped_bytes as usize,
            10 + lines.len() - tail.text.len()
        );
        // One long line is cut where it must be.
        let tail = OutputTail::of(&[b'x'; 5000], 0).unwrap();
        assert_eq!((tail.text.len(), tail.dropped_bytes), (4096, 904));
        assert_eq!(OutputTail::of(b"\xff\n", 0).unwrap().text, "\u{fffd}\n");
    }
}
