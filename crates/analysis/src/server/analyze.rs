//! Tasks inside servers: their responses, server by server and cell by cell.

use serde::{Deserialize, Serialize};

use super::supply::response_within;
use super::{Refill, Server, ServerSupply};
use crate::budget::{Budget, STEPS};
use crate::{Ns, Task, Undecided, Verdict, Witness};

/// A task inside a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LocalTask {
    /// The task; its blocking counts as work of the server.
    pub task: Task,
    /// Whether every job arrives exactly when the server is refilled (Davis and Burns, RTSS 2005, section 4). Has an
    /// effect only without release jitter and on servers with periodic refills.
    pub bound: bool,
}

impl LocalTask {
    /// A task whose jobs arrive at any time.
    ///
    /// ```
    /// use timecell_analysis::{Task, server::LocalTask};
    ///
    /// assert!(!LocalTask::unbound(Task::new(2, 25)).bound);
    /// ```
    pub const fn unbound(task: Task) -> LocalTask {
        LocalTask { task, bound: false }
    }

    /// A task whose jobs arrive with refills of the server.
    ///
    /// ```
    /// use timecell_analysis::{Task, server::{Cell, Kind, LocalTask, Refill, Response, Server, analyze}};
    ///
    /// // Arriving with the refills, a job need not wait out the gap of 7 first.
    /// let server = Server::new(Kind::Deferrable, 3, 10);
    /// let alone = |task| analyze(&[Cell { server, tasks: vec![task] }], Refill::Apart).cells[0].tasks[0].clone();
    /// let task = Task::new(2, 20);
    /// assert_eq!(alone(LocalTask::bound(task)), Response::Bounded(2));
    /// assert_eq!(alone(LocalTask::unbound(task)), Response::Bounded(7 + 2));
    /// ```
    pub const fn bound(task: Task) -> LocalTask {
        LocalTask { task, bound: true }
    }
}

/// A cell: a server and the tasks inside it under fixed priorities, highest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The server that holds the cell to its budget.
    pub server: Server,
    /// Tasks inside, highest priority first.
    pub tasks: Vec<LocalTask>,
}

/// The answer on the response time of one server or task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Never longer than this, ns, and within the deadline.
    Bounded(Ns),
    /// Not shown to be within the deadline: demand exceeds the guaranteed supply by then.
    Exceeded(Witness),
    /// No answer; never to be read as yes.
    Undecided(Undecided),
}

impl Response {
    /// The bound, if there is one.
    ///
    /// ```
    /// use timecell_analysis::{Undecided, server::Response};
    ///
    /// assert_eq!(Response::Bounded(13).bound(), Some(13));
    /// assert_eq!(Response::Undecided(Undecided::Overflow).bound(), None);
    /// ```
    pub const fn bound(&self) -> Option<Ns> {
        match self {
            Response::Bounded(bound) => Some(*bound),
            _ => None,
        }
    }
}

impl From<Verdict> for Response {
    /// A refusal as a response; a bare yes bounds nothing.
    fn from(verdict: Verdict) -> Response {
        match verdict {
            Verdict::Unschedulable(witness) => Response::Exceeded(witness),
            Verdict::Undecided(reason) => Response::Undecided(reason),
            Verdict::Schedulable => Response::Undecided(Undecided::NotCovered(
                "no response time was computed".into(),
            )),
        }
    }
}

/// The answer of [`analyze`] on one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// From a refill of the server until it has had its whole budget; witnesses count servers.
    pub server: Response,
    /// From the arrival of each task's jobs until their completion; witnesses count tasks of the cell.
    pub tasks: Vec<Response>,
}

/// The answer of [`analyze`] on all cells on one cpu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// In the order of the cells given.
    pub cells: Vec<CellAnalysis>,
}

/// The place of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The server of this cell.
    Server(usize),
    /// A task of a cell.
    Task {
        /// Index of the cell.
        cell: usize,
        /// Index of the task in it.
        task: usize,
    },
}

