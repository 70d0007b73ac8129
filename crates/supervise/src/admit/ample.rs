//! Ample budgets: cells in which nothing but their tasks runs, with budgets that these cannot use up. Enforcement delays
//! nothing in such a cell, and its response times are those of its tasks below the higher priorities. See
//! [`analysis::linux::is_ample`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use analysis::linux::{
    Charged, Held, ample_periods, least_ample, less_bandwidth, responses_below, spare_of_ample,
};
use analysis::{Ns, Task};
use model::Enforcer;
use model::mission::{Cell as MissionCell, CellClass, Mission};
use record::supply::Budget;

use super::asked::Asked;
use super::choice::Price;
use super::cpu::{Bound, Candidate};
use super::supplied::held;
use super::{Admission, Basis, Facts, Outcome, keeper, servers};

/// How long the periods of the searched ample budgets may be. A longer one costs the cell less, and those below it
/// more.
#[derive(Debug, Clone, Copy)]
enum Longest {
    /// This many ns.
    Ns(Ns),
    /// This many times the shortest period of the cell's tasks: tasks below it mostly have longer ones.
    Times(Ns),
}

impl Longest {
    /// As long as any.
    const ANY: Longest = Longest::Ns(1_000_000_000);

    /// Tried one after the other until all cells are admitted.
    const LADDERS: [&[Longest]; 2] = [
        &[
            Longest::Times(50),
            Longest::Times(20),
            Longest::Times(10),
            Longest::Times(5),
            Longest::Times(3),
            Longest::Times(2),
            Longest::Times(1),
        ],
        &[
            Longest::Ns(500_000_000),
            Longest::Ns(200_000_000),
            Longest::Ns(100_000_000),
            Longest::Ns(50_000_000),
            Longest::Ns(20_000_000),
            Longest::Ns(10_000_000),
            Longest::Ns(5_000_000),
            Longest::Ns(2_000_000),
        ],
    ];

    /// Of a cell whose tasks have this shortest period, ns.
    fn of(self, shortest: Ns) -> Ns {
        match self {
            Longest::Ns(ns) => ns,
            Longest::Times(times) => shortest.saturating_mul(times),
        }
    }
}

/// The use that the mechanism charges to a budget; `None`: it has no ample ones.
fn charged(enforcer: Enforcer, facts: &Facts) -> Option<Charged> {
    match enforcer {
        _ if !enforcer.has_ample_budgets() => None,
        Enforcer::Freezer => Some(Charged::Freezer(facts.reaction())),
        Enforcer::EvlQuota => Some(Charged::Tick(0)),
        _ => Some(Charged::Tick(facts.tick_ns())),
    }
}

/// The bound of a cell whose budget is ample below those `above`; `None`: it is not.
pub(super) fn bound(
    cell: &Candidate<'_>,
    own: Held,
    above: &[Held],
    facts: &Facts,
) -> Option<Bound> {
    let asked = cell.asked;
    let charged = charged(asked.enforcer, facts).filter(|_| asked.only_tasks)?;
    let tasks = &asked.work.tasks;
    if used(tasks) > own.budget as f64 / own.period.max(1) as f64 + ROUNDED {
        return None;
    }
    let responses = responses_below(tasks, above)?;
    // The kernel gets a little less, which may be too little.
    let (budget, period) = match asked.enforcer {
        Enforcer::RtCgroup => servers::in_whole_us(own.budget, own.period),
        _ => (own.budget, own.period),
    };
    let spare = spare_of_ample(tasks, &responses, budget, period, charged)?;
    Some(Bound {
        basis: basis(charged, spare, asked.is_assumed, facts),
        rate: (1, 1),
        delay_ns: None,
        postponed_ns: 0,
        responses: responses.into_iter().map(Some).collect(),
    })
}

/// Largest rounding error of a share of a cpu.
const ROUNDED: f64 = 1e-9;

/// The share of a cpu that tasks use in the long run; a budget of less is not ample, and to ask it of response times may take seconds.
fn used(tasks: &[Task]) -> f64 {
    let share = |task: &Task| task.wcet as f64 / task.period.max(1) as f64;
    tasks.iter().map(share).sum()
}

fn basis(charged: Charged, spare_ns: Ns, assumed: bool, facts: &Facts) -> Basis {
    match charged {
        Charged::Freezer(reaction) => Basis::Ample {
            late_ns: Some(reaction.late),
            unmeasured: (facts.measured_reaction.is_none())
                .then(|| "as measured on another machine".to_owned()),
            spare_ns,
            assumed,
        },
        Charged::Tick(_) => Basis::Ample {
            late_ns: None,
            unmeasured: None,
            spare_ns,
            assumed,
        },
    }
}

/// Which ample budgets are searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    longest: Longest,
    /// Also where it takes more than one whose supply does, since that has a short period, which is hard to come by below others.
    pub(super) above_all: bool,
}

