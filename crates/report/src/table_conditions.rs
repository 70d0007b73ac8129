//! The table of a run with many trials that differ in load and period: one line for each load and engine, one column
//! for each period.

use crate::grid::{Table, lost, told};
use record::summary::{CellSummary, PointSummary, RunSummary};
use stats::Verdict;
use study::conditions::{self, Conditions, period};
use text::style::Style;
use text::units::{Scale, time};

/// With more cells than this, cells are summed up.
const MOST: usize = 12;

/// Cells that share a line.
struct Row<'a> {
    load: &'a str,
    made: &'a str,
    isolated: bool,
}

impl Row<'_> {
    fn holds(&self, (point, cell): &(&PointSummary, &CellSummary)) -> bool {
        (self.load, self.made, self.isolated)
            == (
                point.load.as_str(),
                point.made_by(cell.engine),
                point.isolated,
            )
    }
}

/// `None` for a run whose cells fit a table of their own.
pub(crate) fn table(summary: &RunSummary, style: Style) -> Option<String> {
    let found = many(summary).filter(folds)?;
    let mut kinds: Vec<&str> = Vec::new();
    for &engine in &found.engines {
        let of_engine = (found.points.iter()).filter(|(_, cell)| cell.engine == engine);
        for made in of_engine.map(|(point, cell)| point.made_by(cell.engine)) {
            if !kinds.contains(&made) {
                kinds.push(made);
            }
        }
    }
    let has_machine = (found.points.iter()).any(|(point, _)| point.machine.is_some());
    let mut rows: Vec<Row> = Vec::new();
    for load in &found.loads {
        for &made in &kinds {
            for isolated in [false, true] {
                let row = Row {
                    load,
                    made,
                    isolated,
                };
                if found.points.iter().any(|point| row.holds(point)) {
                    rows.push(row);
                }
            }
        }
    }
    let of = |row: &Row| {
        let cells = found.points.iter().filter(|point| row.holds(point));
        cells.copied().collect::<Vec<_>>()
    };
    let max = |row: &Row, ns: i64| {
        let cells = of(row)
            .into_iter()
            .filter(|(point, _)| point.period_ns == ns);
        let all = cells.filter_map(|(_, cell)| Some(cell.metrics.first()?.summary.max_ns));
        all.max().map(|ns| ns as f64)
    };
    let periods = || found.periods.iter().copied();
    let all = rows
        .iter()
        .flat_map(|row| periods().filter_map(|ns| max(row, ns)));
    let scale = Scale::of(all.collect::<Vec<_>>());
    let caption = format!(
        "largest {} of a job over all cpus, by load and period; report.html has every cell",
        summary.primary.title()
    );
    let table = Table::new(caption, rows)
        .head("load", |row| row.load)
        .when(kinds.len() > 1 || has_machine, |table| {
            table.text("engine", |row| row.made)
        })
        .when(found.both, |table| {
            table.text(
                "cpus",
                |row| if row.isolated { "kept free" } else { "shared" },
            )
        });
    let table = periods().fold(table, |table, ns| {
        table.number(&format!("max, {}", period(ns)), |row| {
            max(row, ns).map(|ns| scale.show(ns))
        })
    });
    let table = table.number("skipped", |row| {
        lost(
            of(row)
                .iter()
                .map(|(_, cell)| cell.skipped + cell.unexplained)
                .sum(),
        )
    });
    let gains = gains(&found);
    let more = match gains.is_empty() {
        true => String::new(),
        false => format!("\n{}", gains.lines(style)),
    };
    Some(table.block(style).trim_end().to_owned() + "\n" + &more)
}

/// The conditions of a run with many cells.
fn many(summary: &RunSummary) -> Option<Conditions<'_>> {
    // Of a task set, each task is told apart.
    let is_set = summary.cells.iter().any(|cell| cell.task.is_some());
    conditions::of(summary).filter(|found| found.points.len() > MOST && !is_set)
}

/// Whether several cells share a line, so that the table is shorter than one with a line for each cell: there are
/// several periods, cpus kept free and not, or several cells of a kind.
fn folds(found: &Conditions) -> bool {
    let several = |(at, one): (usize, &(&PointSummary, &CellSummary))| {
        let row = Row {
            load: &one.0.load,
            made: one.0.made_by(one.1.engine),
            isolated: one.0.isolated,
        };
        found.points[..at].iter().any(|point| row.holds(point))
    };
    found.both || found.points.iter().enumerate().any(several)
}

/// Kept free over shared, one line for each load and cpu, one column for each period.
fn gains<'a>(found: &Conditions<'a>) -> Table<(&'a str, u32)> {
    let mut rows: Vec<(&str, u32)> = Vec::new();
    for (point, _) in found.points.iter().filter(|(point, _)| point.isolated) {
        if found.both && !rows.contains(&(point.load.as_str(), point.cpu)) {
            rows.push((&point.load, point.cpu));
        }
    }
    let table = Table::new("", rows)
        .head("kept free / shared", |row| row.0)
        .number("cpu", |row| row.1);
    found.periods.iter().fold(table, |table, &ns| {
        table.text(&format!("median, {}", period(ns)), |&(load, cpu)| {
            let (point, _) = found
                .at(load, ns, true)
                .find(|(point, _)| point.cpu == cpu)?;
            let c = point.against_shared.as_ref()?;
            Some(told(&c.ratio_of_medians, c.rounds))
        })
    })
}

/// Findings, in sentences, for runs whose trials are too many for one each.
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

/// Whether cells are so many that sentences on each alike are said once.
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

/// Notes of all cells, equal ones once, of the named cells where these are few.
pub(crate) fn notes(cells: &[CellSummary]) -> Vec<String> {
    const NAMED: usize = 3;
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for cell in cells {
        for note in &cell.notes {
            match notes.iter_mut().find(|known| known.0 == note) {
                Some(known) => known.1.push(&cell.label),
                None => notes.push((note, vec![&cell.label])),
            }
        }
    }
    let told = |(note, labels): (&str, Vec<&str>)| {
        let of = match labels.len() {
            ..=NAMED => labels.join(", "),
            many => text::words::plural(many as u64, "cell"),
        };
        format!("note: {of}: {note}")
    };
    notes.into_iter().map(told).collect()
}
