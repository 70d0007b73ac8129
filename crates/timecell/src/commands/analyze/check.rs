//! `timecell analyze FILE`.

use model::InputError;
use report::feasibility::{
    Outcome, Study, admission, explanation, feasibility_table, picture, study, with_latency,
};

use super::{ended, load, write};
use crate::cli::Check;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Tests every cell and prints what holds.
pub fn run(options: &Check) -> Result<Ended, CommandError> {
    let mut loaded = load(&options.source)?;
    if let Some(latency) = options.latency {
        loaded.set = with_latency(&loaded.set, latency);
    }
    if let Some(enforcer) = options.kernel.enforcer {
        loaded.set.enforcer = Some(enforcer.into());
    }
    let mut study = study(&loaded.set, options.explain);
    study.linux = admission(&loaded.set, &study, options.kernel.rt_limit);
    if let Some(path) = &options.plot {
        let picture = picture(&loaded.set, &study).ok_or_else(|| {
            InputError::new(
                "--plot",
                "no cell can be drawn: the times are too long, or there are only cells of two criticalities or on several \
                 cpus",
                "leave it out",
            )
        })?;
        write(path, &report::demand::picture_svg(&picture))?;
    }
    if options.json {
        out::print(&json(&loaded.name, &loaded.notes, &study));
        return Ok(ended(study.outcome()));
    }
    let style = report::Style {
        colour: out::colour(),
        width: out::width(),
    };
    let mut text = feasibility_table(&study, style);
    if options.explain {
        let explained = explanation(&study, style);
        if !explained.is_empty() {
            text.push('\n');
            text.push_str(&explained);
        }
    } else if study.outcome() == Outcome::Missed {
        text.push_str("        --explain says why, and what would mend it\n");
    }
    out::print(&text);
    if let Some(path) = &options.plot {
        out::print(&format!("plot    {}", path.display()));
    }
    Ok(ended(study.outcome()))
}

fn json(name: &str, notes: &[String], study: &Study) -> String {
    let json = serde_json::json!({
        "schema": SCHEMA,
        "file": name,
        "outcome": study.outcome(),
        "notes": notes,
        "cells": study.cells,
        "together": study.together,
        "linux": study.linux,
    });
    format!("{json:#}")
}
