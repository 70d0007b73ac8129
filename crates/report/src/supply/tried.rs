//! Task sets run inside budgets: whether they met their deadlines, as rows and sentences.

use record::isolation::Misses;
use record::supply::{ChosenBy, Foretold, SupplySummary, TriedOutcome, TriedSummary};
use study::reservation;

use super::rows::zero_or;
use crate::isolation::{lateness, missed};
use text::grid::Text;
use text::style::Tone;
use text::units::{exact, time};
use text::words::{count, plural};

/// Headings of a set's row.
pub(super) const HEADINGS: [&str; 9] = [
    "reservation",
    "set",
    "tasks",
    "textbook",
    "measured supply",
    "missed in the budget",
    "latest job",
    "missed without it",
    "latest job",
];

/// One set.
pub(super) fn row(tried: &TriedSummary) -> [Text; 9] {
    let plain = |text: String| Text(text, Tone::Plain);
    let set = &tried.set;
    let tasks: Vec<String> = (set.tasks.iter())
        .map(|task| format!("{} / {}", exact(task.wcet_ns), exact(task.period_ns)))
        .collect();
    let late = |outcome: &TriedOutcome| {
        plain(
            outcome
                .all()
                .worst_lateness_ns
                .map_or("-".to_owned(), lateness),
        )
    };
    let misses = |outcome: &TriedOutcome| {
        let all = outcome.all();
        let tone = match all.missed() {
            0 => Tone::Plain,
            _ => Tone::Caution,
        };
        Text(missed(&all), tone)
    };
    [
        plain(reservation(&set.held)),
        plain(set.chosen_by.name().to_owned()),
        plain(tasks.join(", ")),
        says(&set.textbook),
        says(&set.measured),
        misses(&tried.in_budget),
        late(&tried.in_budget),
        misses(&tried.without),
        late(&tried.without),
    ]
}

/// Headings of a task's row.
pub(super) const TASK_HEADINGS: [&str; 9] = [
    "reservation",
    "set",
    "task",
    "bound, textbook",
    "bound, measured supply",
    "missed in the budget",
    "worst response",
    "missed without it",
    "worst response",
];

/// The tasks of a set, the most urgent first.
pub(super) fn task_rows(tried: &TriedSummary) -> Vec<[Text; 9]> {
    let plain = |text: String| Text(text, Tone::Plain);
    let set = &tried.set;
    let bound = |foretold: &Foretold, place: usize| {
        let bound = foretold.responses_ns.get(place).copied().flatten();
        plain(bound.map_or("none".to_owned(), |ns| time(ns as f64)))
    };
    let of = |outcome: &TriedOutcome, place: usize| {
        outcome.tasks.get(place).copied().unwrap_or_default()
    };
    let worst = |misses: Misses, period_ns: u64| {
        let worst = misses
            .worst_lateness_ns
            .map(|late| late as f64 + period_ns as f64);
        plain(worst.map_or("-".to_owned(), time))
    };
    (set.tasks.iter().enumerate())
        .map(|(place, task)| {
            let [held, free] = [&tried.in_budget, &tried.without].map(|one| of(one, place));
            [
                plain(reservation(&set.held)),
                plain(set.chosen_by.name().to_owned()),
                plain(format!(
                    "{}: {} / {}",
                    task.name,
                    exact(task.wcet_ns),
                    exact(task.period_ns)
                )),
                bound(&set.textbook, place),
                bound(&set.measured, place),
                plain(missed(&held)),
                worst(held, task.period_ns),
                plain(missed(&free)),
                worst(free, task.period_ns),
            ]
        })
        .collect()
}

/// What was foretold, in few words: with the instant at which too little is certain.
fn says(foretold: &Foretold) -> Text {
    if foretold.accepted {
        return Text("accepts".to_owned(), Tone::Plain);
    }
    let why = foretold.witness.as_ref().map_or(String::new(), |witness| {
        format!(
            ": {} of {} in {}",
            zero_or(witness.supply_ns),
            time(witness.demand_ns as f64),
            time(witness.instant_ns as f64)
        )
    });
    Text(format!("refuses{why}"), Tone::Plain)
}

/// What was missed while the hypervisor took nothing, as far as the kernel tells.
fn quiet(sets: &[&TriedSummary]) -> String {
    let each = sets.iter().map(|one| one.in_budget.quiet);
    let quiet = each.fold(Misses::default(), Misses::and);
    if quiet.jobs == 0 {
        return String::new();
    }
    format!(
        ", {} in trials in which the hypervisor took nothing",
        missed(&quiet)
    )
}

