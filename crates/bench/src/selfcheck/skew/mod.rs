//! Cells created, armed and released together, by our barrier or by polling for a file: one round, and its figures. The parts compare
//! them.

mod shell;
mod stage;

pub(super) use shell::is_there as has_shell;
pub(super) use stage::Stage;

use host::install::install;
use serde_json::{Value, json};

use super::section::us;

model::choice! {
    /// How cells learn of their release.
    pub(super) enum How {
        /// Our barrier.
        Futex = "futex and absolute sleep",
        /// The thesis's way in our own probe, without a process for each sleep.
        PollProbe = "polling a file every 1 ms (probe)",
        /// The thesis's way.
        PollShell = "polling a file every 1 ms (shell)",
    }
}

/// The ways that work here, and why not all do.
pub(super) fn hows() -> (Vec<How>, Vec<String>) {
    if has_shell() {
        (vec![How::Futex, How::PollProbe, How::PollShell], Vec::new())
    } else {
        let unmet = format!(
            "the shell poller needs busybox ({})",
            install("busybox-static")
        );
        (vec![How::Futex, How::PollProbe], vec![unmet])
    }
}

/// The settings of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) how: How,
    pub(super) cells: usize,
    /// Cells made at the same time.
    pub(super) parallel: usize,
    /// How long all cells wait before the release, ns: pollers must have begun.
    pub(super) settle_ns: i64,
    /// Whether the memory of cells and helpers is looked at meanwhile.
    pub(super) memory: bool,
}

/// Values of rounds of one kind; one for each round.
#[derive(Default)]
pub(super) struct Seen {
    /// Latest start minus earliest, ns.
    pub(super) skews: Vec<i64>,
    /// The same between the first cells of each cpu.
    pub(super) firsts: Vec<i64>,
    /// Cpu time of all cells while they waited, ns.
    pub(super) waiting_ns: Vec<i64>,
    /// From the first request until the last payload spoke, ns; of shells, until its pid was known.
    pub(super) creation_ns: Vec<i64>,
    /// From the first removal until all cells were gone, ns.
    pub(super) removal_ns: Vec<i64>,
    /// Proportional set of payloads and helpers together, bytes.
    pub(super) pss_bytes: Vec<i64>,
}

impl Seen {
    /// A line of a table: cells, barrier, median and largest skew, between first cells, cpu while waiting.
    pub(super) fn row(&self, round: &Round) -> Vec<String> {
        let median = |values: &[i64]| stats::median_of(values).map_or("-".to_owned(), us);
        vec![
            round.cells.to_string(),
            round.how.name().to_owned(),
            median(&self.skews),
            us(self.skews.iter().copied().max().unwrap_or(0)),
            median(&self.firsts),
            stats::median_of(&self.waiting_ns).map_or("-".to_owned(), |ns| {
                let share = ns as f64 * 100.0 / round.settle_ns as f64;
                format!("{share:.1} % of a cpu")
            }),
        ]
    }

    pub(super) fn json(&self, round: &Round) -> Value {
        json!({
            "cells": round.cells,
            "barrier": round.how.name(),
            "skew_ns": self.skews,
            "first_of_cpu_skew_ns": self.firsts,
            "waiting_window_ns": round.settle_ns,
            "waiting_cpu_ns": self.waiting_ns,
            "parallel": round.parallel,
            "creation_ns": self.creation_ns,
            "removal_ns": self.removal_ns,
            "pss_bytes": self.pss_bytes,
        })
    }

    /// Adds the starts of one round: cpu and instant of each cell.
    fn add_starts(&mut self, starts: &[(u32, i64)]) {
        let all: Vec<i64> = starts.iter().map(|(_, start)| *start).collect();
        if let Some(skew) = stats::skew_ns(&all) {
            self.skews.push(skew.cast_signed());
        }
        let mut first = std::collections::BTreeMap::new();
        for (cpu, start) in starts {
            let earliest = first.entry(*cpu).or_insert(*start);
            *earliest = (*earliest).min(*start);
        }
        let first: Vec<i64> = first.into_values().collect();
        if first.len() > 1
            && let Some(skew) = stats::skew_ns(&first)
        {
            self.firsts.push(skew.cast_signed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cells_of_each_cpu_are_told_from_all() {
        let mut seen = Seen::default();
        seen.add_starts(&[(0, 100), (1, 130), (0, 150), (1, 190)]);
        assert_eq!((seen.skews[0], seen.firsts[0]), (90, 30));
        // With one cpu there is nothing between first cells.
        seen.add_starts(&[(0, 5), (0, 7)]);
        assert_eq!((seen.skews[1], seen.firsts.len()), (2, 1));
    }
}
