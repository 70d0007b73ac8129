//! What idle, armed cells take: cpu time in a window in which nothing happens, and memory.

use std::collections::BTreeSet;
use std::path::Path;

use record::crowd::CrowdMemory;

/// Cpu time that these processes have used so far, ns; one that is gone counts nothing.
pub(crate) fn cpu_ns(pids: &[i32]) -> i64 {
    pids.iter().filter_map(|pid| used_ns(*pid)).sum()
}

fn used_ns(pid: i32) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Memory of these payloads and of every other process that carries a mark of the trial or works in `cells_dir`.
pub(crate) fn memory(payloads: &[i32], mark: &str, cells_dir: &Path) -> CrowdMemory {
    let mut sum = CrowdMemory::default();
    for pid in payloads {
        if let Some((pss, rss)) = sets(*pid) {
            sum.cells += 1;
            sum.payload_pss_bytes += pss;
            sum.payload_rss_bytes += rss;
        }
    }
    let known: BTreeSet<i32> = payloads.iter().copied().collect();
    let helpers = engine::processes_of_many(mark, cells_dir);
    sum.helpers_pss_bytes = (helpers.into_iter())
        .filter(|pid| !known.contains(pid))
        .filter_map(sets)
        .map(|(pss, _)| pss)
        .sum();
    sum
}

/// Proportional and resident set of a process, bytes.
fn sets(pid: i32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some((
        kibibytes(&text, "Pss:")? << 10,
        kibibytes(&text, "Rss:")? << 10,
    ))
}

/// Memory that the kernel of this machine holds for itself, bytes: slabs, stacks, page tables, areas of each cpu.
pub(super) fn kernel_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let parts = ["Slab:", "KernelStack:", "PageTables:", "Percpu:"];
    let sum: Option<u64> = parts.iter().map(|key| kibibytes(&text, key)).sum();
    sum.map(|kib| kib << 10)
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_time_and_memory() {
        let own = std::process::id().cast_signed();
        let before = cpu_ns(&[own, i32::MAX]);
        assert!(before > 0);
        let dir = tempfile::tempdir().unwrap();
        let found = memory(&[own, i32::MAX], "no-such-mark", dir.path());
        assert_eq!(found.cells, 1);
        assert!(0 < found.payload_pss_bytes && found.payload_pss_bytes <= found.payload_rss_bytes);
        assert_eq!(found.helpers_pss_bytes, 0);
        assert!(kernel_bytes().unwrap() > 1 << 20);
    }

    #[test]
    fn whoever_works_in_a_cells_directory_is_a_helper() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("fifo");
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read x"])
            .arg(&file)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let found = memory(&[], "no-such-mark", dir.path());
        assert!(found.helpers_pss_bytes > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
