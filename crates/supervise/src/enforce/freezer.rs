//! Budgets held by the clock and the freezer of cgroup v2.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freezer::hold;
use freezer::page::{Entry, Page, memory};
use freezer::process::{self, Place, PlaceError};
use freezer::{Reservation, Stop};
use host::root::Root;
use host::sched::Class;
use model::mission::Cell;
use text::units::exact;

use super::inside::of_deadline;
use super::{Counted, CpusetOnly, Enforce, EnforceError, Inside, Left, Mechanism, Step};
use crate::admit::Grant;
use crate::ledger::{self, Ledger, LedgerError};
use crate::names;

/// How often it is seen whether a cell is held, ns: as often as a keeper tries again to take up a group.
const LOOK_NS: i64 = 100_000_000;

/// A cell cannot set the classes of its threads: its agent does, which knows when they are lowered, or nobody
/// ([`engine::app::Scheduling::Granted`]).
const STOP: Stop = Stop::Lower;

/// The budgets of a mission, held by processes of their own that outlive the supervisor, and end when they hold nothing any more.
#[derive(Debug)]
pub(super) struct ByFreezer {
    mission: String,
    place: Place,
    children: Children,
}

/// How often those who held cells and have ended are looked for.
const REAPED_EVERY: Duration = Duration::from_secs(1);

/// The processes that hold cells, if they are children of this process: a supervisor is the parent of orphans. Nobody
/// else reaps them.
#[derive(Debug, Clone, Default)]
struct Children(Arc<Mutex<Option<Instant>>>);

impl Children {
    /// Reaps processes that have ended, including those killed before anybody saw them work; at most once a second.
    fn reap_now_and_then(&self) {
        let mut last = lock(&self.0);
        if last.is_none_or(|last| last.elapsed() >= REAPED_EVERY) {
            *last = Some(Instant::now());
            process::reap_ended_holders();
        }
    }
}

/// Lets go of the groups that the freezer holds for missions of which nothing runs any more, by the ledger, and removes them: their keepers
/// are real-time processes that nobody accounts for. Missions that run are not reported.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is removed then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    if !ledger::is_root() {
        return Ok(Vec::new());
    }
    // A supervisor enters itself first, which nobody can do while the ledger is locked.
    let locked = ledger.lock()?;
    let entries = locked.entries_everywhere()?;
    let mut left = Vec::new();
    for name in Root::live().names_in(memory()) {
        let Some(mission) = names::mission_of_freezer(&name) else {
            continue;
        };
        if ledger::anything_runs(&entries, mission) {
            continue;
        }
        let what = format!("groups that the freezer held for mission `{mission}`");
        let removed = (ByFreezer::of(mission).keep_only(&[])).map_err(|why| why.to_string());
        let cells =
            || engine::remove_empty(&names::cells_of(mission)).map_err(|why| why.to_string());
        left.push(Left::removed(&what, removed.and_then(|()| cells())));
    }
    Ok(left)
}

impl ByFreezer {
    pub(super) fn of(mission: &str) -> ByFreezer {
        // This is the program that runs, even if another one has its path by now.
        let place = Place::new(memory().join(names::freezer_of(mission)), "/proc/self/exe");
        ByFreezer {
            mission: mission.to_owned(),
            place,
            children: Children::default(),
        }
    }

    fn group(&self, place: &str) -> Result<PathBuf, EnforceError> {
        let root = Root::live();
        let top = hold::top(&root).map_err(EnforceError::Held)?;
        Ok(top.join(names::cell_id(&self.mission, place)))
    }

    fn cell(&self, grant: &Grant) -> Result<Freezer, EnforceError> {
        let missing = |what| EnforceError::NotGranted {
            cell: grant.cell.clone(),
            what,
        };
        let (Some(budget_ns), Some(period_ns)) = (grant.budget_ns, grant.period_ns) else {
            return Err(missing("budget"));
        };
        let [cpu] = grant.cpus[..] else {
            return Err(missing("cpu of its own"));
        };
        let reservation = Reservation::of_unsigned(budget_ns, period_ns)
            .map_err(|_| missing("budget that the freezer holds"))?;
        Ok(Freezer {
            place: self.place.clone(),
            children: self.children.clone(),
            group: self.group(&grant.cell)?,
            cpu,
            reservation,
            by_class: CpusetOnly::new(grant),
            not_held: None,
            again: None,
            is_shed: false,
            at_shed: None,
            before: Arc::default(),
            over: Arc::default(),
        })
    }

