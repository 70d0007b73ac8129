//! Searches for the least change that is admitted.

use std::borrow::Cow;
use std::cell::Cell as Counter;
use std::time::{Duration, Instant};

use analysis::Ns;
use model::mission::{Cell, Mission, MissionFile};
use record::supply::MeasuredSupply;

use super::super::asked::enforcer;
use super::super::{Admission, Facts, Outcome, decision};
use super::Edit;

/// Changed missions that one kind may put to admission, times the cells of each: the most that a kind may cost.
const CELLS_TRIED: usize = 2_400;

/// How long the whole search may take, for which the user waits. No trial begins later.
const PATIENCE: Duration = Duration::from_secs(5);

/// At least this many missions are tried for each kind.
const LEAST_TRIED: usize = 24;

/// The question of the kinds: is the mission admitted after these edits?
pub(super) struct Search<'a> {
    pub(super) mission: Cow<'a, Mission>,
    pub(super) facts: Cow<'a, Facts>,
    measured: &'a [MeasuredSupply],
    latency_ns: Ns,
    /// The refusal that is to be fixed.
    pub(super) refused: Admission,
    until: Instant,
    /// The end of the time of the kind that is asked now.
    kind_until: Counter<Instant>,
    tried: Counter<usize>,
    left: Counter<usize>,
    cut_short: Counter<bool>,
}

/// How far a mission is from being admitted: the number of its refused cells and of the refusals of it as a whole.
fn faults(admission: &Admission) -> usize {
    admission.refusals.len() + refused(admission).count()
}

fn refused(admission: &Admission) -> impl Iterator<Item = &super::super::Refused> {
    admission.cells.iter().filter_map(|cell| match cell {
        Outcome::Refused(refused) => Some(refused),
        _ => None,
    })
}

