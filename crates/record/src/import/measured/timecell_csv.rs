//! timecell's own CSV of jobs, read back: a row per executed job, counted by trial and cell. Runs combined in one
//! table are kept apart by the column `run`.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::timecell_rows::Table;
use super::{Distribution, MOST_DISTRIBUTIONS, Measured, Options, Source};
use crate::Metric;

pub(super) const READER: Reader = Reader::new(
    "timecell-csv",
    "What `export --csv` writes of a run that kept jobs",
    senses,
    read,
);

/// Columns that are read, and their quantities.
pub(super) const COUNTED: [(&str, Metric); 3] = [
    ("wakeup_latency_ns", Metric::WakeupLatency),
    ("execution_time_ns", Metric::ExecutionTime),
    ("response_time_ns", Metric::ResponseTime),
];

fn senses(head: &Head) -> bool {
    head.line(|line| line.contains("trial_name,") && line.contains(",wakeup_latency_ns"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let table = Table::begin(source)?;
    let (trial, cell) = (table.need("trial_name")?, table.need("cell")?);
    let (run, cpu) = (table.column("run"), table.column("cpu"));
    let failed = table.column("trial_failed");
    let mut counted = Vec::new();
    for (column, metric) in COUNTED {
        counted.push((table.need(column)?, metric));
    }
    let missed = ["missed_before", "missed_after"].map(|wanted| table.column(wanted));
    let mut rows = Rows::default();
    while let Some(row) = table.next(source)? {
        if failed.is_some_and(|at| matches!(row.text(at), "1" | "true")) {
            rows.failed += 1;
            continue;
        }
        let run = run.map_or("", |at| row.text(at));
        let key = [run, row.text(trial), row.text(cell)].map(str::to_owned);
        for at in missed.into_iter().flatten() {
            rows.missed = rows.missed.saturating_add(row.whole::<i64>(at)?.max(0));
        }
        let here = rows
            .of(key.into(), cpu.and_then(|at| row.text(at).parse().ok()))
            .ok_or_else(|| row.fault("the table has too many cells"))?;
        for (tally, (at, _)) in here.iter_mut().zip(&counted) {
            tally.add(row.whole(*at)?);
        }
    }
    Ok(rows.finish())
}

/// Run, trial and cell of some rows.
type Key = (String, String, String);

/// The rows of a table of jobs so far.
#[derive(Default)]
pub(super) struct Rows {
    cells: Vec<(Key, Option<u32>, [Tally; COUNTED.len()])>,
    last: usize,
    /// Rows of failed trials, which are left out.
    pub failed: u64,
    /// Missed activations, which have no row.
    pub missed: i64,
}

impl Rows {
    /// The counts of a cell; `None` if there are too many cells.
    pub fn of(&mut self, key: Key, cpu: Option<u32>) -> Option<&mut [Tally; COUNTED.len()]> {
        // Rows of a cell are consecutive.
        if self.cells.get(self.last).is_none_or(|known| known.0 != key) {
            let known = self.cells.iter().position(|known| known.0 == key);
            self.last = known.unwrap_or(self.cells.len());
            if known.is_none() {
                if self.cells.len() >= MOST_DISTRIBUTIONS {
                    return None;
                }
                self.cells.push((key, cpu, Default::default()));
            }
        }
        Some(&mut self.cells[self.last].2)
    }

    /// One distribution for each cell and metric.
    pub fn finish(self) -> Measured {
        let mut measured = Measured::by("timecell");
        let several = self.cells.windows(2).any(|pair| pair[0].0.0 != pair[1].0.0);
        let mut by_metric: [Vec<Distribution>; COUNTED.len()] = Default::default();
        for ((run, trial, cell), cpu, tallies) in self.cells {
            let run = if several {
                format!("{run}/")
            } else {
                String::new()
            };
            for (at, tally) in tallies.into_iter().enumerate() {
                let place = format!("{run}{trial}/{cell}");
                let mut d = Distribution::new(place, COUNTED[at].1.title(), 1);
                d.cpu = cpu;
                tally.fill(&mut d);
                by_metric[at].push(d);
            }
        }
        measured.distributions = by_metric.into_iter().flatten().collect();
        if self.failed > 0 {
            measured.notes.push(format!(
                "{} rows of failed trials are left out",
                self.failed
            ));
        }
        if self.missed > 0 {
            measured
                .notes
                .push(format!("{} missed activations have no value", self.missed));
        }
        measured
    }
}
