//! The page: everything that a keeper knows, in a file that survives it, so that another keeper can continue. Here live
//! the file, its mapping and its layout; its use is in [`crate::process`].
//!
//! It lies on tmpfs (`/run`): a mapping of a file on a disk would stop the enforcing thread for as long as the disk takes
//! to write it back. Like the groups that it describes, it goes with the boot. Every part has one writer: a group's part
//! its enforcing thread, or the commander as long as no thread has the group; a lane's part likewise; the header's the
//! current keeper. Anything longer than a word is written as `twin` describes.

mod lane;
mod lowered;
mod record;
mod twin;

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use host::map::{self, Map};
use host::sched::Class;

use crate::stats::{MOST_GROUPS, Reacted};
use crate::sys;
pub(crate) use lane::{Beat, Lane, NEVER, PATIENCE_NS};
pub(crate) use lowered::LowerTable;
pub(crate) use record::GroupRecord;
pub use record::{Entry, LONGEST_PATH, Progress, Totals, Which};

/// The file's name in its directory.
const NAME: &str = "page";
/// `timecell` and the version of the layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"timecel\x04");
/// How long the enforcing threads of a new keeper may take until they are at work, ns. They wait for that already, and report it first.
const BEGINNING_NS: i64 = 100_000_000;

#[derive(Debug)]
#[repr(C)]
struct Layout {
    magic: AtomicU64,
    next_id: AtomicU64,
    /// Advances with every group that is taken or released.
    generation: AtomicU64,
    takeovers: AtomicU64,
    /// When an enforcing thread last had all its groups again, ns.
    resumed_ns: AtomicI64,
    keeper: AtomicU64,
    watcher: AtomicU64,
    heir: AtomicU64,
    /// The keeper's commander, which takes commands.
    commander: Beat,
    /// The keeper's watcher; its promise is also when it looks next.
    watching: Beat,
    lanes: [Lane; MOST_GROUPS],
    groups: [GroupRecord; MOST_GROUPS],
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The system's error for a file.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Not in memory.
    #[error("{} is not on tmpfs, such as {}: the enforcing threads would wait for the disk", .0.display(), memory().display())]
    Disk(PathBuf),
    /// Not a page.
    #[error("{} is not a page of this version of timecell", .0.display())]
    Foreign(PathBuf),
}

/// A page, mapped.
#[derive(Debug)]
pub struct Page {
    map: Map,
    /// Of its file, on one file system.
    inode: u64,
}

impl Page {
    /// The page in a directory; `None` if there is none.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn open(dir: &Path) -> Result<Option<Page>, PageError> {
        let path = dir.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match options.custom_flags(libc::O_NOFOLLOW).open(&path) {
            Ok(file) => Page::map(&file, &path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(PageError::File { path, reason }),
        }
    }

