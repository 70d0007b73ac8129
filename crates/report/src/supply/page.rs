//! The report of a supply study as one HTML file.

use maud::html;
use model::Enforcer;
use record::RecordError;
use record::run::Run;
use record::supply::{MeasuredSupply, Promise, SupplyRecord, SupplySummary};

use super::findings::findings;
use super::picture::draw;
use super::rows::{self, kept};
use super::{line, reaction, tried};
use crate::figure::Figure;
use crate::grid::{Cell, Table};
use crate::html::{Extras, First, Own, Section, again, drawn, framed, not_measured, pictures};
use study::reservation;
use text::grid::Text;
use text::units::{percent, time};
use text::words::{plural, sentences};

/// The report as one HTML file, with the sections of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn supply_html(
    run: &Run,
    summary: &SupplySummary,
    extras: Extras,
) -> Result<String, RecordError> {
    let figures: Vec<Figure> = summary.supplies.iter().filter_map(draw).collect();
    let (picture, further) = figures.split_at(figures.len().min(1));
    let said = sentences(findings(summary));
    let record: SupplyRecord = run.read()?;
    let first = First {
        question: &record.question,
        answer: said.first().cloned(),
        picture: drawn(picture),
    };
    let more = said.get(1..).unwrap_or_default();
    let mut sections = vec![question(&record, first), found(summary, more)];
    sections.extend(reactions(summary));
    sections.extend(deadlines(summary));
    sections.extend(pictures("Supply against its bounds", further));
    sections.extend(lines(summary));
    sections.extend(periods(summary));
    let own = Own {
        name: "supply",
        run: &summary.run,
        of: "trial",
        what: "budget",
        lacks: (&summary.failures, &summary.not_measured, &summary.unmet),
        more: not_measured("No set tried", "budget", &summary.not_tried),
        again: again(&summary.run, "supply", Some("--csv")),
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn question(record: &SupplyRecord, first: First<'_>) -> Section {
    let tick = match record.machine.tick_hz {
        Some(hz) => format!("{hz} Hz"),
        None => "unknown".to_owned(),
    };
    let timer = match record.machine.deadline_by_timer {
        Some(true) => "by a timer (HRTICK_DL)",
        Some(false) => "by the tick",
        None => "by the tick, unless HRTICK_DL was switched on, which cannot be seen here",
    };
    let facts = [
        (
            "rounds",
            format!("{}, every budget once per round", record.rounds_planned),
        ),
        ("scheduler's tick", tick),
        ("SCHED_DEADLINE's runtimes end", timer.to_owned()),
    ];
    first.section(facts, &record.conditions)
}

fn found(summary: &SupplySummary, more: &[String]) -> Section {
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            (crate::html::found(more))
            (rows::table(summary))
            p.quiet {
                "Granted is the budget divided by its period. Billed is what the kernel counts, including interrupts and the host's \
                 unreported pauses; received is what the program saw. \"29.1 % after 86.2 ms\" means that every window, of whatever \
                 length, received at least 29.1 % of its length beyond 86.2 ms. The textbook's bound is that of the periodic resource \
                 model: nothing for twice the difference of period and budget, then the budget in every period. A shortfall that the \
                 host's own pauses explain, as measured without a budget, does not count against it."
            }
        },
    }
}

/// How exactly budgets were held from outside the kernel.
fn reactions(summary: &SupplySummary) -> Option<Section> {
    let table = reaction::table(summary);
    (!table.is_empty()).then(|| Section {
        id: "reaction",
        heading: "How exact the freezer was".to_owned(),
        body: html! {
            p.quiet {
                "\"Of the grant\" is what the kernel billed divided by what was granted. A check is late by the time from its intended \
                 instant until the thaw or freeze that it requests is done; a cell runs on by what it uses beyond a used-up budget, which \
                 is deducted from later ones. The gap to compare with is the sum of the textbook's 2(P-Q), the longest lateness and the \
                 longest overrun. \"Holding it takes\" is the cpu time of the process that looks. All of it was counted while the cell \
                 spun, beside whatever else the machine did."
            }
            (table)
            (reaction::overruns(summary))
        },
    })
}

