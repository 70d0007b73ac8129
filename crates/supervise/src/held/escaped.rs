//! Threads that have left the held group, with the class and the cpu that they were given there. Root leaves any group,
//! systemd takes a process out of its own at its user's request, and so does a program that begins a session for it. Nobody
//! holds such a thread to the budget.

use host::cgroup::{self, Cgroups};
use host::root::Root;
use host::sched::{self, Class};

use super::HeldError;
use super::back::Back;
use super::file::Record;
use super::threads::threads_of;
use crate::process::{descends, start_of};

/// Threads outside of the group that were in it when it was noted, or that have their class or cpu from there: started since by one that
/// was in it, or by a descendant of that. Threads with no such process above them any more cannot be told from others. None where
/// nothing was changed.
///
/// # Errors
/// [`HeldError::Outside`].
pub(super) fn escaped(record: &Record) -> Result<Vec<i32>, HeldError> {
    escaped_by(record, cgroup::detect().map_err(|error| error.to_string()))
}

fn escaped_by(record: &Record, cgroups: Result<Cgroups, String>) -> Result<Vec<i32>, HeldError> {
    if !record.begun {
        return Ok(Vec::new());
    }
    let cgroups = cgroups.map_err(|why| HeldError::Outside {
        what: record.thing.to_string(),
        why,
    })?;
    let root = Root::live();
    let group = &record.thing.group;
    let is_inside = |pid: i32| {
        let own = cgroups.v2_group(&root, pid);
        own.is_some_and(|own| own.starts_with(group))
    };
    Ok(outside(
        &record.back,
        &record.cpus(),
        record.class.as_ref(),
        is_inside,
    ))
}

fn outside(
    back: &Back,
    cpus: &[u32],
    class: Option<&Class>,
    is_inside: impl Fn(i32) -> bool,
) -> Vec<i32> {
    let noted = back.living();
    let mut found: Vec<i32> = noted.clone();
    let has_from_there = |tid: &i32| {
        let is_given = class.is_some_and(|class| sched::get_class(*tid).as_ref() == Ok(class));
        let is_one = |has: Vec<u32>| matches!(has[..], [cpu] if cpus.contains(&cpu));
        is_given || sched::get_affinity(*tid).is_ok_and(is_one)
    };
    let started_since = |pid: &i32| back.began_since(*pid) && descends(*pid, &noted);
    let processes = host::process::all().into_iter();
    for pid in processes.filter(|pid| noted.contains(pid) || started_since(pid)) {
        found.extend(threads_of(pid).into_iter().filter(has_from_there));
    }
    // A thread that has ended meanwhile is in no group, and has not left it.
    found.retain(|tid| !is_inside(*tid) && start_of(*tid).is_some());
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::record;
    use super::*;
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    #[test]
    fn whoever_is_elsewhere_is_found_with_what_it_has_started() {
        // A shell, on one cpu, and a child of it.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        let mut line = Vec::new();
        let out = shell.stdout.as_mut().unwrap();
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let child: i32 = String::from_utf8(line).unwrap().parse().unwrap();
        let own = shell.id().cast_signed();
        let cpus = sched::get_affinity(own).unwrap();
        let cpu = *cpus.last().unwrap();
        let back = Back::of(&[own], Some(own)).noted_at(0);
        sched::set_affinity(child, &[cpu]).unwrap();
        let mut both = [own, child];
        both.sort_unstable();
        assert_eq!(outside(&back, &[cpu], None, |_| false), both);
        assert_eq!(outside(&back, &[cpu], None, |pid| pid == own), [child]);
        assert_eq!(outside(&back, &[cpu], None, |_| true), [0; 0]);
        // A cpu of its own choice, and no class that was given.
        let other = if cpu == 0 { 1 } else { 0 };
        let class = Class::Fifo { priority: 3 };
        assert_eq!(outside(&back, &[other], Some(&class), |_| false), [own]);
        // A process from before, and elsewhere, has nothing of it.
        let later = back.clone().noted_at(u64::MAX);
        assert_eq!(outside(&later, &[cpu], None, |_| false), [own]);
        // One that ends while its group is looked for.
        let mut ends = Some((&mut shell, [child, own]));
        let ends = std::cell::RefCell::new(&mut ends);
        let ended = |_: i32| {
            if let Some((shell, pids)) = ends.borrow_mut().take() {
                for pid in pids {
                    // SAFETY: our child, not waited for yet, and its own.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
                shell.wait().unwrap();
                while start_of(child).is_some() {
                    std::thread::yield_now();
                }
            }
            false
        };
        assert_eq!(outside(&back, &[cpu], None, ended), [0; 0]);
    }

    #[test]
    fn where_groups_cannot_be_seen_that_is_told_and_what_was_never_held_has_left_nothing() {
        let mut held = record("7");
        held.back = Back::of(&[std::process::id().cast_signed()], None);
        let blind = || Err("/proc/self/mountinfo cannot be read".to_owned());
        let why = escaped_by(&held, blind()).unwrap_err().to_string();
        assert!(
            why.contains("process 7 (sleep)") && why.contains("mountinfo"),
            "{why}"
        );
        assert_eq!(escaped(&held).unwrap().len(), 1);
        held.begun = false;
        assert_eq!(escaped(&held).unwrap(), [0; 0]);
    }
}