/// The budgets that [`decide`](super::decide) searches, and those found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searched<'a> {
    pub(super) found: &'a Found,
    /// `None`: no ample budget.
    pub(super) wanted: Option<Wanted>,
    /// Whether nothing but their tasks is assumed to run in cells of which the file does not say it.
    pub(super) assumed: bool,
}

/// Findings about the cells of one mission whose budgets are searched. None of them depends on [`Wanted`], and they are most of the work of a
/// decision.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By position in the mission.
    cells: RefCell<BTreeMap<usize, OfCell>>,
    /// Whether a cell is refused in any case: before any was placed, with periods as long as any.
    is_hopeless: Cell<bool>,
}

/// The budgets found for one cell.
#[derive(Debug, Clone)]
pub(super) struct OfCell {
    pub(super) by_supply: Option<Budget>,
    /// The least of each period.
    pub(super) ample: Vec<Budget>,
    /// The shortest period of its tasks, ns.
    pub(super) shortest: Ns,
    /// Whether an ample one rests on an assumption, so that one whose supply does is better.
    pub(super) is_assumed: bool,
}

impl OfCell {
    /// The budget of least bandwidth, including the cost of holding it.
    fn best(&self, wanted: Option<Wanted>) -> Option<Budget> {
        let with_cost = |budget: &Budget| {
            let cost = keeper::cost(budget.enforcer);
            (budget.budget_ns.saturating_add(cost), budget.period_ns)
        };
        let is_less =
            |one: &Budget, other: &Budget| less_bandwidth(with_cost(one), with_cost(other));
        let ample = wanted.and_then(|wanted| {
            let longest = wanted.longest.of(self.shortest);
            let within = self.ample.iter().filter(|each| each.period_ns <= longest);
            within.reduce(|best, next| match is_less(next, best) {
                true => next,
                false => best,
            })
        });
        let above_all = wanted.is_some_and(|wanted| wanted.above_all);
        match (self.by_supply, ample.copied()) {
            (Some(by_supply), Some(ample))
                if above_all || (!self.is_assumed && is_less(&ample, &by_supply)) =>
            {
                Some(ample)
            }
            (by_supply, ample) => by_supply.or(ample),
        }
    }
}

impl Searched<'_> {
    /// The budget of the cell at this position of the mission; `find` is asked once for all that is wanted.
    pub(super) fn budget(self, at: usize, find: impl FnOnce() -> OfCell) -> Option<Budget> {
        let mut cells = self.found.cells.borrow_mut();
        cells.entry(at).or_insert_with(find).best(self.wanted)
    }

    /// Notes which cells are refused before any is placed.
    pub(super) fn note_refused(self, mut outcomes: impl Iterator<Item = bool>) {
        self.found
            .is_hopeless
            .set(outcomes.any(|is_refused| is_refused));
    }
}

/// The least ample budget of each period; behind the supervisors `exact`, which may be on its cpus. Jobs are taken to be done by their
/// deadlines only, so that with anything later above the cell, be it the supervisor of a later mission, the budget stays ample as long as
/// these hold.
pub(super) fn of_each_period(
    cell: &Asked,
    (part, whole): (Ns, Ns),
    exact: &[Held],
    facts: &Facts,
) -> Vec<Budget> {
    let (enforcer, tasks) = (cell.enforcer, &cell.work.tasks);
    let charged = charged(enforcer, facts).filter(|_| cell.only_tasks);
    let charged = charged.filter(|_| used(tasks) <= part as f64 / whole.max(1) as f64 + ROUNDED);
    let Some(charged) = charged else {
        return Vec::new();
    };
    let cost = keeper::cost(enforcer);
    let latest: Vec<Ns> = tasks.iter().map(|task| task.deadline).collect();
    let periods = ample_periods(tasks, cell.silent_for.unwrap_or(Ns::MAX));
    let is_in_time = |period: &Ns| {
        let own = (cost > 0).then(|| Held::exactly(cost.min(*period), *period));
        let above: Vec<Held> = exact.iter().copied().chain(own).collect();
        responses_below(tasks, &above).is_some()
    };
    // Only the cost of holding the cell depends on the period, and the longer it is, the less that takes of any window.
    let first = periods.partition_point(|period| !is_in_time(period));
    let of_period = |&period: &Ns| {
        let share = u128::from(period) * u128::from(part) / u128::from(whole.max(1));
        let most = Ns::try_from(share).ok()?.checked_sub(cost)?;
        let budget = least_ample(tasks, &latest, period, most, charged)?;
        held(enforcer, budget, period)
    };
    periods[first..].iter().filter_map(of_period).collect()
}

