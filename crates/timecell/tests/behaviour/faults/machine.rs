//! The possible remains of a bench on the machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::traces_of;

pub struct Machine(BTreeSet<String>);

impl Machine {
    /// Everything that has the name of one of these coordinators, and the settings that none of them may change.
    pub fn now(coordinators: &[u32]) -> Machine {
        let mut found = BTreeSet::new();
        for pid in coordinators {
            found.extend(traces_of(*pid));
            found.extend(networks(*pid));
            found.extend(containers(*pid));
        }
        for file in ["sched_rt_runtime_us", "sched_rt_period_us"] {
            let value = fs::read_to_string(format!("/proc/sys/kernel/{file}"));
            found.insert(format!("{file} = {}", value.unwrap_or_default().trim()));
        }
        Machine(found)
    }

    /// The names that were not there before.
    pub fn since(&self, before: &Machine) -> Vec<String> {
        let new = self.0.difference(&before.0);
        new.map(|what| format!("left behind: {what}")).collect()
    }
}

fn networks(pid: u32) -> Vec<String> {
    let name = format!("timecell-{pid}");
    let spaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let devices = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    (spaces.filter(|entry| entry.file_name().to_string_lossy() == name.as_str()))
        .chain(devices.filter(|entry| entry.file_name().to_string_lossy() == format!("tc{pid}")))
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Containers, as listed by their runtimes and managers.
fn containers(pid: u32) -> Vec<String> {
    let mark = format!("timecell-{pid}-");
    let lists: [&[&str]; 3] = [
        &["podman", "ps", "--all", "--format", "{{.Names}}"],
        &["crun", "list"],
        &["runc", "list"],
    ];
    let mut found = Vec::new();
    for words in lists {
        if let Ok(said) = Command::new(words[0]).args(&words[1..]).output() {
            let text = String::from_utf8_lossy(&said.stdout).into_owned();
            let ours = text.lines().filter(|line| line.contains(&mark));
            found.extend(ours.map(|line| format!("{}: {line}", words[0])));
        }
    }
    found
}
