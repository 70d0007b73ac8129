//! What admission knows of the machine.

use analysis::linux::RootDomain;
use model::Enforcer;
use record::supply::Machine;

use super::{MachineMemory, Neighbour, Unaccounted};

/// What admission needs to know of the machine. Collected once; nothing in admission looks at a machine itself.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Cpus that cells may use, ascending.
    pub cpus: Vec<u32>,
    /// What measurements of the supply must have been made on.
    pub machine: Machine,
    /// Room for real-time groups, or why there are none.
    pub rt_cgroup: Result<RtRoom, String>,
    /// Room for SCHED_DEADLINE on each cpu, or why it cannot be used.
    pub deadline: Result<RootDomain, String>,
    /// Whether a cpu can be made a root domain of its own, so that threads of SCHED_DEADLINE can be kept to it, or why not:
    /// then they run on any cpu.
    pub deadline_on_one_cpu: Result<(), String>,
    /// Memory of the machine, or why cells cannot be held to a limit of it.
    pub memory: Result<MachineMemory, String>,
    /// Whether a real-time class can be given at all, or why not.
    pub real_time: Result<(), String>,
    /// Cpus on which the supervisor runs, or why its threads cannot have a real-time class.
    pub supervisor: Result<Vec<u32>, String>,
    /// What others on this machine hold.
    pub beside: Vec<Neighbour>,
    /// Real-time threads that nobody accounts for.
    pub outside: Vec<Unaccounted>,
}

/// What is free for real-time groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtRoom {
    /// What the top group has, less what its groups hold already: us in every second, on each cpu alike.
    pub free_us: u64,
    /// What the kernel lets all real-time threads of a cpu have together, ns in every `limit_period_ns`; it stops them all when
    /// they have had it. `None`: as much as they want.
    pub limit_ns: Option<u64>,
    /// Period of that limit, ns.
    pub limit_period_ns: u64,
}

/// What the kernel lets all real-time threads of one cpu have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// So much, ns,
    pub(super) runtime_ns: u64,
    /// in any time of this length, ns.
    pub(super) period_ns: u64,
    /// What happens beyond.
    pub(super) by: LimitedBy,
}

/// What keeps real-time threads from taking all of a cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitedBy {
    /// `kernel.sched_rt_runtime_us`: threads of class FIFO are stopped until the period is over.
    Throttling,
    /// Linux 6.12 and later: ordinary threads go before them when they had too little of the period.
    FairServer,
}

impl Facts {
    /// The limits of this machine that leave less than everything. Real-time groups have that of the group at the top; where there
    /// are none, the one of the sysctl is believed, though a kernel that has the fair server and no groups does not ask for it.
    pub(super) fn limits(&self) -> Vec<Limit> {
        let domain = self.deadline.as_ref().ok();
        let throttling = match &self.rt_cgroup {
            Ok(room) => room.limit_ns.map(|limit| (limit, room.limit_period_ns)),
            Err(_) => domain.and_then(|domain| Some((domain.share.runtime?, domain.share.period))),
        };
        let server = domain.and_then(|domain| domain.fair_server);
        let server = server.and_then(|server| {
            let left = server.period.checked_sub(server.runtime?)?;
            Some((left, server.period))
        });
        let both = [
            (throttling, LimitedBy::Throttling),
            (server, LimitedBy::FairServer),
        ];
        (both.into_iter())
            .filter_map(|(limit, by)| limit.map(|limit| (limit, by)))
            .filter(|((runtime, period), _)| runtime < period)
            .map(|((runtime_ns, period_ns), by)| Limit {
                runtime_ns,
                period_ns,
                by,
            })
            .collect()
    }

    /// Whether an enforcer works here, or why not.
    ///
    /// # Errors
    /// The reason, as a clause.
    pub fn has(&self, enforcer: Enforcer) -> Result<(), String> {
        self.real_time.clone()?;
        match enforcer {
            Enforcer::RtCgroup => self.rt_cgroup.as_ref().map(|_| ()).map_err(Clone::clone),
            Enforcer::Deadline => self.deadline.as_ref().map(|_| ()).map_err(Clone::clone),
            Enforcer::Hcbs => Err("timecell holds no cells by it yet".to_owned()),
            Enforcer::CpusetOnly => Ok(()),
        }
    }

    /// The best that the kernel has: a budget for a whole cell, a budget for each thread, no budget.
    pub fn best(&self) -> Enforcer {
        (Enforcer::OF_MISSIONS.iter().copied())
            .find(|enforcer| self.has(*enforcer).is_ok())
            .unwrap_or(Enforcer::CpusetOnly)
    }

    /// Length of the scheduler's tick, ns; that of 100 Hz, the longest in use, where the kernel does not tell.
    pub fn tick_ns(&self) -> u64 {
        self.machine.tick_ns().unwrap_or(10_000_000)
    }
}
