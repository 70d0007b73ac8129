//! The table of a run with many trials that differ in load and period: one line for each load, one column for each
//! period.

use crate::conditions::{self, Conditions, period};
use crate::style::{Style, Tone};
use crate::table::{Column, Text, render};
use crate::units::{Scale, time};
use crate::words::{clean, count, interval, verdict};
use record::summary::{CellSummary, RunSummary};
use stats::Verdict;

/// With more cells than this, cells have no lines of their own.
const MOST: usize = 12;

/// `None` for a run whose cells fit a table of their own.
pub(crate) fn table(summary: &RunSummary, style: Style) -> Option<String> {
    let found = conditions::of(summary).filter(|found| found.points.len() > MOST)?;
    let mut rows: Vec<(&str, bool)> = Vec::new();
    for load in &found.loads {
        for isolated in [false, true] {
            if found
                .points
                .iter()
                .any(|(p, _)| p.load == *load && p.isolated == isolated)
            {
                rows.push((load, isolated));
            }
        }
    }
    let mut columns = vec![
        Column::plain("load", rows.iter().map(|(load, _)| clean(load)).collect()),
        Column::plain(
            if found.both { "cpus" } else { "" },
            rows.iter()
                .map(|(_, isolated)| match (found.both, isolated) {
                    (false, _) => String::new(),
                    (true, true) => "kept free".to_owned(),
                    (true, false) => "shared".to_owned(),
                })
                .collect(),
        ),
    ];
    let max = |row: &(&str, bool), ns: i64| found.max_ns(row.0, ns, row.1);
    let scale = Scale::of(
        rows.iter()
            .flat_map(|row| found.periods.iter().filter_map(move |&ns| max(row, ns)))
            .map(|ns| ns as f64),
    );
    for &ns in &found.periods {
        let texts = rows.iter().map(|row| {
            let text = max(row, ns).map_or("-".to_owned(), |max| scale.show(max as f64));
            Text(text, Tone::Plain)
        });
        columns.push(Column::new(&format!("max, {}", period(ns)), texts.collect()).right());
    }
    let missed = rows.iter().map(|(load, isolated)| {
        let cells = found
            .points
            .iter()
            .filter(|(p, _)| p.load == *load && p.isolated == *isolated);
        let missed: u64 = cells.map(|(_, cell)| cell.missed + cell.unexplained).sum();
        let tone = if missed > 0 { Tone::Bad } else { Tone::Plain };
        Text(count(missed), tone)
    });
    columns.push(Column::new("missed", missed.collect()).right());
    let mut out = format!(
        "largest {} of a job over all cpus, by load and period; report.html has every cell\n\n",
        summary.primary.title()
    );
    out += &render(&columns, style);
    if found.both {
        out.push('\n');
        out += &render(&gains(&found), style);
    }
    Some(out)
}

/// Kept free over shared, one line for each load and cpu, one column for each period.
fn gains(found: &Conditions) -> Vec<Column> {
    let mut rows: Vec<(&str, u32)> = Vec::new();
    for (point, _) in found.points.iter().filter(|(point, _)| point.isolated) {
        if !rows.contains(&(point.load.as_str(), point.cpu)) {
            rows.push((&point.load, point.cpu));
        }
    }
    let mut columns = vec![
        Column::plain(
            "kept free / shared",
            rows.iter().map(|row| clean(row.0)).collect(),
        ),
        Column::plain("cpu", rows.iter().map(|row| row.1.to_string()).collect()).right(),
    ];
    for &ns in &found.periods {
        let texts = rows.iter().map(|&(load, cpu)| {
            let point = found.at(load, ns, true).find(|(point, _)| point.cpu == cpu);
            match point.and_then(|(point, _)| point.against_shared.as_ref()) {
                None => Text("-".to_owned(), Tone::Plain),
                Some(c) => {
                    let tone = match c.ratio_of_medians.verdict {
                        Verdict::Larger => Tone::Caution,
                        Verdict::Smaller => Tone::Good,
                        Verdict::WithinNoise | Verdict::Undecided => Tone::Plain,
                    };
                    let ratio = &c.ratio_of_medians;
                    Text(
                        format!("{} {}", interval(ratio), verdict(ratio, c.rounds)),
                        tone,
                    )
                }
            }
        });
        columns.push(Column::new(
            &format!("median, {}", period(ns)),
            texts.collect(),
        ));
    }
    columns
}

