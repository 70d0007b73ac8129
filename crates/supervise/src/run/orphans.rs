//! Ending a mission whose supervisor is gone: its cells, and all that was made for them, by what its journal says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::Cell as _;
use engine::app::{self, Adoption, AppCell};
use model::mission::MissionFile;

use super::cell::{end_of, leave_class, page_dir, work_dir};
use super::{Event, RunError};
use crate::cause::{Cause, Reason, ended};
use crate::control::{self, CellDone};
use crate::end::End;
use crate::enforce::{Inside, MissionGroups, leave_real_time};
use crate::journal::Journal;
use crate::ledger::{Ledger, LedgerError};
use crate::page::Place;
use crate::stamp::Stamp;
use crate::state::{Entry, Record, State, replay};
use crate::uids;

/// Between two looks whether a program has ended.
const STEP: Duration = Duration::from_millis(5);
/// How long the kernel may take to let go of a group whose processes have ended.
const LETTING_GO: Duration = Duration::from_secs(2);

/// Why the cells of a mission that nobody supervises could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum OrphansError {
    /// Somebody else works on the mission.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The journal cannot be had or written.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A cell of a mission that is ended.
struct Orphan {
    generation: u64,
    beside: bool,
    app: Option<Box<AppCell>>,
    patience: Duration,
    end: End,
    cause: Option<Cause>,
}

/// Ends every cell of the mission in this directory, of which nobody is the supervisor, and leaves nothing of them: SIGTERM, the
/// time that the mission file gives, SIGKILL. Returns what became of each, nothing if no mission is up; what could not be removed
/// is told.
///
/// # Errors
/// When somebody supervises it after all, or the journal cannot be had or written.
pub fn end_orphans(
    dir: &Path,
    ledger: &Ledger,
    tell: &mut dyn FnMut(&Event),
) -> Result<Vec<CellDone>, OrphansError> {
    let Some(name) = control::state(dir).ok().and_then(|state| state.mission) else {
        return Ok(Vec::new());
    };
    // Nobody starts it, or takes it over, meanwhile.
    let _name = ledger.name(&name, dir)?;
    let (mut journal, loaded) = Journal::<Record>::open(dir).map_err(RunError::from)?;
    let state = replay(loaded.entries.iter().map(|(_, record)| record));
    let mut orphans = find(dir, &state, tell);
    end(&mut orphans);
    let mut done = Vec::new();
    let mut records = Vec::new();
    for (cell, orphan) in orphans {
        let entry = Entry::CellEnded {
            cell: cell.clone(),
            generation: orphan.generation,
            end: orphan.end,
            cause: orphan.cause.clone(),
        };
        let text = match orphan.app {
            Some(_) => ended(orphan.end, orphan.cause.as_ref()),
            None => "had ended before".to_owned(),
        };
        for what in clear(dir, &cell, orphan) {
            let cell = cell.clone();
            tell(&Event::Left { cell, what });
        }
        let end = match &entry {
            Entry::CellEnded { end, .. } => Some(*end),
            _ => None,
        };
        records.push(entry);
        done.push(CellDone {
            cell,
            pid: None,
            end,
            text,
        });
    }
    let mut note = |text: String| tell(&Event::Note { text });
    if let Err(why) = let_go(&name) {
        note(why);
    }
    if let Err(why) = uids::Record::of_this_machine().free(&name) {
        note(why);
    }
    records.push(Entry::CleanDown);
    for entry in records {
        let at = Stamp::now();
        journal
            .append(&Record { at, entry })
            .map_err(RunError::from)?;
    }
    control::remove_socket(dir);
    Ok(done)
}

/// Every cell that the journal says may be there, by name; of two versions of one, each.
fn find(dir: &Path, state: &State, tell: &mut dyn FnMut(&Event)) -> Vec<(String, Orphan)> {
    let file = state.file.as_ref();
    let file = file.and_then(|file| MissionFile::parse("mission", &file.text).ok());
    let patience: BTreeMap<String, u64> = file
        .iter()
        .flat_map(|file| &file.mission().cells)
        .map(|cell| (cell.name.clone(), cell.stop_timeout.ns().unsigned_abs()))
        .collect();
    let instances = state.instances();
    instances
        .map(|(cell, generation, instance)| {
            let app = match app::adopt(&work_dir(dir, cell, instance.beside)) {
                Ok(Adoption::Taken(app)) => Some(app),
                Ok(Adoption::Ended | Adoption::Nothing) => None,
                Err(error) => {
                    let what = error.to_string();
                    let cell = cell.to_owned();
                    tell(&Event::Left { cell, what });
                    None
                }
            };
            let orphan = Orphan {
                generation,
                beside: instance.beside,
                app,
                patience: Duration::from_nanos(patience.get(cell).copied().unwrap_or(0)),
                end: End::Unknown,
                cause: None,
            };
            (cell.to_owned(), orphan)
        })
        .collect()
}

/// Asks all to end, and kills those that do not in their time.
fn end(orphans: &mut [(String, Orphan)]) {
    let began = Instant::now();
    for (_, orphan) in orphans.iter_mut() {
        if let Some(app) = &orphan.app {
            // A frozen one would not hear it; one that has just ended need not.
            let _ = app.thaw();
            let _ = app.kill(libc::SIGTERM);
            orphan.cause = Some(Cause::Asked);
        }
    }
    loop {
        let mut waits = false;
        for (_, orphan) in orphans.iter_mut() {
            let Some(app) = orphan.app.as_mut().filter(|app| app.end().is_none()) else {
                continue;
            };
            match app.try_wait_kernel() {
                Ok(Some(how)) => orphan.end = end_of(how),
                _ if began.elapsed() < orphan.patience => waits = true,
                _ if orphan.end == End::Unknown => {
                    let _ = app.kill(libc::SIGKILL);
                    orphan.end = End::Killed {
                        signal: libc::SIGKILL,
                        core_dumped: false,
                    };
                    let waited_ns = i64::try_from(orphan.patience.as_nanos()).unwrap_or(i64::MAX);
                    let reason = Reason::StopTimeout { waited_ns };
                    orphan.cause = Some(Cause::Supervisor { reason });
                }
                // Its removal waits for it.
                _ => {}
            }
        }
        if !waits {
            return;
        }
        std::thread::sleep(STEP);
    }
}

/// Removes all that is left of a cell; what could not be, as sentences.
fn clear(dir: &Path, cell: &str, orphan: Orphan) -> Vec<String> {
    let work = work_dir(dir, cell, orphan.beside);
    let cleared = match orphan.app {
        Some(mut app) => {
            let _ = app.kill(libc::SIGKILL);
            leave_real_time(&Inside {
                pid: app.pid(),
                groups: app.groups(),
            });
            app.remove()
        }
        None => {
            leave_class(&work);
            engine::sweep(&work)
        }
    };
    let page = Place::at(&page_dir(dir, cell, orphan.beside)).remove();
    let cleared = cleared.err().map(|error| error.to_string());
    let page = page.err().map(|error| error.to_string());
    cleared.into_iter().chain(page).collect()
}

/// Removes the real-time groups of the mission, once the kernel lets it.
fn let_go(mission: &str) -> Result<(), String> {
    let Ok(groups) = MissionGroups::of(mission) else {
        return Ok(());
    };
    let began = Instant::now();
    loop {
        match groups.keep_only(&[]) {
            Ok(()) => return Ok(()),
            Err(error) if began.elapsed() > LETTING_GO => return Err(error.to_string()),
            Err(_) => std::thread::sleep(STEP),
        }
    }
}
