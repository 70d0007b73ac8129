//! The mechanisms of Linux that hold cells to their grants, each described once. Files, options, tables and help take their descriptions from here.

use serde::{Deserialize, Serialize};

use crate::Choice;
use crate::file::names_of;
use crate::mission::CellClass;

/// A Linux mechanism that holds cells to their budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcer {
    /// Real-time groups of the cpu controller (cgroup v1, CONFIG_RT_GROUP_SCHED): a budget for the whole cell on each of its
    /// cpus.
    RtCgroup,
    /// SCHED_DEADLINE: a budget for each thread. A task set that names no mechanism is analysed for it.
    #[default]
    Deadline,
    /// Hierarchical constant bandwidth servers, `cpu.rt.max` of cgroup v2: a budget for the whole cell on each of its cpus.
    Hcbs,
    /// A thread that runs before all cells and thaws and freezes their groups by the clock, `cgroup.freeze` of cgroup v2: a
    /// budget for the whole cell on each of its cpus.
    Freezer,
    /// Quota groups of EVL, for threads that run out of band: a percentage of EVL's period for the whole cell on each of its cpus. A thread
    /// enters its group by itself, and could leave it.
    EvlQuota,
    /// Time partitions of EVL, for threads that run out of band: windows of a frame that repeats, on each of the cell's cpus. A thread
    /// enters its partition by itself, and could leave it.
    EvlTp,
    /// Cpus of their own and nothing else: no budget is enforced.
    CpusetOnly,
}

/// Everything that depends on the enforcer.
struct Description {
    name: &'static str,
    summary: &'static str,
    /// The real-time scheduling classes whose threads it holds; the first is the usual one.
    classes: &'static [CellClass],
}

impl Choice for Enforcer {
    const VALUES: &'static [Enforcer] = Enforcer::ALL;
    const WORDS: &'static [&'static str] = &names_of!([], Enforcer::ALL);
}

