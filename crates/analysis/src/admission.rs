//! Incremental admission: a live set of cells on one cpu that accepts or refuses one more in microseconds.
//!
//! This module is the top level, where each cell is one budget every period under fixed priorities. Tasks inside a cell
//! are proved elsewhere, once, against the supply of the reservation alone, which the cell gets beside any neighbours
//! as long as it is admitted here.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::server::{Kind, Server};
use crate::{Ns, Part, Task, TaskError, Undecided, Verdict, Witness};

/// Steps that one addition or removal may take, a fraction of a second: the caller waits.
const STEPS: u64 = 1 << 24;

/// A cell as the cpu sees it: a budget every period, or a task that runs without a reservation.
///
/// Times in ns, in the ranges of a [`Task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resident {
    /// The budget or wcet, the period, the deadline (at most the period), its own release jitter and blocking.
    pub task: Task,
    /// Jitter with which it interferes with those below: that of the task, or T - C of a deferrable server.
    pub jitter_below: Ns,
}

impl Resident {
    /// A task.
    ///
    /// ```
    /// use timecell_analysis::{Task, admission::Resident};
    ///
    /// assert_eq!(Resident::task(Task::new(1, 10).jittered(2)).jitter_below, 2);
    /// ```
    pub const fn task(task: Task) -> Resident {
        Resident {
            task,
            jitter_below: task.jitter,
        }
    }

    /// A server under a fixed priority, due to have its whole budget by the end of its period (Davis and Burns, RTSS
    /// 2005, section 3).
    ///
    /// # Errors
    /// [`Undecided::NotCovered`] for a constant bandwidth server, which EDF dispatches.
    ///
    /// ```
    /// use timecell_analysis::admission::Resident;
    /// use timecell_analysis::server::{Kind, Server};
    ///
    /// // Back to back, a deferrable server of 3 every 10 takes 6 at once: like a task with a jitter of T - C = 7.
    /// assert_eq!(Resident::server(Server::new(Kind::Deferrable, 3, 10)).unwrap().jitter_below, 7);
    /// assert!(Resident::server(Server::new(Kind::ConstantBandwidth, 3, 10)).is_err());
    /// ```
    pub fn server(server: Server) -> Result<Resident, Undecided> {
        if server.kind == Kind::ConstantBandwidth {
            let reason = "a constant bandwidth server has no fixed priority";
            return Err(Undecided::NotCovered(reason.into()));
        }
        Ok(Resident {
            task: Task::new(server.budget, server.period).blocked(server.blocking),
            jitter_below: server.jitter(),
        })
    }

    fn check(&self) -> Result<(), Undecided> {
        let not = |reason: String| Err(Undecided::NotCovered(reason));
        if let Err(error) = self.task.check() {
            return not(error.to_string());
        }
        if self.jitter_below > crate::MAX_NS {
            return not(TaskError::TooLong("jitter", self.jitter_below).to_string());
        }
        if !self.task.is_constrained() {
            return not("deadlines beyond the period in a live set".into());
        }
        Ok(())
    }

    fn jobs(&self, window: Ns) -> u64 {
        (window + self.jitter_below).div_ceil(self.task.period)
    }
}

