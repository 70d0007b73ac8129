//! What a trial of many cells tells beyond its cells: creation, memory and cpu time while they wait, and what gave
//! out where not all of them came.

use model::taskset::Enforcer;
use serde::{Deserialize, Serialize};

/// Many cells of one engine, created in parallel and released together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdRecord {
    /// Cells that were to run.
    pub asked: u32,
    /// Cells that were created at the same time, at most.
    pub parallel: u32,
    /// Cells whose payload spoke.
    pub created: u32,
    /// Cells that were armed when the barrier opened.
    pub armed: u32,
    /// Cells whose loop ended in order.
    pub finished: u32,
    /// From the first request to an engine until the last payload spoke, ns.
    pub creation_ns: i64,
    /// From the first removal until every cell was gone, ns; `None` where there was nothing to remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_ns: Option<i64>,
    /// Memory of all cells while armed and idle; `None` where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<CrowdMemory>,
    /// What all cells together used of the cpus while they waited; `None` where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// What every cell held of the cpus; `None` where nothing was reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// How late the watchdog was scheduled; `None` where none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<WatchdogRecord>,
    /// What kept cells from starting; `None` where all started, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_out: Option<GaveOut>,
}

/// Sums over the cells that were armed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdMemory {
    /// Cells that were looked at.
    pub cells: u32,
    /// Proportional set of the payloads, bytes.
    pub payload_pss_bytes: u64,
    /// Resident set of the payloads, bytes.
    pub payload_rss_bytes: u64,
    /// Proportional set of all processes that live beside the payloads because of them, bytes.
    pub helpers_pss_bytes: u64,
    /// What the machine's kernel memory (slabs, stacks, page tables, per-cpu areas) grew by while they were created,
    /// bytes; `None` where it was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_bytes: Option<u64>,
}

/// Cpu time of all armed cells in a window in which nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Length of the window, ns.
    pub window_ns: i64,
    /// Cpu time of the payloads in it, ns.
    pub cpu_ns: i64,
}

/// A budget in every period: on each cpu by a real-time group, on whichever cpu by SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Budget, us.
    pub runtime_us: u64,
    /// In every so many us.
    pub period_us: u64,
    /// What held it; before this was on record, real-time groups did.
    #[serde(default = "groups")]
    pub enforcer: Enforcer,
}

fn groups() -> Enforcer {
    Enforcer::RtCgroup
}

/// What the watchdog saw of the coordinator's own share of the cpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogRecord {
    /// The longest that it was kept from running, ns.
    pub worst_delay_ns: i64,
    /// The delay at which it freezes all cells, ns.
    pub limit_ns: i64,
    /// Whether it did.
    pub froze: bool,
}

/// The limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GaveOut {
    /// What ran out, such as `process ids`.
    pub what: String,
    /// The limit, such as `/proc/sys/kernel/pid_max`.
    pub limit: String,
    /// Current use against the limit, such as `32,760 of 32,768`; `None` where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How to raise it, one sentence.
    pub mend: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_names_what_held_it_and_old_ones_were_groups() {
        let read = |text: &str| serde_json::from_str::<Reservation>(text).unwrap();
        let old = read(r#"{"runtime_us":14687,"period_us":1000000}"#);
        assert_eq!(old.enforcer, Enforcer::RtCgroup);
        let new = Reservation {
            enforcer: Enforcer::Deadline,
            ..old
        };
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.contains(r#""enforcer":"deadline""#), "{text}");
        assert_eq!(read(&text), new);
    }
}
