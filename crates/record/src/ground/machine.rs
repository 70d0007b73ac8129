//! Facts behind a kernel's supply.

use host::root::Root;
use host::{cpus, kernel, provenance, virt};
use model::Enforcer;
use serde::{Deserialize, Serialize};

/// A tick of 100 Hz, ns.
const SLOWEST_TICK_NS: u64 = 10_000_000;

/// Facts behind a kernel's supply. Two machines that agree in all of this supply alike, with any enforcer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the cpu.
    pub cpu_model: Option<String>,
    /// Cpus online.
    pub cpus: usize,
    /// Whether the machine is virtual; a hypervisor takes from every supply.
    pub virtual_machine: Option<bool>,
    /// Release of the kernel, such as `6.18.0`.
    pub kernel_release: Option<String>,
    /// Its build, such as `#1 SMP PREEMPT_RT Thu Jan 1`.
    pub kernel_version: Option<String>,
    /// Scheduler ticks per second (`CONFIG_HZ`).
    pub tick_hz: Option<u32>,
    /// Whether SCHED_DEADLINE ends runtimes with its own timer (HRTICK_DL) instead of the tick; no other enforcer's supply
    /// depends on it. `None`: unknown.
    pub deadline_by_timer: Option<bool>,
}

impl Machine {
    /// This machine, read from a few files: fast enough for every admission of a cell.
    pub fn here() -> Machine {
        let root = Root::live();
        Machine {
            cpu_model: provenance::cpu_model(&root),
            cpus: cpus::online_at(&root).unwrap_or_default().len(),
            virtual_machine: virt::detect(&root).virtual_machine,
            kernel_release: kernel::release(&root).ok(),
            kernel_version: kernel::version(&root).ok(),
            tick_hz: kernel::tick_hz(&root),
            deadline_by_timer: kernel::deadline_by_timer(&root),
        }
    }

    /// Length of the tick, ns; `None` if unknown.
    pub fn tick_ns(&self) -> Option<u64> {
        self.tick_hz.map(|hz| 1_000_000_000 / u64::from(hz.max(1)))
    }

    /// The same; if unknown, that of 100 Hz, the slowest in use.
    pub fn slowest_tick_ns(&self) -> u64 {
        self.tick_ns().unwrap_or(SLOWEST_TICK_NS)
    }

    /// How late a runtime of SCHED_DEADLINE may end, ns: [`Machine::slowest_tick_ns`], or 0 if a timer ends it.
    pub fn runtime_tick_ns(&self) -> u64 {
        match self.deadline_by_timer {
            Some(true) => 0,
            _ => self.slowest_tick_ns(),
        }
    }

    /// The first difference to another machine that matters for the supply of `enforcer`, as a clause: `it was measured on
    /// another machine (kernel 6.1, here 6.18)`. If the end of the runtimes of SCHED_DEADLINE is unknown, the tick is assumed,
    /// as by admission.
    pub fn difference(&self, here: &Machine, enforcer: Enforcer) -> Option<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let hz = |hz: Option<u32>| hz.map_or("unknown".to_owned(), |hz| format!("{hz} Hz"));
        let flag = |flag: Option<bool>| match flag {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => "unknown".to_owned(),
        };
        let by_timer = |machine: &Machine| {
            let counts = enforcer == Enforcer::Deadline;
            flag(Some(counts && machine.deadline_by_timer == Some(true)))
        };
        let all = [
            (
                "kernel",
                text(&self.kernel_release),
                text(&here.kernel_release),
            ),
            (
                "build of the kernel",
                text(&self.kernel_version),
                text(&here.kernel_version),
            ),
            ("tick", hz(self.tick_hz), hz(here.tick_hz)),
            (
                "timer for runtimes (HRTICK_DL)",
                by_timer(self),
                by_timer(here),
            ),
            ("cpu", text(&self.cpu_model), text(&here.cpu_model)),
            (
                "number of cpus",
                self.cpus.to_string(),
                here.cpus.to_string(),
            ),
            (
                "virtual machine",
                flag(self.virtual_machine),
                flag(here.virtual_machine),
            ),
        ];
        let differs = all.into_iter().find(|(_, then, now)| then != now);
        differs.map(|(what, then, now)| {
            format!("it was measured on another machine ({what} {then}, here {now})")
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn machine() -> Machine {
        Machine {
            cpu_model: Some("x".to_owned()),
            cpus: 2,
            virtual_machine: Some(true),
            kernel_release: Some("6.18.0".to_owned()),
            kernel_version: Some("#1 SMP".to_owned()),
            tick_hz: Some(250),
            deadline_by_timer: None,
        }
    }

    #[test]
    fn what_differs_is_named() {
        let of = Enforcer::RtCgroup;
        assert_eq!(machine().difference(&machine(), of), None);
        assert_eq!(machine().tick_ns(), Some(4_000_000));
        let untold = Machine {
            tick_hz: None,
            ..machine()
        };
        assert_eq!(
            (untold.tick_ns(), untold.slowest_tick_ns()),
            (None, 10_000_000)
        );
        let other = Machine {
            tick_hz: Some(1000),
            ..machine()
        };
        let said = machine().difference(&other, of).unwrap();
        assert!(said.contains("tick 250 Hz, here 1000 Hz"), "{said}");
        let other = Machine {
            kernel_release: None,
            ..machine()
        };
        assert!(
            machine()
                .difference(&other, of)
                .unwrap()
                .contains("kernel 6.18.0, here unknown")
        );
    }

    #[test]
    fn the_timer_for_runtimes_matters_to_sched_deadline_alone() {
        let by = |deadline_by_timer| Machine {
            deadline_by_timer,
            ..machine()
        };
        let [unknown, tick, timer] = [None, Some(false), Some(true)].map(by);
        let ticks = [&unknown, &tick, &timer].map(Machine::runtime_tick_ns);
        assert_eq!(ticks, [4_000_000, 4_000_000, 0]);
        for of in [Enforcer::RtCgroup, Enforcer::Freezer, Enforcer::Hcbs] {
            assert_eq!(tick.difference(&timer, of), None);
            assert_eq!(timer.difference(&unknown, of), None);
        }
        let of = Enforcer::Deadline;
        let said = tick.difference(&timer, of).unwrap();
        assert!(said.contains("(HRTICK_DL) no, here yes"), "{said}");
        assert!(timer.difference(&tick, of).is_some());
        assert!(timer.difference(&unknown, of).is_some());
        // Mounting debugfs makes no other machine of it.
        assert_eq!(unknown.difference(&tick, of), None);
        assert_eq!(tick.difference(&unknown, of), None);
    }

    #[test]
    fn this_machine_is_itself() {
        let here = Machine::here();
        assert_eq!(here.difference(&Machine::here(), Enforcer::Deadline), None);
        assert!(here.cpus > 0);
    }
}
