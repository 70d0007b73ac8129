//! The study of servers among each other.

use std::collections::{BTreeSet, HashMap};

use analysis::inside::{self, verdict_within};
use analysis::sensitivity::critical_scaling;
use analysis::server::{LocalTask, Response, ServerSupply, response_time};
use analysis::{Ns, Task, Verdict, Witness};
use model::taskset::{Policy, Refill, ServerKind, TaskCell, TaskSet};
use serde::Serialize;

use super::super::fix::Fix;
use super::super::study::{
    CellStudy, MOST_SCALED, Outcome, ReservationNs, Room, STEPS, policy, task_studies, urgent_first,
};
use super::fix::{ServerFix, server_fixes, task_fixes};
use super::group::{Answer, Group};

/// A server among those on its cpu, all times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStudy {
    /// `deferrable`, `cbs` and so on, as task-set files call it.
    pub kind: &'static str,
    /// Its priority; a larger number is more urgent.
    pub priority: Option<i64>,
    /// The cpu it is on.
    pub cpu: u32,
    /// Whether the servers on the cpu are refilled together.
    pub refilled_together: bool,
    /// The latest time after a refill by which the whole budget has been supplied; none beyond the deadline.
    pub response_ns: Option<Ns>,
    /// Time after a refill by which it must have been supplied.
    pub deadline_ns: Ns,
    /// Whether it is; fails only if a shortage is proved.
    pub outcome: Outcome,
    /// Why there is no answer.
    pub undecided: Option<String>,
    /// Why it can be late.
    pub shortage: Option<ServerShortage>,
    /// The fixes, the smallest change first; empty if they were not searched for.
    pub fixes: Vec<ServerFix>,
    /// The test's count against a deadline inside that is neither shown to hold nor proved to be missed.
    pub doubt: Option<Witness>,
}

/// More budget due by an instant than the cpu has time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerShortage {
    /// Time after the worst-case refill.
    pub instant_ns: Ns,
    /// Cpu time that is due by then.
    pub demand_ns: Ns,
    /// Cpu time that is available by then.
    pub supply_ns: Ns,
    /// The parts of the demand.
    pub parts: Vec<ShortagePart>,
}

/// One server's share of a demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShortagePart {
    /// The name of its cell.
    pub cell: String,
    /// Number of budgets that count.
    pub budgets: u64,
    /// Their total time.
    pub demand_ns: Ns,
}

/// The studies of all cells with servers, by their places in the set; with `fixing`, the fixes of those that fail.
pub(in super::super) fn studies(set: &TaskSet, fixing: bool) -> HashMap<usize, CellStudy> {
    let served = set.cells.iter().filter_map(|cell| cell.server);
    let cpus: BTreeSet<u32> = served.map(|server| server.on_cpu()).collect();
    let mut studies = HashMap::new();
    for cpu in cpus {
        let group = Group::on_cpu(set, cpu);
        for answer in group.answers() {
            let place = answer.place;
            if let Some(study) = cell_study(set, &group, answer, fixing) {
                studies.insert(place, study);
            }
        }
    }
    studies
}

fn cell_study(set: &TaskSet, group: &Group<'_>, answer: Answer, fixing: bool) -> Option<CellStudy> {
    let place = answer.place;
    let cell = set.cells.get(place)?;
    let server = server_study(set, group, &answer, fixing)?;
    let inside = answer.inside;
    let outcome = Outcome::of(&inside.verdict);
    let against = match &inside.verdict {
        Verdict::Unschedulable(witness) => Some(witness),
        _ => server.doubt.as_ref(),
    };
    let fixes: Vec<Fix> = match against {
        Some(witness) if fixing && server.outcome == Outcome::Holds => {
            task_fixes(set, place, witness)
        }
        _ => Vec::new(),
    };
    let room = if fixing && server.outcome == Outcome::Holds {
        group
            .supply_of_held(place)
            .and_then(|supply| room(cell, &supply))
            // A cell that holds because it never uses up its budget can take more than this test, which does not know that,
            // shows.
            .filter(|room| outcome != Outcome::Holds || room.per_mille >= 1_000)
    } else {
        None
    };
    Some(CellStudy {
        name: cell.name.clone(),
        policy: policy(cell.policy),
        reservation: cell.reservation.map(ReservationNs::of),
        proof: proof(cell, server.refilled_together),
        server: Some(server),
        special: None,
        outcome,
        tasks: task_studies(cell, &inside),
        verdict: inside.verdict,
        room,
        fixes,
    })
}

