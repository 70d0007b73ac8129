//! Our release barrier against polling for a file, with cells of the same engine.
//!
//! Two pollers: the thesis's shell, and the same loop in our own probe, without a process for each sleep.

use model::EngineKind;
use serde_json::Value;

use super::section::{Finding, Section, Setup, us};
use super::skew::{self, How, Round, Seen, Stage};
use crate::BenchError;

const COUNTS: [usize; 4] = [2, 10, 32, 64];
/// How long the pollers poll before the release, so that all of them have begun.
const SETTLE_NS: i64 = 300_000_000;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let rounds = if setup.quick { 3 } else { 50 };
    let options = engine::Options::default();
    let engine = [EngineKind::Crun, EngineKind::Embedded]
        .map(|kind| engine::by_kind(kind, &options))
        .into_iter()
        .find(|engine| engine.requirements().iter().all(|r| r.met))
        .ok_or_else(|| {
            BenchError::Unmet("neither crun nor embedded cells can be created here".into())
        })?;
    let (hows, unmet) = skew::hows();
    let mut stage = Stage::new(setup.priority)?;
    let mut section = Section {
        part: "barrier",
        method: format!(
            "{} cells over cpus {}, {rounds} rounds of each kind in turns; skew is the latest start minus the \
             earliest; futex cells FIFO {}, pollers OTHER as in the thesis's scripts",
            engine.kind(),
            host::cpus::format_list(&stage.cpus),
            setup.priority
        ),
        table: vec![
            [
                "cells",
                "barrier",
                "median skew us",
                "max skew us",
                "first of each cpu us",
                "cpu while waiting",
            ]
            .map(str::to_owned)
            .to_vec(),
        ],
        findings: Vec::new(),
        data: Value::Null,
        unmet,
    };
    let mut data = Vec::new();
    for cells in COUNTS {
        if setup.quick && cells > 10 {
            continue;
        }
        let mut seen: Vec<Seen> = hows.iter().map(|_| Seen::default()).collect();
        for round in 1..=rounds {
            for (how, seen) in hows.iter().zip(&mut seen) {
                say(&format!(
                    "barrier, {cells} cells, round {round} of {rounds}, {}",
                    how.name()
                ));
                stage.round(engine.as_ref(), &kind(*how, cells), seen)?;
            }
        }
        for (how, seen) in hows.iter().zip(&seen) {
            section.table.push(seen.row(&kind(*how, cells)));
            data.push(seen.json(&kind(*how, cells)));
        }
        goals(cells, &hows, &seen, &mut section);
    }
    section.data = Value::Array(data);
    Ok(section)
}

/// A round whose cells are created one after the other, as the thesis made its containers.
fn kind(how: How, cells: usize) -> Round {
    Round {
        how,
        cells,
        parallel: 1,
        settle_ns: SETTLE_NS,
        memory: false,
    }
}

fn goals(cells: usize, hows: &[How], seen: &[Seen], section: &mut Section) {
    let median = |how: How| -> Option<f64> {
        let at = hows.iter().position(|h| *h == how)?;
        stats::median_of(&seen[at].skews).map(|ns| ns as f64)
    };
    let Some(ours) = median(How::Futex) else {
        return;
    };
    if let Some(theirs) = median(How::PollShell) {
        let times = theirs / ours.max(1.0);
        let what = format!("median skew of the shell poller relative to ours, {cells} cells");
        let figure = format!("{times:.0} times");
        section.findings.push(match cells {
            32 => Finding::goal(what, figure, "at least 40 times", times >= 40.0),
            64 => Finding::goal(what, figure, "at least 60 times", times >= 60.0),
            _ => Finding::fact(what, figure),
        });
    }
    if let Some(theirs) = median(How::PollProbe) {
        section.findings.push(Finding::fact(
            format!("median skew of the probe's own polling relative to ours, {cells} cells"),
            format!("{:.1} times", theirs / ours.max(1.0)),
        ));
    }
    let futex = &seen[0];
    if let Some(first) = stats::median_of(&futex.firsts) {
        section.findings.push(Finding::goal(
            format!("median skew between the first cells of each cpu, {cells} cells"),
            format!("{} us", us(first)),
            "under 60 us",
            first < 60_000,
        ));
    }
    if let Some(waiting) = stats::median_of(&futex.waiting_ns) {
        section.findings.push(Finding::goal(
            format!("cpu time of all {cells} armed cells while waiting 300 ms"),
            format!(
                "{} us (largest round {} us)",
                us(waiting),
                us(futex.waiting_ns.iter().copied().max().unwrap_or(0))
            ),
            "none measurable",
            waiting == 0,
        ));
    }
}
