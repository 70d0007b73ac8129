//! The terminal's table of a run.

use crate::grid::{Cell, NOT_REAL_TIME, Table, lost, name, told};
use crate::in_turns::p99_needs;
use crate::tails;
use crate::{loads, table_conditions};
use record::summary::{CellSummary, InTurns, Metric, MetricSummary, NotMeasured, RunSummary};
use text::grid::{Column, render_parts};
use text::style::{Style, Tone};
use text::units::{Scale, Unit};
use text::words::{self, clean, count, plural, shortened_apart};

/// The table over all cells, then unmeasured trials, unmet requirements, and failures.
///
/// Ends with a line break. Every cell that did not run in a real-time class says so on its own line.
pub fn table(summary: &RunSummary, style: Style) -> String {
    let mut columns = cells(summary).columns();
    fit(&mut columns, style.width);
    let mut out = String::new();
    let grouped = table_conditions::table(summary, style);
    let shown = grouped.is_none() && !summary.cells.is_empty();
    if let Some(grouped) = grouped {
        out += &grouped;
    } else if shown {
        out += &format!("{}\n\n", measured(summary));
        out += &render_parts(&columns, style);
        out.push('\n');
        let further = [
            crate::tasks::shown(summary, style),
            crate::in_turns::table(summary).block(style),
            crate::beside::table(summary).block(style),
        ];
        out += &further.concat();
        if further.iter().all(String::is_empty) {
            out.pop();
        }
    }
    let sentences = after(summary);
    let names = sentences.iter().map(|(name, _)| name.chars().count());
    let table = if shown { columns[0].width() } else { 0 };
    let width = names.chain([table]).max().unwrap_or(0);
    for (name, sentence) in sentences {
        let line = match name.as_str() {
            "" => style.wrap(&clean(&sentence), 3),
            name => style.wrap(
                &format!("{:<width$}   {}", clean(name), clean(&sentence)),
                width + 3,
            ),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// The quantiles that a page shows; a terminal has the median and p99.
const QUANTILES: [(f64, &str); 5] = [
    (0.5, "median"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// The columns of a metric's quantiles.
pub(crate) fn quantiles<'s, R>(
    table: Table<R>,
    of: impl Fn(&R) -> Option<&'s MetricSummary>,
) -> Table<R> {
    QUANTILES.iter().fold(table, |table, &(p, name)| {
        let table = table.quantile(name, |row| of(row)?.summary.quantile(p));
        match p {
            0.5 | 0.99 => table,
            _ => table.on_page(),
        }
    })
}

/// The metric of a cell.
fn metric(cell: &CellSummary, metric: Metric) -> Option<&MetricSummary> {
    cell.metrics.iter().find(|m| m.metric == metric)
}

fn largest(metric: Option<&MetricSummary>) -> Option<f64> {
    Some(metric?.summary.max_ns as f64)
}

/// The metric that is compared, and the thing that has it: "execution time of a job of control".
fn measured(summary: &RunSummary) -> String {
    let of = match (summary.primary, &summary.task) {
        (Metric::StartTime, _) => "the program",
        (_, Some(task)) => &format!("a job of {}", clean(task)),
        _ if summary.cells.iter().all(|cell| cell.executions) => {
            "a job, one execution of the program from its start to its exit"
        }
        _ => "a job",
    };
    format!("{} of {of}", summary.primary.title())
}

/// Largest values, marked where jobs were lost of which one may have been larger.
fn at_least<'s>(
    table: Table<&'s CellSummary>,
    heading: &str,
    of: impl Fn(&'s CellSummary) -> Option<&'s MetricSummary>,
) -> Table<&'s CellSummary> {
    let scale = table.scale(|cell| largest(of(cell)));
    table.number(heading, |cell| {
        let max = scale.show(largest(of(cell))?);
        Some(match words::lost(cell) {
            0 => Cell::from(max),
            lost => {
                Cell::new(format!(">= {max}"), Tone::Bad).below(format!("{} lost", count(lost)))
            }
        })
    })
}

/// The table over all cells.
pub(crate) fn cells(summary: &RunSummary) -> Table<&CellSummary> {
    let cells = &summary.cells;
    let has =
        |wanted| wanted != summary.primary && cells.iter().any(|c| metric(c, wanted).is_some());
    let intervals = cells.iter().any(|cell| late_ends(cell).is_some());
    let baseline = summary.baseline.as_str();
    let compared = cells.iter().any(|cell| cell.trial != baseline);
    let table = Table::new(format!("Quantiles of the {}", measured(summary)), cells)
        .unit(unit(cells))
        .head("cell", |cell| match cell.metrics.is_empty() && !compared {
            true => name(cell).noted(format!("no good round {}", planned(cell)), Tone::Bad),
            false => name(cell),
        });
    let table = at_least(
        quantiles(table, |cell| cell.metrics.first()),
        "max",
        |cell| cell.metrics.first(),
    );
    // The kernel's delay before a job belongs next to the job's own time.
    table
        .when(has(Metric::WakeupLatency), |table| {
            let of = |cell| metric(cell, Metric::WakeupLatency);
            let p99 = table.quantile("wake-up p99", |cell| of(cell)?.summary.quantile(0.99));
            at_least(p99.on_terminal(), "wake-up max", of).on_terminal()
        })
        .when(summary.primary == Metric::StartTime, |table| {
            let of = |cell| metric(cell, Metric::ExitTime);
            table
                .quantile("exit median", |cell| of(cell)?.summary.quantile(0.5))
                .on_terminal()
                .times("exit max", |cell| largest(of(cell)))
                .on_terminal()
        })
        .number("cpu in 1 s", |cell| {
            let used = |ns| Scale::within(Some(Unit::S), [ns]).show(ns);
            cell.cpu_per_second_ns.map(used)
        })
        .if_any()
        .when(compared, |table| {
            let heading = format!("against {baseline}\nratio, 95 % interval");
            table.text(&heading, |cell| against(cell, baseline))
        })
        .number(
            if intervals {
                "late\n95 % interval"
            } else {
                "late"
            },
            |cell| Some(lost(cell.late?).aside(late_ends(cell))),
        )
        .if_any()
        .number("skipped", |cell| skipped(cell))
        .when(cells.iter().any(|c| c.class != cells[0].class), |table| {
            let class = |cell: &&CellSummary| match cell.real_time {
                true => Cell::from(cell.class.as_str()),
                false => Cell::new(format!("{}, {NOT_REAL_TIME}", cell.class), Tone::Caution),
            };
            table.text("class", class).on_terminal()
        })
        .when(cells.iter().all(|c| c.class == cells[0].class), |table| {
            table.labelled(|cell| cell.real_time)
        })
}

/// Names of up to this many characters are never shortened.
const LONGEST_NAME: usize = 32;

/// Shortens the names, and only the names, to make a table fit.
fn fit(columns: &mut [Column], width: usize) {
    let total: usize = columns.iter().map(|c| c.width() + 3).sum::<usize>() - 3;
    let names = columns[0].width();
    if total > width && names > LONGEST_NAME {
        let room = names.saturating_sub(total - width).max(LONGEST_NAME);
        let names: Vec<&str> = columns[0]
            .texts
            .iter()
            .map(|text| text.0.as_str())
            .collect();
        let short = shortened_apart(&names, room);
        for (text, short) in columns[0].texts.iter_mut().zip(short) {
            text.0 = short;
        }
    }
}

/// The unit of all times that the table shows, if one does for them.
fn unit(cells: &[CellSummary]) -> Option<Unit> {
    let metrics = cells.iter().flat_map(|cell| {
        let wakeup = cell
            .metrics
            .iter()
            .find(|m| m.metric == Metric::WakeupLatency);
        cell.metrics.first().into_iter().chain(wakeup)
    });
    let values = metrics.flat_map(|m| {
        let of = |probability| m.summary.quantile(probability)?.value_ns;
        [of(0.5), of(0.99), Some(m.summary.max_ns)]
    });
    Unit::common(values.flatten().map(|ns| ns as f64))
}

/// The number of activations of a cell without a good round.
fn planned(cell: &CellSummary) -> String {
    format!("of {}", plural(cell.planned, "planned activation"))
}

fn against(cell: &CellSummary, baseline: &str) -> Cell {
    let needed = |turns: &&InTurns| turns.against == baseline && turns.jobs_for_p99.is_some();
    match &cell.against_baseline {
        _ if cell.metrics.is_empty() => Cell::new("no good round", Tone::Bad).below(planned(cell)),
        Some(c) => told(&c.ratio_of_medians, c.rounds).below(match &c.ratio_of_p99 {
            Some(p99) => {
                let said = words::times(p99, c.rounds) + words::verdict(p99, c.rounds);
                format!("p99 {said}{}", words::fewer_rounds_of_p99(c))
            }
            None => (cell.in_turns.first().filter(needed))
                .map_or_else(String::new, |turns| format!("p99 {}", p99_needs(turns))),
        }),
        None if cell.trial == baseline => Cell::from("1").below("baseline"),
        None if cell.does.is_some() => "other work".into(),
        None => Cell::new("not comparable", Tone::Caution),
    }
}

fn late_ends(cell: &CellSummary) -> Option<String> {
    words::ends(cell.late_share.as_ref()?)
}

fn skipped(cell: &CellSummary) -> Cell {
    let share = cell.skipped_share.as_ref().and_then(words::ends);
    let skipped = match words::lost(cell) {
        0 => lost(cell.skipped),
        lost => Cell::new(
            format!("{} + {} lost", count(cell.skipped), count(lost)),
            Tone::Bad,
        ),
    };
    skipped.below(share.unwrap_or_default())
}

/// The sentences below the table, each with the name of the cell or trial that it is about; without one when it is
/// about the run.
fn after(summary: &RunSummary) -> Vec<(String, String)> {
    let crowded = table_conditions::crowded(summary);
    let own = summary.cells.iter().filter_map(|cell| {
        let does = cell.does.as_ref()?;
        Some((cell.label.clone(), format!("{}: {does}", cell.engine)))
    });
    let mut sentences: Vec<(String, String)> = own.collect();
    if crowded {
        let lines = table_conditions::load_lines(summary);
        sentences.extend(lines.into_iter().map(|line| (String::new(), line)));
    } else {
        let lines = summary.loads.iter();
        sentences.extend(lines.map(|l| (l.trial.clone(), format!("load {}", loads::line(l)))));
    }
    sentences.extend(tails::lines(summary));
    sentences.extend(not_measured(summary));
    let of_run = of_run(summary).into_iter();
    sentences.extend(of_run.map(|sentence| (String::new(), sentence)));
    sentences.extend(crate::conclusion::beside_own(summary));
    sentences.extend(crate::conclusion::states(summary, false));
    let conclusion = crate::conclusion::conclusion(summary).into_iter();
    sentences.extend(conclusion.map(|sentence| (String::new(), sentence)));
    sentences
}

/// One sentence for each trial, or for all that lack the same when there are several.
fn not_measured(summary: &RunSummary) -> Vec<(String, String)> {
    let mut groups: Vec<(&NotMeasured, Vec<&str>)> = Vec::new();
    for absent in &summary.not_measured {
        let why = |other: &NotMeasured| (other.reason.clone(), other.fix.clone());
        match groups
            .iter_mut()
            .find(|(first, _)| why(first) == why(absent))
        {
            Some((_, trials)) => trials.push(&absent.trial),
            None => groups.push((absent, vec![&absent.trial])),
        }
    }
    let sentence = |(first, trials): (&NotMeasured, Vec<&str>)| {
        let why = words::with_fix(&first.reason, &first.fix);
        match trials.as_slice() {
            [one] => ((*one).to_owned(), format!("not measured: {why}")),
            _ => (
                String::new(),
                format!("not measured: {}: {why}", trials.join(", ")),
            ),
        }
    };
    groups.into_iter().map(sentence).collect()
}

/// Sentences on the run as a whole.
fn of_run(summary: &RunSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    // The reason why a trial was not measured is given above.
    let said = |reason: &str| summary.not_measured.iter().any(|n| n.reason == reason);
    for requirement in summary.unmet.iter().filter(|r| !said(&r.reason)) {
        let fix = requirement.fix.as_deref().unwrap_or_default();
        let why = words::with_fix(&requirement.reason, fix);
        sentences.push(format!("unmet: {}: {why}", requirement.what));
    }
    for gap in &summary.resumed {
        sentences.push(format!("note: {}", words::resumed(gap)));
    }
    if let Some(histograms) = summary
        .cells
        .iter()
        .find_map(|cell| cell.histograms.as_ref())
    {
        sentences.push(format!(
            "note: from histograms: medians and quantiles are up to {:.1} % too large, the maximum is exact",
            histograms.relative_error * 100.0
        ));
    }
    let bounded = [
        crate::patience::sentence(summary),
        crate::patience::maximum(summary),
    ];
    let bounded = bounded.into_iter().flatten();
    sentences.extend(bounded.map(|sentence| format!("note: {sentence}")));
    for failure in &summary.failures {
        sentences.push(format!("failed: {failure}"));
    }
    sentences.extend(table_conditions::notes(&summary.cells));
    for why in &summary.overloads {
        sentences.push(format!("overload: {why}"));
    }
    if !summary.real_time {
        let affected = summary.cells.iter().filter(|cell| !cell.real_time).count() as u64;
        sentences.push(format!(
            "not real-time: {} of {} ran in no real-time class; their numbers say nothing about real-time work",
            count(affected),
            plural(summary.cells.len() as u64, "cell"),
        ));
    }
    sentences
}
