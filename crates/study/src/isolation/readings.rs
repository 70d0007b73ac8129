//! The figures of a study of isolation that can be judged: deadlines that the victim missed while the attacker overran.

use model::Enforcer;
use record::isolation::{IsolationSummary, Standing};

use crate::judge::{Count, Figure, Reading, Readings, Subject};
use crate::kind::Kind;
use text::words::plural;

/// The figures of a study of isolation, enforcer by enforcer; nothing enforced is `none`, and judged by that name alone.
pub(crate) fn isolation_readings(summary: &IsolationSummary) -> Readings {
    let standings = summary.standings.iter().map(of_standing);
    let absent =
        (summary.not_measured.iter()).map(|absent| Subject::absent(&absent.trial, &absent.reason));
    Readings::new(Kind::Isolation, standings.chain(absent).collect())
}

fn of_standing(standing: &Standing) -> Subject {
    let enforcer = standing.enforcer.map_or("none", Enforcer::name);
    let label = match &standing.load {
        Some(load) => format!("{enforcer}/{load}"),
        None => enforcer.to_owned(),
    };
    let victim = &standing.victim;
    let readings = [(Count::Missed, victim.missed()), (Count::Late, victim.late)];
    let readings = readings.map(|(count, number)| {
        let remark = format!("of {}", plural(victim.jobs, "job"));
        Reading::count(Figure::Count(count), number).remarked(remark)
    });
    Subject {
        unnamed: standing.enforcer.is_some(),
        ..Subject::new(label, readings.to_vec()).also([enforcer.to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Outcome, judge};
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
            let judged = judge(&isolation_readings(&summary), &[text.parse().unwrap()]);
            (judged.outcome(), judged.thresholds[0].cells.len())
        };
        assert_eq!(outcome("missed > 2"), (Outcome::Passes, 2));
        assert_eq!(outcome("missed > 0"), (Outcome::Fails, 2));
        assert_eq!(outcome("rt-cgroup.missed > 0"), (Outcome::Passes, 1));
        assert_eq!(outcome("none.missed < 10"), (Outcome::Passes, 1));
        assert_eq!(outcome("hcbs.missed > 0").0, Outcome::NotApplicable);
        assert_eq!(outcome("latency.p99 > 1us").0, Outcome::NotApplicable);
    }
}