impl Enforcer {
    /// All of them, in the order in which they are shown side by side.
    pub const ALL: &'static [Enforcer] = &[
        Enforcer::RtCgroup,
        Enforcer::Deadline,
        Enforcer::Hcbs,
        Enforcer::Freezer,
        Enforcer::EvlQuota,
        Enforcer::EvlTp,
        Enforcer::CpusetOnly,
    ];

    /// Those that hold the cells of a mission, the best first: one that is not in [`Enforcer::OF_CHOICE`] is taken only by its name.
    ///
    /// Those by which the kernel holds whole cells come first, then those thread by thread; no kernel has both mechanisms for whole cells.
    pub const OF_MISSIONS: &'static [Enforcer] = &[
        Enforcer::RtCgroup,
        Enforcer::Hcbs,
        Enforcer::Deadline,
        Enforcer::Freezer,
        Enforcer::CpusetOnly,
        Enforcer::EvlQuota,
        Enforcer::EvlTp,
    ];

    /// Those among which timecell chooses where the mission names none, in the same order.
    pub const OF_CHOICE: &'static [Enforcer] = &[
        Enforcer::RtCgroup,
        Enforcer::Hcbs,
        Enforcer::Deadline,
        Enforcer::Freezer,
        Enforcer::CpusetOnly,
    ];

    /// Those whose admission or supply `analyze` models.
    pub const OF_ANALYSIS: &'static [Enforcer] = &[
        Enforcer::Deadline,
        Enforcer::RtCgroup,
        Enforcer::Hcbs,
        Enforcer::Freezer,
    ];

    /// Those under which `bench` measures cells: supply, temporal isolation, task sets.
    pub const OF_BENCH: &'static [Enforcer] = &[
        Enforcer::RtCgroup,
        Enforcer::Deadline,
        Enforcer::Hcbs,
        Enforcer::Freezer,
    ];

    /// Those whose supply `bench supply` measures: with those of [`Enforcer::OF_BENCH`], which it measures unasked, those that hold threads
    /// out of band.
    pub const OF_SUPPLY: &'static [Enforcer] = &[
        Enforcer::RtCgroup,
        Enforcer::Deadline,
        Enforcer::Hcbs,
        Enforcer::Freezer,
        Enforcer::EvlQuota,
        Enforcer::EvlTp,
    ];

    /// Those that divide a machine among the cells in `bench scale`.
    pub const OF_SCALE: &'static [Enforcer] = &[Enforcer::RtCgroup, Enforcer::Deadline];

    const fn description(self) -> Description {
        match self {
            Enforcer::RtCgroup => Description {
                name: "rt-cgroup",
                summary: "Real-time groups of cgroup v1 (RT_GROUP_SCHED)",
                classes: &[CellClass::Fifo],
            },
            Enforcer::Deadline => Description {
                name: "deadline",
                summary: "SCHED_DEADLINE, for each thread",
                classes: &[CellClass::Deadline],
            },
            Enforcer::Hcbs => Description {
                name: "hcbs",
                summary: "Hierarchical constant bandwidth servers, cpu.rt.max of cgroup v2",
                classes: &[CellClass::Fifo],
            },
            Enforcer::Freezer => Description {
                name: "freezer",
                summary: "Budgets by the clock and the freezer, cgroup.freeze of cgroup v2",
                classes: &[CellClass::Fifo],
            },
            Enforcer::EvlQuota => Description {
                name: "evl-quota",
                summary: "Quota groups of EVL, for threads out of band",
                classes: &[CellClass::Fifo],
            },
            Enforcer::EvlTp => Description {
                name: "evl-tp",
                summary: "Time partitions of EVL, for threads out of band",
                classes: &[CellClass::Fifo],
            },
            Enforcer::CpusetOnly => Description {
                name: "cpuset-only",
                summary: "Cpus of their own, no budgets",
                classes: &[CellClass::Fifo, CellClass::Deadline],
            },
        }
    }

    /// The name used in files, options and tables.
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// Its description, in a few words for `--help`.
    pub const fn summary(self) -> &'static str {
        self.description().summary
    }

    /// The enforcer of this name in `among`.
    pub fn named(name: &str, among: &[Enforcer]) -> Option<Enforcer> {
        (among.iter().copied()).find(|each| each.name() == name)
    }

    /// The names of these, each with its enforcer.
    pub fn names(of: &[Enforcer]) -> Vec<(&'static str, Enforcer)> {
        of.iter().map(|each| (each.name(), *each)).collect()
    }

    /// Whether it holds anything to a budget, so that there is a supply to analyse.
    pub const fn has_budgets(self) -> bool {
        !matches!(self, Enforcer::CpusetOnly)
    }

    /// Whether it holds each thread to a budget of its own, on whichever cpu the thread runs, rather than a whole cell on each of its
    /// cpus.
    pub const fn is_by_thread(self) -> bool {
        matches!(self, Enforcer::Deadline)
    }

    /// Whether a cell that does not use up its budget runs as if nothing held it, so that budgets can be ample. SCHED_DEADLINE
    /// and its servers order cells by their periods instead.
    pub const fn has_ample_budgets(self) -> bool {
        matches!(
            self,
            Enforcer::RtCgroup | Enforcer::Freezer | Enforcer::EvlQuota
        )
    }

    /// Whether it holds threads out of band only, which enter their group or partition by themselves: cells with `rights.evl`.
    pub const fn is_out_of_band(self) -> bool {
        matches!(self, Enforcer::EvlQuota | Enforcer::EvlTp)
    }

    /// Whether it holds a cgroup v2 group around the cell's own, which must then exist.
    pub const fn holds_outer_group(self) -> bool {
        matches!(self, Enforcer::Hcbs | Enforcer::Freezer)
    }

    /// Whether the kernel itself enforces the budgets.
    pub const fn is_of_the_kernel(self) -> bool {
        matches!(
            self,
            Enforcer::RtCgroup
                | Enforcer::Deadline
                | Enforcer::Hcbs
                | Enforcer::EvlQuota
                | Enforcer::EvlTp
        )
    }

    /// Whether cells of this class can be held by it. A real-time group does not hold SCHED_DEADLINE threads, and
    /// SCHED_DEADLINE no SCHED_FIFO threads; best-effort cells are not held, and need not be.
    pub fn holds(self, class: CellClass) -> bool {
        class == CellClass::Other || self.description().classes.contains(&class.analysed())
    }

    /// The class of a cell's threads under it, unless the cell sets another one.
    pub const fn usual_class(self) -> CellClass {
        self.description().classes[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_in_files_and_records() {
        for enforcer in Enforcer::ALL {
            assert_eq!(
                Enforcer::named(enforcer.name(), Enforcer::ALL),
                Some(*enforcer)
            );
            let json = serde_json::to_string(enforcer).unwrap();
            assert_eq!(json, format!("{:?}", enforcer.name()));
            assert!(enforcer.holds(enforcer.usual_class()));
        }
        assert_eq!(Enforcer::named("hcbs", Enforcer::OF_SCALE), None);
    }
}
