//! A cell's use, seen without its cooperation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use host::clock;
use host::root::Root;

use super::limits::with_those_below;

/// Counts of a cell that can be seen without its help: cpu time and memory.
#[derive(Debug, Default)]
pub(super) struct Outside {
    clock: Option<libc::clockid_t>,
    usage: Vec<File>,
    budget: Option<BudgetUsage>,
    memory: Vec<File>,
    hits: u64,
    ran_ns: i64,
    /// The counts of memory and cpu time when the program had ended; its groups may be gone.
    kept_hits: Option<u64>,
    kept_ns: Option<i64>,
    /// Cpu time out of band, at most so far.
    pub(super) out_of_band_ns: i64,
}

/// Cpu time in the group of a cell's budget, which outlives the cell.
#[derive(Debug)]
struct BudgetUsage {
    file: File,
    before_ns: i64,
}

impl BudgetUsage {
    fn of(group: PathBuf) -> Option<BudgetUsage> {
        let file = all(&[group], &USAGE, |text| usage_ns(text).is_some());
        let file = file.into_iter().next()?;
        let before_ns = usage_ns(&read(&file)?)?;
        Some(BudgetUsage { file, before_ns })
    }

    fn ns(&self) -> Option<i64> {
        Some(usage_ns(&read(&self.file)?)? - self.before_ns)
    }
}

impl Outside {
    /// Of the cell whose first process this is and whose cgroups these are, from now on.
    pub(super) fn of(pid: i32, groups: &[PathBuf]) -> Outside {
        let mut outside = Outside {
            clock: Some(clock::of_process(pid)),
            usage: all(groups, &USAGE, |text| usage_ns(text).is_some()),
            budget: budget_group(pid).and_then(BudgetUsage::of),
            memory: all(&with_those_below(groups), &MEMORY, |text| {
                hits(text).is_some()
            }),
            ..Outside::default()
        };
        outside.hits = outside.read_hits().unwrap_or(0);
        outside
    }

    /// Cpu time of all threads of the first process, those that have ended included, ns, and none of its children's; up to a tick of
    /// each cpu is missing. `None` once it is gone.
    pub(super) fn process_ns(&self) -> Option<i64> {
        clock::read(self.clock?)
    }

    /// Cpu time of all processes of the cell, ns, of which up to a tick of each cpu is missing ([`unseen_ns`]); that of the first
    /// alone where the kernel does not count it.
    pub(super) fn cell_ns(&self) -> Option<i64> {
        let each = self.usage.iter().filter_map(|file| usage_ns(&read(file)?));
        let budget = self.budget.as_ref().and_then(BudgetUsage::ns);
        let counted = each.chain(budget).max();
        counted.max(self.process_ns()).max(self.kept_ns)
    }

    /// Whether anything in the cell has run since the last time.
    pub(super) fn has_run(&mut self) -> bool {
        let ran_ns = self.cell_ns().unwrap_or(self.ran_ns);
        let before = std::mem::replace(&mut self.ran_ns, ran_ns);
        ran_ns > before
    }

    /// How often the cell has come up against its memory limit since the last time.
    pub(super) fn memory_hits(&mut self) -> u64 {
        let hits = self.read_hits().unwrap_or(self.hits);
        let before = std::mem::replace(&mut self.hits, hits);
        hits.saturating_sub(before)
    }

    /// How often it has in all.
    pub(super) fn all_memory_hits(&self) -> Option<u64> {
        self.read_hits()
    }

    fn read_hits(&self) -> Option<u64> {
        sum_of_hits(&self.memory).or(self.kept_hits)
    }

    /// The program has ended: the present counts stand when its groups are gone.
    pub(super) fn keep(&mut self) {
        self.kept_hits = self.read_hits();
        self.kept_ns = self.cell_ns();
    }
}

/// How much of the cpu time of a cell on this many cpus may be uncounted, ns: the kernel counts at its tick and when a
/// thread stops.
pub(in crate::run) fn unseen_ns(cpus: usize) -> i64 {
    /// Where nothing tells.
    const LONGEST_TICK_NS: i64 = 10_000_000;
    let hz = host::kernel::tick_hz(&Root::live());
    let tick_ns = hz.map_or(LONGEST_TICK_NS, |hz| 1_000_000_000 / i64::from(hz.max(1)));
    tick_ns.saturating_mul(i64::try_from(cpus.max(1)).unwrap_or(i64::MAX))
}

