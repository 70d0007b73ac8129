//! What the doctor found on the machine when it measured; what disturbs real time first.

use super::section::{Page, Section};
use host::doctor::{Check, State};
use host::provenance::Provenance;
use maud::html;
use text::words::{clean, count, plural};

pub(super) fn section(page: &Page) -> Option<Section> {
    checks(&page.data.provenance)
}

/// The section of a machine.
pub(crate) fn checks(provenance: &Provenance) -> Option<Section> {
    let mut checks: Vec<&Check> = provenance.checks.iter().collect();
    checks.sort_by_key(|check| order(check.state));
    (!checks.is_empty()).then(|| Section {
        id: "doctor",
        heading: "The machine's fitness".to_owned(),
        body: html! {
            p { (found(&checks)) " in " (plural(checks.len() as u64, "check")) " when the run was made." }
            div.scroll {
                table.stack {
                    thead { tr {
                        th scope="col" { "check" } th scope="col" { "state" } th scope="col" { "found" }
                        th scope="col" { "why it matters" } th scope="col" { "fix" }
                    } }
                    tbody {
                        @for check in &checks {
                            tr {
                                th scope="row" { (clean(&check.title)) }
                                td data-label="state" { span class=(check.state.to_string()) { (check.state.to_string()) } }
                                td data-label="found" { (clean(&check.found)) }
                                td data-label="why it matters" { (clean(&check.why)) }
                                td data-label="fix" {
                                    @if let Some(fix) = &check.fix { code { (clean(fix)) } } @else { "-" }
                                }
                            }
                        }
                    }
                }
            }
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
