//! When each cell is looked after.

use std::collections::BTreeMap;

use model::mission::{Cell, Mission};

use super::Event;
use super::cell::Live;

/// How often it is seen whether a cell is still shed, ns.
const SHED_NS: i64 = 1_000_000_000;

/// When a cell is looked after, CLOCK_MONOTONIC ns.
#[derive(Debug)]
pub(super) struct Tended {
    next_ns: Option<i64>,
    /// When it is told what of it is not held.
    unheld_ns: Option<i64>,
    /// When its end may be told.
    settles_ns: Option<i64>,
}

impl Tended {
    /// Of a cell that has just been started or taken over.
    pub(super) fn from_now(cell: &Cell) -> Tended {
        let now = timecell_client::now_ns();
        Tended {
            next_ns: Some(now),
            unheld_ns: Some(now.saturating_add(cell.start_timeout.ns())),
            settles_ns: None,
        }
    }

    /// When something is to be done about it.
    pub(super) fn due_ns(&self) -> Option<i64> {
        self.settles_ns.or(self.next_ns)
    }

    /// When its end may be told; `None`: it has not ended.
    pub(super) fn settles_ns(&self) -> Option<i64> {
        self.settles_ns
    }

    /// Whether what it held is not counted any more: `held_ns` after its end was first seen, which is now if it was not yet.
    pub(super) fn has_settled(&mut self, held_ns: i64) -> bool {
        let now = timecell_client::now_ns();
        now >= *self.settles_ns.get_or_insert(now.saturating_add(held_ns))
    }
}

/// Looks after every cell whose time has come; one that is `shed` has lost its class on purpose.
pub(super) fn all(
    mission: &Mission,
    live: &mut BTreeMap<usize, Live>,
    shed: &dyn Fn(&str) -> bool,
    tell: &mut dyn FnMut(&Event),
) {
    let now = timecell_client::now_ns();
    for (at, live) in live {
        let due =
            live.tended.settles_ns.is_none() && live.tended.next_ns.is_some_and(|next| next <= now);
        if !due {
            continue;
        }
        let name = &mission.cells[*at].name;
        if shed(name) {
            live.tended.next_ns = Some(now + SHED_NS);
            continue;
        }
        let Some(hold) = &mut live.hold else {
            live.tended.next_ns = None;
            continue;
        };
        let mut told = hold.tend(&live.inside);
        if live.tended.unheld_ns.is_some_and(|told| told <= now) {
            live.tended.unheld_ns = None;
            told.extend(hold.unheld());
        }
        live.tended.next_ns = hold.tend_again_ns().map(|again| now + again);
        for what in told {
            let cell = name.clone();
            tell(&Event::Held { cell, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_when_what_was_held_is_not_counted_any_more() {
        let mut tended = Tended {
            next_ns: Some(7),
            unheld_ns: None,
            settles_ns: None,
        };
        assert_eq!((tended.due_ns(), tended.settles_ns()), (Some(7), None));
        assert!(!tended.has_settled(3_600_000_000_000));
        let settles = tended.settles_ns();
        assert!(settles.is_some() && tended.due_ns() == settles);
        assert!(!tended.has_settled(0), "the first sight of the end counts");
        tended.settles_ns = Some(timecell_client::now_ns());
        assert!(tended.has_settled(3_600_000_000_000));
    }
}
