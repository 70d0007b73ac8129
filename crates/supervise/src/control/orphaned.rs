//! Cells that still run of a mission whose supervisor was killed.

use std::path::{Path, PathBuf};

use super::find::{called, is_supervised};
use super::state;
use crate::names;
use crate::state::{State, Text};

/// A mission that still runs without a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphaned {
    /// Its name.
    pub mission: String,
    /// Its directory.
    pub dir: PathBuf,
    /// Its file as it was admitted last.
    pub file: Option<Text>,
    /// Its cells that run: their names, and the number of each one's first process; `None`: its supervisor was killed before it could
    /// write that down.
    pub processes: Vec<(String, Option<i32>)>,
}

/// The cells that still run of the mission in this directory; `None`: there are none, or it has a supervisor.
pub fn orphaned(dir: &Path) -> Option<Orphaned> {
    let state = state(dir).ok()?;
    let lives = |id: &str| engine::any_lives(id);
    of(dir, &state, &lives).filter(|_| !is_supervised(dir))
}

/// `lives` says whether anything runs in the groups of a cell of this id.
fn of(dir: &Path, state: &State, lives: &dyn Fn(&str) -> bool) -> Option<Orphaned> {
    let mission = state.mission.clone()?;
    let processes: Vec<(String, Option<i32>)> = (state.instances())
        .filter_map(|(cell, _, instance)| {
            let process = instance.started.as_ref().map(|started| &started.process);
            let runs = match process {
                // A process that cannot be checked is not taken for over.
                Some(process) => process.still_runs().unwrap_or(true),
                None => lives(&names::cell_id(&mission, cell)),
            };
            runs.then(|| (cell.to_owned(), process.map(|process| process.pid)))
        })
        .collect();
    (!processes.is_empty()).then(|| Orphaned {
        mission,
        dir: dir.to_owned(),
        file: state.file.clone(),
        processes,
    })
}

impl Orphaned {
    /// How to name it to `timecell down`.
    pub fn called(&self) -> String {
        called(&self.mission, &self.dir)
    }

    /// The processes that run, such as "process 7 (`app`)".
    pub fn who(&self) -> String {
        let each = self.processes.iter();
        let named: Vec<String> = each
            .map(|(cell, pid)| match pid {
                Some(pid) => format!("process {pid} (`{cell}`)"),
                None => format!("cell `{cell}`"),
            })
            .collect();
        named.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::stamp::Stamp;
    use crate::state::{Cell, Instance, Started};

    #[test]
    fn what_runs_on_is_what_the_journal_knows_and_is_there() {
        let own = Process::of(std::process::id().cast_signed());
        let own = own.unwrap().unwrap();
        let other = Process {
            start_ticks: own.start_ticks + 1,
            ..own.clone()
        };
        let instance = |process: &Process| Instance {
            since: Stamp::now(),
            beside: false,
            started: Some(Started {
                process: process.clone(),
                enforcer: None,
                reservation: None,
                cpus: Vec::new(),
            }),
        };
        let cell = |process| Cell {
            instances: [(1, instance(process))].into(),
            ..Cell::default()
        };
        let state = State {
            mission: Some("m".to_owned()),
            cells: [("a".to_owned(), cell(&own)), ("b".to_owned(), cell(&other))].into(),
            ..State::default()
        };
        let nothing = |_: &str| false;
        let found = of(Path::new("/nowhere"), &state, &nothing).unwrap();
        assert_eq!(found.processes, [("a".to_owned(), Some(own.pid))]);
        assert_eq!(found.called(), "--dir /nowhere");
        assert_eq!(found.who(), format!("process {} (`a`)", own.pid));
        let over = State {
            cells: [("b".to_owned(), cell(&other))].into(),
            ..state
        };
        assert_eq!(of(Path::new("/nowhere"), &over, &nothing), None);
        // Its supervisor was killed when it had just made it.
        let mut made = over;
        for cell in made.cells.values_mut() {
            cell.instances.get_mut(&1).unwrap().started = None;
        }
        assert_eq!(of(Path::new("/nowhere"), &made, &nothing), None);
        let lives = |id: &str| id == names::cell_id("m", "b");
        let found = of(Path::new("/nowhere"), &made, &lives).unwrap();
        assert_eq!(found.who(), "cell `b`");
    }
}
