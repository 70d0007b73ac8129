//! The experiment of one run: some cells, two trials, so that one may be on record when the other is hit.

use std::path::Path;

use super::Random;
use super::fault::Fault;

pub struct Layout {
    /// Engine and number of cells of each trial.
    trials: Vec<Vec<(&'static str, u64)>>,
    jobs: u64,
    histogram: bool,
}

impl Layout {
    pub fn random(random: &mut Random, fault: Fault) -> Layout {
        let has = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
        };
        let mut engines = vec!["embedded", "embedded"];
        engines.extend(["crun", "runc"].into_iter().filter(|name| has(name)));
        let trial = |random: &mut Random| {
            let mut cells = vec![(random.one_of(&engines), 1 + random.below(12))];
            if random.below(2) == 0 {
                cells.push((random.one_of(&["bare", "embedded"]), 1 + random.below(4)));
            }
            if has("podman") && fault != Fault::SharedMemory && random.below(8) == 0 {
                cells.push(("podman", 1));
            }
            cells
        };
        Layout {
            trials: vec![trial(random), trial(random)],
            jobs: 200 + random.below(400),
            histogram: random.below(6) == 0,
        }
    }

    pub fn write(&self, dir: &Path) {
        let keep = match self.histogram {
            true => "record = \"histogram\"\ninterval = \"1s\"\n",
            false => "",
        };
        let mut text = format!(
            "schema = 1\nname = \"faults\"\nrounds = 1\n{keep}[workload]\nkind = \"timer\"\nperiod = \"1ms\"\njobs = {}\n",
            self.jobs
        );
        for (number, trial) in self.trials.iter().enumerate() {
            let cells = trial.iter().flat_map(|(engine, count)| {
                std::iter::repeat_n(format!("\"{engine}\""), *count as usize)
            });
            let cells: Vec<String> = cells.collect();
            text.push_str(&format!(
                "[[trial]]\nname = \"t{}\"\ncells = [{}]\n",
                number + 1,
                cells.join(", ")
            ));
        }
        std::fs::write(dir.join("faults.toml"), text).unwrap();
    }

    /// About how long the bench takes, so that moments fall into all of it.
    pub fn expected_ms(&self) -> u64 {
        let cells = self.trials.iter().flatten();
        let cells: u64 = cells
            .map(|(engine, count)| count * if *engine == "podman" { 700 } else { 40 })
            .sum();
        300 + cells + 2 * self.jobs
    }

    pub fn told(&self) -> String {
        let trials = self.trials.iter().map(|trial| {
            let cells = trial
                .iter()
                .map(|(engine, count)| format!("{count} {engine}"));
            cells.collect::<Vec<_>>().join(" + ")
        });
        let kept = if self.histogram { " (histograms)" } else { "" };
        format!("{}{kept}", trials.collect::<Vec<_>>().join(", then "))
    }
}
