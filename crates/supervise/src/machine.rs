//! The facts about this machine that the mission file and admission need. Only reads; nothing is changed.

use std::cell::RefCell;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use analysis::linux::{Bandwidth, DeadlineLimits, RootDomain};
use engine::app::{self, AppSpec, Bind, Tmpfs};
use host::root::Root;
use host::{caps, cpus, enforcers, fair_server, hcbs, rtgroup};
use model::mission::{Cell, KernelBounds, Machine, Mission, MissionFile, Partition, PathKind, Way};
use model::{EngineKind, Requirement};

use crate::admit::{Facts, KeptCpu, MachineMemory, RtRoom, RtShare, ServerRoom};
use crate::enforce::partitions;
use crate::ledger::{self, Entry, Holder};
use crate::names;

/// This machine.
#[derive(Debug)]
pub struct Here {
    root: Root,
    asks_for_images: bool,
    /// Engines that were asked and lack nothing. One that lacks something is asked again: somebody may have installed it.
    fit: RefCell<Vec<EngineKind>>,
}

impl Default for Here {
    fn default() -> Here {
        Here {
            root: Root::live(),
            asks_for_images: true,
            fit: RefCell::default(),
        }
    }
}

impl Here {
    /// The same for a thread that must not wait: no engine is asked for its images, which can take seconds, so an
    /// unknown image shows only when the cell is created.
    #[must_use]
    pub fn without_images(self) -> Here {
        Here {
            asks_for_images: false,
            ..self
        }
    }
}

impl Machine for Here {
    fn cpus(&self) -> Vec<u32> {
        cpus::online_at(&self.root).unwrap_or_default()
    }

    fn path(&self, path: &Path) -> PathKind {
        let Ok(found) = std::fs::metadata(path) else {
            return PathKind::Absent;
        };
        let kind = found.file_type();
        if kind.is_dir() {
            PathKind::Directory
        } else if kind.is_char_device() || kind.is_block_device() {
            PathKind::Device
        } else if kind.is_file() && found.permissions().mode() & 0o111 != 0 {
            PathKind::Program
        } else if kind.is_file() {
            PathKind::File
        } else {
            PathKind::Other
        }
    }

    fn way(&self, path: &Path) -> Option<Way> {
        crate::way::of(path).ok()
    }

    fn lacks(&self, engine: EngineKind) -> Option<Requirement> {
        if self.fit.borrow().contains(&engine) {
            return None;
        }
        let lacking = app::unmet(engine);
        if lacking.is_none() {
            self.fit.borrow_mut().push(engine);
        }
        lacking
    }

    fn knows_image(&self, engine: EngineKind, reference: &str) -> Option<bool> {
        let knows = || app::knows_image(engine, reference);
        self.asks_for_images.then(knows).flatten()
    }

    fn vcpus(&self, cell: &Cell) -> Result<u32, Requirement> {
        let machine = engine::Machine::of(&cell.machine, &|what| eprintln!("{what}"))?;
        Ok(machine.vcpus)
    }

    fn least_memory(&self, cell: &Cell, program: &Path) -> Option<u64> {
        app::least_memory(&cell.machine, program)
    }

    fn refuses_partition(
        &self,
        (mission, cell): (&Mission, &Cell),
        partition: &Partition,
        system: &Path,
        files: &[(PathBuf, u64)],
        beside: &[(&str, &Partition)],
    ) -> Vec<String> {
        app::refuses_partition(
            (&mission.name, &cell.name),
            partition,
            system,
            files,
            beside,
        )
    }

    fn refuses_image(&self, cell: &Cell, image: &Path) -> Option<String> {
        let mut spec = spec(cell, image)?;
        spec.binds = (cell.rights.mounts.iter())
            .map(|mount| Bind::new(&mount.source, &mount.target, mount.writable))
            .collect();
        spec.tmpfs = (cell.rights.tmpfs.iter())
            .map(|tmpfs| Tmpfs {
                target: tmpfs.target.clone(),
                size_bytes: tmpfs.size.bytes(),
            })
            .collect();
        app::check_image(&spec).err().map(|why| why.to_string())
    }

