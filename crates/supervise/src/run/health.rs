//! Carries out the actions of the health rules, and records them.

use std::os::fd::RawFd;

use engine::Cell as _;
use model::mission::{self, Action};

use super::ample::{self, AmpleUse};
use super::keeper::Keeper;
use super::notifiers::Notifiers;
use super::phase::{Event as Happens, Next, Phase};
use super::version::Cell;
use super::watch::{CellWatch, Counters};
use super::{Event, RunError};
use crate::admit::Basis;
use crate::cause::{Cause, Reason, ended};
use crate::dirs::page_dir;
use crate::end::End;
use crate::health::{Context, Decision, Finding, Sight, Why};
use crate::incident::{Incident, OutputTail};
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Limit};

/// Incidents of one cell that are recorded in a second; more are counted.
const INCIDENTS_PER_SECOND: u32 = 16;
const SECOND_NS: i64 = 1_000_000_000;
/// How old reports of limits may be, ns.
const LIMITS_NS: i64 = SECOND_NS / 2;

/// The handling of incidents.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// Not given to the journal yet: killing and shedding come first, and the start of a cell comes after.
    unwritten: Vec<Incident>,
    /// For each cell that had one: the second that is counted, its incidents, and those of them that were not recorded.
    counts: std::collections::BTreeMap<usize, (i64, u32, i64)>,
    notifiers: Notifiers,
}

impl Incidents {
    /// Counts for cells of a mission that becomes another one are forgotten.
    pub(super) fn carried(self) -> Incidents {
        Incidents {
            counts: std::collections::BTreeMap::new(),
            ..self
        }
    }
}

