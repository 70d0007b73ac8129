//! The record of a scenario that repeats a single measurement instead of running periodic jobs: `series.json`.
//!
//! Raw values only, in the order in which they were taken; their summary is computed from them
//! ([`SeriesSummary`]).

mod summary;

use serde::{Deserialize, Serialize};

pub use crate::ground::Condition;
pub use summary::{SERIES_SUMMARY_SCHEMA, SeriesFigure, SeriesSummary};

use crate::Kind;
use crate::document::Document;
use crate::ground::NotMeasured;

/// Schema of `series.json`.
pub const SERIES_SCHEMA: u64 = 1;

/// A run of a scenario that repeats single measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// [`SERIES_SCHEMA`].
    pub schema: u64,
    /// Name of the scenario, such as `startup`.
    pub scenario: String,
    /// The question it answers, one sentence.
    pub question: String,
    /// The conditions of the measurement, in the order of the report.
    pub conditions: Vec<Condition>,
    /// Planned number of measurements of every subject.
    pub rounds_planned: u32,
    /// The subject with which the others are compared, round by round.
    pub baseline_subject: Option<String>,
    /// The values, by subject and part, in the order of the report.
    pub series: Vec<Series>,
    /// Subjects that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// The subjects of a sweep over the size of cells, in the order of the report; empty where nothing was swept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<Swept>,
}

/// A subject of a sweep over the size of cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// The subject, such as `crun, 2 vcpus, 128MiB`.
    pub subject: String,
    /// Its name without the size, such as `crun`.
    pub of: String,
    /// Its size.
    #[serde(flatten)]
    pub size: model::Size,
}

/// The subject that another is compared with: in a sweep the first of its kind, else `baseline`; `None` if it is itself that one.
pub fn compared_with<'a>(
    sweep: &'a [Swept],
    baseline: Option<&'a str>,
    subject: &str,
) -> Option<&'a str> {
    let kind = sweep.iter().find(|one| one.subject == subject);
    let first = kind.and_then(|kind| sweep.iter().find(|one| one.of == kind.of));
    first
        .map(|first| first.subject.as_str())
        .or(baseline)
        .filter(|with| *with != subject)
}

impl Document for SeriesRecord {
    const FILE: &'static str = Kind::Series.file();
    const SCHEMA: u64 = SERIES_SCHEMA;
}

model::choice! {
    /// The unit of a value.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Quantity: symbol {
        /// Nanoseconds of CLOCK_MONOTONIC.
        Ns = "ns",
        /// Bytes.
        Bytes = "bytes",
        /// Thousandths of a degree Celsius.
        Millicelsius = "millicelsius",
        /// A number of things.
        Count = "count",
    }
}

/// One quantity of one subject, over all rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The subject: an engine, a launcher.
    pub subject: String,
    /// Which figure of it: a phase, a fault, a kind of memory, a number of threads.
    pub part: String,
    /// The part of the same subject that this one is a share of; the shares of a part add up to it. `None`: the figure is
    /// not a share.
    #[serde(default)]
    pub of: Option<String>,
    /// The unit of the values.
    pub unit: Quantity,
    /// In the order taken.
    pub values: Vec<Value>,
    /// Rounds without a value.
    pub failures: Vec<Failure>,
}

/// One measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// Round, from 1.
    pub round: u32,
    /// Place in the run's order of execution, from 1; parts that were measured together share it.
    pub order: u32,
    /// The value, in the unit of its series.
    pub value: i64,
}

/// A measurement that gave no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Round, from 1.
    pub round: u32,
    /// Place in the run's order of execution, from 1.
    pub order: u32,
    /// One sentence.
    pub why: String,
}

impl SeriesRecord {
    /// The series of this subject and part, created if there is none yet: a new part is placed after the last one of its
    /// subject.
    pub fn of(
        &mut self,
        subject: &str,
        part: &str,
        of: Option<&str>,
        unit: Quantity,
    ) -> &mut Series {
        let found = |s: &Series| s.subject == subject && s.part == part;
        let at = self.series.iter().position(found).unwrap_or_else(|| {
            let last = self.series.iter().rposition(|s| s.subject == subject);
            let at = last.map_or(self.series.len(), |last| last + 1);
            let new = Series {
                subject: subject.to_owned(),
                part: part.to_owned(),
                of: of.map(str::to_owned),
                unit,
                values: Vec::new(),
                failures: Vec::new(),
            };
            self.series.insert(at, new);
            at
        });
        &mut self.series[at]
    }

    /// The subjects, each once, in the order of the record.
    pub fn subjects(&self) -> Vec<&str> {
        let mut subjects: Vec<&str> = Vec::new();
        for series in &self.series {
            if !subjects.contains(&series.subject.as_str()) {
                subjects.push(&series.subject);
            }
        }
        subjects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SeriesRecord {
        SeriesRecord {
            schema: SERIES_SCHEMA,
            scenario: "startup".to_owned(),
            question: "How long?".to_owned(),
            conditions: vec![Condition {
                name: "payload".to_owned(),
                text: "ends at once".to_owned(),
            }],
            rounds_planned: 2,
            baseline_subject: Some("a".to_owned()),
            series: Vec::new(),
            not_measured: Vec::new(),
            sweep: Vec::new(),
        }
    }

    #[test]
    fn in_a_sweep_the_first_of_its_kind_is_the_baseline() {
        let one = |of: &str, vcpus| Swept {
            subject: format!("{of}, {vcpus}"),
            of: of.to_owned(),
            size: model::Size {
                vcpus: Some(vcpus),
                memory_bytes: None,
            },
        };
        let sweep = [one("a", 1), one("a", 2), one("b", 1)];
        let with = |subject| compared_with(&sweep, Some("bare"), subject);
        assert_eq!(
            ["a, 1", "a, 2", "b, 1", "c", "bare"].map(with),
            [None, Some("a, 1"), None, Some("bare"), None]
        );
        let text = serde_json::to_string(&sweep[1]).unwrap();
        assert_eq!(text, r#"{"subject":"a, 2","of":"a","vcpus":2}"#);
        assert_eq!(serde_json::from_str::<Swept>(&text).unwrap(), sweep[1]);
    }

    #[test]
    fn a_new_part_stands_behind_its_subject() {
        let mut record = record();
        for (subject, part) in [
            ("a", "whole"),
            ("b", "whole"),
            ("a", "exit"),
            ("a", "whole"),
        ] {
            let value = Value {
                round: 1,
                order: 1,
                value: 5,
            };
            let of = (part == "exit").then_some("whole");
            record
                .of(subject, part, of, Quantity::Ns)
                .values
                .push(value);
        }
        let names: Vec<(&str, &str, usize)> = record
            .series
            .iter()
            .map(|s| (s.subject.as_str(), s.part.as_str(), s.values.len()))
            .collect();
        assert_eq!(
            names,
            [("a", "whole", 2), ("a", "exit", 1), ("b", "whole", 1)]
        );
        assert_eq!(record.subjects(), ["a", "b"]);
    }

    #[test]
    fn a_record_comes_back_and_names_its_units() {
        let mut record = record();
        record
            .of("a", "PSS", None, Quantity::Bytes)
            .failures
            .push(Failure {
                round: 2,
                order: 7,
                why: "gone".to_owned(),
            });
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains("\"unit\":\"bytes\""), "{text}");
        assert_eq!(serde_json::from_str::<SeriesRecord>(&text).unwrap(), record);
    }
}