    fn refuses_program(&self, cell: &Cell, image: &Path) -> Option<String> {
        let mut spec = spec(cell, image)?;
        spec.command.clone_from(&cell.command);
        spec.env.clone_from(&cell.env);
        spec.cwd.clone_from(&cell.workdir);
        app::check_program(&spec).err().map(|why| why.to_string())
    }

    fn bounds(&self) -> KernelBounds {
        let number = |file: &str| {
            self.root
                .read_number::<i64>(format!("/proc/sys/kernel/{file}"))
                .ok()
        };
        let standard = KernelBounds::default();
        let us = |file: &str, standard: i64| {
            number(file).map_or(standard, |us| us.saturating_mul(1_000))
        };
        KernelBounds {
            deadline_period_min_ns: us(
                "sched_deadline_period_min_us",
                standard.deadline_period_min_ns,
            ),
            deadline_period_max_ns: us(
                "sched_deadline_period_max_us",
                standard.deadline_period_max_ns,
            ),
            rt_period_ns: us("sched_rt_period_us", standard.rt_period_ns).max(1_000),
            rt_runtime_ns: match number("sched_rt_runtime_us") {
                Some(us) if us < 0 => None,
                Some(us) => Some(us.saturating_mul(1_000)),
                None => standard.rt_runtime_ns,
            },
        }
    }
}

impl Here {
    /// Its memory, where cells can be held to a limit of it.
    fn memory(&self) -> Result<MachineMemory, String> {
        let cgroups = host::cgroup::detect_at(&self.root).map_err(|error| error.to_string())?;
        let v2 = (cgroups.v2.iter()).flat_map(|mount| &mount.controllers);
        if cgroups.v1_mount("memory").is_none() && !v2.into_iter().any(|name| name == "memory") {
            return Err("there is no memory controller".to_owned());
        }
        let text = (self.root.read("/proc/meminfo")).map_err(|error| error.to_string())?;
        let bytes = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            let number = line.split_whitespace().next()?;
            number.parse::<u64>().ok()?.checked_mul(1024)
        };
        match (bytes("MemTotal:"), bytes("MemAvailable:")) {
            (Some(total_bytes), Some(available_bytes)) => Ok(MachineMemory {
                total_bytes,
                available_bytes,
            }),
            _ => Err("/proc/meminfo does not say what is free".to_owned()),
        }
    }

    /// Whether there is a freezer that holds budgets.
    fn freezer(&self) -> Result<(), String> {
        let top = freezer::hold::top(&self.root);
        top.map(drop).map_err(|error| error.to_string())
    }

    /// The facts that admission needs.
    pub fn facts(&self) -> Facts {
        let bounds = self.bounds();
        Facts {
            cpus: self.cpus(),
            machine: record::supply::Machine::here(),
            rt_cgroup: rt_room(None, &[]),
            hcbs: server_room(None, &[]),
            deadline: self.deadline(&bounds),
            deadline_on_one_cpu: match self.cpus().as_slice() {
                [_] => Ok(()),
                _ => partitions().map(drop).map_err(|why| why.to_string()),
            },
            kept_cpus: kept_cpus(None),
            freezer: self.freezer(),
            evl_quota: enforcers::evl_quota(&self.root).map_err(|why| why.to_string()),
            evl_tp: enforcers::evl_tp(&self.root).map_err(|why| why.to_string()),
            memory: self.memory(),
            real_time: may_be_real_time(),
            supervisor: self.supervisor(),
            beside: Vec::new(),
            outside: Vec::new(),
            kernel: host::rt_threads::of_the_kernel(&self.root),
            unlimited: host::doctor::unlimited_groups(&Root::live()),
            measured_reaction: None,
            runs_under: None,
        }
    }

    /// The cpus on which this process may run, if its threads can have the class that a supervisor reserves for itself.
    fn supervisor(&self) -> Result<Vec<u32>, String> {
        may_be_real_time()?;
        crate::reserve::can_be_had()?;
        let own = crate::reserve::affinity().map_err(|error| error.to_string())?;
        let online = self.cpus();
        Ok(own.into_iter().filter(|cpu| online.contains(cpu)).collect())
    }

    /// The root domain of the whole machine, without the part that others may hold already: the kernel tells nobody.
    fn deadline(&self, bounds: &KernelBounds) -> Result<RootDomain, String> {
        enforcers::deadline(&self.root).map_err(|why| why.to_string())?;
        let cpus = self.cpus();
        let mut domain = RootDomain::of_cpus(cpus.len());
        domain.share = match bounds.rt_runtime_ns {
            Some(runtime) => {
                Bandwidth::new(runtime.unsigned_abs(), bounds.rt_period_ns.unsigned_abs())
            }
            None => Bandwidth {
                runtime: None,
                ..Bandwidth::default()
            },
        };
        domain.limits = DeadlineLimits {
            least_period: bounds.deadline_period_min_ns.unsigned_abs(),
            longest_period: bounds.deadline_period_max_ns.unsigned_abs(),
        };
        domain.fair_server = fair_server::most(&self.root, &cpus)
            .map(|server| Bandwidth::new(server.runtime_ns, server.period_ns));
        Ok(domain)
    }
}

