//! From the record of a scale study to numbers.

use super::point::{self, Rounds};
use super::sharing::{self, Asked};
use crate::jobs::Source;
use model::{EngineKind, Experiment, Pacing};
use record::RecordError;
use record::run::Run;
use record::scale::{GrowthOf, SCALE_SUMMARY_SCHEMA, ScaleEngine, ScalePoint, ScaleSummary};
use record::trial::INTERRUPTED;
use stats::{Closed, Growth};

/// Sums up a scale study. Reads the samples once, one cell at a time.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn scale_study(run: &Run) -> Result<ScaleSummary, RecordError> {
    let source = Source::open(run)?;
    let manifest = run.manifest()?;
    let plan = &source.plan;
    let mut points = Vec::new();
    let mut engines = Vec::new();
    for engine in engines_of(plan) {
        let trials = plan
            .trials
            .iter()
            .filter(|t| t.cells.first() == Some(&engine));
        let mut asked: Option<Asked> = None;
        let first = points.len();
        for trial in trials {
            let Some((mut point, rounds)) = point::study(&source, trial)? else {
                continue;
            };
            asked = asked.or_else(|| alone(plan, &rounds));
            point.sharing = asked
                .filter(|_| shares_by_cpu(plan))
                .and_then(|asked| point::predict(&rounds, asked));
            points.push(point);
        }
        engines.push(of_engine(engine, plan, &points[first..], asked));
    }
    let absent = crate::jobs::not_measured(&source, &manifest)?;
    Ok(ScaleSummary {
        schema: SCALE_SUMMARY_SCHEMA,
        run: run.name(),
        experiment: plan.name.clone(),
        real_time: points.iter().filter(|p| p.rounds > 0).all(|p| p.real_time),
        not_measured: absent.clone(),
        // The reason why an engine is not measured is given once.
        unmet: (manifest.requirements.iter())
            .filter(|need| !need.met && absent.iter().all(|n| n.reason != need.reason))
            .cloned()
            .collect(),
        failures: failures(&source, &points, manifest.failure.as_deref()),
        remarks: manifest.remarks,
        engines,
        points,
    })
}

/// Engines in the order of the experiment.
fn engines_of(plan: &Experiment) -> Vec<EngineKind> {
    let mut engines = Vec::new();
    for engine in plan.trials.iter().filter_map(|trial| trial.cells.first()) {
        if !engines.contains(engine) {
            engines.push(*engine);
        }
    }
    engines
}

/// Whether the cells of a cpu form a system that idles only if no job waits: on a grid of releases jobs do not wait for the previous one,
/// and a reservation holds a cell back while its cpu is free.
fn shares_by_cpu(plan: &Experiment) -> bool {
    let reserve = plan.scale.as_ref().and_then(|scale| scale.reserve);
    plan.workload.pacing == Pacing::Relative && reserve.is_none()
}

/// A job's demand, from the smallest trial that has cells.
fn alone(plan: &Experiment, rounds: &Rounds) -> Option<Asked> {
    let demands: Vec<f64> = rounds
        .0
        .iter()
        .filter_map(|cells| sharing::demand(cells))
        .collect();
    (!demands.is_empty()).then(|| Asked {
        demand_alone_ns: demands.iter().sum::<f64>() / demands.len() as f64,
        think_ns: plan.workload.period.ns() as f64,
    })
}

fn of_engine(
    engine: EngineKind,
    plan: &Experiment,
    points: &[ScalePoint],
    asked: Option<Asked>,
) -> ScaleEngine {
    let limit = plan.scale.as_ref().map_or(0, |scale| scale.failure_limit);
    let within = |point: &&ScalePoint| {
        let allowed = u64::from(point.count) * u64::from(point.rounds.max(1)) * u64::from(limit);
        // With as many a guard stopped them. Something also gives out where allowed failures occur and a signal ends the trial.
        let stopped = point.crowds.iter().any(|crowd| crowd.gave_out.is_some());
        let stopped = stopped && point.cut_off.iter().any(|why| why != INTERRUPTED);
        point.rounds > 0 && !stopped && u64::from(point.failed_cells) * 1_000 <= allowed
    };
    let cpus = points
        .iter()
        .map(|point| point.cpus.len())
        .max()
        .unwrap_or(0) as f64;
    let saturation = asked
        .filter(|_| shares_by_cpu(plan))
        .and_then(|asked| Closed::new(asked.demand_alone_ns, asked.think_ns, 1))
        .map(|closed| closed.saturation() * cpus);
    ScaleEngine {
        engine,
        largest: points.iter().filter(within).map(|point| point.count).max(),
        saturation,
        growth: growth(points),
    }
}

