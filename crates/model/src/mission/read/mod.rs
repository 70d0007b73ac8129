//! From a surveyed document to [`Mission`]. Nothing is refused here: the survey has already reported what cannot be read.
//! Such a value is replaced by its default or left out, so that the rest of the file can be checked as well.

mod cell;
mod health;

use super::{Latency, Mission, ModePolicy, Modes, Supervisor, SupervisorClass, Uids};
use crate::Enforcer;
use crate::file::Node;

/// The mission of the document, as far as it can be read.
pub(super) fn mission(top: &Node<'_>) -> Mission {
    let latency = (top.time("latency").map(Latency::Allowance))
        .or_else(|| top.path("latency_run").map(Latency::Run));
    Mission {
        name: top.text("name"),
        description: top.text("description"),
        enforcer: top.choice("enforcer", &Enforcer::names(Enforcer::OF_MISSIONS)),
        cpus: top.counts("cpus"),
        latency,
        supply_run: top.path("supply_run"),
        notify: top.texts("notify"),
        shed: top.texts("shed"),
        uids: (top.table("uids"))
            .and_then(|uids| {
                Some(Uids {
                    lowest: uids.count("lowest")?,
                    highest: uids.count("highest")?,
                })
            })
            .unwrap_or_default(),
        supervisor: (top.table("supervisor")).map_or_else(Supervisor::default, |own| {
            let standard = Supervisor::default();
            Supervisor {
                class: own
                    .choice("class", &SupervisorClass::NAMES)
                    .unwrap_or(standard.class),
                budget: own.time("budget").unwrap_or(standard.budget),
                period: own.time("period").unwrap_or(standard.period),
                cpus: own.counts("cpus"),
            }
        }),
        modes: top.table("modes").map(|modes| Modes {
            policy: modes
                .choice("policy", &ModePolicy::NAMES)
                .unwrap_or(ModePolicy::AmcRtb),
            return_after: modes.time_or_zero("return_after"),
        }),
        cells: top.tables("cell").iter().map(cell::cell).collect(),
    }
}
