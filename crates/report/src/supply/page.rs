//! The report of a supply study as one HTML file.

use maud::{Markup, html};
use model::Enforcer;
use record::RecordError;
use record::run::Run;
use record::supply::{MeasuredSupply, Promise, Spread, SupplyRecord, SupplySummary};

use super::findings::findings;
use super::picture::draw;
use super::rows::{HEADINGS, host_row, kept, row};
use super::{heading, line, percent, reaction, tried};
use crate::figure::Figure;
use crate::html::{
    Extras, Own, Section, absent_table, failure_list, framed, not_measured_table, region,
    time_cell, unmet_table,
};
use study::reservation;
use text::grid::Text;
use text::style::Tone;
use text::units::time;
use text::words::{capital, clean, count, plural, sentence};

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
    let mut sections = vec![
        asked(&run.read::<record::supply::SupplyRecord>()?),
        found(summary),
    ];
    sections.extend(reactions(summary));
    sections.extend(deadlines(summary));
    sections.extend(pictures(&figures));
    sections.extend(lines(summary));
    sections.extend(periods(summary));
    sections.extend([lacking(summary), again(summary)]);
    let own = Own {
        name: "supply",
        run: &summary.run,
        of: "trial",
        failures: &summary.failures,
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn asked(record: &SupplyRecord) -> Section {
    let tick = match record.machine.tick_hz {
        Some(hz) => format!("{hz} Hz"),
        None => "unknown".to_owned(),
    };
    let timer = match record.machine.deadline_by_timer {
        Some(true) => "by a timer (HRTICK_DL)",
        Some(false) => "by the tick",
        None => "by the tick, unless HRTICK_DL was switched on, which cannot be seen here",
    };
    Section {
        id: "asked",
        heading: "What was asked".to_owned(),
        body: html! {
            p.question { (clean(&record.question)) }
            dl {
                dt { "rounds" } dd { (record.rounds_planned) ", every budget once per round" }
                dt { "scheduler's tick" } dd { (tick) }
                dt { "SCHED_DEADLINE's runtimes end" } dd { (timer) }
                @for condition in &record.conditions {
                    dt { (clean(&condition.name)) } dd { (clean(&condition.text)) }
                }
            }
        },
    }
}

/// A cell of a table in its colour.
pub(crate) fn toned(text: &Text) -> Markup {
    let class = match text.1 {
        Tone::Plain => "",
        Tone::Caution => "caution",
        Tone::Bad => "bad",
        Tone::Good => "faster",
    };
    html! { td { @if class.is_empty() { (text.0) } @else { span class=(class) { (text.0) } } } }
}

fn found(summary: &SupplySummary) -> Section {
    let rows = summary.supplies.iter().map(row);
    let rows: Vec<[Text; 8]> = rows.chain(summary.host.as_ref().map(host_row)).collect();
    Section {
        id: "found",
        heading: "What was found".to_owned(),
        body: html! {
            ul.findings { @for finding in findings(summary) { li { (sentence(&clean(&finding))) } } }
            @if !rows.is_empty() {
                (region(&capital(&heading(summary)), html! {
                    thead { tr { @for heading in HEADINGS { th scope="col" { (heading) } } } }
                    tbody { @for row in &rows { tr { @for text in row { (toned(text)) } } } }
                }))
            }
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
    let rows: Vec<[Text; 8]> = summary.supplies.iter().filter_map(reaction::row).collect();
    (!rows.is_empty()).then(|| Section {
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
            (region("Lateness, overruns and gaps", html! {
                thead { tr { @for heading in reaction::HEADINGS { th scope="col" { (heading) } } } }
                tbody { @for row in &rows { tr { @for text in row { (toned(text)) } } } }
            }))
            (region("Overruns: how many periods were overrun by how much", html! {
                thead { tr {
                    th scope="col" { "reservation" } th.num scope="col" { "half" } th.num scope="col" { "90 of 100" }
                    th.num scope="col" { "99 of 100" } th.num scope="col" { "999 of 1,000" } th.num scope="col" { "all" }
                    th.num scope="col" { "periods" }
                } }
                tbody { @for supply in &summary.supplies { @if let Some(found) = &supply.reaction { tr {
                    th scope="row" { (reservation(&supply.held)) }
                    @for ns in quantiles(&found.overruns) { (time_cell(&time(ns as f64), "")) }
                    (time_cell(&count(found.overruns.count), ""))
                } } } }
            }))
        },
    })
}

fn quantiles(of: &Spread) -> [u64; 5] {
    [of.median_ns, of.p90_ns, of.p99_ns, of.p999_ns, of.most_ns]
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
            (region("Sets tried inside their budgets", html! {
                thead { tr { @for heading in tried::HEADINGS { th scope="col" { (heading) } } } }
                tbody { @for one in &summary.tried { tr { @for text in &tried::row(one) { (toned(text)) } } } }
            }))
            (region("Each task", html! {
                thead { tr { @for heading in tried::TASK_HEADINGS { th scope="col" { (heading) } } } }
                tbody { @for one in &summary.tried { @for row in &tried::task_rows(one) {
                    tr { @for text in row { (toned(text)) } }
                } } }
            }))
        },
    })
}