/// How the figures that a reader asks for grow.
fn growth(points: &[ScalePoint]) -> Vec<GrowthOf> {
    type Value = fn(&ScalePoint) -> Option<f64>;
    let figures: [(&str, Value); 6] = [
        ("mean response time", mean_response),
        ("p99 of the response time", |p| {
            Some(p.response.as_ref()?.p99.as_ref()?.median_ns as f64)
        }),
        ("mean execution time", |p| {
            Some(p.execution.as_ref()?.spread.mean)
        }),
        ("p99 of the execution time", |p| {
            Some(p.execution.as_ref()?.p99.as_ref()?.median_ns as f64)
        }),
        ("sd of the execution time", |p| {
            Some(p.execution.as_ref()?.sd.as_ref()?.median_ns as f64)
        }),
        ("start skew", |p| median_of(&p.skew_ns)),
    ];
    let mut all = Vec::new();
    for (what, value) in figures {
        // Zero has no relative distance from a line.
        let places: Vec<(u32, f64)> = (points.iter())
            .filter_map(|p| Some((p.count, value(p)?)))
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        let counts = || places.iter().map(|(count, _)| *count);
        let xy: Vec<(f64, f64)> = places.iter().map(|&(n, ns)| (f64::from(n), ns)).collect();
        let growth = Growth::of(&xy);
        if let (false, Some(least), Some(most)) =
            (growth == Growth::TooFew, counts().min(), counts().max())
        {
            all.push(GrowthOf {
                what: what.to_owned(),
                cells: (least, most),
                growth,
            });
        }
    }
    all
}

/// Over the jobs of the window where there is one, else over all cells, ns.
pub fn mean_response(point: &ScalePoint) -> Option<f64> {
    let all = point.response.as_ref().map(|between| between.spread.mean);
    point.sharing.map(|sharing| sharing.response_ns).or(all)
}

/// The median over rounds.
pub fn median_of(values: &[u64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    let middle = values.len().checked_sub(1)? / 2;
    Some(values[middle] as f64)
}

/// The failures; a reason that many cells share is listed once.
fn failures(source: &Source, points: &[ScalePoint], ended: Option<&str>) -> Vec<String> {
    let mut sentences: Vec<String> = ended
        .map(|why| format!("the run: {why}"))
        .into_iter()
        .collect();
    for record in &source.trials {
        if let Some(failure) = &record.failure {
            sentences.push(format!(
                "{}, round {}: {failure}",
                record.name, record.round
            ));
        }
        let mut reasons: Vec<(&str, u32)> = Vec::new();
        for failure in record
            .cells
            .iter()
            .filter_map(|cell| cell.failure.as_deref())
        {
            match reasons.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, times)) => *times += 1,
                None => reasons.push((failure, 1)),
            }
        }
        const TOLD: usize = 3;
        let more: u32 = reasons.iter().skip(TOLD).map(|(_, times)| times).sum();
        for (failure, times) in reasons.iter().take(TOLD) {
            let cells = text::words::plural((*times).into(), "cell");
            sentences.push(format!(
                "{}, round {}, {cells}: {failure}",
                record.name, record.round
            ));
        }
        if more > 0 {
            let cells = text::words::plural(more.into(), "cell");
            sentences.push(format!(
                "{}, round {}, {cells} for other reasons",
                record.name, record.round
            ));
        }
    }
    for point in points.iter().filter(|point| point.not_reached > 0) {
        sentences.push(format!(
            "{}: {} of {} not reached: the trial was cut off ({})",
            point.trial,
            text::words::count(point.not_reached),
            text::words::plural(point.planned, "activation"),
            point.cut_off.join("; ")
        ));
    }
    for point in points.iter().filter(|point| point.unexplained > 0) {
        let lost = text::words::plural(point.unexplained, "activation");
        sentences.push(format!(
            "{}: {lost} neither ran nor were counted as skipped, in cells that ended normally",
            point.trial
        ));
    }
    sentences
}
