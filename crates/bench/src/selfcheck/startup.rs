//! From create to exit of an empty program: our embedded engine, crun, runc, and the floor under them.

use std::path::Path;
use std::process::{Command, Stdio};

use engine::{CellSpec, Rights};
use model::EngineKind;
use probe::clock;
use serde_json::json;
use stats::{CompareOptions, Sorted, compare};

use super::floor::Floor;
use super::{Finding, Section, Setup, ms, ratio};
use crate::BenchError;
use crate::place::{Place, failed};

/// Repetitions of one block; blocks are the rounds of the comparison.
const BLOCK: usize = 10;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let blocks = if setup.quick { 2 } else { 10 };
    let mut place = Place::create()?;
    let stage = Stage {
        rootfs: place.rootfs()?,
        shared: place.sub("trials/0/shared")?,
        place,
    };
    let launchers = stage.launchers()?;
    let mut times: Vec<Vec<Vec<i64>>> = vec![Vec::new(); launchers.len()];
    let mut steps = Steps::default();
    for block in 0..blocks {
        say(&format!(
            "start-up, repetitions {} to {} of {}",
            block * BLOCK + 1,
            (block + 1) * BLOCK,
            blocks * BLOCK
        ));
        times.iter_mut().for_each(|blocks| blocks.push(Vec::new()));
        for number in block * BLOCK..(block + 1) * BLOCK {
            // Each begins in turn: the first to move a process between cgroups waits for the kernel, those
            // right after it do not.
            for turn in 0..launchers.len() {
                let at = (turn + number) % launchers.len();
                let taken = stage.time(&launchers[at], number, &mut steps)?;
                times[at][block].push(taken);
            }
        }
    }
    let mut section = Section {
        part: "startup",
        method: format!(
            "wall time from the request to the end of `timecell probe nop`, {} repetitions in turns; the same \
             bundle for embedded, crun and runc, written before the time begins",
            blocks * BLOCK
        ),
        table: vec![
            [
                "launcher",
                "min ms",
                "median ms",
                "p90 ms",
                "max ms",
                "above the floor ms",
            ]
            .map(str::to_owned)
            .to_vec(),
        ],
        findings: Vec::new(),
        data: json!({}),
        unmet: stage.unmet(),
    };
    let medians: Vec<i64> = times
        .iter()
        .map(|blocks| Sorted::new(blocks.concat()).median_ns().unwrap_or(0))
        .collect();
    let at = |name: &str| launchers.iter().position(|l| l.name == name);
    let floor = at("clone3").map_or(0, |at| medians[at]);
    for ((launcher, blocks), median) in launchers.iter().zip(&times).zip(&medians) {
        let all = Sorted::new(blocks.concat());
        let rank = |p| all.nearest_rank(p).map_or_else(String::new, ms);
        section.table.push(vec![
            launcher.name.to_owned(),
            rank(0.0),
            rank(0.5),
            rank(0.9),
            rank(1.0),
            ms(median - floor),
        ]);
        section.data[launcher.name] = json!(blocks.concat());
    }
    section.data["embedded_steps_ns"] = json!(steps.0);
    let median_of = |name: &str| at(name).map(|at| medians[at]);
    steps.rows(median_of("embedded").unwrap_or(0), &mut section.table);
    for other in ["crun", "runc", "clone3"] {
        let (Some(ours), Some(theirs)) = (at("embedded"), at(other)) else {
            continue;
        };
        if let Ok(compared) = compare(&times[theirs], &times[ours], &CompareOptions::default()) {
            let median = compared.ratio_of_medians;
            let what = format!("median time of embedded over {other}'s");
            section.findings.push(if other == "crun" {
                Finding::ratio_goal(what, &median, 1.0)
            } else {
                Finding::fact(what, ratio(&median))
            });
        }
    }
    Ok(section)
}

/// Durations of the embedded engine's steps over all repetitions, ns, in order.
#[derive(Default)]
struct Steps(Vec<(String, Vec<i64>)>);

impl Steps {
    fn add(&mut self, began: i64, stamps: &str) {
        let mut before = began;
        for (at, line) in stamps.lines().enumerate() {
            let Some((ns, step)) = line.split_once(' ') else {
                continue;
            };
            let Ok(ns) = ns.parse::<i64>() else { continue };
            if self.0.len() <= at {
                self.0.push((step.to_owned(), Vec::new()));
            }
            self.0[at].1.push(ns - before);
            before = ns;
        }
    }

