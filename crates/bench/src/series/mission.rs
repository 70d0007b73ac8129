//! `mission`: how soon a mission runs, runs again, and is gone, as a whole and cell by cell.
//!
//! Supervisor and requests are processes of this program, begun as users begin them. The supervisor is asked for the state at each line that
//! it prints, so that it is not kept busy by questions.

mod supervisor;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use model::mission::{Cell, Limits, Mission, MissionFile, Ready, RestartPolicy};
use model::{InputError, InputErrors};
use probe::clock;
use record::series::Quantity;
use record::{Condition, NotMeasured};
use supervise::control::base_dir;
use supervise::ledger::Ledger;
use supervise::state::Text;

use self::supervisor::{OWN, Supervised};
use super::bench::{
    Bench, OwnOption, Prepared, Reading, SeriesOptions, SeriesScenario, Task, Turn,
};
use crate::BenchError;
use crate::needs::Needs;
use crate::place::Place;
use crate::session::Interrupt;
use crate::sweep::new_place;

pub(super) const SCENARIO: SeriesScenario = SeriesScenario {
    name: "mission",
    question: "How soon does a mission run, run again, and end, and how soon does each of its cells run again?",
    rounds: (20, 2),
    own: OwnOption::Mission,
    prepare,
};

/// How long one measurement should take, ns.
const GUESS_NS: i64 = 1_000_000_000;

model::choice! {
    /// One measured span.
    enum Span: part {
        /// From `timecell up` until all cells run.
        Boot = "boot of the mission",
        /// `timecell down`, and the same again.
        Reboot = "reboot of the mission",
        /// From `timecell down` until nothing of the mission is left.
        End = "end of the mission",
        /// From `timecell restart CELL` until all cells run.
        CellReboot = "reboot of a cell",
        /// From the crash of a cell until all cells run, by the mission's own rules.
        Recovery = "recovery of a cell",
    }
}

fn prepare(options: &SeriesOptions) -> Result<Prepared, InputErrors> {
    let path = options.mission.clone().unwrap_or_default();
    let place = path.display().to_string();
    let text = host::given_file::text(&path, Limits::FILE_BYTES as u64)
        .map_err(|what| InputError::new(&place, what, ""))?;
    let file = MissionFile::parse_on(&place, &text, &supervise::machine::Here::default())?;
    let mission = file.mission();
    let base = base_dir().ok_or_else(|| {
        let what = "there is no HOME to keep the mission's state in";
        InputError::new(&place, what, "set HOME")
    })?;
    let mut tasks = [Span::Boot, Span::Reboot, Span::End]
        .map(|span| (span, None))
        .to_vec();
    let is_early = |cell: &&Cell| {
        let beats = (cell.partition.as_ref()).is_some_and(|own| own.heartbeat.is_some());
        beats && cell.ready == Ready::Started
    };
    if let Some(cell) = mission.cells.iter().find(is_early) {
        let name = &cell.name;
        let what = format!("cell `{name}` would be taken to run before its first heartbeat");
        return Err(InputError::new(&place, what, "give it ready = \"first-job\"").into());
    }
    let mut needs = Needs::default();
    for cell in &mission.cells {
        tasks.push((Span::CellReboot, Some(cell.name.clone())));
        match stays_down(cell) {
            None => tasks.push((Span::Recovery, Some(cell.name.clone()))),
            Some(reason) => needs.not_measured.push(NotMeasured {
                trial: format!("{}, {}", cell.name, Span::Recovery.part()),
                reason: reason.to_owned(),
                fix: "see [cell.restart] in the mission file".to_owned(),
            }),
        }
    }
    let name = mission.name.clone();
    let listed = tasks
        .iter()
        .map(|(span, cell)| Task {
            subject: cell.clone().unwrap_or_else(|| name.clone()),
            part: span.part().to_owned(),
            guess_ns: GUESS_NS,
        })
        .collect();
    let digest = Text::new(text).sha256;
    let supervised = Supervised::of(mission, &path, base.join(format!("{name}.bench")));
    Ok(Prepared {
        tasks: listed,
        needs,
        conditions: conditions(mission, &path),
        found: BTreeMap::from([("digest of the mission file".to_owned(), digest)]),
        sweep: Vec::new(),
        baseline: None,
        open: Box::new(move |run| {
            let mut place = new_place()?;
            place.note_run(run.dir())?;
            supervised.is_free()?;
            Ok(Box::new(OfMission {
                supervised,
                tasks,
                is_warm: false,
                _place: place,
            }))
        }),
    })
}

