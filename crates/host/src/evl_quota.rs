//! Quota groups of EVL that timecell made. The core keeps them until somebody removes them, and does not say whose they are, so that each
//! owner has a file in memory which remembers its own.

use std::io;
use std::path::{Path, PathBuf};

use ::evl::{EvlError, Group, Quotas};

pub use ::evl::{GROUPS, PARTITIONS, listed, percent};

use crate::ground;
use crate::lock::PLACE;
use crate::root::Root;

/// Begins the first line of such a file.
const BOOT: &str = "boot ";

fn own_boot() -> String {
    crate::process::boot_id().unwrap_or_default()
}

/// The longest such file, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Why groups or partitions cannot be made, or removed.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The core refuses.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// This kernel has none.
    #[error(transparent)]
    Kernel(#[from] crate::Error),
    /// A cpu has a schedule of time partitions that is not the owner's.
    #[error("cpu {0} has a schedule of time partitions that others have installed")]
    Foreign(u32),
    /// They cannot be remembered, or those that were are not told.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file that remembers them is damaged.
    #[error(
        "{}: line {line} tells of no groups or partitions; remove the file, and EVL keeps those that were in it until the next boot",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
    },
}

/// The groups, or the time partitions, of one cell: one on each of its cpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The cell.
    pub place: String,
    /// Of every period, percent, on each cpu; 0 for a time partition.
    pub percent: i32,
    /// Its groups, by cpu.
    pub groups: Vec<Group>,
}

impl Kept {
    fn line(&self) -> String {
        let groups = ::evl::listed(&self.groups);
        format!("{} {} {groups}\n", self.place, self.percent)
    }

    fn read(line: &str) -> Option<Kept> {
        let mut words = line.split(' ');
        Some(Kept {
            place: words.next()?.to_owned(),
            percent: words.next()?.parse().ok()?,
            groups: ::evl::groups(words.next()?).filter(|_| words.next().is_none())?,
        })
    }

    /// Whether the core still has all of them, with this quota.
    pub fn is_there(&self) -> bool {
        Quotas::open().is_ok_and(|quotas| self.is_in(&quotas))
    }

    fn is_in(&self, quotas: &Quotas) -> bool {
        let is = |group: &Group| {
            let quota = quotas.get(*group);
            quota.is_ok_and(|quota| quota.percent == self.percent)
        };
        self.groups.iter().all(is)
    }
}

/// The groups, or the time partitions, of one owner, such as a mission.
#[derive(Debug, Clone)]
pub struct Owned {
    file: PathBuf,
}

pub(crate) const QUOTAS: &str = "evl-quota";

fn place(kind: &str) -> PathBuf {
    Path::new(PLACE).join(kind)
}

/// All owners of which groups are remembered.
pub fn owners() -> Vec<String> {
    owners_of(QUOTAS)
}

pub(crate) fn owners_of(kind: &str) -> Vec<String> {
    let mut all = Root::live().names_in(place(kind));
    all.retain(|name| !name.ends_with(".new"));
    all
}

impl Owned {
    /// Those of the owner of this name, which is part of a path.
    pub fn by(owner: &str) -> Owned {
        Owned::of_kind(QUOTAS, owner)
    }

    pub(crate) fn of_kind(kind: &str, owner: &str) -> Owned {
        Owned {
            file: place(kind).join(owner),
        }
    }

