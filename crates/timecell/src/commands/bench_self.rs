//! `timecell bench self`: measures timecell itself beside other tools.

use bench::selfcheck::{Finding, PARTS, Section, Setup};
use model::{InputError, Limits};

use crate::cli::Itself;
use crate::commands::bench_hold;
use crate::commands::common::cpus;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Runs the selected parts, prints their tables and findings, and writes them as JSON into `--out`.
///
/// Exit code 3 if a goal fails.
pub fn run(options: &Itself) -> Result<Ended, CommandError> {
    let measured = &options.measured;
    let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = options
        .parts
        .iter()
        .find(|part| !names.contains(&part.as_str()))
    {
        let fix = format!("the parts are {}", names.join(", "));
        return Err(
            InputError::new("bench self", format!("there is no part `{unknown}`"), fix).into(),
        );
    }
    let asked = |name: &str| options.parts.is_empty() || options.parts.iter().any(|p| p == name);
    let setup = setup(options)?;
    if measured.dry_run {
        let parts: Vec<&str> = names.into_iter().filter(|name| asked(name)).collect();
        out::print(&format!(
            "would run {} on cpu {}, FIFO {}",
            parts.join(", "),
            setup.cpu,
            setup.priority
        ));
        return Ok(Ended::Fine);
    }
    let _held = bench_hold::of_cpus("self", &cpus(options.cpus.as_deref())?, measured)?;
    let mut sections = Vec::new();
    for (name, part) in PARTS {
        if !asked(name) {
            continue;
        }
        let section = part(setup.clone(), &mut |line| {
            out::note(&format!("        {line}"))
        })?;
        if !measured.json {
            out::print(&text(&section));
        }
        sections.push(section);
    }
    let json = serde_json::json!({
        "schema": 1,
        "machine": host::provenance::Provenance::collect(env!("CARGO_PKG_VERSION")),
        "quick": setup.quick,
        "sections": sections,
    });
    let json = format!("{json:#}\n");
    let path = measured.out.join("self.json");
    host::writer::create_dir_all(&measured.out).map_err(|source| CommandError::File {
        path: measured.out.clone(),
        doing: "create the directory",
        source,
    })?;
    record::run::write_atomically(&path, json.as_bytes())?;
    if measured.json {
        out::print(&json);
    } else {
        out::print(&format!("record  {}", path.display()));
    }
    let fails = sections
        .iter()
        .flat_map(|section| &section.findings)
        .any(|finding| finding.holds == Some(false));
    Ok(if fails {
        Ended::VerdictFails
    } else {
        Ended::Fine
    })
}

fn setup(options: &Itself) -> Result<Setup, InputError> {
    let priority = options.priority.unwrap_or(80);
    if !Limits::PRIORITY.contains(&priority) {
        return Err(InputError::new(
            "--priority",
            format!("the priority is {priority}"),
            "it must be 1 to 99",
        ));
    }
    Ok(Setup {
        quick: options.quick,
        cpu: cpus(options.cpus.as_deref())?
            .first()
            .copied()
            .unwrap_or_else(host::cpus::default_rt_cpu),
        priority: u8::try_from(priority).unwrap_or(80),
        out: options.measured.out.clone(),
        loads: options.load.iter().copied().flatten().collect(),
    })
}

fn text(section: &Section) -> String {
    let mut text = format!("\n{}\n{}\n\n", section.part, section.method);
    let columns = section.table.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            section
                .table
                .iter()
                .filter_map(|row| row.get(at))
                .map(String::len)
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in &section.table {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(&format!("  {}\n", cells.join("   ").trim_end()));
    }
    text.push('\n');
    for finding in &section.findings {
        text.push_str(&format!("  {}\n", line(finding)));
    }
    for unmet in &section.unmet {
        text.push_str(&format!("  not measured: {unmet}\n"));
    }
    text
}

fn line(finding: &Finding) -> String {
    let state = match finding.holds {
        Some(true) => "holds      ",
        Some(false) => "fails      ",
        None if finding.goal.is_some() => "undecided  ",
        None => "           ",
    };
    let goal = finding
        .goal
        .as_ref()
        .map(|goal| format!(" (goal: {goal})"))
        .unwrap_or_default();
    format!("{state}{}: {}{goal}", finding.what, finding.figure)
}
