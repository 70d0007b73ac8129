//! The study of cells that are scheduled over several cpus.

use analysis::inside::Inside;
use analysis::multi::{
    Inside as Within, LateJob, Mpr, bcl_edf_with_slack, bcl_fp, gfb, late_in_synchronous_run,
    least_theta, mpr_edf, mpr_fp, overloaded, overloaded_inside, rta_bc_edf, rta_bc_fp, rta_lc,
};
use analysis::{Ns, Part, Task, Undecided, Verdict, Witness, edf, fp};
use model::taskset::{Policy, TaskCell};
use serde::Serialize;

use super::judge::{ns, renumbered};
use super::special::late;
use super::study::{CellStudy, urgent_first};
use text::units::exact;
use text::words::plural;

/// Budgets are searched for on this grid.
const GRID_NS: Ns = 1_000;

/// For more tasks than this, no sufficient number of cpus or budget is searched for.
const MOST_TASKS: usize = 256;

/// Steps per task of the simulation that looks for a missed deadline: some tenths of a second.
const RUN: u64 = 10_000_000;

/// A cell whose tasks are scheduled globally on several cpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GlobalStudy {
    /// Number of cpus.
    pub cpus: u32,
    /// The equal share of the reservation on each cpu, rounded up; the reservation is the sum over all cpus.
    pub budget_on_each_ns: Option<Ns>,
    /// The answers of the tests.
    pub tests: Vec<GlobalTest>,
    /// If no test shows that the deadlines hold and no miss is proved: the number of dedicated cpus with which one does.
    /// Only searched for in explanations.
    pub enough_cpus: Option<u32>,
    /// The same for the sum of the budgets, with the period of the reservation.
    pub enough_budget_ns: Option<Ns>,
    /// If no test shows that the deadlines hold, the last test's count against the first task that fails it.
    pub doubt: Option<Witness>,
    /// A job that misses its deadline if all tasks arrive at once and then as often as allowed.
    pub late_job: Option<LateJob>,
}

/// One test's answer; each is sufficient only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GlobalTest {
    /// Its name.
    pub name: &'static str,
    /// Whether it shows that every deadline holds.
    pub shows: bool,
    /// Why it does not cover such a set, if so.
    pub not_asked: Option<String>,
}

struct Asked {
    name: &'static str,
    verdict: Verdict,
    responses: Option<Vec<Option<Ns>>>,
}

/// All tests for a cell's tasks, the most urgent first; the strongest is the last.
fn ask(tasks: &[Task], policy: Policy, supply: &Cpus) -> Vec<Asked> {
    let plain = |name, verdict| Asked {
        name,
        verdict,
        responses: None,
    };
    match (policy, supply) {
        (Policy::GlobalEdf(_), Cpus::Whole(cpus)) => {
            let bounds = rta_bc_edf(tasks, *cpus);
            vec![
                plain("GFB", gfb(tasks, *cpus)),
                plain("BCL with slacks", bcl_edf_with_slack(tasks, *cpus)),
                Asked {
                    name: "RTA of Bertogna and Cirinei",
                    verdict: bounds.verdict,
                    responses: Some(bounds.responses),
                },
            ]
        }
        (_, Cpus::Whole(cpus)) => {
            let (bounds, limited) = (rta_bc_fp(tasks, *cpus), rta_lc(tasks, *cpus));
            vec![
                plain("BCL", bcl_fp(tasks, *cpus)),
                Asked {
                    name: "RTA of Bertogna and Cirinei",
                    verdict: bounds.verdict,
                    responses: Some(bounds.responses),
                },
                Asked {
                    name: "RTA-LC",
                    verdict: limited.verdict,
                    responses: Some(limited.responses),
                },
            ]
        }
        (Policy::GlobalEdf(_), Cpus::Part(resource)) => {
            vec![plain("MPR for EDF", mpr_edf(tasks, resource))]
        }
        (_, Cpus::Part(resource)) => {
            vec![plain("MPR for fixed priorities", mpr_fp(tasks, resource))]
        }
    }
}

