//! Chooses the enforcer of cells that leave it to timecell: of the mechanisms that this kernel has, the one under which
//! all cells of the mission are admitted at the least reserved cpu. One that admits a cell only if nothing but its tasks runs in it, which
//! the file does not say, comes after all that need not assume it. A mechanism whose guarantees rely on measurements of
//! another machine comes after all that have better grounds.

use model::mission::{Cell, CellClass, Mission, Observed};
use model::{Duration, Enforcer};
use serde::Serialize;

use super::cpu::Candidate;
use super::{Admission, Basis, Facts, Outcome, keeper};

/// How the enforcer of cells that leave it to timecell was chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The mechanism.
    pub chosen: Enforcer,
    /// Whether it already holds running cells of this mission, so that nothing was chosen.
    pub kept: bool,
    /// Every mechanism that may hold a mission's cells; of two equally cheap ones the first in this order is taken.
    pub offers: Vec<Offer>,
}

/// One mechanism, whether it was chosen or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Offer {
    /// The mechanism.
    pub enforcer: Enforcer,
    /// The reservation of all cells of the mission under it, as a share of one cpu, summed up over cpus; `None`: it does not admit them, or
    /// was not asked.
    pub reserved: Option<f64>,
    /// Why it was not chosen, a clause; `None`: it was.
    pub why: Option<String>,
}

/// The total reservation of a mission's cells: billionths of a cpu, each share rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Price(u128);

impl Price {
    const CPU: u128 = 1_000_000_000;

    /// Of these cells, each on as many cpus as its file names.
    pub(super) fn of(cells: &[Candidate<'_>]) -> Price {
        let of_cell = |cell: &Candidate<'_>| {
            let holding = (cell.budget)
                .map(|(_, period)| (keeper::cost(cell.asked.enforcer).min(period), period));
            let shares = cell.shares().into_iter().chain(holding);
            let one: u128 = shares
                .map(|(part, whole)| {
                    (u128::from(part) * Price::CPU).div_ceil(u128::from(whole.max(1)))
                })
                .sum();
            match cell.asked.class {
                // Its threads are on one cpu at a time, however many they may use.
                CellClass::Deadline => one,
                _ => one * cell.asked.cpus.len().max(1) as u128,
            }
        };
        Price(cells.iter().map(of_cell).sum())
    }

    /// The same as a share of one cpu.
    fn share(self) -> f64 {
        self.0 as f64 / Price::CPU as f64
    }
}

/// Whether neither the mission nor the cell's class names an enforcer.
fn is_open(mission: &Mission, cell: &Cell) -> bool {
    mission.enforcer.is_none() && cell.class.is_none() && cell.is_real_time()
}

/// The current enforcer of those of these cells that leave it to timecell; `None`: none of them runs.
pub fn mechanism_of<'a>(
    mission: &Mission,
    held: impl IntoIterator<Item = (&'a str, Enforcer)>,
) -> Option<Enforcer> {
    let open = |name: &str| {
        mission
            .cell(name)
            .is_some_and(|cell| is_open(mission, cell))
    };
    (held.into_iter())
        .find(|(name, _)| open(name))
        .map(|(_, enforcer)| enforcer)
}

/// Decides with each eligible mechanism, and says which one was taken. If none admits all cells, the answer is that of
/// the first one that the kernel has.
pub(super) fn choose(
    mission: &Mission,
    facts: &Facts,
    decide: &dyn Fn(Enforcer) -> (Admission, Price),
) -> (Admission, Enforcer) {
    let open: Vec<&Cell> = (mission.cells.iter())
        .filter(|cell| is_open(mission, cell))
        .collect();
    if open.is_empty() {
        let usual = facts.best();
        return (decide(usual).0, usual);
    }
    let kept = facts.runs_under;
    let unasked: Vec<(Enforcer, String)> = (Enforcer::OF_CHOICE.iter())
        .filter(|&&enforcer| kept != Some(enforcer))
        .filter_map(|&enforcer| {
            Some((
                enforcer,
                out_of_question(enforcer, kept.is_some(), &open, facts)?,
            ))
        })
        .collect();
    let is_unasked = |enforcer: &Enforcer| unasked.iter().any(|(other, _)| other == enforcer);
    let mut answers: Vec<Answer> = (Enforcer::OF_CHOICE.iter().copied())
        .filter(|enforcer| !is_unasked(enforcer))
        .map(|enforcer| Answer::of(enforcer, decide(enforcer)))
        .collect();
    // An enforcer that suits the cells less is better than not running.
    if !answers.iter().any(|answer| answer.admission.is_admitted())
        && kept.is_none()
        && is_unasked(&facts.best())
    {
        let best = facts.best();
        answers.insert(0, Answer::of(best, decide(best)));
    }
    let best = (0..answers.len()).min_by_key(|&at| answers[at].rank());
    // There is always one: the one kept, or else the best that the kernel has.
    let mut taken = answers.remove(best.unwrap_or(0));
    let offer = |&enforcer: &Enforcer| {
        let reserved =
            |answer: &Answer| (answer.verdict.as_ref().ok()).map(|_| answer.price.share());
        let not_taken = answers.iter().find(|answer| answer.enforcer == enforcer);
        let why_unasked = || unasked.iter().find(|(other, _)| *other == enforcer);
        let (reserved, why) = match not_taken {
            _ if enforcer == taken.enforcer => (reserved(&taken), None),
            Some(answer) => (reserved(answer), Some(answer.why_not(&taken))),
            None => (None, why_unasked().map(|(_, why)| why.clone())),
        };
        Offer {
            enforcer,
            reserved,
            why,
        }
    };
    let choice = Choice {
        chosen: taken.enforcer,
        kept: kept.is_some(),
        offers: Enforcer::OF_CHOICE.iter().map(offer).collect(),
    };
    taken.admission.choice = Some(choice);
    (taken.admission, taken.enforcer)
}

