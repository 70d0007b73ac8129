//! How the mission stands, put together for clients.

use std::path::PathBuf;

use engine::Cell as _;

use super::cell::Live;
use super::keeper::Keeper;
use super::watch::CellWatch;
use crate::control::{CellState, CellStatus, SCHEMA, Say, Status, SupervisorStatus, prometheus};
use crate::stamp::Stamp;
use crate::state::{Cell, Hold};

impl Keeper<'_> {
    pub(super) fn say_status(&mut self, client: u64) {
        let now_ns = timecell_client::now_ns();
        let leaving = self.desk.leaving.values_mut();
        for live in (self.live.values_mut()).chain(leaving.map(|leaving| &mut leaving.live)) {
            live.look_for_unheld(now_ns);
        }
        let status = Box::new(self.status());
        self.desk.say(client, Say::Status(status), true);
    }

    pub(super) fn say_metrics(&mut self, client: u64) {
        let text = prometheus(&self.status());
        self.desk.say(client, Say::Metrics { text }, true);
    }

    /// The mission as it is now.
    fn status(&self) -> Status {
        let mission = self.mission();
        let ns = |ns: Option<u64>| ns.and_then(|ns| i64::try_from(ns).ok());
        let own = Some(&self.admission.supervisor).filter(|_| self.work.reserve.is_held());
        let mut cells = Vec::new();
        for (at, cell) in mission.cells.iter().enumerate() {
            let known = self.state.cells.get(&cell.name);
            let dir = self.output_dir(&cell.name, known);
            let mut status = CellStatus::of(&cell.name, known, dir);
            match self.live.get(&at) {
                Some(live) => {
                    show_live(&mut status, live, Some(&self.watches[at]), known);
                    status.tasks = self.watches[at].reported();
                }
                None => {
                    status.pid = None;
                    status.started_unix_ns = None;
                    if self.work.starting.contains_key(&cell.name) {
                        status.state = CellState::Starting;
                        status.why = None;
                    } else if let Some((_, removing)) = self.work.removing_of(&cell.name) {
                        status.state = CellState::Ending;
                        status.why = (!removing.asked).then(|| "its program has ended".to_owned());
                    } else if self.due.contains_key(&at) {
                        status.state = CellState::Restarting;
                    } else if self.pending.contains(&at) {
                        status.state = CellState::Waiting;
                    } else if status.why.is_none() {
                        status.why = self.desk.failures.get(&cell.name).cloned();
                    }
                }
            }
            if let Some(grant) = self.admission.grant(&cell.name) {
                status.enforcer = Some(grant.enforcer.name().to_owned());
                status.cpus.clone_from(&grant.cpus);
                status.budget_ns = ns(grant.budget_ns);
                status.period_ns = ns(grant.period_ns);
            }
            cells.push(status);
        }
        for (name, leaving) in &self.desk.leaving {
            let known = self.state.cells.get(name);
            let mut status = CellStatus::of(name, known, leaving.output.clone());
            show_live(&mut status, &leaving.live, leaving.watch.as_ref(), known);
            status.why = Some("the version before the update".to_owned());
            cells.push(status);
        }
        Status {
            schema: SCHEMA,
            at_utc: Stamp::now().utc(),
            mission: Some(mission.name.clone()),
            dir: self.dir.clone(),
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

    /// Where the output of a cell's last life is.
    fn output_dir(&self, name: &str, known: Option<&Cell>) -> PathBuf {
        super::cell::work_dir(&self.dir, name, known.is_some_and(Cell::is_beside))
    }
}

fn show_live(
    status: &mut CellStatus,
    live: &Live,
    watch: Option<&CellWatch>,
    known: Option<&Cell>,
) {
    status.state = match live.told_until_ns {
        Some(_) => CellState::Ending,
        None => CellState::Running,
    };
    status.why = None;
    if status.holds.contains(&Hold::Shed) {
        status.why = Some(Hold::Shed.clause().to_owned());
    }
    status.pid = Some(live.app.pid());
    status.guarantee = live.hold.as_ref().map(|hold| hold.guarantee());
    status.unheld = live.unheld.told().to_vec();
    status.cpu_ns = watch.and_then(CellWatch::used_ns);
    let instance = known.and_then(|known| known.instances.get(&live.generation));
    status.started_unix_ns = instance.map(|instance| instance.since.wall_unix_ns);
}

/// `VmRSS` of `/proc/self/status`: read without walking the page tables, as the sum of `smaps` would be.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    host::process::bytes(&status, "VmRSS")
}
