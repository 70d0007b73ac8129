//! The study of a task set: every test that applies, with its witness.

use analysis::inside::{self, Inside, verdict_within};
use analysis::sensitivity::{Scaling, critical_scaling};
use analysis::{Ns, Task, Undecided, Verdict, edf, fp};
use model::Duration;
use model::taskset::{Order, Policy, Reservation, TaskCell, TaskSet};
use serde::Serialize;

use super::admission::{Admission, Known, RtLimit, admission};
use super::fix::{Fix, fixes};
use super::judge::{CellSupply, judge, ns, task};
use super::ordered::settled;
use super::over_fixed;
use super::servers::{self, ServerStudy};
use super::special::Special;

/// Larger cells are not scaled, since that takes dozens of verdicts.
pub(super) const MOST_SCALED: usize = 256;

/// Steps of each of those verdicts; an undecided one counts as a no.
pub(super) const STEPS: u64 = 1 << 24;

model::choice! {
    /// The outcome for one task or cell.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome: word {
        /// The deadline holds.
        Holds = "holds",
        /// A deadline can be missed.
        Fails = "fails",
        /// No answer; never to be read as yes.
        Undecided = "undecided",
    }
}

impl Outcome {
    /// Fails before undecided before holds.
    #[must_use]
    pub const fn worst(self, other: Outcome) -> Outcome {
        match (self, other) {
            (Outcome::Fails, _) | (_, Outcome::Fails) => Outcome::Fails,
            (Outcome::Undecided, _) | (_, Outcome::Undecided) => Outcome::Undecided,
            _ => Outcome::Holds,
        }
    }

    /// The clause on deadlines that were judged by a lower bound of the supply: they are shown to hold, or nothing is shown,
    /// since the actual supply may be larger.
    pub(super) const fn by_a_lower_bound(self) -> &'static str {
        match self {
            Outcome::Holds => "with that, every deadline holds",
            Outcome::Fails | Outcome::Undecided => "that does not show that every deadline holds",
        }
    }

    /// The outcome of a verdict.
    pub(super) const fn of(verdict: &Verdict) -> Outcome {
        match verdict {
            Verdict::Schedulable => Outcome::Holds,
            Verdict::Unschedulable(_) => Outcome::Fails,
            Verdict::Undecided(_) => Outcome::Undecided,
        }
    }
}

/// One task's answer, all times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskStudy {
    /// Its name.
    pub name: String,
    /// Worst-case execution time.
    pub wcet_ns: Ns,
    /// Least time between arrivals.
    pub period_ns: Ns,
    /// Relative deadline.
    pub deadline_ns: Ns,
    /// Release jitter.
    pub jitter_ns: Ns,
    /// Blocking, a latency bound included.
    pub blocking_ns: Ns,
    /// Response-time bound, counted from the arrival; none beyond the deadline.
    pub response_ns: Option<Ns>,
    /// Deadline less bound.
    pub slack_ns: Option<Ns>,
    /// Whether the deadline holds.
    pub outcome: Outcome,
}

/// A reservation, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReservationNs {
    /// Cpu time in each period.
    pub budget_ns: Ns,
    /// Time between refills.
    pub period_ns: Ns,
    /// Time after a refill by which the budget is supplied.
    pub deadline_ns: Ns,
}

impl ReservationNs {
    pub(super) fn of(reservation: Reservation) -> ReservationNs {
        ReservationNs {
            budget_ns: ns(reservation.budget),
            period_ns: ns(reservation.period),
            deadline_ns: ns(reservation.deadline),
        }
    }
}

/// How much more work a cell can take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Room {
    /// The largest factor for every wcet with which the cell still holds, in thousandths.
    pub per_mille: u64,
    /// Index of the task that misses first beyond it, if that is known.
    pub bottleneck: Option<usize>,
}

