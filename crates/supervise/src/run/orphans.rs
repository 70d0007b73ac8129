//! Ends a mission whose supervisor is gone: its cells, and everything that was created for them, as its journal
//! describes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::app::{self, Adoption, AppCell, Asking};
use freezer::page::memory;
use freezer::process::Place;
use host::root::Root;
use jailhouse::register::Register;
use model::mission::{self, MissionFile};

use super::cell::{end_of, remove_page, sweep, take_down};
use super::{Event, RunError};
use crate::cause::{Cause, Reason, ended};
use crate::control::{self, CellDone};
use crate::dirs::{own_places, page_dir, place, work_dir};
use crate::end::End;
use crate::enforce::Mechanisms;
use crate::journal::Journal;
use crate::ledger::{Ledger, LedgerError};
use crate::names;
use crate::stamp::Stamp;
use crate::state::{Entry, Record, State, replay};
use crate::uids;

/// Between two looks whether a program has ended.
const STEP: Duration = Duration::from_millis(5);
/// How long the kernel may take to release a group whose processes have ended.
const LETTING_GO: Duration = Duration::from_secs(2);

/// Why the cells of a mission without a supervisor could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum OrphansError {
    /// Somebody else works on the mission.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The journal cannot be opened or written.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A cell of a mission that is ended.
struct Orphan {
    generation: u64,
    beside: bool,
    app: Option<Box<AppCell>>,
    /// Why it could not be adopted, and so not be asked to end.
    strange: Option<String>,
    patience: Duration,
    /// The state of the request to end.
    asking: Asking,
    end: End,
    cause: Option<Cause>,
}

/// Ends every cell of the mission in this directory, which has no supervisor, and leaves nothing of them: SIGTERM, the
/// time that the mission file gives, SIGKILL. Returns the result for each, nothing if no mission is up; remains that
/// could not be removed are reported, and stay in the journal, so that this can be tried again.
///
/// # Errors
/// When it has a supervisor after all, or the journal cannot be opened or written.
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
    own_places(dir).map_err(RunError::from)?;
    let state = replay(loaded.entries.iter().map(|(_, record)| record));
    let mut orphans = find(dir, &state);
    thaw_held(&name, &orphans);
    end(&mut orphans);
    let mut done = Vec::new();
    let mut records = Vec::new();
    let mut stay = Vec::new();
    for (cell, orphan) in orphans {
        let at = place(&cell, orphan.beside);
        let text = orphan.text();
        let (generation, end, cause) = (orphan.generation, orphan.end, orphan.cause.clone());
        let left = clear(dir, &cell, orphan);
        if left.is_empty() {
            records.push(Entry::CellEnded {
                cell: cell.clone(),
                generation,
                end,
                cause,
            });
        } else {
            stay.push(at);
        }
        for what in left {
            let cell = cell.clone();
            tell(&Event::Left { cell, what });
        }
        done.push(CellDone {
            cell,
            pid: None,
            end: Some(end),
            text,
        });
    }
    let mut is_clean = stay.is_empty();
    let mut note = |result: Result<(), String>| {
        if let Err(text) = result {
            is_clean = false;
            tell(&Event::Note { text });
        }
    };
    note(let_go(&name, &stay));
    for left in other_pages(dir, &stay) {
        note(Err(left));
    }
    // Where something may still run as one of these users, nobody else becomes that user.
    if stay.is_empty() {
        note(uids::Record::of_this_machine().free(&name));
        // Their keepers may have been killed.
        let ended = Register::default().end_all(&name);
        note(ended.map_err(|error| error.to_string()));
    }
    if is_clean {
        records.push(Entry::CleanDown);
    }
    for entry in records {
        let at = Stamp::now();
        journal
            .append(&Record { at, entry })
            .map_err(RunError::from)?;
    }
    control::remove_socket(dir);
    Ok(done)
}

