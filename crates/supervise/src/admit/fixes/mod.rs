//! Changes that would let a refused mission be admitted, found by search: each kind proposes changed missions, and a
//! change is offered only after the changed mission was written, read again and admitted by the same rules. Another kind
//! is one file (or function) and one line in [`KINDS`]. Changes to the machine itself are not searched.

mod budget;
mod cpus;
mod edit;
mod enforcer;
mod fewer;
mod search;
mod supervisor;
#[cfg(test)]
mod tests;
mod times;

pub use edit::Edit;

use analysis::Ns;
use model::Enforcer;
use model::mission::Mission;
use record::supply::MeasuredSupply;
use serde::Serialize;

use super::Facts;
use search::Search;

/// The kind of every change that takes an enforced budget away, by any edit.
const NO_BUDGET: &str = "no-budget";

/// The kind of a change after which the supervisor reserves nothing.
const ORDINARY: &str = "no-reservation";

/// A kind of change.
struct Kind {
    name: &'static str,
    /// The change that is tried, a noun.
    tries: &'static str,
    /// A remark for the reader on such a change.
    remark: Option<&'static str>,
    /// Edits after which the mission is admitted.
    find: fn(&Search<'_>) -> Option<Vec<Edit>>,
}

/// Every kind, the one that costs the user least first.
const KINDS: [Kind; 11] = [
    Kind {
        name: "cpus",
        tries: "other cpus",
        remark: None,
        find: cpus::find,
    },
    Kind {
        name: "budget",
        tries: "another budget",
        remark: None,
        find: budget::find,
    },
    Kind {
        name: "priorities",
        tries: "no `priorities`",
        remark: None,
        find: priorities,
    },
    Kind {
        name: "enforcer",
        tries: "another enforcer",
        remark: None,
        find: enforcer::enforced,
    },
    Kind {
        name: "supervisor",
        tries: "another reservation of the supervisor",
        remark: None,
        find: supervisor::find,
    },
    Kind {
        name: ORDINARY,
        tries: "no reservation of the supervisor",
        remark: Some("it reacts late where the cells use their whole grants"),
        find: supervisor::ordinary,
    },
    Kind {
        name: "deadline",
        tries: "longer deadlines",
        remark: None,
        find: times::deadline,
    },
    Kind {
        name: "period",
        tries: "longer periods",
        remark: None,
        find: times::period,
    },
    Kind {
        name: "wcet",
        tries: "shorter execution times",
        remark: Some("the program must become faster"),
        find: times::wcet,
    },
    Kind {
        name: "fewer",
        tries: "fewer cells",
        remark: None,
        find: fewer::find,
    },
    Kind {
        name: NO_BUDGET,
        tries: "no enforced budget",
        remark: Some(
            "holds while every cell keeps to what it declares; nothing stops one that does not",
        ),
        find: enforcer::none,
    },
];

/// A change after which the mission is admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Its kind, such as `cpus`.
    pub kind: &'static str,
    /// The edits, all of them made together.
    pub edits: Vec<Edit>,
    /// A remark for the reader, a clause.
    pub remark: Option<&'static str>,
}

impl Fix {
    /// Of the kind of that one of its edits which costs the user most, or, if it `loses` a budget, of the kind that says so.
    fn of(edits: Vec<Edit>, loses: bool) -> Fix {
        let at = |name: &str| KINDS.iter().position(|kind| kind.name == name);
        let of_edits = edits.iter().filter_map(|edit| at(edit.kind()));
        let lost = loses.then(|| at(NO_BUDGET)).flatten();
        let dearest = of_edits.chain(lost).max().unwrap_or(0);
        let kind = &KINDS[dearest];
        Fix {
            kind: kind.name,
            edits,
            remark: kind.remark,
        }
    }

    /// The mission and the machine's state after this change.
    pub fn apply(&self, mission: &Mission, facts: &Facts) -> (Mission, Facts) {
        let (mut mission, mut facts) = (mission.clone(), facts.clone());
        for edit in &self.edits {
            edit.apply(&mut mission, &mut facts);
        }
        (mission, facts)
    }
}

/// The result of the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fixes {
    /// Changes each of which suffices alone, the one that costs least first.
    pub found: Vec<Fix>,
    /// The changes that were tried, as nouns.
    pub tried: Vec<&'static str>,
    /// How many changed missions were put to admission.
    pub missions: usize,
    /// Whether the search ended early, because it had tried as many missions, or taken as long, as it may.
    pub cut_short: bool,
}