/// One cell's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CellStudy {
    /// Its name.
    pub name: String,
    /// `fp rm`, `edf` and so on.
    pub policy: String,
    /// Its reservation; none: a whole cpu.
    pub reservation: Option<ReservationNs>,
    /// The server that keeps the reservation among others, if the cell has one, and whether it gets its budget.
    pub server: Option<ServerStudy>,
    /// Further results for policies other than given fixed priorities and EDF.
    pub special: Option<Special>,
    /// Which analysis answered, and its claim.
    pub proof: String,
    /// Whether every deadline holds.
    pub outcome: Outcome,
    /// The answer with its witness.
    pub verdict: Verdict,
    /// Its tasks, in the order of the file.
    pub tasks: Vec<TaskStudy>,
    /// How far every wcet may grow, if it was searched for and is known.
    pub room: Option<Room>,
    /// The fixes, the smallest change first; empty if every deadline holds, or if they were not searched for.
    pub fixes: Vec<Fix>,
}

/// Whether the cells fit onto the cpus together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Together {
    /// Number of cpus.
    pub cpus: u32,
    /// Whether the reservations fit; each is supplied only then.
    pub outcome: Outcome,
    /// The sentence.
    pub what: String,
    /// The cpus of each cell, if they fit; several for one under global scheduling.
    pub placement: Option<Vec<Vec<usize>>>,
}

/// The answer on a task set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Study {
    /// The cells, in the order of the file.
    pub cells: Vec<CellStudy>,
    /// Whether the cells fit together, if the file says how many cpus there are.
    pub together: Option<Together>,
    /// Whether Linux would admit the reservations, if there are any; not part of the outcome.
    pub linux: Option<Admission>,
    /// The parts of the file that no test covers, a clause each: without them no deadline is shown to hold.
    pub uncovered: Vec<String>,
}

impl Study {
    /// Marks these cells, whose threads have no real-time class, as undecided: their deadlines would only hold in a
    /// real-time class.
    pub fn guarantees_nothing(&mut self, names: &[String]) {
        for cell in self
            .cells
            .iter_mut()
            .filter(|cell| names.contains(&cell.name))
        {
            for task in &mut cell.tasks {
                task.outcome = task.outcome.worst(Outcome::Undecided);
            }
            if cell.outcome == Outcome::Holds {
                cell.outcome = Outcome::Undecided;
                cell.verdict = Verdict::Undecided(Undecided::NotCovered(
                    "SCHED_OTHER, SCHED_BATCH and SCHED_IDLE guarantee no deadline; in a \
                     real-time class, every deadline would hold under this policy"
                        .to_owned(),
                ));
            }
        }
    }

    /// Marks these cells, whose threads run on any of several cpus and were tested on one, as undecided where they miss a deadline: a
    /// set that holds on one cpu holds on all of them, but not the other way round.
    pub fn tested_on_one_cpu(&mut self, names: &[String]) {
        let cells = self.cells.iter_mut();
        for cell in cells.filter(|cell| names.contains(&cell.name)) {
            "any of several cpus, tested on one of them".clone_into(&mut cell.proof);
            if cell.outcome != Outcome::Fails {
                continue;
            }
            cell.outcome = Outcome::Undecided;
            cell.verdict = Verdict::Undecided(Undecided::NotCovered(
                "one of its cpus alone would be too little for all its threads".to_owned(),
            ));
            for task in &mut cell.tasks {
                if task.outcome == Outcome::Fails {
                    task.outcome = Outcome::Undecided;
                }
            }
        }
    }

    /// Fails if anything fails, else undecided if anything is undecided or not covered.
    pub fn outcome(&self) -> Outcome {
        let whole = match self.uncovered.is_empty() {
            true => Outcome::Holds,
            false => Outcome::Undecided,
        };
        self.deadlines().worst(self.supplied()).worst(whole)
    }

    /// Whether the deadlines hold, were every reservation supplied.
    pub(super) fn deadlines(&self) -> Outcome {
        let cells = self.cells.iter().map(|cell| cell.outcome);
        cells.fold(Outcome::Holds, Outcome::worst)
    }

    /// Whether every reservation is supplied, as far as the file names the work beside it.
    pub(super) fn supplied(&self) -> Outcome {
        let servers = self.cells.iter().filter_map(|cell| cell.server.as_ref());
        servers
            .map(|server| server.outcome)
            .chain(self.together.as_ref().map(|t| t.outcome))
            .fold(Outcome::Holds, Outcome::worst)
    }

    /// Whether it is only assumed that the reservations are supplied beside each other.
    pub(super) fn assumes_supply(&self) -> bool {
        let reserves = |cell: &CellStudy| cell.reservation.is_some() && cell.server.is_none();
        self.together.is_none() && self.cells.iter().any(reserves)
    }
}

