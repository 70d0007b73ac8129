//! Finds the current run and looks at its trial repeatedly.

use std::io;
use std::path::{Path, PathBuf};

use probe::clock;
use probe::control::{Stage, State};

use super::cpu_time::{CpuTime, Found};
use super::files::{Allowance, Kept};
use super::note::{FILE, LIVE_SCHEMA, Live};
use super::page::{Page, SlotSeen};
use super::tail::{Sums, Tail};
use crate::place::{self, Living};
use host::foreign_file;

/// Longest note of a trial that is read: thousands of cells.
const MOST_NOTE_BYTES: u64 = 64 << 20;

/// Looks at the run of this user; root sees another user's if it has none itself.
#[derive(Debug)]
pub struct Watcher {
    allowance: Allowance,
    trial: Option<Watched>,
}

/// The outcome of a look.
#[derive(Debug)]
pub enum Seen<'a> {
    /// No timecell measures that this user may watch.
    NoRun,
    /// Process `pid` measures, but has no trial that can be watched right now.
    NoTrial {
        /// The coordinator.
        pid: i32,
        /// Why its trial cannot be watched, where it has one.
        why: Option<String>,
    },
    /// A trial.
    Trial(&'a TrialView),
}

/// A trial at one instant.
#[derive(Debug)]
pub struct TrialView {
    /// Its coordinator's note.
    pub live: Live,
    /// The coordinator.
    pub pid: i32,
    /// When this was, CLOCK_MONOTONIC ns.
    pub at_ns: i64,
    /// The published instant of the release, CLOCK_MONOTONIC ns.
    pub go_ns: Option<i64>,
    /// The cells, by their slots.
    pub cells: Vec<CellView>,
}

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Not created, or has not reported yet.
    Absent,
    /// Runs, and waits to be placed.
    Present,
    /// Sleeps on the barrier.
    Armed,
    /// Does its jobs.
    Running,
    /// Has done them.
    Done,
    /// Gave up, or its process ended early.
    Failed,
}

/// One cell at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct CellView {
    /// Where it stands.
    pub standing: Standing,
    /// Why it failed.
    pub failure: Option<String>,
    /// Its payload, once created.
    pub pid: Option<i32>,
    /// Cpu time of its process so far, ns; `None` for the later threads of a cell, which share it.
    pub cpu_ns: Option<i64>,
    /// Share of one cpu that it used since the look before, 0 to the number of its threads.
    pub cpu_share: Option<f64>,
    /// Its sums so far.
    pub sums: Sums,
}

#[derive(Debug)]
struct Watched {
    dir: PathBuf,
    view: TrialView,
    control: Kept,
    page: Page,
    cells: Vec<Cell>,
    /// Whether the process of a slot has several threads with slots.
    shared: Vec<bool>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Cell {
    tail: Tail,
    cpu: Option<CpuTime>,
    before: Option<(i64, i64)>,
}

impl Watcher {
    /// A watcher that has seen nothing. Raises this process's limit of open files.
    #[expect(clippy::new_without_default, reason = "it changes the process")]
    pub fn new() -> Watcher {
        Watcher {
            allowance: Allowance::new(),
            trial: None,
        }
    }

    /// Looks once.
    pub fn look(&mut self) -> Seen<'_> {
        let Some(run) = watchable(place::living()) else {
            self.trial = None;
            return Seen::NoRun;
        };
        let nothing = |why| Seen::NoTrial { pid: run.pid, why };
        let Some(dir) = newest_trial(&run.dir) else {
            self.trial = None;
            return nothing(None);
        };
        let known = self.trial.take().filter(|trial| trial.dir == dir);
        let mut trial = match known.map_or_else(|| Watched::new(&run, dir, &self.allowance), Ok) {
            Ok(trial) => trial,
            Err(why) => return nothing(Some(why)),
        };
        match trial.look(&self.allowance) {
            Ok(()) => Seen::Trial(&self.trial.insert(trial).view),
            // It ended between finding and reading it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => nothing(None),
            Err(error) => nothing(Some(error.to_string())),
        }
    }
}

/// Our own first: root may watch others'.
fn watchable(mut living: Vec<Living>) -> Option<Living> {
    living.sort_by_key(|place| (place.uid != place::uid(), place.pid));
    living.into_iter().next()
}