/// Decides with ample budgets of ever shorter periods, the last time with none, until all cells are admitted: of those that are shortened alike a
/// longer period is the cheaper one, so that the first one admitted is the cheapest. Where none is admitted, the answer is that which
/// refuses the fewest cells, of equals the first one.
pub(super) fn cheapest(
    mission: &Mission,
    assumed: bool,
    decide: &dyn Fn(Searched<'_>) -> (Admission, Price),
) -> (Admission, Price) {
    let found = Found::default();
    let is_searched = (mission.cells.iter())
        .filter(|cell| cell.is_real_time() && !cell.tasks.is_empty())
        .any(|cell| (cell.only_tasks || assumed) && cell.reservation.is_none());
    let first = is_searched.then_some(Wanted {
        longest: Longest::ANY,
        above_all: false,
    });
    let mut answers = Answers::of(&found, first, assumed, decide);
    if answers.is_admitted(first) || !is_searched {
        return answers.best;
    }
    if answers.with_periods_of(Longest::ANY) {
        return answers.best;
    }
    // Shorter ones do not help a cell that never has a budget, or is refused for something else.
    if !answers.is_hopeless {
        // Every refused mission is tried with the assumption, so that it must not take long.
        let (ladders, step) = if assumed { (1, 2) } else { (2, 1) };
        for ladder in &Longest::LADDERS[..ladders] {
            let _ = (ladder.iter().step_by(step)).any(|longest| answers.with_periods_of(*longest));
        }
    }
    answers.is_admitted(None);
    answers.best
}

/// The decisions about a mission.
struct Answers<'a> {
    found: &'a Found,
    assumed: bool,
    decide: &'a dyn Fn(Searched<'_>) -> (Admission, Price),
    is_hopeless: bool,
    best: (Admission, Price),
    /// With which budgets of the cells, and whether all were admitted: the same ones have the same answer.
    known: Vec<(Vec<Option<Budget>>, bool)>,
}

impl<'a> Answers<'a> {
    fn of(
        found: &'a Found,
        wanted: Option<Wanted>,
        assumed: bool,
        decide: &'a dyn Fn(Searched<'_>) -> (Admission, Price),
    ) -> Answers<'a> {
        let best = decide(Searched {
            found,
            wanted,
            assumed,
        });
        Answers {
            found,
            assumed,
            decide,
            is_hopeless: found.is_hopeless.get(),
            known: vec![(found.budgets(wanted), best.0.is_admitted())],
            best,
        }
    }

    /// Whether all cells are admitted so.
    fn is_admitted(&mut self, wanted: Option<Wanted>) -> bool {
        let budgets = self.found.budgets(wanted);
        if let Some((_, is_admitted)) = self.known.iter().find(|(known, _)| *known == budgets) {
            return *is_admitted;
        }
        let (found, assumed) = (self.found, self.assumed);
        let answer = (self.decide)(Searched {
            found,
            wanted,
            assumed,
        });
        let is_admitted = answer.0.is_admitted();
        self.known.push((budgets, is_admitted));
        if rank(&answer) < rank(&self.best) {
            self.best = answer;
        }
        is_admitted
    }

    /// The same with periods of this length at most.
    fn with_periods_of(&mut self, longest: Longest) -> bool {
        [false, true]
            .into_iter()
            .any(|above_all| self.is_admitted(Some(Wanted { longest, above_all })))
    }
}

impl Found {
    /// The budgets of all cells of which some were searched.
    fn budgets(&self, wanted: Option<Wanted>) -> Vec<Option<Budget>> {
        let cells = self.cells.borrow();
        cells.values().map(|cell| cell.best(wanted)).collect()
    }
}

/// Whether there is a cell in which nothing but its tasks may be assumed to run, though the file does not say it.
pub(super) fn may_be_assumed(mission: &Mission) -> bool {
    let is_silent = |cell: &MissionCell| {
        let may_be = (cell.class).is_none_or(|class| class.analysed() == CellClass::Fifo);
        may_be && !cell.only_tasks && !cell.tasks.is_empty()
    };
    (mission.enforcer.is_none_or(Enforcer::has_ample_budgets))
        && mission.cells.iter().any(is_silent)
}

/// Cells that declare `only_tasks` without an effect.
pub(super) fn notes(mission: &Mission, cells: &[Candidate<'_>]) -> Vec<String> {
    let is_said = |asked: &&Asked| {
        let cell = mission.cells.get(asked.at);
        cell.is_some_and(|cell| cell.only_tasks) && !asked.only_tasks
    };
    (cells.iter().map(|cell| cell.asked).filter(is_said))
        .map(|asked| {
            format!(
                "`only_tasks` of cell `{}` has no effect: {} has no ample budgets",
                asked.name,
                asked.enforcer.name()
            )
        })
        .collect()
}

/// The least is the cheapest of those that admit all cells, else the one that refuses the fewest.
fn rank(of: &(Admission, Price)) -> (bool, usize, Option<Price>) {
    let price = of.0.is_admitted().then_some(of.1);
    (!of.0.is_admitted(), refused(&of.0), price)
}

/// How many cells are refused.
pub(super) fn refused(admission: &Admission) -> usize {
    let is_refused = |outcome: &&Outcome| matches!(outcome, Outcome::Refused(_));
    admission.cells.iter().filter(is_refused).count()
}
