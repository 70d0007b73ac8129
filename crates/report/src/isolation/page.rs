//! The report of a study of isolation as one HTML file.

use maud::html;
use model::Enforcer;
use record::RecordError;
use record::isolation::{DrawnCell, DrawnSet, IsolationRecord, IsolationSummary};
use record::run::Run;

use super::findings::findings;
use super::picture::draw;
use super::rows::{arms, budgets, standings, utilisation};
use crate::grid::{Cell, Table};
use crate::html::{Extras, First, Own, Section, again, drawn, framed, pictures};
use text::units::time;
use text::words::{plural, sentences};

/// The report as one HTML file, with the sections of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn isolation_html(
    run: &Run,
    summary: &IsolationSummary,
    extras: Extras,
) -> Result<String, RecordError> {
    let record: IsolationRecord = run.read()?;
    let (figures, said) = (draw(summary), sentences(findings(summary)));
    let (picture, further) = figures.split_at(figures.len().min(1));
    // The answer has a sentence for each enforcer.
    let (answer, more) = said.split_at(summary.standings.len().min(said.len()));
    let first = First {
        question: &record.question,
        answer: (!answer.is_empty()).then(|| answer.join(" ")),
        picture: drawn(picture),
    };
    let mut sections = vec![question(&record, first), found(summary, more)];
    sections.extend(pictures("Pictures", further));
    sections.extend(sets(&record));
    let own = Own {
        name: "isolation",
        run: &summary.run,
        of: "trial",
        what: "trial",
        lacks: (&summary.failures, &summary.not_measured, &summary.unmet),
        more: html! {},
        again: again(
            &summary.run,
            &format!("isolation --seed {}", record.seed),
            None,
        ),
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn question(record: &IsolationRecord, first: First<'_>) -> Section {
    let mut domains: Vec<&String> = Vec::new();
    let contests = record
        .contests
        .iter()
        .filter_map(|trial| trial.root_domain.as_ref());
    let received = record
        .received
        .iter()
        .filter_map(|trial| trial.root_domain.as_ref());
    for domain in contests.chain(received) {
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    let rounds = record.rounds_planned;
    let mut facts = vec![
        (
            "rounds",
            format!("{rounds}, in each a new set for every utilisation, under every arm"),
        ),
        ("seed", record.seed.to_string()),
    ];
    facts.extend(
        domains
            .into_iter()
            .map(|domain| ("SCHED_DEADLINE's cpus", domain.clone())),
    );
    first.section(facts, &record.conditions)
}

fn found(summary: &IsolationSummary, more: &[String]) -> Section {
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            (crate::html::found(more))
            (standings(summary))
            (arms(summary))
            (budgets(summary))
            p.quiet {
                "A deadline is missed by a job that ends after its period, and by each activation that never runs because an earlier job \
                 was later than that. An enforcer is compared with the same sets with the victim alone, trial by trial, by the exact sign \
                 test: the jobs of one trial depend on each other and do not count as evidence one by one. Received is what a program \
                 saw, billed what the kernel counts, including interrupts and the host's pauses; both are shares of what was granted."
            }
        },
    }
}

/// Those that hold whole cells and took part in some set.
fn by_cell(record: &IsolationRecord) -> Vec<Enforcer> {
    let takes_part = |enforcer: &&Enforcer| {
        let mut sets = record.sets.iter();
        sets.any(|set| set.victim.budget_of(**enforcer).is_some())
    };
    Enforcer::OF_BENCH
        .iter()
        .filter(takes_part)
        .copied()
        .collect()
}

/// A role in a contest, and its cell in a set.
type Role = (&'static str, fn(&DrawnSet) -> &DrawnCell);

fn sets(record: &IsolationRecord) -> Option<Section> {
    let late = |permille: u32| {
        let of = |set: &&DrawnSet| set.utilisation_permille == permille;
        let all: Vec<&DrawnSet> = record.sets.iter().filter(of).collect();
        let late = all.iter().filter(|set| set.late_without).count();
        format!("{late} of {}", all.len())
    };
    let by_cell = by_cell(record);
    let drawn = Table::new("How they were drawn", &record.draws)
        .head("utilisation", |draws| {
            utilisation(draws.utilisation_permille)
        })
        .text("drawn", |draws| plural(draws.drawn.into(), "set"))
        .text("refused by analysis", |draws| {
            let refused = draws
                .refused
                .iter()
                .map(|(name, count)| format!("{name} {count}"));
            refused.collect::<Vec<_>>().join(", ")
        })
        .text(
            "sets in which the victim is late in the worst case, nothing enforced",
            |draws| late(draws.utilisation_permille),
        );
    let roles: [Role; 2] = [
        ("attacker", |set| &set.attacker),
        ("victim", |set| &set.victim),
    ];
    let pair = |(a, b): (u64, u64)| format!("{} / {}", time(a as f64), time(b as f64));
    let each = Table::new(
        "Execution time / period of each task, and the budget of each cell",
        &record.sets,
    )
    .head("set", |set| set.number)
    .text("utilisation", |set| utilisation(set.utilisation_permille));
    let each = roles.into_iter().fold(each, |table, (role, of)| {
        let table = table.text(role, |set| {
            let tasks = of(set).tasks.iter();
            Cell::lines(tasks.map(|task| pair((task.wcet_ns, task.period_ns))))
        });
        by_cell.iter().fold(table, |table, held| {
            table.text(&format!("its budget\n{}", held.name()), |set| {
                let budget = of(set).budget_of(*held);
                budget.map(|held| pair((held.budget_ns, held.period_ns)))
            })
        })
    });
    (!record.sets.is_empty()).then(|| Section {
        id: "sets",
        heading: "The task sets".to_owned(),
        body: html! {
            (drawn)
            details { summary { "Every set" } (each) }
        },
    })
}
