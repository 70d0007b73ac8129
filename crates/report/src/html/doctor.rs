//! The doctor's checks of the machine when it measured; disturbances of real time first.

use super::section::{Page, Section};
use crate::grid::{Cell, Table};
use host::doctor::{Check, State};
use host::provenance::Provenance;
use maud::html;
use text::style::Tone;
use text::words::{count, plural};

pub(super) fn section(page: &Page) -> Option<Section> {
    checks(&page.data.provenance)
}

/// The section of a machine.
pub(crate) fn checks(provenance: &Provenance) -> Option<Section> {
    let mut checks: Vec<&Check> = provenance.checks.iter().collect();
    checks.sort_by_key(|check| order(check.state));
    let table = Table::new("Checks of the machine", checks.iter().copied())
        .stacked()
        .head("check", |check| &*check.title)
        .text("state", |check| {
            let tone = match check.state {
                State::Bad => Tone::Bad,
                State::Warning => Tone::Caution,
                State::Good => Tone::Good,
                State::Unknown | State::Info => Tone::Plain,
            };
            Cell::new(check.state.to_string(), tone)
        })
        .text("found", |check| check.found.as_str())
        .text("why it matters", |check| &*check.why)
        .text("fix", |check| {
            Cell::code(check.fix.as_deref().unwrap_or_default())
        });
    (!checks.is_empty()).then(|| Section {
        id: "doctor",
        heading: "The machine's fitness".to_owned(),
        body: html! {
            p { (found(&checks)) " in " (plural(checks.len() as u64, "check")) " when the run was made." }
            (table)
        },
    })
}

/// As the doctor counts: `4 warnings, 1 bad`.
fn found(checks: &[&Check]) -> String {
    let of = |state: State| checks.iter().filter(|check| check.state == state).count() as u64;
    let warnings = plural(of(State::Warning), "warning");
    match of(State::Bad) {
        0 => warnings,
        bad => format!("{warnings}, {} bad", count(bad)),
    }
}

fn order(state: State) -> u8 {
    match state {
        State::Bad => 0,
        State::Warning => 1,
        State::Unknown => 2,
        State::Info => 3,
        State::Good => 4,
    }
}
