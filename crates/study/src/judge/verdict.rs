//! The verdicts of judging.

use super::threshold::Operator;
pub(super) use super::threshold::Unit;
use serde::Serialize;

/// A run against its thresholds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Baseline of ratios: a trial of the run, or another run.
    pub baseline: String,
    /// Cautions on those ratios, as sentences.
    pub cautions: Vec<String>,
    /// In the order given.
    pub thresholds: Vec<JudgedThreshold>,
}

/// One threshold over the cells that it selects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedThreshold {
    /// As [`super::Threshold`] prints.
    pub threshold: String,
    /// One entry per cell, or per trial for the skew; at least one.
    pub cells: Vec<CellVerdict>,
}

/// One threshold in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellVerdict {
    /// Label of the cell, or name of the trial.
    pub cell: String,
    /// The verdict.
    pub verdict: Outcome,
    /// Measured value; `None` where there is none.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval, if it has one.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; absent exactly when the lower is.
    pub high: Option<f64>,
    /// Unit of the three.
    pub unit: Unit,
    /// Why the threshold is not applicable.
    pub why: Option<Why>,
    /// A remark on the verdict, without a full stop; may be empty.
    pub reason: String,
}

/// Verdict on a threshold. Prints as tables show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The condition that must not occur does not, for the whole interval.
    Passes,
    /// The condition that must not occur does, for the whole interval.
    Fails,
    /// The limit lies within the interval, or there is no interval.
    Undecided,
    /// The figure says nothing here.
    NotApplicable,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Outcome::Passes => "passes",
            Outcome::Fails => "fails",
            Outcome::Undecided => "undecided",
            Outcome::NotApplicable => "not applicable",
        })
    }
}

/// Why a threshold is not applicable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The trial did not take place, and the threshold does not name it.
    NotMeasured,
    /// The trial did not take place, and the threshold names it.
    NamedAndNotMeasured,
    /// No round of the cell is good.
    NoGoodRound,
    /// The cell ran in no real-time class.
    NotRealTime,
    /// The run has no such figure.
    NoFigure,
    /// There are too few samples for the figure.
    TooFew,
    /// There is nothing to compare with.
    NoBaseline,
    /// No cell is of that name.
    NothingSelected,
}

/// A value and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The value, in the unit of its figure.
    pub value: f64,
    /// How well it is known.
    pub ends: Ends,
}

/// How well a value is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Ends {
    /// It was seen, not estimated.
    Exact,
    /// The ends of its 95 % interval.
    Between(f64, f64),
    /// It is estimated and has no interval, for this reason.
    Unknown(String),
    /// It is at least so much: the rest lies beyond the record.
    AtLeast(f64),
    /// Only an upper bound is known: it is at most so much.
    AtMost,
}

impl Measured {
    /// Something that was seen, not estimated.
    pub fn fact(value: f64) -> Measured {
        Measured {
            value,
            ends: Ends::Exact,
        }
    }

    /// Something estimated, with its interval or why there is none.
    pub fn estimate(value: f64, interval: Option<(f64, f64)>, why_none: &str) -> Measured {
        let ends = match interval {
            Some((low, high)) => Ends::Between(low, high),
            None => Ends::Unknown(why_none.to_owned()),
        };
        Measured { value, ends }
    }

    /// Its 95 % interval, where it has one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self.ends {
            Ends::Between(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Value, lower and upper end as a table holds them, and a remark if one of them is absent.
    pub(super) fn columns(&self) -> ([Option<f64>; 3], &str) {
        let value = Some(self.value);
        match &self.ends {
            Ends::Exact => ([value, None, None], ""),
            Ends::Between(low, high) => ([value, Some(*low), Some(*high)], ""),
            Ends::Unknown(why) => ([value, None, None], why),
            Ends::AtLeast(low) => (
                [None, Some(*low), None],
                "the rest lies beyond what was kept",
            ),
            Ends::AtMost => ([None, None, value], "nothing was seen above this"),
        }
    }

    /// Facts are compared as they are; a whole interval must agree; an estimate without one decides nothing.
    pub fn outcome(&self, operator: Operator, limit: f64) -> Outcome {
        let (low, high) = match self.ends {
            Ends::Exact => (self.value, self.value),
            Ends::Between(low, high) => (low, high),
            Ends::AtLeast(low) => (low, f64::INFINITY),
            Ends::AtMost => (0.0, self.value),
            Ends::Unknown(_) => return Outcome::Undecided,
        };
        match (operator.holds(low, limit), operator.holds(high, limit)) {
            (true, true) => Outcome::Fails,
            (false, false) => Outcome::Passes,
            _ => Outcome::Undecided,
        }
    }
}

impl CellVerdict {
    pub(super) fn not_applicable(cell: &str, why: Why, reason: String) -> CellVerdict {
        CellVerdict {
            cell: cell.to_owned(),
            verdict: Outcome::NotApplicable,
            value: None,
            low: None,
            high: None,
            unit: Unit::Count,
            why: Some(why),
            reason,
        }
    }