impl<'a> Search<'a> {
    pub(super) fn new(
        mission: &'a Mission,
        facts: &'a Facts,
        measured: &'a [MeasuredSupply],
        latency_ns: Ns,
    ) -> Search<'a> {
        let until = Instant::now() + PATIENCE;
        Search {
            mission: Cow::Borrowed(mission),
            facts: Cow::Borrowed(facts),
            measured,
            latency_ns,
            until,
            kind_until: Counter::new(until),
            refused: decision(mission, facts, measured, latency_ns),
            tried: Counter::new(0),
            left: Counter::new(0),
            cut_short: Counter::new(false),
        }
    }

    /// The same search of the mission after some edits, which are not part of its answers, in a share of the remaining time;
    /// `None`: they change nothing, or there is no time.
    pub(super) fn based_on(&self, base: &[Edit], shares: u32) -> Option<Search<'a>> {
        self.share_time(shares);
        let (mission, facts) = self.edited(base);
        let ends = base.iter().any(|edit| matches!(edit, Edit::End(_)));
        ((mission != *self.mission || ends) && self.has_time()).then(|| Search {
            refused: decision(&mission, &facts, self.measured, self.latency_ns),
            mission: Cow::Owned(mission),
            facts: Cow::Owned(facts),
            measured: self.measured,
            latency_ns: self.latency_ns,
            until: self.kind_until.get(),
            kind_until: self.kind_until.clone(),
            tried: Counter::new(1),
            left: Counter::new(0),
            cut_short: Counter::new(false),
        })
    }

    /// The mission and the machine after these edits.
    fn edited(&self, edits: &[Edit]) -> (Mission, Facts) {
        let (mut mission, mut facts) = (
            self.mission.clone().into_owned(),
            self.facts.clone().into_owned(),
        );
        for edit in edits {
            edit.apply(&mut mission, &mut facts);
        }
        (mission, facts)
    }

    /// These edits without those that a later one overrides and, if there is time to find them, without those that are
    /// not needed.
    pub(super) fn pruned(&self, edits: &[Edit]) -> Vec<Edit> {
        let mut kept: Vec<Edit> = Vec::new();
        for (at, edit) in edits.iter().enumerate() {
            if !edits[at + 1..].iter().any(|later| later.replaces(edit)) {
                kept.push(edit.clone());
            }
        }
        let mut at = kept.len();
        while let Some(one) = at.checked_sub(1) {
            at = one;
            let mut fewer = kept.clone();
            fewer.remove(at);
            if !fewer.is_empty() && self.has_time() && self.is_proved(&fewer) {
                kept = fewer;
            }
        }
        kept
    }

    /// Another kind begins, with its own share of trials and, of `kinds` that are still to come, of the time.
    pub(super) fn begin(&self, kinds: u32) {
        let cells = self.mission.cells.len().max(1);
        self.left.set((CELLS_TRIED / cells).max(LEAST_TRIED));
        self.share_time(kinds);
    }

    /// Gives the next step one of this many equal shares of the remaining time.
    fn share_time(&self, shares: u32) {
        let now = Instant::now();
        let left = self.until.saturating_duration_since(now);
        self.kind_until.set(now + left / shares.max(1));
    }

    /// Whether the search may continue; once it may not, that is remembered.
    fn has_time(&self) -> bool {
        let has_time = Instant::now() < self.kind_until.get();
        if !has_time {
            self.cut_short.set(true);
        }
        has_time
    }

    /// Whether another mission may be tried. A loop over many cells asks before each: just making the edits of a
    /// thousand cells a thousand times takes seconds.
    pub(super) fn may_go_on(&self) -> bool {
        let may_go_on = self.has_time() && self.left.get() > 0;
        if !may_go_on {
            self.cut_short.set(true);
        }
        may_go_on
    }

    pub(super) fn missions(&self) -> usize {
        self.tried.get()
    }

    pub(super) fn was_cut_short(&self) -> bool {
        self.cut_short.get()
    }

    /// The admission after these edits; `None`: no more may be tried.
    pub(super) fn after(&self, edits: &[Edit]) -> Option<Admission> {
        let left = self.left.get().checked_sub(1);
        let Some(left) = left.filter(|_| self.has_time()) else {
            self.cut_short.set(true);
            return None;
        };
        self.left.set(left);
        self.tried.set(self.tried.get() + 1);
        let (mission, facts) = self.edited(edits);
        (!mission.cells.is_empty())
            .then(|| decision(&mission, &facts, self.measured, self.latency_ns))
    }

    /// How far the mission is from being admitted after these edits; 0: it is.
    pub(super) fn faults_after(&self, edits: &[Edit]) -> usize {
        self.after(edits)
            .map_or(usize::MAX, |admission| faults(&admission))
    }

    /// Whether a cell that is to be held to a budget is held to none after these edits.
    pub(super) fn loses_budget(&self, edits: &[Edit]) -> bool {
        let (mission, facts) = self.edited(edits);
        let is_held = |mission: &Mission, cell: &Cell, facts: &Facts| {
            cell.is_real_time() && enforcer(mission, cell, facts, facts.best()).has_budgets()
        };
        (self.mission.cells.iter())
            .filter(|cell| is_held(&self.mission, cell, &self.facts))
            .filter_map(|cell| mission.cell(&cell.name))
            .any(|cell| !is_held(&mission, cell, &facts))
    }

    /// Whether the edited mission is a file that timecell reads, to the same value, and admits.
    pub(super) fn is_proved(&self, edits: &[Edit]) -> bool {
        let (mission, facts) = self.edited(edits);
        self.tried.set(self.tried.get() + 1);
        MissionFile::parse("edited", &mission.to_toml()).is_ok_and(|file| {
            decision(file.mission(), &facts, self.measured, self.latency_ns).is_admitted()
        })
    }

    /// The cells of which a change may help: those that are refused, and all real-time ones where the mission is refused as a whole.
    pub(super) fn concerned(&self, edits: &[Edit]) -> Vec<&Cell> {
        let after;
        let admission = match edits {
            [] => &self.refused,
            edits => match self.after(edits) {
                Some(admission) => {
                    after = admission;
                    &after
                }
                None => return Vec::new(),
            },
        };
        let named: Vec<&str> = refused(admission)
            .map(|refused| refused.cell.as_str())
            .collect();
        (self.mission.cells.iter())
            .filter(|cell| cell.is_real_time())
            .filter(|cell| named.is_empty() || named.contains(&cell.name.as_str()))
            .collect()
    }

    /// The task that is late in a refused cell, where admission knows one.
    pub(super) fn late(&self, cell: &Cell) -> Option<&str> {
        let found = refused(&self.refused).find(|refused| refused.cell == cell.name)?;
        let late = found.witness.as_ref()?;
        let own = cell.tasks.iter().any(|task| task.name() == late.task);
        own.then_some(late.task.as_str())
    }

    /// Edits cell by cell: of each cell concerned the first proposal after which less is refused, until nothing is.
    /// `propose` has the cell, the edits so far and how much is refused after them.
    pub(super) fn by_cell(
        &self,
        propose: impl Fn(&Cell, &[Edit], usize) -> Option<Vec<Edit>>,
    ) -> Option<Vec<Edit>> {
        self.by_cell_from(Vec::new(), propose)
    }

    /// The same after some edits.
    pub(super) fn by_cell_from(
        &self,
        mut edits: Vec<Edit>,
        propose: impl Fn(&Cell, &[Edit], usize) -> Option<Vec<Edit>>,
    ) -> Option<Vec<Edit>> {
        let mut open = match edits.as_slice() {
            [] => faults(&self.refused),
            edits => self.faults_after(edits),
        };
        // Each round makes it less.
        while open > 0 {
            let mut concerned =
                (self.concerned(&edits).into_iter()).take_while(|_| self.may_go_on());
            let better = concerned.find_map(|cell| {
                let more = propose(cell, &edits, open)?;
                let all: Vec<Edit> = edits.iter().chain(&more).cloned().collect();
                let left = self.faults_after(&all);
                (left < open).then_some((all, left))
            });
            (edits, open) = better?;
        }
        (!edits.is_empty()).then_some(edits)
    }

    /// Whether less is refused with these further edits than the `open` before.
    pub(super) fn helps(&self, edits: &[Edit], more: &[Edit], open: usize) -> bool {
        let all: Vec<Edit> = edits.iter().chain(more).cloned().collect();
        self.faults_after(&all) < open
    }
}

