//! The study of cells with two levels of criticality.

use analysis::edf::{EdfVd, EdfVdLoad, edf_vd, edf_vd_load};
use analysis::fp::{AmcRefusal, AmcResponse, Response, amc_rtb, amc_rtb_refusal};
use analysis::inside::Inside;
use analysis::{MixedTask, Ns, Part, Task, Undecided, Verdict, Witness, utilization};
use model::taskset::{Policy, TaskCell};
use serde::Serialize;

use super::judge::{ns, renumbered, task};
use super::special::{late, name, names};
use super::study::{CellStudy, Outcome};
use text::units::exact;

/// A cell with two levels of criticality, mode by mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MixedStudy {
    /// While every job keeps to its wcet: all tasks.
    pub low_mode: Outcome,
    /// From the first job that does not: the tasks of high criticality.
    pub high_mode: Outcome,
    /// The tasks, in the order of the file.
    pub tasks: Vec<ModeBounds>,
    /// Places of the tasks that are dropped in high mode.
    pub dropped_in_high_mode: Vec<usize>,
    /// The quantities of EDF-VD; none under fixed priorities, or if it does not cover the cell.
    pub edf_vd: Option<VirtualDeadlines>,
    /// Why it is not shown to hold.
    pub refusal: Option<Refusal>,
}

/// Bounds of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ModeBounds {
    /// Wcet in high mode; none: of low criticality.
    pub wcet_high_ns: Option<Ns>,
    /// Response-time bound in low mode.
    pub low_response_ns: Option<Ns>,
    /// Response-time bound during the change of mode and after it.
    pub high_response_ns: Option<Ns>,
}

/// Utilisations and the factor of virtual deadlines, as fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VirtualDeadlines {
    /// Whether EDF without virtual deadlines is enough.
    pub plain: bool,
    /// The factor x for the deadlines of high tasks in low mode: (numerator, denominator); none if refused.
    pub factor: Option<(Ns, Ns)>,
    /// Low tasks: (numerator, denominator), as the others.
    pub low: (Ns, Ns),
    /// High tasks with their low wcet.
    pub high_low: (Ns, Ns),
    /// High tasks with their high wcet.
    pub high_high: (Ns, Ns),
    /// Whether the fractions are exact, or rounded up.
    pub exact: bool,
}

/// Why a cell is not shown to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// In which mode.
    pub high_mode: bool,
    /// Whether a legal run is proved to miss the deadline; otherwise the test merely does not show that none does.
    pub proved: bool,
    /// The work and the cpu time at the decisive instant.
    pub witness: Witness,
}

/// The verdict, the bounds, and the study of both modes.
fn examine(cell: &TaskCell) -> (Verdict, MixedStudy) {
    match cell.policy {
        Policy::EdfVd => virtual_deadlines(cell),
        _ => adaptive(cell),
    }
}

fn mixed_task(cell: &TaskCell, place: usize) -> MixedTask {
    MixedTask {
        task: task(&cell.tasks[place]),
        wcet_high: cell.tasks[place].wcet_high.map(ns),
    }
}

fn adaptive(cell: &TaskCell) -> (Verdict, MixedStudy) {
    let order = cell.by_urgency();
    let set: Vec<MixedTask> = order.iter().map(|&place| mixed_task(cell, place)).collect();
    let responses = amc_rtb(&set);
    let mut study = blank(cell);
    for (&place, response) in order.iter().zip(&responses) {
        study.tasks[place].low_response_ns = kept(&response.low);
        study.tasks[place].high_response_ns = response.high.as_ref().and_then(kept);
    }
    let doubts = responses
        .iter()
        .flat_map(|response| [Some(&response.low), response.high.as_ref()])
        .flatten();
    let doubt = doubts.filter_map(|response| match response {
        Response::Undecided(why) => Some(why.clone()),
        _ => None,
    });
    let doubt = doubt.into_iter().next();
    if responses.iter().all(AmcResponse::meets) {
        study.low_mode = Outcome::Holds;
        study.high_mode = Outcome::Holds;
        return (Verdict::Schedulable, study);
    }
    let refusal = doubt.is_none().then(|| amc_rtb_refusal(&set)).flatten();
    let Some(AmcRefusal {
        high_mode,
        proved,
        witness,
    }) = refusal
    else {
        let why = doubt.unwrap_or(Undecided::Overflow);
        return (Verdict::Undecided(why), study);
    };
    let witness = renumbered(witness, &order);
    let found = refused(&mut study, high_mode, proved, witness);
    (found, study)
}

fn kept(response: &Response) -> Option<Ns> {
    match response {
        Response::Meets(bound) => Some(*bound),
        _ => None,
    }
}

/// Notes a refusal and gives the verdict.
fn refused(study: &mut MixedStudy, high_mode: bool, proved: bool, witness: Witness) -> Verdict {
    let outcome = if proved {
        Outcome::Fails
    } else {
        Outcome::Undecided
    };
    if high_mode {
        study.low_mode = Outcome::Holds;
        study.high_mode = outcome;
    } else {
        study.low_mode = outcome;
    }
    study.refusal = Some(Refusal {
        high_mode,
        proved,
        witness: witness.clone(),
    });
    if proved {
        return Verdict::Unschedulable(witness);
    }
    Verdict::Undecided(Undecided::NotCovered(
        "the test, which is only sufficient, does not show that every deadline holds".to_owned(),
    ))
}

