//! The table of a run with many trials that differ in load and period: one line for each load and engine, one column
//! for each period.

use model::EngineKind;
use record::summary::{CellSummary, PointSummary, RunSummary};
use stats::Verdict;
use study::conditions::{self, Conditions, period};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::{Scale, time};
use text::words::{clean, count, times, verdict};

/// With more cells than this, cells are summed up.
const MOST: usize = 12;

/// Cells that share a line.
struct Row<'a> {
    load: &'a str,
    engine: EngineKind,
    isolated: bool,
}

impl Row<'_> {
    fn holds(&self, (point, cell): &(&PointSummary, &CellSummary)) -> bool {
        (self.load, self.engine, self.isolated)
            == (point.load.as_str(), cell.engine, point.isolated)
    }
}

/// `None` for a run whose cells fit a table of their own.
pub(crate) fn table(summary: &RunSummary, style: Style) -> Option<String> {
    let found = many(summary).filter(folds)?;
    let mut rows: Vec<Row> = Vec::new();
    for load in &found.loads {
        for &engine in &found.engines {
            for isolated in [false, true] {
                let row = Row {
                    load,
                    engine,
                    isolated,
                };
                if found.points.iter().any(|point| row.holds(point)) {
                    rows.push(row);
                }
            }
        }
    }
    let load = rows.iter().map(|row| clean(row.load)).collect();
    let mut columns = vec![Column::plain("load", load)];
    if found.engines.len() > 1 {
        let engine = rows.iter().map(|row| row.engine.to_string()).collect();
        columns.push(Column::plain("engine", engine));
    }
    if found.both {
        let kept = |row: &Row| if row.isolated { "kept free" } else { "shared" };
        let cpus = rows.iter().map(|row| kept(row).to_owned()).collect();
        columns.push(Column::plain("cpus", cpus));
    }
    let cells_of = |row: &Row| {
        let cells = found.points.iter().filter(|point| row.holds(point));
        cells.copied().collect::<Vec<_>>()
    };
    let max = |row: &Row, ns: i64| {
        let cells = cells_of(row).into_iter();
        let of = cells.filter(|(point, _)| point.period_ns == ns);
        of.filter_map(|(_, cell)| Some(cell.metrics.first()?.summary.max_ns))
            .max()
    };
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
    let missed = rows.iter().map(|row| {
        let cells = cells_of(row).into_iter();
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

/// The conditions of a run with many cells.
fn many(summary: &RunSummary) -> Option<Conditions<'_>> {
    conditions::of(summary).filter(|found| found.points.len() > MOST)
}

/// Whether several cells share a line, so that the table is shorter than one with a line for each cell: there are
/// several periods, cpus kept free and not, or several cells of a kind.
fn folds(found: &Conditions) -> bool {
    let several = |(at, one): (usize, &(&PointSummary, &CellSummary))| {
        let row = Row {
            load: &one.0.load,
            engine: one.1.engine,
            isolated: one.0.isolated,
        };
        found.points[..at].iter().any(|point| row.holds(point))
    };
    found.both || found.points.iter().enumerate().any(several)
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
                        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
                    };
                    let ratio = &c.ratio_of_medians;
                    Text(times(ratio, c.rounds) + verdict(ratio, c.rounds), tone)
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
    let found = many(summary)?;
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
            of(Verdict::Undecided) + of(Verdict::TooWide),
        ));
    }
    Some(sentences)
}

/// Whether cells are so many that what is said of each alike is said once.
pub(crate) fn crowded(summary: &RunSummary) -> bool {
    many(summary).is_some()
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

/// Notes of all cells, equal ones once.
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
        .map(|(note, cells)| format!("note: {}: {note}", text::words::plural(cells, "cell")))
        .collect()
}
