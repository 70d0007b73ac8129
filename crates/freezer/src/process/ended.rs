//! Waiting for holders that have ended and are children of this process by inheritance.

use std::fs;

use super::setup::NAME;

/// Reaps those who held cells, have ended and are children of this process: of a subreaper, which becomes the parent of whoever has
/// none any more. All others it leaves alone, whatever they call themselves: a program in a cell has a pid namespace of its own,
/// and no holder has. Where the kernel does not tell a process its children (`CONFIG_PROC_CHILDREN`), nothing is done.
pub fn reap_ended_holders() {
    for task in fs::read_dir("/proc/self/task").into_iter().flatten() {
        let Ok(task) = task else { continue };
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace() {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if let (true, Ok(pid)) = (is_ended_holder(&status), pid.parse()) {
                // SAFETY: no memory is involved. The pid is a child's that has ended, and nobody else's as long as it is not waited for.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
            }
        }
    }
}

/// Whether what `/proc/<pid>/status` says is of a holder that has ended and has not been waited for.
fn is_ended_holder(status: &str) -> bool {
    let of = |key: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
    };
    let pids = of("NSpid").unwrap_or_default().split_whitespace().count();
    of("Name").map(str::as_bytes) == Some(NAME.to_bytes())
        && of("State").is_some_and(|state| state.starts_with('Z'))
        && pids == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_held_cells_and_has_ended_is_reaped() {
        let of = |name: &str, state: &str, pids: &str| {
            is_ended_holder(&format!("Name:\t{name}\nState:\t{state}\nNSpid:\t{pids}\n"))
        };
        assert!(of("timecell-holder", "Z (zombie)", "812"));
        assert!(!of("timecell-holder", "S (sleeping)", "812"));
        assert!(!of("timecell", "Z (zombie)", "812"));
        // A program in a cell that calls itself so.
        assert!(!of("timecell-holder", "Z (zombie)", "812\t1"));
        assert!(!is_ended_holder(""));
    }
}