fn virtual_deadlines(cell: &TaskCell) -> (Verdict, MixedStudy) {
    let set: Vec<MixedTask> = (0..cell.tasks.len())
        .map(|place| mixed_task(cell, place))
        .collect();
    let mut study = blank(cell);
    let found = edf_vd(&set);
    study.edf_vd = edf_vd_load(&set).map(|load| weighed(&load, &found));
    let verdict = match found {
        EdfVd::Plain | EdfVd::Scaled(..) => {
            study.low_mode = Outcome::Holds;
            study.high_mode = Outcome::Holds;
            Verdict::Schedulable
        }
        EdfVd::Undecided(why) => Verdict::Undecided(why),
        EdfVd::Refused => {
            let low: Vec<Task> = set.iter().map(|mixed| mixed.task).collect();
            let high: Vec<Task> = set
                .iter()
                .map(|mixed| match mixed.wcet_high {
                    Some(wcet) => Task { wcet, ..mixed.task },
                    // Dropped.
                    None => Task {
                        wcet: 0,
                        ..mixed.task
                    },
                })
                .collect();
            if utilization::compare_with_one(&low).is_gt() {
                let witness = long_run(&low);
                refused(&mut study, false, true, witness)
            } else {
                let proved = utilization::compare_with_one(&high).is_gt();
                let witness = long_run(&high);
                refused(&mut study, true, proved, witness)
            }
        }
    };
    (verdict, study)
}

fn weighed(load: &EdfVdLoad, found: &EdfVd) -> VirtualDeadlines {
    let of_one = |sum: Ns| reduced(sum, load.one);
    VirtualDeadlines {
        plain: *found == EdfVd::Plain,
        factor: match found {
            EdfVd::Scaled(numerator, denominator) => Some((*numerator, *denominator)),
            EdfVd::Plain => Some((1, 1)),
            _ => None,
        },
        low: of_one(load.low),
        high_low: of_one(load.high_low),
        high_high: of_one(load.high_high),
        exact: load.exact,
    }
}

fn reduced(numerator: Ns, denominator: Ns) -> (Ns, Ns) {
    let (mut a, mut b) = (numerator, denominator);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (numerator / a.max(1), denominator / a.max(1))
}

/// The demand of the tasks in the longest of their periods, rounded up.
fn long_run(tasks: &[Task]) -> Witness {
    let longest = tasks.iter().enumerate().max_by_key(|(_, task)| task.period);
    let (task, instant) = longest.map_or((0, 1), |(place, task)| (place, task.period));
    let parts: Vec<Part> = tasks
        .iter()
        .enumerate()
        .filter(|(_, each)| each.wcet > 0)
        .map(|(task, each)| {
            let work = u128::from(instant) * u128::from(each.wcet);
            Part {
                task,
                jobs: instant.div_ceil(each.period),
                demand: Ns::try_from(work.div_ceil(each.period.into())).unwrap_or(Ns::MAX),
            }
        })
        .collect();
    Witness {
        task: parts.first().map_or(task, |part| part.task),
        instant,
        demand: parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.demand)),
        supply: instant,
        parts,
    }
}

fn blank(cell: &TaskCell) -> MixedStudy {
    let tasks = cell.tasks.iter();
    let low = tasks.clone().enumerate();
    MixedStudy {
        low_mode: Outcome::Undecided,
        high_mode: Outcome::Undecided,
        tasks: tasks
            .map(|task| ModeBounds {
                wcet_high_ns: task.wcet_high.map(ns),
                low_response_ns: None,
                high_response_ns: None,
            })
            .collect(),
        dropped_in_high_mode: low
            .filter(|(_, task)| task.wcet_high.is_none())
            .map(|(place, _)| place)
            .collect(),
        edf_vd: None,
        refusal: None,
    }
}

/// The tests' answer: a bound for every mode in which the task runs.
pub(super) fn judge(cell: &TaskCell) -> Inside {
    let (verdict, study) = examine(cell);
    let responses = study.tasks.iter().map(|task| match task.wcet_high_ns {
        Some(_) => task
            .low_response_ns
            .max(task.high_response_ns)
            .filter(|_| task.high_response_ns.is_some()),
        None => task.low_response_ns,
    });
    let missed = late(&verdict);
    Inside {
        verdict,
        responses: responses.collect(),
        missed,
    }
}

pub(super) fn proof(cell: &TaskCell) -> &'static str {
    match cell.policy {
        Policy::EdfVd => "EDF-VD (Baruah et al. 2012) on a cpu of its own, sufficient",
        _ => {
            "AMC-rtb (Baruah, Burns and Davis 2011) on a cpu of its own, exact in low mode, sufficient in high mode"
        }
    }
}

impl MixedStudy {
    pub(super) fn of(cell: &TaskCell) -> MixedStudy {
        examine(cell).1
    }

