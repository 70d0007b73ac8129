//! Acting on what the health rules wish, and recording it.

use std::os::fd::RawFd;

use engine::Cell as _;
use model::mission::{Action, Cell};

use super::cell::page_dir;
use super::notifiers::Notifiers;
use super::watch::{CellWatch, Counters};
use super::{Event, Keeper, RunError};
use crate::cause::{Cause, Reason, ended};
use crate::end::End;
use crate::health::{Context, Decision, Finding, Sight, Why};
use crate::incident::{Incident, OutputTail};
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Limit, Mode};

/// Incidents of one cell that are recorded in a second; more are counted.
const INCIDENTS_PER_SECOND: u32 = 16;
const SECOND_NS: i64 = 1_000_000_000;
/// How old what is told of limits may be, ns.
const LIMITS_NS: i64 = SECOND_NS / 2;

/// What becomes of incidents.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// Not given to the journal yet: killing and shedding come first, and the start of a cell comes after.
    unwritten: Vec<Incident>,
    /// For each cell that had one: the second that is counted, its incidents, and those of them that were not recorded.
    counts: std::collections::BTreeMap<usize, (i64, u32, i64)>,
    notifiers: Notifiers,
}

impl Incidents {
    /// What was counted for cells of a mission that becomes another one is forgotten.
    pub(super) fn carried(self) -> Incidents {
        Incidents {
            counts: std::collections::BTreeMap::new(),
            ..self
        }
    }
}

