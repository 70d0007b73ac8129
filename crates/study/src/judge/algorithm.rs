//! Judging, the same for every kind of run: compares a threshold with all readings that it selects.

use super::readings::{Reading, Readings, Subject};
use super::threshold::Threshold;
use super::verdict::{CellVerdict, Ends, Judged, JudgedThreshold, Measured, Outcome, Unit, Why};

/// Judges every subject that each threshold selects.
pub fn judge(readings: &Readings, thresholds: &[Threshold]) -> Judged {
    let judged = |threshold: &Threshold| JudgedThreshold {
        threshold: threshold.to_string(),
        cells: verdicts(readings, threshold),
    };
    Judged {
        baseline: readings.to.clone(),
        cautions: readings.cautions.clone(),
        thresholds: thresholds.iter().map(judged).collect(),
    }
}

fn verdicts(readings: &Readings, threshold: &Threshold) -> Vec<CellVerdict> {
    let (unit, limit) = threshold.limit.of();
    let selector = threshold.selector.as_ref();
    // If nothing measured has the figure, an unmeasured subject is not the reason.
    if !readings.have(threshold.figure, unit)
        && readings.subjects.iter().any(|s| s.absent.is_none())
    {
        return vec![nothing(readings, threshold, unit)];
    }
    let mut found = Vec::new();
    let (mut is_judged, mut is_lacking) = (false, false);
    // Why a group of subjects is undecided, added after the last of them.
    let mut open: Option<&(String, String)> = None;
    for subject in readings.subjects.iter().filter(|s| s.is_meant(selector)) {
        let not_measured = match subject.is_named(selector) {
            true => Why::NamedAndNotMeasured,
            false => Why::NotMeasured,
        };
        if let Some(reason) = &subject.absent {
            found.push(CellVerdict::not_applicable(
                &subject.label,
                not_measured,
                reason.clone(),
            ));
            continue;
        }
        let Some(reading) = subject.reading(threshold.figure, unit) else {
            is_lacking = true;
            continue;
        };
        if open != subject.open.as_ref() {
            found.extend(open.map(left_open));
            open = subject.open.as_ref();
        }
        is_judged = true;
        found.push(match &reading.found {
            Ok(measured) => decided(subject, reading, measured, threshold, limit),
            Err((why, reason)) => {
                let why = match why {
                    Why::NotMeasured => not_measured,
                    why => *why,
                };
                CellVerdict::not_applicable(&subject.label, why, reason.clone())
            }
        });
    }
    found.extend(open.map(left_open));
    if !is_judged && (is_lacking || found.is_empty()) {
        found.push(nothing(readings, threshold, unit));
    }
    found
}

fn decided(
    subject: &Subject,
    reading: &Reading,
    measured: &Measured,
    threshold: &Threshold,
    limit: f64,
) -> CellVerdict {
    let outcome = measured.outcome(threshold.operator, limit);
    let mut verdict = CellVerdict::of(&subject.label, measured, reading.unit, outcome);
    if verdict.reason.is_empty() {
        verdict.reason.clone_from(&reading.remark);
    }
    if measured.ends == Ends::AtMost && outcome == Outcome::Undecided {
        verdict.reason += "; the limit lies below that";
    }
    if let (Some(doubt), Outcome::Passes) = (&reading.doubt, outcome) {
        verdict.verdict = Outcome::Undecided;
        verdict.reason.clone_from(doubt);
    }
    verdict
}

fn left_open((label, reason): &(String, String)) -> CellVerdict {
    let unknown = Measured::estimate(0.0, None, reason);
    CellVerdict {
        value: None,
        ..CellVerdict::of(label, &unknown, Unit::Ns, Outcome::Undecided)
    }
}

/// The most names that an error lists when one is wrong.
const MOST_NAMES: usize = 12;

/// The verdict of a threshold that selects nothing.
fn nothing(readings: &Readings, threshold: &Threshold, unit: Unit) -> CellVerdict {
    let figure = threshold.figure;
    let name = threshold.selector.as_ref().map_or("*", |s| s.0.as_str());
    let (why, reason) = if unit == Unit::Ratio {
        let why = match readings.to.is_empty() {
            true => Why::NoBaseline,
            false => Why::NothingSelected,
        };
        (
            why,
            "there is nothing to compare with a baseline".to_owned(),
        )
    } else if readings.have(figure, unit) {
        let has = |subject: &&Subject| subject.reading(figure, unit).is_some();
        let there = readings.subjects.iter().filter(has);
        let there: Vec<&str> = there.map(|subject| subject.label.as_str()).collect();
        let what = match threshold.selector {
            Some(_) => "of this name",
            None => "that is judged without being named",
        };
        let subject = readings.kind.subject();
        let there = match there.len() {
            0..=MOST_NAMES => there.join(", "),
            all => {
                let first = there[..MOST_NAMES].join(", ");
                format!("{first} and {} others", all - MOST_NAMES)
            }
        };
        (
            Why::NothingSelected,
            format!("no {subject} {what}; there are {there}"),
        )
    } else {
        // A run may lack figures of its kind.
        let why = match readings.kind.has(figure) && unit != Unit::Share {
            true => Why::NothingSelected,
            false => Why::NoFigure,
        };
        (why, readings.kind.lacks(figure, unit))
    };
    CellVerdict::not_applicable(name, why, reason)
}