    /// Releases all groups but those of these places; one with processes in it stays held.
    fn release_but(&self, kept: &[PathBuf]) -> Result<(), EnforceError> {
        let mut result = Ok(());
        for Entry { which, .. } in self.place.groups()? {
            if kept.contains(&which.path) {
                continue;
            }
            let done = match hold::is_populated(&which.path) {
                true => Err(EnforceError::Populated(which.path)),
                false => self.place.let_go(&which.path).map_err(EnforceError::from),
            };
            result = result.and(done);
        }
        if result.is_ok() && kept.is_empty() {
            self.place.remove()?;
        }
        process::reap_ended_holders();
        result
    }
}

impl Mechanism for ByFreezer {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(match grant.budget_ns {
            Some(_) => Box::new(self.cell(grant)?),
            None => Box::new(CpusetOnly::new(grant)),
        })
    }

    /// If the processes that held it are gone, it is held again, and owes its use meanwhile. If that fails, a
    /// running cell continues: it is tried again, and reported, as long as the cell runs.
    fn adopt(
        &self,
        grant: &Grant,
        cell: &Cell,
        is_let_go: bool,
    ) -> Result<Box<dyn Enforce>, EnforceError> {
        if grant.budget_ns.is_some() && !is_let_go {
            let cell = self.cell(grant)?;
            let _ = self.place.adopt().map(|_| cell.hold_group());
        }
        self.make(grant, cell)
    }

    fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        if !self.place.dir().exists() {
            return Ok(());
        }
        let kept: Result<Vec<PathBuf>, EnforceError> =
            places.iter().map(|place| self.group(place)).collect();
        self.release_but(&kept?)
    }

    fn forget(&self, place: &str) {
        if let Ok(group) = self.group(place)
            && !hold::is_populated(&group)
        {
            let _ = self.place.let_go(&group);
        }
        process::reap_ended_holders();
    }
}

/// A cell whose group, with all its threads and processes, is frozen from when its budget is used up until its next period.
#[derive(Debug)]
struct Freezer {
    place: Place,
    children: Children,
    group: PathBuf,
    cpu: u32,
    reservation: Reservation,
    by_class: CpusetOnly,
    /// The last reason told why nobody holds it.
    not_held: Option<String>,
    /// Has it held again. Those who are to hold it may not answer for seconds, for which the supervisor has no time.
    again: Option<JoinHandle<Result<u64, PlaceError>>>,
    is_shed: bool,
    /// The counts when it was shed last.
    at_shed: Option<Counted>,
    /// The counts before it was released because it was shed: the next holder starts counting afresh. One that
    /// could not be released is still among its holder's counts.
    before: Arc<Mutex<Option<Counted>>>,
    /// Whether it is released for good. Holding and releasing exclude each other: a slow step must not come after a
    /// later request.
    over: Arc<Mutex<bool>>,
}

impl Freezer {
    fn hold_group(&self) -> Result<u64, EnforceError> {
        Ok(self
            .place
            .hold(&self.group, STOP, self.cpu, self.reservation)?)
    }

    /// The step that lets it go, for good or until it is held again.
    fn letting_go(&mut self, for_good: bool) -> Step {
        let (place, group) = (self.place.clone(), self.group.clone());
        let (again, over) = (self.again.take(), Arc::clone(&self.over));
        Box::new(move || {
            let mut over = lock(&over);
            *over |= for_good;
            // Else it would be held again afterwards.
            if let Some(again) = again {
                let _ = again.join();
            }
            Ok(place.let_go(&group)?)
        })
    }