    /// The page in a directory, a new one if there is none.
    ///
    /// # Errors
    /// [`PageError`].
    pub(crate) fn open_or_make(dir: &Path) -> Result<Page, PageError> {
        if let Some(page) = Page::open(dir)? {
            return Ok(page);
        }
        let (path, half) = (dir.join(NAME), dir.join("page.new"));
        let failed = |reason| PageError::File {
            path: half.clone(),
            reason,
        };
        let _ = std::fs::remove_file(&half);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&half)
            .map_err(failed)?;
        if !in_memory(&file).map_err(failed)? {
            let _ = std::fs::remove_file(&half);
            return Err(PageError::Disk(dir.to_owned()));
        }
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(failed)?;
        map::allocate(&file, size_of::<Layout>() as u64).map_err(failed)?;
        {
            use std::os::unix::fs::FileExt;
            file.write_all_at(&MAGIC.to_ne_bytes(), 0).map_err(failed)?;
        }
        // Whole, or not there.
        std::fs::rename(&half, &path).map_err(|reason| PageError::File {
            path: path.clone(),
            reason,
        })?;
        Page::map(&file, &path)
    }

    fn map(file: &File, path: &Path) -> Result<Page, PageError> {
        let failed = |reason| PageError::File {
            path: path.to_owned(),
            reason,
        };
        let about = file.metadata().map_err(failed)?;
        if about.len() != size_of::<Layout>() as u64 {
            return Err(PageError::Foreign(path.to_owned()));
        }
        let page = Page {
            map: Map::populated(file).map_err(failed)?,
            inode: about.ino(),
        };
        match page.layout().magic.load(Ordering::Acquire) {
            MAGIC => Ok(page),
            _ => Err(PageError::Foreign(path.to_owned())),
        }
    }

    fn layout(&self) -> &Layout {
        // SAFETY: mapped as long as `self`, as large as a layout, aligned to a page; atomics are valid with any content.
        unsafe { &*self.map.as_ptr().cast() }
    }

    pub(crate) fn group(&self, place: usize) -> &GroupRecord {
        &self.layout().groups[place]
    }

    pub(crate) fn lane(&self, lane: usize) -> &Lane {
        &self.layout().lanes[lane]
    }

    /// The lane of a cpu, the first free one if it has none yet. To be asked by the commander only.
    pub(crate) fn lane_of(&self, cpu: u32) -> Option<usize> {
        let lanes = &self.layout().lanes;
        let is = |wanted: u64| move |lane: &Lane| lane.cpu.load(Ordering::Acquire) == wanted;
        let found = lanes.iter().position(is(u64::from(cpu) + 1));
        found.or_else(|| lanes.iter().position(is(0)))
    }

    /// The lanes that are used.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let lanes = self.layout().lanes.iter();
        lanes.filter(|lane| lane.cpu.load(Ordering::Acquire) != 0)
    }

    /// The threads of a dead keeper no longer beat. Those of the next one have [`BEGINNING_NS`] to begin, on cpus with
    /// groups; on the others there may be none. Before any of them is at work.
    pub(crate) fn forget_beats(&self) {
        let groups = &self.layout().groups;
        let begun_ns = sys::now_ns() + BEGINNING_NS;
        for lane in self.lanes() {
            let is_used =
                (groups.iter()).any(|record| record.cpu().is_some_and(|cpu| lane.is_of(cpu)));
            lane.forget(if is_used { begun_ns } else { NEVER });
        }
    }

    pub(crate) fn commander(&self) -> &Beat {
        &self.layout().commander
    }

    pub(crate) fn watching(&self) -> &Beat {
        &self.layout().watching
    }

    pub(crate) fn generation(&self) -> u64 {
        self.layout().generation.load(Ordering::SeqCst)
    }

    pub(crate) fn changed(&self) {
        self.layout().generation.fetch_add(1, Ordering::SeqCst);
    }

    /// A number for a group.
    pub(crate) fn new_id(&self) -> u64 {
        self.layout().next_id.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Sets the keeper's pid.
    pub(crate) fn set_keeper(&self, pid: u32) {
        self.layout().keeper.store(pid.into(), Ordering::SeqCst);
    }

    pub(crate) fn set_watcher(&self, pid: u32) {
        self.layout().watcher.store(pid.into(), Ordering::SeqCst);
    }

    pub(crate) fn set_heir(&self, pid: u32) {
        self.layout().heir.store(pid.into(), Ordering::SeqCst);
    }

    pub(crate) fn count_takeover(&self) {
        self.layout().takeovers.fetch_add(1, Ordering::SeqCst);
    }

    /// Pid of the keeper that wrote here last; 0 without one. It may have ended.
    pub fn keeper(&self) -> i32 {
        self.layout().keeper.load(Ordering::SeqCst) as i32
    }

    /// Pid of the watcher that began last; 0 without one. It may have ended.
    pub fn watcher(&self) -> i32 {
        self.layout().watcher.load(Ordering::SeqCst) as i32
    }

    /// Pid of the heir that began last; 0 without one. It may have ended.
    pub fn heir(&self) -> i32 {
        self.layout().heir.load(Ordering::SeqCst) as i32
    }

    /// Whether the keeper is watched: there is a watcher which has said within 100 ms that it will look again.
    pub fn is_watched(&self) -> bool {
        const LONGEST_NS: i64 = 150_000_000;
        let ahead_ns = self.watching().promised_ns() - sys::now_ns();
        self.watcher() != 0 && (-LONGEST_NS..LONGEST_NS).contains(&ahead_ns)
    }

    /// Whether a process has the pid of the heir.
    pub fn has_heir(&self) -> bool {
        is_process(self.heir())
    }

    /// Whether a process has the pid of keeper, watcher or heir. If not, nobody holds anything here.
    pub fn is_kept(&self) -> bool {
        [self.keeper(), self.watcher(), self.heir()]
            .into_iter()
            .any(is_process)
    }

    /// Whether keeper, watcher or heir can act: one is there that is not stopped.
    pub fn is_at_work(&self) -> bool {
        [self.keeper(), self.watcher(), self.heir()]
            .into_iter()
            .any(|pid| is_in_no_state(pid, b"ZXTt"))
    }

    /// How often a dead keeper was replaced.
    pub fn takeovers(&self) -> u64 {
        self.layout().takeovers.load(Ordering::SeqCst)
    }

    /// When, on CLOCK_MONOTONIC, the last of the enforcing threads that took a dead one's place had all its groups again, ns; 0 before.
    pub fn resumed_ns(&self) -> i64 {
        self.layout().resumed_ns.load(Ordering::SeqCst)
    }

    pub(crate) fn resumed(&self) {
        self.layout()
            .resumed_ns
            .fetch_max(sys::now_ns(), Ordering::SeqCst);
    }

    /// The groups that are to be held, with their progress.
    pub fn groups(&self) -> Vec<Entry> {
        let records = self.layout().groups.iter();
        records.filter_map(GroupRecord::entry).collect()
    }

    /// How exactly the group of this number has been held so far; `None`: it is not held here. The keeper keeps writing
    /// meanwhile.
    pub fn reacted(&self, id: u64) -> Option<&Reacted> {
        let mut records = self.layout().groups.iter();
        let found = records.find(|record| id != 0 && record.id() == id);
        found.map(|record| &record.reacted)
    }

    /// The class that a thread of the group at this path gets back when its next budget comes; `None`: it has its own
    /// class, or would get that of its parent.
    pub fn gets_back(&self, group: &Path, tid: i32) -> Option<Class> {
        let table = self.table_of(group).filter(|table| table.is_down())?;
        let had = table.had(tid)?;
        let priority = u8::try_from(had.priority).unwrap_or(0);
        Some(Class::of_policy(had.number, priority))
    }

    fn table_of(&self, group: &Path) -> Option<&LowerTable> {
        let mut records = self.layout().groups.iter();
        let is = |record: &&GroupRecord| record.which().is_some_and(|which| which.path == group);
        records.find(is).map(|record| &record.lowered)
    }

    /// Whether the kernel gives notice of the use of groups on this cpu in time, as the keeper has found by trying; `None`: it has not held
    /// any there.
    pub fn has_notice(&self, cpu: u32) -> Option<bool> {
        let senses = self.lanes().find_map(|lane| lane.senses(cpu));
        senses.map(|senses| senses.notice.is_some())
    }

    /// Cpu time of the keeper since it was started, ns; `None`: it has ended.
    pub fn keeper_cpu_ns(&self) -> Option<i64> {
        let pid = self.keeper();
        (pid != 0).then(|| sys::process_cpu_ns(pid)).flatten()
    }

    /// Whether any group is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.layout().groups.iter().all(|record| record.id() == 0)
    }

    /// Whether it is the page in the directory: after a keeper has removed it, somebody may have created another.
    pub(crate) fn is_at(&self, dir: &Path) -> bool {
        std::fs::metadata(dir.join(NAME)).is_ok_and(|file| file.ino() == self.inode)
    }

    /// Removes its file; mappings stay.
    pub(crate) fn remove(&self, dir: &Path) {
        let _ = std::fs::remove_file(dir.join(NAME));
    }

    /// Freezes every group that is held, at once: for the time until the next keeper works, which thaws those that have
    /// a budget. The next keeper counts errors.
    pub(crate) fn freeze_all(&self) {
        for record in &self.layout().groups {
            if let Some(which) = record.which() {
                let file = OpenOptions::new()
                    .write(true)
                    .open(which.path.join("cgroup.freeze"));
                if let Ok(file) = file {
                    let _ = io::Write::write(&mut &file, b"1");
                }
            }
        }
    }
}