fn newest_trial(place: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(place.join("trials")).ok()?.flatten();
    let numbered = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        entry
            .path()
            .join(FILE)
            .exists()
            .then(|| (number, entry.path()))
    });
    numbered.max().map(|(_, dir)| dir)
}

impl Watched {
    fn new(run: &Living, dir: PathBuf, allowance: &Allowance) -> Result<Watched, String> {
        let path = dir.join(FILE);
        let text = foreign_file::read(&path, MOST_NOTE_BYTES)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let live: Live = serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if live.schema != LIVE_SCHEMA {
            return Err("it was started by another version of timecell".to_owned());
        }
        let shared_dir = dir.join("shared");
        let cells = (live.cells.iter())
            .map(|cell| Cell {
                tail: Tail::of(
                    shared_dir.join(format!("{}.samples", cell.id)),
                    live.rings,
                    allowance,
                ),
                cpu: None,
                before: None,
            })
            .collect();
        let mut shared = vec![false; live.cells.len()];
        for (index, cell) in live.cells.iter().enumerate() {
            if cell.process != index
                && let Some(shared) = shared.get_mut(cell.process)
            {
                *shared = true;
            }
        }
        Ok(Watched {
            control: Kept::new(shared_dir.join("control"), allowance),
            dir,
            view: TrialView {
                cells: Vec::new(),
                live,
                pid: run.pid,
                at_ns: 0,
                go_ns: None,
            },
            page: Page::default(),
            cells,
            shared,
            bytes: Vec::new(),
        })
    }

    fn look(&mut self, allowance: &Allowance) -> io::Result<()> {
        let count = self.view.live.cells.len();
        self.control.read_at(self.page.room(count), 0)?;
        if !self.page.is_ours() {
            let why = "it was started by another version of timecell";
            return Err(io::Error::other(why));
        }
        let now = clock::now();
        self.view.at_ns = now;
        self.view.go_ns = self.page.go_ns();
        let released = self.view.go_ns.is_some_and(|go_ns| go_ns <= now);
        let mut views: Vec<CellView> = Vec::with_capacity(count);
        let mut suspects = Vec::new();
        for index in 0..count {
            let slot = self.page.slot(index);
            let process = self.view.live.cells[index].process;
            let cell = &mut self.cells[index];
            let sums = match released {
                true => cell.tail.look(&mut self.bytes),
                false => Sums::default(),
            };
            let own = process == index;
            let cpu = own.then(|| cell.cpu(&slot, now, self.shared[index], allowance));
            let (standing, failure) = standing(&slot, released);
            let mut view = CellView {
                standing,
                failure,
                pid: (slot.pid > 0).then_some(slot.pid),
                cpu_ns: None,
                cpu_share: None,
                sums,
            };
            let ended = match cpu {
                Some(Used::Ns { ns, share }) => {
                    view.cpu_ns = Some(ns);
                    view.cpu_share = share;
                    false
                }
                Some(Used::Unknown) => false,
                Some(Used::Ended { ns }) => {
                    view.cpu_ns = ns;
                    true
                }
                None => suspects.contains(&process),
            };
            if ended && standing < Standing::Done {
                suspects.push(index);
            }
            views.push(view);
        }
        // The page was copied before: a cell that was done meanwhile may be gone by now.
        if !suspects.is_empty() {
            self.control.read_at(self.page.room(count), 0)?;
        }
        for index in suspects {
            if State::from_number(self.page.slot(index).state) < State::Done {
                views[index].standing = Standing::Failed;
                views[index].failure = Some("its process has ended".to_owned());
            }
        }
        self.view.cells = views;
        Ok(())
    }
}

/// Cpu time of a process.
enum Used {
    Ns { ns: i64, share: Option<f64> },
    Unknown,
    Ended { ns: Option<i64> },
}

impl Cell {
    fn cpu(&mut self, slot: &SlotSeen, now: i64, threads: bool, allowance: &Allowance) -> Used {
        if slot.pid <= 0 {
            return Used::Unknown;
        }
        let cpu = (self.cpu).get_or_insert_with(|| CpuTime::of(slot.pid, threads, allowance));
        match cpu.look() {
            Found::Ns(ns) => {
                let share = self.before.and_then(|(then, before)| {
                    let window = now - then;
                    // The sum lacks threads that have ended meanwhile.
                    (window > 0).then(|| (ns - before).max(0) as f64 / window as f64)
                });
                self.before = Some((now, ns));
                Used::Ns { ns, share }
            }
            Found::Unknown => Used::Unknown,
            Found::Gone => Used::Ended {
                ns: self.before.map(|(_, ns)| ns),
            },
        }
    }
}

