//! The note of reservations by cpu.rt.max, as an earlier timecell wrote it: it exists until the reboot, also beside cells that a
//! later version adopts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::CELLS_PREFIX;
use crate::rtgroup::Budget;

/// The version of it.
pub(super) const SCHEMA: u32 = 1;

/// Its contents: only missions reserved anything, and each place of a cell was noted without the name of its group.
#[derive(Debug, Deserialize)]
pub(super) struct Note {
    pub(super) before: Budget,
    pub(super) written: Budget,
    pub(super) meant: Option<Budget>,
    /// Of each mission, for each place of a cell, us in every second.
    missions: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Note {
    /// The reservation of each, by the prefix of its groups' names: for each group, us in every second.
    pub(super) fn owners(self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let owners = self.missions.into_iter().map(|(mission, places)| {
            let owner = format!("{CELLS_PREFIX}{mission}.");
            let groups = places.into_iter();
            let groups = groups.map(|(place, us)| (format!("{owner}{place}"), us));
            (owner.clone(), groups.collect())
        });
        owners.collect()
    }
}
