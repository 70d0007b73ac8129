//! Usage of idle, armed cells: cpu time in a window in which nothing happens, and memory.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use host::process::{Resident, bytes};
use record::crowd::CrowdMemory;

/// Cpu time between two readings of the same processes ([`host::process::cpu_ns`]), ns, of those that existed at both: the time of one that
/// ended in between is not subtracted from the others.
pub(crate) fn used_ns(before: &[Option<i64>], after: &[Option<i64>]) -> i64 {
    let of = |(before, after): (&Option<i64>, &Option<i64>)| Some((*after)? - (*before)?);
    before.iter().zip(after).filter_map(of).sum()
}

/// Memory of these payloads and of every other process that carries a mark of the trial or works in `cells_dir`, of root's, of this user's or of
/// `user`'s, who runs rootless cells.
/// Payloads that have ended are not among its `cells`.
///
/// # Errors
/// When the kernel does not tell of a process that is there: the sum would be too small.
pub(crate) fn memory(
    payloads: &[i32],
    mark: &str,
    cells_dir: &Path,
    user: Option<u32>,
) -> io::Result<CrowdMemory> {
    let mut sum = CrowdMemory::default();
    for pid in payloads {
        if let Some(own) = Resident::of(*pid)? {
            sum.cells += 1;
            sum.payload_pss_bytes += own.pss_bytes;
            sum.payload_rss_bytes += own.rss_bytes;
        }
    }
    let known: BTreeSet<i32> = payloads.iter().copied().collect();
    for pid in engine::processes_of_many(mark, cells_dir, user) {
        if !known.contains(&pid)
            && let Some(helper) = Resident::of(pid)?
        {
            sum.helpers_pss_bytes += helper.pss_bytes;
        }
    }
    Ok(sum)
}

/// Memory that the kernel holds for itself, bytes: slabs, stacks, page tables, per-cpu areas.
pub(super) fn kernel_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let parts = ["Slab", "KernelStack", "PageTables", "Percpu"];
    parts.iter().map(|key| bytes(&text, key)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_there_at_both_looks_used_nothing() {
        let before = [Some(5), Some(70), None];
        assert_eq!(used_ns(&before, &[Some(9), None, Some(8)]), 4);
        assert_eq!(used_ns(&before, &before), 0);
    }

    #[test]
    fn this_process_takes_memory() {
        let own = std::process::id().cast_signed();
        let dir = tempfile::tempdir().unwrap();
        let found = memory(&[own, i32::MAX], "no-such-mark", dir.path(), None).unwrap();
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
        let found = memory(&[], "no-such-mark", dir.path(), None).unwrap();
        assert!(found.helpers_pss_bytes > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
