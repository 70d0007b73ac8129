//! `timecell report`.

use std::path::{Path, PathBuf};

use model::InputError;
use record::run::{Run, write_atomically};
use record::series::SeriesSummary;
use record::summary::RunSummary;
use report::Extras;

use crate::cli::{Against, Report};
use crate::commands::judge::{Asked, Found};
use crate::commands::{isolation, measured, scale, supply};
use crate::exit::{CommandError, Ended};
use crate::out;

/// Studies one run, compares two, or draws files of other tools, and writes the page.
pub fn run(options: &Report) -> Result<Ended, CommandError> {
    if options.against == Some(Against::List) {
        out::print(&report::sources_table(style()));
        return Ok(Ended::Fine);
    }
    let Some(first) = options.paths.first() else {
        return Err(InputError::new("RUN", "no run is named", "name the directory of one").into());
    };
    if let Some(absent) = options
        .paths
        .iter()
        .find(|path| !path.exists() && !measured::is_input(path))
    {
        let name = absent.display().to_string();
        let mend = "name a run directory, or a file that another tool wrote";
        return Err(InputError::new(
            name,
            "not a run and not a file: there is nothing of that name",
            mend,
        )
        .into());
    }
    let (runs, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        options.paths.iter().partition(|path| path.is_dir());
    if !files.is_empty() {
        one_run_only(options)?;
        return measured::run(options, &runs, &files);
    }
    let run = Run::open(first)?;
    match options.paths.as_slice() {
        [_] if run.is_series() => series(&run, options),
        [_] if run.is_supply() => supply::report(&run, options),
        [_] if run.is_isolation() => isolation::report(&run, options),
        [_] if run.is_scale()? => scale::report(&run, options),
        [_] => one(&run, options),
        [_, other] => {
            one_run_only(options)?;
            compare(&run, &Run::open(other)?, options)
        }
        _ => Err(InputError::new("RUN", "there are more than two runs", "name one or two").into()),
    }
}

/// Refuses what only the report of one run can do.
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
            let what = "it belongs to the report of one run";
            Err(InputError::new(option, what, "name one run and nothing else").into())
        }
        None => Ok(()),
    }
}

fn one(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let asked = Asked::of_or_kept(&options.judge, run)?;
    if !options.judge.fail_if.is_empty() || options.judge.baseline.is_some() {
        asked.fits(&run.experiment()?, options.judge.allow_unlike)?;
    }
    let summary = report::study(run)?;
    let found = asked.judge(run, &summary)?;
    let beside = match options.against {
        Some(_) => Some(report::beside(run, &summary)?),
        None => None,
    };
    if options.json {
        let mut json = serde_json::to_value(&summary).unwrap_or_default();
        if let Some(beside) = &beside {
            json["published"] = serde_json::to_value(beside).unwrap_or_default();
        }
        found.add_to(&mut json);
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return Ok(found.ended(whole(&[run])?));
    }
    // With --output nothing is written into the run, which may belong to somebody else.
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            run.write_summary(&summary)?;
            run.dir().join("report.html")
        }
    };
    let extras = Extras {
        beside: beside.as_ref(),
        judged: found.judged.as_ref(),
        compared: found.compared.as_ref(),
    };
    let html = report::html_with(run, &summary, extras)?;
    write_atomically(&page, html.as_bytes())?;
    out::print(&table(&summary));
    out::print_some(&found.tables());
    if let Some(beside) = &beside {
        out::print(&report::beside_table(beside, style()));
    }
    if let Some(dir) = &options.figures {
        let count = figures(run, &summary, dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(found.ended(whole(&[run])?))
}

/// How reading these runs ends: failed where one has lost something that was on record.
fn whole(runs: &[&Run]) -> Result<Ended, CommandError> {
    for run in runs {
        if !run.damage()?.is_empty() {
            return Ok(Ended::Failed);
        }
    }
    Ok(Ended::Fine)
}

/// As [`one`], of a run of single measurements.
fn series(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let summary = report::series_study(run)?;
    if options.judge.baseline.is_some() {
        let what = "a run of single measurements is not compared with another";
        return Err(InputError::new("--baseline", what, "remove the option").into());
    }
    let found = Asked::of_or_kept(&options.judge, run)?.judge_series(&summary);
    let beside = match options.against {
        Some(_) => Some(report::series_beside(run, &summary)?),
        None => None,
    };
    if options.json {
        let mut json = serde_json::to_value(&summary).unwrap_or_default();
        if let Some(beside) = &beside {
            json["published"] = serde_json::to_value(beside).unwrap_or_default();
        }
        found.add_to(&mut json);
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return Ok(found.ended(Ended::Fine));
    }
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            run.write_series_summary(&summary)?;
            run.dir().join("report.html")
        }
    };
    let html = report::series_html_with(run, &summary, beside.as_ref(), found.judged.as_ref())?;
    write_atomically(&page, html.as_bytes())?;
    out::print(&series_table(&summary));
    out::print_some(&found.tables());
    if let Some(beside) = &beside {
        out::print(&report::beside_table(beside, style()));
    }
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::series_figures(run, &summary)?, dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(found.ended(Ended::Fine))
}

