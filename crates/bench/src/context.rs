//! The input and outcome of a trial.

use std::path::{Path, PathBuf};

use host::rtgroup::RtGroup;
use record::crowd::Reservation;
use record::run::Run;
use record::trial::{CellRecord, Part, TrialRecord};

use crate::load::Ground;
use crate::place::{Place, holds_cells};
use crate::session::Interrupt;
use crate::{Plan, PlannedTrial};

/// Everything one trial needs.
pub(crate) struct Trial<'a> {
    pub plan: &'a Plan,
    pub planned: &'a PlannedTrial,
    pub number: u32,
    pub round: u32,
    pub place: &'a Place,
    pub rootfs: &'a Path,
    pub ground: &'a Ground,
    pub rt_group: Option<&'a RtGroup>,
    /// The reservation of each cell, if any.
    pub reserved: Option<Reservation>,
    pub interrupt: &'a Interrupt,
    pub run: &'a Run,
    /// Activations of each cell.
    pub jobs: Vec<u32>,
    /// The trial whose remaining jobs these are.
    pub continues: Option<u32>,
    /// When the run should end, CLOCK_MONOTONIC ns.
    pub expected_end_ns: i64,
}

/// The outcome of a trial. The samples files are still in shared memory.
pub(crate) struct Outcome {
    pub record: TrialRecord,
    pub samples: Vec<(String, PathBuf)>,
    /// Whether its record was begun on the disk, where its histograms are.
    pub begun: bool,
    pub dir: PathBuf,
}

impl Outcome {
    /// The samples of a part, with the names that its cells have there.
    pub(crate) fn samples_of(&self, part: &Part) -> Vec<(String, PathBuf)> {
        let found = |joint: &String| self.samples.iter().find(|(name, _)| name == joint);
        let of_cell = |(cell, joint): (&CellRecord, &String)| {
            let there = CellRecord {
                id: joint.clone(),
                ..cell.clone()
            };
            cell.samples_names().into_iter().zip(there.samples_names())
        };
        (part.record.cells.iter().zip(&part.joint_ids))
            .flat_map(of_cell)
            .filter_map(|(own, joint)| Some((own, found(&joint)?.1.clone())))
            .collect()
    }

    /// Frees the shared memory, unless cells are left.
    pub(crate) fn discard(&self) {
        // A cell that could not be removed is found later through its note.
        if !holds_cells(&self.dir) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