fn sum_of_hits(files: &[File]) -> Option<u64> {
    let each = files.iter().filter_map(|file| hits(&read(file)?));
    each.reduce(u64::saturating_add)
}

/// Where a limit that was reached is counted: that of memory, that of memory with swap, processes killed for it, and version
/// 2's. Not every kernel of version 1 counts in the first two.
const MEMORY: [&str; 4] = [
    "memory.failcnt",
    "memory.memsw.failcnt",
    "memory.oom_control",
    "memory.events",
];
/// The group of its budget: where cpu and cpuacct are one hierarchy, its cpu time is counted there and not in its own.
fn budget_group(pid: i32) -> Option<PathBuf> {
    let path = host::rtgroup::own_group(pid).ok()?.path;
    let name = path.file_name()?.to_string_lossy();
    // The root group counts everybody.
    name.starts_with("timecell-").then_some(path)
}

/// Where cpu time is counted.
const USAGE: [&str; 2] = ["cpuacct.usage", "cpu.stat"];

/// Those of these files with the text that is looked for.
pub(super) fn all(groups: &[PathBuf], names: &[&str], says: impl Fn(&str) -> bool) -> Vec<File> {
    let paths = (groups.iter()).flat_map(|group| names.iter().map(|name| group.join(name)));
    let says = |path: &PathBuf| host::file::text(path).is_ok_and(|text| says(&text));
    // A file that could be read a moment ago can be opened.
    let files = paths.filter(says).map(File::open);
    files.filter_map(Result::ok).collect()
}

pub(super) fn read(file: &File) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = match file.read_at(&mut buffer, 0) {
        Ok(length) => length,
        // The group is gone.
        Err(error) if error.kind() != io::ErrorKind::Interrupted => return None,
        Err(_) => 0,
    };
    std::str::from_utf8(&buffer[..length])
        .ok()
        .map(str::to_owned)
}

/// `cpuacct.usage` of version 1, `usage_usec` of version 2's `cpu.stat`.
fn usage_ns(text: &str) -> Option<i64> {
    if let Ok(ns) = text.trim().parse() {
        return Some(ns);
    }
    number(text, "usage_usec")?
        .checked_mul(1_000)?
        .try_into()
        .ok()
}

/// A plain number or `oom_kill` of version 1, `max` of version 2's `memory.events`.
fn hits(text: &str) -> Option<u64> {
    let plain = text.trim().parse().ok();
    plain
        .or_else(|| number(text, "max"))
        .or_else(|| number(text, "oom_kill"))
}

pub(super) fn number(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn both_versions_are_read() {
        assert_eq!(usage_ns("12345\n"), Some(12_345));
        assert_eq!(usage_ns("usage_usec 7\nuser_usec 3\n"), Some(7_000));
        assert_eq!(usage_ns("nr_periods 0\n"), None);
        assert_eq!(hits("3\n"), Some(3));
        assert_eq!(hits("low 0\nhigh 1\nmax 4\noom 0\n"), Some(4));
        assert_eq!(
            hits("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            Some(2)
        );
        assert_eq!(hits("oom 0\n"), None);
    }

    #[test]
    fn this_process_runs_and_a_group_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().to_owned();
        fs::write(group.join("memory.failcnt"), "2\n").unwrap();
        fs::write(group.join("memory.memsw.failcnt"), "0\n").unwrap();
        let own = std::process::id().cast_signed();
        let groups = std::slice::from_ref(&group);
        let mut outside = Outside::of(own, groups);
        assert!(outside.process_ns().unwrap() > 0);
        assert!(outside.has_run());
        assert_eq!(outside.memory_hits(), 0);
        fs::write(group.join("memory.failcnt"), "4\n").unwrap();
        fs::write(group.join("memory.memsw.failcnt"), "1\n").unwrap();
        assert_eq!((outside.memory_hits(), outside.memory_hits()), (3, 0));
        outside.keep();
        let ran_ns = outside.cell_ns();
        fs::remove_dir_all(&group).unwrap();
        assert!(outside.cell_ns() >= ran_ns);
        let nobody = Outside::default();
        assert_eq!((nobody.process_ns(), nobody.cell_ns()), (None, None));
    }
}
