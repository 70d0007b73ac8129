//! One cell of one trial over all rounds.

use super::deadlines::Deadlines;
use super::pass::CellSamples;
use super::source::{self, Rounds, Source};
use model::{Experiment, Pacing, TrialPlan, Work, Workload};
use record::samples::Header;
use record::summary::{CellSummary, Metric, MetricSummary, TaskSummary};
use record::trial::{CellRecord, TaskRecord, TrialRecord};
use stats::{Sorted, Summary, autocorrelation, ccdf, median_of};

/// The name in tables: the trial's when it has one cell, else `trial/cell`, by its own name if it has one.
pub(super) fn label(trial: &TrialPlan, id: &str) -> String {
    if trial.cells.len() == 1 {
        return trial.name.clone();
    }
    let own = trial.place_of(id).and_then(|place| trial.own.get(place));
    let name = own.and_then(|own| own.name.as_deref()).unwrap_or(id);
    format!("{}/{name}", trial.name)
}

/// A cell's task, where cells of its trial have tasks of their own.
pub(super) fn does(plan: &Experiment, trial: &TrialPlan, id: &str) -> Option<String> {
    let place = trial.place_of(id)?;
    let own = trial.own.get(place)?;
    let task = plan.task_of(trial, place);
    Some(crate::plan::task(&task, own.priority))
}

/// Whether each job of this work is one execution of a program.
pub(super) fn executions(work: &Workload) -> bool {
    let program = work.program.as_ref();
    work.work == Work::Program && program.is_some_and(|program| !program.reports())
}

/// Sums up one cell except for its comparisons and metrics; `primary` is its first metric by rounds.
pub(super) fn study(
    source: &Source,
    trial: &TrialPlan,
    id: &str,
    samples: &CellSamples,
    primary: &Rounds,
) -> CellSummary {
    let records = source.records(&trial.name);
    let cells: Vec<&CellRecord> = records.iter().filter_map(|r| source::cell(r, id)).collect();

    let task = cells.iter().find_map(|cell| cell.task.as_ref());
    let own = source.task_of(trial, id);
    let jobs = task.map_or(own.jobs, |task| task.jobs);
    let jobs = jobs.into();
    let paced = (own.pacing == Pacing::Periodic).then(|| own.period.ns());
    let (deadline_ns, period_ns) = match task {
        Some(task) => (Some(task.deadline_ns), Some(task.period_ns)),
        None => (own.deadline_ns(), paced),
    };
    let mut deadlines = Deadlines::default();
    let mut counts = Counts::default();
    let mut headers = Vec::new();
    for record in records.iter().filter(|r| source::cell(r, id).is_some()) {
        let part = samples.of(record.number);
        let (planned, skipped) = (counts.planned, counts.skipped);
        counts.add(record, part.map(|part| &part.header), jobs);
        let late = deadline_ns.map(|deadline| {
            let responses = part
                .into_iter()
                .flat_map(|part| part.jobs.values(Metric::ResponseTime));
            responses.filter(|&response| response > deadline).count() as u64
        });
        let (planned, skipped) = (counts.planned - planned, counts.skipped - skipped);
        deadlines.add(record.round, planned, late, skipped);
        headers.extend(
            part.filter(|_| source::is_good(record))
                .map(|part| part.header),
        );
    }
    let cautions = cells.iter().map(|cell| cell.caution());
    let caution = cautions.max().unwrap_or_default();
    let notes = notes(&cells, &headers);
    let rounds = primary.len() as u32;
    let task = task.map(|task| task_summary(task, &cells, primary));
    let executed: u64 = headers.iter().map(|h| h.count).sum();
    let cpu_time: u128 = headers.iter().map(|h| u128::from(h.cpu_time_ns)).sum();
    let created: Vec<i64> = cells.iter().filter_map(|cell| cell.create_ns).collect();
    CellSummary {
        trial: trial.name.clone(),
        cell: id.to_owned(),
        label: task.as_ref().map_or_else(
            || label(trial, id) + caution,
            |task| {
                let same = |cell: &&CellRecord| {
                    cell.task
                        .as_ref()
                        .is_some_and(|other| other.name == task.name)
                };
                let twins = records
                    .first()
                    .map_or(0, |r| r.cells.iter().filter(same).count());
                if twins > 1 {
                    format!("{}/{}.{}{caution}", trial.name, task.cell, task.name)
                } else {
                    format!("{}/{}{caution}", trial.name, task.name)
                }
            },
        ),
        task,
        engine: cells.first().map_or(trial.cells[0], |cell| cell.engine),
        rounds,
        class: classes(&cells),
        real_time: cells.iter().all(|cell| cell.real_time),
        cpus: distinct(cells.iter().map(|cell| cell.cpu)),
        planned: counts.planned,
        executed: counts.executed,
        skipped: counts.skipped,
        late: deadlines.late().filter(|_| deadline_ns.is_some()),
        late_share: deadlines.late_share().filter(|_| deadline_ns.is_some()),
        skipped_share: deadlines.skipped_share(),
        deadline_ns,
        period_ns,
        unexplained: counts.unexplained,
        metrics: Vec::new(),
        against_baseline: None,
        in_turns: Vec::new(),
        does: does(&source.plan, trial, id),
        executions: executions(&own),
        create_median_ns: median_of(&created),
        cpu_time_per_activation_ns: (executed > 0).then(|| cpu_time as f64 / executed as f64),
        cpu_per_second_ns: (own.work == Work::Endless && executed > 0)
            .then(|| cpu_time as f64 * 1e9 / (executed as f64 * own.period.ns() as f64)),
        clock_cost_ns: median_cost(&headers, |h| h.clock_cost_ns),
        loop_cost_ns: median_cost(&headers, |h| h.loop_cost_ns),
        faults: headers.iter().map(faults).fold(0, u64::saturating_add),
        notes,
        lost: 0,
        histograms: None,
    }
}