/// The same set with a bound on wake-up latency added to the blocking of every task.
#[must_use]
pub fn with_latency(set: &TaskSet, latency: Duration) -> TaskSet {
    let mut set = set.clone();
    for task in set.cells.iter_mut().flat_map(|cell| &mut cell.tasks) {
        task.blocking = Duration::from_ns(task.blocking.ns().saturating_add(latency.ns()));
    }
    set
}

/// Tests every cell; with `fixing`, searches for changes that fix those that miss a deadline.
pub fn study(set: &TaskSet, fixing: bool) -> Study {
    let mut served = servers::studies(set, fixing);
    let cells = set.cells.iter().enumerate();
    let mut study = Study {
        linux: None,
        uncovered: Vec::new(),
        cells: cells
            .map(|(place, cell)| {
                served
                    .remove(&place)
                    .unwrap_or_else(|| cell_study(cell, fixing))
            })
            .collect(),
        together: together(set),
    };
    study.linux = admission(set, &study, RtLimit::KERNEL, Known::NOTHING);
    study
}

fn cell_study(cell: &TaskCell, fixing: bool) -> CellStudy {
    let inside = judge(cell).unwrap_or_else(|| Inside {
        verdict: Verdict::Undecided(Undecided::NotCovered("the reservation is none".to_owned())),
        responses: vec![None; cell.tasks.len()],
        missed: Vec::new(),
    });
    let outcome = Outcome::of(&inside.verdict);
    let tasks = task_studies(cell, &inside);
    let special = Special::of(cell, fixing);
    let against = match &inside.verdict {
        Verdict::Unschedulable(witness) => Some(witness),
        Verdict::Schedulable => None,
        Verdict::Undecided(_) => special.as_ref().and_then(Special::doubt),
    };
    let fixes = match against.filter(|_| fixing) {
        Some(witness) => {
            let mut parts: Vec<usize> = witness.parts.iter().map(|part| part.task).collect();
            if matches!(special, Some(Special::Global(_))) {
                // On several cpus any task may delay the one that is late.
                parts = (0..cell.tasks.len()).collect();
            }
            fixes(cell, witness.task, &parts)
        }
        None => Vec::new(),
    };
    CellStudy {
        name: cell.name.clone(),
        policy: policy(cell.policy),
        reservation: cell.reservation.map(ReservationNs::of),
        server: None,
        proof: special
            .as_ref()
            .and_then(|special| special.proof(cell))
            .unwrap_or_else(|| proof(cell)),
        special,
        outcome,
        verdict: inside.verdict,
        tasks,
        room: if fixing { room(cell) } else { None },
        fixes,
    }
}

/// The result for each task of a cell.
pub(super) fn task_studies(cell: &TaskCell, inside: &Inside) -> Vec<TaskStudy> {
    let outcome = Outcome::of(&inside.verdict);
    (cell.tasks.iter().zip(&inside.responses).enumerate())
        .map(|(place, (task, &response_ns))| {
            let outcome = match response_ns {
                Some(_) => Outcome::Holds,
                None if inside.missed.contains(&place) => Outcome::Fails,
                None if outcome == Outcome::Holds => Outcome::Holds,
                None => Outcome::Undecided,
            };
            TaskStudy {
                name: task.name.clone(),
                wcet_ns: ns(task.wcet),
                period_ns: ns(task.period),
                deadline_ns: ns(task.deadline),
                jitter_ns: ns(task.jitter),
                blocking_ns: ns(task.blocking),
                response_ns,
                slack_ns: response_ns.map(|bound| ns(task.deadline).saturating_sub(bound)),
                outcome,
            }
        })
        .collect()
}