impl Keeper<'_> {
    /// Watches of all cells of the mission, none of which runs yet.
    pub(super) fn watch_all(&mut self) -> Result<(), RunError> {
        let cells = self.mission().cells.iter();
        let watches: Result<Vec<CellWatch>, RunError> = cells
            .map(|cell| {
                let starts = self.state.cells.get(&cell.name).map(|known| &known.starts);
                // The first start is no restart.
                let restarts: Vec<i64> = starts
                    .filter(|_| self.same_boot)
                    .into_iter()
                    .flatten()
                    .skip(1)
                    .map(|stamp| stamp.monotonic_ns)
                    .collect();
                self.new_watch(cell, &restarts)
            })
            .collect();
        self.watches = watches?;
        Ok(())
    }

    /// The watch of a cell that does not run yet; `restarts_ns` count to its limit.
    pub(super) fn new_watch(
        &self,
        cell: &Cell,
        restarts_ns: &[i64],
    ) -> Result<CellWatch, RunError> {
        let modes = self.mission().modes.is_some();
        let grant = self.admission.grant(&cell.name);
        let cpus = grant.map(|grant| grant.cpus.as_slice());
        let cpus = cpus.or_else(|| self.admission.best_effort(&cell.name));
        let cpus = cpus.map_or(1, <[u32]>::len);
        CellWatch::new(cell, grant, cpus, modes, restarts_ns)
            .map_err(|why| RunError::Health { why })
    }

    /// Looks at the cells whose time has come, and does what their rules say.
    pub(super) fn look(&mut self) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        let is_due = |watch: &CellWatch| watch.due_ns().is_some_and(|due| due <= now_ns);
        let due: Vec<usize> = (self.watches.iter().enumerate())
            .filter(|(at, watch)| is_due(watch) && !self.is_being_removed(*at))
            .map(|(at, _)| at)
            .collect();
        for at in due {
            let looked = self.watches[at].look(now_ns);
            let mission = self.mission();
            let cell = || mission.cells[at].name.clone();
            if let Some(what) = looked.broken {
                (self.tell)(&Event::Unwatched { cell: cell(), what });
            }
            if looked.ready {
                let took_ns = self
                    .live
                    .get(&at)
                    .map_or(0, |live| now_ns - live.started_ns);
                (self.tell)(&Event::Ready {
                    cell: cell(),
                    took_ns,
                });
            }
            if looked.limits {
                self.tell_limits(at, None)?;
            }
            self.judge(at, looked.findings)?;
            if looked.overran && self.mission().modes.is_some() && self.mode == Mode::Low {
                self.switch_to_high(at)?;
            }
        }
        self.end_late_starts(now_ns)
    }

    /// What to sleep on: signals when a cell has come up against a limit.
    pub(super) fn alarms(&self) -> Vec<RawFd> {
        self.watches.iter().flat_map(CellWatch::alarms).collect()
    }

    /// As [`Keeper::look_at_limits`], unless that was done a moment ago: several files of every cell are read for it, and anybody may
    /// ask as often as he likes.
    pub(super) fn look_at_limits_again(&mut self) -> Result<(), RunError> {
        let since_ns = timecell_client::now_ns() - self.limits_looked_ns;
        match since_ns < LIMITS_NS {
            true => Ok(()),
            false => self.look_at_limits(),
        }
    }

    /// Sees whether cells have come up against limits that nobody was told of.
    pub(super) fn look_at_limits(&mut self) -> Result<(), RunError> {
        self.limits_looked_ns = timecell_client::now_ns();
        for at in 0..self.watches.len() {
            self.tell_limits(at, None)?;
        }
        Ok(())
    }

    /// Tells of the limits that a cell has come up against, but for what is told as the cause of its end.
    pub(super) fn tell_limits(&mut self, at: usize, cause: Option<&Cause>) -> Result<(), RunError> {
        let reached = self.watches[at].limits_reached(timecell_client::now_ns());
        let killed = matches!(cause, Some(Cause::Memory(_)));
        for limit in reached {
            if killed && matches!(limit, Limit::Memory(_)) {
                continue;
            }
            let cell = self.mission().cells[at].name.clone();
            let generation = (self.state.cells.get(&cell)).map_or(0, |known| known.generation);
            self.note(Entry::LimitReached {
                cell: cell.clone(),
                generation,
                limit,
            })?;
            (self.tell)(&Event::LimitReached { cell, limit });
        }
        Ok(())
    }

    /// A cell whose program has ended without having been told to: what its rules and its restart policy say.
    pub(super) fn ended_untold(&mut self, at: usize, end: End) -> Result<(), RunError> {
        if end.is_failure() && self.fails_update(at, None) {
            self.watches[at].gone();
            return Ok(());
        }
        let findings = self.watches[at].ended(timecell_client::now_ns(), end);
        self.judge(at, findings)
    }

    /// A cell that could not even be started.
    pub(super) fn never_started(&mut self, at: usize) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        self.watches[at].started(None, Counters::default(), now_ns);
        self.ended_untold(at, End::Unknown)
    }

    fn judge(&mut self, at: usize, findings: Vec<Finding>) -> Result<(), RunError> {
        if findings.is_empty() {
            return Ok(());
        }
        let mut stays = None;
        for finding in &findings {
            let incident = self.record(at, finding);
            let ends = matches!(
                finding.decision,
                Decision::Act {
                    action: Action::Restart | Action::RestartBackoff | Action::Stop,
                    ..
                }
            );
            let what = || {
                incident
                    .as_ref()
                    .map(|incident| incident.observed.detail.clone())
            };
            let taken_back = ends && self.fails_update(at, what());
            match finding.decision {
                Decision::Act {
                    action, wait_ns, ..
                } => match action {
                    // The version before comes back.
                    _ if taken_back => {}
                    Action::Log => {}
                    Action::Notify => self.notify(at, incident.as_ref()),
                    Action::Restart | Action::RestartBackoff => {
                        self.restart(at, wait_ns, finding.sight.name());
                    }
                    Action::Stop => {
                        stays = Some(match finding.sight {
                            Sight::RestartLimit { .. } => Hold::RestartLimit,
                            _ => Hold::ByRule,
                        });
                    }
                    Action::Shed => self.shed_next(at)?,
                    Action::SwitchMode => self.switch_to_high(at)?,
                },
                Decision::Nothing(Why::Policy) => stays = stays.or(Some(Hold::Ended)),
                Decision::Nothing(_) => {}
            }
            if let Some(incident) = incident {
                (self.tell)(&Event::Incident(Box::new(incident.clone())));
                self.incidents.unwritten.push(incident);
            }
        }
        if let Some(hold) = stays {
            self.stays(at, hold)?;
            self.tell_to_end(at);
        }
        Ok(())
    }

    /// The incident of a finding; `None`: there were too many in this second.
    fn record(&mut self, at: usize, finding: &Finding) -> Option<Incident> {
        let second = finding.at_ns / SECOND_NS;
        let (counted, seen, dropped) = self.incidents.counts.entry(at).or_default();
        if *counted != second {
            (*counted, *seen) = (second, 0);
        }
        *seen += 1;
        let acts =
            matches!(finding.decision, Decision::Act { action, .. } if action != Action::Log);
        if *seen > INCIDENTS_PER_SECOND && !acts {
            *dropped += 1;
            return None;
        }
        let dropped = std::mem::take(dropped);
        let output = self
            .live
            .get(&at)
            .map_or_else(|| self.last_output.remove(&at), |live| live.output_tail());
        let mut evidence = self.watches[at].evidence(output);
        if dropped > 0 {
            let counters = &mut evidence.counters;
            counters.insert("incidents_not_recorded".to_owned(), dropped);
        }
        let stamp = Stamp::now();
        let cell = &self.mission().cells[at].name;
        let number = self.state.incident_number + self.incidents.unwritten.len() as u64 + 1;
        let mut incident = finding.incident(
            &Context {
                number,
                mission: &self.mission().name,
                cell,
                generation: (self.state.cells.get(cell)).map_or(0, |cell| cell.generation),
                // Of the finding, which may be a little older than now.
                wall_unix_ns: stamp.wall_unix_ns - (stamp.monotonic_ns - finding.at_ns),
                tasks: self.watches[at].tasks(),
            },
            evidence,
        );
        let known = self.state.cells.get(cell);
        if let (Sight::Ended(End::Unknown), Some(cause @ Cause::NotStarted { .. })) = (
            &finding.sight,
            known.and_then(|cell| cell.last_cause.as_ref()),
        ) {
            incident.observed.detail = ended(End::Unknown, Some(cause));
        }
        Some(incident)
    }

    /// Writes down what has happened.
    pub(super) fn write_incidents(&mut self) -> Result<(), RunError> {
        for incident in std::mem::take(&mut self.incidents.unwritten) {
            self.note(Entry::Incident(Box::new(incident)))?;
        }
        self.incidents.notifiers.reap();
        Ok(())
    }

    fn notify(&mut self, at: usize, incident: Option<&Incident>) {
        let command = self.mission().notify.clone();
        let Some(incident) = incident.filter(|_| !command.is_empty()) else {
            return;
        };
        if let Err(why) = self.incidents.notifiers.start(&command, incident) {
            let cell = self.mission().cells[at].name.clone();
            (self.tell)(&Event::NotNotified { cell, why });
        }
    }

    /// Starts a cell anew after a wait. One that runs is killed: whatever is wrong with it, it is not asked to help.
    fn restart(&mut self, at: usize, wait_ns: i64, rule: &str) {
        let cell = self.mission().cells[at].name.clone();
        let now_ns = timecell_client::now_ns();
        self.due.insert(at, now_ns.saturating_add(wait_ns));
        (self.tell)(&Event::Restarts { cell, wait_ns });
        if let Some(live) = self.live.get_mut(&at) {
            live.told_until_ns = Some(now_ns);
            let rule = rule.to_owned();
            live.killed_for.get_or_insert(Reason::Rule { rule });
        }
    }

    /// A cell that has not become ready in its time is killed; its restart policy goes on from there.
    fn end_late_starts(&mut self, now_ns: i64) -> Result<(), RunError> {
        let late: Vec<usize> = (self.live.iter())
            .filter(|(at, live)| {
                !self.watches[**at].is_ready() && self.ready_until(**at, live.started_ns) <= now_ns
            })
            .filter(|(_, live)| live.told_until_ns.is_none() && !live.given_up)
            .map(|(at, _)| *at)
            .collect();
        for at in late {
            let cell = self.mission().cells[at].name.clone();
            let Some(live) = self.live.get_mut(&at) else {
                continue;
            };
            // Its end is told like any other, as nobody has asked for it.
            live.given_up = true;
            let waited_ns = self.file.mission().cells[at].start_timeout.ns();
            live.killed_for = Some(Reason::NotReady { waited_ns });
            live.app
                .kill(libc::SIGKILL)
                .or_else(gone)
                .map_err(RunError::system("kill a cell"))?;
            (self.tell)(&Event::NotReady {
                cell,
                waited_ns: now_ns - live.started_ns,
            });
        }
        Ok(())
    }

    /// Whether a cell has ended, and what it did before is judged once nothing is left of it.
    fn is_being_removed(&self, at: usize) -> bool {
        let name = &self.mission().cells[at].name;
        !self.live.contains_key(&at) && self.work.removing_of(name).is_some()
    }

    fn ready_until(&self, at: usize, started_ns: i64) -> i64 {
        started_ns.saturating_add(self.mission().cells[at].start_timeout.ns())
    }

    /// When the next look is due, or a start has taken too long.
    pub(super) fn next_look(&self) -> Option<i64> {
        let looks = (self.watches.iter().enumerate())
            .filter(|(at, _)| !self.is_being_removed(*at))
            .filter_map(|(_, watch)| watch.due_ns());
        let starts = (self.live.iter())
            .filter(|(at, live)| !self.watches[**at].is_ready() && !live.given_up)
            .map(|(at, live)| self.ready_until(*at, live.started_ns));
        looks.chain(starts).min()
    }

    /// The watch goes on with a cell that was taken over.
    pub(super) fn watch_adopted(&mut self, at: usize) {
        let Some(live) = self.live.get(&at) else {
            return;
        };
        let name = &self.mission().cells[at].name;
        let known = self.state.cells.get(name);
        let instance = known.and_then(|known| known.instances.get(&live.generation));
        let beside = instance.is_some_and(|instance| instance.beside);
        let place = page_dir(&self.dir, name, beside);
        let now_ns = timecell_client::now_ns();
        let told = known.map_or(&[][..], |known| &known.limits);
        self.watches[at].adopted(&place, live.app.pid(), &live.inside.groups, told, now_ns);
    }
}

/// A process that has just ended need not be killed.
fn gone(error: std::io::Error) -> std::io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}

impl super::cell::Live {
    /// The last that the cell has written; `None`: nothing, or it cannot be read.
    pub(super) fn output_tail(&self) -> Option<OutputTail> {
        let (tail, dropped) = self.app.output_tail(OutputTail::MOST_BYTES).ok()?;
        OutputTail::of(&tail, dropped)
    }
}