/// A note if an endless program did not end when it was asked to.
pub(super) fn outlived(cell: &CellSummary) -> Option<String> {
    let exits = cell.metrics.iter().find(|m| m.metric == Metric::ExitTime)?;
    (exits.summary.max_ns >= PATIENCE_NS)
        .then(|| "it had not ended within 2 s of SIGTERM, and was killed".to_owned())
}

/// Time that an endless program has to end, ns.
const PATIENCE_NS: i64 = 2_000_000_000;

/// Points kept of a task's distribution.
const CCDF_POINTS: usize = 120;

/// The task without its bound, which is added elsewhere; the primary metric of a task set is the response time.
fn task_summary(task: &TaskRecord, cells: &[&CellRecord], responses: &Rounds) -> TaskSummary {
    let late = |ns: &&i64| **ns > task.deadline_ns;
    TaskSummary {
        name: task.name.clone(),
        cell: task.cell.clone(),
        competes: task.competes,
        wcet_ns: task.wcet_ns,
        period_ns: task.period_ns,
        deadline_ns: task.deadline_ns,
        bound_ns: None,
        held: None,
        response_ccdf: ccdf(
            &Sorted::new(responses.values().flatten().copied().collect()),
            CCDF_POINTS,
        ),
        late: responses.values().flatten().filter(late).count() as u64,
        step_ps: (cells.iter())
            .filter_map(|cell| Some(cell.task.as_ref()?.calibration?.step_ps))
            .collect(),
    }
}

/// Activations of a cell over all its trials, failed ones included.
#[derive(Default)]
struct Counts {
    planned: u64,
    executed: u64,
    skipped: u64,
    unexplained: u64,
}

impl Counts {
    fn add(&mut self, record: &TrialRecord, header: Option<&Header>, asked: u64) {
        if let Some(header) = header {
            let unexplained = match record.cut_off {
                // The trial that continues it plans the rest again.
                Some(_) => 0,
                None => header.unexplained(),
            };
            self.planned += header.count + header.skipped + unexplained;
            self.executed += header.count;
            self.skipped += header.skipped;
            self.unexplained += unexplained;
        } else if record.go_ns.is_some() && record.cut_off.is_none() {
            // The barrier opened and nothing came back: every requested activation is lost.
            self.planned += asked;
            self.unexplained += asked;
        }
    }
}

