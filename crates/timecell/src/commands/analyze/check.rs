//! `timecell analyze FILE`: tests whether the deadlines of a task set hold.

use std::path::Path;

use feasibility::{
    Known, Outcome, Study, admission, explanation, feasibility_table, picture, study, with_latency,
};
use model::InputError;
use model::taskset::TaskSet;

use super::{ended, known, load, write};
use crate::cli::Check;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Version of the JSON.
const SCHEMA: u32 = 1;

/// Tests every cell and prints the verdicts.
pub fn run(options: &Check) -> Result<Ended, CommandError> {
    let mut loaded = load(&options.source, options.cpus)?;
    if let Some(latency) = options.latency {
        loaded.set = with_latency(&loaded.set, latency);
    }
    if let Some(enforcer) = options.kernel.enforcer {
        loaded.set.enforcer = Some(enforcer);
    }
    let mut study = study(&loaded.set, options.explain);
    study.guarantees_nothing(&loaded.unguaranteed);
    study.tested_on_one_cpu(&loaded.on_one_cpu);
    study.uncovered.clone_from(&loaded.uncovered);
    let (reaction, measured) = known(&options.kernel, loaded.set.enforcer.unwrap_or_default())?;
    let known = Known {
        reaction,
        measured: &measured,
    };
    study.linux = admission(&loaded.set, &study, options.kernel.rt_limit, known);
    if let (Some(enforcer), None) = (options.kernel.enforcer, &study.linux) {
        let note = format!(
            "--enforcer {} has no effect on this file, which reserves nothing that it would hold",
            enforcer.name()
        );
        out::note(&format!("note    {note}"));
        loaded.notes.push(note);
    }
    let plot = match &options.plot {
        Some(path) => plot(path, &loaded.set, &study)?,
        None => None,
    };
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
    } else if study.outcome() == Outcome::Fails {
        text.push_str("        --explain says why, and what would fix it\n");
    }
    out::print(&text);
    if let Some(plot) = plot {
        out::print(&plot);
    }
    Ok(ended(study.outcome()))
}

/// Draws a set if it can be drawn, and names the drawn part; a set that cannot be drawn still gets its answer.
fn plot(path: &Path, set: &TaskSet, study: &Study) -> Result<Option<String>, CommandError> {
    let Some(picture) = picture(set, study) else {
        out::note(
            "note    no plot: no cell can be drawn; cells of two criticalities or on several cpus have no single demand and \
             supply, and times out of range have no curve",
        );
        return Ok(None);
    };
    if path.is_dir() {
        return Err(InputError::new(
            path.display().to_string(),
            "cannot write the plot: this is a directory",
            "name a file, such as plot.svg",
        )
        .into());
    }
    write(path, &report::demand::picture_svg(&picture))?;
    Ok(Some(format!(
        "plot    {}: {}",
        path.display(),
        picture.title
    )))
}

fn json(name: &str, notes: &[String], study: &Study) -> String {
    let json = serde_json::json!({
        "schema": SCHEMA,
        "file": name,
        "outcome": study.outcome(),
        "notes": notes,
        "uncovered": study.uncovered,
        "cells": study.cells,
        "together": study.together,
        "linux": study.linux,
    });
    format!("{json:#}")
}