/// Looks for changes after which [`super::admit`] admits a mission that it refuses with the same arguments.
pub fn find_fixes(
    mission: &Mission,
    facts: &Facts,
    measured: &[MeasuredSupply],
    latency_ns: Ns,
) -> Fixes {
    let search = Search::new(mission, facts, measured, latency_ns);
    let (mut missions, mut cut_short) = (0, false);
    let mut found: Vec<Fix> = Vec::new();
    for (kind, shares) in KINDS
        .iter()
        .zip((1 + PAIRS..=KINDS.len() as u32 + PAIRS).rev())
    {
        if let Some(edits) = proved(&search, kind, shares) {
            offer(&search, edits, &mut found);
        }
    }
    if found.iter().all(|fix| fix.kind == NO_BUDGET) {
        let several = together(&search, found.is_empty());
        let bases: usize = several.iter().map(|together| together.bases.len()).sum();
        let mut shares = bases as u32;
        for Together { bases, last } in several {
            for base in bases {
                let eased = search.based_on(&base, shares);
                shares -= 1;
                let Some(eased) = eased else {
                    continue;
                };
                let more = match eased.refused.is_admitted() {
                    true => search.is_proved(&base).then(Vec::new),
                    false => (KINDS.iter().zip((1..=KINDS.len() as u32).rev()))
                        .find_map(|(kind, shares)| proved(&eased, kind, shares)),
                };
                missions += eased.missions();
                cut_short |= eased.was_cut_short();
                if let Some(more) = more {
                    offer(&search, base.into_iter().chain(more).collect(), &mut found);
                    break;
                }
            }
            if last && !found.is_empty() {
                break;
            }
        }
        found.sort_by_key(|fix| KINDS.iter().position(|kind| kind.name == fix.kind));
    }
    Fixes {
        found,
        tried: KINDS.iter().map(|kind| kind.tries).collect(),
        missions: missions + search.missions(),
        cut_short: cut_short || search.was_cut_short(),
    }
}

/// Cells whose priorities are chosen by timecell.
fn priorities(search: &Search<'_>) -> Option<Vec<Edit>> {
    search.by_cell(|cell, _, _| {
        (cell.priorities.is_some()).then(|| vec![Edit::NoPriorities(cell.name.clone())])
    })
}

/// Shares of the time that are kept, beside one for each kind, for several of them together.
const PAIRS: u32 = 4;

/// The edits that a kind finds in one of this many shares of the remaining time.
fn proved(search: &Search<'_>, kind: &Kind, shares: u32) -> Option<Vec<Edit>> {
    search.begin(shares);
    (kind.find)(search).filter(|edits| search.is_proved(edits))
}

/// Adds a change without its superfluous edits, unless there is one of its kind that is no longer.
fn offer(search: &Search<'_>, edits: Vec<Edit>, found: &mut Vec<Fix>) {
    // The kind may have been called after a superfluous edit.
    let edits = search.pruned(&edits);
    let loses = search.loses_budget(&edits);
    let fix = Fix::of(edits, loses);
    let same = |other: &Fix| {
        other.edits == fix.edits || (other.kind == fix.kind && other.edits.len() <= fix.edits.len())
    };
    if !found.iter().any(same) {
        found.push(fix);
    }
}

/// Edits after each of which all kinds are asked once more, until one of them has an answer.
struct Together {
    bases: Vec<Vec<Edit>>,
    /// Whether an answer is the last one that is needed.
    last: bool,
}

/// Where two causes refuse, no kind suffices alone. The file's settings for a cell may leave no room for a single change; others may be in
/// the way, too; and no budget may be found that can be enforced, which is asked only where `nothing` was found.
fn together(search: &Search<'_>, nothing: bool) -> Vec<Together> {
    let others = search.facts.beside.iter();
    let ended = Together {
        bases: vec![others.map(|other| Edit::End(other.who.clone())).collect()],
        last: false,
    };
    if !nothing {
        return vec![ended];
    }
    let mut relaxed = relaxed(&search.mission).to_vec();
    relaxed.dedup();
    let unheld = enforcer::of_all(search, Enforcer::CpusetOnly);
    vec![
        Together {
            bases: relaxed,
            last: true,
        },
        ended,
        Together {
            bases: unheld.into_iter().collect(),
            last: false,
        },
    ]
}

/// Edits that leave more to timecell: budgets, then cpus, then both, then the mechanism too.
fn relaxed(mission: &Mission) -> [Vec<Edit>; 4] {
    let cells = || mission.cells.iter().filter(|cell| cell.is_real_time());
    let budgets: Vec<Edit> = cells()
        .filter(|cell| cell.reservation.is_some() && !cell.tasks.is_empty())
        .map(|cell| Edit::Reservation(cell.name.clone(), None))
        .collect();
    let whole = (!mission.cpus.is_empty()).then(|| Edit::MissionCpus(Vec::new()));
    let cpus: Vec<Edit> = cells()
        .filter(|cell| !cell.cpus.is_empty())
        .map(|cell| Edit::Cpus(cell.name.clone(), Vec::new()))
        .chain(whole)
        .collect();
    let both: Vec<Edit> = budgets.iter().chain(&cpus).cloned().collect();
    let auto = mission.enforcer.map(|_| Edit::Enforcer(None));
    let all = both.iter().cloned().chain(auto).collect();
    [budgets, cpus, both, all]
}
