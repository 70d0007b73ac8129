//! Under which conditions each cell ran: load, period, cpu, and whether the cpu was kept free; with the comparison
//! across that last one, and the counters that were read beside the cell.

use std::collections::BTreeMap;

use super::compare_rounds;
use super::source::Source;
use host::counters::Counter;
use model::{Keep, TrialPlan};
use record::RecordError;
use record::samples::Samples;
use record::summary::{CellSummary, CounterSummary, Metric, Per, PointSummary};
use record::trial::CellCounters;
use stats::{pearson, spearman};

/// One entry for each cell; none where all cells ran under the same conditions.
pub(super) fn study(
    source: &Source,
    cells: &[CellSummary],
    primary: Metric,
) -> Result<Vec<PointSummary>, RecordError> {
    let plan = &source.plan;
    let condition = |trial: &TrialPlan| {
        (
            trial.load_name(),
            plan.workload_of(trial).period,
            trial.isolate,
        )
    };
    let first = plan.trials.first().map(condition);
    let same = (plan.trials.iter()).all(|trial| Some(condition(trial)) == first);
    if same && !plan.counters.any() {
        return Ok(Vec::new());
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
            against_shared: None,
            counters: Vec::new(),
        });
    }
    if plan.keep != Keep::Samples {
        return Ok(points);
    }
    for at in 0..points.len() {
        points[at].against_shared = against_shared(source, cells, &points, at, primary)?;
        points[at].counters = counters(source, &points[at], primary)?;
    }
    Ok(points)
}

fn against_shared(
    source: &Source,
    cells: &[CellSummary],
    points: &[PointSummary],
    at: usize,
    primary: Metric,
) -> Result<Option<stats::Comparison>, RecordError> {
    let point = &points[at];
    let shared = points.iter().find(|other| {
        !other.isolated
            && (other.cpu, &other.load, other.period_ns)
                == (point.cpu, &point.load, point.period_ns)
            && cells[other.index].engine == cells[point.index].engine
    });
    let (true, Some(shared)) = (point.isolated, shared) else {
        return Ok(None);
    };
    let before = source.rounds(&shared.trial, &shared.cell, primary)?;
    let after = source.rounds(&point.trial, &point.cell, primary)?;
    Ok(compare_rounds(&before, &after).unwrap_or(None))
}

/// Over what a counter is taken and its name, then for each value the count and the metric in ns.
type Pairs = BTreeMap<(Per, String), Vec<(u64, i64)>>;

/// Each value of each counter of a cell over its good rounds, beside the metric: of a window its largest, of an
/// activation its own. A window without a job has no place.
pub(crate) fn pairs(
    source: &Source,
    trial: &str,
    id: &str,
    metric: Metric,
) -> Result<Pairs, RecordError> {
    let mut pairs = Pairs::new();
    for record in source.good(trial) {
        let Some(samples) = source.samples(record, id)? else {
            continue;
        };
        if let Some(counted) = record.counters.iter().find(|c| c.cell == id) {
            windows(counted, &samples, metric, &mut pairs);
        }
        activations(&samples, metric, &mut pairs);
    }
    Ok(pairs)
}

fn windows(counted: &CellCounters, samples: &Samples, metric: Metric, pairs: &mut Pairs) {
    let mut jobs = samples.samples.iter().peekable();
    for (place, ends) in counted.at_ns.windows(2).enumerate() {
        let mut worst = None;
        while let Some(job) = jobs.next_if(|job| job.start_ns < ends[1]) {
            if job.start_ns >= ends[0] {
                worst = worst.max(Some(metric.of(job)));
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
fn activations(samples: &Samples, metric: Metric, pairs: &mut Pairs) {
    if samples.counts.is_empty() {
        return;
    }
    let counters = samples.header.counters.into_iter().enumerate();
    for (at, code) in counters {
        let Some(counter) = Counter::from_code(code) else {
            continue;
        };
        let jobs = samples.samples.iter().zip(&samples.counts).skip(1);
        let of = (Per::Activation, counter.name().to_owned());
        pairs
            .entry(of)
            .or_default()
            .extend(jobs.map(|(job, row)| (row[at].into(), metric.of(job))));
    }
}

fn counters(
    source: &Source,
    point: &PointSummary,
    primary: Metric,
) -> Result<Vec<CounterSummary>, RecordError> {
    let pairs = pairs(source, &point.trial, &point.cell, primary)?;
    Ok(pairs
        .into_iter()
        .map(|((per, name), pairs)| {
            let (x, y): (Vec<f64>, Vec<f64>) = pairs
                .iter()
                .map(|&(count, value)| (count as f64, value as f64))
                .unzip();
            CounterSummary {
                name,
                per,
                windows: pairs.len() as u64,
                total: pairs.iter().map(|pair| pair.0).sum(),
                pearson: pearson(&x, &y),
                spearman: spearman(&x, &y),
            }
        })
        .collect())
}
