//! The conditions of each cell: load, period, cpu, and whether the cpu was kept free; the comparison of cpus kept free and shared; the
//! counters read beside the cell.

use std::collections::BTreeMap;

use super::compare_rounds;
use super::pass::{CellSamples, Kept, Part};
use super::source::Source;
use host::counters::Counter;
use model::{Experiment, TrialPlan};
use record::summary::{CellSummary, CounterSummary, Metric, Per, PointSummary};
use record::trial::CellCounters;
use stats::{pearson, spearman};

/// Whether trials differ in their conditions, or something is counted beside them.
pub(super) fn vary(plan: &Experiment) -> bool {
    let condition = |trial: &TrialPlan| {
        (
            trial.load_name(),
            plan.workload_of(trial).period,
            trial.isolate,
        )
    };
    let first = plan.trials.first().map(condition);
    let same = (plan.trials.iter()).all(|trial| Some(condition(trial)) == first);
    !same || plan.counters.any()
}

/// One entry for each cell; none where all cells ran under the same conditions.
pub(super) fn study(source: &Source, cells: &[CellSummary]) -> Vec<PointSummary> {
    let plan = &source.plan;
    if !vary(plan) {
        return Vec::new();
    }
    let mut points: Vec<PointSummary> = Vec::with_capacity(cells.len());
    for (index, cell) in cells.iter().enumerate() {
        let Some(trial) = plan.trial(&cell.trial) else {
            continue;
        };
        points.push(PointSummary {
            trial: cell.trial.clone(),
            cell: cell.cell.clone(),
            index,
            cpu: cell.cpus.first().copied().unwrap_or(0),
            load: trial.load_name(),
            period_ns: source.task_of(trial, &cell.cell).period.ns(),
            isolated: trial.isolate,
            machine: cell.engine.is_machine().then(|| {
                let said = plan.machine_of(trial).said();
                format!("{}{said}{}", cell.engine, cell.caution())
            }),
            against_shared: None,
            counters: Vec::new(),
        });
    }
    points
}

/// Compares cells whose cpus were kept free with those of the same conditions whose cpus were not; `kept` has the primary metric.
pub(super) fn compare(points: &mut [PointSummary], cells: &[CellSummary], kept: &Kept) {
    for at in 0..points.len() {
        let point = &points[at];
        let shared = points.iter().find(|other| {
            !other.isolated
                && (other.cpu, &other.load, other.period_ns)
                    == (point.cpu, &point.load, point.period_ns)
                && cells[other.index].engine == cells[point.index].engine
        });
        let of = |point: &PointSummary| kept.of(&point.trial, [&point.cell]);
        if let (true, Some(shared)) = (point.isolated, shared) {
            let compared = compare_rounds(&of(shared), &of(point));
            points[at].against_shared = compared.unwrap_or(None);
        }
    }
}

/// The span of a counter, and its name; for each value the count and the metric in ns.
pub(super) type Pairs = BTreeMap<(Per, String), Vec<(u64, i64)>>;

/// Each value of each counter of a cell over its good rounds, beside the metric, one counter after the other: of a window its largest, of
/// an activation its own. A window without a job is left out.
pub(super) fn pairs(
    samples: &CellSamples,
    id: &str,
    metric: Metric,
    mut found: impl FnMut((Per, String), Vec<(u64, i64)>),
) {
    let mut over_windows = Pairs::new();
    let mut counted: Vec<Counter> = Vec::new();
    for part in samples.good() {
        if let Some(counted) = part.record.counters.iter().find(|c| c.cell == id) {
            windows(counted, part, metric, &mut over_windows);
        }
        let codes = part
            .header
            .counters
            .iter()
            .filter(|_| !part.counts.is_empty());
        for counter in codes.filter_map(|&code| Counter::from_code(code)) {
            if !counted.contains(&counter) {
                counted.push(counter);
            }
        }
    }
    for (of, pairs) in over_windows {
        found(of, pairs);
    }
    for counter in counted {
        let own = samples
            .good()
            .flat_map(|part| activations(part, counter, metric));
        found((Per::Activation, counter.name().to_owned()), own.collect());
    }
}

fn windows(counted: &CellCounters, part: &Part, metric: Metric, pairs: &mut Pairs) {
    let mut jobs = part.jobs.iter().peekable();
    for (place, ends) in counted.at_ns.windows(2).enumerate() {
        let mut worst = None;
        while let Some(job) = jobs.next_if(|job| job.start_ns < ends[1]) {
            if job.start_ns >= ends[0] {
                worst = worst.max(Some(job.of(metric)));
            }
        }
        let Some(worst) = worst else { continue };
        for (name, column) in counted.names.iter().zip(&counted.counts) {
            if let (Some(before), Some(after)) = (column.get(place), column.get(place + 1)) {
                let window = (after.saturating_sub(*before), worst);
                let name = (Per::Window, name.clone());
                pairs.entry(name).or_default().push(window);
            }
        }
    }
}

/// The first activation is left out: its counts began when the cell was armed.
fn activations(part: &Part, counter: Counter, metric: Metric) -> impl Iterator<Item = (u64, i64)> {
    let column = part
        .header
        .counters
        .iter()
        .position(|&code| code == counter.code());
    let jobs = part.jobs.values(metric).zip(&part.counts).skip(1);
    jobs.filter_map(move |(value, row)| Some((row[column?].into(), value)))
}

/// Sums up a counter of a cell.
pub(super) fn counter((per, name): &(Per, String), pairs: &[(u64, i64)]) -> CounterSummary {
    let (x, y): (Vec<f64>, Vec<f64>) = pairs
        .iter()
        .map(|&(count, value)| (count as f64, value as f64))
        .unzip();
    CounterSummary {
        name: name.clone(),
        per: *per,
        windows: pairs.len() as u64,
        total: pairs.iter().map(|pair| pair.0).sum(),
        pearson: pearson(&x, &y),
        spearman: spearman(&x, &y),
    }
}