impl Facts {
    /// The same machine for this mission, beside `others`, as it is now: others' holdings may have come and gone, and
    /// those of the mission's own cells, if it already runs, are left to it. `cells` are processes that are known to be
    /// cells of it.
    pub fn for_mission(&self, mission: &str, others: &[Entry], cells: &[i32]) -> Facts {
        Facts {
            rt_cgroup: rt_room(Some(mission), others),
            hcbs: server_room(Some(mission), others),
            outside: ledger::unaccounted(others, Some(mission), cells),
            kept_cpus: kept_cpus(Some(mission)),
            beside: others.iter().map(Entry::neighbour).collect(),
            ..self.clone()
        }
    }

    /// The same machine beside `others`, for no mission: with others' holdings as they are now. `own` are processes that are known to be
    /// the subject.
    pub(crate) fn for_held(&self, others: &[Entry], own: &[i32]) -> Facts {
        Facts {
            rt_cgroup: rt_room(None, others),
            hcbs: server_room(None, others),
            outside: ledger::unaccounted(others, None, own),
            beside: others.iter().map(Entry::neighbour).collect(),
            ..self.clone()
        }
    }

    /// The same where the mission already has this entry: the enforcer of its running cells is not chosen again.
    #[must_use]
    pub fn taking_over(self, mission: &Mission, own: Option<&Entry>) -> Facts {
        Facts {
            runs_under: own.and_then(|own| own.usual(mission)),
            ..self
        }
    }
}

/// The share that real-time groups have left for cells, and which of `others` has the rest; the share of the groups of
/// `mission`, if they are there, counts as left: its cells are the subject.
///
/// # Errors
/// Why this kernel has no such groups, a clause.
fn rt_room(mission: Option<&str>, others: &[Entry]) -> Result<RtRoom, String> {
    let root = Root::live();
    let (top, budget) = enforcers::rt_cgroup(&root).map_err(|why| why.to_string())?;
    // Groups of its cells are in every hierarchy, here without a budget.
    let own = mission.map(|mission| [names::groups_of(mission), names::cells_of(mission)]);
    let own = own.as_ref().map_or(&[][..], |own| own.as_slice());
    let mut shares = rtgroup::shares_in(&root, &top);
    shares.retain(|(group, _)| !own.iter().any(|own| group.starts_with(own)));
    let taken = takers(&shares, others);
    let held = taken.iter().map(|share| share.us);
    let limit_us = u64::try_from(budget.runtime_us).ok();
    Ok(RtRoom {
        free_us: (budget.per_second_us()).saturating_sub(held.fold(0, u64::saturating_add)),
        taken,
        limit_ns: limit_us.map(|us| us.saturating_mul(1_000)),
        limit_period_ns: budget.period_us.saturating_mul(1_000),
    })
}