/// Why a cell would not be restarted after the crash that is measured; `None`: it is.
fn stays_down(cell: &Cell) -> Option<&'static str> {
    match (cell.restart.policy, cell.engine.is_partition()) {
        (RestartPolicy::Never, _) => Some("it is never restarted"),
        (RestartPolicy::OnFailure, true) => {
            Some("a partition that is shut down has not failed, and it is restarted on failure")
        }
        _ => None,
    }
}

fn conditions(mission: &Mission, path: &Path) -> Vec<Condition> {
    let cells = mission.cells.iter();
    let cells: Vec<String> = cells
        .map(|cell| format!("{} ({})", cell.name, cell.engine))
        .collect();
    let text = format!("{}, cells: {}", path.display(), cells.join(", "));
    vec![
        Condition::new("mission", text),
        Condition::new(
            "processes",
            "`timecell up`, `down` and `restart`, begun by the measuring process as users begin them; the times include their start and, of \
             `down` and `restart`, their end",
        ),
        Condition::new(
            "a cell runs",
            "once its program runs; with `ready = \"first-job\"` once its first job has ended, which is the first heartbeat of a partition",
        ),
        Condition::new(
            "end of the mission",
            "until both `down` and the supervisor have ended",
        ),
        Condition::new(
            "recovery of a cell",
            "after SIGKILL to its first process; of a partition, after its shutdown by the driver behind its keeper's back; detection and the \
             mission's waits before restarts are in it",
        ),
        Condition::new(
            "order",
            "every measurement once per round, each round begins with the next one; before the first, the mission was booted once",
        ),
    ]
}

/// The mission that is measured.
struct OfMission {
    supervised: Supervised,
    tasks: Vec<(Span, Option<String>)>,
    /// Whether it was booted before.
    is_warm: bool,
    /// By which a sweep finds the run of a killed process.
    _place: Place,
}

impl Bench for OfMission {
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String> {
        let (span, cell) = &self.tasks[turn.task];
        let supervised = &mut self.supervised;
        let first = match self.is_warm {
            true => Ok(()),
            false => supervised.runs(turn.interrupt),
        };
        let measured =
            first.and_then(|()| measure(supervised, *span, cell.as_deref(), turn.interrupt));
        self.is_warm |= measured.is_ok();
        if measured.is_err() && !turn.interrupt.came() {
            // The next measurement begins with a mission in order.
            self.supervised.end();
            if !self.supervised.is_kept && self.supervised.dir.exists() {
                self.supervised.is_kept = true;
                let dir = self.supervised.dir.display();
                (turn.remarks).push(format!(
                    "the journal and the output of cells are kept in {dir}"
                ));
            }
        }
        measured
    }
}

fn measure(
    mission: &mut Supervised,
    span: Span,
    cell: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Vec<Reading>, String> {
    match span {
        Span::Boot => mission.down(interrupt)?,
        _ => mission.runs(interrupt)?,
    }
    let cell = cell.unwrap_or_default();
    let part = span.part();
    let began = clock::now();
    let mut shares = Vec::new();
    match span {
        Span::Boot => mission.up(interrupt)?,
        Span::End => mission.down(interrupt)?,
        Span::Reboot => {
            mission.down(interrupt)?;
            let ended = clock::now();
            mission.up(interrupt)?;
            let spans = [("end", ended - began), ("boot", clock::now() - ended)];
            shares = Vec::from(spans.map(|(name, ns)| {
                Reading::share(format!("{part}: {name}"), part, Quantity::Ns, ns)
            }));
        }
        Span::CellReboot => mission.restart(cell, interrupt)?,
        Span::Recovery => mission.recover(cell, interrupt)?,
    }
    let ns = match shares.as_slice() {
        [] => clock::now() - began,
        shares => shares.iter().map(|share| share.value).sum(),
    };
    let whole = Reading::whole(part, Quantity::Ns, ns);
    Ok([whole].into_iter().chain(shares).collect())
}

impl Supervised {
    /// That nobody else has the mission up, and that it is admitted.
    fn is_free(&self) -> Result<(), BenchError> {
        let name = &self.name;
        let locked = Ledger::default().name(name, &self.dir);
        locked.map_err(|error| BenchError::Unmet(error.to_string()))?;
        if self.dir.exists() {
            // Cells that a killed supervisor has left.
            self.end_orphans();
        }
        let file = self.file.display();
        let mut admit = Command::new(OWN);
        admit.arg("admit").arg(&self.file).stdin(Stdio::null());
        let said = admit.stdout(Stdio::null()).stderr(Stdio::null()).status();
        match said {
            Ok(status) if status.success() => Ok(()),
            _ => Err(BenchError::Unmet(format!(
                "mission `{name}` is not admitted here; `timecell admit {file}` says why"
            ))),
        }
    }
}