impl Analysis {
    /// Every response and where it belongs: each cell's server, then its tasks.
    ///
    /// ```
    /// use timecell_analysis::{Task, server::{Cell, Kind, LocalTask, Place, Refill, Response, Server, analyze}};
    ///
    /// let cell = Cell {
    ///     server: Server::new(Kind::Periodic, 3, 10),
    ///     tasks: vec![LocalTask::unbound(Task::new(2, 25))],
    /// };
    /// let analysis = analyze(&[cell], Refill::Apart);
    /// let all: Vec<_> = analysis.responses().map(|(place, response)| (place, response.bound())).collect();
    /// assert_eq!(all, [(Place::Server(0), Some(3)), (Place::Task { cell: 0, task: 0 }, Some(9))]);
    /// ```
    pub fn responses(&self) -> impl Iterator<Item = (Place, &Response)> {
        self.cells.iter().enumerate().flat_map(|(cell, analysis)| {
            let tasks = analysis.tasks.iter().enumerate();
            std::iter::once((Place::Server(cell), &analysis.server))
                .chain(tasks.map(move |(task, response)| (Place::Task { cell, task }, response)))
        })
    }

    /// The first server or task that is too late, else the first that is undecided, else none: all is schedulable.
    ///
    /// ```
    /// use timecell_analysis::server::{Cell, Kind, Place, Refill, Server, analyze};
    ///
    /// let cell = |budget, period| Cell { server: Server::new(Kind::Periodic, budget, period), tasks: vec![] };
    /// let analysis = analyze(&[cell(3, 5), cell(5, 10)], Refill::Apart);
    /// assert_eq!(analysis.refusal().map(|(place, _)| place), Some(Place::Server(1)));
    /// ```
    pub fn refusal(&self) -> Option<(Place, &Response)> {
        let undecided = || {
            self.responses()
                .find(|(_, response)| matches!(response, Response::Undecided(_)))
        };
        self.responses()
            .find(|(_, response)| matches!(response, Response::Exceeded(_)))
            .or_else(undecided)
    }

    /// One verdict for all; where its witness belongs, [`Analysis::refusal`] says.
    ///
    /// ```
    /// use timecell_analysis::{Verdict, server::{Cell, Kind, Refill, Server, analyze}};
    ///
    /// let cell = |budget, period| Cell { server: Server::new(Kind::Periodic, budget, period), tasks: vec![] };
    /// assert_eq!(analyze(&[cell(3, 5), cell(4, 10)], Refill::Apart).verdict(), Verdict::Schedulable);
    /// let refused = analyze(&[cell(3, 5), cell(5, 10)], Refill::Apart).verdict();
    /// assert!(matches!(refused, Verdict::Unschedulable(witness) if (witness.instant, witness.demand) == (10, 11)));
    /// ```
    pub fn verdict(&self) -> Verdict {
        match self.refusal() {
            None => Verdict::Schedulable,
            Some((_, Response::Exceeded(witness))) => Verdict::Unschedulable(witness.clone()),
            Some((_, Response::Undecided(reason))) => Verdict::Undecided(reason.clone()),
            Some((_, Response::Bounded(_))) => Verdict::Schedulable,
        }
    }
}

/// Several cells on one cpu, servers in order of priority, highest first: whether every server gets its budget in
/// every period, and a bound on the response time of every task inside.
///
/// Servers by [`ServerSupply::new`], tasks by [`response_time`](super::response_time) (Davis and Burns, RTSS 2005).
/// Sufficient: a set that passes meets its deadlines; one that does not may. Below a server that does not get its
/// budget nothing is counted on, so the rest is undecided.
///
/// ```
/// use timecell_analysis::Task;
/// use timecell_analysis::server::{Cell, Kind, LocalTask, Refill, Response, Server, analyze};
/// let cell = |budget, period, tasks: &[(u64, u64)]| Cell {
///     server: Server::new(Kind::Deferrable, budget, period),
///     tasks: tasks.iter().map(|(c, t)| LocalTask::unbound(Task::new(*c, *t))).collect(),
/// };
/// let analysis = analyze(&[cell(2, 7, &[]), cell(3, 10, &[(2, 25), (4, 50)])], Refill::Apart);
/// assert!(analysis.verdict().is_schedulable());
/// assert_eq!(analysis.cells[1].tasks, [Response::Bounded(13), Response::Bounded(24)]);
///
/// let analysis = analyze(&[cell(5, 7, &[]), cell(3, 10, &[(2, 25)])], Refill::Apart);
/// let (_, Some(witness)) = (analysis.refusal(), match analysis.verdict() {
///     timecell_analysis::Verdict::Unschedulable(witness) => Some(witness),
///     _ => None,
/// }) else { panic!() };
/// assert_eq!((witness.instant, witness.demand, witness.supply), (10, 13, 10));
/// ```
pub fn analyze(cells: &[Cell], refill: Refill) -> Analysis {
    analyze_within(cells, refill, STEPS)
}

