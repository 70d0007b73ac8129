//! The tasks of this machine as `/proc` shows them.

use std::fs;

/// A kernel thread.
const PF_KTHREAD: u64 = 0x0020_0000;

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

/// Every task that is there now.
pub(super) fn all() -> Vec<Task> {
    let numbers = |path: &str| -> Vec<i32> {
        fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    };
    numbers("/proc")
        .into_iter()
        .flat_map(|pid| {
            numbers(&format!("/proc/{pid}/task"))
                .into_iter()
                .filter_map(move |tid| task(pid, tid))
        })
        .collect()
}

fn task(pid: i32, tid: i32) -> Option<Task> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    parse(pid, tid, &stat)
}

/// Reads a line of `stat` (proc_pid_stat(5)); `None` for one that has ended.
fn parse(pid: i32, tid: i32, stat: &str) -> Option<Task> {
    // The name may hold spaces and parentheses: fields are counted from the last one.
    let (front, fields) = stat.rsplit_once(')')?;
    let (_, name) = front.split_once('(')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some(Task {
        tid,
        pid,
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        kernel: fields.get(6)?.parse::<u64>().ok()? & PF_KTHREAD != 0,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_no_field() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194304 9 0 0 0 3 4 0 0 20 0 1 0 777 4096 1";
        let task = parse(12, 12, stat).unwrap();
        assert_eq!(
            (task.name.as_str(), task.parent, task.start, task.kernel),
            ("a) b", 1, 777, false)
        );
        assert_eq!(parse(12, 12, &stat.replace(" S ", " Z ")), None);
        assert_eq!(parse(12, 12, "12 (a"), None);
    }

    #[test]
    fn this_process_is_there() {
        let me = std::process::id().cast_signed();
        assert!(all().iter().any(|task| task.tid == me && !task.kernel));
    }
}