/// Cells on one cpu under preemptive fixed priorities, all schedulable.
///
/// Response-time analysis, exact for sporadic tasks with release jitter and D <= T (Joseph and Pandya, The Computer
/// Journal 29(5), 1986; Audsley et al., Software Engineering Journal 8(5), 1993): least w = B_i + C_i + sum over
/// higher j of ceil((w + J_j) / T_j) C_j, and J_i + w <= D_i. An added cell only lengthens the w of those below it, so
/// theirs are continued from where they stood; the answer is the one from scratch. For each pair the set remembers up
/// to which window the number of jobs stays the same: memory grows with the square of the number of cells.
///
/// ```
/// use timecell_analysis::Task;
/// use timecell_analysis::admission::{LiveSet, Resident};
/// let mut set = LiveSet::new();
/// for (wcet, period) in [(1, 4), (1, 5), (3, 9)] {
///     let resident = Resident::task(Task::new(wcet, period));
///     assert!(set.add(set.len(), resident).is_schedulable());
/// }
/// assert_eq!(set.response(2), Some(7));
/// let verdict = set.add(0, Resident::task(Task::new(2, 6)));
/// assert!(!verdict.is_schedulable());
/// assert_eq!(set.response(2), Some(7), "a refused cell leaves no trace");
/// set.remove(0);
/// assert!(set.add(0, Resident::task(Task::new(2, 6))).is_schedulable());
/// ```
#[derive(Debug, Clone, Default)]
pub struct LiveSet {
    residents: Vec<Resident>,
    standings: Vec<Standing>,
}

/// Where the response-time analysis of one resident stands.
#[derive(Debug, Clone)]
struct Standing {
    /// w; `None` if it was too long to compute when a cell left (it is then still within the deadline).
    window: Option<Ns>,
    /// For each resident above, the largest window in which as many of its jobs count as in w.
    same_until: Vec<Ns>,
}

impl LiveSet {
    /// No cell yet.
    pub const fn new() -> LiveSet {
        LiveSet {
            residents: Vec::new(),
            standings: Vec::new(),
        }
    }

    /// Number of cells.
    pub const fn len(&self) -> usize {
        self.residents.len()
    }

    /// Whether there is no cell.
    pub const fn is_empty(&self) -> bool {
        self.residents.is_empty()
    }

    /// The cells, highest priority first.
    pub fn residents(&self) -> &[Resident] {
        &self.residents
    }

    /// Exact worst-case response time of a cell's budget, ns, from its arrival; `None` if there is no such cell or
    /// the time was too long to compute when another left.
    ///
    /// ```
    /// use timecell_analysis::{Task, admission::{LiveSet, Resident}};
    ///
    /// let mut set = LiveSet::new();
    /// for (wcet, period) in [(1, 4), (1, 5), (3, 9), (3, 18)] {
    ///     set.add(set.len(), Resident::task(Task::new(wcet, period)));
    /// }
    /// assert_eq!([0, 1, 2, 3, 4].map(|cell| set.response(cell)), [Some(1), Some(2), Some(7), Some(18), None]);
    /// ```
    pub fn response(&self, position: usize) -> Option<Ns> {
        let window = self.standings.get(position)?.window?;
        Some(window + self.residents[position].task.jitter)
    }

    /// Where a cell belongs by deadline-monotonic order, optimal for D <= T without jitter and blocking (Leung and
    /// Whitehead, Performance Evaluation 2(4), 1982): below all that are due as early.
    ///
    /// ```
    /// use timecell_analysis::{Task, admission::{LiveSet, Resident}};
    ///
    /// let mut set = LiveSet::new();
    /// for deadline in [20, 10, 20] {
    ///     let position = set.deadline_monotonic(deadline);
    ///     assert!(set.add(position, Resident::task(Task::new(1, 40).due(deadline))).is_schedulable());
    /// }
    /// let deadlines: Vec<u64> = set.residents().iter().map(|resident| resident.task.deadline).collect();
    /// assert_eq!(deadlines, [10, 20, 20]);
    /// ```
    pub fn deadline_monotonic(&self, deadline: Ns) -> usize {
        self.residents
            .iter()
            .position(|resident| resident.task.deadline > deadline)
            .unwrap_or(self.len())
    }