/// [`analyze`] (Davis and Burns, RTSS 2005) with another limit on the steps, all cells together; the rest beyond it is undecided.
///
/// ```
/// use timecell_analysis::server::{Cell, Kind, Refill, Server, analyze_within};
/// let cell = Cell { server: Server::new(Kind::Polling, 1, 2), tasks: Vec::new() };
/// assert!(!analyze_within(&[cell], Refill::Apart, 0).verdict().is_schedulable());
/// ```
pub fn analyze_within(cells: &[Cell], refill: Refill, steps: u64) -> Analysis {
    let servers: Vec<Server> = cells.iter().map(|cell| cell.server).collect();
    let mut steps = Budget::new(steps);
    let mut failed = None;
    let cells = cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            if let Some(above) = failed {
                return uncounted(cell, above);
            }
            match ServerSupply::within(&servers, index, refill, &mut steps) {
                Ok((supply, response)) => {
                    let tasks = &cell.tasks;
                    CellAnalysis {
                        server: Response::Bounded(response),
                        tasks: (0..tasks.len())
                            .map(|task| response_within(&supply, tasks, task, &mut steps))
                            .collect(),
                    }
                }
                Err(verdict) => {
                    failed = Some(index);
                    CellAnalysis {
                        server: verdict.into(),
                        ..uncounted(cell, index)
                    }
                }
            }
        })
        .collect();
    Analysis { cells }
}