/// The share that groups with budgets of cgroup v2 can have, and which of `others` has the rest; the mission's own share, held or
/// reserved, counts as left.
///
/// # Errors
/// Why this kernel has no such budgets, a clause.
fn server_room(mission: Option<&str>, others: &[Entry]) -> Result<ServerRoom, String> {
    let top = hcbs::Top::of_this_machine().map_err(|error| error.to_string())?;
    let root = top.root();
    let reserved = hcbs::reserved(root, top.path()).map_err(|error| error.to_string())?;
    let note = top.note().map_err(|error| error.to_string())?;
    let mut shares = hcbs::shares_in(root, top.path());
    let reserved_us = match (&note, mission) {
        (Some(note), Some(mission)) => note.reserved_without(&names::cells_of(mission), &shares),
        _ => reserved.per_second_us(),
    };
    // A reservation counts for its holder, whether the groups of its cells exist at the moment or not.
    let own = mission.map(names::cells_of);
    let noted: Vec<&str> = note.iter().flat_map(|note| note.owners()).collect();
    let all = shares.clone();
    shares.retain(|(group, _)| {
        let mut known = noted.iter().copied().chain(own.as_deref());
        !known.any(|owner| group.starts_with(owner))
    });
    for other in (noted.iter().copied()).filter(|other| Some(*other) != own.as_deref()) {
        let us = note.as_ref().map_or(0, |note| note.held_by(other, &all));
        let who = match names::mission_of_cells(other) {
            Some(mission) => names::groups_of(mission),
            None => other.trim_end_matches('-').to_owned(),
        };
        shares.push((who, us));
    }
    let taken = takers(&shares, others);
    let held = taken.iter().map(|share| share.us);
    let held_us = held.fold(hcbs::ordinary_us(root), u64::saturating_add);
    Ok(ServerRoom {
        room: RtRoom {
            free_us: hcbs::limit_us(root).saturating_sub(held_us),
            taken,
            limit_ns: None,
            limit_period_ns: 1_000_000_000,
        },
        reserved_us,
    })
}

/// The cpus that groups at the top of cgroup v2 keep from being made partitions, but for those of this mission.
fn kept_cpus(mission: Option<&str>) -> Vec<KeptCpu> {
    let Ok(partitions) = partitions() else {
        return Vec::new();
    };
    // Its cells that belong elsewhere are recreated there.
    let own = mission.map(|mission| [names::partitions_of(mission), names::cells_of(mission)]);
    let own: Vec<&str> = own.iter().flatten().map(String::as_str).collect();
    let kept = partitions.kept(&own).into_iter();
    kept.map(|kept| {
        let of_mission = (kept.group.strip_prefix(host::isolate::PARTITION_PREFIX))
            .and_then(|rest| rest.rsplit_once('.'));
        let group = kept.group.escape_debug();
        let by = match (of_mission, kept.is_partition) {
            (Some((mission, _)), true) => {
                format!("mission `{mission}` has it as a cpuset partition")
            }
            (_, true) => format!("the cgroup `{group}` has it as a cpuset partition"),
            (_, false) => format!("the cgroup `{group}` has it in its cpuset"),
        };
        KeptCpu {
            cpu: kept.cpu,
            by,
            is_partition: kept.is_partition,
        }
    })
    .collect()
}

/// The owners of the groups that hold us of every second: those of each of `others` together, then each unowned one.
fn takers(shares: &[(String, u64)], others: &[Entry]) -> Vec<RtShare> {
    let is_of = |group: &str, entry: &Entry| match &entry.holder {
        Holder::Mission { name, .. } => group.starts_with(&names::groups_of(name)),
        Holder::Bench { pid, .. } => group == names::group_of_bench(*pid),
        Holder::Held { .. } => false,
    };
    let mut taken: Vec<RtShare> = Vec::new();
    for (group, us) in shares {
        let holder = others.iter().find(|entry| is_of(group, entry));
        let who = match holder {
            Some(entry) => entry.who(),
            None if group.starts_with("timecell-") => {
                format!(
                    "something of timecell that is in no ledger (group `{group}`; see `timecell clean`)"
                )
            }
            None => format!(
                "somebody outside timecell (group `{}`)",
                group.escape_debug()
            ),
        };
        match taken.iter_mut().find(|share| share.who == who) {
            Some(share) => share.us = share.us.saturating_add(*us),
            None => taken.push(RtShare { who, us: *us }),
        }
    }
    taken.sort_by_key(|share| std::cmp::Reverse(share.us));
    taken
}

fn may_be_real_time() -> Result<(), String> {
    match caps::effective() {
        Ok(caps) if caps.has("CAP_SYS_NICE") => Ok(()),
        Ok(_) => Err("a real-time class needs CAP_SYS_NICE; run it as root".to_owned()),
        Err(unreadable) => Err(unreadable.to_string()),
    }
}

