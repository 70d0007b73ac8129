//! The terminal's table of a run.

use crate::tails;
use crate::{loads, table_conditions};
use record::summary::{CellSummary, Metric, MetricSummary, NotMeasured, RunSummary};
use stats::Verdict;
use text::grid::{Column, Text, render_parts};
use text::style::{Style, Tone};
use text::units::{Scale, Unit};
use text::words::{self, clean, count, plural, shortened};

/// The table over all cells, then what was not measured, what the machine lacks, and what failed.
///
/// Ends with a line break. Every cell that did not run in a real-time class says so on its own line.
pub fn table(summary: &RunSummary, style: Style) -> String {
    let mut columns = columns(summary);
    fit(&mut columns, style.width);
    let mut out = String::new();
    let grouped = table_conditions::table(summary, style);
    let shown = grouped.is_none() && !summary.cells.is_empty();
    if let Some(grouped) = grouped {
        out += &grouped;
    } else if shown {
        let of = match (summary.primary, &summary.task) {
            (Metric::StartTime, _) => "the program",
            (_, Some(task)) => &format!("a job of {}", clean(task)),
            _ if summary.cells.iter().all(|cell| cell.executions) => {
                "a job, one execution of the program from its start to its exit"
            }
            _ => "a job",
        };
        out += &format!("{} of {of}\n\n", summary.primary.title());
        out += &render_parts(&columns, style);
        out += &crate::tasks::table(summary, style);
        out += &crate::in_turns::table(summary, style);
        let beside = crate::beside::table(summary, style);
        out += match out.ends_with("\n\n") {
            true => beside.trim_start(),
            false => &beside,
        };
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

fn columns(summary: &RunSummary) -> Vec<Column> {
    let cells = &summary.cells;
    let primary = |cell: &CellSummary| cell.metrics.first().cloned();
    let metrics: Vec<Option<MetricSummary>> = cells.iter().map(primary).collect();
    let unit = unit(cells);
    let times = |heading: &str, metrics: &[Option<MetricSummary>], value: Value| {
        times(heading, unit, metrics, value)
    };
    let quantile = |heading: &str, metrics: &[Option<MetricSummary>], probability: f64| {
        quantile(heading, unit, metrics, probability)
    };
    let mut columns = vec![
        Column::plain("cell", cells.iter().map(|c| clean(&c.label)).collect()),
        quantile("median", &metrics, 0.5),
        quantile("p99", &metrics, 0.99),
        at_least(times("max", &metrics, &|m| Some(m.summary.max_ns)), cells),
    ];
    if summary.primary != Metric::WakeupLatency {
        // What the kernel adds before a job begins belongs next to what the job takes.
        let wakeup = |cell: &CellSummary| {
            let of = |m: &&MetricSummary| m.metric == Metric::WakeupLatency;
            cell.metrics.iter().find(of).cloned()
        };
        let wakeups: Vec<Option<MetricSummary>> = cells.iter().map(wakeup).collect();
        if wakeups.iter().any(Option::is_some) {
            columns.push(quantile("wake-up p99", &wakeups, 0.99));
            let max = times("wake-up max", &wakeups, &|m| Some(m.summary.max_ns));
            columns.push(at_least(max, cells));
        }
    }
    if summary.primary == Metric::StartTime {
        let exit = |cell: &CellSummary| {
            let of = |m: &&MetricSummary| m.metric == Metric::ExitTime;
            cell.metrics.iter().find(of).cloned()
        };
        let exits: Vec<Option<MetricSummary>> = cells.iter().map(exit).collect();
        columns.push(quantile("exit median", &exits, 0.5));
        columns.push(times("exit max", &exits, &|m| Some(m.summary.max_ns)));
        let used = |cell: &CellSummary| match cell.cpu_per_second_ns {
            Some(ns) => Scale::within(Some(Unit::S), [ns]).show(ns),
            None => "-".to_owned(),
        };
        columns.push(Column::plain("cpu in 1 s", cells.iter().map(used).collect()).right());
    }
    if cells.iter().any(|cell| cell.trial != summary.baseline) {
        columns.push(Column {
            heading: format!(
                "against {} (median, 95% interval)",
                clean(&summary.baseline)
            ),
            right: false,
            texts: cells
                .iter()
                .map(|c| against(c, &summary.baseline))
                .collect(),
        });
    }
    if cells.iter().any(|cell| cell.late.is_some()) {
        columns.push(Column {
            heading: match cells.iter().any(|cell| late_ends(cell).is_some()) {
                true => "late (95% interval)".to_owned(),
                false => "late".to_owned(),
            },
            right: true,
            texts: cells.iter().map(late).collect(),
        });
    }
    columns.push(Column {
        heading: "missed".to_owned(),
        right: true,
        texts: cells.iter().map(missed).collect(),
    });
    let label = |cell: &CellSummary| match cell.real_time {
        true => Text(String::new(), Tone::Plain),
        false => Text("not real-time".to_owned(), Tone::Caution),
    };
    if cells.iter().any(|c| c.class != cells[0].class) {
        let class = |cell: &CellSummary| match label(cell) {
            Text(none, tone) if none.is_empty() => Text(clean(&cell.class), tone),
            Text(label, tone) => Text(format!("{}, {label}", clean(&cell.class)), tone),
        };
        columns.push(Column::new("class", cells.iter().map(class).collect()));
    } else if cells.iter().any(|cell| !cell.real_time) {
        columns.push(Column::new("", cells.iter().map(label).collect()));
    }
    columns
}

/// Names of up to this many characters are never shortened.
const LONGEST_NAME: usize = 32;

/// Shortens the names, and only the names, to make a table fit.
fn fit(columns: &mut [Column], width: usize) {
    let total: usize = columns.iter().map(|c| c.width() + 3).sum::<usize>() - 3;
    let names = columns[0].width();
    // Names of cells that run together differ in the middle: a line that runs over is better than two alike.
    if total > width && names > LONGEST_NAME {
        let room = names.saturating_sub(total - width).max(LONGEST_NAME);
        for text in &mut columns[0].texts {
            text.0 = shortened(&text.0, room);
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

/// A value of a metric in ns.
type Value<'a> = &'a dyn Fn(&MetricSummary) -> Option<i64>;

fn times(
    heading: &str,
    unit: Option<Unit>,
    metrics: &[Option<MetricSummary>],
    value: Value,
) -> Column {
    let of = |m: &Option<MetricSummary>| m.as_ref().and_then(value).map(|ns| ns as f64);
    let scale = Scale::within(unit, metrics.iter().filter_map(of));
    let text = |m| {
        Text(
            of(m).map_or("-".to_owned(), |ns| scale.show(ns)),
            Tone::Plain,
        )
    };
    Column {
        heading: heading.to_owned(),
        right: true,
        texts: metrics.iter().map(text).collect(),
    }
}

/// Largest values, marked where jobs were lost of which one may have been larger.
fn at_least(mut column: Column, cells: &[CellSummary]) -> Column {
    for (text, cell) in column.texts.iter_mut().zip(cells) {
        if words::lost(cell) > 0 && text.0 != "-" {
            *text = Text(format!(">= {}", text.0), Tone::Bad);
        }
    }
    column
}

/// A quantile, or how many samples it needs.
fn quantile(
    heading: &str,
    unit: Option<Unit>,
    metrics: &[Option<MetricSummary>],
    probability: f64,
) -> Column {
    let mut column = times(heading, unit, metrics, &|m| {
        m.summary.quantile(probability)?.value_ns
    });
    for (text, metric) in column.texts.iter_mut().zip(metrics) {
        let quantile = metric
            .as_ref()
            .and_then(|m| m.summary.quantile(probability));
        if let Some(few) = quantile.filter(|q| q.value_ns.is_none()) {
            text.0 = words::needs(few);
        }
    }
    column
}

fn against(cell: &CellSummary, baseline: &str) -> Text {
    if cell.metrics.is_empty() {
        return Text("no good round".to_owned(), Tone::Bad);
    }
    match &cell.against_baseline {
        Some(comparison) => {
            let tone = match words::judged(&comparison.ratio_of_medians, comparison.rounds) {
                Verdict::Larger => Tone::Caution,
                Verdict::Smaller => Tone::Good,
                Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
            };
            Text(words::comparison(comparison), tone)
        }
        None if cell.trial == baseline => Text("1".to_owned(), Tone::Plain),
        None if cell.does.is_some() => Text("other work".to_owned(), Tone::Plain),
        None => Text("not comparable".to_owned(), Tone::Caution),
    }
}

/// Jobs that ended after their deadline, and the interval of their share.
fn late(cell: &CellSummary) -> Text {
    let Some(late) = cell.late else {
        return Text("-".to_owned(), Tone::Plain);
    };
    let ends = late_ends(cell).map_or_else(String::new, |ends| format!(" ({ends})"));
    let tone = if late > 0 { Tone::Bad } else { Tone::Plain };
    Text(format!("{}{ends}", count(late)), tone)
}

fn late_ends(cell: &CellSummary) -> Option<String> {
    words::ends(cell.late_share.as_ref()?)
}

fn missed(cell: &CellSummary) -> Text {
    let lost = words::lost(cell);
    let tone = if cell.missed > 0 || lost > 0 {
        Tone::Bad
    } else {
        Tone::Plain
    };
    let lost = match lost {
        0 => String::new(),
        lost => format!(" + {} lost", count(lost)),
    };
    Text(format!("{}{lost}", count(cell.missed)), tone)
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
    let of_run = of_run(summary, crowded).into_iter();
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

/// What is to be said of the run as a whole.
fn of_run(summary: &RunSummary, crowded: bool) -> Vec<String> {
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
            "note: from histograms: medians and quantiles are up to {:.1}% too large, the maximum is exact",
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
    if crowded {
        sentences.extend(table_conditions::notes(&summary.cells));
    }
    for cell in summary.cells.iter().filter(|_| !crowded) {
        for note in &cell.notes {
            sentences.push(format!("note: {}: {note}", cell.label));
        }
    }
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
