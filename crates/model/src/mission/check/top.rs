//! Checks of the mission as a whole.

use crate::file::Faults;
use crate::mission::{Mission, Place, Supervisor, Uids};

/// Checks of the mission as a whole.
pub(super) fn check(mission: &Mission, faults: &mut Faults<'_>) {
    let top = Place::top();
    if faults.says(&top.key("latency")) && faults.says(&top.key("latency_run")) {
        faults.report(
            &top,
            &["latency_run"],
            "both `latency` and `latency_run` are set",
            "remove one of the two",
        );
    }
    if mission
        .notify
        .first()
        .is_some_and(|program| !program.starts_with('/'))
    {
        faults.report(
            &top,
            &["notify"],
            format!(
                "`{}` is not an absolute path",
                mission.notify[0].escape_debug()
            ),
            "write the program's full path, such as \"/usr/bin/logger\"",
        );
    }
    if mission.modes.is_some() {
        let high = mission.cells.iter().any(|cell| cell.is_high());
        let low = mission.cells.iter().any(|cell| !cell.is_high());
        let clear = (0..mission.cells.len()).all(|index| {
            faults.is_clear(&Place::cell(index))
                && faults.is_clear(&Place::cell(index).key("criticality"))
        });
        if clear && !(high && low) {
            let missing = if high { "lo" } else { "hi" };
            faults.report(
                &top,
                &["modes"],
                format!("there are two modes but no cell of criticality `{missing}`"),
                "remove [modes], or give cells a criticality",
            );
        }
    }
    let Uids { lowest, highest } = mission.uids;
    if highest < lowest {
        faults.report(
            &top.key("uids"),
            &["highest"],
            format!("{highest} is below the lowest user id, {lowest}"),
            "swap them",
        );
    }
    supervisor(mission, faults);
    cpus(mission, faults);
}

/// A budget within its period.
fn supervisor(mission: &Mission, faults: &mut Faults<'_>) {
    let place = Place::top().key("supervisor");
    let own = &mission.supervisor;
    let clear = ["budget", "period"]
        .iter()
        .all(|key| faults.is_clear(&place.key(key)));
    if !clear {
        return;
    }
    if own.budget > own.period {
        faults.report(
            &place,
            &["budget", "period"],
            format!(
                "the budget of {} is longer than the period of {}",
                own.budget, own.period
            ),
            "lower the budget, or lengthen the period",
        );
    } else if own.period.ns() > Supervisor::LONGEST_NS {
        faults.report(
            &place,
            &["period"],
            format!("the period of {} is longer than 1 s", own.period),
            "shorten it: once its budget is used up, the supervisor is an ordinary process until the period ends",
        );
    }
}

/// Real-time cells stay on the mission's cpus.
fn cpus(mission: &Mission, faults: &mut Faults<'_>) {
    if mission.cpus.is_empty() || !faults.is_clear(&Place::top().key("cpus")) {
        return;
    }
    for (index, cell) in mission.cells.iter().enumerate() {
        if !cell.is_real_time() {
            continue;
        }
        let place = Place::cell(index);
        for (at, cpu) in cell.cpus.iter().enumerate() {
            if !mission.cpus.contains(cpu)
                && faults.is_clear(&place.key("class"))
                && faults.is_clear(&place.key("cpus"))
            {
                faults.report_at(
                    &place.key("cpus").item(at),
                    format!(
                        "cpu {cpu} of cell `{}` is not one of the mission's",
                        cell.name
                    ),
                    format!("the mission's `cpus` are {}", list(&mission.cpus)),
                );
            }
        }
    }
}

/// `1, 2 and 3`.
pub(in super::super) fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    match cpus.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
