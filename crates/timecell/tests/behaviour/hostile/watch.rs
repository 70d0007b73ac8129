//! Checks that a hostile cell is where it was put: its cgroups, class, processes and memory.

use std::fs;
use std::path::{Path, PathBuf};

use host::sched::{Class, get_class};

use super::{MEMORY_BYTES, PIDS};
use crate::support::{eventually, say};

/// The grant of admission to the hostile cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    enforcer: String,
    highest: Option<u64>,
    budget_ns: u64,
    period_ns: u64,
}

/// The output of `timecell admit` on the hostile cell of the mission in this directory.
pub fn granted(dir: &Path) -> Granted {
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let cell = &json["admission"]["cells"][1];
    assert_eq!(cell["cell"], "hostile");
    Granted {
        enforcer: cell["enforcer"].as_str().unwrap().to_owned(),
        highest: cell["band"][1].as_u64(),
        budget_ns: cell["budget_ns"].as_u64().unwrap(),
        period_ns: cell["period_ns"].as_u64().unwrap(),
    }
}

/// A running hostile cell.
pub struct Hostile {
    id: String,
    groups: Vec<PathBuf>,
    granted: Granted,
}

impl Hostile {
    pub fn new(mission: &str, first: i32, granted: Granted) -> Hostile {
        let id = supervise::names::cell_id(mission, "hostile");
        let groups: Vec<PathBuf> = (fs::read_dir("/sys/fs/cgroup").unwrap().flatten())
            .map(|hierarchy| hierarchy.path().join(&id))
            .chain([Path::new("/sys/fs/cgroup").join(&id)])
            .filter(|group| group.is_dir())
            .collect();
        assert!(!groups.is_empty(), "process {first} has no groups");
        Hostile {
            id,
            groups,
            granted,
        }
    }

    /// A number in a file of one of its cgroups.
    fn number(&self, names: [&str; 2]) -> Option<u64> {
        let files = self
            .groups
            .iter()
            .flat_map(|group| names.map(|name| group.join(name)));
        let mut texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts.find_map(|text| text.trim().parse().ok())
    }

    fn threads(&self) -> Vec<i32> {
        let files = (self.groups.iter())
            .flat_map(|group| [group.join("tasks"), group.join("cgroup.threads")]);
        let mut texts = files.filter_map(|file| fs::read_to_string(file).ok());
        let text = texts.find(|text| !text.is_empty()).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Checks everything that must hold at any moment.
    #[track_caller]
    pub fn is_in_its_place(&self, attack: &str) {
        let threads = self.threads();
        assert!(threads.len() as u64 <= PIDS, "{attack}: {threads:?}");
        if let Some(pids) = self.number(["pids.current", "pids.current"]) {
            assert!(pids <= PIDS, "{attack}: {pids}");
        }
        if let Some(most) = self.number(["memory.max_usage_in_bytes", "memory.peak"]) {
            assert!(most <= MEMORY_BYTES, "{attack}: {most}");
        }
        let classes: Vec<Class> = threads
            .iter()
            .filter_map(|id| get_class(*id).ok())
            .collect();
        let mut reserved = 0;
        for class in &classes {
            match class {
                Class::Other => {}
                // The freezer demotes threads that have not stopped yet.
                Class::Idle => assert_eq!(self.granted.enforcer, "freezer", "{attack}"),
                Class::Fifo { priority } | Class::RoundRobin { priority } => {
                    assert!(
                        Some(u64::from(*priority)) <= self.granted.highest,
                        "{attack}: {class}"
                    );
                }
                Class::Deadline {
                    runtime_ns,
                    period_ns,
                    ..
                } => {
                    let own = (self.granted.budget_ns, self.granted.period_ns);
                    assert_eq!((*runtime_ns, *period_ns), own, "{attack}");
                    assert_eq!(self.granted.enforcer, "deadline", "{attack}");
                    reserved += 1;
                }
                other => panic!("{attack}: {other}"),
            }
        }
        assert!(reserved <= 1, "{attack}: {classes:?}");
        self.nobody_is_outside(attack);
    }

    /// Every process of the cell, identified by its environment, is in its cgroups; one that is being created soon is.
    #[track_caller]
    fn nobody_is_outside(&self, attack: &str) {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let process = process.path();
            if self.is_outside(&process) {
                let what = format!("{attack}: {} is in the cell's groups", process.display());
                eventually(&what, || !self.is_outside(&process));
            }
        }
    }

    fn is_outside(&self, process: &Path) -> bool {
        let groups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        let group = |name: &str| {
            let named = |line: &&str| {
                (line.split(':').nth(1))
                    .is_some_and(|names| names.split(',').any(|own| own == name))
            };
            groups.lines().find(named).unwrap_or_default()
        };
        let outside = |line: &str| !line.is_empty() && !line.contains(&self.id);
        let budgeted = group("cpu").ends_with(".hostile") || self.granted.enforcer != "rt-cgroup";
        if budgeted && !outside(group("pids")) && !outside(group("memory")) {
            return false;
        }
        // Read last: it waits for the holder of the address space, which its budget may not let run.
        let mark = format!("TIMECELL_CELL={}", self.id);
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    }
}