/// The value nearest to `from` for which `holds`, to about a hundredth and with few digits, of those between `from`, for which it
/// does not hold, and the values of `ladder`, the nearest first.
pub(super) fn nearest(
    from: Ns,
    ladder: impl IntoIterator<Item = Ns>,
    holds: impl Fn(Ns) -> bool,
) -> Option<Ns> {
    let mut fails = from;
    let mut works = ladder.into_iter().find(|&value| {
        let found = holds(value);
        if !found {
            fails = value;
        }
        found
    })?;
    let grid = step(1_000, fails.max(works) / 1_000);
    while fails.abs_diff(works) > grid {
        let middle = (fails.midpoint(works) / grid) * grid;
        if middle <= fails.min(works) || middle >= fails.max(works) {
            break;
        }
        if holds(middle) {
            works = middle;
        } else {
            fails = middle;
        }
    }
    Some(works)
}

/// The least of `least`, ten times that, a hundred times that and so on which is more than `than`.
pub(super) fn step(least: Ns, than: Ns) -> Ns {
    let mut step = least;
    while step <= than {
        step *= 10;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{cell, facts, mission, task};
    use super::*;

    #[test]
    fn steps_of_the_longest_times_end() {
        assert_eq!([0, 1, 9, 10].map(|than| step(1, than)), [1, 10, 10, 100]);
        assert_eq!(step(1_000, Ns::MAX / 1_000), 100_000_000_000_000_000);
    }

    #[test]
    fn a_kind_has_its_share_of_the_time_and_asks_nothing_of_cells_beyond_it() {
        let refused = mission(&cell("a", &task("100ms", "100ms")));
        let facts = facts();
        let mut search = Search::new(&refused, &facts, &[], 0);
        let asked = |search: &Search<'_>| {
            let count = Counter::new(0);
            let none = search.by_cell(|_, _, _| {
                count.set(count.get() + 1);
                None
            });
            assert_eq!(none, None);
            count.get()
        };
        search.begin(2);
        assert!(search.kind_until.get() < search.until);
        assert_eq!(asked(&search), 1);
        assert!(!search.was_cut_short());
        search.left.set(0);
        assert_eq!(asked(&search), 0);
        search.until = Instant::now();
        search.begin(1);
        assert_eq!(asked(&search), 0);
        assert!(search.was_cut_short());
    }

    #[test]
    fn when_its_time_is_over_nothing_more_is_tried() {
        let (facts, mission) = (facts(), mission(&cell("a", &task("1ms", "100ms"))));
        let mut search = Search::new(&mission, &facts, &[], 0);
        let edits = [
            Edit::MissionCpus(vec![0]),
            Edit::NoPriorities("a".to_owned()),
        ];
        assert_eq!(search.pruned(&edits).len(), 1);
        assert!(!search.was_cut_short());
        let tried = search.missions();
        search.until = Instant::now();
        search.begin(1);
        assert_eq!(search.pruned(&edits), edits);
        assert!(search.based_on(&edits, 1).is_none() && search.after(&edits).is_none());
        assert_eq!(search.missions(), tried);
        assert!(search.was_cut_short());
    }
}