/// The cpus that serve the cell.
enum Cpus {
    Whole(u32),
    Part(Mpr),
}

impl Cpus {
    fn of(cell: &TaskCell) -> Option<Cpus> {
        let cpus = cell.policy.cpus()?;
        match &cell.reservation {
            None => Some(Cpus::Whole(cpus)),
            Some(r) => Mpr::new(ns(r.period), ns(r.budget), cpus)
                .ok()
                .map(Cpus::Part),
        }
    }

    fn overloaded(&self, tasks: &[Task]) -> Option<Witness> {
        match self {
            Cpus::Whole(cpus) => overloaded(tasks, *cpus),
            Cpus::Part(resource) => overloaded_inside(tasks, resource),
        }
    }

    /// Within a reservation no run is simulated.
    fn late_job(&self, tasks: &[Task], policy: Policy) -> Option<LateJob> {
        let Cpus::Whole(cpus) = self else { return None };
        let order = match policy {
            Policy::GlobalEdf(_) => Within::GlobalEdf,
            _ => Within::GlobalFixedPriority,
        };
        late_in_synchronous_run(tasks, *cpus, order, RUN)
    }
}

/// How the cell's tasks are scheduled within its reservation.
pub(super) fn within(cell: &TaskCell) -> Option<Within> {
    match cell.policy {
        Policy::GlobalEdf(_) => Some(Within::GlobalEdf),
        Policy::GlobalFixed(..) => Some(Within::GlobalFixedPriority),
        _ => None,
    }
}

/// Whether a test shows that every deadline holds; `None` if none does.
pub(super) fn shown(cell: &TaskCell) -> Option<bool> {
    let asked = ask(&urgent_first(cell), cell.policy, &Cpus::of(cell)?);
    let shown = asked.iter().any(|test| test.verdict.is_schedulable());
    shown.then_some(true)
}

/// The tests' answer on a cell, tasks numbered as in the file; `None` if its reservation is invalid.
pub(super) fn judge(cell: &TaskCell) -> Option<Inside> {
    let order = cell.by_urgency();
    let tasks = urgent_first(cell);
    let supply = Cpus::of(cell)?;
    let asked = ask(&tasks, cell.policy, &supply);
    let mut responses: Vec<Option<Ns>> = vec![None; tasks.len()];
    for bounds in asked.iter().filter_map(|test| test.responses.as_ref()) {
        for (&place, &bound) in order.iter().zip(bounds) {
            // Each test's bounds hold, so the smallest of them does too.
            responses[place] = match (responses[place], bound) {
                (Some(least), Some(bound)) => Some(least.min(bound)),
                (least, bound) => least.or(bound),
            };
        }
    }
    if asked.iter().any(|test| test.verdict.is_schedulable()) {
        return Some(Inside {
            verdict: Verdict::Schedulable,
            responses,
            missed: Vec::new(),
        });
    }
    let run = || Some(supply.late_job(&tasks, cell.policy)?.witness());
    let verdict = match supply.overloaded(&tasks).or_else(run) {
        Some(witness) => Verdict::Unschedulable(renumbered(witness, &order)),
        None => Verdict::Undecided(doubt(&asked)),
    };
    let missed = late(&verdict);
    Some(Inside {
        verdict,
        responses,
        missed,
    })
}

fn doubt(asked: &[Asked]) -> Undecided {
    let why = asked.iter().map(|test| match &test.verdict {
        Verdict::Undecided(why) => Some(why),
        _ => None,
    });
    // If every test has a reason not to answer, the first one is given.
    match why.collect::<Option<Vec<_>>>().as_deref() {
        Some([first, ..]) => (*first).clone(),
        _ => Undecided::NotCovered(
            "no test shows that every deadline holds, and none proves a miss".to_owned(),
        ),
    }
}

