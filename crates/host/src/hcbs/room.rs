//! The shares of servers and ordinary work of each cpu.

use crate::root::Root;
use crate::rtgroup::Budget;
use crate::{cpus, fair_server};

/// The kernel's limit on real-time threads on each cpu (`kernel.sched_rt_runtime_us`), us in every second; all of it where nothing
/// limits it.
pub fn limit_us(root: &Root) -> u64 {
    let number = |file: &str| root.read_number::<i64>(format!("/proc/sys/kernel/{file}"));
    match (number("sched_rt_runtime_us"), number("sched_rt_period_us")) {
        (Ok(runtime_us @ 0..), Ok(period_us @ 1..)) => Budget {
            runtime_us,
            period_us: period_us.unsigned_abs(),
        }
        .per_second_us(),
        _ => 1_000_000,
    }
}

/// The largest fair server's share of its cpu, us in every second, rounded up.
pub fn ordinary_us(root: &Root) -> u64 {
    let online = cpus::online_at(root).unwrap_or_default();
    fair_server::most(root, &online).map_or(0, |server| {
        let us = u128::from(server.runtime_ns) * 1_000_000;
        u64::try_from(us.div_ceil(u128::from(server.period_ns.max(1)))).unwrap_or(1_000_000)
    })
}