/// Every cell that the journal says may be there, those first for which no other waits; of two versions of one, each.
fn find(dir: &Path, state: &State) -> Vec<(String, Orphan)> {
    let known = Known::of(state);
    let instances = state.instances();
    let mut orphans: Vec<(String, Orphan)> = instances
        .map(|(cell, generation, instance)| {
            let (app, strange) = match app::adopt(&work_dir(dir, cell, instance.beside)) {
                Ok(Adoption::Taken(app)) => (Some(app), None),
                Ok(Adoption::Ended | Adoption::Nothing) => (None, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let orphan = Orphan {
                generation,
                beside: instance.beside,
                app,
                strange,
                patience: known.patience(cell),
                asking: Asking::Heard,
                end: End::Unknown,
                cause: None,
            };
            (cell.to_owned(), orphan)
        })
        .collect();
    orphans.sort_by_key(|(cell, _)| known.turn(cell));
    orphans
}

/// The mission file's settings for ending its cells: place in the order of starting, and the time that each has, by name.
struct Known(BTreeMap<String, (usize, Duration)>);

impl Known {
    fn of(state: &State) -> Known {
        let file = state.file.as_ref();
        let file = file.and_then(|file| MissionFile::parse("mission", &file.text).ok());
        let mission = file.as_ref().map(MissionFile::mission);
        let order = mission.map_or(Vec::new(), mission::Mission::start_order);
        let cells = order.into_iter().enumerate().filter_map(|(turn, at)| {
            let cell = mission?.cells.get(at)?;
            Some((cell.name.clone(), (turn, span(cell.stop_timeout))))
        });
        Known(cells.collect())
    }

    /// How long it may take to end; one that the file does not know, or no file that can be read, gets a file's default.
    fn patience(&self, cell: &str) -> Duration {
        let known = self.0.get(cell).map(|(_, patience)| *patience);
        known.unwrap_or(span(mission::Cell::STOP_TIMEOUT))
    }

    /// When it is asked to end: the reverse of the order of starting, before all others those of which nothing is known.
    fn turn(&self, cell: &str) -> Reverse<usize> {
        Reverse(self.0.get(cell).map_or(usize::MAX, |(turn, _)| *turn))
    }
}

fn span(time: model::Duration) -> Duration {
    Duration::from_nanos(time.ns().unsigned_abs())
}

impl Orphan {
    /// Its result, a clause.
    fn text(&self) -> String {
        match (&self.app, &self.strange) {
            // Nobody supervises it.
            (Some(_), _) => match &self.cause {
                Some(Cause::Supervisor { reason }) => format!("killed ({reason})"),
                cause => ended(self.end, cause.as_ref()),
            },
            (None, Some(why)) => format!("could not be asked to end: {why}"),
            (None, None) => "had already ended".to_owned(),
        }
    }
}

/// Lets cells run whose budgets were used up when the freezer's processes were killed: frozen, they would see no
/// signal.
fn thaw_held(mission: &str, orphans: &[(String, Orphan)]) {
    let place = Place::new(memory().join(names::freezer_of(mission)), "/proc/self/exe");
    let is_kept = (place.page().ok().flatten()).is_some_and(|page| page.is_kept());
    let (false, Ok(top)) = (is_kept, freezer::hold::top(&Root::live())) else {
        return;
    };
    for (cell, _) in orphans {
        let _ = std::fs::write(
            top.join(names::cell_id(mission, cell))
                .join("cgroup.freeze"),
            "0",
        );
    }
}

/// Asks all to end, and kills those that do not in their time.
fn end(orphans: &mut [(String, Orphan)]) {
    let began = Instant::now();
    for (_, orphan) in orphans.iter_mut() {
        if let Some(app) = &orphan.app {
            // A frozen one would not hear it; one that has just ended need not.
            let _ = app.thaw();
            orphan.asking = app.ask_to_end(libc::SIGTERM).unwrap_or(Asking::Heard);
            orphan.cause = Some(Cause::Asked);
        }
    }
    loop {
        let mut waits = false;
        for (_, orphan) in orphans.iter_mut() {
            let Some(app) = orphan.app.as_mut().filter(|app| app.end().is_none()) else {
                continue;
            };
            if let Asking::Blocked(looks) = orphan.asking {
                let again = app.ask_again(libc::SIGTERM, looks);
                orphan.asking = again.unwrap_or(Asking::Heard);
            }
            match app.try_wait_kernel() {
                Ok(Some(how)) => orphan.end = end_of(how),
                _ if began.elapsed() < orphan.patience => waits = true,
                _ if orphan.end == End::Unknown => {
                    let _ = app.kill(libc::SIGKILL);
                    orphan.end = End::Killed {
                        signal: libc::SIGKILL,
                        core_dumped: false,
                    };
                    // A program that was killed on request, and takes long to die, was not late.
                    if orphan.asking != Asking::Killed {
                        let waited_ns =
                            i64::try_from(orphan.patience.as_nanos()).unwrap_or(i64::MAX);
                        let reason = Reason::StopTimeout { waited_ns };
                        orphan.cause = Some(Cause::Supervisor { reason });
                    }
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

/// Removes all remains of a cell; returns failures, as sentences.
fn clear(dir: &Path, cell: &str, orphan: Orphan) -> Vec<String> {
    let cleared = match orphan.app {
        Some(mut app) => take_down(&mut app),
        None => sweep(&work_dir(dir, cell, orphan.beside)),
    };
    let page = remove_page(&page_dir(dir, cell, orphan.beside));
    cleared.into_iter().chain(page).collect()
}

/// Removes the pages of cells that had ended before: a supervisor keeps them until its own end. Returns failures, as
/// sentences.
fn other_pages(dir: &Path, stay: &[String]) -> Vec<String> {
    let places = std::fs::read_dir(dir.join("pages")).into_iter().flatten();
    places
        .flatten()
        .filter(|place| {
            let name = place.file_name();
            !stay.iter().any(|stays| name == stays.as_str())
        })
        .filter_map(|place| remove_page(&place.path()))
        .collect()
}

/// Removes all that the mechanisms keep for the mission but for these places, once the kernel lets it.
fn let_go(mission: &str, stay: &[String]) -> Result<(), String> {
    let mechanisms = Mechanisms::of(mission);
    let began = Instant::now();
    loop {
        match mechanisms.keep_only(stay) {
            Ok(()) => return Ok(()),
            Err(error) if began.elapsed() > LETTING_GO => return Err(error.to_string()),
            Err(_) => std::thread::sleep(STEP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Text;

    fn known(text: &str) -> Known {
        Known::of(&State {
            file: Some(Text::new(text)),
            ..State::default()
        })
    }

    #[test]
    fn who_waits_for_another_is_asked_to_end_before_it() {
        let cell = |name: &str, more: &str| {
            format!(
                "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"/bin/true\" }}\nclass = \"other\"\n{more}\n"
            )
        };
        let file = format!(
            "schema = 1\nname = \"m\"\n{}{}{}",
            cell("a", "needs = [\"z\"]\nstop_timeout = \"3s\""),
            cell("m", "after = [\"a\"]"),
            cell("z", ""),
        );
        let known = known(&file);
        let mut names = ["a", "gone", "m", "z"];
        names.sort_by_key(|name| known.turn(name));
        assert_eq!(names, ["gone", "m", "a", "z"]);
        assert_eq!(known.patience("a"), Duration::from_secs(3));
    }

    #[test]
    fn who_is_not_in_a_readable_file_still_gets_time_to_end() {
        assert_eq!(known("no mission").patience("a"), Duration::from_secs(1));
    }
}
