//! `timecell analyze design`.

use model::InputError;
use report::feasibility::{DesignOptions, design, design_table, with_latency};

use super::{ended, load};
use crate::cli::Design;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Places the cells and prints the least reservation of each.
pub fn run(options: &Design) -> Result<Ended, CommandError> {
    let mut loaded = load(&options.source)?;
    if let Some(latency) = options.latency {
        loaded.set = with_latency(&loaded.set, latency);
    }
    if let Some(enforcer) = options.kernel.enforcer {
        loaded.set.enforcer = Some(enforcer.into());
    }
    for (name, time) in [
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
    let plan = design(
        &loaded.set,
        cpus,
        &DesignOptions {
            shortest: options.shortest,
            step: options.step,
            grid: options.grid,
            overhead: options.overhead,
            share_percent: options.share,
            fit: options.fit.into(),
            limit: options.kernel.rt_limit,
        },
    );
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