impl GlobalStudy {
    pub(super) fn of(cell: &TaskCell, fixing: bool) -> GlobalStudy {
        let cpus = cell.policy.cpus().unwrap_or(1);
        let order = cell.by_urgency();
        let tasks = urgent_first(cell);
        let supply = Cpus::of(cell);
        let asked = supply
            .as_ref()
            .map_or_else(Vec::new, |supply| ask(&tasks, cell.policy, supply));
        let shown = asked.iter().any(|test| test.verdict.is_schedulable());
        let last = asked.iter().rev().find_map(|test| match &test.verdict {
            Verdict::Unschedulable(witness) => Some(witness.clone()),
            _ => None,
        });
        let seek = fixing && !shown && tasks.len() <= MOST_TASKS;
        let tests = asked.iter().map(|test| GlobalTest {
            name: test.name,
            shows: test.verdict.is_schedulable(),
            not_asked: match &test.verdict {
                Verdict::Undecided(why) => Some(why.to_string()),
                _ => None,
            },
        });
        let mut study = GlobalStudy {
            cpus,
            budget_on_each_ns: cell
                .reservation
                .map(|r| ns(r.budget).div_ceil(u64::from(cpus))),
            tests: tests.collect(),
            enough_cpus: None,
            enough_budget_ns: None,
            doubt: last
                .filter(|_| !shown)
                .map(|witness| renumbered(witness, &order)),
            late_job: None,
        };
        if let Some(supply) = supply.as_ref().filter(|_| !shown)
            && supply.overloaded(&tasks).is_none()
        {
            study.late_job = supply.late_job(&tasks, cell.policy).map(|late| LateJob {
                task: order[late.task],
                ..late
            });
        }
        if seek {
            let most = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
            // Of a reservation even one whole cpu may be more.
            let least = if cell.reservation.is_some() { 1 } else { cpus };
            study.enough_cpus = (least..=most).find(|&cpus| {
                if cpus == 1 {
                    return match cell.policy {
                        Policy::GlobalEdf(_) => edf::verdict(&tasks),
                        _ => fp::verdict(&tasks),
                    }
                    .is_schedulable();
                }
                let asked = ask(&tasks, cell.policy, &Cpus::Whole(cpus));
                asked.iter().any(|test| test.verdict.is_schedulable())
            });
            study.enough_budget_ns = cell.reservation.zip(within(cell)).and_then(|(r, within)| {
                let found = least_theta(&tasks, ns(r.period), cpus, GRID_NS, within);
                Some(found.ok()??.total())
            });
        }
        study
    }

    pub(super) fn proof(&self) -> String {
        let shown: Vec<&str> = self
            .tests
            .iter()
            .filter(|test| test.shows)
            .map(|test| test.name)
            .collect();
        let by = if shown.is_empty() {
            "global tests".to_owned()
        } else {
            format!("shown by {}", shown.join(", "))
        };
        format!("{by} for sporadic tasks, sufficient")
    }

    /// `on 2 cpus of its own`, `in 17.5 ms every 10 ms over 2 cpus (8.75 ms on each)`.
    pub(super) fn supply_words(&self, cell: &CellStudy) -> String {
        let cpus = plural(self.cpus.into(), "cpu");
        match (&cell.reservation, self.budget_on_each_ns) {
            (Some(r), Some(each)) => format!(
                "in {} every {} over {cpus} ({} on each)",
                exact(r.budget_ns),
                exact(r.period_ns),
                exact(each)
            ),
            _ => format!("on {cpus} of its own"),
        }
    }

    pub(super) fn lines(&self, cell: &CellStudy) -> Vec<String> {
        let said: Vec<String> = self
            .tests
            .iter()
            .map(|test| {
                let answer = match (test.shows, &test.not_asked) {
                    (true, _) => "shown",
                    (false, None) => "not shown",
                    (false, Some(_)) => "no answer",
                };
                format!("{} {answer}", test.name)
            })
            .collect();
        vec![format!("tests   {}: {}", cell.name, said.join("; "))]
    }