/// Whether the threads of a held group are lowered, for a process that sets classes in it from outside: a class that is
/// set meanwhile would be an escape, and would be lost at the end.
#[derive(Debug)]
pub struct Down {
    dir: PathBuf,
    group: PathBuf,
    page: Option<Page>,
}

impl Down {
    /// Of the group at this path, held by the page in this directory.
    pub fn of(dir: &Path, group: &Path) -> Down {
        Down {
            dir: dir.to_owned(),
            group: group.to_owned(),
            page: None,
        }
    }

    /// Whether they are now; never where nobody holds the group.
    pub fn is_now(&mut self) -> bool {
        if self.page.as_ref().is_none_or(|page| !page.is_at(&self.dir)) {
            self.page = Page::open(&self.dir).ok().flatten();
        }
        let page = self.page.as_ref();
        page.is_some_and(|page| {
            let table = page.table_of(&self.group);
            table.is_some_and(LowerTable::is_down) && page.is_kept()
        })
    }
}

fn is_process(pid: i32) -> bool {
    is_in_no_state(pid, b"ZX")
}

fn is_in_no_state(pid: i32, states: &[u8]) -> bool {
    pid != 0 && sys::thread_state(pid, pid).is_some_and(|state| !states.contains(&state))
}

/// A directory whose files are in memory: `/run`, as service managers mount it, else `/dev/shm`.
pub fn memory() -> PathBuf {
    let is_good = |dir: &&Path| {
        File::open(dir)
            .and_then(|dir| in_memory(&dir))
            .unwrap_or(false)
    };
    let run = Path::new("/run");
    Some(run)
        .filter(is_good)
        .unwrap_or(Path::new("/dev/shm"))
        .to_owned()
}

