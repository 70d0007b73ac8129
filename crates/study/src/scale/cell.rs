//! One cell of one trial: its statistics, and a bounded number of its jobs for the window in which all cells ran.

use record::samples::Samples;
use record::scale::{CellColumns, StatColumns};
use record::trial::CellRecord;
use stats::{BatchMean, Sorted};

/// A job in the few numbers that the window needs.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub release_ns: i64,
    pub end_ns: i64,
}

/// What is kept of a cell's samples.
pub(super) struct Cell {
    pub number: u32,
    /// That it is pinned to, or began on.
    pub cpu: u32,
    pub pinned: bool,
    pub jobs: u64,
    pub start_ns: Option<i64>,
    pub execution: Stats,
    pub response: Stats,
    /// First release and last end, ns of CLOCK_MONOTONIC.
    pub ran: (i64, i64),
    /// Every `stride`-th job, in order.
    pub kept: Vec<Job>,
    pub stride: u64,
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
    pub fn of(
        number: u32,
        record: &CellRecord,
        go_ns: Option<i64>,
        samples: &Samples,
        room: usize,
    ) -> Option<Cell> {
        let jobs = &samples.samples;
        let (first, last) = (jobs.first()?, jobs.last()?);
        let stride = jobs.len().div_ceil(room.max(1));
        let kept = jobs.iter().step_by(stride).map(|job| Job {
            release_ns: job.release_ns,
            end_ns: job.end_ns,
        });
        Some(Cell {
            number,
            cpu: match record.cpus.is_empty() {
                true => record.cpu,
                false => samples.header.cpu_first,
            },
            pinned: record.cpus.is_empty(),
            jobs: jobs.len() as u64,
            start_ns: record
                .started_ns
                .zip(go_ns)
                .map(|(start, go)| start.saturating_sub(go)),
            execution: Stats::of(jobs.iter().map(|job| job.execution_time_ns()).collect())?,
            response: Stats::of(jobs.iter().map(|job| job.response_time_ns()).collect())?,
            ran: (first.release_ns, last.end_ns),
            kept: kept.collect(),
            stride: stride as u64,
            cpu_time_ns: samples.header.cpu_time_ns,
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
