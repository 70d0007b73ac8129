//! The real-time classes that the threads of a cell lose while it is shed to best effort, and restoring them. The
//! enforcer releases the cell first and holds it again last, which may take seconds if it does not answer: that wait
//! happens elsewhere.

use std::fs;

use host::sched::{self, Class};

use crate::process::start_of;

/// The most passes over the threads of a cell that lose their class.
const MOST_PASSES: u32 = 10;
/// How often it is reported that threads of one cell have retaken a class: it must not fill the journal.
const TOLD: u32 = 20;
/// After this many looks in a row, 0.1 s apart, at which threads have retaken a class, the cell is stopped.
const MOST_LOOKS: u32 = 100;

const AGAIN_AND_AGAIN: &str = "its threads keep retaking a real-time class";

/// How often the threads of a shed cell have retaken a class.
#[derive(Debug, Clone, Copy, Default)]
struct Retaken {
    /// Looks that have found some.
    looks: u32,
    /// Those since the last one that has found none.
    in_a_row: u32,
}

impl Retaken {
    /// This many threads had one this time; returns the report. A cell that does not give up is an error, a clause.
    fn seen(&mut self, threads: usize) -> Result<Option<String>, String> {
        if threads == 0 {
            self.in_a_row = 0;
            return Ok(None);
        }
        self.looks = self.looks.saturating_add(1);
        self.in_a_row += 1;
        let what = format!(
            "{threads} of its threads retook a real-time class while shed, and lost it again"
        );
        match (self.in_a_row, self.looks) {
            (MOST_LOOKS.., _) => Err(AGAIN_AND_AGAIN.to_owned()),
            (_, ..TOLD) => Ok(Some(what)),
            (_, TOLD) => Ok(Some(format!("{what}; further cases are not reported"))),
            _ => Ok(None),
        }
    }
}

/// Whether a cell is held by its enforcer: one that is shed to best effort is released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Grip {
    #[default]
    Held,
    /// It is being released; then its threads lose their class.
    LettingGo,
    LetGo,
    /// It is being held again; then they get it back.
    Holding,
}

impl Grip {
    /// Whether that is changing, beside the loop.
    pub(super) fn changes(self) -> bool {
        matches!(self, Grip::LettingGo | Grip::Holding)
    }
}

/// The classes that the threads of a cell have lost for now.
#[derive(Debug, Default)]
pub(super) struct Classes {
    taken: Vec<WithoutClass>,
    retaken: Retaken,
}

impl Classes {
    /// Takes their real-time class from all threads of these processes, and remembers it. A thread that keeps it is an
    /// error, a clause.
    pub(super) fn take(&mut self, pids: impl Fn() -> Vec<i32>) -> Result<(), String> {
        // A thread that starts while the others are gone through has the class of the one that started it, and is found the next time.
        for _ in 0..MOST_PASSES {
            let had = without_class(&pids())?;
            if had.is_empty() {
                return Ok(());
            }
            note(&mut self.taken, had);
        }
        Err(AGAIN_AND_AGAIN.to_owned())
    }

    /// Takes it from those that have one again; returns the report. One pass, because the next look is soon; `lets_go`:
    /// the enforcer restores classes once more while it releases the cell, which is not the cell's doing.
    pub(super) fn take_again(
        &mut self,
        pids: &[i32],
        lets_go: bool,
    ) -> Result<Option<String>, String> {
        let had = without_class(pids)?;
        let threads = had.len();
        note(&mut self.taken, had);
        match lets_go {
            true => Ok(None),
            false => self.retaken.seen(threads),
        }
    }

    /// Each thread gets its class back.
    pub(super) fn give_back(&mut self) {
        for thread in std::mem::take(self).taken {
            thread.give_back();
        }
    }
}

/// A thread gets its last class back.
fn note(known: &mut Vec<WithoutClass>, had: Vec<WithoutClass>) {
    let is_same = |one: &WithoutClass, other: &WithoutClass| {
        (one.thread, one.start_ticks) == (other.thread, other.start_ticks)
    };
    known.retain(|one| !had.iter().any(|other| is_same(one, other)));
    known.extend(had);
}

/// A thread that has lost its class for now, and that class.
#[derive(Debug)]
struct WithoutClass {
    thread: i32,
    /// A later thread with its number is another one.
    start_ticks: u64,
    class: Class,
    resets_on_fork: bool,
}

impl WithoutClass {
    /// One that has ended needs none, and one that was given another class meanwhile keeps that.
    fn give_back(&self) {
        let is_it = start_of(self.thread) == Some(self.start_ticks);
        if !is_it || sched::get_class(self.thread) != Ok(Class::Other) {
            return;
        }
        // The kernel takes no thread of SCHED_DEADLINE that forks others of its class.
        let _ = match self.resets_on_fork || matches!(self.class, Class::Deadline { .. }) {
            true => sched::set_class_reset_on_fork(self.thread, &self.class),
            false => sched::set_class(self.thread, &self.class),
        };
    }
}

