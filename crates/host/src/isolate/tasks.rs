//! Affinities of tasks: off the cpus, and back.

use std::collections::HashMap;

use super::found::{IsolateError, Isolated, others};
use super::journal::{Change, Journal};
use super::process::{self, Task};
use crate::{out_of_band, sched};

/// Looks at all tasks until none has come since the look before, at most so often: tasks that start between two
/// looks inherit the affinity of their parent, which may not have been moved yet.
const LOOKS: usize = 6;

/// Names kept of one kind of task.
const NAMES: usize = 24;

/// The journal's knowledge of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    start: u64,
    /// Before and after; `None`: it was left as it was.
    moved: Option<(Vec<u32>, Vec<u32>)>,
}

impl Known {
    pub(super) fn moved(start: u64, was: Vec<u32>, set: Vec<u32>) -> Known {
        Known {
            start,
            moved: Some((was, set)),
        }
    }

    pub(super) fn kept(start: u64) -> Known {
        Known { start, moved: None }
    }
}

pub(super) fn move_away(journal: &mut Journal, found: &mut Isolated) -> Result<(), IsolateError> {
    move_these(journal, found, process::all)
}

fn move_these(
    journal: &mut Journal,
    found: &mut Isolated,
    list: impl Fn() -> Vec<Task>,
) -> Result<(), IsolateError> {
    let mut seen: HashMap<i32, u64> = HashMap::new();
    for _ in 0..LOOKS {
        let attached = out_of_band::threads();
        let new: Vec<(Task, Vec<u32>)> = list()
            .into_iter()
            .filter(|task| seen.get(&task.tid) != Some(&task.start))
            .filter(|task| !attached.contains(&task.tid))
            .filter_map(|task| {
                let was = sched::get_affinity(task.tid).ok()?;
                Some((task, was))
            })
            .collect();
        if new.is_empty() {
            break;
        }
        let changes: Vec<Change> = new
            .iter()
            .map(|(task, was)| match target(was, found) {
                Some(set) => Change::Task {
                    tid: task.tid,
                    start: task.start,
                    was: was.clone(),
                    set,
                },
                None => Change::Kept {
                    tid: task.tid,
                    start: task.start,
                },
            })
            .collect();
        journal.note_all(&changes)?;
        for ((task, _), change) in new.iter().zip(changes) {
            seen.insert(task.tid, task.start);
            if let Change::Task { set, .. } = change {
                count(task, sched::set_affinity(task.tid, &set), found);
            }
        }
    }
    Ok(())
}

/// Where a task goes that may use `was`; `None` if it is off the cpus already.
fn target(was: &[u32], found: &Isolated) -> Option<Vec<u32>> {
    if !was.iter().any(|cpu| found.cpus.contains(cpu)) {
        return None;
    }
    let left = others(was, &found.cpus);
    Some(if left.is_empty() {
        found.rest.clone()
    } else {
        left
    })
}

fn count(task: &Task, moved: Result<(), sched::SchedError>, found: &mut Isolated) {
    match moved {
        Ok(()) => found.tasks_moved += 1,
        Err(sched::SchedError::NoSuchProcess { .. }) => {}
        Err(_) if task.kernel => {
            found.kernel_threads_left += 1;
            named(&mut found.kernel_threads, task.name.clone());
        }
        Err(error) => {
            let reason = match error {
                sched::SchedError::Other { reason, .. } => reason,
                other => other.to_string(),
            };
            named(&mut found.tasks_left, format!("{} ({reason})", task.name));
        }
    }
}

fn named(names: &mut Vec<String>, name: String) {
    if names.len() < NAMES && !names.contains(&name) {
        names.push(name);
    }
}