/// The sentences, without full stops.
pub(super) fn findings(summary: &SupplySummary) -> Vec<String> {
    let of = |by| -> Vec<&TriedSummary> {
        let run = summary
            .tried
            .iter()
            .filter(|one| !one.in_budget.tasks.is_empty());
        run.filter(|one| one.set.chosen_by == by).collect()
    };
    let sentence = |sets: &[&TriedSummary], which: &str| {
        let sum = |pick: fn(&TriedSummary) -> &TriedOutcome| {
            let each = sets.iter().map(|one| pick(one).all());
            each.fold(Misses::default(), Misses::and)
        };
        let (held, free) = (sum(|one| &one.in_budget), sum(|one| &one.without));
        let late: Vec<String> = (sets.iter())
            .filter(|one| one.in_budget.all().missed() > 0)
            .map(|one| reservation(&one.set.held))
            .collect();
        let found = match late.as_slice() {
            [] => format!(
                "none missed a deadline inside its budget, in {} jobs",
                count(held.jobs)
            ),
            late => format!(
                "{} missed deadlines inside the budget ({}), {} jobs in all{}",
                late.len(),
                late.join(", "),
                missed(&held),
                quiet(sets)
            ),
        };
        let over = match held.jobs_over {
            0 => String::new(),
            jobs => format!(
                "; {} inside the budget took more cpu time than declared, as interrupts and pauses of the host are billed to them",
                plural(jobs, "job")
            ),
        };
        format!(
            "of {} that {which}, {found}; the same threads without a budget missed {}{over}",
            plural(sets.len() as u64, "set"),
            missed(&free)
        )
    };
    let whose = [
        (
            ChosenBy::Textbook,
            "the textbook's bound accepts and the measured supply refuses",
        ),
        (ChosenBy::Measured, "the measured supply accepts"),
    ];
    (whose.into_iter())
        .map(|(by, which)| (of(by), which))
        .filter(|(sets, _)| !sets.is_empty())
        .map(|(sets, which)| sentence(&sets, which))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Enforcer;
    use record::supply::{Budget, SUPPLY_SUMMARY_SCHEMA, TriedSet, TriedTask, TriedWitness};

    const MS: u64 = 1_000_000;

    fn foretold(accepted: bool) -> Foretold {
        Foretold {
            accepted,
            responses_ns: vec![accepted.then_some(16 * MS), Some(900 * MS)],
            witness: (!accepted).then(|| TriedWitness {
                task: "urgent".to_owned(),
                instant_ns: 17 * MS,
                demand_ns: 2_700_000,
                supply_ns: 1_200_000,
            }),
        }
    }

    fn one(chosen_by: ChosenBy, late: u64, late_without: u64) -> TriedSummary {
        let task = |name: &str, wcet_ns, period_ns, priority| TriedTask {
            name: name.to_owned(),
            wcet_ns,
            period_ns,
            priority,
        };
        let misses = |jobs, late, worst| Misses {
            jobs,
            late,
            trials: 3,
            trials_with: late.min(1),
            worst_lateness_ns: Some(worst),
            ..Misses::default()
        };
        let outcome = |late| TriedOutcome {
            tasks: vec![misses(700, late, 2_000_000), misses(12, 0, -90_000_000)],
            quiet: misses(237, late / 2, 1),
            steal_ns: None,
        };
        TriedSummary {
            set: TriedSet {
                number: 1,
                held: Budget {
                    enforcer: Enforcer::RtCgroup,
                    budget_ns: 3 * MS,
                    period_ns: 10 * MS,
                },
                chosen_by,
                tasks: vec![
                    task("urgent", 2_700_000, 17 * MS, 80),
                    task("background", 119_640_000, 997 * MS, 79),
                ],
                textbook: foretold(true),
                measured: foretold(chosen_by == ChosenBy::Measured),
            },
            in_budget: outcome(late),
            without: outcome(late_without),
        }
    }

    fn summary(tried: Vec<TriedSummary>) -> SupplySummary {
        SupplySummary {
            schema: SUPPLY_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            supplies: Vec::new(),
            host: None,
            load: None,
            not_measured: Vec::new(),
            tried,
            not_tried: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
        }
    }

    #[test]
    fn each_kind_of_set_has_its_sentence() {
        let both = summary(vec![
            one(ChosenBy::Textbook, 40, 1),
            one(ChosenBy::Measured, 0, 0),
        ]);
        let found = findings(&both);
        assert_eq!(
            found,
            [
                "of 1 set that the textbook's bound accepts and the measured supply refuses, 1 missed deadlines inside the budget (3 ms / \
                 10 ms), 40 of 712 jobs in all, 20 of 237 in trials in which the hypervisor took nothing; the same threads without a \
                 budget missed 1 of 712",
                "of 1 set that the measured supply accepts, none missed a deadline inside its budget, in 712 jobs; the same \
                 threads without a budget missed 0 of 712",
            ]
        );
        let mut none = one(ChosenBy::Measured, 0, 0);
        none.in_budget = TriedOutcome::default();
        assert!(findings(&summary(vec![none])).is_empty(), "nothing was run");
    }

    #[test]
    fn a_row_names_what_was_foretold_and_what_was_missed() {
        let row = row(&one(ChosenBy::Textbook, 40, 0)).map(|text| text.0);
        assert_eq!(
            row,
            [
                "3 ms / 10 ms",
                "textbook",
                "2.7 ms / 17 ms, 119.64 ms / 997 ms",
                "accepts",
                "refuses: 1.20 ms of 2.70 ms in 17.0 ms",
                "40 of 712",
                "2.00 ms late",
                "0 of 712",
                "2.00 ms late",
            ]
        );
        let tasks = task_rows(&one(ChosenBy::Textbook, 40, 0));
        let [_, _, task, textbook, measured, missed, worst, ..] = &tasks[0];
        assert_eq!(
            [task, textbook, measured, missed, worst].map(|text| text.0.as_str()),
            [
                "urgent: 2.7 ms / 17 ms",
                "16.0 ms",
                "none",
                "40 of 700",
                "19.0 ms"
            ]
        );
    }
}