/// The decision with one mechanism.
struct Answer {
    enforcer: Enforcer,
    admission: Admission,
    price: Price,
    /// Whether all cells are admitted, or why not, a clause.
    verdict: Result<(), String>,
}

impl Answer {
    fn of(enforcer: Enforcer, (admission, price): (Admission, Price)) -> Answer {
        Answer {
            enforcer,
            verdict: verdict(&admission),
            admission,
            price,
        }
    }

    /// The least is the best; of equals the first one. Refusals have no price.
    fn rank(&self) -> (bool, bool, bool, Option<Price>) {
        let is_admitted = self.admission.is_admitted();
        let price = is_admitted.then_some(self.price);
        let assumes = is_admitted && self.assumes().is_some();
        (
            !is_admitted,
            assumes,
            is_admitted && self.is_borrowed(),
            price,
        )
    }

    /// The first cell that is admitted only if nothing but its tasks runs in it, which the file does not say.
    fn assumes(&self) -> Option<&str> {
        self.admission.cells.iter().find_map(Outcome::assumed)
    }

    /// Whether guarantees rest on measurements of another machine.
    fn is_borrowed(&self) -> bool {
        self.admission.cells.iter().any(|outcome| {
            matches!(outcome, Outcome::Granted(grant) if matches!(
                grant.basis,
                Basis::Reaction { unmeasured: Some(_), .. } | Basis::Ample { unmeasured: Some(_), .. }
            ))
        })
    }

    /// Why it was not taken, a clause.
    fn why_not(&self, taken: &Answer) -> String {
        match &self.verdict {
            Err(why) => why.clone(),
            Ok(()) if self.assumes().is_some() && taken.assumes().is_none() => format!(
                "admits `{}` for its tasks only",
                self.assumes().unwrap_or_default()
            ),
            Ok(()) if self.price > taken.price => "more than needed".to_owned(),
            Ok(()) if self.is_borrowed() && !taken.is_borrowed() => {
                "its guarantee assumes a reaction time measured on another machine".to_owned()
            }
            Ok(()) => "as much, but less preferred".to_owned(),
        }
    }
}

/// Whether all cells are admitted, or the first reason why not, a clause.
fn verdict(admission: &Admission) -> Result<(), String> {
    let of_cell = admission.cells.iter().find_map(|outcome| match outcome {
        Outcome::Refused(refused) => {
            Some(format!("`{}` is refused: {}", refused.cell, refused.why))
        }
        _ => None,
    });
    match of_cell.or_else(|| admission.refusals.first().cloned()) {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// Why this one is not tried though cells leave the choice to timecell, a clause; `None`: it is.
fn out_of_question(
    enforcer: Enforcer,
    kept: bool,
    open: &[&Cell],
    facts: &Facts,
) -> Option<String> {
    if let Err(why) = facts.has(enforcer) {
        return Some(format!("not available here: {why}"));
    }
    if !enforcer.has_budgets() {
        return Some("enforces no budget, so is never chosen for its price".to_owned());
    }
    if kept {
        return Some("running cells of this mission keep their enforcer".to_owned());
    }
    if enforcer != Enforcer::Deadline {
        return None;
    }
    // It holds single threads, and only for a cell of one task is it clear which thread that is.
    let several = |cell: &&&Cell| match cell.tasks.as_slice() {
        [task] => cell.reservation.is_some() || task.thread.is_some(),
        _ => true,
    };
    if let Some(cell) = open.iter().find(several) {
        return Some(format!(
            "holds single threads, but `{}` needs holding as a whole: it is not a single task in its first thread",
            cell.name
        ));
    }
    // A thread that has used up its runtime, as a starting program may, is silent until the task's next period.
    if let Some(cell) = open.iter().find(|cell| is_watched_within_a_period(cell)) {
        return Some(format!(
            "gives its runtime once per task period, but a health rule expects more frequent signs of life from `{}`",
            cell.name
        ));
    }
    let ranked = open.iter().find(|cell| cell.band().is_some())?;
    Some(format!(
        "has no priorities, but the file gives `{}` some",
        ranked.name
    ))
}

/// Whether a health rule waits for less than the period of one of the cell's tasks until it acts.
fn is_watched_within_a_period(cell: &Cell) -> bool {
    let longest = cell.tasks.iter().map(|task| task.timing.period).max();
    shortest_timeout(cell)
        .zip(longest)
        .is_some_and(|(timeout, period)| timeout < period)
}

/// The shortest silence of the cell after which a health rule acts; `None`: there is none.
pub(super) fn shortest_timeout(cell: &Cell) -> Option<Duration> {
    let timeouts = cell.health.iter().filter_map(|rule| match &rule.when {
        Observed::Heartbeat { timeout, .. } | Observed::NoProgress { timeout } => Some(*timeout),
        _ => None,
    });
    timeouts.min()
}