/// Gives tasks their affinities back. A task that has changed its own since keeps it. Tasks that came since have
/// inherited the set ones, and get those that the nearest known of their ancestors gets back.
pub(super) fn bring_back(known: &HashMap<i32, Known>) -> Vec<String> {
    let mut problems = Vec::new();
    for _ in 0..LOOKS {
        let tasks = process::all();
        let by_id: HashMap<i32, &Task> = tasks.iter().map(|task| (task.tid, task)).collect();
        let mut changed = 0;
        for task in &tasks {
            let Some((was, set)) = due(task, &by_id, known) else {
                continue;
            };
            if sched::get_affinity(task.tid).ok().as_ref() != Some(set) || was == set {
                continue;
            }
            match sched::set_affinity(task.tid, was) {
                Ok(()) => changed += 1,
                Err(sched::SchedError::NoSuchProcess { .. }) => {}
                // Bound by the kernel: it was never moved, only looks so.
                Err(_) if task.kernel => {}
                Err(error) => problems.push(format!("{} ({}): {error}", task.name, task.tid)),
            }
        }
        if changed == 0 || !problems.is_empty() {
            break;
        }
    }
    problems
}

/// A task's affinities before and after; `None` if it, or the one that it inherited from, was not moved.
fn due<'a>(
    task: &Task,
    by_id: &HashMap<i32, &Task>,
    known: &'a HashMap<i32, Known>,
) -> Option<&'a (Vec<u32>, Vec<u32>)> {
    let mut task = task;
    // No process has so many ancestors; a ring, seen while processes came and went, ends here.
    for _ in 0..1_000 {
        if let Some(entry) = known
            .get(&task.tid)
            .filter(|entry| entry.start == task.start)
        {
            return entry.moved.as_ref();
        }
        let from = if task.tid == task.pid {
            task.parent
        } else {
            task.pid
        };
        task = by_id.get(&from)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn isolated(cpus: &[u32], rest: &[u32]) -> Isolated {
        Isolated {
            cpus: cpus.to_vec(),
            rest: rest.to_vec(),
            ..Isolated::default()
        }
    }

    /// A child, and the affinity it may be moved within; `None` on a machine with one cpu.
    fn sleeper() -> Option<(Child, Vec<u32>)> {
        let cpus = sched::get_affinity(0).unwrap();
        let child = Command::new("sh")
            .args(["-c", "read go; sleep 60 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let fit = cpus.len() > 1 && sched::set_affinity(pid, &cpus).is_ok();
        fit.then_some((child, cpus))
    }

    fn only(pid: i32) -> Vec<Task> {
        let mut tasks = process::all();
        tasks.retain(|task| task.tid == pid);
        tasks
    }

    #[test]
    fn a_task_and_the_child_it_had_meanwhile_come_back() {
        use std::io::{BufRead, BufReader, Write};
        let Some((mut child, cpus)) = sleeper() else {
            return;
        };
        let pid = child.id().cast_signed();
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j")).unwrap();
        let (last, rest) = cpus.split_last().unwrap();
        let mut found = isolated(&[*last], rest);
        move_these(&mut journal, &mut found, || only(pid)).unwrap();
        assert_eq!(found.tasks_moved, 1);
        assert_eq!(sched::get_affinity(pid).unwrap(), rest);

        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let grandchild: i32 = line.trim().parse().unwrap();
        assert_eq!(sched::get_affinity(grandchild).unwrap(), rest);

        assert_eq!(
            super::super::undo::put_back(journal.path()),
            Vec::<String>::new()
        );
        assert_eq!(sched::get_affinity(pid).unwrap(), cpus);
        assert_eq!(sched::get_affinity(grandchild).unwrap(), cpus);
        // SAFETY: a process that this test started.
        unsafe { libc::kill(grandchild, libc::SIGKILL) };
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_chose_other_cpus_meanwhile_keeps_them() {
        let Some((mut child, cpus)) = sleeper() else {
            return;
        };
        let pid = child.id().cast_signed();
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&dir.path().join("j")).unwrap();
        let (last, rest) = cpus.split_last().unwrap();
        let mut found = isolated(&[*last], rest);
        move_these(&mut journal, &mut found, || only(pid)).unwrap();
        sched::set_affinity(pid, &[*last]).unwrap();
        assert_eq!(
            super::super::undo::put_back(journal.path()),
            Vec::<String>::new()
        );
        assert_eq!(sched::get_affinity(pid).unwrap(), [*last]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn whoever_is_elsewhere_stays_and_whoever_has_nothing_left_gets_the_rest() {
        let found = isolated(&[2, 3], &[0, 1]);
        assert_eq!(target(&[0], &found), None);
        assert_eq!(target(&[1, 2], &found), Some(vec![1]));
        assert_eq!(target(&[3], &found), Some(vec![0, 1]));
    }
}