    /// All that are remembered.
    ///
    /// # Errors
    /// If the file cannot be read, others may write to it, or it is damaged; then nothing is known of those in it.
    pub fn all(&self) -> Result<Vec<Kept>, QuotaError> {
        let path = || self.file.clone();
        let bytes = match ground::read(&self.file, MOST_BYTES) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|source| QuotaError::File {
                path: path(),
                source,
            })?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let damaged = |at: usize| QuotaError::Damaged {
            path: path(),
            line: at + 1,
        };
        let boot = lines.next().and_then(|line| line.strip_prefix(BOOT));
        if boot.ok_or_else(|| damaged(0))? != own_boot() {
            // They went with the boot that made them.
            return Ok(Vec::new());
        }
        let read = |(at, line)| Kept::read(line).ok_or_else(|| damaged(at + 1));
        lines.enumerate().map(read).collect()
    }

    /// Those of this cell.
    ///
    /// # Errors
    /// As [`Owned::all`].
    pub fn of(&self, place: &str) -> Result<Option<Kept>, QuotaError> {
        Ok(self.all()?.into_iter().find(|kept| kept.place == place))
    }

    pub(crate) fn remember(&self, all: &[Kept]) -> Result<(), QuotaError> {
        let error = |source| QuotaError::File {
            path: self.file.clone(),
            source,
        };
        if all.is_empty() {
            return crate::file::gone(std::fs::remove_file(&self.file)).map_err(error);
        }
        let dir = self.file.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(dir).map_err(error)?;
        let lines: String = all.iter().map(Kept::line).collect();
        let text = format!("{BOOT}{}\n{lines}", own_boot());
        let new = self.file.with_extension("new");
        ground::replace(&new, text.as_bytes())
            .and_then(|()| std::fs::rename(&new, &self.file))
            .map_err(error)
    }

    /// The groups of a cell with so much of every period on each of these cpus: those that are there, with their
    /// quota changed if it is another one, else new ones.
    ///
    /// # Errors
    /// If the core refuses, such as for a cpu whose quotas would be more than all of it, or threads are left in those on other cpus.
    pub fn make(&self, place: &str, cpus: &[u32], percent: i32) -> Result<Kept, QuotaError> {
        let quotas = Quotas::open()?;
        let suits = |kept: &Kept| {
            let own = kept.groups.iter().map(|group| group.cpu);
            own.eq(cpus.iter().copied()) && kept.is_in(&quotas)
        };
        match self.of(place)?.filter(suits) {
            Some(kept) if kept.percent == percent => return Ok(kept),
            Some(mut kept) => {
                let mut changed = kept.groups.iter();
                if let Err(why) = changed.try_for_each(|group| quotas.set(*group, percent)) {
                    for group in &kept.groups {
                        let _ = quotas.set(*group, kept.percent);
                    }
                    return Err(why.into());
                }
                kept.percent = percent;
                let others = self.all()?.into_iter();
                let mut all: Vec<Kept> = others.filter(|other| other.place != place).collect();
                all.push(kept.clone());
                self.remember(&all)?;
                return Ok(kept);
            }
            None => self.remove(place)?,
        }
        let mut all = self.all()?;
        let mut made = Kept {
            place: place.to_owned(),
            percent,
            groups: Vec::new(),
        };
        for cpu in cpus {
            // Each is remembered at once, so that none is forgotten by one that is killed.
            let added = quotas.add(*cpu, percent).map_err(QuotaError::from);
            let noted = added.and_then(|group| {
                made.groups.push(group);
                let with: Vec<Kept> = all.iter().chain([&made]).cloned().collect();
                self.remember(&with)
            });
            if let Err(why) = noted {
                if removed(&quotas, &made).is_ok() {
                    let _ = self.remember(&all);
                }
                return Err(why);
            }
        }
        all.push(made.clone());
        Ok(made)
    }

    /// Removes the groups of a cell.
    ///
    /// # Errors
    /// If threads are left in one, which stays, and is remembered, or as [`Owned::all`].
    pub fn remove(&self, place: &str) -> Result<(), QuotaError> {
        self.retain(|kept| kept.place != place)
    }

    /// Removes the groups of all cells but those that are kept.
    ///
    /// # Errors
    /// The first, of those that stay, or as [`Owned::all`].
    pub fn retain(&self, keeps: impl Fn(&Kept) -> bool) -> Result<(), QuotaError> {
        let all = self.all()?.into_iter();
        let (mut stay, go): (Vec<Kept>, Vec<Kept>) = all.partition(keeps);
        match (go.is_empty(), stay.is_empty()) {
            // The file may be there, of another boot.
            (true, true) => return self.remember(&[]),
            (true, false) => return Ok(()),
            _ => {}
        }
        let mut result = Ok(());
        let quotas = Quotas::open()?;
        for kept in go {
            if let Err(why) = removed(&quotas, &kept) {
                stay.push(kept);
                result = result.and(Err(why));
            }
        }
        self.remember(&stay).and(result)
    }
}

/// Removes groups; those that are gone already count as removed.
fn removed(quotas: &Quotas, kept: &Kept) -> Result<(), QuotaError> {
    let mut result = Ok(());
    for group in &kept.groups {
        if let Err(why) = quotas.remove(*group)
            && quotas.get(*group).is_ok()
        {
            result = result.and(Err(why.into()));
        }
    }
    result
}

/// A thread of EVL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its id for Linux.
    pub tid: i32,
    /// Its cpu.
    pub cpu: u32,
    /// Its policy, with the number of its group or partition, such as `quota 3`.
    pub policy: String,
    /// Its cpu time out of band, ns, which Linux does not see.
    pub cpu_ns: i64,
}

const THREADS: &str = "/sys/class/thread";

/// All threads of EVL among those with these ids.
pub fn threads(root: &Root, tids: &[i32]) -> Vec<Thread> {
    let names = root.names_in(THREADS).into_iter();
    names
        .filter_map(|name| {
            let read = |file: &str| root.read(format!("{THREADS}/{name}/{file}")).ok();
            let tid = read("pid")?.trim().parse().ok()?;
            if !tids.contains(&tid) {
                return None;
            }
            // Cpu, priority, priority for now, policy; switches in band, of context, calls, wakeups, time.
            let (sched, stats) = (read("sched")?, read("stats")?);
            let mut sched = sched.split_whitespace();
            let cpu = sched.next()?.parse().ok()?;
            let policy: Vec<&str> = sched.skip(2).collect();
            Some(Thread {
                tid,
                cpu,
                policy: policy.join(" "),
                cpu_ns: stats.split_whitespace().nth(4)?.parse().ok()?,
            })
        })
        .collect()
}