impl Keeper<'_> {
    /// All cells of the mission, none of which runs yet. Restarts by an earlier supervisor of the `same_boot` count to their limits.
    pub(super) fn watch_all(&mut self, same_boot: bool) -> Result<(), RunError> {
        for cell in &self.mission().cells {
            let starts = self.state.cells.get(&cell.name).map(|known| &known.starts);
            // The first start is no restart.
            let restarts: Vec<i64> = starts
                .filter(|_| same_boot)
                .into_iter()
                .flatten()
                .skip(1)
                .map(|stamp| stamp.monotonic_ns)
                .collect();
            self.cells.push(Cell::new(self.new_watch(cell, &restarts)?));
        }
        Ok(())
    }

    /// The watch of a cell that does not run yet; `restarts_ns` count to its limit.
    pub(super) fn new_watch(
        &self,
        cell: &mission::Cell,
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

    /// Looks at the cells whose time has come, and acts by their rules.
    pub(super) fn look(&mut self) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        let is_due = |watch: &CellWatch| watch.due_ns().is_some_and(|due| due <= now_ns);
        let due: Vec<usize> = (self.own().iter().enumerate())
            .filter(|(_, cell)| !cell.phase.is_removing() && is_due(&cell.watch))
            .map(|(at, _)| at)
            .collect();
        for at in due {
            let looked = self.cells[at].watch.look(now_ns);
            let mission = self.mission();
            let cell = || mission.cells[at].name.clone();
            if let Some(what) = looked.broken {
                (self.tell)(&Event::Unwatched { cell: cell(), what });
            }
            if looked.ready {
                let took_ns = self.live(at).map_or(0, |live| now_ns - live.started_ns);
                (self.tell)(&Event::Ready {
                    cell: cell(),
                    took_ns,
                });
            }
            if looked.limits {
                self.tell_limits(at, None);
            }
            self.judge(at, looked.findings)?;
            if looked.overran {
                self.switch_to_high(at)?;
            }
        }
        self.end_late_starts(now_ns)
    }

    /// Descriptors to sleep on: they signal when a cell has come up against a limit.
    pub(super) fn alarms(&self) -> Vec<RawFd> {
        (self.own().iter())
            .flat_map(|cell| cell.watch.alarms())
            .collect()
    }

    /// As [`Keeper::look_at_limits`], unless that was done a moment ago: several files of every cell are read for it, and anybody may
    /// ask as often as he likes.
    pub(super) fn look_at_limits_again(&mut self) {
        let since_ns = timecell_client::now_ns() - self.limits_looked_ns;
        if since_ns >= LIMITS_NS {
            self.look_at_limits();
        }
    }

    /// Checks whether cells have reached limits that were not reported.
    pub(super) fn look_at_limits(&mut self) {
        self.limits_looked_ns = timecell_client::now_ns();
        for at in 0..self.own().len() {
            self.tell_limits(at, None);
        }
    }

    /// Reports the limits that a cell has reached, except the one that is reported as the cause of its end.
    pub(super) fn tell_limits(&mut self, at: usize, cause: Option<&Cause>) {
        let reached = self.cells[at]
            .watch
            .limits_reached(timecell_client::now_ns());
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
            });
            (self.tell)(&Event::LimitReached { cell, limit });
        }
    }

    /// Reports ample budgets that were used up: the first time in a life of the cell, and then once a minute.
    pub(super) fn look_at_ample_budgets(&mut self) {
        let now_ns = timecell_client::now_ns();
        let mut used_up = Vec::new();
        for (at, cell) in self.file.mission().cells.iter().enumerate() {
            let version = &mut self.cells[at];
            let Some(live) = version.phase.live_mut() else {
                continue;
            };
            if now_ns < live.ample.next_ns {
                continue;
            }
            live.ample.next_ns = now_ns.saturating_add(ample::LOOK_NS);
            let name = &cell.name;
            let grant = self.admission.grant(name);
            let Some(grant) = grant.filter(|grant| matches!(grant.basis, Basis::Ample { .. }))
            else {
                // The use of another budget is no sign of anything, should an ample one come later.
                let next_ns = live.ample.next_ns;
                live.ample = AmpleUse::default();
                live.ample.next_ns = next_ns;
                continue;
            };
            let period_ns = grant.period_ns.and_then(|ns| i64::try_from(ns).ok());
            let counted = live.hold.counted();
            let (Some(budget_ns), Some(period_ns), Some(counted)) =
                (grant.budget_ns, period_ns, counted)
            else {
                continue;
            };
            let known = self.state.cells.get(name);
            let was_told = known.is_some_and(|known| {
                (known.limits.iter()).any(|limit| matches!(limit, Limit::AmpleBudget { .. }))
            });
            let told = live.ample.see(ample::Look {
                now_ns,
                budget_ns,
                period_ns,
                start_ns: cell.start_timeout.ns(),
                is_ready: version.watch.is_ready(),
                exhausted: counted.exhausted,
                by: counted.by,
                was_told,
            });
            used_up.extend(told.map(|periods| (name.clone(), version.generation, periods)));
        }
        for (cell, generation, periods) in used_up {
            let limit = Limit::AmpleBudget { periods };
            self.note(Entry::LimitReached {
                cell: cell.clone(),
                generation,
                limit,
            });
            (self.tell)(&Event::LimitReached { cell, limit });
        }
    }

    /// A cell whose program has ended without having been told to: its rules and its restart policy decide.
    pub(super) fn ended_untold(&mut self, at: usize, end: End) -> Result<(), RunError> {
        if end.is_failure() && self.fails_update(at, None) {
            self.cells[at].watch.gone();
            return Ok(());
        }
        let findings = self.cells[at].watch.ended(timecell_client::now_ns(), end);
        self.judge(at, findings)
    }

    /// A cell that could not even be started.
    pub(super) fn never_started(&mut self, at: usize) -> Result<(), RunError> {
        let now_ns = timecell_client::now_ns();
        self.cells[at]
            .watch
            .started(None, Counters::default(), now_ns);
        self.ended_untold(at, End::Unknown)
    }

    pub(super) fn judge(&mut self, at: usize, findings: Vec<Finding>) -> Result<(), RunError> {
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
                        self.restart(at, wait_ns, finding.sight.name())?;
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
            self.tell_to_end(at)?;
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
        let output = match self.cells[at].phase.live() {
            Some(live) => live.output_tail(),
            None => self.cells[at].tail.take(),
        };
        let mut evidence = self.cells[at].watch.evidence(output);
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
                tasks: self.cells[at].watch.tasks(),
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

    /// Writes down the incidents.
    pub(super) fn write_incidents(&mut self) {
        for incident in std::mem::take(&mut self.incidents.unwritten) {
            self.note(Entry::Incident(Box::new(incident)));
        }
        self.incidents.notifiers.reap();
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

    /// Restarts a cell after a wait. A running one is killed: it is not asked to help, regardless of its fault.
    fn restart(&mut self, at: usize, wait_ns: i64, rule: &str) -> Result<(), RunError> {
        let due_ns = timecell_client::now_ns().saturating_add(wait_ns);
        let cell = self.name(at);
        (self.tell)(&Event::Restarts { cell, wait_ns });
        let rule = rule.to_owned();
        self.happens(at, Happens::Kill(Reason::Rule { rule }))?;
        self.follow(at, Next::Due(due_ns));
        Ok(())
    }

    /// A cell that has not become ready in time is killed; its restart policy decides the rest.
    fn end_late_starts(&mut self, now_ns: i64) -> Result<(), RunError> {
        for at in 0..self.own().len() {
            let Some(until_ns) = self.ready_until_ns(at).filter(|until| *until <= now_ns) else {
                continue;
            };
            let waited_ns = self.mission().cells[at].start_timeout.ns();
            let why = Reason::NotReady { waited_ns };
            self.happens(at, Happens::NotReady(why))?;
            let (cell, waited_ns) = (self.name(at), now_ns - until_ns + waited_ns);
            (self.tell)(&Event::NotReady { cell, waited_ns });
        }
        Ok(())
    }

    /// By when a running cell has to be ready, CLOCK_MONOTONIC ns; `None`: it is, or need not be.
    fn ready_until_ns(&self, at: usize) -> Option<i64> {
        let cell = &self.cells[at];
        match &cell.phase {
            Phase::Running(live) if !cell.watch.is_ready() => {
                let timeout_ns = self.mission().cells[at].start_timeout.ns();
                Some(live.started_ns.saturating_add(timeout_ns))
            }
            _ => None,
        }
    }

    /// When the next look is due, or a start has taken too long.
    pub(super) fn next_look(&self) -> Option<i64> {
        let looked_at = self.own().iter().filter(|cell| !cell.phase.is_removing());
        let looks = looked_at.filter_map(|cell| cell.watch.due_ns());
        let starts = (0..self.own().len()).filter_map(|at| self.ready_until_ns(at));
        looks.chain(starts).min()
    }

    /// The watch continues with an adopted cell.
    pub(super) fn watch_adopted(&mut self, at: usize) {
        let cell = &mut self.cells[at];
        let Some(live) = cell.phase.live() else {
            return;
        };
        let name = &self.file.mission().cells[at].name;
        let known = self.state.cells.get(name);
        let place = page_dir(&self.dir, name, cell.beside);
        let now_ns = timecell_client::now_ns();
        let told = known.map_or(&[][..], |known| &known.limits);
        (cell.watch).adopted(&place, live.app.pid(), &live.inside.groups, told, now_ns);
    }
}

impl super::cell::Live {
    /// The last that the cell has written; `None`: nothing, or it cannot be read.
    pub(super) fn output_tail(&self) -> Option<OutputTail> {
        let (tail, dropped) = self.app.output_tail(OutputTail::MOST_BYTES).ok()?;
        OutputTail::of(&tail, dropped)
    }
}
