//! From create to exit of an empty program: our embedded engine, crun, runc, and the floor under them.

use model::EngineKind;
use serde_json::json;
use stats::{CompareOptions, Sorted, compare};

use super::section::{Finding, Section, Setup, ms, ratio};
use crate::BenchError;
use crate::launch::{Clone3, ForkExec, Launcher, Oci, Stage};

/// Repetitions of one block; blocks are the rounds of the comparison.
const BLOCK: usize = 10;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let blocks = if setup.quick { 2 } else { 10 };
    let stage = Stage::set()?;
    let mut launchers = launchers(&stage)?;
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
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                let (name, launcher) = &mut launchers[at];
                let launched = launcher
                    .launch(&stage, number)
                    .map_err(|why| BenchError::Failed(format!("{name}: {why}")))?;
                steps.add(launched.asked, &launched.steps);
                times[at][block].push(launched.gone - launched.asked);
            }
        }
    }
    let mut section = Section {
        part: "startup",
        method: format!(
            "wall time from the request to the end of a payload that only leaves a stamp, {} repetitions in turns; \
             the same bundle for embedded, crun and runc, written before the time begins",
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
        unmet: unmet(),
    };
    let medians: Vec<i64> = times
        .iter()
        .map(|blocks| Sorted::new(blocks.concat()).median_ns().unwrap_or(0))
        .collect();
    let at = |name: &str| launchers.iter().position(|(known, _)| *known == name);
    let floor = at("clone3").map_or(0, |at| medians[at]);
    for (((name, _), blocks), median) in launchers.iter().zip(&times).zip(&medians) {
        let all = Sorted::new(blocks.concat());
        let rank = |p| all.nearest_rank(p).map_or_else(String::new, ms);
        section.table.push(vec![
            (*name).to_owned(),
            rank(0.0),
            rank(0.5),
            rank(0.9),
            rank(1.0),
            ms(median - floor),
        ]);
        section.data[*name] = json!(blocks.concat());
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
            let what = format!("median time of embedded relative to {other}'s");
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
    fn add(&mut self, began: i64, steps: &[(String, i64)]) {
        let mut before = began;
        for (at, (step, ns)) in steps.iter().enumerate() {
            if self.0.len() <= at {
                self.0.push((step.clone(), Vec::new()));
            }
            self.0[at].1.push(ns - before);
            before = *ns;
        }
    }

    /// A line of the table for each step: its median, and the rest for the child's own end.
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

type Named = (&'static str, Box<dyn Launcher>);

fn launchers(stage: &Stage) -> Result<Vec<Named>, BenchError> {
    let mut launchers: Vec<Named> = vec![
        ("fork+exec", Box::new(ForkExec)),
        ("clone3", Box::new(Clone3::new(stage)?)),
    ];
    for kind in EngineKind::runtimes() {
        let engine = engine::by_kind(kind, &engine::Options::default());
        if engine.requirements().iter().all(|r| r.met) {
            let oci = Oci {
                kind,
                user: None,
                in_steps: false,
                limits: model::Size::default(),
            };
            launchers.push((kind.name(), Box::new(oci)));
        }
    }
    Ok(launchers)
}

fn unmet() -> Vec<String> {
    EngineKind::runtimes()
        .flat_map(|kind| {
            let engine = engine::by_kind(kind, &engine::Options::default());
            engine
                .requirements()
                .into_iter()
                .filter(|r| !r.met)
                .map(move |r| format!("{kind}: {} ({})", r.reason, r.fix.unwrap_or_default()))
        })
        .collect()
}