/// The terminal's tables of a run of single measurements.
pub fn series_table(summary: &SeriesSummary) -> String {
    report::series_table(summary, style())
}

/// As [`study_and_write`], of a run of single measurements.
pub fn study_and_write_series(
    run: &Run,
    asked: &Asked,
    page: &Path,
) -> Result<(SeriesSummary, Found), CommandError> {
    let summary = report::series_study(run)?;
    run.write_series_summary(&summary)?;
    let found = asked.judge_series(&summary);
    let html = report::series_html_with(run, &summary, None, found.judged.as_ref())?;
    write_atomically(page, html.as_bytes())?;
    Ok((summary, found))
}

/// How the terminal is dressed.
pub fn style() -> report::Style {
    report::Style {
        colour: out::colour(),
        width: out::width(),
    }
}

/// The terminal's table of a summary.
pub fn table(summary: &RunSummary) -> String {
    report::table(summary, style())
}

/// Computes the summary, keeps it in the run as `summary.json`, judges it, and writes the page.
pub fn study_and_write(
    run: &Run,
    asked: &Asked,
    page: &Path,
) -> Result<(RunSummary, Found), CommandError> {
    let summary = report::study(run)?;
    run.write_summary(&summary)?;
    let found = asked.judge(run, &summary)?;
    let extras = Extras {
        judged: found.judged.as_ref(),
        compared: found.compared.as_ref(),
        beside: None,
    };
    write_atomically(page, report::html_with(run, &summary, extras)?.as_bytes())?;
    Ok((summary, found))
}

fn figures(run: &Run, summary: &RunSummary, dir: &Path) -> Result<usize, CommandError> {
    write_figures(&report::figures(run, summary)?, dir)
}

/// Writes SVG files into a directory.
pub fn write_figures(figures: &[(String, String)], dir: &Path) -> Result<usize, CommandError> {
    host::writer::create_dir_all(dir).map_err(|source| CommandError::File {
        path: dir.to_owned(),
        doing: "make the directory",
        source,
    })?;
    for (name, svg) in figures {
        write_atomically(&dir.join(name), svg.as_bytes())?;
    }
    Ok(figures.len())
}

fn compare(first: &Run, second: &Run, options: &Report) -> Result<Ended, CommandError> {
    for run in [first, second] {
        if run.is_scale()? {
            let what = "a scale study is not compared with another run";
            return Err(InputError::new(run.name(), what, "report it alone").into());
        }
    }
    let compared = report::compare(first, second)?;
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("comparison.html"));
    write_atomically(&page, report::compare_html(&compared).as_bytes())?;
    out::print(&report::compare_table(&compared, style()));
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::compare_figures(&compared), dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    for run in [first, second] {
        for lost in run.damage()? {
            out::note(&format!("failed: {}: {lost}", run.name()));
        }
    }
    out::print(&format!("report  {}", page.display()));
    whole(&[first, second])
}