    /// Adds a cell at `position` (0: highest priority; at most [`LiveSet::len`]) if it and all below meet their
    /// deadlines; else leaves the set as it was.
    ///
    /// Exact. Positions in the witness are those that the cells would have had. [`Verdict::Undecided`] for a resident
    /// out of range, for one with D > T, for a position beyond the end, and when the windows are too long.
    ///
    /// ```
    /// use timecell_analysis::{Task, Verdict, admission::{LiveSet, Resident}};
    ///
    /// let mut set = LiveSet::new();
    /// assert!(set.add(0, Resident::task(Task::new(2, 5))).is_schedulable());
    /// let Verdict::Unschedulable(witness) = set.add(1, Resident::task(Task::new(4, 7))) else { panic!() };
    /// assert_eq!((witness.instant, witness.demand), (7, 8)); // 4 + two jobs of 2
    /// assert_eq!(set.len(), 1);
    /// ```
    pub fn add(&mut self, position: usize, resident: Resident) -> Verdict {
        if let Err(reason) = resident.check() {
            return Verdict::Undecided(reason);
        }
        if position > self.len() {
            let reason = format!("there is no position {position}");
            return Verdict::Undecided(Undecided::NotCovered(reason));
        }
        self.residents.insert(position, resident);
        match self.trial(position) {
            Ok(Ok(standings)) => {
                self.standings.truncate(position);
                self.standings.extend(standings);
                Verdict::Schedulable
            }
            Ok(Err(late)) => {
                let witness = self.witness(late);
                self.residents.remove(position);
                Verdict::Unschedulable(witness)
            }
            Err(reason) => {
                self.residents.remove(position);
                Verdict::Undecided(reason)
            }
        }
    }

    /// Removes a cell; those that stay remain schedulable. `None` if there is no such cell.
    ///
    /// ```
    /// use timecell_analysis::{Task, admission::{LiveSet, Resident}};
    ///
    /// let mut set = LiveSet::new();
    /// for _ in 0..2 {
    ///     set.add(set.len(), Resident::task(Task::new(2, 5)));
    /// }
    /// assert_eq!(set.response(1), Some(4));
    /// assert_eq!(set.remove(0), Some(Resident::task(Task::new(2, 5))));
    /// assert_eq!((set.response(0), set.remove(1)), (Some(2), None));
    /// ```
    pub fn remove(&mut self, position: usize) -> Option<Resident> {
        if position >= self.len() {
            return None;
        }
        self.standings.remove(position);
        let removed = self.residents.remove(position);
        let mut steps = Budget::new(STEPS);
        for at in position..self.len() {
            let before = at
                .checked_sub(1)
                .and_then(|above| self.standings[above].window);
            self.standings[at] = match self.computed(at, before, &mut steps) {
                Ok(Some(standing)) => standing,
                Ok(None) | Err(_) => Standing {
                    window: None,
                    same_until: Vec::new(),
                },
            };
        }
        Some(removed)
    }

    /// Standings from `position` on with the resident that was just inserted there, or the first that is late.
    fn trial(&self, position: usize) -> Result<Result<Vec<Standing>, usize>, Undecided> {
        let mut steps = Budget::new(STEPS);
        let mut standings = Vec::with_capacity(self.len() - position);
        let above = position
            .checked_sub(1)
            .and_then(|above| self.standings[above].window);
        match self.computed(position, above, &mut steps)? {
            Some(standing) => standings.push(standing),
            None => return Ok(Err(position)),
        }
        for at in position + 1..self.len() {
            let before: Option<Ns> = standings.last().and_then(|above| above.window);
            let standing = match self.standings[at - 1].window {
                Some(window) => self.continued(at, position, window, &mut steps)?,
                None => self.computed(at, before, &mut steps)?,
            };
            match standing {
                Some(standing) => standings.push(standing),
                None => return Ok(Err(at)),
            }
        }
        Ok(Ok(standings))
    }

    /// The standing of a resident whose window was `window` before another was inserted at `position` above it.
    fn continued(
        &self,
        at: usize,
        position: usize,
        window: Ns,
        steps: &mut Budget,
    ) -> Result<Option<Standing>, Undecided> {
        let added = &self.residents[position];
        let jobs = added.jobs(window);
        let old = &self.standings[at - 1].same_until;
        let mut same_until = Vec::with_capacity(old.len() + 1);
        same_until.extend_from_slice(&old[..position]);
        same_until.push(jobs * added.task.period - added.jitter_below);
        same_until.extend_from_slice(&old[position..]);
        let demand = window.saturating_add(jobs.saturating_mul(added.task.wcet));
        self.climb(at, same_until, demand, steps)
    }

