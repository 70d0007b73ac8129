//! The affinities of tasks, preserved through changes of cpusets. When the cpus of a group change, kernels before 6.2 bind every task in
//! it to all of them and forget the affinity that the task had asked for; later ones do so only to affinities that the kernel itself has
//! set. So affinities are written down before the first change, and kept until the last partition is gone.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::process;
use crate::cgroup;
use crate::cpus::{format_list, parse_list};
use crate::root::Root;
use crate::sched;

/// A task: its id, and when it began, in clock ticks since boot.
type Id = (i32, u64);

/// The cpus that a task may use at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// It.
    cpus: Vec<u32>,
    /// Its group, so that it is bound to nothing where both are the same.
    open: Vec<u32>,
}

impl Seen {
    fn is_bound(&self) -> bool {
        !self.open.iter().all(|cpu| self.cpus.contains(cpu))
    }
}

/// Which cpus each task may use at a moment.
#[derive(Debug, Default)]
pub(super) struct Affinities(HashMap<Id, Seen>);

impl Affinities {
    /// Those of the machine; of a made-up one there are none.
    pub(super) fn now(root: &Root) -> Affinities {
        let cgroups = cgroup::detect_at(root).ok().filter(|_| root.is_live());
        let Some(cgroups) = cgroups.filter(|found| found.v2.is_some()) else {
            return Affinities::default();
        };
        let mut open: HashMap<PathBuf, Vec<u32>> = HashMap::new();
        let seen = process::all().into_iter().filter_map(|task| {
            let group = cgroups.v2_group(root, task.tid)?;
            let open = (open.entry(group)).or_insert_with_key(|group| effective(root, group));
            let cpus = sched::get_affinity(task.tid).ok()?;
            let open = open.clone();
            Some(((task.tid, task.start), Seen { cpus, open }))
        });
        Affinities(seen.collect())
    }
}

/// The cpus that a group has: those of the next one above where it has no cpuset of its own.
fn effective(root: &Root, group: &Path) -> Vec<u32> {
    let file = (group.ancestors()).map(|dir| dir.join("cpuset.cpus.effective"));
    let text = file.into_iter().find_map(|file| root.read(file).ok());
    parse_list(&text.unwrap_or_default()).unwrap_or_default()
}

/// The noted affinity of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Noted {
    /// Its cpus before any were taken from it.
    was: Vec<u32>,
    /// Its cpus after the last change: with any others it has bound itself since. `None` while a change is under way.
    left: Option<Vec<u32>>,
}

/// The affinities of tasks from before there were partitions, one note for all of them.
#[derive(Debug, Default)]
pub(super) struct Note(HashMap<Id, Noted>);

impl Note {
    /// The written note; empty where there is none.
    pub(super) fn read(file: &Path) -> Note {
        let text = crate::file::text(file).unwrap_or_default();
        Note(text.lines().filter_map(parse).collect())
    }

    /// Writes it down for the processes after this one, even if it is killed.
    ///
    /// # Errors
    /// The system's error; the old note is there then.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(dir) = file.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let new = file.with_extension("new");
        let text: String = self.0.iter().map(line).collect();
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&new)
            .and_then(|mut opened| opened.write_all(text.as_bytes()))?;
        std::fs::rename(new, file)
    }

    /// Whether the last process to change cpusets was killed over it.
    pub(super) fn is_open(&self) -> bool {
        self.0.values().any(|noted| noted.left.is_none())
    }

    /// Before cpusets change: notes the affinities of tasks, from the known and the present ones. Of one that could not be closed, the known
    /// one counts: its present one can be the remains that the change has left it.
    pub(super) fn open(&mut self, before: &Affinities) {
        let tasks = before.0.iter().filter_map(|(id, seen)| {
            let was = match self.0.get(id) {
                Some(noted) if noted.left.as_ref().is_none_or(|left| *left == seen.cpus) => {
                    noted.was.clone()
                }
                _ if seen.is_bound() => seen.cpus.clone(),
                _ => return None,
            };
            Some((*id, Noted { was, left: None }))
        });
        self.0 = tasks.collect();
    }

    /// After cpusets have changed: has each task that the kernel has bound to all there is bound (`bind`) to those of its old cpus that
    /// are there. One that lost all stays where the kernel has put it, and so does one that the kernel has bound to anything else: it
    /// remembers the requested cpus, which may be more than could be seen.
    pub(super) fn close(&mut self, after: &Affinities, mut bind: impl FnMut(i32, &[u32]) -> bool) {
        self.0.retain(|id, _| after.0.contains_key(id));
        for (id, noted) in &mut self.0 {
            let seen = &after.0[id];
            let wanted = both(&noted.was, &seen.open);
            let forgotten = !seen.is_bound() && !wanted.is_empty() && wanted != seen.cpus;
            noted.left = Some(match forgotten && bind(id.0, &wanted) {
                true => wanted,
                false => seen.cpus.clone(),
            });
        }
    }
}

