//! `timecell report`.

use std::path::{Path, PathBuf};

use record::run::{Run, write_atomically};
use record::series::SeriesSummary;
use record::summary::RunSummary;

use crate::cli::Report;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Studies one run, or compares two, and writes the page.
pub fn run(options: &Report) -> Result<Ended, CommandError> {
    let run = Run::open(&options.run)?;
    if let Some(other) = &options.other {
        return compare(&run, &Run::open(other)?, options);
    }
    if run.is_series() {
        return series(&run, options);
    }
    if options.json {
        let summary = report::study(&run)?;
        out::print(&serde_json::to_string_pretty(&summary).unwrap_or_default());
        return Ok(Ended::Fine);
    }
    // With --output nothing is written into the run, which may belong to somebody else.
    let (page, summary) = match &options.output {
        Some(page) => {
            let summary = report::study(&run)?;
            write_atomically(page, report::html(&run, &summary)?.as_bytes())?;
            (page.clone(), summary)
        }
        None => {
            let page = run.dir().join("report.html");
            let summary = study_and_write(&run, &page)?;
            (page, summary)
        }
    };
    out::print(&table(&summary));
    if let Some(dir) = &options.figures {
        let count = figures(&run, &summary, dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(Ended::Fine)
}

/// As [`run`], of a run of single measurements.
fn series(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let page = match &options.output {
        _ if options.json => {
            let summary = report::series_study(run)?;
            out::print(&serde_json::to_string_pretty(&summary).unwrap_or_default());
            return Ok(Ended::Fine);
        }
        Some(page) => page.clone(),
        None => run.dir().join("report.html"),
    };
    let summary = if options.output.is_some() {
        let summary = report::series_study(run)?;
        write_atomically(&page, report::series_html(run, &summary)?.as_bytes())?;
        summary
    } else {
        study_and_write_series(run, &page)?
    };
    out::print(&series_table(&summary));
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::series_figures(run, &summary)?, dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(Ended::Fine)
}

/// The terminal's tables of a run of single measurements.
pub fn series_table(summary: &SeriesSummary) -> String {
    let style = report::Style {
        colour: out::colour(),
        width: out::width(),
    };
    report::series_table(summary, style)
}

/// As [`study_and_write`], of a run of single measurements.
pub fn study_and_write_series(run: &Run, page: &Path) -> Result<SeriesSummary, CommandError> {
    let summary = report::series_study(run)?;
    run.write_series_summary(&summary)?;
    write_atomically(page, report::series_html(run, &summary)?.as_bytes())?;
    Ok(summary)
}

/// The terminal's table of a summary.
pub fn table(summary: &RunSummary) -> String {
    let style = report::Style {
        colour: out::colour(),
        width: out::width(),
    };
    report::table(summary, style)
}

/// Computes the summary, keeps it in the run as `summary.json`, and writes the page.
pub fn study_and_write(run: &Run, page: &Path) -> Result<RunSummary, CommandError> {
    let summary = report::study(run)?;
    run.write_summary(&summary)?;
    write_atomically(page, report::html(run, &summary)?.as_bytes())?;
    Ok(summary)
}

fn figures(run: &Run, summary: &RunSummary, dir: &Path) -> Result<usize, CommandError> {
    write_figures(&report::figures(run, summary)?, dir)
}

fn write_figures(figures: &[(String, String)], dir: &Path) -> Result<usize, CommandError> {
    std::fs::create_dir_all(dir).map_err(|source| CommandError::File {
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
    let compared = report::compare(first, second)?;
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("comparison.html"));
    write_atomically(&page, report::compare_html(&compared).as_bytes())?;
    let style = report::Style {
        colour: out::colour(),
        width: out::width(),
    };
    out::print(&report::compare_table(&compared, style));
    out::print(&format!("report  {}", page.display()));
    Ok(Ended::Fine)
}
