//! One number of cells of one engine, over its rounds.

use super::cell::{Cell, Part, Stats};
use super::sharing::{self, Asked};
use crate::jobs::{Source, out_of_band};
use model::TrialPlan;
use record::RecordError;
use record::samples::Header;
use record::scale::{Between, CellsOfCpu, ScalePoint, Sharing};
use record::trial::{CellRecord, TrialRecord};
use stats::{BoxPlot, Fairness, Sorted, Spread};
use std::collections::BTreeMap;

/// Jobs kept of one trial for its window: 16 bytes each.
const KEPT: usize = 2_000_000;
/// Outliers of a box that are drawn.
const OUTLIERS: usize = 40;

/// Rounds whose cells are in the figures, each with its cells.
pub(super) struct Rounds(pub Vec<Vec<Cell>>);

/// The point without its prediction, and its cells. Reads the samples, one cell at a time.
pub(super) fn study(
    source: &Source,
    plan: &TrialPlan,
) -> Result<Option<(ScalePoint, Rounds)>, RecordError> {
    let records = source.records(&plan.name);
    let Some(first) = records.first() else {
        return Ok(None);
    };
    let mut point = empty(plan, &records, first);
    let (mut rounds, mut attached) = (Vec::new(), Vec::new());
    let mut of_round = BTreeMap::<u32, Vec<&TrialRecord>>::new();
    for record in &records {
        of_round.entry(record.round).or_default().push(record);
    }
    for trials in of_round.values() {
        let cells = one_round(&mut point, &mut attached, source, trials)?;
        if cells.is_empty() {
            continue;
        }
        skews(&mut point, trials, &cells);
        if !point.pinned && rounds.is_empty() {
            point.cpus = spread(cells.iter().map(|cell| cell.cpu));
        }
        rounds.push(cells);
    }
    point.rounds = rounds.len() as u32;
    point.out_of_band = out_of_band(&attached);
    let failure = records.iter().find_map(|record| record.failure.clone());
    point.failure = failure.filter(|_| rounds.is_empty());
    for cell in rounds.iter().flatten() {
        cell.add_to(&mut point.cells);
    }
    point.execution = between(&rounds, |cell| &cell.execution);
    point.response = between(&rounds, |cell| &cell.response);
    Ok(Some((point, Rounds(rounds))))
}

/// The cells of a round; `attached` gets the headers of those that ran out of band. Where it was cut off and the run was resumed, several trials make up the round, and each cell has its jobs of all.
fn one_round(
    point: &mut ScalePoint,
    attached: &mut Vec<Header>,
    source: &Source,
    trials: &[&TrialRecord],
) -> Result<Vec<Cell>, RecordError> {
    let made_up_for =
        |record: &TrialRecord| (trials.iter()).any(|other| other.continues == Some(record.number));
    for record in trials.iter().filter(|record| !made_up_for(record)) {
        point.crowds.extend(record.crowd.clone());
        if let Some(why) = (record.cut_off.as_ref()).filter(|why| !point.cut_off.contains(why)) {
            point.cut_off.push(why.clone());
        }
    }
    let mut cells = Vec::new();
    let places = trials.iter().map(|record| record.cells.len()).max();
    for place in 0..places.unwrap_or(0) {
        let of_place = || {
            trials
                .iter()
                .filter_map(|&t| Some((t, t.cells.get(place)?)))
        };
        let mut parts = Vec::new();
        for (trial, cell) in of_place() {
            let samples = source.samples(trial, &cell.id)?;
            count(point, trial, cell, samples.as_ref(), made_up_for(trial));
            let header = samples.as_ref().map(|samples| samples.header);
            attached.extend(header.filter(|header| header.evl_level > 0));
            if let Some(samples) = samples.filter(|_| in_numbers(trial, cell)) {
                parts.push(Part {
                    trial,
                    cell,
                    samples,
                });
            }
        }
        point.failed_cells += u32::from(of_place().any(|(_, cell)| cell.failure.is_some()));
        let room = (KEPT / places.unwrap_or(1)).max(64);
        cells.extend(Cell::of(place as u32 + 1, &parts, room));
    }
    Ok(cells)
}

/// The mean of the rounds' predictions.
pub(super) fn predict(rounds: &Rounds, asked: Asked) -> Option<Sharing> {
    let all: Vec<Sharing> = rounds
        .0
        .iter()
        .filter_map(|cells| sharing::study(cells, asked))
        .collect();
    let count = all.len() as f64;
    let mean = |of: &dyn Fn(&Sharing) -> f64| all.iter().map(of).sum::<f64>() / count;
    Some(Sharing {
        demand_ns: mean(&|s| s.demand_ns),
        window_ns: mean(&|s| s.window_ns as f64) as i64,
        jobs_in_window: mean(&|s| s.jobs_in_window),
        response_ns: mean(&|s| s.response_ns),
        utilization: mean(&|s| s.utilization),
        // The prediction follows from the cells of each cpu, which are the same in every round except for failures.
        ..*all.first()?
    })
}