fn server_study(
    set: &TaskSet,
    group: &Group<'_>,
    answer: &Answer,
    fixing: bool,
) -> Option<ServerStudy> {
    let (place, response) = (answer.place, &answer.server);
    let cell = set.cells.get(place)?;
    let (server, reservation) = (cell.server?, cell.reservation?);
    let (outcome, witness, undecided) = match response {
        Response::Bounded(_) => (Outcome::Holds, None, None),
        Response::Exceeded(witness) if answer.proved_short => (Outcome::Fails, Some(witness), None),
        Response::Exceeded(witness) => (Outcome::Undecided, Some(witness), None),
        Response::Undecided(why) => (Outcome::Undecided, None, Some(why.to_string())),
    };
    Some(ServerStudy {
        kind: server.kind.name(),
        priority: server.priority,
        cpu: server.on_cpu(),
        refilled_together: set.refill == Refill::Together,
        response_ns: response.bound(),
        deadline_ns: ReservationNs::of(reservation).deadline_ns,
        outcome,
        undecided,
        shortage: witness.map(|witness| shortage(group, witness)),
        fixes: match witness {
            Some(witness) if fixing => {
                let parts = witness.parts.iter();
                let parts = parts.filter_map(|part| Some(group.cell(part.task)?.0));
                server_fixes(set, place, &parts.collect::<Vec<_>>())
            }
            _ => Vec::new(),
        },
        doubt: answer.doubt.clone(),
    })
}

fn shortage(group: &Group<'_>, witness: &Witness) -> ServerShortage {
    let part = |part: &analysis::Part| {
        let (_, cell) = group.cell(part.task)?;
        (part.jobs > 0).then(|| ShortagePart {
            cell: cell.name.clone(),
            budgets: part.jobs,
            demand_ns: part.demand,
        })
    };
    ServerShortage {
        instant_ns: witness.instant,
        demand_ns: witness.demand,
        supply_ns: witness.supply,
        parts: witness.parts.iter().filter_map(part).collect(),
    }
}

/// The critical scaling factor of a cell whose server gets its budget.
fn room(cell: &TaskCell, supply: &ServerSupply) -> Option<Room> {
    if cell.tasks.len() > MOST_SCALED {
        return None;
    }
    let verdict = |tasks: &[Task]| {
        if cell.policy == Policy::Edf {
            return verdict_within(tasks, inside::Policy::Edf, supply, STEPS);
        }
        let tasks: Vec<LocalTask> = tasks.iter().copied().map(LocalTask::unbound).collect();
        let mut responses = (0..tasks.len()).map(|task| response_time(supply, &tasks, task));
        let late = responses.find(|response| response.bound().is_none());
        late.map_or(Verdict::Schedulable, |response| match response {
            Response::Exceeded(witness) => Verdict::Unschedulable(witness),
            Response::Undecided(why) => Verdict::Undecided(why),
            Response::Bounded(_) => Verdict::Schedulable,
        })
    };
    let scaling = critical_scaling(&urgent_first(cell), verdict);
    Some(Room::of(&scaling, cell))
}

/// Which analysis answers for the cell, and its claim; see the documentation of crate `analysis`.
fn proof(cell: &TaskCell, together: bool) -> String {
    let test = match cell.policy.order() {
        Some(_) => "response-time analysis",
        None => "processor demand (QPA)",
    };
    let kind = cell.server.map(|server| server.kind);
    let Some(kind) = kind.filter(|&kind| kind != ServerKind::ConstantBandwidth) else {
        return format!(
            "{test} on the periodic resource model, since the cbs servers on the cpu do not \
             exceed it, sufficient"
        );
    };
    let above = if together {
        "refilled together with those above it (the explicit-deadline model)"
    } else {
        "among the servers above it (Davis & Burns 2005)"
    };
    format!("{test} in a {} server {above}, sufficient", kind.name())
}
