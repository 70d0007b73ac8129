//! A version of a cell: the one that the mission means, or one that an update has put aside.

use host::evl_quota;
use host::root::Root;
use model::mission::{self, Mission, WhenShed};

use super::cell::Live;
use super::phase::Phase;
use super::watch::CellWatch;
use crate::incident::OutputTail;

/// A version of a cell, over all its lives.
pub(super) struct Cell {
    pub(super) phase: Phase<Live>,
    /// Of the life that it has, is being given or is losing.
    pub(super) generation: u64,
    /// Whether that is in the second of the cell's two places.
    pub(super) beside: bool,
    pub(super) watch: CellWatch,
    /// The last output of the life that is gone, until its end is on record.
    pub(super) tail: Option<OutputTail>,
    /// Why its last start failed.
    pub(super) failure: Option<String>,
    /// `None`: it is as the mission means it.
    pub(super) aside: Option<Box<Aside>>,
}

/// The state to know of a version that an update replaces or removes, while it runs.
pub(super) struct Aside {
    /// As its mission had it.
    pub(super) declared: mission::Cell,
    /// How high mode sheds it; `None`: not at all.
    pub(super) when_shed: Option<WhenShed>,
    /// Whether high mode has shed it, before it was put aside or since.
    pub(super) shed_by_mode: bool,
}

impl Cell {
    /// Counts what its threads have run out of band.
    pub(super) fn count_out_of_band(&mut self) {
        if let Some(live) = self.phase.live() {
            let ns = evl_quota::out_of_band_ns(&Root::live(), || live.inside.threads());
            self.watch.ran_out_of_band(ns);
        }
    }

    /// One of which nothing is there.
    pub(super) fn new(watch: CellWatch) -> Cell {
        Cell {
            phase: Phase::default(),
            generation: 0,
            beside: false,
            watch,
            tail: None,
            failure: None,
            aside: None,
        }
    }

    /// When something is due for a version that runs and is to end, CLOCK_MONOTONIC ns.
    pub(super) fn next_ns(&self) -> Option<i64> {
        let live = self.phase.live()?;
        // Once it has ended, it settles.
        let killed_ns = self
            .phase
            .killed_ns()
            .filter(|_| live.tended.settles_ns().is_none());
        killed_ns.into_iter().chain(live.asks_again_ns()).min()
    }
}

/// How the high mode of this mission sheds a cell of it; `None`: not at all.
pub(super) fn when_shed(mission: &Mission, cell: &str) -> Option<WhenShed> {
    let cell = mission.cell(cell).filter(|cell| !cell.is_high())?;
    mission.modes.map(|_| cell.when_shed)
}
