//! Worst-case response times under fixed priorities.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, STEPS};
use crate::{Ns, Task, TaskError, Undecided, Verdict, utilization};

use super::fast::{Fast, response_times_into};
use super::level::{Found, Level, saturate};

/// The worst-case response time of a task, from arrival to completion, release jitter included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// The exact bound, ns; the deadline holds.
    Meets(Ns),
    /// A job can miss the deadline. The exact bound, ns, if there is one and it was computed.
    Misses(Option<Ns>),
    /// The analysis gave up before an answer.
    Undecided(Undecided),
}

impl Response {
    /// The bound in ns, if one is known.
    ///
    /// ```
    /// use timecell_analysis::fp::Response;
    ///
    /// assert_eq!((Response::Meets(7).bound(), Response::Misses(Some(12)).bound()), (Some(7), Some(12)));
    /// ```
    pub const fn bound(&self) -> Option<Ns> {
        match self {
            Response::Meets(bound) => Some(*bound),
            Response::Misses(bound) => *bound,
            Response::Undecided(_) => None,
        }
    }

    /// Whether the deadline is proved to hold.
    ///
    /// ```
    /// use timecell_analysis::fp::Response;
    ///
    /// assert!(Response::Meets(7).meets() && !Response::Misses(Some(12)).meets());
    /// ```
    pub const fn meets(&self) -> bool {
        matches!(self, Response::Meets(_))
    }
}

/// Worst-case response times of a set in priority order, the highest first. Exact for sporadic and periodic tasks that
/// can be preempted anywhere, with release jitter and blocking, and deadlines of any length.
///
/// Lehoczky (RTSS 1990), Tindell, Burns & Wellings (1994): the `q`-th job of the level-i busy period finishes at the
/// least `w = B + (q + 1) C + sum over higher of ceil((w + J_j) / T_j) C_j`, and `R = max over q of J + w - q T`.
/// Tasks with `D <= T` go through [`response_times_into`] for as long as they meet their deadlines.
///
/// Beyond the times a set may have ([`Task::check`]) a task and all below it are [`Response::Undecided`]; so is a task
/// whose busy period takes more than [`STEPS`](crate::STEPS).
///
/// ```
/// use timecell_analysis::{Task, fp::{Response, response_times}};
///
/// // Lehoczky's second example: the second task's first job is not its slowest.
/// let tasks = [Task::new(52, 100), Task::new(52, 140).due(160)];
/// assert_eq!(response_times(&tasks), [Response::Meets(52), Response::Meets(156)]);
/// ```
pub fn response_times(tasks: &[Task]) -> Vec<Response> {
    response_times_within(tasks, STEPS)
}

/// [`response_times`] (Lehoczky, RTSS 1990; Tindell, Burns & Wellings 1994) with another limit on the steps.
///
/// ```
/// use timecell_analysis::{Task, Undecided, fp::{Response, response_times_within}};
///
/// // A busy period of 10^8 jobs.
/// let tasks = [Task::new(999_999_999, 1_000_000_000), Task::new(100_000_000, 1 << 59)];
/// let responses = response_times_within(&tasks, 10_000);
/// assert_eq!(responses[1], Response::Undecided(Undecided::TooManySteps { steps: 10_000 }));
/// ```
pub fn response_times_within(tasks: &[Task], steps: u64) -> Vec<Response> {
    let mut out = vec![0; tasks.len()];
    let covered = covered(tasks, &mut out);
    let mut responses: Vec<Response> = out[..covered]
        .iter()
        .map(|&bound| Response::Meets(bound))
        .collect();
    let mut budget = Budget::new(steps);
    let _ = rest(tasks, &out[..covered], false, &mut budget, |found, _| {
        responses.push(found.response.clone());
        true
    });
    responses
}

/// The exact worst-case response time of one task below others, whose order does not matter: the per-task test for
/// [`super::audsley`] (1991). In ns; sources and errors as of [`response_times`] (Lehoczky, RTSS 1990).
///
/// ```
/// use timecell_analysis::{Task, fp::{Response, response_time}};
///
/// assert_eq!(response_time(&Task::new(52, 100), &[Task::new(52, 140)]), Response::Misses(Some(108)));
/// ```
pub fn response_time(task: &Task, higher: &[Task]) -> Response {
    for task in higher.iter().chain([task]) {
        if let Err(why) = legal(task) {
            return Response::Undecided(why);
        }
    }
    let level = preemptive(task, higher);
    let load = level.load();
    let start = once(task.blocking, higher, task.wcet);
    level
        .analyse(load, start, false, &mut Budget::new(STEPS))
        .response
}

pub(super) const fn preemptive<'a>(task: &'a Task, higher: &'a [Task]) -> Level<'a> {
    Level {
        task,
        higher,
        blocking: task.blocking,
        tail: 0,
    }
}

