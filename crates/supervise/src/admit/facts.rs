//! Facts about the machine, for admission.

use std::borrow::Cow;
use std::path::PathBuf;

use analysis::linux::{Reaction, RootDomain};
use host::rt_threads::RtThread;
use model::Enforcer;
use model::mission::{Cell, Mission};
use record::supply::{Machine, MeasuredSupply, WorstReaction};
use text::units::exact;

use super::{HIGHEST_HELD, MachineMemory, Neighbour, Unaccounted};

/// The facts about the machine that admission needs. Collected once; nothing in admission looks at a machine itself.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Cpus that cells may use, ascending.
    pub cpus: Vec<u32>,
    /// The machine on which measurements of the supply must have been made.
    pub machine: Machine,
    /// Room for real-time groups, which may be none at this moment, or why this kernel has no such groups.
    pub rt_cgroup: Result<RtRoom, String>,
    /// Room for groups with budgets of cgroup v2 (`cpu.rt.max`), or why this kernel has no such budgets.
    pub hcbs: Result<ServerRoom, String>,
    /// Room for SCHED_DEADLINE on each cpu, or why it cannot be used.
    pub deadline: Result<RootDomain, String>,
    /// Whether a cpu can be made a root domain of its own, by a cpuset partition where there are several, so that threads of
    /// SCHED_DEADLINE can be kept to it, or why not: then they run on any cpu.
    pub deadline_on_one_cpu: Result<(), String>,
    /// Cpus that others keep from being made such a partition, or have as one themselves.
    pub kept_cpus: Vec<KeptCpu>,
    /// Whether groups can be held by the clock and the freezer of cgroup v2, or why not.
    pub freezer: Result<(), String>,
    /// Whether EVL has quotas, or why not.
    pub evl_quota: Result<(), String>,
    /// How many windows the frame of a cpu may have in EVL, or why it has no time partitions.
    pub evl_tp: Result<usize, String>,
    /// Memory of the machine, or why cells cannot be held to a limit of it.
    pub memory: Result<MachineMemory, String>,
    /// Whether a real-time class can be given at all, or why not.
    pub real_time: Result<(), String>,
    /// Cpus on which the supervisor runs, or why its threads cannot have a real-time class.
    pub supervisor: Result<Vec<u32>, String>,
    /// Others on this machine, with their grants.
    pub beside: Vec<Neighbour>,
    /// Real-time threads that nobody accounts for.
    pub outside: Vec<Unaccounted>,
    /// The kernel's own real-time threads.
    pub kernel: Vec<RtThread>,
    /// Groups that belong to users and may have any number of descendants.
    pub unlimited: Vec<PathBuf>,
    /// The worst reaction of the freezer that was measured on this machine; `None`: none was.
    pub measured_reaction: Option<Reaction>,
    /// The enforcer of running cells of the mission that leave it to timecell; it is not chosen again while they run.
    pub runs_under: Option<Enforcer>,
}

/// A cpu that cannot become a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCpu {
    /// The cpu.
    pub cpu: u32,
    /// Its owner and the way it is kept, a clause.
    pub by: String,
    /// Whether nobody else can run there at all.
    pub is_partition: bool,
}

/// Runtime free for real-time groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtRoom {
    /// Runtime of the top group, less that of its groups: us in every second, on each cpu alike; 0: all is taken.
    pub free_us: u64,
    /// The holders of the rest, the largest first.
    pub taken: Vec<RtShare>,
    /// The kernel's limit for all real-time threads of a cpu together, ns in every `limit_period_ns`; it stops them all when
    /// they have had it. `None`: no limit.
    pub limit_ns: Option<u64>,
    /// Period of that limit, ns.
    pub limit_period_ns: u64,
}

