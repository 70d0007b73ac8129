//! One thread over the looks at it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use engine::agent::{ROWS, Standing};
use host::process::{Stat, status, value};
use host::sched::{self, Class};

use crate::enforce::Inside;

/// A thread whose class others change again within this time of its being put back is left as it is, ns.
const LEFT_ALONE_NS: i64 = 60_000_000_000;

/// A thread that was met at a look. The open file of its name tells it from a later thread with its id.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) tid: i32,
    /// Its id in the cell's pid namespace.
    pub(super) inner: u32,
    pub(super) process: i32,
    /// When process and thread were started, clock ticks since boot.
    pub(super) process_started: u64,
    pub(super) started: u64,
    pub(super) name: String,
    comm: File,
    /// The class that was given to it last.
    pub(super) given: Option<Class>,
    /// When it was put back into that class.
    put_back_ns: Option<i64>,
    /// The last refusal that was told.
    told: Option<String>,
}

impl Known {
    /// The thread of this id, in a cell so many pid namespaces deep; `None`: it has ended.
    pub(super) fn of(tid: i32, depth: usize) -> Option<Known> {
        let comm = File::open(format!("/proc/{tid}/comm")).ok()?;
        let status = status(tid);
        let process: i32 = value(&status, "Tgid")?.parse().ok()?;
        let inner = value(&status, "NSpid")?.split_whitespace();
        let inner = inner.take(depth).last()?.parse().ok()?;
        let started = |tid| Stat::of(tid)?.start_ticks();
        Some(Known {
            tid,
            inner,
            process,
            process_started: started(process)?,
            started: started(tid)?,
            name: String::new(),
            comm,
            given: None,
            put_back_ns: None,
            told: None,
        })
    }

    /// Whether a class that it does not have is to be given to it now. One that it had, and that somebody else has taken from it, is given back
    /// once; taken again within a minute, it is left as it is.
    pub(super) fn may_give(
        &mut self,
        class: &Class,
        standing: Option<Standing>,
        now_ns: i64,
    ) -> bool {
        if self.given.as_ref() != Some(class) {
            self.put_back_ns = None;
            return true;
        }
        match standing {
            // The agent is about to.
            Some(Standing::Given) => false,
            Some(Standing::Refused(_)) => true,
            Some(Standing::Open | Standing::InForce) | None => {
                let left_alone =
                    (self.put_back_ns).is_some_and(|last| now_ns - last < LEFT_ALONE_NS);
                if !left_alone {
                    self.put_back_ns = Some(now_ns);
                }
                !left_alone
            }
        }
    }

    /// Whether it was put back at this instant.
    pub(super) fn was_put_back_at(&self, now_ns: i64) -> bool {
        self.put_back_ns == Some(now_ns)
    }

    /// Why the agent could not give it this class last, where that was not told yet.
    pub(super) fn refusal(&mut self, class: &Class, standing: Option<Standing>) -> Option<String> {
        if self.given.as_ref() != Some(class) {
            return None;
        }
        let why = match (standing, class) {
            (Some(Standing::Refused(libc::EBUSY)), Class::Deadline { .. }) => {
                "other threads of SCHED_DEADLINE hold the bandwidth".to_owned()
            }
            (Some(Standing::Refused(errno)), _) => {
                std::io::Error::from_raw_os_error(errno).to_string()
            }
            (None, _) => format!("the cell's agent keeps the grants of {ROWS} threads"),
            _ => return None,
        };
        self.refused_for(&why).then_some(why)
    }

    /// Notes a refusal; whether it was not told yet.
    pub(super) fn refused_for(&mut self, why: &str) -> bool {
        self.told.replace(why.to_owned()).as_deref() != Some(why)
    }

    /// Reads its name; `false`: it has ended.
    pub(super) fn read_name(&mut self) -> bool {
        let mut name = [0; 64];
        let length = match self.comm.read_at(&mut name, 0) {
            Ok(length @ 1..) => length,
            _ => return false,
        };
        let name = String::from_utf8_lossy(&name[..length]);
        let name = name.strip_suffix('\n').unwrap_or(&name);
        if name != self.name {
            name.clone_into(&mut self.name);
        }
        true
    }
}

/// How many pid namespaces deep a process is, at least 1.
pub(super) fn depth(pid: i32) -> usize {
    let status = status(pid);
    value(&status, "NSpid").map_or(1, |ids| ids.split_whitespace().count())
}

/// Puts a thread of a cell that has no agent into a class. Its id may be a stranger's as soon as it has ended, so the cell is asked before
/// and after, and a stranger gets its class back.
///
/// # Errors
/// Why it was not, a clause.
pub(super) fn set(tid: i32, class: &Class, inside: &Inside) -> Result<(), String> {
    let is_inside = || inside.threads().contains(&tid);
    let (before, resets) = sched::get_class_and_reset(tid).map_err(|error| error.to_string())?;
    if !is_inside() {
        return Err("it has ended".to_owned());
    }
    let resets_on_fork = resets || matches!(class, Class::Deadline { .. });
    let set = match resets_on_fork {
        true => sched::set_class_reset_on_fork(tid, class),
        false => sched::set_class(tid, class),
    };
    set.map_err(|error| error.to_string())?;
    if !is_inside() && sched::get_class(tid).is_ok_and(|now| now == *class) {
        let _ = sched::set_unexplained(tid, &before, resets);
        return Err("it has ended".to_owned());
    }
    Ok(())
}
