//! Task sets run inside budgets: whether they met their deadlines, as rows and sentences.

use record::isolation::Misses;
use record::supply::{ChosenBy, Foretold, SupplySummary, TriedOutcome, TriedSummary};
use study::reservation;

use super::rows::zero_or;
use crate::grid::{Cell, Table};
use crate::isolation::{lateness, missed};
use text::style::Tone;
use text::units::{exact, time};
use text::words::{count, plural};

/// The sets.
pub(super) fn table(summary: &SupplySummary) -> Table<&TriedSummary> {
    let late = |outcome: &TriedOutcome| outcome.all().worst_lateness_ns.map(lateness);
    let misses = |outcome: &TriedOutcome| {
        let all = outcome.all();
        let tone = match all.missed() {
            0 => Tone::Plain,
            _ => Tone::Caution,
        };
        Cell::new(missed(&all), tone)
    };
    Table::new(
        "deadlines of two tasks inside each budget, by the supply that chose them",
        &summary.tried,
    )
    .head("reservation", |one| reservation(&one.set.held))
    .text("set", |one| one.set.chosen_by.name())
    .text("tasks", |one| {
        let tasks: Vec<String> = (one.set.tasks.iter())
            .map(|task| format!("{} / {}", exact(task.wcet_ns), exact(task.period_ns)))
            .collect();
        tasks.join(", ")
    })
    .text("textbook", |one| says(&one.set.textbook))
    .text("measured supply", |one| says(&one.set.measured))
    .number("missed in the budget", |one| misses(&one.in_budget))
    .number("latest job", |one| late(&one.in_budget))
    .number("missed without it", |one| misses(&one.without))
    .number("latest job", |one| late(&one.without))
}

/// The tasks of each set, the most urgent first.
pub(super) fn tasks(summary: &SupplySummary) -> Table<(&TriedSummary, usize)> {
    let rows = summary
        .tried
        .iter()
        .flat_map(|one| (0..one.set.tasks.len()).map(move |place| (one, place)));
    let bound = |foretold: &Foretold, place: usize| {
        let bound = foretold.responses_ns.get(place).copied().flatten();
        bound.map_or("none".to_owned(), |ns| time(ns as f64))
    };
    let of = |outcome: &TriedOutcome, place: usize| {
        outcome.tasks.get(place).copied().unwrap_or_default()
    };
    let worst = |outcome: &TriedOutcome, row: &(&TriedSummary, usize)| {
        let late = of(outcome, row.1).worst_lateness_ns?;
        Some(time(late as f64 + row.0.set.tasks[row.1].period_ns as f64))
    };
    Table::new("Each task", rows)
        .head("reservation", |(one, _)| reservation(&one.set.held))
        .text("set", |(one, _)| one.set.chosen_by.name())
        .text("task", |&(one, place)| {
            let task = &one.set.tasks[place];
            format!(
                "{}: {} / {}",
                task.name,
                exact(task.wcet_ns),
                exact(task.period_ns)
            )
        })
        .number("bound, textbook", |&(one, place)| {
            bound(&one.set.textbook, place)
        })
        .number("bound, measured supply", |&(one, place)| {
            bound(&one.set.measured, place)
        })
        .number("missed in the budget", |&(one, place)| {
            missed(&of(&one.in_budget, place))
        })
        .number("worst response", |row| worst(&row.0.in_budget, row))
        .number("missed without it", |&(one, place)| {
            missed(&of(&one.without, place))
        })
        .number("worst response", |row| worst(&row.0.without, row))
}

/// The prediction, in few words: with the instant at which too little is certain.
fn says(foretold: &Foretold) -> String {
    if foretold.accepted {
        return "accepts".to_owned();
    }
    let why = foretold.witness.as_ref().map_or(String::new(), |witness| {
        format!(
            ": {} of {} in {}",
            zero_or(witness.supply_ns),
            time(witness.demand_ns as f64),
            time(witness.instant_ns as f64)
        )
    });
    format!("refuses{why}")
}

/// Misses while the hypervisor took nothing, as far as the kernel tells.
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
        let summary = summary(vec![one(ChosenBy::Textbook, 40, 0)]);
        let first = |columns: Vec<text::grid::Column>| {
            let texts = columns.into_iter().map(|column| column.texts[0].0.clone());
            texts.collect::<Vec<_>>()
        };
        let row = first(table(&summary).columns());
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
        let tasks = first(tasks(&summary).columns());
        assert_eq!(
            tasks[2..7],
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
