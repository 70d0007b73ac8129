//! Thresholds on studies of isolation: deadlines that the victim missed while the attacker overran.

use super::threshold::{Count, Figure, Limit, Threshold};
use super::verdict::{CellVerdict, Judged, JudgedThreshold, Measured, Unit, Why};
use model::Enforcer;
use record::isolation::{IsolationSummary, Standing};

/// Judges every enforcer that each threshold is about: those of its name (`none` where nothing was enforced), and without a
/// name all that enforce something.
pub fn judge_isolation(summary: &IsolationSummary, thresholds: &[Threshold]) -> Judged {
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

fn verdicts(summary: &IsolationSummary, threshold: &Threshold) -> Vec<CellVerdict> {
    let selector = threshold.selector.as_ref();
    let name = selector.map_or("*", |selector| selector.0.as_str());
    let (Figure::Count(Count::Missed), Limit::Number(limit)) = (threshold.figure, threshold.limit)
    else {
        let reason = "a study of isolation counts missed deadlines; write `missed > 0`".to_owned();
        return vec![CellVerdict::not_applicable(name, Why::NoFigure, reason)];
    };
    let enforcer = |standing: &Standing| standing.enforcer.map_or("none", Enforcer::name);
    let label = |standing: &Standing| match &standing.load {
        Some(load) => format!("{}/{load}", enforcer(standing)),
        None => enforcer(standing).to_owned(),
    };
    let selected = |standing: &&Standing| match selector {
        None => standing.enforcer.is_some(),
        Some(selector) => {
            selector.matches(enforcer(standing)) || selector.matches(&label(standing))
        }
    };
    let found: Vec<CellVerdict> = (summary.standings.iter())
        .filter(selected)
        .map(|standing| {
            let measured = Measured::fact(standing.victim.missed() as f64);
            let outcome = measured.outcome(threshold.operator, limit as f64);
            CellVerdict::of(&label(standing), measured, Unit::Count, outcome)
        })
        .collect();
    if found.is_empty() {
        let reason = "no contest under an enforcer of this name was measured".to_owned();
        return vec![CellVerdict::not_applicable(
            name,
            Why::NothingSelected,
            reason,
        )];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use record::isolation::{Against, ISOLATION_SUMMARY_SCHEMA, Misses};

    #[test]
    fn enforcers_are_judged_and_nothing_is_only_by_name() {
        let standing = |enforcer, late| Standing {
            enforcer,
            load: None,
            utilisations_permille: vec![600],
            victim: Misses {
                late,
                jobs: 100,
                trials: 5,
                ..Misses::default()
            },
            alone: Misses::default(),
            pairs: (0, 0),
            against: Against::TooFew,
        };
        let summary = IsolationSummary {
            schema: ISOLATION_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            overrun: 1.8,
            arms: Vec::new(),
            standings: vec![
                standing(None, 50),
                standing(Some(Enforcer::RtCgroup), 0),
                standing(Some(Enforcer::Deadline), 2),
            ],
            received: Vec::new(),
            not_measured: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
        };
        let outcome = |text: &str| {
            let judged = judge_isolation(&summary, &[text.parse().unwrap()]);
            (judged.outcome(), judged.thresholds[0].cells.len())
        };
        assert_eq!(outcome("missed > 2"), (Outcome::Met, 2));
        assert_eq!(outcome("missed > 0"), (Outcome::Missed, 2));
        assert_eq!(outcome("rt-cgroup.missed > 0"), (Outcome::Met, 1));
        assert_eq!(outcome("none.missed < 10"), (Outcome::Met, 1));
        assert_eq!(outcome("hcbs.missed > 0").0, Outcome::NotApplicable);
        assert_eq!(outcome("latency.p99 > 1us").0, Outcome::NotApplicable);
    }
}
