//! `cpu`: every cpu computes without a pause. stress-ng's `--cpu` mix of methods, or a loop of multiply-accumulate steps.

use std::hint::black_box;

use model::{LoadKind, LoadPlan};
use record::Achieved;

use super::stress_ng;
use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct Cpu;

/// Steps between two counts: some tens of microseconds.
const STEPS: u64 = 20_000;

impl Load for Cpu {
    fn kind(&self) -> LoadKind {
        LoadKind::Cpu
    }

    fn does(&self) -> &'static str {
        "keeps every cpu busy with computation"
    }

    fn program(&self) -> Option<Program> {
        Some(stress_ng::PROGRAM)
    }

    fn command(&self, _: &LoadPlan, setting: &Setting) -> Vec<String> {
        let workers = setting.cpus.len().to_string();
        stress_ng::command(&["--cpu", &workers, "--cpu-load", "100"])
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        stress_ng::told(window, "cpu")
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::rate("steps", "million/s", 1e6)]
    }

    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        crate::load::kind::on_each_cpu(setting, tally, |_| {
            let mut sum = 1u64;
            loop {
                for step in 0..STEPS {
                    sum = black_box(sum.wrapping_mul(step | 1).wrapping_add(step));
                }
                tally.add(0, STEPS);
            }
        })
    }
}
