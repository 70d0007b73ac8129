//! How busy the cpus are, and how much of them real-time tasks may take.

use crate::root::{Root, Unreadable};

/// Ticks of one cpu since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// The cpu.
    pub cpu: u32,
    /// Ticks in which it worked, for this machine or for a host that took it away (steal).
    pub busy: u64,
    /// Those in which a host ran something else; 0 where it is not reported.
    pub stolen: u64,
    /// All ticks.
    pub all: u64,
}

/// The ticks of every cpu that is online, from `/proc/stat`.
///
/// # Errors
/// When the file cannot be read.
pub fn ticks(root: &Root) -> Result<Vec<CpuTicks>, Unreadable> {
    let text = root.read_bytes("/proc/stat")?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(of_line).collect())
}

fn of_line(line: &str) -> Option<CpuTicks> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let cpu = line.as_bytes().get(3)?.is_ascii_digit();
    let cpu = cpu.then(|| words.next()?.parse().ok()).flatten()?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guest times are in user and nice already.
    let ticks: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    let all: u64 = ticks.iter().sum();
    (ticks.len() >= 4).then_some(CpuTicks {
        cpu,
        busy: all - idle,
        stolen: ticks.get(7).copied().unwrap_or(0),
        all,
    })
}

/// The share of its time, 0 to 1, that each cpu of `after` was busy since `before`; of cpus that are in both and had a
/// tick between.
pub fn shares(before: &[CpuTicks], after: &[CpuTicks]) -> Vec<(u32, f64)> {
    let share = |after: &CpuTicks| {
        let before = before.iter().find(|before| before.cpu == after.cpu)?;
        let all = after.all.saturating_sub(before.all);
        let busy = after.busy.saturating_sub(before.busy);
        (all > 0).then(|| (after.cpu, (busy as f64 / all as f64).min(1.0)))
    };
    after.iter().filter_map(share).collect()
}

/// The kernel's limit on real-time tasks on each cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtLimit {
    /// No limit.
    Off,
    /// So much of every period.
    Of {
        /// Time that they may run, us.
        runtime_us: u64,
        /// The period, us.
        period_us: u64,
    },
}

/// The current setting of real-time throttling; `None` where the kernel does not report it.
pub fn rt_limit(root: &Root) -> Option<RtLimit> {
    let runtime: i64 = root
        .read_number("/proc/sys/kernel/sched_rt_runtime_us")
        .ok()?;
    let period_us = root
        .read_number("/proc/sys/kernel/sched_rt_period_us")
        .ok()?;
    Some(match u64::try_from(runtime) {
        Ok(runtime_us) => RtLimit::Of {
            runtime_us,
            period_us,
        },
        Err(_) => RtLimit::Off,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn busy_is_all_but_idle_and_waiting_for_a_disk() {
        let stat = |user: u32, idle: u32| {
            let text = format!(
                "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {user} 2 3 {idle} 5 6 7 8 1 0\ncpu3 1 0 0 1\nintr 5 cpu7\n"
            );
            ticks(&Tree::new().file("/proc/stat", text.as_str()).root()).unwrap()
        };
        let before = stat(10, 100);
        assert_eq!(
            before[0],
            CpuTicks {
                cpu: 0,
                busy: 36,
                stolen: 8,
                all: 141
            }
        );
        assert_eq!(before[1].cpu, 3);
        assert_eq!(before.len(), 2);
        assert_eq!(shares(&before, &stat(40, 110)), [(0, 0.75)]);
    }

    #[test]
    fn throttling_may_be_off() {
        let limit = |runtime: &str| {
            let tree = Tree::new()
                .file("/proc/sys/kernel/sched_rt_runtime_us", runtime)
                .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
            rt_limit(&tree.root())
        };
        assert_eq!(limit("-1\n"), Some(RtLimit::Off));
        let of = RtLimit::Of {
            runtime_us: 950_000,
            period_us: 1_000_000,
        };
        assert_eq!(limit("950000\n"), Some(of));
    }
}
