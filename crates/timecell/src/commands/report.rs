//! `timecell report`: studies one run, compares two, or draws files of other tools.

use std::path::PathBuf;

use model::InputError;
use record::run::Run;
use study::{Ask, Compared, Kind};

use crate::cli::{Against, Report};
use crate::commands::common::{must, style, whole, write_figures, write_page};
use crate::commands::{measured, studied};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Studies one run, compares two, or draws files of other tools, and writes the page.
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
        _ => Err(InputError::new("RUN", "more than two runs are named", "name one or two").into()),
    }
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
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("comparison.html"));
    let written = write_page(&page, &report::compared_html(&compared), options.force)?;
    out::print(&report::compared_table(&compared, style()));
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::compared_pictures(&compared), dir)?;
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
