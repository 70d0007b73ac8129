//! Waiting for the cells of a trial, and what it means when one fails.

use std::ops::Range;

use probe::control::State;
use probe::{Barrier, BarrierError};
use record::trial::TrialRecord;

use super::members::{Ended, Members};
use crate::context::{INTERRUPTED, Trial};
use crate::load::{self, Running};
use crate::turns::PlannedTurns;
use crate::watch::Watch;

pub(super) fn load_failure(record: &TrialRecord) -> Option<String> {
    (record.loads.iter())
        .find_map(|load| Some(format!("load {}: {}", load.name, load.failure.as_ref()?)))
}

pub(super) fn first_failure(record: &TrialRecord) -> Option<String> {
    (record.cells.iter()).find_map(|cell| Some(format!("{}: {}", cell.id, cell.failure.as_ref()?)))
}

/// Waits on the barrier until what is waited for has come or the trial cannot go on.
pub(super) fn wait(
    trial: &Trial<'_>,
    barrier: &Barrier,
    watch: &Watch,
    record: &mut TrialRecord,
    live: &mut Members,
    mut waiting: impl FnMut(&mut dyn FnMut() -> bool) -> Result<(), BarrierError>,
) -> Result<(), Ended> {
    loop {
        let result = wait_once(trial, barrier, watch, record, live, &mut waiting);
        let given_up = mind_failures(trial, barrier, record, live)?;
        if let Some(failure) = load_failure(record) {
            return Err(Ended::Failed(failure));
        }
        match result {
            Ok(()) => return Ok(()),
            // Those that died are not waited for any more; the others still are.
            Err(BarrierError::Stopped) if given_up && !trial.interrupt.came() => {}
            Err(BarrierError::Stopped) => return Err(Ended::Failed(INTERRUPTED.to_owned())),
            Err(late) => return Err(Ended::Failed(late.to_string())),
        }
    }
}

/// What failures of cells mean: the end of the trial, or where trials take turns the end of those that the cells belong
/// to, as long as there is another. Answers whether cells were given up now.
pub(super) fn mind_failures(
    trial: &Trial<'_>,
    barrier: &Barrier,
    record: &mut TrialRecord,
    live: &mut Members,
) -> Result<bool, Ended> {
    let Some(failure) = first_failure(record) else {
        return Ok(false);
    };
    let failed = |cells: &Range<usize>| {
        let mut cells = record.cells[cells.clone()].iter();
        cells.find_map(|cell| Some(format!("{}: {}", cell.id, cell.failure.as_ref()?)))
    };
    let arms: Vec<(Range<usize>, Option<String>)> = (trial.planned.turns.iter())
        .flat_map(PlannedTurns::cells)
        .map(|cells| (cells.clone(), failed(&cells)))
        .collect();
    if arms.iter().all(|(_, failure)| failure.is_some()) {
        return Err(Ended::Failed(failure));
    }
    let mut given_up = false;
    for (cells, failure) in arms {
        let Some(failure) = failure else { continue };
        for index in cells {
            let cell = &mut record.cells[index];
            cell.failure
                .get_or_insert_with(|| format!("given up with {failure}"));
            if let Some(mut gone) = live.cells.get_mut(index).and_then(Option::take) {
                given_up = true;
                if let Err(error) = gone.cell.remove() {
                    cell.notes.push(format!("it could not be removed: {error}"));
                }
            }
            barrier.give_up(index);
        }
    }
    Ok(given_up)
}

/// Waits once, and turns what went wrong into sentences of the cells and loads.
fn wait_once(
    trial: &Trial<'_>,
    barrier: &Barrier,
    watch: &Watch,
    record: &mut TrialRecord,
    live: &Members,
    waiting: &mut impl FnMut(&mut dyn FnMut() -> bool) -> Result<(), BarrierError>,
) -> Result<(), BarrierError> {
    let cells = record.cells.len();
    let ended_early = || -> Vec<usize> {
        (watch.dead().into_iter())
            // Behind the cells come the loads, which never end by themselves.
            .filter(|index| {
                let waiting = |seat: usize| barrier.state(seat) < State::Done;
                *index >= cells || trial.planned.sharing(*index).into_iter().any(waiting)
            })
            .collect()
    };
    let mut stop = || trial.interrupt.came() || !ended_early().is_empty();
    let result = waiting(&mut stop);
    let last_words = |index: usize| {
        let cell = live.cells.get(index).and_then(Option::as_ref);
        cell.map(|live| live.cell.log_tail().trim().to_owned())
            .unwrap_or_default()
    };
    for (index, cell) in record.cells.iter_mut().enumerate() {
        if cell.failure.is_none() {
            let failure = barrier.failure(index);
            cell.failure = failure.map(|why| load::with_words(&why, &last_words(index)));
        }
    }
    for index in ended_early() {
        if let Some(load) = index.checked_sub(cells) {
            let said = live.loads.get(load).map(Running::last_words);
            record.loads[load].failure.get_or_insert_with(|| {
                load::with_words(
                    "ended before the cells were done",
                    &said.unwrap_or_default(),
                )
            });
            continue;
        }
        record.cells[index].failure.get_or_insert_with(|| {
            load::with_words(
                "its process ended before its jobs were done",
                &last_words(index),
            )
        });
    }
    result
}