/// Runtime free for groups with budgets of cgroup v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRoom {
    /// Runtime left by `kernel.sched_rt_runtime_us` and the servers of ordinary work, less that of others. No thread is stopped beyond: the
    /// kernel admits no more.
    pub room: RtRoom,
    /// Reservation of the top group for all others, us in every second, on each cpu alike, including parts that are held.
    /// SCHED_DEADLINE cannot use that.
    pub reserved_us: u64,
}

/// One holder's share of the runtime of real-time groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtShare {
    /// The holder: one of [`Facts::beside`] by its name there, or somebody who is in no ledger.
    pub who: String,
    /// So much: us in every second, on each cpu alike.
    pub us: u64,
}

/// Holders that are named in one sentence.
const NAMED: usize = 4;

impl RtRoom {
    /// The holders with their shares, a clause; `None`: nobody holds anything.
    pub(super) fn takers(&self) -> Option<String> {
        let (named, more) = self.taken.split_at(self.taken.len().min(NAMED));
        let part = |share: &RtShare| format!("{} holds {}", share.who, exact(share.us * 1_000));
        let mut parts: Vec<String> = named.iter().map(part).collect();
        let us: u64 = more.iter().map(|share| share.us).sum();
        if us > 0 {
            let count = more.len();
            parts.push(format!("{count} more hold {}", exact(us * 1_000)));
        }
        (!parts.is_empty())
            .then(|| format!("of each second of real-time groups, {}", parts.join(", ")))
    }

    /// The same when one of them has ended.
    fn end(&mut self, who: &str) {
        let (ended, stay): (Vec<RtShare>, Vec<RtShare>) =
            (std::mem::take(&mut self.taken).into_iter()).partition(|share| share.who == who);
        let given: u64 = ended.iter().map(|share| share.us).sum();
        (self.taken, self.free_us) = (stay, self.free_us.saturating_add(given));
    }
}

/// The kernel's limit for all real-time threads of one cpu together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// So much, ns,
    pub(super) runtime_ns: u64,
    /// in any time of this length, ns.
    pub(super) period_ns: u64,
    /// The mechanism behind it.
    pub(super) by: LimitedBy,
}