    pub(super) fn of(cell: &str, measured: &Measured, unit: Unit, outcome: Outcome) -> CellVerdict {
        let reason = match (outcome, &measured.ends) {
            (_, Ends::Unknown(why)) => why.clone(),
            (Outcome::Undecided, Ends::AtLeast(_)) => {
                "the values lie beyond the tool's histogram".to_owned()
            }
            (Outcome::Undecided, Ends::AtMost) => String::new(),
            (Outcome::Undecided, _) => "the limit lies within the 95 % interval".to_owned(),
            _ => String::new(),
        };
        let interval = measured.interval();
        CellVerdict {
            cell: cell.to_owned(),
            verdict: outcome,
            value: (measured.ends != Ends::AtMost).then_some(measured.value),
            low: interval.map(|interval| interval.0),
            high: interval.map(|interval| interval.1),
            unit,
            why: None,
            reason,
        }
    }
}

impl JudgedThreshold {
    /// Fails before undecided before not applicable before passes.
    ///
    /// A threshold that judged a cell does not fail for trials that did not take place and that it does not name; every other threshold
    /// that says nothing is not applicable.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| self.cells.iter().any(|cell| cell.verdict == outcome);
        let silent = |cell: &CellVerdict| cell.why.is_some_and(|why| why != Why::NotMeasured);
        if any(Outcome::Fails) {
            Outcome::Fails
        } else if any(Outcome::Undecided) {
            Outcome::Undecided
        } else if !any(Outcome::Passes) || self.cells.iter().any(silent) {
            Outcome::NotApplicable
        } else {
            Outcome::Passes
        }
    }
}

impl Judged {
    /// The worst of all thresholds, in the same order.
    pub fn outcome(&self) -> Outcome {
        let of = |outcome| self.thresholds.iter().any(|t| t.outcome() == outcome);
        let order = [Outcome::Fails, Outcome::Undecided, Outcome::NotApplicable];
        order
            .into_iter()
            .find(|&outcome| of(outcome))
            .unwrap_or(Outcome::Passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_decides() {
        let at = |low, high| Measured {
            value: f64::midpoint(low, high),
            ends: Ends::Between(low, high),
        };
        let of = |value, ends| Measured { value, ends };
        for (measured, operator, outcome) in [
            (at(101.0, 110.0), Operator::Above, Outcome::Fails),
            (at(90.0, 110.0), Operator::Above, Outcome::Undecided),
            (at(90.0, 100.0), Operator::Above, Outcome::Passes),
            (at(90.0, 100.0), Operator::AtLeast, Outcome::Undecided),
            (at(100.0, 110.0), Operator::AtLeast, Outcome::Fails),
            (at(90.0, 99.0), Operator::Below, Outcome::Fails),
            (at(90.0, 101.0), Operator::Below, Outcome::Undecided),
            (at(100.0, 101.0), Operator::Below, Outcome::Passes),
            (at(90.0, 100.0), Operator::AtMost, Outcome::Fails),
            (Measured::fact(100.0), Operator::Above, Outcome::Passes),
            (Measured::fact(100.0), Operator::AtLeast, Outcome::Fails),
            (
                of(99.0, Ends::AtLeast(99.0)),
                Operator::Above,
                Outcome::Undecided,
            ),
            (
                of(101.0, Ends::AtLeast(101.0)),
                Operator::Above,
                Outcome::Fails,
            ),
            (of(101.0, Ends::AtMost), Operator::Above, Outcome::Undecided),
            (of(100.0, Ends::AtMost), Operator::Above, Outcome::Passes),
            (
                of(1.0, Ends::Unknown(String::new())),
                Operator::Above,
                Outcome::Undecided,
            ),
        ] {
            assert_eq!(
                measured.outcome(operator, 100.0),
                outcome,
                "{measured:?} {operator:?}"
            );
        }
    }

    #[test]
    fn the_worst_verdict_stands_for_all() {
        let cell = |outcome, why| CellVerdict {
            verdict: outcome,
            why,
            ..CellVerdict::not_applicable("c", Why::TooFew, String::new())
        };
        let passes = || cell(Outcome::Passes, None);
        let absent = |why| cell(Outcome::NotApplicable, Some(why));
        let of = |cells| {
            JudgedThreshold {
                threshold: String::new(),
                cells,
            }
            .outcome()
        };
        assert_eq!(of(vec![passes()]), Outcome::Passes);
        assert_eq!(
            of(vec![passes(), absent(Why::NotMeasured)]),
            Outcome::Passes
        );
        assert_eq!(of(vec![absent(Why::NotMeasured)]), Outcome::NotApplicable);
        assert_eq!(
            of(vec![passes(), absent(Why::TooFew)]),
            Outcome::NotApplicable
        );
        let undecided = || cell(Outcome::Undecided, None);
        assert_eq!(
            of(vec![absent(Why::TooFew), undecided()]),
            Outcome::Undecided
        );
        assert_eq!(
            of(vec![undecided(), cell(Outcome::Fails, None)]),
            Outcome::Fails
        );
    }
}