/// The critical scaling factor (Lehoczky, Sha and Ding, RTSS 1989) of a cell.
fn room(cell: &TaskCell) -> Option<Room> {
    if cell.tasks.len() > MOST_SCALED {
        return None;
    }
    let cell = &*settled(cell);
    let supply = CellSupply::of(cell)?;
    let tasks = urgent_first(cell);
    let scaling = match (cell.policy, &cell.reservation) {
        (Policy::AmcRtb(_) | Policy::EdfVd | Policy::GlobalFixed(..) | Policy::GlobalEdf(_), _) => {
            return None;
        }
        (Policy::Fixed(Order::Audsley), _) => return None,
        (Policy::EdfOverFixed, _) => {
            critical_scaling(&tasks, |tasks| over_fixed::verdict(cell, tasks, STEPS))
        }
        (Policy::Edf, None) => critical_scaling(&tasks, |tasks| edf::verdict_within(tasks, STEPS)),
        (Policy::Fixed(_), None) => {
            critical_scaling(&tasks, |tasks| fp::verdict_within(tasks, STEPS))
        }
        (policy, Some(_)) => {
            let policy = match policy.order() {
                Some(_) => inside::Policy::FixedPriority,
                None => inside::Policy::Edf,
            };
            critical_scaling(&tasks, |tasks| {
                verdict_within(tasks, policy, &supply, STEPS)
            })
        }
    };
    Some(Room::of(&scaling, cell))
}

/// The tasks of a cell as those of crate `analysis`, the most urgent first.
pub(super) fn urgent_first(cell: &TaskCell) -> Vec<Task> {
    let order = cell.by_urgency().into_iter();
    order.map(|place| task(&cell.tasks[place])).collect()
}

impl Room {
    /// The scaling of a cell's tasks in the order of [`urgent_first`].
    pub(super) fn of(scaling: &Scaling, cell: &TaskCell) -> Room {
        let first = scaling.bottleneck();
        Room {
            per_mille: scaling.per_mille,
            bottleneck: first.and_then(|task| cell.by_urgency().get(task).copied()),
        }
    }
}

pub(super) fn policy(policy: Policy) -> String {
    let order = policy
        .order()
        .map(|order| format!(" {}", order_name(order)));
    format!("{}{}", policy.name(), order.unwrap_or_default())
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Listed => "in the file's order",
        Order::Priority => "by priority",
        Order::Rate | Order::Deadline | Order::Audsley => order.name(),
    }
}

/// Which analysis answers for the cell, and its claim; see the documentation of crate `analysis`.
fn proof(cell: &TaskCell) -> String {
    let test = match cell.policy.order() {
        None if cell.policy == Policy::EdfOverFixed => {
            "processor demand (QPA) of tasks without priorities, response-time analysis below them"
        }
        Some(Order::Audsley) => "response-time analysis with Audsley's priorities",
        Some(_) => "response-time analysis",
        None => "processor demand (QPA)",
    };
    let supply = match &cell.reservation {
        None => "a cpu of its own",
        Some(r) if r.deadline == r.period => "the periodic resource model",
        Some(_) => "the explicit-deadline model",
    };
    let blocked = cell.tasks.iter().any(|task| task.blocking.ns() > 0);
    let claim = if cell.policy == Policy::EdfOverFixed {
        "sufficient"
    } else if blocked {
        "sufficient: the actual blocking may be shorter"
    } else {
        "exact for sporadic tasks"
    };
    format!("{test} on {supply}, {claim}")
}

/// Whether the reservations, a whole cpu for a cell without one, fit onto the cpus.
fn together(set: &TaskSet) -> Option<Together> {
    let cpus = set.cpus?;
    let fitted = super::together::fit(set, cpus, &super::admission::admits);
    Some(Together {
        cpus,
        outcome: fitted.outcome,
        what: fitted.what,
        placement: fitted.cpus,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::small_cell;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        /// No task's word contradicts its bound or the word of its cell.
        #[test]
        fn words_of_tasks_agree_with_that_of_the_cell(cell in small_cell()) {
            let study = cell_study(&cell, false);
            let words: Vec<Outcome> = study.tasks.iter().map(|task| task.outcome).collect();
            for task in &study.tasks {
                if task.response_ns.is_some() {
                    prop_assert_eq!(task.outcome, Outcome::Holds, "{:?}", study);
                }
            }
            match study.outcome {
                Outcome::Holds => prop_assert!(words.iter().all(|&word| word == Outcome::Holds), "{:?}", study),
                Outcome::Fails => prop_assert!(words.contains(&Outcome::Fails), "{:?}", study),
                Outcome::Undecided => prop_assert!(!words.contains(&Outcome::Fails), "{:?}", study),
            }
        }
    }
}
