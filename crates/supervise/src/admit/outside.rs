//! Real-time threads that are not accounted for.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Facts, Grant};

/// Most threads that are named; the others are counted.
const NAMED: usize = 8;

/// A real-time thread of a program that no ledger accounts for: admission cannot know its cpu time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unaccounted {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Its name in the kernel.
    pub name: String,
    /// Class and priority: `FIFO 90`, `RR 10`, `DEADLINE`.
    pub class: String,
    /// Cpus on which it may run.
    pub cpus: Vec<u32>,
}

/// That it is not accounted for, as a clause.
impl fmt::Display for Unaccounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} thread of process {} ({}) on cpu {} is not accounted for",
            self.class,
            self.pid,
            self.name.escape_debug(),
            host::cpus::format_list(&self.cpus)
        )
    }
}

/// The threads that may run where something is granted.
pub(super) fn beside(facts: &Facts, grants: &[&Grant]) -> Vec<Unaccounted> {
    let meets = |thread: &&Unaccounted| {
        // Into a partition it does not come.
        let open = grants.iter().filter(|grant| grant.partition.is_none());
        open.flat_map(|grant| &grant.cpus)
            .any(|cpu| thread.cpus.contains(cpu))
    };
    let mut threads: Vec<Unaccounted> = facts.outside.iter().filter(meets).cloned().collect();
    // The most urgent are named.
    threads.sort_by_key(|thread| std::cmp::Reverse(urgency(&thread.class)));
    threads
}

/// The kernel's preference: deadlines before all priorities.
fn urgency(class: &str) -> u32 {
    match class.split_once(' ') {
        Some((_, priority)) => priority.parse().unwrap_or(0),
        None => u32::MAX,
    }
}

/// A sentence for each, for people.
pub(super) fn notes(threads: &[Unaccounted]) -> Vec<String> {
    let mut notes: Vec<String> = (threads.iter().take(NAMED))
        .map(|thread| format!("{thread}: the guarantees hold only while it does not run"))
        .collect();
    if threads.len() > NAMED {
        let more = threads.len() - NAMED;
        notes.push(format!(
            "{more} more real-time threads are not accounted for: see `timecell ps --machine`"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_terminal_would_obey_is_shown_as_text() {
        let thread = Unaccounted {
            pid: 7,
            tid: 7,
            name: "a\u{1b}[2J".to_owned(),
            class: "FIFO 99".to_owned(),
            cpus: vec![0, 1],
        };
        assert_eq!(
            thread.to_string(),
            "FIFO 99 thread of process 7 (a\\u{1b}[2J) on cpu 0-1 is not accounted for"
        );
    }
}