/// The sets that were run inside the budgets.
fn deadlines(summary: &SupplySummary) -> Option<Section> {
    (!summary.tried.is_empty()).then(|| Section {
        id: "deadlines",
        heading: "Deadlines inside the budgets".to_owned(),
        body: html! {
            p.quiet {
                "Two periodic tasks in one cell, deadlines at the ends of the periods. The urgent one has the shortest period with which \
                 the supply that chose the set accepts both. \"1.2 ms of 2.7 ms in 17 ms\" means that in 17 ms, 1.2 ms of the required \
                 2.7 ms are certain. Without the budget, the same threads show what the host itself makes late."
            }
            (tried::table(summary))
            (tried::tasks(summary))
        },
    })
}

/// Every line that lies below each supply, and the bounds.
fn lines(summary: &SupplySummary) -> Option<Section> {
    (!summary.supplies.is_empty()).then(|| Section {
        id: "lines",
        heading: "What may be relied on".to_owned(),
        body: html! {
            p.quiet {
                "Each line is a supply that lies below everything measured, in windows up to the given length; so is the highest of them \
                 at every length. They hold for a cell that has its cpu to itself: what others take on a shared cpu is not in them. The \
                 delay of each round is that of the first line's rate."
            }
            (below(summary))
            (bounds(summary))
        },
    })
}

/// Why there is no bound.
fn unknown(supply: &MeasuredSupply) -> &'static str {
    match supply.held.enforcer {
        Enforcer::Freezer => "nothing is certain",
        _ => "the tick is unknown",
    }
}

fn name(supply: &MeasuredSupply) -> String {
    format!(
        "{} {}",
        supply.held.enforcer.name(),
        reservation(&supply.held)
    )
}

fn below(summary: &SupplySummary) -> Table<&MeasuredSupply> {
    Table::new("Lines below the supply", &summary.supplies)
        .head("supply", |supply| name(supply))
        .text("lines: rate after delay", |supply| {
            Cell::lines(supply.points.iter().map(line))
        })
        .number("delay, least and middle round", |supply| {
            let [least, median] =
                [supply.delay_ns.least, supply.delay_ns.median].map(|ns| time(ns as f64));
            Cell::from(least).below(median)
        })
        .number("rounds, starts", |supply| {
            Cell::from(plural(supply.rounds.into(), "round"))
                .below(plural(supply.starts.into(), "start"))
        })
        .number("windows up to", |supply| time(supply.measured_to_ns as f64))
}

fn bounds(summary: &SupplySummary) -> Table<&MeasuredSupply> {
    Table::new("Bounds without a measurement", &summary.supplies)
        .head("supply", |supply| name(supply))
        .text("textbook", |s| bound(Some(&s.textbook), s))
        .text("proved, alone on the cpu", |s| {
            bound(s.proved().as_ref(), s)
        })
        .text("assumed without a measurement", |s| {
            bound(s.cautious.as_ref(), s)
        })
}

fn bound(promise: Option<&Promise>, supply: &MeasuredSupply) -> Cell {
    let Some(promise) = promise else {
        return unknown(supply).into();
    };
    let rate = promise.supplied as f64 / promise.per.max(1) as f64;
    let Text(verdict, tone) = kept(promise);
    let after = time(promise.delay_ns as f64);
    Cell::from(format!("{} after {after}", percent(rate))).noted(verdict, tone)
}

/// The supply of each period.
fn periods(summary: &SupplySummary) -> Option<Section> {
    let rows =
        (summary.supplies.iter()).filter_map(|supply| Some((supply, supply.periods.as_ref()?)));
    let table = Table::new("Received in a period", rows)
        .head("supply", |(supply, _)| name(supply))
        .number("budget", |(supply, _)| time(supply.held.budget_ns as f64))
        .number("least", |(_, periods)| time(periods.least_ns as f64))
        .number("mean", |(_, periods)| time(periods.mean_ns as f64))
        .number("most", |(_, periods)| time(periods.most_ns as f64))
        .number("periods", |(_, periods)| periods.count);
    (!table.is_empty()).then(|| Section {
        id: "periods",
        heading: "Budgets received in each period".to_owned(),
        body: html! {
            p.quiet {
                "Periods are counted from the beginning of each long stretch, which lasts a whole number of periods."
            }
            (table)
        },
    })
}