    /// The demands that a test counts. The work of another task counts only as far as it can keep the task from running; the task's own
    /// time counts on every cpu, since the others cannot make up for it.
    fn demands(&self, cell: &CellStudy, witness: &Witness) -> Vec<String> {
        let own = cell.tasks.get(witness.task).map_or(0, |task| task.wcet_ns);
        let line = |part: &Part| {
            let demand = exact(part.demand);
            let name = super::special::name(cell, part.task);
            let wcet = cell.tasks.get(part.task).map_or(0, |task| task.wcet_ns);
            let whole = part.jobs.saturating_mul(wcet);
            if part.task == witness.task {
                return format!(
                    "demand  {demand}: {name} itself, whose {} on one cpu count on all {}",
                    exact(own),
                    self.cpus
                );
            }
            if part.demand < whole && witness.instant.saturating_sub(part.demand) < own {
                return format!(
                    "demand  {demand}: {name}; no more of its {} can delay {}",
                    plural(part.jobs, "job"),
                    super::special::name(cell, witness.task)
                );
            }
            let of = if part.demand < whole { "at most " } else { "" };
            format!(
                "demand  {demand}: {of}{} of {name}",
                plural(part.jobs, "job")
            )
        };
        super::explain::largest(&witness.parts, line)
    }

    /// The demands that the last test counts, and the bound that would suffice.
    pub(super) fn reasons(&self, cell: &CellStudy) -> Vec<String> {
        let mut lines = Vec::new();
        let proved = matches!(cell.verdict, Verdict::Unschedulable(_));
        match (&cell.verdict, &self.late_job) {
            (Verdict::Unschedulable(_), Some(late)) => lines.push(format!(
                "why     {}: task {} misses its deadline if all tasks arrive at once and then \
                 as often as allowed: its job {} arrives after {} and is due after {}, when it \
                 has had {} of its {}",
                cell.name,
                super::special::name(cell, late.task),
                late.job,
                exact(late.arrival),
                exact(late.due),
                exact(late.done),
                exact(late.wcet)
            )),
            (Verdict::Unschedulable(witness), None) if witness.parts.is_empty() => {
                lines.push(format!(
                    "why     {}: in the long run the tasks need more than there is: {} of cpu \
                     time in {} on average (utilisation {}), but only {} is available ({})",
                    cell.name,
                    exact(witness.demand),
                    exact(witness.instant),
                    ratio(witness.demand, witness.instant),
                    exact(witness.supply),
                    ratio(witness.supply, witness.instant)
                ));
            }
            (Verdict::Unschedulable(witness), None) => {
                lines.extend(super::explain::witness_lines(cell, witness));
            }
            _ => {}
        }
        if let Some(witness) = self.doubt.as_ref().filter(|_| !proved) {
            lines.push(format!(
                "why     {}: task {} is not shown to meet its deadline: by {} the test counts \
                 {} of work, but only {} of cpu time",
                cell.name,
                super::special::name(cell, witness.task),
                exact(witness.instant),
                exact(witness.demand),
                exact(witness.supply)
            ));
            lines.extend(self.demands(cell, witness));
        }
        for test in &self.tests {
            if let Some(why) = &test.not_asked {
                lines.push(format!("tests   {}: {why}", test.name));
            }
        }
        if let Some(enough) = self.enough_budget_ns {
            lines.push(format!(
                "fix     budget +{} ({} -> {} over {})",
                exact(enough.saturating_sub(cell.reservation.map_or(0, |r| r.budget_ns))),
                exact(cell.reservation.map_or(0, |r| r.budget_ns)),
                exact(enough),
                plural(self.cpus.into(), "cpu")
            ));
        }
        if let Some(enough) = self.enough_cpus {
            lines.push(format!(
                "fix     {} for this cell alone would be enough",
                plural(enough.into(), "cpu")
            ));
        }
        lines
    }
}

/// To six decimals, rounded down.
fn ratio(part: Ns, whole: Ns) -> String {
    let millionths = u128::from(part) * 1_000_000 / u128::from(whole.max(1));
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
