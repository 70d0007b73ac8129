//! The request of a real-time cell.

use analysis::Ns;
use analysis::Task;
use analysis::inside::Policy;
use model::Enforcer;
use model::mission::{Band, Cell, CellClass, Mission, Ready};
use model::taskset::CellTask;

use super::Facts;
use super::choice::shortest_timeout;
use super::search::Work;

/// The request of a real-time cell, as admission takes it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Position in the mission.
    pub(super) at: usize,
    pub(super) name: String,
    /// Its owner, such as "mission `a`"; `None`: this mission.
    pub(super) owner: Option<String>,
    /// Of a cell of another owner: cell and owner, such as "`spin` of mission `a`".
    pub(super) holder: Option<String>,
    /// Whether it is no cell but a supervisor, which holds itself to its budget.
    pub(super) is_supervisor: bool,
    pub(super) enforcer: Enforcer,
    /// As it is analysed.
    pub(super) class: CellClass,
    /// Whether its threads are of SCHED_RR rather than SCHED_FIFO.
    pub(super) round_robin: bool,
    /// Cpus of the file; empty: to be placed.
    pub(super) cpus: Vec<u32>,
    /// Its priorities: those of the file, and once [`super::bands::give`] is done those of every cell of class FIFO.
    pub(super) band: Option<Band>,
    /// From the lowest to the highest priority that the program gives its threads itself: it gets these where they are free.
    pub(super) wished: Option<Band>,
    /// Budget on each of its cpus and period, ns, where the file has them.
    pub(super) reservation: Option<(Ns, Ns)>,
    /// Whether nothing runs in it but its tasks, under a mechanism that has budgets which these cannot use up.
    pub(super) only_tasks: bool,
    /// Whether the file does not say so, and it is assumed: only where the cell is admitted for nothing else.
    pub(super) is_assumed: bool,
    /// How long a period of an ample budget may be for its start, which may use budgets up and is no reason to start it again, ns: within the
    /// silence after which a health rule acts at the soonest, and, where the end of a job is waited for, within a part of `start_timeout`.
    pub(super) silent_for: Option<Ns>,
    /// Tasks, the most urgent first, and where each stands in the file.
    pub(super) work: Work,
    pub(super) order: Vec<usize>,
    pub(super) names: Vec<String>,
    /// SCHED_FIFO priorities that the file gives them; `None`: it gives none.
    pub(super) declared: Option<Vec<u8>>,
}

/// The enforcer of a cell; `usual` where neither the mission nor the class names one.
pub(super) fn enforcer(mission: &Mission, cell: &Cell, facts: &Facts, usual: Enforcer) -> Enforcer {
    match (mission.enforcer, cell.class) {
        (Some(asked), _) => asked,
        (None, Some(CellClass::Deadline)) => Enforcer::Deadline,
        (None, Some(CellClass::Fifo | CellClass::RoundRobin)) => facts.of_fifo(cell),
        (None, Some(CellClass::Other) | None) => usual,
    }
}

/// A time of the model; negative ones do not pass the parser.
/// As the analysis takes it.
pub(super) fn ns(time: model::Duration) -> Ns {
    time.ns().unsigned_abs()
}

/// A task with the latency that every wake-up may have; of a cell of high criticality with its execution time in high mode,
/// which bounds that in low mode.
fn task(task: &CellTask, latency_ns: Ns) -> Task {
    let wcet = task.wcet_high.unwrap_or(task.wcet);
    Task::new(ns(wcet), ns(task.period))
        .due(ns(task.deadline))
        .jittered(ns(task.jitter))
        .blocked(ns(task.blocking).saturating_add(latency_ns))
}

/// Periods of an ample budget that `start_timeout` has room for.
const PERIODS_OF_A_START: Ns = 20;

fn silent_for(cell: &Cell) -> Option<Ns> {
    let start =
        (cell.ready == Ready::FirstJob).then(|| ns(cell.start_timeout) / PERIODS_OF_A_START);
    shortest_timeout(cell)
        .map(ns)
        .into_iter()
        .chain(start)
        .min()
}

impl Asked {
    pub(super) fn of(
        mission: &Mission,
        at: usize,
        facts: &Facts,
        latency_ns: Ns,
        usual: Enforcer,
        assumed: bool,
    ) -> Asked {
        let cell = &mission.cells[at];
        let enforcer = enforcer(mission, cell, facts, usual);
        let class = cell.class.unwrap_or(enforcer.usual_class()).analysed();
        let analysed = cell.analysed(class);
        let is_assumed = assumed && !cell.only_tasks && !analysed.tasks.is_empty();
        let has_ample = class == CellClass::Fifo && enforcer.has_ample_budgets();
        let order = analysed.by_urgency();
        let tasks = order
            .iter()
            .map(|&at| task(&analysed.tasks[at], latency_ns));
        let cpus = Ns::from(cell.cpu_count());
        let reservation = cell.reservation.map(|reservation| {
            let budget = cell.budget_high.unwrap_or(reservation.budget);
            (ns(budget) / cpus, ns(reservation.period))
        });
        Asked {
            at,
            name: cell.name.clone(),
            owner: None,
            holder: None,
            is_supervisor: false,
            enforcer,
            class,
            round_robin: cell.class == Some(CellClass::RoundRobin),
            cpus: cell.cpus.clone(),
            band: cell.priorities,
            wished: cell.band(),
            reservation,
            only_tasks: (cell.only_tasks || is_assumed) && has_ample,
            is_assumed: is_assumed && has_ample,
            silent_for: silent_for(cell),
            work: Work {
                tasks: tasks.collect(),
                policy: match class {
                    CellClass::Deadline => Policy::Edf,
                    _ => Policy::FixedPriority,
                },
            },
            declared: (order.iter())
                .map(|&at| u8::try_from(analysed.tasks[at].priority?).ok())
                .collect::<Option<Vec<u8>>>()
                .filter(|declared| !declared.is_empty()),
            names: order
                .iter()
                .map(|&at| analysed.tasks[at].name.clone())
                .collect(),
            order,
        }
    }

    /// The period by which cells without declared priorities are ordered: the shorter, the more urgent.
    pub(super) fn urgency(&self) -> Ns {
        let of_tasks = self.work.tasks.iter().map(|task| task.deadline).min();
        let of_reservation = self.reservation.map(|(_, period)| period);
        of_tasks.or(of_reservation).unwrap_or(Ns::MAX)
    }

    /// It as sentences name it.
    pub(super) fn called(&self) -> String {
        (self.holder.clone()).unwrap_or_else(|| format!("`{}`", self.name))
    }

    /// Priorities that its threads need: one for each task, and where there is room (`spare`) one below them for its other threads.
    pub(super) fn priorities(&self, spare: bool) -> usize {
        match self.work.tasks.len() {
            0 => 1,
            tasks => tasks + usize::from(spare),
        }
    }

    /// Whether it may run on the same cpu as another.
    pub(super) fn may_meet(&self, other: &Asked) -> bool {
        let anywhere = self.cpus.is_empty() || other.cpus.is_empty();
        anywhere || self.cpus.iter().any(|cpu| other.cpus.contains(cpu))
    }
}