fn uncounted(cell: &Cell, server: usize) -> CellAnalysis {
    let response = Response::Undecided(Undecided::NotCovered(format!(
        "the server of cell {server} is not guaranteed to get its budget"
    )));
    CellAnalysis {
        server: response.clone(),
        tasks: vec![response; cell.tasks.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NS;
    use crate::server::Kind;

    fn cell(kind: Kind, budget: Ns, period: Ns, tasks: &[LocalTask]) -> Cell {
        Cell {
            server: Server::new(kind, budget, period),
            tasks: tasks.to_vec(),
        }
    }

    fn unbound(wcet: Ns, period: Ns) -> LocalTask {
        LocalTask::unbound(Task::new(wcet, period))
    }

    #[test]
    fn a_bound_task_saves_the_wait_for_the_refill() {
        let responses = |task| {
            let tasks = [task];
            analyze(&[cell(Kind::Periodic, 3, 10, &tasks)], Refill::Apart).cells[0].tasks[0].clone()
        };
        assert_eq!(responses(unbound(4, 40)), Response::Bounded(7 + 11));
        let bound = LocalTask::bound(Task::new(4, 40));
        assert_eq!(responses(bound), Response::Bounded(11));
    }

    #[test]
    fn a_bound_task_with_jitter_counts_as_unbound() {
        let task = Task::new(2, 40).jittered(5);
        let tasks = [LocalTask::bound(task)];
        let analysis = analyze(&[cell(Kind::Deferrable, 3, 10, &tasks)], Refill::Apart);
        assert_eq!(analysis.cells[0].tasks[0], Response::Bounded(5 + 7 + 2));
    }

    #[test]
    fn a_late_task_has_a_witness() {
        let tasks = [unbound(1, 20), LocalTask::unbound(Task::new(3, 40).due(16))];
        let analysis = analyze(&[cell(Kind::Deferrable, 3, 10, &tasks)], Refill::Apart);
        let Response::Exceeded(witness) = &analysis.cells[0].tasks[1] else {
            panic!("{analysis:?}");
        };
        // Finished at 7 + 10 + 1 = 18; by 16 the refill at 7 has given 3 of the 4 needed.
        assert_eq!(
            (witness.instant, witness.demand, witness.supply),
            (16, 4, 3)
        );
        assert_eq!(witness.task, 1);
        assert!(!analysis.verdict().is_schedulable());
        let place = Place::Task { cell: 0, task: 1 };
        assert_eq!(analysis.refusal().unwrap().0, place);
    }

    #[test]
    fn arbitrary_deadlines_look_at_several_jobs() {
        // Alone on the cpu (a budget as long as the period) this is Lehoczky's second example.
        let tasks = [
            unbound(52, 100),
            LocalTask::unbound(Task::new(52, 140).due(1000)),
        ];
        let analysis = analyze(&[cell(Kind::Periodic, 10, 10, &tasks)], Refill::Apart);
        let bounds: Vec<_> = analysis.cells[0]
            .tasks
            .iter()
            .map(Response::bound)
            .collect();
        assert_eq!(bounds, [Some(52), Some(156)]);
    }

    #[test]
    fn constant_bandwidth_servers_share_by_bandwidth_and_come_first() {
        let cbs =
            |budget, period| cell(Kind::ConstantBandwidth, budget, period, &[unbound(1, 100)]);
        let thirds = [cbs(1, 3), cbs(1, 3), cbs(1, 3)];
        let analysis = analyze(&thirds, Refill::Apart);
        assert!(
            analysis.verdict().is_schedulable(),
            "1/3 + 1/3 + 1/3 is exactly 1"
        );
        assert_eq!(analysis.cells[2].tasks[0], Response::Bounded(2 * 2 + 1));

        let over = [cbs(1, 3), cbs(1, 3), cbs(1, 3), cbs(1, MAX_NS)];
        let Verdict::Unschedulable(witness) = analyze(&over, Refill::Apart).verdict() else {
            panic!("one ns too many");
        };
        assert!(witness.demand > witness.supply, "{witness:?}");

        let below = [cell(Kind::Polling, 1, 9, &[]), cbs(1, 3)];
        let verdict = analyze(&below, Refill::Apart).verdict();
        assert!(matches!(
            verdict,
            Verdict::Undecided(Undecided::NotCovered(_))
        ));
    }

    #[test]
    fn refilled_together_needs_one_period() {
        let cells = [
            cell(Kind::Deferrable, 1, 9, &[]),
            cell(Kind::Deferrable, 1, 10, &[]),
        ];
        assert!(matches!(
            analyze(&cells, Refill::Together).verdict(),
            Verdict::Undecided(Undecided::NotCovered(_))
        ));
        let full = [
            cell(Kind::Deferrable, 6, 10, &[]),
            cell(Kind::Deferrable, 4, 10, &[]),
        ];
        assert!(analyze(&full, Refill::Together).verdict().is_schedulable());
        assert!(!analyze(&full, Refill::Apart).verdict().is_schedulable());
    }

    #[test]
    fn absurd_input_neither_panics_nor_passes() {
        let tasks = [
            LocalTask::unbound(Task::new(1, 1).due(MAX_NS)),
            LocalTask::unbound(Task::new(1, MAX_NS).jittered(MAX_NS)),
        ];
        for kind in [Kind::Deferrable, Kind::Polling, Kind::Sporadic] {
            for (budget, period) in [(1, 2), (1, MAX_NS), (MAX_NS, MAX_NS), (0, 0), (2, u64::MAX)] {
                let cells = [cell(kind, 1, 3, &tasks), cell(kind, budget, period, &tasks)];
                let analysis = analyze_within(&cells, Refill::Apart, 100_000);
                assert!(!analysis.verdict().is_schedulable());
            }
        }
    }

    #[test]
    fn a_server_used_up_exactly_ends() {
        let tasks = [
            unbound(1, 2),
            LocalTask::unbound(Task::new(1, 3).due(MAX_NS)),
        ];
        let analysis = analyze(&[cell(Kind::Deferrable, 5, 6, &tasks)], Refill::Apart);
        let response = &analysis.cells[0].tasks[1];
        assert!(response.bound().is_some() || matches!(response, Response::Undecided(_)));
    }
}
