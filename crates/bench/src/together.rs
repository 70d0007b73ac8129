//! The cells of one trial, of any payload: created, placed, armed, released together, waited for, removed.

use std::ops::Range;
use std::path::Path;

use host::sched::Class;
use model::EngineKind;
use probe::Barrier;
use probe::control::State;
use record::{Budget, LoadRecord, Reacted};

use crate::BenchError;
use crate::cells::{ARMING_NS, Cells, Placement};
use crate::held::{Wanted, group_name};
use crate::launch::{Stage, rights};
use crate::load::{self, Ground, PlannedLoad, Start};
use crate::session::{Interrupt, Progress, Quiet, Session};

/// Time beyond the expected in which the threads must have ended, ns: a budget of a thousandth stretches its last steps.
const OVERTIME_NS: i64 = 60_000_000_000;

/// Surroundings of a study's trials. Dropping them leaves the machine as it was.
pub(crate) struct Surroundings {
    _quiet: Quiet,
    ground: Ground,
    pub stage: Stage,
}

impl Surroundings {
    /// Around real-time cells on this cpu, beside these loads.
    pub(crate) fn make(
        session: &mut Session,
        loads: &[&PlannedLoad],
        cpu: u32,
        progress: &mut dyn Progress,
    ) -> Result<Surroundings, BenchError> {
        let mut stage = Stage::of_run(&session.run)?;
        // Before any is created, so that it is removed after a `kill -9`.
        stage.place.note_held_groups(&group_name())?;
        let (ground, remarks) = Ground::make(loads, session.run.dir(), &mut stage.place)?;
        for remark in remarks {
            session.remark(remark, progress);
        }
        Ok(Surroundings {
            _quiet: Quiet::around(&[cpu], true, session, progress),
            ground,
            stage,
        })
    }

    /// The surroundings of trial `number`.
    pub(crate) fn of<'a>(&'a self, session: &'a Session, number: u32) -> Around<'a> {
        Around {
            stage: &self.stage,
            ground: &self.ground,
            interrupt: &session.interrupt,
            number,
        }
    }
}

/// A trial's surroundings.
pub(crate) struct Around<'a> {
    pub stage: &'a Stage,
    pub ground: &'a Ground,
    pub interrupt: &'a Interrupt,
    pub number: u32,
}

/// One cell.
pub(crate) struct Member {
    pub name: String,
    pub words: Vec<String>,
    /// Its threads' slots on the control page.
    pub slots: Range<usize>,
    /// The class of each of its threads.
    pub classes: Vec<Class>,
    /// Real-time priority that its process may take.
    pub rtprio: u8,
    /// Its budget, if not held by its class.
    pub held: Option<Wanted>,
}

/// A load beside the cells.
pub(crate) struct Beside<'a> {
    planned: &'a PlannedLoad,
    pub record: LoadRecord,
}

impl Around<'_> {
    /// The name of this member's cell.
    fn cell_name(&self, member: &str) -> String {
        format!("{}-{member}", self.number)
    }

    /// Requests that this member be held on this cpu, in a real-time group of this name if such a group holds it.
    pub(crate) fn wanted(&self, member: &str, held: Budget, cpu: u32, rt_group: String) -> Wanted {
        Wanted {
            held,
            cpu,
            id: Stage::id(&self.cell_name(member)),
            rt_group,
        }
    }
}

impl<'a> Beside<'a> {
    pub(crate) fn new(planned: &'a PlannedLoad, around: &Around<'_>) -> Beside<'a> {
        Beside {
            record: load::record(planned, &around.ground.setting(planned)),
            planned,
        }
    }
}

