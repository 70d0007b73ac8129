//! Sees changes by others to a held thing: the cpuset around it, and its threads' cpus, class and group. The heir of the
//! processes that hold it looks once a second from a thread of ordinary priority, and at once when the kernel tells of a
//! write to a cpuset.
//!
//! A setting by timecell is put back once. Changed again within a minute, or where it is not timecell's to give (a cpuset, the group
//! of a container or a unit) or is refused, the hold is broken: that is in the ledger, nothing is put back any more, and the budget
//! is held as well as that goes. Threads that come from outside, as `exec` starts them, are kept to the cpu as well, and are no
//! change.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freezer::page::{Down, Page};
use host::cgroup;
use host::root::Root;
use host::sched::{self, Class};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use super::cpuset::Cpuset;
use super::file::{PutBack, Record, Records};
use super::tidy::holder;
use super::{HeldError, group, place, threads};
use crate::ledger::{Broken, Ledger, LedgerError, Locked};
use crate::process::start_of;
use crate::stamp::Stamp;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Changed again so soon after it was put back, the hold is broken, ns.
const AGAIN_NS: i64 = 60_000_000_000;

/// Looks for as long as this process lives, if the processes of `dir` hold things that already ran.
pub fn watch(dir: &Path) {
    // Nothing depends on it in time, and it is not to keep anything from running.
    if dir != place().dir() || sched::set_class(0, &Class::Other).is_err() {
        return;
    }
    let writes = Writes::open();
    let mut known = Known::default();
    let mut read = None;
    loop {
        // The state to restore of many threads is long, and seldom changes.
        let version = Records::version();
        match &read {
            Some((of, _)) if *of == version => {}
            _ => read = Records::read().ok().map(|records| (version, records)),
        }
        if let Some((_, records)) = &read {
            // A look that fails is tried again.
            let _ = look(records, &Ledger::default(), &mut known);
            let cpusets = records.all.iter().filter_map(|held| held.back.cpuset());
            cpusets.for_each(|cpuset| writes.add(cpuset.file()));
        }
        writes.wait();
    }
}

/// The kernel's notices of writes to files; `None`: it gives none.
struct Writes(Option<OwnedFd>);

impl Writes {
    fn open() -> Writes {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Writes(inotify::init(flags).ok())
    }

    /// Of this file, too.
    fn add(&self, file: &Path) {
        if let Some(fd) = &self.0 {
            // One that is not there yet is added by a later look.
            let _ = inotify::add_watch(fd, file, inotify::WatchFlags::MODIFY);
        }
    }

    /// Until the next look, or a write to one of the files.
    fn wait(&self) {
        let Some(fd) = &self.0 else {
            return std::thread::sleep(LOOK);
        };
        let timeout = Timespec::try_from(LOOK).ok();
        let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], timeout.as_ref());
        let _ = rustix::io::read(fd, &mut [0u8; 4096]);
    }
}

/// A look at all that is held.
fn look(records: &Records, ledger: &Ledger, known: &mut Known) -> Result<(), HeldError> {
    known.forget_others(records);
    let mut is_fine = true;
    for record in records.all.iter().filter(|record| is_watched(record)) {
        is_fine &= known.found(record).is_fine();
    }
    if !is_fine {
        // A process that holds or releases something at this moment is not disturbed: there is another look.
        mend(&ledger.try_lock()?, known)?;
    }
    Ok(())
}

fn is_watched(record: &Record) -> bool {
    record.begun && record.broken.is_none() && record.thing.runs()
}

/// Puts back changes by others, or declares it broken.
fn mend(locked: &Locked, known: &mut Known) -> Result<(), HeldError> {
    let mut records = Records::read()?;
    let mut is_noted = false;
    for record in records.all.iter_mut().filter(|record| is_watched(record)) {
        let found = known.found(record);
        if found.is_fine() {
            continue;
        }
        match put_right(record, &found) {
            Ok(None) => {}
            Ok(Some(what)) => {
                let now = Stamp::now();
                let (at_utc, at_ns) = (now.utc(), now.monotonic_ns);
                record.put_back = Some(PutBack {
                    at_utc,
                    at_ns,
                    what,
                });
                is_noted = true;
            }
            Err(why) => {
                enter(record, why, locked)?;
                is_noted = true;
            }
        }
    }
    match is_noted {
        true => records.write(),
        false => Ok(()),
    }
}