/// A cell whose image stands at this path of the host, as far as the image is concerned; `None` where an engine keeps it.
/// A note for each cell of an OCI bundle that asks for more than a cell gets from one.
pub fn bundle_notes(file: &MissionFile) -> Vec<String> {
    let note = |cell: &Cell| {
        let mut spec = spec(cell, &file.resolve(cell.image.path()?))?;
        spec.writable_root = cell.rights.writable_root;
        let ignored = app::ignored(&spec);
        let more = match ignored.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named: Vec<&str> = ignored
            .iter()
            .take(MOST_NAMED)
            .map(String::as_str)
            .collect();
        (!named.is_empty()).then(|| {
            format!(
                "{}: of its bundle, {}{more} {} ignored: a cell has no rights but those given to it here",
                cell.name,
                named.join(", "),
                if ignored.len() == 1 { "is" } else { "are" }
            )
        })
    };
    file.mission().cells.iter().filter_map(note).collect()
}

/// Requests of a bundle that are named, at most.
const MOST_NAMED: usize = 20;

fn spec(cell: &Cell, image: &Path) -> Option<AppSpec> {
    let image = std::path::absolute(image).ok()?;
    cell.image.path()?;
    let image = cell.image.with_path(|_| image);
    Some(AppSpec::new(&cell.name, cell.engine, image, Path::new("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_paths_and_bounds() {
        let here = Here::default();
        assert!(!here.cpus().is_empty());
        assert_eq!(here.path(Path::new("/")), PathKind::Directory);
        assert_eq!(here.path(Path::new("/dev/null")), PathKind::Device);
        assert_eq!(here.path(Path::new("/bin/sh")), PathKind::Program);
        assert_eq!(here.path(Path::new("/proc/self/status")), PathKind::File);
        assert_eq!(here.path(Path::new("/nowhere/at/all")), PathKind::Absent);
        assert!(here.bounds().rt_period_ns >= 1_000);
        assert_eq!(here.knows_image(EngineKind::Embedded, "x"), None);
        let unasked = Here::default().without_images();
        assert_eq!(unasked.knows_image(EngineKind::Podman, "x"), None);
        assert_eq!(here.facts().cpus, here.cpus());
    }

    #[test]
    fn whoever_holds_runtime_of_groups_is_named() {
        let mission = |name: &str| Holder::Mission {
            name: name.to_owned(),
            dir: "/nowhere".into(),
        };
        let bench = Holder::Bench {
            name: "latency".to_owned(),
            pid: 12,
        };
        let mut others: Vec<Entry> = [mission("a"), mission("a-b"), bench]
            .map(|holder| Entry::own(holder).unwrap())
            .into();
        others[2].process.pid = 12;
        let shares = [
            ("docker", 10_000),
            ("timecell-12", 500_000),
            ("timecell-123", 5_000),
            ("timecell-mission-a-b.c", 30_000),
            ("timecell-mission-a.c", 100_000),
            ("timecell-mission-a.d", 200_000),
        ];
        let taken = takers(&shares.map(|(group, us)| (group.to_owned(), us)), &others);
        let found: Vec<(&str, u64)> = (taken.iter())
            .map(|share| (share.who.as_str(), share.us))
            .collect();
        assert_eq!(
            found,
            [
                ("`timecell bench latency` (process 12)", 500_000),
                ("mission `a`", 300_000),
                ("mission `a-b`", 30_000),
                ("somebody outside timecell (group `docker`)", 10_000),
                (
                    "something of timecell that is in no ledger (group `timecell-123`; see `timecell clean`)",
                    5_000
                ),
            ]
        );
        for (entry, share) in others.iter().zip([1, 2, 0]) {
            assert_eq!(entry.neighbour().who, taken[share].who);
        }
    }

    #[test]
    fn an_engine_that_lacks_nothing_is_asked_once() {
        let here = Here::default();
        for engine in EngineKind::ALL {
            let lacking = here.lacks(engine);
            assert_eq!(here.fit.borrow().contains(&engine), lacking.is_none());
            assert!(lacking.is_none_or(|need| !need.met && need.fix.is_some()));
        }
        let found = here.fit.borrow().len();
        assert!(
            EngineKind::ALL.iter().all(|engine| {
                here.lacks(*engine).is_none() == here.fit.borrow().contains(engine)
            })
        );
        let later = here.without_images();
        assert_eq!(later.fit.borrow().len(), found);
    }
}