fn pictures(figures: &[Figure]) -> Option<Section> {
    (!figures.is_empty()).then(|| Section {
        id: "figures",
        heading: "Supply against its bounds".to_owned(),
        body: crate::html::pictures(figures),
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
            (region("Lines below the supply", html! {
                thead { tr {
                    th scope="col" { "supply" } th scope="col" { "lines: rate after delay" }
                    th.num scope="col" { "delay, least and middle round" } th.num scope="col" { "rounds, starts" }
                    th.num scope="col" { "windows up to" }
                } }
                tbody { @for supply in &summary.supplies { tr {
                    th scope="row" { (supply.held.enforcer.name()) " " (reservation(&supply.held)) }
                    td { @for (place, point) in supply.points.iter().enumerate() {
                        @if place > 0 { br; } (line(point))
                    } }
                    (time_cell(&time(supply.delay_ns.least as f64), &time(supply.delay_ns.median as f64)))
                    (time_cell(&plural(supply.rounds.into(), "round"), &plural(supply.starts.into(), "start")))
                    (time_cell(&time(supply.measured_to_ns as f64), ""))
                } } }
            }))
            (region("Bounds without a measurement", html! {
                thead { tr {
                    th scope="col" { "supply" } th scope="col" { "textbook" } th scope="col" { "proved, alone on the cpu" }
                    th scope="col" { "assumed without a measurement" }
                } }
                tbody { @for supply in &summary.supplies { tr {
                    th scope="row" { (supply.held.enforcer.name()) " " (reservation(&supply.held)) }
                    (bound(Some(&supply.textbook), ""))
                    (bound(supply.proved().as_ref(), unknown(supply)))
                    (bound(supply.cautious.as_ref(), unknown(supply)))
                } } }
            }))
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

fn bound(promise: Option<&Promise>, unknown: &str) -> Markup {
    let Some(promise) = promise else {
        return html! { td { span.quiet { (unknown) } } };
    };
    let rate = promise.supplied as f64 / promise.per.max(1) as f64;
    let Text(verdict, tone) = kept(promise);
    let class = match tone {
        Tone::Bad => "bad",
        Tone::Caution => "caution",
        _ => "quiet",
    };
    html! {
        td {
            (percent(rate)) " after " (time(promise.delay_ns as f64)) br;
            span class=(class) { (verdict) }
        }
    }
}

/// What was received in each period.
fn periods(summary: &SupplySummary) -> Option<Section> {
    let of = |supply: &MeasuredSupply| supply.periods.is_some();
    summary.supplies.iter().any(of).then(|| Section {
        id: "periods",
        heading: "Budgets received in each period".to_owned(),
        body: html! {
            p.quiet {
                "Periods are counted from the beginning of each long stretch, which lasts a whole number of periods."
            }
            (region("Received in a period", html! {
                thead { tr {
                    th scope="col" { "supply" } th.num scope="col" { "budget" } th.num scope="col" { "least" }
                    th.num scope="col" { "mean" } th.num scope="col" { "most" } th.num scope="col" { "periods" }
                } }
                tbody { @for supply in &summary.supplies { @if let Some(periods) = &supply.periods { tr {
                    th scope="row" { (supply.held.enforcer.name()) " " (reservation(&supply.held)) }
                    (time_cell(&time(supply.held.budget_ns as f64), ""))
                    (time_cell(&time(periods.least_ns as f64), ""))
                    (time_cell(&time(periods.mean_ns as f64), ""))
                    (time_cell(&time(periods.most_ns as f64), ""))
                    (time_cell(&count(periods.count), ""))
                } } } }
            }))
        },
    })
}

fn lacking(summary: &SupplySummary) -> Section {
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    let untried: Vec<[&str; 3]> = (summary.not_tried.iter())
        .map(|n| [n.trial.as_str(), n.reason.as_str(), n.fix.as_str()])
        .collect();
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every budget was measured and every requirement was met." } }
            (failure_list(&summary.failures))
            (not_measured_table("budget", &summary.not_measured))
            @if !untried.is_empty() { (absent_table("No set tried", ["budget", "reason", "fix"], &untried)) }
            (unmet_table(&summary.unmet))
        },
    }
}

fn again(summary: &SupplySummary) -> Section {
    Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p { "The first line repeats the measurement; the second regenerates this page from the run's gaps; the third writes them as a \
                 table:" }
            pre { code {
                "sudo timecell bench supply\ntimecell report " (clean(&summary.run))
                "\ntimecell export --csv " (clean(&summary.run))
            } }
        },
    }
}