/// The mechanism that keeps real-time threads from taking all of a cpu.
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
            // With budgets of cgroup v2, nothing is stopped for the use of all together.
            Err(_) if self.hcbs.is_ok() => None,
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

    /// The same machine once one of [`Facts::beside`] has ended and returned its grants.
    pub(super) fn end(&mut self, who: &str) {
        self.beside.retain(|other| other.who != who);
        if let Ok(room) = &mut self.rt_cgroup {
            room.end(who);
        }
        if let Ok(servers) = &mut self.hcbs {
            servers.room.end(who);
        }
    }

    /// Whether an enforcer works on this kernel, or why not; its room may be taken at the moment.
    ///
    /// # Errors
    /// The reason, as a clause.
    pub fn has(&self, enforcer: Enforcer) -> Result<(), String> {
        self.real_time.clone()?;
        match enforcer {
            Enforcer::RtCgroup => self.rt_cgroup.as_ref().map(|_| ()).map_err(Clone::clone),
            Enforcer::Deadline => self.deadline.as_ref().map(|_| ()).map_err(Clone::clone),
            Enforcer::Freezer => self.freezer.clone(),
            Enforcer::Hcbs => self.hcbs.as_ref().map(|_| ()).map_err(Clone::clone),
            Enforcer::EvlQuota => self.evl_quota.clone(),
            Enforcer::EvlTp => self.evl_tp.clone().map(drop),
            Enforcer::CpusetOnly => Ok(()),
        }
    }

    /// The runtime free for the groups of an enforcer whose groups the kernel admits together; `None`: it has no such
    /// groups.
    pub(super) fn room(&self, enforcer: Enforcer) -> Option<&RtRoom> {
        match enforcer {
            Enforcer::RtCgroup => self.rt_cgroup.as_ref().ok(),
            Enforcer::Hcbs => self.hcbs.as_ref().ok().map(|servers| &servers.room),
            _ => None,
        }
    }

    /// The best that the kernel has, whether there is room for it at this moment or not: a budget for a whole cell, a budget for each thread, no budget.
    pub fn best(&self) -> Enforcer {
        (Enforcer::OF_CHOICE.iter().copied())
            .find(|enforcer| self.has(*enforcer).is_ok())
            .unwrap_or(Enforcer::CpusetOnly)
    }

    /// The enforcer of a cell of class FIFO that leaves the mechanism to timecell: the first that there is and that can hold such a cell.
    pub(super) fn of_fifo(&self, cell: &Cell) -> Enforcer {
        let suits_freezer = || {
            let highest = cell.priorities.map(|band| band.highest);
            cell.cpu_count() == 1 && highest.is_none_or(|highest| highest <= HIGHEST_HELD)
        };
        let of_the_kernel = [Enforcer::RtCgroup, Enforcer::Hcbs];
        let mut here = of_the_kernel
            .into_iter()
            .filter(|each| self.has(*each).is_ok());
        match (here.next(), self.has(Enforcer::Freezer)) {
            (Some(enforcer), _) => enforcer,
            (None, Ok(())) if suits_freezer() => Enforcer::Freezer,
            (None, _) => Enforcer::CpusetOnly,
        }
    }

    /// How much longer than its budget a cell held by this can run, ns: until the kernel's tick, or the freezer's
    /// thread, checks.
    pub fn overdraw_ns(&self, enforcer: Enforcer) -> u64 {
        match enforcer {
            Enforcer::Freezer => self.reaction().overrun,
            // A timer ends them.
            Enforcer::EvlQuota | Enforcer::EvlTp => 0,
            _ => self.tick_ns(),
        }
    }

    /// How exact the freezer is: as measured on this machine, else as on another one.
    pub(super) fn reaction(&self) -> Reaction {
        self.measured_reaction.unwrap_or(Reaction::MEASURED)
    }

    /// The same machine with the worst reaction of the freezer that was measured on it, by this mission or those beside it.
    pub(super) fn reacting(&self, measured: &[MeasuredSupply]) -> Cow<'_, Facts> {
        let supplies = self.beside.iter().flat_map(|other| &other.supplies);
        let worst = WorstReaction::on(&self.machine, measured.iter().chain(supplies));
        match worst {
            None => Cow::Borrowed(self),
            Some(worst) => Cow::Owned(Facts {
                measured_reaction: Some(Reaction {
                    late: worst.late_ns,
                    overrun: worst.overrun_ns,
                    noticed: worst.noticed,
                }),
                ..self.clone()
            }),
        }
    }

    /// The same machine without the cpus that leave Linux for partitions, of this mission or those beside it.
    pub(super) fn beside_partitions(&self, mission: &Mission) -> Cow<'_, Facts> {
        let beside = self.beside.iter().flat_map(|other| &other.partition_cpus);
        let leave: Vec<u32> = (mission.partition_cpus().into_iter())
            .chain(beside.copied())
            .filter(|cpu| self.cpus.contains(cpu))
            .collect();
        if leave.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut facts = self.clone();
        facts.cpus.retain(|cpu| !leave.contains(cpu));
        if let Ok(domain) = &mut facts.deadline {
            domain.capacities.truncate(facts.cpus.len());
        }
        if let Ok(cpus) = &mut facts.supervisor {
            cpus.retain(|cpu| !leave.contains(cpu));
        }
        Cow::Owned(facts)
    }

    /// The worst reaction of the freezer that those beside know of on this machine; `None`: none of them does.
    pub(crate) fn measured_beside(&self) -> Option<Reaction> {
        self.reacting(&[]).measured_reaction
    }

    /// Length of the scheduler's tick, ns; where the kernel does not say, that of 100 Hz, the longest in use.
    pub fn tick_ns(&self) -> u64 {
        self.machine.slowest_tick_ns()
    }
}
