//! `timecell analyze design`: places cells on cpus with the least reservations.

use feasibility::{DesignOptions, Designed, Outcome, design, design_table, with_latency};
use model::taskset::TaskSet;
use model::{Duration, InputError};

use super::{ended, load, reaction_of_design};
use crate::cli::Design;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Places the cells and prints the least reservation of each.
pub fn run(options: &Design) -> Result<Ended, CommandError> {
    let mut loaded = load(&options.source, options.cpus)?;
    if let Some(latency) = options.latency {
        loaded.set = with_latency(&loaded.set, latency);
    }
    if let Some(enforcer) = options.kernel.enforcer {
        loaded.set.enforcer = Some(enforcer);
    }
    for (name, time) in [
        ("--period", options.period.unwrap_or(options.shortest)),
        ("--shortest", options.shortest),
        ("--step", options.step),
        ("--grid", options.grid),
    ] {
        if time.ns() == 0 {
            return Err(
                InputError::new(name, "the time is zero", "it must be at least 1ns").into(),
            );
        }
    }
    let cpus = options.cpus.or(loaded.set.cpus).unwrap_or(1);
    let asked = DesignOptions {
        period: options.period,
        shortest: options.shortest,
        step: options.step,
        grid: options.grid,
        overhead: options.overhead,
        share_percent: options.share,
        fit: options.fit.into(),
        limit: options.kernel.rt_limit,
        reaction: reaction_of_design(&options.kernel, loaded.set.enforcer.unwrap_or_default())?,
    };
    let mut plan = design(&loaded.set, cpus, &asked);
    for what in &loaded.uncovered {
        out::note(&format!(
            "note    the design does not cover the whole file: {what}"
        ));
        plan.outcome = plan.outcome.worst(Outcome::Undecided);
    }
    if options.period.is_none()
        && let Some(hint) = shorter(&loaded.set, cpus, &asked, &plan)
    {
        out::note(&hint);
    }
    if options.toml {
        out::print(&plan.set.to_toml());
    } else if options.json {
        let json = serde_json::json!({
            "schema": SCHEMA,
            "file": loaded.name,
            "outcome": plan.outcome,
            "notes": loaded.notes,
            "cells": plan.cells,
            "cpus": plan.cpus,
            "linux": plan.linux,
        });
        out::print(&format!("{json:#}"));
    } else {
        let style = report::Style {
            colour: out::colour(),
            width: out::width(),
        };
        out::print(&design_table(&plan, style));
    }
    Ok(ended(plan.outcome))
}

/// The saving by shorter periods, found by trying: a reservation whose period is about as long as a deadline inside it needs
/// nearly the whole cpu. `None` if no cell has such a deadline or nothing is saved.
fn shorter(set: &TaskSet, cpus: u32, asked: &DesignOptions, plan: &Designed) -> Option<String> {
    let deadlines = |cell: usize| {
        set.cells[cell]
            .tasks
            .iter()
            .map(|task| task.deadline.ns())
            .min()
    };
    let tight =
        |&cell: &usize| deadlines(cell).is_some_and(|least| least < 2 * asked.shortest.ns());
    let cells: Vec<usize> = (0..set.cells.len()).filter(tight).collect();
    let least = cells.iter().filter_map(|&cell| deadlines(cell)).min()?;
    let shortest = Duration::from_ns((least / 5).max(asked.grid.ns()).max(100_000));
    if shortest.ns() >= asked.shortest.ns() {
        return None;
    }
    let tried = DesignOptions {
        shortest,
        step: asked.step.min(shortest),
        ..*asked
    };
    let other = design(set, cpus, &tried);
    let share = |plan: &Designed, cell: usize| {
        let found = &plan.cells[cell];
        let (budget, period) = found.budget_ns.zip(found.period_ns)?;
        Some(100.0 * budget as f64 / period as f64)
    };
    let saved = cells.iter().find_map(|&cell| {
        let (now, then) = (share(plan, cell), share(&other, cell)?);
        let before = match now {
            Some(now) if now <= 1.25 * then => return None,
            Some(now) => format!("{now:.1} %"),
            None => "more than a cpu".to_owned(),
        };
        Some(format!(
            "cell {} {then:.1} % of a cpu instead of {before}",
            set.cells[cell].name
        ))
    })?;
    Some(format!(
        "note    periods begin at {}, about as long as deadlines in the file; --shortest {shortest} --step {} would give {saved}",
        asked.shortest, tried.step
    ))
}