/// Runs the members to their ends, at most about `expected_ns` long. Nothing of them stays in any case. Returns how exactly they were
/// held, in the order of the held members.
pub(crate) fn run(
    around: &Around<'_>,
    members: &[Member],
    partition: Option<&Path>,
    beside: Option<&mut Beside<'_>>,
    expected_ns: i64,
) -> Result<Vec<Option<Reacted>>, String> {
    let slots = members.last().map_or(0, |member| member.slots.end);
    let cells = Cells::new(&around.stage.shared, slots, Some(around.interrupt))
        .map_err(|error| error.to_string())?;
    let these = Together {
        around,
        members,
        cells,
    };
    let measured = these.go(
        partition,
        beside.as_deref().map(|load| load.planned),
        expected_ns,
    );
    let is_deadline = |class: &Class| matches!(class, Class::Deadline { .. });
    if members
        .iter()
        .any(|member| member.classes.iter().any(is_deadline))
    {
        // Before cpusets change.
        these.cells.release_bandwidth();
    }
    let end = these.cells.end();
    for member in members {
        let work_dir = around.stage.work_dir(&around.cell_name(&member.name));
        let _ = std::fs::remove_dir_all(work_dir);
    }
    if let (Some(beside), Some(record)) = (beside, end.loads.first()) {
        beside.record = record.clone();
    }
    measured.and_then(|reacted| end.result().map(|()| reacted))
}

struct Together<'a> {
    around: &'a Around<'a>,
    members: &'a [Member],
    cells: Cells<'a>,
}

impl Together<'_> {
    fn go(
        &self,
        partition: Option<&Path>,
        load: Option<&PlannedLoad>,
        expected_ns: i64,
    ) -> Result<Vec<Option<Reacted>>, String> {
        let (around, cells) = (self.around, &self.cells);
        for member in self.members {
            if let Some(wanted) = &member.held {
                cells.hold(member.slots.start, wanted)?;
            }
        }
        let placement = Placement {
            partition,
            ..Placement::default()
        };
        for member in self.members {
            self.create(member)?;
            let seated = cells.seat(member.slots.clone(), &placement);
            seated.map_err(|why| self.named(why))?;
        }
        for member in self.members {
            self.reach(member, State::Armed, ARMING_NS)?;
            (cells.verify(member.slots.start, &member.classes))
                .map_err(|why| format!("{}: {why}", member.name))?;
        }
        cells.begin_holds()?;
        if let Some(planned) = load {
            cells.start_load(&Start {
                planned,
                place: &around.stage.place,
                rootfs: &around.stage.rootfs,
                trial: around.number,
                setting: around.ground.setting(planned),
            })?;
        }
        cells.open_windows();
        cells.barrier.open(Barrier::lead_ns(self.members.len()));
        let patience = expected_ns.saturating_mul(3).saturating_add(OVERTIME_NS);
        for member in self.members {
            self.reach(member, State::Done, patience)?;
        }
        cells.close_windows();
        let reacted = cells.reacted()?;
        Ok(reacted.into_iter().map(|(_, reacted)| reacted).collect())
    }

    fn create(&self, member: &Member) -> Result<(), String> {
        let name = self.around.cell_name(&member.name);
        let mut words = member.words.clone();
        words.extend(self.cells.held_words(member.slots.start));
        let spec = (self.around.stage)
            .spec(&name, EngineKind::Bare, None, words, rights(member.rtprio))
            .map_err(|error| error.to_string())?;
        let engine = engine::by_kind(EngineKind::Bare, &engine::Options::default());
        let cell = engine.create(&spec).map_err(|error| error.to_string())?;
        self.cells.add(member.slots.clone(), cell);
        Ok(())
    }

    fn reach(&self, member: &Member, state: State, patience_ns: i64) -> Result<(), String> {
        let reached = self.cells.reach(member.slots.clone(), state, patience_ns);
        reached.map_err(|why| self.named(why))
    }

    /// A failure with the name of the member that it is of, where there are several.
    fn named(&self, why: String) -> String {
        let failed = |slot| self.cells.failure(slot).is_some();
        let of = |member: &&Member| self.members.len() > 1 && member.slots.clone().any(failed);
        match self.members.iter().find(of) {
            Some(member) => format!("{}: {why}", member.name),
            None => why,
        }
    }
}
