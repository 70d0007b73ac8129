//! Activity of the whole machine since boot: switches, interrupts, cpu time, bytes to disks and networks. Two readings
//! show the activity between them; nothing here belongs to one process or one cell.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::process::tick_ns;
use crate::root::Root;

/// Counts since boot, or between two such readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Context switches of all cpus.
    pub context_switches: u64,
    /// Hardware interrupts of all cpus.
    pub interrupts: u64,
    /// Soft interrupts of all cpus by the kernel's name of their kind, such as `NET_RX`.
    pub softirqs: BTreeMap<String, u64>,
    /// Time of all cpus in programs, nice ones included, ns.
    pub user_ns: u64,
    /// Time of all cpus in the kernel, interrupts included, ns.
    pub system_ns: u64,
    /// Bytes written to block devices.
    pub disk_written_bytes: u64,
    /// Bytes received by the network devices of this process's network, loopback included.
    pub net_received_bytes: u64,
}

impl Activity {
    /// Reads the counts of this machine; counts that the kernel does not report are 0.
    pub fn read() -> Activity {
        Activity::read_at(&Root::live())
    }

    /// [`Activity::read`] under another root.
    pub fn read_at(root: &Root) -> Activity {
        let text = |path: &str| root.read(path).unwrap_or_default();
        let stat = text("/proc/stat");
        let of_stat = |key: &str| -> Vec<u64> {
            let line = stat.lines().find_map(|line| line.strip_prefix(key));
            line.map(numbers).unwrap_or_default()
        };
        let at = |numbers: &[u64], place: usize| numbers.get(place).copied().unwrap_or(0);
        // user, nice, system, idle, iowait, irq, softirq: proc(5)
        let cpu = of_stat("cpu ");
        let tick = tick_ns().unsigned_abs();
        Activity {
            context_switches: at(&of_stat("ctxt "), 0),
            interrupts: at(&of_stat("intr "), 0),
            softirqs: softirqs(&text("/proc/softirqs")),
            user_ns: (at(&cpu, 0) + at(&cpu, 1)).saturating_mul(tick),
            system_ns: (at(&cpu, 2) + at(&cpu, 5) + at(&cpu, 6)).saturating_mul(tick),
            disk_written_bytes: written(&text("/proc/vmstat")),
            net_received_bytes: received(&text("/proc/net/dev")),
        }
    }

    /// The counts since an `earlier` reading.
    pub fn since(&self, earlier: &Activity) -> Activity {
        let softirqs = self.softirqs.iter().map(|(kind, count)| {
            let before = earlier.softirqs.get(kind).copied().unwrap_or(0);
            (kind.clone(), count.saturating_sub(before))
        });
        Activity {
            context_switches: self
                .context_switches
                .saturating_sub(earlier.context_switches),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            softirqs: softirqs.collect(),
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            disk_written_bytes: self
                .disk_written_bytes
                .saturating_sub(earlier.disk_written_bytes),
            net_received_bytes: self
                .net_received_bytes
                .saturating_sub(earlier.net_received_bytes),
        }
    }

    /// Soft interrupts of one kind; 0 for a kind that the kernel does not have.
    pub fn softirqs_of(&self, kind: &str) -> u64 {
        self.softirqs.get(kind).copied().unwrap_or(0)
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect()
}

/// `NET_RX:  12  34`: one column for each cpu.
fn softirqs(text: &str) -> BTreeMap<String, u64> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(kind, counts)| (kind.trim().to_owned(), numbers(counts).iter().sum()))
        .collect()
}

/// The kernel counts writes to block devices in KiB.
fn written(vmstat: &str) -> u64 {
    let line = vmstat
        .lines()
        .find_map(|line| line.strip_prefix("pgpgout "));
    let kib: u64 = line.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    kib.saturating_mul(1024)
}

/// The first number behind each device's name.
fn received(dev: &str) -> u64 {
    dev.lines()
        .filter_map(|line| numbers(line.split_once(':')?.1).first().copied())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn the_kernels_tables_are_read() {
        let tree = Tree::new()
            .file(
                "/proc/stat",
                "cpu  10 2 30 400 5 6 7 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\nintr 77 0 0 9\nctxt 1234\n",
            )
            .file(
                "/proc/softirqs",
                "          CPU0  CPU1\n  NET_RX:   5   6\n   BLOCK:   1   0\n",
            )
            .file("/proc/vmstat", "pgpgin 3\npgpgout 8\n")
            .file(
                "/proc/net/dev",
                "Inter-|   Receive\n face |bytes packets\n    lo: 100 1 0\n  eth0:50 2 0\n",
            );
        let read = Activity::read_at(&tree.root());
        assert_eq!((read.context_switches, read.interrupts), (1234, 77));
        assert_eq!(
            (read.softirqs_of("NET_RX"), read.softirqs_of("HI")),
            (11, 0)
        );
        assert_eq!(read.user_ns, 12 * tick_ns().unsigned_abs());
        assert_eq!(read.system_ns, 43 * tick_ns().unsigned_abs());
        assert_eq!(read.disk_written_bytes, 8192);
        assert_eq!(read.net_received_bytes, 150);
        let mut later = read.clone();
        later.context_switches += 6;
        later.softirqs.insert("NET_RX".to_owned(), 15);
        let between = later.since(&read);
        assert_eq!(between.context_switches, 6);
        assert_eq!(between.softirqs_of("NET_RX"), 4);
        assert_eq!(between.disk_written_bytes, 0);
    }

    #[test]
    fn this_machine_counts() {
        let before = Activity::read();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let between = Activity::read().since(&before);
        assert!(between.context_switches > 0, "{between:?}");
    }
}
