//! Record of a trial of many cells besides the cells: creation, memory and cpu time while they wait, and the shortage if
//! not all could be created.

use model::Enforcer;
use serde::{Deserialize, Serialize};

/// Many cells of one engine, created in parallel and released together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdRecord {
    /// Planned cells.
    pub asked: u32,
    /// Maximum number of cells that were created at the same time.
    pub parallel: u32,
    /// Cells whose payload sent its first message.
    pub created: u32,
    /// Cells that were armed when the barrier opened.
    pub armed: u32,
    /// Cells whose loop ended normally.
    pub finished: u32,
    /// From the first request to an engine until the last payload's first message, ns.
    pub creation_ns: i64,
    /// From the first removal until every cell was gone, ns; `None` if there was nothing to remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal_ns: Option<i64>,
    /// Memory of all cells while armed and idle; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<CrowdMemory>,
    /// Cpu use of all cells together while they waited; `None` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The reservation of every cell; `None` if nothing was reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// How late the watchdog was scheduled; `None` if none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<WatchdogRecord>,
    /// The limit that stopped cells; `None` if all started, or if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_out: Option<GaveOut>,
}

/// Sums over the cells that were armed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdMemory {
    /// Cells that were measured.
    pub cells: u32,
    /// Proportional set size of the payloads, bytes.
    pub payload_pss_bytes: u64,
    /// Resident set size of the payloads, bytes.
    pub payload_rss_bytes: u64,
    /// Proportional set size of all helper processes of the payloads, bytes.
    pub helpers_pss_bytes: u64,
    /// Growth of the machine's kernel memory (slabs, stacks, page tables, per-cpu areas) while they were created, bytes;
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_bytes: Option<u64>,
}

/// Cpu time of all armed cells in an idle window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Length of the window, ns.
    pub window_ns: i64,
    /// Cpu time of the payloads in it, ns.
    pub cpu_ns: i64,
}

/// A budget in every period: on each cpu with a real-time group, on any cpu with SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Budget, us.
    pub runtime_us: u64,
    /// Period, us.
    pub period_us: u64,
    /// The enforcer; records without this field mean real-time groups.
    #[serde(default = "groups")]
    pub enforcer: Enforcer,
}

fn groups() -> Enforcer {
    Enforcer::RtCgroup
}

/// How long the watchdog was kept from running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogRecord {
    /// The longest time that it was kept from running, ns.
    pub worst_delay_ns: i64,
    /// The delay at which it freezes all cells, ns.
    pub limit_ns: i64,
    /// Whether it froze them.
    pub froze: bool,
    /// The priorities; `None` in records from before they were noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,
}

/// SCHED_FIFO priorities while the cells ran, 1 to 99; 0: another class. Those of the coordinator and the watchdog were
/// granted by the kernel, that of the cells was found on each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priorities {
    /// Of the thread that releases the cells and waits for them.
    pub coordinator: u8,
    /// Of the thread that stops them.
    pub watchdog: u8,
    /// Of the cells.
    pub cells: u8,
}

impl Priorities {
    /// Whether nothing that the cells do can keep the coordinator and the watchdog from running: both are above cells of a
    /// real-time class. Cells without one share the cpu with them under the fair scheduler.
    pub fn guarded(&self) -> bool {
        self.cells == 0 || (self.coordinator > self.cells && self.watchdog > self.cells)
    }
}

/// The limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GaveOut {
    /// The resource, such as `process ids`.
    pub what: String,
    /// The limit, such as `/proc/sys/kernel/pid_max`.
    pub limit: String,
    /// Current use against the limit, such as `32,760 of 32,768`; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How to raise it, one sentence.
    #[serde(alias = "mend")]
    pub fix: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_of_before_its_priority_was_noted_is_read() {
        let old = r#"{"worst_delay_ns":5,"limit_ns":9,"froze":false}"#;
        let read: WatchdogRecord = serde_json::from_str(old).unwrap();
        assert_eq!((read.worst_delay_ns, read.priorities), (5, None));
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
        let new = WatchdogRecord {
            priorities: Some(Priorities {
                coordinator: 90,
                watchdog: 91,
                cells: 80,
            }),
            ..read
        };
        let text = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<WatchdogRecord>(&text).unwrap(), new);
    }

    #[test]
    fn cells_are_guarded_by_who_stands_above_them() {
        let guarded = |coordinator, watchdog, cells| {
            let of = Priorities {
                coordinator,
                watchdog,
                cells,
            };
            of.guarded()
        };
        assert!(guarded(90, 91, 80) && guarded(99, 99, 98));
        assert!(!guarded(99, 99, 99) && !guarded(0, 91, 80) && !guarded(90, 0, 80));
        assert!(guarded(0, 0, 0));
    }

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
