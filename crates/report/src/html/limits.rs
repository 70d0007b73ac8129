//! The limits of the numbers.

use super::section::{Page, Section};
use maud::html;

pub(super) fn section(page: &Page) -> Option<Section> {
    let data = &page.data;
    let mut limits = vec![
        "A maximum is what was seen in this many jobs. It bounds the worst case from below; no measurement bounds it from above.",
        "Intervals of quantiles assume that jobs are independent. Where consecutive jobs are correlated they are too narrow; the comparisons with the baseline allow for that, because they treat the round as the unit.",
        "\"Within noise\" means that no difference was shown with these rounds, not that there is none. More rounds narrow the interval.",
        "The probe measures inside the cell, on one cpu, with its own clock readings; its cost is listed with the cells and is part of every number.",
    ];
    if data.provenance.virtualization.virtual_machine == Some(true) {
        limits.push("It was measured in a virtual machine: the hypervisor's delays are in the tails, for every engine alike, and cannot be distinguished from the system's own.");
    }
    match data.provenance.preempt_rt {
        Some(true) => {}
        Some(false) => limits.push("The kernel is not PREEMPT_RT, so long delays inside it are to be expected for every engine."),
        None => limits.push("It is not known whether the kernel is PREEMPT_RT; if not, long delays inside it are to be expected for every engine."),
    }
    if data.plan.rounds < 2 {
        limits.push("There was one round, so no comparison has an interval.");
    }
    if !data.summary.real_time {
        limits.push("not real-time: cells with this label ran in no real-time class, and all their numbers are best effort.");
    }
    Some(Section {
        id: "limits",
        heading: "What this cannot say".to_owned(),
        body: html! { ul.findings { @for limit in limits { li { (limit) } } } },
    })
}
