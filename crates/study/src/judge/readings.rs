//! Readings of a run of any kind: subjects (cells, sets, enforcers, series of files), each with its figures and their values. A kind lists
//! them in one function; everything else here is written once, over the list.

use super::threshold::{Figure, Selector};
use super::verdict::{Measured, Unit, Why};
use crate::kind::Kind;

/// Why a figure is not available, also in words.
pub type Absent = (Why, String);

/// The figures of a run, subject by subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Readings {
    /// The kind of the run.
    pub kind: Kind,
    /// Baseline of ratios; empty where there are none.
    pub to: String,
    /// Cautions on those ratios, as sentences.
    pub cautions: Vec<String>,
    /// In the order of the run's tables.
    pub subjects: Vec<Subject>,
}

/// Owner of figures: a cell, a set, an enforcer, a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Its name in tables.
    pub label: String,
    /// Names that mean it alone.
    pub own: Vec<String>,
    /// Names that may mean others as well: of its trial, its engine, its file.
    pub shared: Vec<String>,
    /// Whether a threshold without a name selects it.
    pub unnamed: bool,
    /// Why it was not measured; it has no readings then.
    pub absent: Option<String>,
    /// Another reason why it is undecided, on a separate line after the last subject with the same one: label and reason.
    pub open: Option<(String, String)>,
    /// Its figures.
    pub readings: Vec<Reading>,
}

/// One figure of a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Which.
    pub figure: Figure,
    /// Unit of its value. The same figure may exist in two units, as a number and as a share.
    pub unit: Unit,
    /// The value, or why there is none.
    pub found: Result<Measured, Absent>,
    /// A remark on the value where the verdict itself says nothing, without a full stop; may be empty.
    pub remark: String,
    /// Why a threshold does not pass even if this value is within it: something that may be worse is missing.
    pub doubt: Option<String>,
}

impl Readings {
    /// Without a baseline.
    pub fn new(kind: Kind, subjects: Vec<Subject>) -> Readings {
        Readings {
            kind,
            to: String::new(),
            cautions: Vec::new(),
            subjects,
        }
    }

    /// A row of [`record::export::FIGURES`] for each figure, and for each subject that was not measured. Figures that the subject does not
    /// have are left out.
    pub fn rows(&self) -> Vec<[String; 7]> {
        let mut rows = Vec::new();
        for subject in &self.subjects {
            let row = |figure: String, unit: &str, values: [Option<f64>; 3], why: &str| {
                let [value, low, high] = values.map(|value| match value {
                    Some(value) => value.to_string(),
                    None => String::new(),
                });
                let (label, unit, why) = (subject.label.clone(), unit.to_owned(), why.to_owned());
                [label, figure, unit, value, low, high, why]
            };
            if let Some(why) = &subject.absent {
                rows.push(row(String::new(), "", [None; 3], why));
            }
            for reading in &subject.readings {
                let (values, why) = match &reading.found {
                    Err((Why::NoFigure, _)) => continue,
                    Err((_, why)) => ([None; 3], why.as_str()),
                    Ok(measured) => measured.columns(),
                };
                rows.push(row(
                    reading.figure.to_string(),
                    reading.unit.name(),
                    values,
                    why,
                ));
            }
        }
        rows
    }

    /// Whether any subject has this figure in this unit, even without a value.
    pub(super) fn have(&self, figure: Figure, unit: Unit) -> bool {
        self.subjects
            .iter()
            .any(|subject| subject.reading(figure, unit).is_some())
    }
}

impl Subject {
    /// A subject that was measured, and that thresholds without a name select.
    pub fn new(label: impl Into<String>, readings: Vec<Reading>) -> Subject {
        let label = label.into();
        Subject {
            own: vec![label.clone()],
            label,
            shared: Vec::new(),
            unnamed: true,
            absent: None,
            open: None,
            readings,
        }
    }

    /// A subject that was not measured, for this reason.
    pub fn absent(label: impl Into<String>, reason: &str) -> Subject {
        Subject {
            absent: Some(format!("not measured: {reason}")),
            ..Subject::new(label, Vec::new())
        }
    }

    /// The same subject, also selected by these names.
    #[must_use]
    pub fn also(self, shared: impl IntoIterator<Item = String>) -> Subject {
        Subject {
            shared: shared.into_iter().collect(),
            ..self
        }
    }

    /// Its reading of this figure in this unit.
    pub fn reading(&self, figure: Figure, unit: Unit) -> Option<&Reading> {
        (self.readings.iter()).find(|reading| reading.figure == figure && reading.unit == unit)
    }

    /// Whether a threshold of this name selects it.
    pub(super) fn is_meant(&self, selector: Option<&Selector>) -> bool {
        match selector {
            None => self.unnamed,
            Some(selector) => {
                let mut names = self.own.iter().chain(&self.shared);
                names.any(|name| selector.matches(name))
            }
        }
    }

    /// Whether a threshold of this name names it and no other.
    pub(super) fn is_named(&self, selector: Option<&Selector>) -> bool {
        selector.is_some_and(|selector| {
            !selector.is_pattern() && self.own.iter().any(|name| selector.matches(name))
        })
    }
}

impl Reading {
    /// A value, or why there is none.
    pub fn new(figure: Figure, unit: Unit, found: Result<Measured, Absent>) -> Reading {
        Reading {
            figure,
            unit,
            found,
            remark: String::new(),
            doubt: None,
        }
    }

    /// A count.
    pub fn count(figure: Figure, number: u64) -> Reading {
        Reading::new(figure, Unit::Count, Ok(Measured::fact(number as f64)))
    }

    /// The same with a remark.
    #[must_use]
    pub fn remarked(self, remark: impl Into<String>) -> Reading {
        Reading {
            remark: remark.into(),
            ..self
        }
    }
}
