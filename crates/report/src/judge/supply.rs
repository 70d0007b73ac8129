//! Thresholds on supply studies: deadlines that tried sets missed inside their budgets.

use model::Duration;
use record::supply::{SupplySummary, TriedSummary};

use super::threshold::{Count, Figure, Limit, Threshold};
use super::verdict::{CellVerdict, Judged, JudgedThreshold, Measured, Unit, Why};

/// The sets that are judged without a name: admission counts on what was measured.
const ADMITTED: &str = "measured";

/// Judges the sets that each threshold is about: those chosen by its name (`textbook`, `measured`), and without a name those
/// that the measured supply accepts.
pub fn judge_supply(summary: &SupplySummary, thresholds: &[Threshold]) -> Judged {
    let judged = |threshold: &Threshold| JudgedThreshold {
        threshold: threshold.to_string(),
        cells: verdicts(summary, threshold),
    };
    Judged {
        baseline: String::new(),
        cautions: Vec::new(),
        thresholds: thresholds.iter().map(judged).collect(),
    }
}

fn verdicts(summary: &SupplySummary, threshold: &Threshold) -> Vec<CellVerdict> {
    let selector = threshold.selector.as_ref();
    let name = selector.map_or(ADMITTED, |selector| selector.0.as_str());
    let (Figure::Count(Count::Missed), Limit::Number(limit)) = (threshold.figure, threshold.limit)
    else {
        let reason =
            "a supply study counts deadlines that tried sets missed; write `missed > 0`".to_owned();
        return vec![CellVerdict::not_applicable(name, Why::NoFigure, reason)];
    };
    let selected = |one: &&TriedSummary| {
        let chosen_by = one.set.chosen_by.name();
        !one.in_budget.tasks.is_empty()
            && match selector {
                None => chosen_by == ADMITTED,
                Some(selector) => selector.matches(chosen_by) || selector.matches(&label(one)),
            }
    };
    let found: Vec<CellVerdict> = (summary.tried.iter())
        .filter(selected)
        .map(|one| {
            let measured = Measured::fact(one.in_budget.all().missed() as f64);
            let outcome = measured.outcome(threshold.operator, limit as f64);
            CellVerdict::of(&label(one), measured, Unit::Count, outcome)
        })
        .collect();
    if found.is_empty() {
        let reason = "no set chosen by this name was run inside a budget".to_owned();
        return vec![CellVerdict::not_applicable(
            name,
            Why::NothingSelected,
            reason,
        )];
    }
    found
}

/// `measured/3ms/10ms`.
fn label(one: &TriedSummary) -> String {
    let held = one.set.held;
    let [budget, period] = [held.budget_ns, held.period_ns]
        .map(|ns| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
    format!("{}/{budget}/{period}", one.set.chosen_by.name())
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use model::Enforcer;
    use record::isolation::Misses;
    use record::supply::{
        Budget, ChosenBy, Foretold, SUPPLY_SUMMARY_SCHEMA, TriedOutcome, TriedSet,
    };

    fn one(chosen_by: ChosenBy, budget_ns: u64, late: u64) -> TriedSummary {
        let foretold = Foretold {
            accepted: true,
            responses_ns: Vec::new(),
            witness: None,
        };
        TriedSummary {
            set: TriedSet {
                number: 1,
                held: Budget {
                    enforcer: Enforcer::RtCgroup,
                    budget_ns,
                    period_ns: 10_000_000,
                },
                chosen_by,
                tasks: Vec::new(),
                textbook: foretold.clone(),
                measured: foretold,
            },
            in_budget: TriedOutcome {
                tasks: vec![Misses {
                    jobs: 100,
                    late,
                    ..Misses::default()
                }],
                ..TriedOutcome::default()
            },
            without: TriedOutcome::default(),
        }
    }

    #[test]
    fn admitted_sets_are_judged_and_others_only_by_name() {
        let summary = SupplySummary {
            schema: SUPPLY_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            supplies: Vec::new(),
            host: None,
            load: None,
            not_measured: Vec::new(),
            tried: vec![
                one(ChosenBy::Textbook, 3_000_000, 40),
                one(ChosenBy::Measured, 3_000_000, 0),
                one(ChosenBy::Measured, 1_000_000, 2),
            ],
            not_tried: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
        };
        let outcome = |text: &str| {
            let judged = judge_supply(&summary, &[text.parse().unwrap()]);
            (judged.outcome(), judged.thresholds[0].cells.len())
        };
        assert_eq!(outcome("missed > 2"), (Outcome::Met, 2));
        assert_eq!(outcome("missed > 0"), (Outcome::Missed, 2));
        assert_eq!(outcome("measured/3ms/10ms.missed > 0"), (Outcome::Met, 1));
        assert_eq!(outcome("textbook.missed < 1"), (Outcome::Met, 1));
        assert_eq!(outcome("tick.missed > 0").0, Outcome::NotApplicable);
        assert_eq!(outcome("latency.p99 > 1us").0, Outcome::NotApplicable);
    }
}
