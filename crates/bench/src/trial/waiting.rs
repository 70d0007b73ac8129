//! Waiting for the cells of a trial, and the handling of failures.

use std::ops::Range;

use probe::BarrierError;
use record::trial::CellRecord;

use super::Going;
use crate::cells::{Cells, Ended, INTERRUPTED};
use crate::turns::PlannedTurns;

fn first_failure(cells: &[CellRecord]) -> Option<String> {
    (cells.iter()).find_map(|cell| Some(format!("{}: {}", cell.id, cell.failure.as_ref()?)))
}

impl Going<'_> {
    /// Waits at the barrier until `waiting` succeeds or the trial cannot go on.
    pub(super) fn wait(
        &mut self,
        mut waiting: impl FnMut(&Cells<'_>, &mut dyn FnMut() -> bool) -> Result<(), BarrierError>,
    ) -> Result<(), Ended> {
        loop {
            let cells = &self.cells;
            let result = waiting(cells, &mut || cells.is_over());
            for (slot, cell) in self.record.cells.iter_mut().enumerate() {
                if cell.failure.is_none() {
                    cell.failure = cells.failure(slot);
                }
            }
            let given_up = self.mind_failures()?;
            if let Some(failure) = self.cells.load_failure() {
                return Err(Ended::Failed(failure));
            }
            match result {
                Ok(()) => return Ok(()),
                // Waits no longer for those that died, but still for the others.
                Err(BarrierError::Stopped) if given_up && !self.cells.interrupted() => {}
                Err(BarrierError::Stopped) => return Err(Ended::Failed(INTERRUPTED.to_owned())),
                Err(late) => return Err(Ended::Failed(late.to_string())),
            }
        }
    }

    /// Handles failures of cells: ends the trial, or where trials take turns those that the cells belong to, as long as another is left.
    /// Returns whether cells were given up.
    pub(super) fn mind_failures(&mut self) -> Result<bool, Ended> {
        let cells = &mut self.record.cells;
        let Some(failure) = first_failure(cells) else {
            return Ok(false);
        };
        let arms: Vec<(Range<usize>, Option<String>)> = (self.trial.planned.turns.iter())
            .flat_map(PlannedTurns::cells)
            .map(|arm| (arm.clone(), first_failure(&cells[arm])))
            .collect();
        if arms.iter().all(|(_, failure)| failure.is_some()) {
            return Err(Ended::Failed(failure));
        }
        let mut given_up = false;
        for (arm, failure) in arms {
            let Some(failure) = failure else { continue };
            for index in arm {
                let cell = &mut cells[index];
                cell.failure
                    .get_or_insert_with(|| format!("given up with {failure}"));
                given_up |= self.cells.pid(index).is_some();
                let removed = self.cells.remove_one(index);
                let note = removed.map_err(|error| format!("it could not be removed: {error}"));
                cell.notes
                    .extend(note.err().filter(|note| !cell.notes.contains(note)));
                self.cells.barrier.give_up(index);
            }
        }
        Ok(given_up)
    }
}
