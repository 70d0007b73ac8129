//! One cell of one trial: its statistics, and a bounded number of its jobs for the window in which all cells ran.

use record::samples::{Sample, Samples};
use record::scale::{CellColumns, StatColumns};
use record::trial::{CellRecord, TrialRecord};
use stats::{BatchMean, Sorted};

/// A job in the few numbers that the window needs.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub release_ns: i64,
    pub end_ns: i64,
}

/// A cell in one trial of its round. A round has several trials where one was cut off and continued when the run was resumed.
pub(super) struct Part<'a> {
    pub trial: &'a TrialRecord,
    pub cell: &'a CellRecord,
    pub samples: Samples,
}

/// The window's data of a cell in one trial.
pub(super) struct Ran {
    /// Number of the trial.
    pub trial: u32,
    /// First release and last end, ns of CLOCK_MONOTONIC.
    pub ran: (i64, i64),
    /// Every `stride`-th job, in order.
    pub kept: Vec<Job>,
    pub stride: u64,
    pub jobs: u64,
}

/// Summary of a cell's samples of one round.
pub(super) struct Cell {
    pub number: u32,
    /// The cpu that it is pinned to, or began on.
    pub cpu: u32,
    pub pinned: bool,
    pub jobs: u64,
    pub start_ns: Option<i64>,
    pub execution: Stats,
    pub response: Stats,
    /// Trial by trial: between two of them the run was not under way, and the clock may have begun anew.
    pub parts: Vec<Ran>,
    pub cpu_time_ns: u64,
}

/// Statistics of one metric of a cell.
pub(super) struct Stats {
    pub mean_ns: i64,
    pub sd_ns: Option<i64>,
    pub p95_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub batches: Option<BatchMean>,
}

impl Cell {
    /// `room` is the number of jobs that may be kept. `None` when the cell ran no job.
    pub fn of(number: u32, parts: &[Part<'_>], room: usize) -> Option<Cell> {
        let ran: Vec<&Part<'_>> = (parts.iter())
            .filter(|part| !part.samples.samples.is_empty())
            .collect();
        let first = ran.first()?;
        let pinned = first.cell.cpus.is_empty();
        let values = |of: fn(&Sample) -> i64| {
            let jobs = ran.iter().flat_map(|part| &part.samples.samples);
            Stats::of(jobs.map(of).collect())
        };
        let sum = |of: fn(&Part<'_>) -> u64| ran.iter().map(|part| of(part)).sum();
        Some(Cell {
            number,
            cpu: match pinned {
                true => first.cell.cpu,
                false => first.samples.header.cpu_first,
            },
            pinned,
            jobs: sum(|part| part.samples.samples.len() as u64),
            start_ns: ran.iter().find_map(|part| {
                let started = part.cell.started_ns.zip(part.trial.go_ns);
                started.map(|(start, go)| start.saturating_sub(go))
            }),
            execution: values(Sample::execution_time_ns)?,
            response: values(Sample::response_time_ns)?,
            parts: (ran.iter())
                .filter_map(|part| Ran::of(part, room / ran.len()))
                .collect(),
            cpu_time_ns: sum(|part| part.samples.header.cpu_time_ns),
        })
    }

    /// Appends the cell to the columns.
    pub fn add_to(&self, columns: &mut CellColumns) {
        columns.number.push(self.number);
        columns.cpu.push(self.cpu);
        columns.jobs.push(self.jobs);
        columns.start_ns.push(self.start_ns);
        self.execution.add_to(&mut columns.execution);
        self.response.add_to(&mut columns.response);
    }
}

impl Ran {
    fn of(part: &Part<'_>, room: usize) -> Option<Ran> {
        let jobs = &part.samples.samples;
        let (first, last) = (jobs.first()?, jobs.last()?);
        let stride = jobs.len().div_ceil(room.max(1));
        let kept = jobs.iter().step_by(stride).map(|job| Job {
            release_ns: job.release_ns,
            end_ns: job.end_ns,
        });
        Some(Ran {
            trial: part.trial.number,
            ran: (first.release_ns, last.end_ns),
            kept: kept.collect(),
            stride: stride as u64,
            jobs: jobs.len() as u64,
        })
    }
}

impl Stats {
    fn of(values_ns: Vec<i64>) -> Option<Stats> {
        let batches = BatchMean::of(&values_ns);
        let sorted = Sorted::new(values_ns);
        let (mean_ns, sd_ns) = sorted.moments()?;
        // As everywhere: a percentile that the sample is too small to bound is absent.
        let quantile = |p: f64| {
            let needed = stats::needed_count(p, stats::DEFAULT_CONFIDENCE)?;
            (sorted.len() as u64 >= needed).then(|| sorted.nearest_rank(p))?
        };
        Some(Stats {
            mean_ns: mean_ns.round() as i64,
            sd_ns: sd_ns.map(|sd| sd.round() as i64),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            batches,
        })
    }

    fn add_to(&self, columns: &mut StatColumns) {
        columns.mean_ns.push(self.mean_ns);
        columns.sd_ns.push(self.sd_ns);
        columns.p95_ns.push(self.p95_ns);
        columns.p99_ns.push(self.p99_ns);
    }
}