    /// A line of the table for each step: its median, and what is left for the child's own end.
    fn rows(&self, whole: i64, table: &mut Vec<Vec<String>>) {
        let mut rest = whole;
        for (step, taken) in &self.0 {
            let all = Sorted::new(taken.clone());
            let rank = |p| all.nearest_rank(p).map_or_else(String::new, ms);
            rest -= all.median_ns().unwrap_or(0);
            table.push(vec![
                format!("  embedded: {step}"),
                rank(0.0),
                rank(0.5),
                rank(0.9),
                rank(1.0),
            ]);
        }
        if !self.0.is_empty() {
            table.push(vec![
                "  embedded: child ended and reaped".to_owned(),
                String::new(),
                ms(rest),
            ]);
        }
    }
}

struct Launcher {
    name: &'static str,
    how: How,
}

enum How {
    ForkExec,
    Floor(Floor),
    Engine(EngineKind),
}

struct Stage {
    place: Place,
    rootfs: std::path::PathBuf,
    shared: std::path::PathBuf,
}

impl Stage {
    fn launchers(&self) -> Result<Vec<Launcher>, BenchError> {
        let floor = Floor::new(&self.rootfs, &["probe", "nop"])
            .map_err(failed(&self.rootfs, "prepare the launcher"))?;
        let mut launchers = vec![
            Launcher {
                name: "fork+exec",
                how: How::ForkExec,
            },
            Launcher {
                name: "clone3",
                how: How::Floor(floor),
            },
        ];
        for kind in [EngineKind::Embedded, EngineKind::Crun, EngineKind::Runc] {
            if self.met(kind) {
                launchers.push(Launcher {
                    name: kind.name(),
                    how: How::Engine(kind),
                });
            }
        }
        Ok(launchers)
    }

    fn met(&self, kind: EngineKind) -> bool {
        let engine = engine::by_kind(kind, &engine::Options::default());
        engine.requirements().iter().all(|r| r.met)
    }

    fn unmet(&self) -> Vec<String> {
        [EngineKind::Embedded, EngineKind::Crun, EngineKind::Runc]
            .into_iter()
            .flat_map(|kind| {
                let engine = engine::by_kind(kind, &engine::Options::default());
                engine
                    .requirements()
                    .into_iter()
                    .filter(|r| !r.met)
                    .map(move |r| format!("{kind}: {} ({})", r.reason, r.mend.unwrap_or_default()))
            })
            .collect()
    }

    fn time(
        &self,
        launcher: &Launcher,
        number: usize,
        steps: &mut Steps,
    ) -> Result<i64, BenchError> {
        match &launcher.how {
            How::ForkExec => {
                let mut command = Command::new(self.rootfs.join("timecell"));
                command.args(["probe", "nop"]);
                timed(&mut command, launcher.name)
            }
            How::Floor(floor) => {
                let began = clock::now();
                let code = floor.run().map_err(failed(Path::new("clone3"), "launch"))?;
                let taken = clock::now() - began;
                if code == 0 {
                    Ok(taken)
                } else {
                    Err(BenchError::Failed(format!(
                        "the clone3 launcher ended with code {code}"
                    )))
                }
            }
            How::Engine(kind) => {
                let spec = self.spec(*kind, number)?;
                let mut command = engine::run_command(&spec)?;
                let stamps = spec.work_dir.join("stamps");
                if *kind == EngineKind::Embedded {
                    command.env(engine::STAMPS, &stamps);
                }
                let began = clock::now();
                let taken = timed(&mut command, launcher.name);
                if let Ok(text) = std::fs::read_to_string(&stamps) {
                    steps.add(began, &text);
                }
                engine::sweep(&spec.work_dir)?;
                let _ = std::fs::remove_dir_all(&spec.work_dir);
                taken
            }
        }
    }

    fn spec(&self, kind: EngineKind, number: usize) -> Result<CellSpec, BenchError> {
        Ok(CellSpec {
            id: format!("timecell-{}-{number}-{kind}", std::process::id()),
            engine: kind,
            rootfs: self.rootfs.clone(),
            words: ["probe", "nop"].map(str::to_owned).to_vec(),
            shared: self.shared.clone(),
            work_dir: self.place.sub(&format!("trials/0/cells/{number}-{kind}"))?,
            user: None,
            rights: Rights::default(),
        })
    }
}

fn timed(command: &mut Command, name: &str) -> Result<i64, BenchError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = clock::now();
    let status = command.status().map_err(failed(Path::new(name), "start"))?;
    let taken = clock::now() - began;
    if status.success() {
        Ok(taken)
    } else {
        Err(BenchError::Failed(format!("{name} ended with {status}")))
    }
}