/// Enters it as broken.
fn enter(record: &mut Record, why: String, locked: &Locked) -> Result<(), LedgerError> {
    let broken = Broken {
        since_utc: Stamp::now().utc(),
        why,
    };
    if let Some(mut entry) = locked.own(&holder(record))? {
        entry.broken = Some(broken.clone());
        locked.put(entry)?;
    }
    record.broken = Some(broken);
    Ok(())
}

/// Puts back settings that are timecell's to give, and tells the change, a clause; `None`: nothing, or not now.
///
/// # Errors
/// Why it is broken, a clause.
fn put_right(record: &Record, found: &Found) -> Result<Option<String>, String> {
    if let Some(theirs) = &found.theirs {
        return Err(theirs.clone());
    }
    let parts = record.parts();
    let confine = || {
        group::divide(&parts)?;
        let mut parts = parts.iter();
        (parts.try_for_each(|part| threads::confine(*part))).map_err(|reason| HeldError::Threads {
            what: record.thing.to_string(),
            reason,
        })
    };
    let Some(first) = found.changes.first() else {
        // Where the kernel refuses it, it is listed as one that runs elsewhere.
        let _ = confine();
        return Ok(None);
    };
    let what = match found.changes.len() - 1 {
        0 => first.to_string(),
        more => format!("{first}, and so on in {more} more"),
    };
    let has = |is: fn(&Change) -> bool| found.changes.iter().any(is);
    if has(|change| matches!(change, Change::Left(_))) && record.thing.taken_from.is_none() {
        return Err(what);
    }
    let (place, now_ns) = (place(), timecell_client::now_ns());
    let mut downs = parts.iter().map(|(group, _)| Down::of(place.dir(), group));
    // A class that is given to a lowered thread would be an escape.
    if has(|change| matches!(change, Change::Class(..))) && downs.any(|mut down| down.is_now()) {
        return Ok(None);
    }
    let last = record.put_back.as_ref();
    if let Some(last) = last.filter(|last| now_ns - last.at_ns < AGAIN_NS) {
        return Err(format!(
            "{what}, less than a minute after {} and put back",
            last.what
        ));
    }
    let put = || -> Result<(), HeldError> {
        for change in &found.changes {
            match change {
                Change::Left(tid) => {
                    let status = host::process::status(*tid);
                    let pid = host::process::value(&status, "Tgid");
                    if let Some(pid) = pid.and_then(|pid| pid.parse().ok()) {
                        group::enter(&record.thing.group, pid)?;
                    }
                }
                Change::Class(tid, _) => {
                    if let Some(class) = &record.class {
                        let given = sched::set_class(*tid, class);
                        given.or_else(|reason| match start_of(*tid) {
                            None => Ok(()),
                            Some(_) => Err(HeldError::Threads {
                                what: record.thing.to_string(),
                                reason,
                            }),
                        })?;
                    }
                }
                Change::Cpus(..) => {}
            }
        }
        confine()
    };
    match put() {
        Ok(()) => Ok(Some(what)),
        Err(error) => Err(format!("{what}, which could not be put back: {error}")),
    }
}

/// A change of a thread by others, or by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Cpus(i32, Vec<u32>),
    Class(i32, Class),
    Left(i32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Cpus(tid, cpus) => {
                let cpus = host::cpus::format_list(cpus);
                write!(f, "the affinity of thread {tid} was changed to cpu {cpus}")
            }
            Change::Class(tid, class) => {
                write!(f, "the class of thread {tid} was changed to {class}")
            }
            Change::Left(tid) => write!(f, "thread {tid} was moved out of its control group"),
        }
    }
}

/// How a look has found something.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// A change that is not timecell's to put back, a clause.
    theirs: Option<String>,
    changes: Vec<Change>,
    /// Whether there are threads from outside that are not kept to a cpu yet.
    has_newcomers: bool,
}

impl Found {
    fn is_fine(&self) -> bool {
        *self == Found::default()
    }
}