/// One metric, and all its values in order.
pub(super) fn metric_summary(metric: Metric, rounds: &Rounds) -> Option<(MetricSummary, Sorted)> {
    let round_medians_ns = rounds.values().filter_map(|values| median_of(values));
    let round_medians_ns = round_medians_ns.collect();
    let full = || rounds.values().filter(|values| !values.is_empty());
    let mean = |values: &Vec<i64>| {
        let sum: i128 = values.iter().map(|&value| i128::from(value)).sum();
        sum as f64 / values.len() as f64
    };
    let round_means_ns = full().map(mean).collect();
    let round_maxima_ns = full()
        .filter_map(|values| values.iter().max().copied())
        .collect();
    let lags: Vec<f64> = rounds
        .values()
        .filter_map(|values| autocorrelation(values, 1))
        .collect();
    // The mean over rounds, so that drift between rounds does not pass for correlation of jobs.
    let lag1_autocorrelation =
        (!lags.is_empty()).then(|| lags.iter().sum::<f64>() / lags.len() as f64);
    let mut all = Vec::with_capacity(rounds.values().map(Vec::len).sum());
    all.extend(rounds.values().flatten());
    let pooled = Sorted::new(all);
    let summary = MetricSummary {
        metric,
        summary: Summary::of(&pooled)?,
        round_medians_ns,
        round_means_ns,
        round_maxima_ns,
        lag1_autocorrelation,
    };
    Some((summary, pooled))
}

pub(super) fn notes(cells: &[&CellRecord], headers: &[Header]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in cells.iter().flat_map(|cell| &cell.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let total = headers.iter().map(faults).fold(0, u64::saturating_add);
    if total > 0 {
        let major = headers
            .iter()
            .map(|h| h.major_faults)
            .fold(0, u64::saturating_add);
        notes.push(format!(
            "{} in the measuring loop, {} of them from disk: not all memory was locked",
            text::words::plural(total, "page fault"),
            text::words::count(major)
        ));
    }
    notes.extend(out_of_band(headers));
    notes
}

/// The switches in band of a task that ran out of band: each is a fault of the task or its cell.
pub(crate) fn out_of_band(headers: &[Header]) -> Option<String> {
    let level = headers.iter().map(|header| header.evl_level).max()?;
    if level == 0 {
        return None;
    }
    let sum = |count: fn(&Header) -> u32| {
        headers
            .iter()
            .map(|header| u64::from(count(header)))
            .sum::<u64>()
    };
    let total = sum(|header| header.in_band_switches);
    let causes: [u64; 4] = std::array::from_fn(|cause| {
        (headers.iter())
            .map(|header| u64::from(header.in_band_causes[cause]))
            .sum()
    });
    let by: Vec<String> = (causes
        .iter()
        .zip(["signal", "system call", "fault", "watchdog"]))
    .filter(|(count, _)| **count > 0)
    .map(|(count, cause)| text::words::plural(*count, cause))
    .collect();
    let told = match (total, by.is_empty()) {
        (0, _) => "never in band in the measuring loop".to_owned(),
        (_, true) => format!(
            "in band {} in the measuring loop, for unknown causes",
            text::words::plural(total, "time")
        ),
        (_, false) => format!(
            "in band {} in the measuring loop: {}",
            text::words::plural(total, "time"),
            by.join(", ")
        ),
    };
    Some(format!("out of band by EVL (ABI {level}), {told}"))
}

pub(super) fn faults(header: &Header) -> u64 {
    header.minor_faults.saturating_add(header.major_faults)
}

pub(super) fn classes(cells: &[&CellRecord]) -> String {
    let got = cells.iter().filter_map(|cell| cell.class_got.as_deref());
    let got = distinct(got);
    if got.is_empty() {
        "unknown".to_owned()
    } else {
        got.join(", ")
    }
}

pub(super) fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let set: std::collections::BTreeSet<T> = values.into_iter().collect();
    set.into_iter().collect()
}

pub(super) fn median_cost(headers: &[Header], cost: impl Fn(&Header) -> u64) -> u64 {
    let costs = headers
        .iter()
        .map(|header| i64::try_from(cost(header)).unwrap_or(i64::MAX));
    let costs: Vec<i64> = costs.collect();
    median_of(&costs).map_or(0, i64::unsigned_abs)
}
