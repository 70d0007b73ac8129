//! A running mission, as its supervisor reports it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use probe::clock;
use supervise::control::{Ask, BoundStatus, CellState, CellStatus, Say, Status};

use super::columns::{Kind, MISSION};
use super::scene::{Kept, Machine, Row, Scene, Source, TaskRow, rt_limit};
use crate::commands::control::{ask_for, unexpected};
use crate::commands::ps::{self, budget_text, figures, head, why};

/// The mission of a directory.
pub struct Mission {
    dir: PathBuf,
    machine: Machine,
    /// Time of the last look, ns, and the cpu time, ns, that each life of a cell had then.
    before: (i64, HashMap<Life, i64>),
}

/// A life of a cell: name, process and number of the start. During an update, two versions have the same name.
type Life = (String, Option<i32>, u64);

/// Whether the mission of this directory has a supervisor.
pub fn is_up(dir: &Path) -> bool {
    ask_for(dir, Ask::Status).is_ok()
}

impl Mission {
    /// Before the first look.
    pub fn new(dir: PathBuf) -> Mission {
        Mission {
            dir,
            machine: Machine::default(),
            before: (0, HashMap::new()),
        }
    }

    fn scene(&mut self, status: &Status) -> Scene {
        let now = clock::now();
        let life = |cell: &CellStatus| (cell.cell.clone(), cell.pid, cell.starts);
        let used = |cell: &CellStatus| Some((life(cell), cell.cpu_ns?));
        let then = (now, status.cells.iter().filter_map(used).collect());
        let (before, lives) = std::mem::replace(&mut self.before, then);
        let share = |cell: &CellStatus| {
            let used = cell.cpu_ns? - lives.get(&life(cell))?;
            (now > before).then(|| used as f64 / (now - before) as f64)
        };
        Scene {
            kind: &MISSION,
            schema: 1,
            what: head(status),
            run: String::new(),
            pid: (status.supervisor.as_ref()).map_or(0, |own| own.pid.cast_signed()),
            left_ns: 0,
            loads: Vec::new(),
            shared_reservation: None,
            rt_limit: rt_limit(),
            cpus: self.machine.cpus(),
            own_share: self.machine.own_share(),
            rows: (status.cells.iter())
                .map(|cell| row(cell, share(cell)))
                .collect(),
        }
    }
}

fn row(cell: &CellStatus, cpu_share: Option<f64>) -> Row {
    let sum = ps::sum(cell);
    Row {
        id: cell.cell.clone(),
        engine: String::new(),
        cpus: cell.cpus.clone(),
        class: (cell.pid)
            .and_then(|pid| host::sched::get_class(pid).ok())
            .map_or_else(String::new, |class| class.to_string()),
        enforcer: cell.enforcer.clone(),
        reservation: (cell.budget_ns.zip(cell.period_ns))
            .map(|(budget, period)| budget_text(budget, period)),
        state: cell.state.word(),
        failure: Some(why(cell)).filter(|why| !why.is_empty()),
        pid: cell.pid,
        cpu_share: cpu_share.filter(|_| cell.state != CellState::Stopped),
        cpu_ns: cell.cpu_ns,
        jobs: sum.as_ref().map_or(0, |sum| sum.jobs),
        planned: None,
        skipped: 0,
        lost: 0,
        unseen: 0,
        worst_latency_ns: None,
        worst_execution_ns: None,
        kept: Some(Kept {
            starts: cell.starts,
            late: sum.as_ref().map(|sum| sum.late),
            skipped: sum.as_ref().map(|sum| sum.skipped),
            worst_response_ns: sum.as_ref().and_then(|sum| sum.worst_response_ns),
        }),
        figures: figures(sum.as_ref(), &cell.bounds),
        tasks: ps::tasks(cell).iter().map(task_row).collect(),
    }
}

fn task_row(task: &ps::Task<'_>) -> TaskRow {
    let stands = |bound: &&BoundStatus| bound.withdrawn().is_none();
    TaskRow {
        task: task.name.to_owned(),
        jobs: task.reported.map(|reported| reported.jobs),
        late: task.reported.map(|reported| reported.late),
        skipped: task.reported.map(|reported| reported.skipped),
        worst_response_ns: (task.reported).and_then(|reported| reported.worst_response_ns),
        bound_ns: (task.bound.first())
            .filter(stands)
            .map(|bound| bound.bound_ns),
        figures: figures(task.reported, task.bound),
    }
}

impl Source for Mission {
    fn kind(&self) -> &'static Kind {
        &MISSION
    }

    fn look(&mut self) -> Result<Scene, String> {
        match ask_for(&self.dir, Ask::Status) {
            Ok(Say::Status(status)) => Ok(self.scene(&status)),
            Ok(other) => Err(unexpected(&other).to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}