/// A thread that was seen as it was put.
#[derive(Debug, Clone, Copy)]
struct Kept {
    start_ticks: u64,
    /// Whether it had the class, too.
    has_class: bool,
}

/// The threads that were seen as they were put, of a thing held in a group since then, CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
struct Known(HashMap<(PathBuf, i64), HashMap<i32, Kept>>);

impl Known {
    fn key(record: &Record) -> (PathBuf, i64) {
        (record.thing.group.clone(), record.since_ns)
    }

    fn forget_others(&mut self, records: &Records) {
        let held: HashSet<_> = records.all.iter().map(Known::key).collect();
        self.0.retain(|key, _| held.contains(key));
    }

    /// How it is now.
    fn found(&mut self, record: &Record) -> Found {
        let mut found = Found::default();
        if let Some(theirs) = record.back.cpuset().and_then(Cpuset::theirs) {
            found.theirs = Some(theirs.to_string());
            return found;
        }
        let class = record.class.clone();
        let of_first = || {
            let noted = record.back.living().into_iter();
            let kept = |tid: i32| {
                let start_ticks = start_of(tid)?;
                let has_class = true;
                Some((
                    tid,
                    Kept {
                        start_ticks,
                        has_class,
                    },
                ))
            };
            noted.filter_map(kept).collect()
        };
        let known = self.0.entry(Known::key(record)).or_insert_with(of_first);
        let mut there = HashSet::new();
        for (group, cpu) in record.parts() {
            for tid in group::threads(group) {
                there.insert(tid);
                let Ok(cpus) = sched::get_affinity(tid) else {
                    continue;
                };
                let is_there = cpus == [cpu];
                let other = class
                    .as_ref()
                    .and_then(|class| other_class(group, tid, class));
                let has_class = other.is_none();
                let before = known.get(&tid).copied();
                if is_there && before.is_some_and(|kept| kept.has_class == has_class) {
                    continue;
                }
                let Some(start_ticks) = start_of(tid) else {
                    continue;
                };
                let before = before.filter(|kept| kept.start_ticks == start_ticks);
                match before {
                    None if !is_there => {
                        found.has_newcomers = true;
                        continue;
                    }
                    Some(_) if !is_there => found.changes.push(Change::Cpus(tid, cpus)),
                    _ => {}
                }
                let had_class = before.is_some_and(|kept| kept.has_class);
                if let Some(other) = other.filter(|_| had_class) {
                    found.changes.push(Change::Class(tid, other));
                }
                let has_class = has_class || had_class;
                known.insert(
                    tid,
                    Kept {
                        start_ticks,
                        has_class,
                    },
                );
            }
        }
        // Of one that is divided, those in no part.
        if let [(first, _), _, ..] = record.parts()[..] {
            let around = first.parent().unwrap_or(first);
            let left = cgroup::listed(around, "cgroup.threads");
            found.has_newcomers |= !left.is_empty();
            there.extend(left);
        }
        known.retain(|tid, kept| there.contains(tid) || start_of(*tid) == Some(kept.start_ticks));
        let gone: Vec<i32> = known
            .keys()
            .filter(|tid| !there.contains(tid))
            .copied()
            .collect();
        if !gone.is_empty()
            && let Ok(cgroups) = cgroup::detect()
        {
            // One that has ended and was not waited for yet is still in the group.
            let is_outside = |tid: &i32| {
                let own = cgroups.v2_group(&Root::live(), *tid);
                own.is_some_and(|own| !own.starts_with(&record.thing.group))
            };
            let left = gone.into_iter().filter(is_outside);
            found.changes.extend(left.map(Change::Left));
        }
        found
    }
}

/// The class that a thread has in place of this one; a lowered thread has it again with its next budget.
fn other_class(group: &Path, tid: i32, class: &Class) -> Option<Class> {
    let now = || sched::get_class(tid).ok().filter(|now| now != class);
    now()?;
    let page = Page::open(place().dir()).ok().flatten();
    let gets_back = page.and_then(|page| page.gets_back(group, tid));
    match gets_back {
        Some(gets) if gets == *class => None,
        // It may have it again by now.
        _ => now(),
    }
}
