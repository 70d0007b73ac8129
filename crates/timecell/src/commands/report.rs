//! `timecell report`: studies one run, compares two, shows more side by side, or draws files of other tools.

use std::collections::HashSet;
use std::path::PathBuf;

use model::InputError;
use record::run::Run;
use report::Device;
use study::{Ask, Compared, Kind};

use crate::cli::{Against, Report};
use crate::commands::common::{must, style, whole, write_figures, write_page};
use crate::commands::judge::{Asked, Found};
use crate::commands::{measured, studied};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Studies one run, compares two, shows more side by side, or draws files of other tools, and writes the page.
pub fn run(options: &Report) -> Result<Ended, CommandError> {
    if options.against == Some(Against::List) {
        out::print(&report::sources_table(style()));
        return Ok(Ended::Fine);
    }
    let Some(first) = options.paths.first() else {
        return Err(InputError::new("RUN", "no run is named", "name a run directory").into());
    };
    if let Some(absent) = options
        .paths
        .iter()
        .find(|path| !path.exists() && !measured::is_input(path))
    {
        let name = absent.display().to_string();
        let fix = "name a run directory, or a file that another tool wrote";
        return Err(InputError::new(name, "there is no such file or directory", fix).into());
    }
    let (runs, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        options.paths.iter().partition(|path| path.is_dir());
    if !files.is_empty() {
        one_run_only(options)?;
        return measured::run(options, &runs, &files);
    }
    let run = Run::open(first)?;
    match options.paths.as_slice() {
        [_] => studied::report(&run, options),
        [_, other] => {
            one_run_only(options)?;
            compare(&run, &Run::open(other)?, options)
        }
        paths => {
            let others = paths[1..].iter().map(|path| Run::open(path));
            let all: Vec<Run> = std::iter::once(Ok(run))
                .chain(others)
                .collect::<Result<_, _>>()?;
            devices(&all, options)
        }
    }
}

/// Whether any of these runs was made on an emulated machine.
fn any_emulated(runs: &[Run]) -> Result<bool, CommandError> {
    let each = runs.iter().map(studied::is_emulated);
    Ok(each.collect::<Result<Vec<_>, _>>()?.contains(&true))
}

/// Shows three runs or more side by side, each judged by itself.
fn devices(runs: &[Run], options: &Report) -> Result<Ended, CommandError> {
    let one_only = [
        ("--against", options.against.is_some()),
        ("--baseline", options.judge.baseline.is_some()),
    ];
    if let Some((option, _)) = one_only.into_iter().find(|(_, asked)| *asked) {
        let what = "it applies only to the report of one run";
        return Err(InputError::new(option, what, "name one run and nothing else").into());
    }
    let mut ended = whole(&runs.iter().collect::<Vec<_>>())?;
    let mut devices: Vec<Device> = Vec::new();
    for (run, name) in runs.iter().zip(names(runs, options)?) {
        if Kind::of(run)? != Kind::Jobs {
            let what = format!("it is {}", Kind::of(run)?.name());
            let fix = "name runs of jobs; of other kinds, one or two";
            return Err(InputError::new(run.name(), what, fix).into());
        }
        let asked = Asked::of_or_kept(&options.judge, run)?;
        if !options.judge.fail_if.is_empty() {
            asked.suits(run, options.judge.allow_unlike)?;
        }
        let study = study::study(run)?;
        let metric = |study: &study::JobsStudy| study.summary.primary;
        if devices
            .iter()
            .any(|other| metric(&other.study) != metric(&study))
        {
            let what = format!("it is about the {}", metric(&study).title());
            let fix = format!(
                "{} is about another metric; name runs of one",
                devices[0].name
            );
            return Err(InputError::new(run.name(), what, fix).into());
        }
        let found = asked.judge(run, &study)?;
        if ended != Ended::VerdictFails {
            ended = found.ended(ended);
        }
        let judged = found.judged;
        devices.push(Device {
            name,
            study,
            judged,
        });
    }
    if options.json {
        let cautions = runs
            .iter()
            .map(Run::caution)
            .collect::<Result<Vec<_>, _>>()?;
        let all = devices.iter().zip(cautions).map(|(device, caution)| {
            let found = Found {
                judged: device.judged.clone(),
                compared: None,
            };
            let mut json = study::Studied::json(&device.study);
            found.add_to(&mut json);
            if let Some(caution) = caution {
                json["emulated"] = caution.into();
            }
            serde_json::json!({ "device": device.name, "summary": json })
        });
        let all: Vec<serde_json::Value> = all.collect();
        out::print(&serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(ended);
    }
    let page = options.output.clone();
    let page = page.unwrap_or_else(|| PathBuf::from("devices.html"));
    let written = write_page(&page, &report::devices_html(&devices), options.force)?;
    out::print(&report::devices_table(&devices, style()));
    for device in &devices {
        if let Some(judged) = &device.judged {
            let table = report::judged_table(judged, style());
            out::print(&format!("{}\n\n{table}", device.name));
        }
    }
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::devices_figures(&devices), dir, any_emulated(runs)?)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&written);
    Ok(ended)
}

/// The names of devices: of their hosts if they differ, else of the runs, else the paths as given.
fn names(runs: &[Run], options: &Report) -> Result<Vec<String>, CommandError> {
    let mut hosts = Vec::new();
    for run in runs {
        hosts.push(run.provenance()?.hostname.unwrap_or_default());
    }
    let of_runs = runs.iter().map(|run| run.name().to_owned()).collect();
    let paths = options.paths.iter().map(|path| path.display().to_string());
    let differ = |names: &Vec<String>| {
        let all: HashSet<&String> = names.iter().collect();
        all.len() == names.len() && names.iter().all(|name| !name.is_empty())
    };
    let choices = [hosts, of_runs].into_iter().find(differ);
    Ok(choices.unwrap_or_else(|| paths.collect()))
}

/// Refuses options that apply only to the report of one run.
fn one_run_only(options: &Report) -> Result<(), CommandError> {
    let files = options.paths.iter().any(|path| !path.is_dir());
    let asked = [
        ("--against", options.against.is_some()),
        ("--figures", options.figures.is_some() && files),
        ("--json", options.json && !files),
        ("--fail-if", !options.judge.fail_if.is_empty() && !files),
        ("--baseline", options.judge.baseline.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((option, _)) => {
            let what = "it applies only to the report of one run";
            Err(InputError::new(option, what, "name one run and nothing else").into())
        }
        None => Ok(()),
    }
}

fn compare(first: &Run, second: &Run, options: &Report) -> Result<Ended, CommandError> {
    let kinds = [Kind::of(first)?, Kind::of(second)?];
    for (run, kind) in [first, second].into_iter().zip(kinds) {
        must(kind, Ask::Compare, run.name())?;
    }
    if kinds[0] != kinds[1] {
        let [there, here] = kinds.map(Kind::name);
        let what = format!("it is {here}, and {} is {there}", first.name());
        let fix = "name two runs of one kind";
        return Err(InputError::new(second.name(), what, fix).into());
    }
    let compared = Compared::of(first, second)?;
    let emulated = studied::is_emulated(first)? || studied::is_emulated(second)?;
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("comparison.html"));
    let written = write_page(&page, &report::compared_html(&compared), options.force)?;
    out::print(&report::compared_table(&compared, style()));
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::compared_pictures(&compared), dir, emulated)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&written);
    if second.has_no_experiment() {
        return Ok(Ended::Fine);
    }
    for run in [first, second] {
        for lost in run.damage()? {
            out::note(&format!("failed: {}: {lost}", run.name()));
        }
    }
    whole(&[first, second])
}
