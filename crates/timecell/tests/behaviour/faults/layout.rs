//! The experiment of one run: some cells and two trials, so that one may be recorded when the other is hit; or a scale
//! study.

use std::path::Path;

use super::Random;
use super::fault::Fault;

pub struct Layout {
    /// Engine and number of cells of each trial.
    trials: Vec<Vec<(&'static str, u64)>>,
    jobs: u64,
    histogram: bool,
    /// Whether it is a scale study: one engine, whose cells are created in parallel.
    scale: bool,
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
        let mut layout = Layout {
            trials: vec![trial(random), trial(random)],
            jobs: 200 + random.below(400),
            histogram: random.below(6) == 0,
            scale: false,
        };
        if random.below(4) == 0 {
            let engine = random.one_of(&engines);
            let few = 2 + random.below(14);
            layout.trials = vec![vec![(engine, few)], vec![(engine, 16 + random.below(49))]];
            (layout.histogram, layout.scale) = (false, true);
        }
        layout
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
        if self.scale {
            let counts = self.trials.iter().map(|trial| trial[0].1.to_string());
            text.push_str(&format!(
                "[scale]\nengines = [\"{}\"]\ncounts = [{}]\nfailure_limit = 0.2\n",
                self.trials[0][0].0,
                counts.collect::<Vec<_>>().join(", ")
            ));
            return std::fs::write(dir.join("faults.toml"), text).unwrap();
        }
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

    /// About how long the bench takes, so that moments are spread over all of it.
    pub fn expected_ms(&self) -> u64 {
        let cells = self.trials.iter().flatten();
        let cells: u64 = cells
            .map(|(engine, count)| count * if *engine == "podman" { 700 } else { 40 })
            .sum();
        // A scale study watches the waiting cells for a second.
        let (cells, waiting) = if self.scale {
            (cells / 3, 2_000)
        } else {
            (cells, 0)
        };
        300 + cells + waiting + 2 * self.jobs
    }

    pub fn told(&self) -> String {
        let trials = self.trials.iter().map(|trial| {
            let cells = trial
                .iter()
                .map(|(engine, count)| format!("{count} {engine}"));
            cells.collect::<Vec<_>>().join(" + ")
        });
        let kept = match (self.histogram, self.scale) {
            (true, _) => " (histograms)",
            (_, true) => " (scale)",
            _ => "",
        };
        format!("{}{kept}", trials.collect::<Vec<_>>().join(", then "))
    }
}