    /// Recomputes the standing of a resident, with the window of the one above it, if known, as a hint.
    fn computed(
        &self,
        at: usize,
        above_window: Option<Ns>,
        steps: &mut Budget,
    ) -> Result<Option<Standing>, Undecided> {
        let task = &self.residents[at].task;
        let own = task.wcet + task.blocking;
        // The window above, its blocking exchanged for this one's, holds the same interference and one job less.
        let start = match (above_window, at.checked_sub(1)) {
            (Some(window), Some(above)) => {
                match own.checked_sub(self.residents[above].task.blocking) {
                    Some(more) => window.saturating_add(more),
                    None => own,
                }
            }
            _ => own,
        };
        if self.limit(at).is_none_or(|limit| start > limit) {
            return Ok(None);
        }
        let above = &self.residents[..at];
        steps.spend(above.len())?;
        let mut demand = own;
        let same_until = above
            .iter()
            .map(|x| {
                let jobs = x.jobs(start);
                demand = demand.saturating_add(jobs.saturating_mul(x.task.wcet));
                jobs * x.task.period - x.jitter_below
            })
            .collect();
        self.climb(at, same_until, demand, steps)
    }

    /// Raises the window to the least one that holds its own demand; `None` if the deadline passes first.
    fn climb(
        &self,
        at: usize,
        mut same_until: Vec<Ns>,
        mut demand: Ns,
        steps: &mut Budget,
    ) -> Result<Option<Standing>, Undecided> {
        let Some(limit) = self.limit(at) else {
            return Ok(None);
        };
        loop {
            let window = demand;
            if window > limit {
                return Ok(None);
            }
            steps.spend(at)?;
            for (until, x) in same_until.iter_mut().zip(&self.residents[..at]) {
                if *until < window {
                    let more = (window - *until).div_ceil(x.task.period);
                    *until += more * x.task.period;
                    demand = demand.saturating_add(more.saturating_mul(x.task.wcet));
                }
            }
            if demand == window {
                return Ok(Some(Standing {
                    window: Some(window),
                    same_until,
                }));
            }
        }
    }

    /// The longest window that meets the deadline.
    fn limit(&self, at: usize) -> Option<Ns> {
        let task = &self.residents[at].task;
        task.deadline.checked_sub(task.jitter)
    }