/// Whether every task of a set in priority order meets its deadline. Exact, by the response times of Lehoczky (RTSS
/// 1990) and Tindell, Burns & Wellings (1994): see [`response_times`].
///
/// The witness of a refusal is the highest task that can miss: `instant` is the longest window in which its late job
/// would still be in time (its deadline less its jitter, from the start of the busy period); `demand` is the work to be
/// done first, namely the parts and the task's blocking; `supply` is the instant, for the cpu is dedicated. A set with a
/// task that misses is refused even if another task is undecided.
///
/// ```
/// use timecell_analysis::{Task, Verdict, fp};
///
/// let tasks = [Task::new(2, 5), Task::new(4, 7)];
/// let Verdict::Unschedulable(witness) = fp::verdict(&tasks) else { panic!() };
/// assert_eq!((witness.task, witness.instant, witness.demand), (1, 7, 8)); // 4 + two jobs of 2
/// ```
pub fn verdict(tasks: &[Task]) -> Verdict {
    verdict_within(tasks, STEPS)
}

/// [`verdict`] (Lehoczky, RTSS 1990) with another limit on the steps, beyond which it is undecided.
///
/// ```
/// use timecell_analysis::{Task, fp};
///
/// assert!(fp::verdict_within(&[Task::new(2, 5), Task::new(3, 7)], 1_000).is_schedulable());
/// ```
pub fn verdict_within(tasks: &[Task], steps: u64) -> Verdict {
    let mut out = vec![0; tasks.len()];
    let covered = covered(tasks, &mut out);
    let mut budget = Budget::new(steps);
    let mut undecided = None;
    let refused = rest(tasks, &out[..covered], true, &mut budget, |found, _| {
        if let Response::Undecided(why) = &found.response {
            undecided.get_or_insert(why.clone());
        }
        !matches!(found.response, Response::Misses(_))
    });
    match (refused, undecided) {
        (Some((index, found)), undecided) => {
            let level = preemptive(&tasks[index], &tasks[..index]);
            match found.late.and_then(|late| level.witness(index, &late)) {
                Some(witness) => Verdict::Unschedulable(witness),
                None => Verdict::Undecided(undecided.unwrap_or(Undecided::Overflow)),
            }
        }
        (None, Some(why)) => Verdict::Undecided(why),
        (None, None) => Verdict::Schedulable,
    }
}

/// How many tasks the fast analysis proves, from the highest.
fn covered(tasks: &[Task], out: &mut [Ns]) -> usize {
    match response_times_into(tasks, out) {
        Fast::AllMeet => tasks.len(),
        Fast::Misses(index) | Fast::NotCovered(index) => index,
    }
}

/// Analyses the tasks after `proved`, whose response times are known, until `go_on` says no; returns the last then.
fn rest(
    tasks: &[Task],
    proved: &[Ns],
    first_miss: bool,
    budget: &mut Budget,
    mut go_on: impl FnMut(&Found, usize) -> bool,
) -> Option<(usize, Found)> {
    let mut illegal = None;
    let mut above = proved
        .last()
        .map(|&bound| bound - tasks[proved.len() - 1].jitter);
    let mut load = None;
    for index in proved.len()..tasks.len() {
        let task = &tasks[index];
        if illegal.is_none() {
            illegal = legal(task).err();
        }
        let found = if let Some(why) = &illegal {
            Found {
                response: Response::Undecided(why.clone()),
                late: None,
                first_window: None,
            }
        } else {
            let level = preemptive(task, &tasks[..index]);
            let mut start = once(task.blocking, level.higher, task.wcet);
            if let (Some(above), Some(before)) = (above, index.checked_sub(1))
                && let Some(more) = task.blocking.checked_sub(tasks[before].blocking)
            {
                start = start.max(above.saturating_add(task.wcet).saturating_add(more));
            }
            // Loads only grow downwards: a bound below 1 on the whole set holds for every level.
            let load = match load.get_or_insert_with(|| utilization::compare_with_one(tasks)) {
                Ordering::Less => Ordering::Less,
                _ => level.load(),
            };
            level.analyse(load, start, first_miss, budget)
        };
        above = found.first_window;
        if !go_on(&found, index) {
            return Some((index, found));
        }
    }
    None
}

/// A lower bound of every window: one job of each.
pub(super) fn once(blocking: Ns, higher: &[Task], own: Ns) -> Ns {
    saturate(
        higher
            .iter()
            .map(|task| u128::from(task.wcet))
            .sum::<u128>()
            + u128::from(blocking)
            + u128::from(own),
    )
}

/// Whether the times are in range. A wcet beyond the deadline is legal: it is a miss.
pub(crate) fn legal(task: &Task) -> Result<(), Undecided> {
    match task.check() {
        Ok(()) | Err(TaskError::BeyondDeadline { .. }) => Ok(()),
        Err(why) => Err(Undecided::NotCovered(why.to_string())),
    }
}