fn empty(plan: &TrialPlan, records: &[&TrialRecord], first: &TrialRecord) -> ScalePoint {
    let cells = || records.iter().flat_map(|record| &record.cells);
    let got: std::collections::BTreeSet<&str> = cells()
        .filter_map(|cell| cell.class_got.as_deref())
        .collect();
    let armed = first.cells.iter().filter(|cell| cell.started_ns.is_some());
    let measured = || cells().filter(|cell| cell.started_ns.is_some());
    ScalePoint {
        trial: plan.name.clone(),
        engine: plan.cells[0],
        count: plan.cells.len() as u32,
        rounds: 0,
        class: if got.is_empty() {
            "unknown".to_owned()
        } else {
            got.into_iter().collect::<Vec<_>>().join(", ")
        },
        real_time: measured().next().is_some() && measured().all(|cell| cell.real_time),
        pinned: first.cells.iter().all(|cell| cell.cpus.is_empty()),
        cpus: spread(armed.map(|cell| cell.cpu)),
        planned: 0,
        executed: 0,
        skipped: 0,
        lost_with_cells: 0,
        unexplained: 0,
        not_reached: 0,
        cut_off: Vec::new(),
        out_of_band: None,
        failed_cells: 0,
        cells: record::scale::CellColumns::default(),
        execution: None,
        response: None,
        sharing: None,
        skew_ns: Vec::new(),
        first_of_cpu_skew_ns: Vec::new(),
        crowds: Vec::new(),
        failure: None,
    }
}

fn spread(cpus: impl Iterator<Item = u32>) -> Vec<CellsOfCpu> {
    let mut of_cpu = BTreeMap::<u32, u32>::new();
    for cpu in cpus {
        *of_cpu.entry(cpu).or_default() += 1;
    }
    (of_cpu.into_iter())
        .map(|(cpu, cells)| CellsOfCpu { cpu, cells })
        .collect()
}

/// A failed cell is a fact of its own; the others of its trial still count.
fn in_numbers(record: &TrialRecord, cell: &CellRecord) -> bool {
    record.failure.is_none() && cell.failure.is_none()
}

fn count(
    point: &mut ScalePoint,
    record: &TrialRecord,
    cell: &CellRecord,
    samples: Option<&record::samples::Samples>,
    made_up_for: bool,
) {
    let Some(samples) = samples else {
        // The barrier opened for it and nothing came back.
        if record.go_ns.is_some() && cell.failure.is_none() && record.cut_off.is_none() {
            point.unexplained += 1;
        }
        return;
    };
    let rest = samples.unexplained();
    point.executed += samples.header.count;
    point.skipped += samples.header.skipped;
    point.planned += samples.header.count + samples.header.skipped;
    match in_numbers(record, cell) {
        // They are planned again by the trial that continues this one, also those of a cell that failed.
        _ if record.cut_off.is_some() && made_up_for => return,
        false => point.lost_with_cells += rest,
        // They were not done because the trial was ended, not because the cell lost them.
        true if record.cut_off.is_some() => point.not_reached += rest,
        true => point.unexplained += rest,
    }
    point.planned += rest;
}

/// How far apart the cells started, once for each round: when it was first released.
fn skews(point: &mut ScalePoint, trials: &[&TrialRecord], cells: &[Cell]) {
    let started = |record: &TrialRecord| {
        let mut good = record.cells.iter().filter(|cell| in_numbers(record, cell));
        good.any(|cell| cell.started_ns.is_some())
    };
    let Some(record) = trials.iter().find(|record| started(record)) else {
        return;
    };
    let good = record.cells.iter().filter(|cell| in_numbers(record, cell));
    let starts: Vec<i64> = good.filter_map(|cell| cell.started_ns).collect();
    let mut first_of_cpu = BTreeMap::<u32, i64>::new();
    for cell in cells {
        if let Some(start) = cell.start_ns {
            let first = first_of_cpu.entry(cell.cpu).or_insert(start);
            *first = start.min(*first);
        }
    }
    if starts.len() > 1 {
        point.skew_ns.extend(stats::skew_ns(&starts));
    }
    if first_of_cpu.len() > 1 {
        let firsts: Vec<i64> = first_of_cpu.into_values().collect();
        point.first_of_cpu_skew_ns.extend(stats::skew_ns(&firsts));
    }
}

fn between(rounds: &[Vec<Cell>], stats: impl Fn(&Cell) -> &Stats) -> Option<Between> {
    let cells = || rounds.iter().flatten();
    let plot = |value: &dyn Fn(&Stats) -> Option<i64>| {
        let values: Vec<i64> = cells().filter_map(|cell| value(stats(cell))).collect();
        BoxPlot::of(&Sorted::new(values), OUTLIERS)
    };
    let means: Vec<f64> = cells().map(|cell| stats(cell).mean_ns as f64).collect();
    // Cells of one round that share a cpu, or all cpus, are comparable; rounds differ for other reasons.
    let mut groups = Vec::new();
    for round in rounds {
        let mut of_cpu = BTreeMap::<Option<u32>, Vec<_>>::new();
        for cell in round {
            if let Some(batches) = stats(cell).batches {
                let own = cell.pinned.then_some(cell.cpu);
                of_cpu.entry(own).or_default().push(batches);
            }
        }
        groups.extend(of_cpu.into_values());
    }
    Some(Between {
        mean: plot(&|stats| Some(stats.mean_ns))?,
        sd: plot(&|stats| stats.sd_ns),
        p95: plot(&|stats| stats.p95_ns),
        p99: plot(&|stats| stats.p99_ns),
        spread: Spread::of(&means)?,
        fairness: Fairness::of(&groups),
    })
}