    pub(super) fn lines(&self, cell: &CellStudy) -> Vec<String> {
        let bounds = |of: &dyn Fn(&ModeBounds) -> Option<Ns>| {
            let all = self.tasks.iter().enumerate();
            let said: Vec<String> = all
                .filter_map(|(place, task)| {
                    Some(format!("{} {}", name(cell, place), exact(of(task)?)))
                })
                .collect();
            if said.is_empty() {
                String::new()
            } else {
                format!("; response at most: {}", said.join(", "))
            }
        };
        let mut lines = vec![
            format!(
                "low     {}: {}{}",
                cell.name,
                self.word(self.low_mode, false),
                bounds(&|task| task.low_response_ns)
            ),
            format!(
                "high    {}: {}{}; dropped: {}",
                cell.name,
                self.word(self.high_mode, true),
                bounds(&|task| task.high_response_ns),
                names(cell, &self.dropped_in_high_mode)
            ),
        ];
        lines.extend(self.edf_vd.as_ref().map(|vd| vd.line(&cell.name)));
        lines
    }

    fn word(&self, outcome: Outcome, high: bool) -> &'static str {
        let unproved = |refusal: &Refusal| refusal.high_mode == high && !refusal.proved;
        if self.refusal.as_ref().is_some_and(unproved) {
            return "not shown";
        }
        outcome.word()
    }

    /// The demands that the test counts, for a refusal that is not a proof.
    pub(super) fn reasons(&self, cell: &CellStudy) -> Vec<String> {
        let Some(refusal) = self.refusal.as_ref().filter(|refusal| !refusal.proved) else {
            return Vec::new();
        };
        if let Some(vd) = &self.edf_vd {
            let bound = vd.bound().map_or_else(
                || "no x below 1 does that".to_owned(),
                |sum| format!("it is {sum}"),
            );
            return vec![format!(
                "why     {}: x U_LO(LO) + U_HI(HI) must be at most 1; {bound}",
                cell.name
            )];
        }
        let witness = &refusal.witness;
        let mut lines = vec![format!(
            "why     {}: task {} is not shown to meet its deadline in high mode: up to {} of \
             work runs before it is done, but it is due after {}",
            cell.name,
            name(cell, witness.task),
            exact(witness.demand),
            exact(witness.instant)
        )];
        lines.extend(super::explain::demands(cell, witness));
        lines
    }
}

impl VirtualDeadlines {
    fn line(&self, cell: &str) -> String {
        let factor = match self.factor {
            _ if self.plain => "EDF is enough without virtual deadlines (x = 1)".to_owned(),
            Some((numerator, denominator)) => format!(
                "virtual deadlines of high tasks in low mode: x = {numerator}/{denominator} ({}) of theirs",
                decimal(numerator.into(), denominator.into())
            ),
            None => "no factor x of virtual deadlines is shown to suffice".to_owned(),
        };
        let part =
            |(numerator, denominator): (Ns, Ns)| decimal(numerator.into(), denominator.into());
        let sum = self
            .bound()
            .map(|sum| format!(", x U_LO(LO) + U_HI(HI) {sum}"))
            .filter(|_| !self.plain);
        format!(
            "factor  {cell}: {factor}; U_LO(LO) {}, U_HI(LO) {}, U_HI(HI) {}{}",
            part(self.low),
            part(self.high_low),
            part(self.high_high),
            sum.unwrap_or_default()
        )
    }

    /// x U_LO(LO) + U_HI(HI) with x = U_HI(LO) / (1 - U_LO(LO)), rounded up; `None` if the low tasks leave nothing.
    fn bound(&self) -> Option<String> {
        let ((low, of_low), (high_low, of_high_low)) = (self.low, self.high_low);
        let idle = of_low.checked_sub(low).filter(|&idle| idle > 0)?;
        // x U_LO(LO) = U_HI(LO) U_LO(LO) / (1 - U_LO(LO)), the denominators of U_LO(LO) cancelled.
        let scaled = (
            u128::from(high_low) * u128::from(low),
            u128::from(of_high_low) * u128::from(idle),
        );
        let high: (u128, u128) = (self.high_high.0.into(), self.high_high.1.into());
        let exact = || {
            let left = scaled.0.checked_mul(high.1)?;
            let sum = left.checked_add(high.0.checked_mul(scaled.1)?)?;
            Some(decimal(sum, scaled.1.checked_mul(high.1)?))
        };
        let apart = || millionths(scaled.0, scaled.1).saturating_add(millionths(high.0, high.1));
        Some(exact().unwrap_or_else(|| fixed(apart())))
    }
}

/// A fraction in millionths, rounded up.
fn millionths(mut numerator: u128, mut denominator: u128) -> u128 {
    while numerator >> 100 > 0 || denominator >> 100 > 0 {
        numerator = (numerator >> 1) + 1;
        denominator >>= 1;
    }
    (numerator * 1_000_000).div_ceil(denominator.max(1))
}

fn fixed(millionths: u128) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}

fn decimal(numerator: u128, denominator: u128) -> String {
    fixed(millionths(numerator, denominator))
}
