//! The report of a study of isolation as one HTML file.

use maud::{Markup, html};
use model::Enforcer;
use record::RecordError;
use record::isolation::{DrawnCell, DrawnSet, IsolationRecord, IsolationSummary};
use record::run::Run;

use super::findings::findings;
use super::picture::draw;
use super::rows::{ARM, RECEIVED, STANDING, arm, received, standing, utilisation};
use crate::figure::Figure;
use crate::html::{
    Extras, Own, Section, failure_list, framed, not_measured_table, region, unmet_table,
};
use crate::supply::toned;
use text::grid::Text;
use text::units::time;
use text::words::{clean, plural, sentence};

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
    let mut sections = vec![asked(&record), found(summary)];
    sections.extend(pictures(&draw(summary)));
    sections.extend(sets(&record));
    sections.extend([lacking(summary), again(&record, summary)]);
    let own = Own {
        name: "isolation",
        run: &summary.run,
        of: "trial",
        failures: &summary.failures,
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn asked(record: &IsolationRecord) -> Section {
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
    Section {
        id: "asked",
        heading: "What was asked".to_owned(),
        body: html! {
            p.question { (clean(&record.question)) }
            dl {
                dt { "rounds" } dd { (record.rounds_planned) ", in each a new set for every utilisation, under every arm" }
                dt { "seed" } dd { (record.seed) }
                @for condition in &record.conditions {
                    dt { (clean(&condition.name)) } dd { (clean(&condition.text)) }
                }
                @for domain in domains {
                    dt { "SCHED_DEADLINE's cpus" } dd { (clean(domain)) }
                }
            }
        },
    }
}

fn rows<const N: usize>(caption: &str, headings: &[&str; N], rows: &[[Text; N]]) -> Markup {
    html! {
        @if !rows.is_empty() {
            (region(caption, html! {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { @for row in rows { tr { @for text in row { (toned(text)) } } } }
            }))
        }
    }
}

fn found(summary: &IsolationSummary) -> Section {
    let arms: Vec<_> = summary.arms.iter().map(arm).collect();
    let standings: Vec<_> = summary.standings.iter().map(standing).collect();
    let budgets: Vec<_> = summary.received.iter().map(received).collect();
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            ul.findings { @for finding in findings(summary) { li { (sentence(&clean(&finding))) } } }
            (rows("The attacker overrunning, against the victim alone", &STANDING, &standings))
            (rows("Deadlines by utilisation and arm", &ARM, &arms))
            (rows("Cpu time received by cells that always want it, side by side, as a share of what they were granted", &RECEIVED, &budgets))
            p.quiet {
                "A deadline is missed by a job that ends after its period, and by each activation that never runs because an earlier job \
                 was later than that. An enforcer is compared with the same sets with the victim alone, trial by trial, by the exact sign \
                 test: the jobs of one trial depend on each other and do not count as evidence one by one. Received is what a program \
                 saw, billed what the kernel counts, including interrupts and the host's pauses; both are shares of what was granted."
            }
        },
    }
}

fn pictures(figures: &[Figure]) -> Option<Section> {
    (!figures.is_empty()).then(|| Section {
        id: "figures",
        heading: "Pictures".to_owned(),
        body: crate::html::pictures(figures),
    })
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

fn cell(cell: &DrawnCell, by_cell: &[Enforcer]) -> Markup {
    html! {
        td {
            @for (place, task) in cell.tasks.iter().enumerate() {
                @if place > 0 { br; }
                (time(task.wcet_ns as f64)) " / " (time(task.period_ns as f64))
            }
        }
        @for enforcer in by_cell { td { @match cell.budget_of(*enforcer) {
            Some(held) => { (time(held.budget_ns as f64)) " / " (time(held.period_ns as f64)) }
            None => { "-" }
        } } }
    }
}

fn sets(record: &IsolationRecord) -> Option<Section> {
    let late = |permille: u32| {
        let of = |set: &&DrawnSet| set.utilisation_permille == permille;
        let all: Vec<&DrawnSet> = record.sets.iter().filter(of).collect();
        let late = all.iter().filter(|set| set.late_without).count();
        format!("{late} of {}", all.len())
    };
    let by_cell = by_cell(record);
    (!record.sets.is_empty()).then(|| Section {
        id: "sets",
        heading: "The task sets".to_owned(),
        body: html! {
            (region("How they were drawn", html! {
                thead { tr {
                    th scope="col" { "utilisation" } th scope="col" { "drawn" } th scope="col" { "refused by analysis" }
                    th scope="col" { "sets in which the victim is late in the worst case, nothing enforced" }
                } }
                tbody { @for draws in &record.draws { tr {
                    th scope="row" { (utilisation(draws.utilisation_permille)) }
                    td { (plural(draws.drawn.into(), "set")) }
                    td { @for (place, (name, count)) in draws.refused.iter().enumerate() {
                        @if place > 0 { ", " } (clean(name)) " " (count)
                    } }
                    td { (late(draws.utilisation_permille)) }
                } } }
            }))
            details { summary { "Every set" }
                (region("Execution time / period of each task, and the budget of each cell", html! {
                    thead { tr {
                        th scope="col" { "set" } th scope="col" { "utilisation" }
                        @for role in ["attacker", "victim"] {
                            th scope="col" { (role) }
                            @for held in &by_cell {
                                th scope="col" { "its budget" br; span.below { (held.name()) } }
                            }
                        }
                    } }
                    tbody { @for set in &record.sets { tr {
                        th scope="row" { (set.number) } td { (utilisation(set.utilisation_permille)) }
                        (cell(&set.attacker, &by_cell)) (cell(&set.victim, &by_cell))
                    } } }
                }))
            }
        },
    })
}

fn lacking(summary: &IsolationSummary) -> Section {
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every trial took place and every requirement was met." } }
            (failure_list(&summary.failures))
            (not_measured_table("trial", &summary.not_measured))
            (unmet_table(&summary.unmet))
        },
    }
}

fn again(record: &IsolationRecord, summary: &IsolationSummary) -> Section {
    Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p { "The first line repeats the measurement with the same sets; the second regenerates this page from the run's samples:" }
            pre { code {
                "sudo timecell bench isolation --seed " (record.seed) "\ntimecell report " (clean(&summary.run))
            } }
        },
    }
}
