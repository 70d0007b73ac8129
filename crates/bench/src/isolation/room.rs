//! The machine's room for cells.

use analysis::linux::{Bandwidth, DeadlineLimits, RootDomain};
use host::cpu_use::{RtLimit, rt_limit};
use host::root::Root;
use host::sched::bandwidth::{bandwidth_limit_us, period_bounds_us};

use model::Enforcer;
use record::Machine;

use super::draw::{ByCell, Room};
use super::setting::Setting;
use crate::held;

/// The room of this machine.
pub(super) fn room(setting: &Setting, root: &Root) -> Room {
    let (least, most) = period_bounds_us(root);
    let limit_us = match rt_limit(root) {
        Some(RtLimit::Of {
            runtime_us,
            period_us,
        }) => runtime_us * 1_000_000 / period_us.max(1),
        Some(RtLimit::Off) | None => 1_000_000,
    };
    let machine = Machine::here();
    let holders = (Enforcer::OF_BENCH.iter()).filter_map(|enforcer| held::by(*enforcer));
    Room {
        by_cell: holders
            .filter_map(|holder| {
                Some(ByCell {
                    enforcer: holder.enforcer(),
                    means: holder.means(&machine)?,
                    free_us: holder.free_us().min(limit_us),
                })
            })
            .collect(),
        deadline_tick_ns: machine.runtime_tick_ns(),
        domain: RootDomain {
            limits: DeadlineLimits {
                least_period: least.saturating_mul(1_000),
                longest_period: most.saturating_mul(1_000),
            },
            share: match bandwidth_limit_us(root, 1) {
                Some(us) => Bandwidth::new(us.saturating_mul(1_000), 1_000_000_000),
                None => Bandwidth {
                    runtime: None,
                    ..Bandwidth::default()
                },
            },
            // Also if the kernel has none, so that the sets are the same everywhere.
            ..RootDomain::of_cpus(1).with_fair_server()
        },
        overrun_permille: setting.overrun_permille,
        priority: setting.spot.priority,
    }
}
