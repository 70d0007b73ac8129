//! Which cells may run in two versions for a while.

use std::collections::BTreeMap;

use model::Enforcer;

use super::Plan;
use super::plan::pin;
use crate::admit::{Admission, Facts, Outcome, decision};
use crate::dirs::place;

/// Which cells of the old mission may run beside the new one for a while: those of `old`, in that order, as long as admission
/// says that every guarantee of both is kept. The others have to end before the new versions are started, for these reasons,
/// clauses by the cells' names.
pub(super) fn may_stay(
    before: &Plan,
    after: &Plan,
    old: &[String],
    facts: &Facts,
) -> (Vec<String>, BTreeMap<String, String>) {
    // A best-effort cell may still be where the new mission has cpus to itself.
    let in_the_way = |name: &&String| {
        let partitions = &after.admission.partitions;
        let cpus = before.admission.best_effort(name).unwrap_or_default();
        let changes = |cpu: &u32| {
            let of = |plan: &Plan| plan.admission.partition_of(&[*cpu]).map(<[u32]>::to_vec);
            partitions.iter().flatten().any(|apart| apart == cpu) && of(before) != of(after)
        };
        cpus.iter().any(changes)
    };
    let is_partition = |name: &&String| {
        let cell = before.inputs.mission().cell(name);
        cell.is_some_and(|cell| cell.partition.is_some())
    };
    let is_framed = |name: &&String| {
        let grant = before.admission.grant(name);
        grant.is_some_and(|grant| grant.enforcer == Enforcer::EvlTp)
    };
    let (partitions, old): (Vec<&String>, Vec<&String>) = old.iter().partition(is_partition);
    let (framed, old): (Vec<&String>, Vec<&String>) = old.into_iter().partition(is_framed);
    let (first, old): (Vec<&String>, Vec<&String>) = old.into_iter().partition(in_the_way);
    let old: Vec<String> = old.into_iter().cloned().collect();
    let (stay, mut reasons) = held_may_stay(before, after, &old, facts);
    for name in partitions {
        let why = "its cpus and its memory are its own".to_owned();
        reasons.insert(name.clone(), why);
    }
    for name in framed {
        let why = "a time partition of EVL has one version of it".to_owned();
        reasons.insert(name.clone(), why);
    }
    for name in first {
        let why = "a cpu of it becomes a cpuset partition".to_owned();
        reasons.insert(name.clone(), why);
    }
    (stay, reasons)
}

/// Why the frames of time partitions cannot become those of the next plan, a sentence: a cell that is none of the `old` ones, which
/// end first, is in windows that would change. `None`: they can.
pub(super) fn keeps_frames(before: &Plan, after: &Plan, old: &[String]) -> Option<String> {
    let frames = before.admission.frames.iter();
    let mut changed = frames.filter(|frames| !after.admission.frames.contains(frames));
    changed.find_map(|frames| {
        let mut cells = (frames.windows.iter()).filter_map(|window| window.cell.as_ref());
        let stays = cells.find(|cell| !old.contains(cell))?;
        Some(format!(
            "the windows of cpu {} would change, which EVL refuses while threads of `{stays}` are in them; `timecell down` and \
             `timecell up` change them",
            frames.cpu
        ))
    })
}

/// The same where best-effort cells are in nobody's way.
fn held_may_stay(
    before: &Plan,
    after: &Plan,
    old: &[String],
    facts: &Facts,
) -> (Vec<String>, BTreeMap<String, String>) {
    let facts = Facts {
        runs_under: after.admission.usual(),
        ..facts.clone()
    };
    let mut together = after.inputs.mission().clone();
    for cell in &mut together.cells {
        if let Some(grant) = after.admission.grant(&cell.name) {
            pin(cell, grant);
        }
    }
    let add = |together: &mut model::mission::Mission, name: &String| {
        let Some(cell) = before.inputs.mission().cell(name) else {
            return;
        };
        let mut cell = cell.clone();
        if let Some(grant) = before.admission.grant(name) {
            pin(&mut cell, grant);
        }
        cell.name = place(name, true);
        together.cells.push(cell);
    };
    let holds = |together: &model::mission::Mission| {
        let inputs = &after.inputs;
        let latency_ns = inputs.latency_ns.max(before.inputs.latency_ns);
        refusal(&decision(together, &facts, &inputs.measured, latency_ns))
    };
    let held = |name: &String| {
        let outcome = before.admission.cells.iter();
        let mut granted = outcome.filter_map(|outcome| match outcome {
            Outcome::Granted(grant) => Some(&grant.cell),
            _ => None,
        });
        granted.any(|cell| cell == name)
    };
    let mut all = together.clone();
    old.iter().for_each(|name| add(&mut all, name));
    if !old.iter().any(held) || holds(&all).is_none() {
        return (old.to_vec(), BTreeMap::new());
    }
    let mut stay = Vec::new();
    let mut reasons = BTreeMap::new();
    for name in old {
        if !held(name) {
            stay.push(name.clone());
            continue;
        }
        let mut tried = together.clone();
        add(&mut tried, name);
        match holds(&tried) {
            None => {
                together = tried;
                stay.push(name.clone());
            }
            Some(why) => {
                reasons.insert(name.clone(), why);
            }
        }
    }
    (stay, reasons)
}

/// Why two versions are not admitted together, a clause; `None`: they are.
fn refusal(admission: &Admission) -> Option<String> {
    if admission.is_admitted() {
        return None;
    }
    // The second place of a cell has a dot in its name, which means nothing to the reader.
    let called = |cell: &str| match cell.split_once('.') {
        Some((cell, _)) => format!("the old `{cell}`"),
        None => format!("`{cell}`"),
    };
    let of_cell = admission.cells.iter().find_map(|outcome| match outcome {
        Outcome::Refused(refused) => Some(format!(
            "with both, {} is refused: {}",
            called(&refused.cell),
            refused.why
        )),
        _ => None,
    });
    of_cell.or_else(|| {
        admission
            .refusals
            .first()
            .map(|why| format!("with both, {why}"))
    })
}