    /// The step that releases it until it is held again, with these counts.
    fn shed_with(&mut self, counted: Option<Counted>) -> Step {
        (self.at_shed, self.is_shed) = (counted, true);
        let (letting_go, before) = (self.letting_go(false), Arc::clone(&self.before));
        Box::new(move || {
            letting_go()?;
            *lock(&before) = counted;
            Ok(())
        })
    }

    /// The counts since it was held last.
    fn counted_now(&self) -> Option<Counted> {
        let page = self.place.page().ok()??;
        let groups = page.groups();
        let entry = groups.iter().find(|entry| entry.which.path == self.group)?;
        let totals = entry.progress.totals;
        Some(Counted {
            periods: totals.periods,
            exhausted: totals.exhausted,
            overrun_ns: totals.overrun_ns,
            by: page.keeper(),
        })
    }

    /// Whether it is held, or why not, a clause.
    fn is_held(&self) -> Result<(), String> {
        let page = self.place.page().map_err(|error| error.to_string())?;
        self.children.reap_now_and_then();
        let Some(page) = page.filter(Page::is_at_work) else {
            return Err("its keeper, watcher and heir have all ended, or are stopped".to_owned());
        };
        let groups = page.groups();
        match groups.iter().find(|entry| entry.which.path == self.group) {
            Some(Entry { not_held: None, .. }) => Ok(()),
            Some(Entry {
                not_held: Some(errno),
                ..
            }) => Err(std::io::Error::from_raw_os_error(*errno).to_string()),
            None => Err(format!("nothing holds {}", self.group.display())),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Enforce for Freezer {
    fn guarantee(&self) -> String {
        format!(
            "{} of cpu {} in every {}; what it overruns until the freezer stops it is taken from later periods; \
             held by the freezer of {}",
            exact(self.reservation.budget_ns().unsigned_abs()),
            self.cpu,
            exact(self.reservation.period_ns().unsigned_abs()),
            self.group.display()
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        self.by_class.hold(pid)?;
        self.hold_group().map(drop)
    }

    fn tend(&mut self, _: &Inside) -> Vec<String> {
        let tried = match self.again.take() {
            Some(again) if !again.is_finished() => {
                self.again = Some(again);
                return Vec::new();
            }
            again => again.and_then(|again| again.join().ok()),
        };
        let mut told = Vec::new();
        match self.is_held() {
            Ok(()) if self.not_held.take().is_some() => {
                told.push("its budget is held again".to_owned());
            }
            Ok(()) => {}
            Err(why) => {
                let why = match tried {
                    Some(Err(error)) => format!("{why}; holding it again failed: {error}"),
                    _ => why,
                };
                if self.not_held.as_ref() != Some(&why) {
                    told.push(format!("its budget is not enforced: {why}"));
                }
                self.not_held = Some(why);
                // Asking for it to be held starts a keeper.
                let (place, group) = (self.place.clone(), self.group.clone());
                let (cpu, reservation) = (self.cpu, self.reservation);
                self.again = Some(thread::spawn(move || {
                    place.hold(&group, STOP, cpu, reservation)
                }));
            }
        }
        told
    }

    fn tend_again_ns(&self) -> Option<i64> {
        Some(LOOK_NS)
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        let not_held = self.not_held.as_ref();
        let mut unheld: Vec<String> = not_held
            .map(|why| format!("its budget is not enforced: {why}"))
            .into_iter()
            .collect();
        unheld.extend(of_deadline(
            threads,
            "which runs before the freezer's threads: it is stopped only when it lets them run",
        ));
        unheld
    }

    fn gets_back(&self, thread: i32) -> Option<Class> {
        let page = self.place.page().ok()??;
        page.gets_back(&self.group, thread)
    }

    fn counted(&self) -> Option<Counted> {
        match self.is_shed {
            true => self.at_shed,
            false => Counted::both(*lock(&self.before), self.counted_now()),
        }
    }

    /// The budget of its next life does not come before the period is over in which it had this one.
    fn settle_ns(&self) -> i64 {
        self.reservation.period_ns()
    }

    /// In a period whose budget is used up its threads have class IDLE, and its keeper knows which class they had: it
    /// restores that first, because nobody can do so later.
    fn shed(&mut self) -> Option<Step> {
        let counted = self.counted();
        Some(self.shed_with(counted))
    }

    fn unshed(&mut self) -> Option<Step> {
        std::mem::take(&mut self.is_shed).then_some(())?;
        let (place, group) = (self.place.clone(), self.group.clone());
        let (cpu, reservation) = (self.cpu, self.reservation);
        let over = Arc::clone(&self.over);
        Some(Box::new(move || {
            let over = lock(&over);
            // The group may be that of its next life by now.
            match *over {
                true => Ok(()),
                false => Ok(place.hold(&group, STOP, cpu, reservation).map(drop)?),
            }
        }))
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        self.letting_go(true)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::Basis;

    /// Of a place where nobody holds anything.
    fn freezer(dir: &std::path::Path) -> Freezer {
        let grant = Grant {
            cell: "a".to_owned(),
            enforcer: model::Enforcer::Freezer,
            cpus: vec![1],
            budget_ns: Some(3_000_000),
            period_ns: Some(10_000_000),
            band: None,
            round_robin: false,
            partition: None,
            basis: Basis::WholeCpu,
            rate: 0.3,
            delay_ns: None,
            postponed_ns: 0,
            tasks: Vec::new(),
        };
        Freezer {
            place: Place::new(dir.join("place"), "/nonexistent"),
            children: Children::default(),
            group: dir.join("group"),
            cpu: 1,
            reservation: Reservation::new(3_000_000, 10_000_000).unwrap(),
            by_class: CpusetOnly::new(&grant),
            not_held: None,
            again: None,
            is_shed: false,
            at_shed: None,
            before: Arc::default(),
            over: Arc::default(),
        }
    }

    fn counted(periods: u64, exhausted: u64, overrun_ns: i64) -> Counted {
        Counted {
            periods,
            exhausted,
            overrun_ns,
            by: 1,
        }
    }

    #[test]
    fn what_was_counted_before_a_cell_was_shed_is_not_forgotten() {
        let (one, two) = (counted(7, 3, 900), counted(5, 1, 400));
        assert_eq!(
            Counted::both(Some(one), Some(two)),
            Some(counted(12, 4, 900))
        );
        assert_eq!(Counted::both(Some(one), None), Some(one));
        assert_eq!(Counted::both(None, Some(two)), Some(two));
        assert_eq!(Counted::both(None, None), None);
        let dir = tempfile::tempdir().unwrap();
        let mut freezer = freezer(dir.path());
        freezer.shed_with(Some(one))().unwrap();
        assert_eq!(freezer.counted(), Some(one));
        assert!(freezer.unshed().is_some() && freezer.unshed().is_none());
        assert_eq!(freezer.counted(), Some(one));
        freezer.shed().unwrap()().unwrap();
        assert!(freezer.unshed().is_some());
        assert_eq!(freezer.counted(), Some(one));
    }

    #[test]
    fn what_could_not_be_let_go_is_not_counted_twice() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let mut freezer = freezer(dir.path());
        // Others may change it, so that nothing in it is believed.
        std::fs::create_dir(freezer.place.dir()).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(freezer.place.dir(), open).unwrap();
        let one = counted(7, 3, 900);
        assert!(freezer.shed_with(Some(one))().is_err());
        assert_eq!(freezer.counted(), Some(one));
        assert!(freezer.unshed().is_some());
        // Its holder has counted that, and cannot be asked here.
        assert_eq!(freezer.counted(), None);
    }

    #[test]
    fn what_is_let_go_for_good_is_not_held_by_what_was_asked_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut freezer = freezer(dir.path());
        freezer.shed().unwrap()().unwrap();
        let late = freezer.unshed().unwrap();
        freezer.release().unwrap();
        // Nobody could hold it here, which would be an error.
        late().unwrap();
        freezer.shed().unwrap()().unwrap();
        assert!(!dir.path().join("place").exists());
    }
}
