//! How well single runs decide, from many runs of the same scenario: half widths of their ratios, how many intervals hold 1, and the
//! conclusions, as tables in Markdown.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use record::run::Run;
use record::summary::{InTurns, Metric, RunSummary};
use stats::{Ratio, Share};

use super::{Failure, built};

/// How well do ten runs of a scenario decide?
#[derive(Args)]
pub struct Options {
    /// Runs of each scenario.
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// Keep the runs there; those of an earlier call are counted with these.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure with this timecell instead of the release build.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// overhead, concurrency, latency, or an experiment file with [turns]; several one after the other.
    #[arg(default_value = "overhead")]
    scenarios: Vec<String>,
    /// Options of `timecell bench`, such as --quick.
    #[arg(last = true)]
    options: Vec<String>,
}

/// Measures the runs and prints the tables.
///
/// # Errors
///
/// If a run is not on record at its end.
pub fn run(options: &Options) -> Result<(), Failure> {
    let temporary = tempfile::tempdir()?;
    let out = options.out.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(out)?;
    let runs = out.canonicalize()?.join("runs");
    // A copy: a build meanwhile must not exchange the program that is measured.
    let timecell = temporary.path().join("timecell");
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built::timecell()?,
    };
    fs::copy(binary, &timecell)?;
    let log = temporary.path().join("last.log");
    for scenario in &options.scenarios {
        for run in 1..=options.runs {
            eprintln!("run {run} of {} of {scenario}", options.runs);
            let sink = File::create(&log)?;
            let status = Command::new(&timecell)
                .args(["bench", scenario, "--out"])
                .arg(&runs)
                .args(&options.options)
                .stdout(sink.try_clone()?)
                .stderr(sink)
                .status()?;
            // Late jobs are no fault of the method: exit code 1 alone ends nothing as long as the run is on record.
            if !matches!(status.code(), Some(0 | 1)) {
                return Err(fs::read_to_string(&log)?.into());
            }
        }
    }
    let mut runs: Vec<PathBuf> = fs::read_dir(&runs)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    runs.sort();
    print(&runs)
}

/// Intervals of one kind over all runs.
#[derive(Default)]
struct Tally {
    intervals: usize,
    /// Those that hold 1, or for a difference 0.
    hold: usize,
    /// As parts of the ratio, or of all jobs.
    halves: Vec<f64>,
}

impl Tally {
    fn ratio(&mut self, ratio: Option<&Ratio>) {
        if let Some((low, high)) = ratio.and_then(|ratio| ratio.low.zip(ratio.high)) {
            self.add(low <= 1.0 && 1.0 <= high, (high / low).ln() / 2.0);
        }
    }

    fn difference(&mut self, share: &Share) {
        if let Some((low, high)) = share.low.zip(share.high) {
            self.add(low <= 0.0 && 0.0 <= high, (high - low) / 2.0);
        }
    }

    fn add(&mut self, holds: bool, half: f64) {
        self.intervals += 1;
        self.hold += usize::from(holds);
        self.halves.push(half);
    }

    /// `0.30 to 1.50, median 0.90 %; 54 of 60`.
    fn cell(&self) -> String {
        let mut halves = self.halves.clone();
        halves.sort_unstable_by(f64::total_cmp);
        let (Some(least), Some(most)) = (halves.first(), halves.last()) else {
            return String::new();
        };
        let [least, median, most] =
            [*least, halves[halves.len() / 2], *most].map(|half| format!("{:.2}", 100.0 * half));
        format!(
            "{least} to {most}, median {median} %; {} of {}",
            self.hold, self.intervals
        )
    }
}

/// A row: medians of all jobs, p99, medians in the fast state and in the slow one, the difference of the shares of time in it; and runs with
/// two states.
#[derive(Default)]
struct Row {
    all: Tally,
    p99: Tally,
    fast: Tally,
    slow: Tally,
    shares: Tally,
    runs: usize,
    with_states: usize,
}

impl Row {
    fn add(&mut self, turns: &InTurns) {
        self.runs += 1;
        self.all.ratio(Some(&turns.comparison.ratio_of_medians));
        self.p99.ratio(turns.comparison.ratio_of_p99.as_ref());
        if let Some(within) = &turns.within {
            self.with_states += 1;
            self.fast.ratio(within.fast.as_ref());
            self.slow.ratio(within.slow.as_ref());
            self.shares.difference(&within.slow_share_difference);
        }
    }

    fn print(&self, name: &str) {
        println!(
            "| {name} | {} | {} | {} of {} | {} | {} | {} |",
            self.all.cell(),
            self.p99.cell(),
            self.with_states,
            self.runs,
            self.fast.cell(),
            self.slow.cell(),
            self.shares.cell()
        );
    }
}

fn print(runs: &[PathBuf]) -> Result<(), Failure> {
    let mut experiments: BTreeMap<String, Vec<RunSummary>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.is_dir()) {
        let summary: RunSummary = (Run::open(Path::new(run)).and_then(|run| run.read()))
            .map_err(|error| format!("{}: {error}", run.display()))?;
        let of = experiments.entry(summary.experiment.clone()).or_default();
        of.push(summary);
    }
    for (experiment, runs) in &experiments {
        println!(
            "## {} of `{experiment}`\n",
            report::plural(runs.len() as u64, "run")
        );
        for metric in Metric::ALL {
            table(runs, metric);
        }
        conclusions(runs);
    }
    Ok(())
}

/// The half widths of a metric's ratios; nothing where none was compared in turns.
fn table(runs: &[RunSummary], metric: Metric) {
    let mut rows: Vec<(String, Row)> = Vec::new();
    let mut total = Row::default();
    for cell in runs.iter().flat_map(|run| &run.cells) {
        let Some(turns) = cell.in_turns.iter().find(|turns| turns.metric == metric) else {
            continue;
        };
        let against = [
            std::slice::from_ref(&turns.against),
            turns.pooled_with.as_slice(),
        ]
        .concat();
        let name = format!("{} against {}", cell.label, against.join(" and "));
        let place = rows.iter().position(|(other, _)| *other == name);
        let place = place.unwrap_or_else(|| {
            rows.push((name, Row::default()));
            rows.len() - 1
        });
        rows[place].1.add(turns);
        total.add(turns);
    }
    if rows.is_empty() {
        return;
    }
    println!(
        "Half widths of the 95 % intervals of the {}; intervals that hold 1, or of the difference 0\n",
        metric.title()
    );
    println!(
        "| what | median | p99 | two states found | within the fast state | within the slow state | difference of shares |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, row) in &rows {
        row.print(name);
    }
    total.print("all");
    println!();
}

/// Each run's conclusion.
fn conclusions(runs: &[RunSummary]) {
    for run in runs {
        println!("- {}: {}", run.run, report::conclusion(run).join(" "));
    }
    println!();
}
