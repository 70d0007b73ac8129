//! Notes on omissions and assumptions of an admission.

use model::Enforcer;
use model::mission::{CellClass, Mission};

use super::cpu::Candidate;
use super::{Facts, ample};

/// Adds those that apply.
pub(super) fn of(
    mission: &Mission,
    candidates: &[Candidate<'_>],
    facts: &Facts,
    notes: &mut Vec<String>,
) {
    if mission.modes.is_some() {
        notes.push(
            "cells of high criticality are admitted with their high-mode needs while all cells of low criticality run, which \
             covers both modes and the switch between them"
                .to_owned(),
        );
    }
    if candidates
        .iter()
        .any(|cell| cell.asked.enforcer == Enforcer::CpusetOnly)
    {
        notes.push(
            "cells under cpuset-only have no enforced budget: their guarantees hold while every cell keeps to what it declares"
                .to_owned(),
        );
    }
    let frozen = |cell: &Candidate<'_>| cell.asked.enforcer == Enforcer::Freezer;
    if let (Some(first), true) = (facts.unlimited.first(), candidates.iter().any(frozen)) {
        notes.push(format!(
            "the freezer may be kept waiting by the owner of {}, which has no limit on descendants (`timecell doctor`, \
             delegated-groups)",
            first.display()
        ));
    }
    notes.extend((mission.cells.iter()).filter(|cell| cell.rights.evl).map(|cell| {
        format!(
            "cell `{}` may run threads of EVL: with FIFO at any priority, CAP_SYS_NICE, CAP_IPC_LOCK and CAP_SYS_RAWIO while they \
             are attached, quotas and time partitions of every cpu, and cpu time that no budget but the freezer sees; nothing is \
             guaranteed to another cell on its cpus while they run",
            cell.name
        )
    }));
    notes.extend(ample::notes(mission, candidates));
    let in_class = |cell: &Candidate<'_>| cell.asked.class == CellClass::Deadline;
    let server = facts
        .deadline
        .as_ref()
        .ok()
        .and_then(|domain| domain.fair_server);
    if let Some(server) = server.filter(|_| candidates.iter().any(in_class)) {
        notes.push(format!(
            "the kernel's fair server is ignored: where real-time threads keep ordinary work off a cpu for long, it runs before \
             threads of SCHED_DEADLINE for up to {:.0} ms in {:.0} ms",
            server.runtime.unwrap_or(0) as f64 / 1e6,
            server.period as f64 / 1e6
        ));
    }
    let silent = (mission.cells.iter()).any(|cell| cell.is_real_time() && !cell.tasks.is_empty());
    if silent && mission.latency.is_none() {
        notes.push(
            "wake-up latency ignored; set `latency`, or `latency_run` to a run of `timecell bench latency`"
                .to_owned(),
        );
    }
}