    fn witness(&self, late: usize) -> Witness {
        let task = &self.residents[late].task;
        let instant = self.limit(late).unwrap_or(0);
        let own = Part {
            task: late,
            jobs: 1,
            demand: task.wcet,
        };
        let above = self.residents[..late].iter().enumerate().map(|(task, x)| {
            let jobs = x.jobs(instant);
            Part {
                task,
                jobs,
                demand: jobs.saturating_mul(x.task.wcet),
            }
        });
        let parts: Vec<Part> = std::iter::once(own).chain(above).collect();
        let demand = parts
            .iter()
            .fold(task.blocking, |sum, part| sum.saturating_add(part.demand));
        Witness {
            task: late,
            instant,
            demand,
            supply: instant,
            parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NS;
    use proptest::prelude::*;

    /// Every response time by the textbook, or the first resident that is late.
    fn textbook(residents: &[Resident]) -> Result<Vec<Ns>, usize> {
        let one = |at: usize| {
            let task = residents[at].task;
            let mut window = 1;
            loop {
                let next = task.blocking
                    + task.wcet
                    + residents[..at]
                        .iter()
                        .map(|x| (window + x.jitter_below).div_ceil(x.task.period) * x.task.wcet)
                        .sum::<Ns>();
                if next + task.jitter > task.deadline {
                    return Err(at);
                }
                if next == window {
                    return Ok(window + task.jitter);
                }
                window = next;
            }
        };
        (0..residents.len()).map(one).collect()
    }

    fn resident() -> impl Strategy<Value = Resident> {
        (1..40u64, 1..400u64, 0..200u64, 0..9u64, 0..9u64, 0..4u8).prop_map(
            |(wcet, slack, less, jitter, blocking, kind)| {
                let period = wcet + slack;
                let task = Task::new(wcet, period);
                match kind {
                    0 => Resident::server(Server::new(Kind::Deferrable, wcet, period)).unwrap(),
                    1 => Resident::task(task),
                    _ => Resident::task(
                        task.due(period - less.min(slack))
                            .jittered(jitter)
                            .blocked(blocking),
                    ),
                }
            },
        )
    }

    #[derive(Debug, Clone)]
    enum Change {
        Add(prop::sample::Index, Resident),
        Remove(prop::sample::Index),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            3 => (any::<prop::sample::Index>(), resident()).prop_map(|(at, new)| Change::Add(at, new)),
            1 => any::<prop::sample::Index>().prop_map(Change::Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn answers_are_those_from_scratch(changes in prop::collection::vec(change(), 1..60)) {
            let mut set = LiveSet::new();
            let mut model: Vec<Resident> = Vec::new();
            for change in changes {
                match change {
                    Change::Add(at, new) => {
                        let at = at.index(model.len() + 1);
                        model.insert(at, new);
                        match (set.add(at, new), textbook(&model)) {
                            (Verdict::Schedulable, Ok(_)) => {}
                            (Verdict::Unschedulable(witness), Err(late)) => {
                                prop_assert_eq!(witness.task, late);
                                prop_assert!(witness.demand > witness.supply);
                                model.remove(at);
                            }
                            different => prop_assert!(false, "{different:?}"),
                        }
                    }
                    Change::Remove(at) if !model.is_empty() => {
                        let at = at.index(model.len());
                        prop_assert_eq!(set.remove(at), Some(model.remove(at)));
                    }
                    Change::Remove(_) => prop_assert_eq!(set.remove(0), None),
                }
                let responses: Option<Vec<Ns>> = (0..set.len()).map(|at| set.response(at)).collect();
                prop_assert_eq!(set.residents(), &model[..]);
                prop_assert_eq!(responses, textbook(&model).ok());
            }
        }
    }

    #[test]
    fn absurd_residents_are_undecided_and_leave_no_trace() {
        let mut set = LiveSet::new();
        let task = |wcet, period| Resident::task(Task::new(wcet, period));
        assert!(set.add(0, task(1, 2)).is_schedulable());
        for bad in [
            task(0, 1),
            task(1, u64::MAX),
            Resident::task(Task::new(1, 2).due(3)),
            Resident {
                jitter_below: u64::MAX,
                ..task(1, 4)
            },
        ] {
            assert!(matches!(set.add(0, bad), Verdict::Undecided(_)));
        }
        assert!(matches!(set.add(2, task(1, 8)), Verdict::Undecided(_)));
        assert!(matches!(
            set.add(1, task(MAX_NS, MAX_NS)),
            Verdict::Unschedulable(_)
        ));
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn windows_too_long_end_undecided_and_a_later_removal_still_works() {
        let mut set = LiveSet::new();
        let task = |wcet, period| Resident::task(Task::new(wcet, period));
        assert!(set.add(0, task(1, 2)).is_schedulable());
        assert!(set.add(1, task((1 << 30) - 1, 1 << 31)).is_schedulable());
        let verdict = set.add(2, task(MAX_NS / (1 << 31), MAX_NS));
        assert!(
            matches!(verdict, Verdict::Undecided(Undecided::TooManySteps { .. })),
            "{verdict:?}"
        );
        assert_eq!(set.len(), 2);
        set.remove(0);
        assert_eq!(set.response(0), Some((1 << 30) - 1));
    }
}