/// Those among these ids that are out of band outside these groups or partitions, of this policy, each as a clause.
pub fn outside(
    root: &Root,
    tids: &[i32],
    (policy, own): (&str, &[Group]),
    called: &str,
) -> Vec<String> {
    let is_in = |thread: &Thread| {
        let number = thread.policy.strip_prefix(policy);
        let number = number.and_then(|number| number.trim().parse().ok());
        number.is_some_and(|number| {
            own.contains(&Group {
                cpu: thread.cpu,
                number,
            })
        })
    };
    let all = threads(root, tids).into_iter();
    all.filter(|thread| !is_in(thread))
        .map(|thread| {
            format!(
                "its thread {} is out of band on cpu {} with policy `{}`, outside its {called}",
                thread.tid, thread.cpu, thread.policy
            )
        })
        .collect()
}

/// Cpu time out of band of the threads that there are now among these, ns; they are asked for only where there are threads of EVL.
pub fn out_of_band_ns(root: &Root, tids: impl FnOnce() -> Vec<i32>) -> i64 {
    match root.exists(THREADS) {
        true => threads(root, &tids()).iter().map(|one| one.cpu_ns).sum(),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn what_is_remembered_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let owned = Owned {
            file: dir.path().join("made/mission"),
        };
        let of = |place: &str, numbers: &[i32]| Kept {
            place: place.to_owned(),
            percent: 30,
            groups: (0..)
                .zip(numbers)
                .map(|(cpu, &number)| Group { cpu, number })
                .collect(),
        };
        let all = [of("pilot", &[7]), of("camera.b", &[8, 9])];
        owned.remember(&all).unwrap();
        assert_eq!(owned.all().unwrap(), all);
        assert_eq!(owned.of("camera.b").unwrap().as_ref(), Some(&all[1]));
        assert_eq!(owned.of("camera").unwrap(), None);
        owned.remember(&[]).unwrap();
        assert_eq!(owned.all().unwrap(), []);
        assert!(!owned.file.exists());
        assert!(owned.retain(|_| false).is_ok(), "nothing is asked of EVL");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_one_of_another_boot_goes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("timecell-mission-x");
        let owned = Owned { file: file.clone() };
        let own = format!("{BOOT}{}\n", own_boot());
        for (text, line) in [
            ("", 1),
            ("a 30 1:7\n", 1),
            (&*format!("{own}a 30 1:7\nb 30 1:"), 3),
            (&format!("{own}a 30\n"), 2),
            (&format!("{own}a 30 1:7 c\n"), 2),
        ] {
            std::fs::write(&file, text).unwrap();
            let why = owned.retain(|_| false).unwrap_err().to_string();
            let said =
                format!("timecell-mission-x: line {line} tells of no groups or partitions; remove");
            assert!(why.contains(&said), "{text:?}: {why}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        std::fs::write(&file, format!("{BOOT}before\na 30 1:7\n")).unwrap();
        assert_eq!(owned.all().unwrap(), []);
        owned.retain(|_| true).unwrap();
        assert!(!file.exists());
        std::fs::create_dir(&file).unwrap();
        let why = owned.all().unwrap_err().to_string();
        assert!(why.contains("timecell-mission-x: "), "{why}");
    }

    #[test]
    fn threads_of_the_core_are_found_by_their_ids() {
        let tree = Tree::new()
            .file("/sys/class/thread/cell.1/pid", "812\n")
            .file("/sys/class/thread/cell.1/sched", "1 80 80 quota 3\n")
            .file(
                "/sys/class/thread/cell.1/stats",
                "1 20 30 0 2997000000 299\n",
            )
            .file("/sys/class/thread/other/pid", "900\n")
            .file("/sys/class/thread/other/sched", "1 80 80 fifo\n")
            .file("/sys/class/thread/other/stats", "1 20 30 0 5 0\n");
        let found = threads(&tree.root(), &[811, 812]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].cpu, &*found[0].policy), (1, "quota 3"));
        let outside = |policy, cpu, number| {
            let own = [Group { cpu, number }];
            outside(&tree.root(), &[812], (policy, &own), "quota groups")
        };
        assert!(outside("quota", 1, 3).is_empty());
        for (policy, cpu, number) in [("quota", 1, 2), ("quota", 0, 3), ("tp", 1, 3)] {
            assert_eq!(
                outside(policy, cpu, number),
                [
                    "its thread 812 is out of band on cpu 1 with policy `quota 3`, outside its quota groups"
                ]
            );
        }
        assert_eq!(out_of_band_ns(&tree.root(), || vec![812]), 2_997_000_000);
        assert_eq!(out_of_band_ns(&Tree::new().root(), || unreachable!()), 0);
    }
}
