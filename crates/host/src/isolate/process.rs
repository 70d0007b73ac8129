//! The tasks of this machine as `/proc` shows them.

use crate::process::{self, Stat};

/// One task: a thread of a process, or a kernel thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub tid: i32,
    /// The process that it is a thread of.
    pub pid: i32,
    pub parent: i32,
    /// Start in clock ticks since boot.
    pub start: u64,
    pub kernel: bool,
    pub name: String,
}

/// Every task that is there now; none that has ended.
pub(super) fn all() -> Vec<Task> {
    let of = |pid: i32| {
        process::threads(pid)
            .into_iter()
            .filter_map(move |tid| task(pid, tid))
    };
    process::all().into_iter().flat_map(of).collect()
}

fn task(pid: i32, tid: i32) -> Option<Task> {
    let stat = Stat::of(tid).filter(|stat| !stat.has_ended())?;
    Some(Task {
        tid,
        pid,
        parent: stat.parent()?,
        start: stat.start_ticks()?,
        kernel: stat.is_kernels(),
        name: stat.name().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there() {
        let me = std::process::id().cast_signed();
        assert!(all().iter().any(|task| task.tid == me && !task.kernel));
    }
}