pub(super) fn threads(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    // A process that is gone has none.
    (tasks.into_iter().flatten().flatten())
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// Takes their real-time class from all threads of these processes; returns the classes. A thread that keeps it is an error, a
/// clause.
fn without_class(pids: &[i32]) -> Result<Vec<WithoutClass>, String> {
    let mut had = Vec::new();
    for thread in pids.iter().flat_map(|pid| threads(*pid)) {
        // A thread that has just ended needs no class.
        let (Some(start_ticks), Ok((class, resets_on_fork))) =
            (start_of(thread), sched::get_class_and_reset(thread))
        else {
            continue;
        };
        let left = match class {
            Class::Deadline { .. } => sched::bandwidth::leave(thread),
            _ if class.is_real_time() => sched::set_class(thread, &Class::Other),
            _ => continue,
        };
        match left {
            Ok(_) => had.push(WithoutClass {
                thread,
                start_ticks,
                class,
                resets_on_fork,
            }),
            Err(_) if start_of(thread) != Some(start_ticks) => {}
            Err(error) => return Err(format!("thread {thread} keeps its class: {error}")),
        }
    }
    Ok(had)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process of one thread of class FIFO; `None`: this one may not have such.
    fn child(resets_on_fork: bool) -> Option<(Child, i32)> {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let class = Class::Fifo { priority: 1 };
        let given = match resets_on_fork {
            true => sched::set_class_reset_on_fork(pid, &class),
            false => sched::set_class(pid, &class),
        };
        if given.is_err() {
            end(&mut child);
            return None;
        }
        Some((child, pid))
    }

    fn end(child: &mut Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_class_comes_back_as_it_was() {
        for resets in [false, true] {
            let Some((mut child, pid)) = child(resets) else {
                return;
            };
            let had = without_class(&[pid]).unwrap();
            assert_eq!(sched::get_class(pid), Ok(Class::Other));
            assert!(without_class(&[pid]).unwrap().is_empty());
            had[0].give_back();
            let class = Class::Fifo { priority: 1 };
            assert_eq!(sched::get_class_and_reset(pid), Ok((class, resets)));
            // A class that others have given it meanwhile is theirs.
            let had = without_class(&[pid]).unwrap();
            sched::set_class(pid, &Class::Batch).unwrap();
            had[0].give_back();
            assert_eq!(sched::get_class(pid), Ok(Class::Batch));
            end(&mut child);
        }
    }

    #[test]
    fn a_number_that_another_thread_has_by_now_gets_no_class() {
        let Some((mut child, pid)) = child(false) else {
            return;
        };
        let mut had = without_class(&[pid]).unwrap();
        had[0].start_ticks -= 1;
        had[0].give_back();
        assert_eq!(sched::get_class(pid), Ok(Class::Other));
        end(&mut child);
    }

    #[test]
    fn a_thread_that_keeps_its_class_is_told() {
        let Some((mut child, pid)) = child(false) else {
            return;
        };
        // A thread that is not root's may not take it from one that is.
        let refused = std::thread::spawn(move || {
            // SAFETY: no memory is involved; the call itself is of one thread, other than the C library's.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) };
            (changed == 0).then(|| without_class(&[pid]))
        });
        if let Some(refused) = refused.join().unwrap() {
            let why = refused.unwrap_err();
            assert!(
                why.contains(&format!("thread {pid} keeps its class")),
                "{why}"
            );
        }
        end(&mut child);
    }

    #[test]
    fn a_cell_that_takes_its_class_again_is_told_of_so_often_and_stopped_in_the_end() {
        let mut retaken = Retaken::default();
        let told = |retaken: &mut Retaken, looks: u32| {
            let all = (0..looks).map(|_| retaken.seen(2).unwrap());
            all.flatten().collect::<Vec<String>>()
        };
        let first = told(&mut retaken, MOST_LOOKS - 1);
        assert_eq!(first.len(), 20);
        assert!(first[18].ends_with("lost it again"), "{}", first[18]);
        assert!(
            first[19].ends_with("further cases are not reported"),
            "{}",
            first[19]
        );
        // A cell that has stopped for a while gets its tries again, and is no longer reported.
        assert_eq!(retaken.seen(0), Ok(None));
        assert!(told(&mut retaken, MOST_LOOKS - 1).is_empty());
        assert!(retaken.seen(1).unwrap_err().contains("keep retaking"));
    }

    #[test]
    fn a_thread_gets_back_what_it_had_last() {
        let had = |thread: i32, start_ticks: u64, priority: u8| WithoutClass {
            thread,
            start_ticks,
            class: Class::Fifo { priority },
            resets_on_fork: false,
        };
        let mut known = vec![had(1, 5, 10), had(2, 6, 10)];
        note(&mut known, vec![had(2, 6, 20), had(1, 7, 20)]);
        let known: Vec<_> = known
            .iter()
            .map(|one| (one.thread, one.class.clone()))
            .collect();
        let class = |priority| Class::Fifo { priority };
        assert_eq!(known, [(1, class(10)), (2, class(20)), (1, class(20))]);
    }
}
