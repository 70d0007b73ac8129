//! The state of the mission, put together for clients.

use engine::Cell as _;
use record::trial::HelperRecord;

use super::cell::Live;
use super::keeper::Keeper;
use super::phase::{Next, Phase};
use super::version::Cell;
use crate::control::{CellState, CellStatus, SCHEMA, Say, Status, SupervisorStatus, prometheus};
use crate::dirs::work_dir;
use crate::stamp::Stamp;
use crate::state::{Cell as Known, Hold};

impl Keeper<'_> {
    pub(super) fn say_status(&mut self, client: u64, with_assumptions: bool) {
        let now_ns = timecell_client::now_ns();
        for cell in &mut self.cells {
            cell.count_out_of_band();
            if let Some(live) = cell.phase.live_mut() {
                live.look_for_unheld(now_ns);
            }
        }
        let status = Box::new(self.status(with_assumptions));
        self.desk.say(client, Say::Status(status), true);
    }

    pub(super) fn say_metrics(&mut self, client: u64) {
        let text = prometheus(&self.status(false));
        self.desk.say(client, Say::Metrics { text }, true);
    }

    /// The mission as it is now.
    fn status(&self, with_assumptions: bool) -> Status {
        let mission = self.mission();
        let ns = |ns: Option<u64>| ns.and_then(|ns| i64::try_from(ns).ok());
        let own = Some(&self.admission.supervisor).filter(|_| self.work.reserve.is_held());
        let mut cells = Vec::new();
        for (at, cell) in mission.cells.iter().enumerate() {
            let known = self.state.cells.get(&cell.name);
            let is_beside = known.is_some_and(Known::is_beside);
            let dir = work_dir(&self.dir, &cell.name, is_beside);
            let mut status = CellStatus::of(&cell.name, known, dir);
            let version = &self.cells[at];
            if let Some(live) = version.phase.live() {
                show_live(&mut status, live, version, known);
                status.bounds = self.bounds(at, with_assumptions);
                if cell.engine.is_machine() {
                    status.helpers = helpers(live);
                }
            } else {
                status.pid = None;
                status.started_unix_ns = None;
                match version.phase {
                    Phase::Starting(..) => {
                        status.state = CellState::Starting;
                        status.why = None;
                    }
                    Phase::Removing(ref gone, _) => {
                        status.state = CellState::Ending;
                        status.why = (!gone.asked).then(|| "its program has ended".to_owned());
                    }
                    _ if self.work.clears(&cell.name).is_some() => {
                        status.state = CellState::Ending;
                        status.why = None;
                    }
                    _ => match version.phase.next() {
                        Next::Due(_) => status.state = CellState::Restarting,
                        Next::Waits => status.state = CellState::Waiting,
                        Next::Stays if status.why.is_none() => {
                            status.why.clone_from(&version.failure);
                        }
                        Next::Stays => {}
                    },
                }
            }
            if let Some(grant) = self.admission.grant(&cell.name) {
                status.enforcer = Some(grant.enforcer.name().to_owned());
                status.mutexes = Some(grant.mutexes());
                status.cpus.clone_from(&grant.cpus);
                status.budget_ns = ns(grant.budget_ns);
                status.period_ns = ns(grant.period_ns);
            }
            cells.push(status);
        }
        for (version, name) in self.put_aside().map(|at| (&self.cells[at], self.name(at))) {
            let Some(live) = version.phase.live() else {
                continue;
            };
            let known = self.state.cells.get(&name);
            let dir = work_dir(&self.dir, &name, version.beside);
            let mut status = CellStatus::of(&name, known, dir);
            show_live(&mut status, live, version, known);
            status.why = Some("the version before the update".to_owned());
            cells.push(status);
        }
        let mut totals = self.earlier.clone();
        for status in &cells {
            let total = totals.entry(status.cell.clone()).or_default();
            total.add(status.cpu_ns, &status.tasks);
        }
        for status in &mut cells {
            status.total = totals.get(&status.cell).cloned().unwrap_or_default();
        }
        Status {
            schema: SCHEMA,
            at_utc: Stamp::now().utc(),
            mission: Some(mission.name.clone()),
            dir: self.dir.clone(),
            caution: Status::caution(),
            supervisor: Some(SupervisorStatus {
                pid: std::process::id(),
                version: (self.state.supervisor.as_ref())
                    .map_or(String::new(), |own| own.version.clone()),
                cpu_ns: host::process::cpu_ns_of_threads(std::process::id().cast_signed())
                    .ok()
                    .flatten(),
                rss_bytes: resident_bytes(),
                budget_ns: own.and_then(|own| ns(own.budget_ns)),
                period_ns: own.and_then(|own| ns(own.period_ns)),
                priority: own.and_then(|own| own.priority),
                cpus: own.map_or(Vec::new(), |own| own.cpus.clone()),
            }),
            mode: self.state.mode,
            update: self.state.update.as_ref().map(|update| update.number),
            cells,
        }
    }
}

/// QEMU's threads in a cell that execute no virtual cpu.
fn helpers(live: &Live) -> Vec<HelperRecord> {
    let is_qemu = |thread: &i32| {
        host::process::name(*thread).is_some_and(|name| name.starts_with("qemu-system"))
    };
    let first = live.inside.threads().into_iter().find(is_qemu);
    first.map_or_else(Vec::new, |qemu| HelperRecord::of(qemu, &[]))
}

fn show_live(status: &mut CellStatus, live: &Live, version: &Cell, known: Option<&Known>) {
    status.state = match version.phase.is_told() {
        true => CellState::Ending,
        false => CellState::Running,
    };
    status.ready = status.state == CellState::Running && version.watch.is_ready();
    status.why = None;
    if status.holds.contains(&Hold::Shed) {
        status.why = Some(Hold::Shed.clause().to_owned());
    }
    status.pid = Some(live.app.pid());
    status.guarantee = Some(live.hold.guarantee());
    status.unheld = live.unheld.told().to_vec();
    status.cpu_ns = version.watch.used_ns();
    status.tasks = version.watch.reported();
    let instance = known.and_then(|known| known.instances.get(&version.generation));
    status.started_unix_ns = instance.map(|instance| instance.since.wall_unix_ns);
}

/// `VmRSS` of `/proc/self/status`: read without walking the page tables, as the sum of `smaps` would be.
fn resident_bytes() -> Option<u64> {
    let own = std::process::id().cast_signed();
    host::process::bytes(&host::process::status(own), "VmRSS")
}