/// What was found, in sentences, for runs whose trials are too many for one each.
pub(crate) fn findings(summary: &RunSummary) -> Option<Vec<String>> {
    let found = conditions::of(summary).filter(|found| found.points.len() > MOST)?;
    let mut sentences = Vec::new();
    for &ns in &found.periods {
        for isolated in [false, true] {
            let worst = found
                .loads
                .iter()
                .filter_map(|load| Some((load, found.max_ns(load, ns, isolated)?)))
                .max_by_key(|(_, max)| *max);
            if let Some((load, max)) = worst {
                let kept = if isolated { " on cpus kept free" } else { "" };
                sentences.push(format!(
                    "With a period of {} the largest {}{kept} was {}, under {load}.",
                    period(ns),
                    summary.primary.title(),
                    time(max as f64)
                ));
            }
        }
    }
    let verdicts: Vec<Verdict> = (found.points.iter())
        .filter_map(|(p, _)| Some(p.against_shared.as_ref()?.ratio_of_medians.verdict))
        .collect();
    if !verdicts.is_empty() {
        let of = |wanted| {
            verdicts
                .iter()
                .filter(|&&verdict| verdict == wanted)
                .count()
        };
        sentences.push(format!(
            "Keeping cpus free made the median {} smaller in {} of {} comparisons and larger in {}; {} are within noise \
             and {} undecided.",
            summary.primary.title(),
            of(Verdict::Smaller),
            verdicts.len(),
            of(Verdict::Larger),
            of(Verdict::WithinNoise),
            of(Verdict::Undecided),
        ));
    }
    Some(sentences)
}

/// Whether a cell's own line is left out of the table.
pub(crate) fn grouped(summary: &RunSummary) -> bool {
    conditions::of(summary).is_some_and(|found| found.points.len() > MOST)
}

/// Loads with their largest and least achieved values over trials, one line for each.
pub(crate) fn load_lines(summary: &RunSummary) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for load in &summary.loads {
        if !names.contains(&load.name.as_str()) {
            names.push(&load.name);
        }
    }
    names
        .into_iter()
        .filter_map(|name| {
            let mut of_name = summary.loads.iter().filter(|load| load.name == name);
            let mut all = of_name.next()?.clone();
            for load in of_name {
                for one in &load.achieved {
                    let same = all.achieved.iter_mut().find(|a| a.quantity == one.quantity);
                    if let Some(same) = same {
                        same.values.extend(&one.values);
                    }
                }
                all.rounds += load.rounds;
                all.failed += load.failed;
                all.missed_seconds = match (all.missed_seconds, load.missed_seconds) {
                    (Some(a), Some(b)) => Some(a + b),
                    (a, b) => a.or(b),
                };
            }
            Some(format!("load {}", crate::loads::line(&all)))
        })
        .collect()
}

/// Whether this cell has its note said in the table; with many cells equal notes are said once.
pub(crate) fn notes(cells: &[CellSummary]) -> Vec<String> {
    let mut notes: Vec<(&str, u64)> = Vec::new();
    for note in cells.iter().flat_map(|cell| &cell.notes) {
        match notes.iter_mut().find(|known| known.0 == note) {
            Some(known) => known.1 += 1,
            None => notes.push((note, 1)),
        }
    }
    notes
        .into_iter()
        .map(|(note, cells)| format!("note: {}: {note}", crate::words::plural(cells, "cell")))
        .collect()
}