/// Binds a task; false for one that has ended, and one of the kernel's that may not be moved.
pub(super) fn bind(tid: i32, cpus: &[u32]) -> bool {
    sched::set_affinity(tid, cpus).is_ok()
}

fn both(some: &[u32], others: &[u32]) -> Vec<u32> {
    let mut both = some.to_vec();
    both.retain(|cpu| others.contains(cpu));
    both
}

fn line(((tid, start), noted): (&Id, &Noted)) -> String {
    let was = format_list(&noted.was);
    match &noted.left {
        Some(left) => format!("{tid} {start} {was} {}\n", format_list(left)),
        None => format!("{tid} {start} {was}\n"),
    }
}

fn parse(line: &str) -> Option<(Id, Noted)> {
    let mut words = line.split(' ');
    let id = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let was = parse_list(words.next()?).ok()?;
    let left = match words.next() {
        Some(left) => Some(parse_list(left).ok()?),
        None => None,
    };
    Some((id, Noted { was, left }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CPUS: [u32; 4] = [0, 1, 2, 3];

    /// The kernel's treatment of tasks of the group at the top when partitions come and go, as cpuset.c and sched/core.c have
    /// it. The real one is asked by tests/guest.
    struct Kernel {
        /// From 6.2 on.
        remembers: bool,
        taken: Vec<u32>,
        /// Each with its requested cpus.
        tasks: HashMap<Id, (Vec<u32>, Vec<u32>)>,
    }

    impl Kernel {
        fn new(remembers: bool) -> Kernel {
            Kernel {
                remembers,
                taken: Vec::new(),
                tasks: HashMap::new(),
            }
        }

        fn open(&self) -> Vec<u32> {
            super::super::others(&CPUS, &self.taken)
        }

        fn bind(&mut self, tid: i32, asked: &[u32]) {
            let cpus = both(asked, &self.open());
            assert!(!cpus.is_empty(), "EINVAL");
            self.tasks.insert((tid, 9), (asked.to_vec(), cpus));
        }

        fn change(&mut self, taken: &[u32]) {
            self.taken = taken.to_vec();
            let open = self.open();
            for (asked, cpus) in self.tasks.values_mut() {
                let left = both(asked, &open);
                let kept = self.remembers && !left.is_empty();
                *cpus = if kept { left } else { open.clone() };
            }
        }

        fn seen(&self) -> Affinities {
            let tasks = self.tasks.iter().map(|(id, (_, cpus))| {
                let (cpus, open) = (cpus.clone(), self.open());
                (*id, Seen { cpus, open })
            });
            Affinities(tasks.collect())
        }

        fn cpus(&self, tid: i32) -> &[u32] {
            &self.tasks[&(tid, 9)].1
        }

        /// The effect of a partition's coming or going. `killed`: by a process that is killed in the middle of it.
        fn partitions(&mut self, note: &mut Note, taken: &[u32], killed: bool) {
            note.open(&self.seen());
            self.change(taken);
            if killed {
                let lines: Vec<String> = note.0.iter().map(line).collect();
                *note = Note(lines.iter().filter_map(|line| parse(line.trim())).collect());
                assert!(note.is_open() || note.0.is_empty());
            }
            note.close(&self.seen(), |tid, cpus| {
                self.bind(tid, cpus);
                true
            });
            assert!(!note.is_open());
        }
    }

    #[test]
    fn whoever_was_bound_to_a_cpu_that_was_taken_is_bound_to_it_again() {
        for remembers in [false, true] {
            let (mut kernel, mut note) = (Kernel::new(remembers), Note::default());
            kernel.bind(1, &[3]);
            kernel.bind(2, &[3]);
            kernel.bind(3, &CPUS);
            kernel.bind(4, &[1, 3]);
            kernel.partitions(&mut note, &[3], false);
            assert_eq!(kernel.cpus(1), [0, 1, 2]);
            assert_eq!(kernel.cpus(4), [1]);
            // One has chosen for itself meanwhile.
            kernel.bind(2, &[0]);
            kernel.partitions(&mut note, &[], false);
            let now = [1, 2, 3, 4].map(|tid| kernel.cpus(tid));
            assert_eq!(now, [&[3][..], &[0], &CPUS, &[1, 3]], "{remembers}");
        }
    }

    #[test]
    fn who_began_meanwhile_keeps_what_the_kernel_remembers_of_it() {
        for remembers in [false, true] {
            let (mut kernel, mut note) = (Kernel::new(remembers), Note::default());
            kernel.partitions(&mut note, &[1], false);
            kernel.bind(5, &[1, 3]);
            assert_eq!(kernel.cpus(5), [3]);
            kernel.partitions(&mut note, &[], false);
            // An older kernel forgets both that it asked for cpu 1, and that it did not ask for others.
            let expected = if remembers { &[1, 3][..] } else { &[3] };
            assert_eq!(kernel.cpus(5), expected);
        }
    }

    #[test]
    fn whoever_is_bound_to_cpus_of_two_partitions_gets_both_back() {
        for remembers in [false, true] {
            for last in [1, 2] {
                let (mut kernel, mut note) = (Kernel::new(remembers), Note::default());
                kernel.bind(1, &[1, 2]);
                kernel.bind(2, &[0, 1]);
                kernel.bind(3, &[0, 2, 3]);
                kernel.partitions(&mut note, &[1], false);
                kernel.partitions(&mut note, &[1, 2], false);
                assert_eq!(kernel.cpus(1), [0, 3]);
                kernel.partitions(&mut note, &[last], false);
                assert_eq!(kernel.cpus(1), [3 - last]);
                kernel.partitions(&mut note, &[], false);
                let now = [1, 2, 3].map(|tid| kernel.cpus(tid));
                assert_eq!(now, [&[1, 2][..], &[0, 1], &[0, 2, 3]], "{remembers}");
            }
        }
    }

    #[test]
    fn what_was_known_counts_where_a_note_could_not_be_closed() {
        for remembers in [false, true] {
            let (mut kernel, mut note) = (Kernel::new(remembers), Note::default());
            kernel.bind(1, &[1, 3]);
            kernel.bind(2, &[3]);
            note.open(&kernel.seen());
            kernel.change(&[3]);
            // The outcome there could not be written down.
            let open = Note(note.0.clone());
            note.close(&kernel.seen(), |tid, cpus| {
                kernel.bind(tid, cpus);
                true
            });
            let mut note = open;
            kernel.partitions(&mut note, &[2, 3], false);
            kernel.partitions(&mut note, &[], false);
            assert_eq!(kernel.cpus(1), [1, 3], "{remembers}");
            assert_eq!(kernel.cpus(2), [3], "{remembers}");
        }
    }

    #[test]
    fn a_group_that_has_less_binds_nobody() {
        let narrow = |cpus: &[u32]| Seen {
            cpus: cpus.to_vec(),
            open: vec![1, 3],
        };
        let before = Affinities([((1, 9), narrow(&[1, 3])), ((2, 9), narrow(&[3]))].into());
        let mut note = Note::default();
        note.open(&before);
        assert_eq!(note.0.keys().collect::<Vec<_>>(), [&(2, 9)]);
        // As an older kernel gives it back: to all that its group has.
        let after = Affinities([((1, 9), narrow(&[1, 3])), ((2, 9), narrow(&[1, 3]))].into());
        let mut bound = Vec::new();
        note.close(&after, |tid, cpus| {
            bound.push((tid, cpus.to_vec()));
            true
        });
        assert_eq!(bound, [(2, vec![3])]);
    }

    #[test]
    fn a_task_that_is_there_is_seen_with_its_cpus() {
        let seen = Affinities::now(&Root::live());
        let own = std::process::id().cast_signed();
        let found = seen.0.iter().find(|((tid, _), _)| *tid == own);
        if cgroup::detect().unwrap().v2.is_some() {
            let (_, found) = found.unwrap();
            assert_eq!(found.cpus, sched::get_affinity(own).unwrap());
        } else {
            assert_eq!(found, None);
        }
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("made/note");
        let noted = |was: &[u32], left: Option<&[u32]>| Noted {
            was: was.to_vec(),
            left: left.map(<[u32]>::to_vec),
        };
        let tasks = [
            ((7, 99), noted(&[0, 1, 5], None)),
            ((8, 100), noted(&[1], Some(&[0, 2]))),
        ];
        let note = Note(tasks.into());
        note.write(&file).unwrap();
        let read = Note::read(&file);
        assert_eq!(read.0, note.0);
        assert!(read.is_open());
        // Anew in place of the old.
        Note::default().write(&file).unwrap();
        assert!(Note::read(&file).0.is_empty());
        assert!(Note::read(&dir.path().join("other")).0.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes_all_are_bound_as_they_were(
            remembers in any::<bool>(),
            asked in prop::collection::vec(prop::sample::subsequence(CPUS.to_vec(), 1..=4), 1..6),
            changes in prop::collection::vec(
                (prop::sample::subsequence(CPUS.to_vec(), 0..=3), any::<bool>()), 1..6),
        ) {
            let (mut kernel, mut note) = (Kernel::new(remembers), Note::default());
            for (tid, asked) in (1..).zip(&asked) {
                kernel.bind(tid, asked);
            }
            for (taken, killed) in &changes {
                kernel.partitions(&mut note, taken, *killed);
                for (tid, asked) in (1..).zip(&asked) {
                    let left = both(asked, &kernel.open());
                    let expected = if left.is_empty() { kernel.open() } else { left };
                    prop_assert_eq!(kernel.cpus(tid), expected);
                }
            }
            kernel.partitions(&mut note, &[], false);
            for (tid, asked) in (1..).zip(&asked) {
                prop_assert_eq!(kernel.cpus(tid), &asked[..]);
            }
        }

        #[test]
        fn no_line_panics(line in "[0-9 ,x-]{0,30}") {
            let _ = parse(&line);
        }
    }
}