/// Whether a file lies in memory.
fn in_memory(file: &File) -> io::Result<bool> {
    const RAMFS: u32 = 0x8584_58f6;
    // Of another type on each architecture; no such number has more bits.
    let kind = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(kind == libc::TMPFS_MAGIC as u32 || kind == RAMFS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Senses;
    use crate::group::Stop;
    use crate::rule::{Reservation, State};

    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").unwrap()
    }

    fn progress(id: u64, at: i64) -> Progress {
        let state = State {
            left_ns: at,
            began_with_ns: at,
            end_ns: Some(at),
            spent_ns: at,
            looked_ns: at,
            used_ns: at,
        };
        Progress {
            id,
            reservation: Reservation::new(1_000_000, 10_000_000).unwrap(),
            state,
            lowered_at_ns: Some(at),
            best_effort_ns: at,
            totals: Totals::default(),
        }
    }

    #[test]
    fn a_page_is_found_again_and_a_foreign_file_is_refused() {
        let dir = place();
        assert!(Page::open(dir.path()).unwrap().is_none());
        let page = Page::open_or_make(dir.path()).unwrap();
        assert!(page.is_empty());
        assert_eq!((page.new_id(), page.new_id()), (1, 2));
        let lane = page.lane_of(3).unwrap();
        page.lane(lane).settle(3, &Senses::clock(""));
        assert_eq!(page.lane_of(4), Some(lane + 1));
        page.group(5).note(progress(2, 9));
        page.group(5)
            .appoint(2, (3, Stop::Lower), Path::new("/g"), 7);
        let again = Page::open_or_make(dir.path()).unwrap();
        assert_eq!(again.new_id(), 3);
        assert_eq!(again.lane_of(3), Some(lane));
        assert!(again.lane(lane).senses(3).unwrap().notice.is_none());
        let groups = again.groups();
        assert_eq!((groups.len(), groups[0].progress), (1, progress(2, 9)));
        std::fs::write(dir.path().join(NAME), "short").unwrap();
        let error = Page::open(dir.path()).unwrap_err();
        assert!(matches!(error, PageError::Foreign(_)), "{error}");
        let zeroes = vec![0; size_of::<Layout>()];
        std::fs::write(dir.path().join(NAME), zeroes).unwrap();
        let error = Page::open(dir.path()).unwrap_err();
        assert!(matches!(error, PageError::Foreign(_)), "{error}");
    }

    #[test]
    fn whoever_sets_classes_from_outside_sees_who_is_lowered() {
        let dir = place();
        let mut down = Down::of(dir.path(), Path::new("/g"));
        assert!(!down.is_now(), "there is no page");
        let page = Page::open_or_make(dir.path()).unwrap();
        page.set_keeper(std::process::id());
        page.group(5).note(progress(2, 9));
        page.group(5)
            .appoint(2, (3, Stop::Lower), Path::new("/g"), 7);
        let table = &page.group(5).lowered;
        let had = sys::Policy {
            number: libc::SCHED_RR,
            priority: 7,
            reset_on_fork: false,
        };
        table.remember(11, had);
        let back = || page.gets_back(Path::new("/g"), 11);
        assert!(!down.is_now() && back().is_none());
        table.begin();
        assert!(down.is_now());
        assert_eq!(back(), Some(Class::RoundRobin { priority: 7 }));
        assert_eq!(page.gets_back(Path::new("/g"), 12), None);
        assert!(!Down::of(dir.path(), Path::new("/other")).is_now());
        // Where all have ended, nobody would give anything back.
        page.set_keeper(0);
        assert!(!down.is_now());
        page.set_keeper(std::process::id());
        table.clear();
        assert!(!down.is_now() && back().is_none());
        // Another page in its place.
        page.remove(dir.path());
        table.begin();
        assert!(!down.is_now());
    }

    /// Which of the stores of [`Lane::settle`] were done, the last one or not.
    #[test]
    fn a_lane_whose_keeper_was_killed_while_settling_is_settled_again() {
        let dir = place();
        let page = Page::open_or_make(dir.path()).unwrap();
        let lane = page.lane(page.lane_of(3).unwrap());
        lane.settle(3, &Senses::clock(""));
        assert!(lane.senses(3).is_some());
        lane.cpu.store(0, Ordering::Release);
        // Whichever cpu comes next has that lane, and would be in none if it were not settled.
        for cpu in [3, 5] {
            assert!(std::ptr::eq(page.lane(page.lane_of(cpu).unwrap()), lane));
            assert!(lane.senses(cpu).is_none());
        }
    }

    #[test]
    fn a_dead_keepers_threads_are_not_expected_of_the_next_one() {
        let dir = place();
        let page = Page::open_or_make(dir.path()).unwrap();
        for cpu in [0, 1] {
            let lane = page.lane(page.lane_of(cpu).unwrap());
            lane.settle(cpu, &Senses::clock(""));
            lane.beat.begin();
            lane.beat.promise(sys::now_ns());
            lane.unlooked_ns[1].store(sys::now_ns(), Ordering::SeqCst);
        }
        page.group(0).note(progress(1, 9));
        page.group(0)
            .appoint(1, (1, Stop::Lower), Path::new("/g"), 7);
        let before_ns = sys::now_ns();
        page.forget_beats();
        let [free, used] = [0, 1].map(|cpu| page.lane(page.lane_of(cpu).unwrap()));
        let due_ns = used.beat.promised_ns() - before_ns;
        assert!(
            (BEGINNING_NS..2 * BEGINNING_NS).contains(&due_ns),
            "{due_ns}"
        );
        // Where no group is, no thread has to come.
        assert_eq!(free.beat.promised_ns(), NEVER);
        for lane in [free, used] {
            assert_eq!(lane.beat.tid.load(Ordering::SeqCst), 0);
            let unlooked = lane.unlooked_ns.iter().map(|ns| ns.load(Ordering::SeqCst));
            assert!(unlooked.into_iter().all(|ns| ns == NEVER));
        }
    }

    #[test]
    fn a_page_on_a_disk_is_refused() {
        // The build's own directory, which is on a disk on most machines; where it is not, there is nothing to refuse.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        let made = Page::open_or_make(dir.path());
        assert_eq!(made.is_ok(), in_memory(&file).unwrap(), "{made:?}");
    }

    /// Real processes, killed at instants that nobody chose.
    #[test]
    fn a_writer_that_is_killed_leaves_a_whole_page() {
        let dir = place();
        let page = Page::open_or_make(dir.path()).unwrap();
        for round in 0..200u32 {
            // SAFETY: the child writes to the shared mapping only, until it is killed.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            if pid == 0 {
                let record = page.group(0);
                for at in 1.. {
                    record.note(progress(1, at));
                    // On and off, so that either may be cut.
                    if at % 7 == 0 {
                        record.dismiss();
                    } else {
                        record.appoint(1, (1, Stop::Lower), Path::new("/a/group/with/a/path"), 7);
                    }
                }
            }
            std::thread::sleep(std::time::Duration::from_micros(u64::from(
                300 + round % 13,
            )));
            // SAFETY: our own child, not waited for yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
            if let Some(which) = page.group(0).which() {
                assert_eq!(which.path, Path::new("/a/group/with/a/path"));
                let found = page.group(0).progress().unwrap();
                assert_eq!(found, progress(1, found.state.left_ns));
            }
        }
    }
}