fn standing(slot: &SlotSeen, released: bool) -> (Standing, Option<String>) {
    match State::from_number(slot.state) {
        State::Absent => (Standing::Absent, None),
        State::Present => (Standing::Present, None),
        State::Armed if released => (Standing::Running, None),
        State::Armed => (Standing::Armed, None),
        State::Done => (Standing::Done, None),
        State::Failed => {
            let cause = io::Error::from_raw_os_error(slot.errno);
            let why = format!("{}: {cause}", Stage::doing(slot.stage));
            (Standing::Failed, Some(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveCell;
    use model::EngineKind;
    use probe::Barrier;
    use std::sync::atomic::Ordering::Relaxed;

    /// A trial of three cells as a coordinator lays it out.
    fn trial(dir: &Path) -> (Barrier, Watched) {
        let shared = dir.join("shared");
        std::fs::create_dir(&shared).unwrap();
        let barrier = Barrier::create(&shared.join("control"), 3).unwrap();
        let cells = (0..3).map(|index| LiveCell {
            id: format!("{index}-bare"),
            engine: EngineKind::Bare,
            cpus: vec![0],
            class: "FIFO 80".to_owned(),
            reservation: None,
            process: index,
            planned: 10,
            period_ns: 1_000_000,
        });
        let live = Live {
            schema: LIVE_SCHEMA,
            run: dir.to_owned(),
            experiment: "x".to_owned(),
            trial: "x".to_owned(),
            number: 1,
            trials: 1,
            round: 1,
            rounds: 1,
            expected_end_ns: 0,
            rings: false,
            works: true,
            loads: Vec::new(),
            shared_reservation: None,
            cells: cells.collect(),
        };
        std::fs::write(dir.join(FILE), serde_json::to_vec(&live).unwrap()).unwrap();
        let run = Living {
            dir: dir.to_owned(),
            pid: 1,
            uid: 0,
        };
        let watched = Watched::new(&run, dir.to_owned(), &Allowance::of(100)).unwrap();
        (barrier, watched)
    }

    #[test]
    fn cells_stand_where_their_slots_and_processes_say() {
        let dir = tempfile::tempdir().unwrap();
        let (barrier, mut watched) = trial(dir.path());
        let allowance = Allowance::of(100);
        let standings = |watched: &mut Watched| {
            watched.look(&allowance).unwrap();
            let cells = watched.view.cells.iter();
            cells.map(|cell| cell.standing).collect::<Vec<_>>()
        };
        assert_eq!(standings(&mut watched), [Standing::Absent; 3]);
        let us = std::process::id().cast_signed();
        for (index, state) in [(0, State::Armed), (1, State::Armed), (2, State::Failed)] {
            barrier.slot(index).pid.store(us, Relaxed);
            barrier.slot(index).state.store(state as u32, Relaxed);
        }
        // No process has this number: the kernel's largest is 2^22.
        barrier.slot(1).pid.store(i32::MAX, Relaxed);
        assert_eq!(
            standings(&mut watched),
            [Standing::Armed, Standing::Failed, Standing::Failed]
        );
        let why = watched.view.cells[1].failure.clone().unwrap();
        assert_eq!(why, "its process has ended");
        barrier.open(0);
        barrier.slot(1).state.store(State::Done as u32, Relaxed);
        assert_eq!(
            standings(&mut watched),
            [Standing::Running, Standing::Done, Standing::Failed]
        );
    }

    #[test]
    fn the_newest_trial_and_ones_own_run_are_watched() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(newest_trial(place.path()), None);
        for (number, live) in [("9", true), ("10", true), ("11", false), ("x", true)] {
            let dir = place.path().join("trials").join(number);
            std::fs::create_dir_all(&dir).unwrap();
            if live {
                std::fs::write(dir.join(FILE), "{}").unwrap();
            }
        }
        let newest = newest_trial(place.path()).unwrap();
        assert!(newest.ends_with("trials/10"));
        let living = |pid, uid| Living {
            dir: PathBuf::new(),
            pid,
            uid,
        };
        let others = place::uid() + 1;
        let found = watchable(vec![living(3, others), living(7, place::uid())]).unwrap();
        assert_eq!(found.pid, 7);
    }
}
