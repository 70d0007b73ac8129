//! The figures of a supply study that can be judged: the longest gap of each budget, and the deadlines that tried sets missed in it.

use model::Duration;
use record::supply::{Budget, MeasuredSupply, SupplySummary, TriedSummary};

use crate::judge::{Count, Figure, Measured, Reading, Readings, Subject, Unit};
use crate::kind::Kind;
use text::words::plural;

/// The sets that are judged without being named: admission relies on the measured supply.
const ADMITTED: &str = "measured";

/// The figures of a supply study: of each budget, of a thread without one (`none`), and of each set run inside a budget (`textbook`
/// or `measured`, by the supply that accepts it).
pub(crate) fn supply_readings(summary: &SupplySummary) -> Readings {
    let supplies = summary.supplies.iter().map(of_budget);
    let host = summary.host.iter().map(|host| Subject {
        unnamed: false,
        ..Subject::new("none", vec![gap(host.longest_gap_ns.most)])
    });
    let tried = (summary.tried.iter())
        .filter(|one| !one.in_budget.tasks.is_empty())
        .map(of_set);
    let absent =
        (summary.not_measured.iter()).map(|absent| Subject::absent(&absent.trial, &absent.reason));
    Readings::new(
        Kind::Supply,
        supplies.chain(host).chain(tried).chain(absent).collect(),
    )
}

fn of_budget(supply: &MeasuredSupply) -> Subject {
    let (enforcer, budget) = (supply.held.enforcer.name(), budget(&supply.held));
    let remark = format!("of {}", plural(supply.rounds.into(), "round"));
    let gap = gap(supply.longest_gap_ns.most).remarked(remark);
    Subject::new(format!("{enforcer}/{budget}"), vec![gap]).also([enforcer.to_owned(), budget])
}

fn gap(most_ns: u64) -> Reading {
    Reading::new(
        Figure::LongestGap,
        Unit::Ns,
        Ok(Measured::fact(most_ns as f64)),
    )
}

fn of_set(one: &TriedSummary) -> Subject {
    let chosen_by = one.set.chosen_by.name();
    let all = one.in_budget.all();
    let readings = [(Count::Missed, all.missed()), (Count::Late, all.late)];
    let readings = readings.map(|(count, number)| {
        let remark = format!("of {}", plural(all.jobs, "job"));
        Reading::count(Figure::Count(count), number).remarked(remark)
    });
    let (enforcer, budget) = (one.set.held.enforcer.name(), budget(&one.set.held));
    let label = format!("{chosen_by}/{budget}");
    Subject {
        // Enforcers that were measured together have sets of the same label.
        own: vec![label.clone(), format!("{chosen_by}/{enforcer}/{budget}")],
        unnamed: chosen_by == ADMITTED,
        ..Subject::new(label, readings.to_vec()).also([chosen_by.to_owned()])
    }
}

/// `3ms/10ms`.
fn budget(held: &Budget) -> String {
    let [budget, period] = [held.budget_ns, held.period_ns]
        .map(|ns| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
    format!("{budget}/{period}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Outcome, judge};
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
            let judged = judge(&supply_readings(&summary), &[text.parse().unwrap()]);
            (judged.outcome(), judged.thresholds[0].cells.len())
        };
        assert_eq!(outcome("missed > 2"), (Outcome::Passes, 2));
        assert_eq!(outcome("missed > 0"), (Outcome::Fails, 2));
        assert_eq!(
            outcome("measured/3ms/10ms.missed > 0"),
            (Outcome::Passes, 1)
        );
        assert_eq!(outcome("textbook.missed < 1"), (Outcome::Passes, 1));
        assert_eq!(outcome("tick.missed > 0").0, Outcome::NotApplicable);
        assert_eq!(outcome("latency.p99 > 1us").0, Outcome::NotApplicable);
    }
}
