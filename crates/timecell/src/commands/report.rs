//! `timecell report`.

use std::path::{Path, PathBuf};

use record::run::{Run, write_atomically};
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
    std::fs::create_dir_all(dir).map_err(|source| CommandError::File {
        path: dir.to_owned(),
        doing: "make the directory",
        source,
    })?;
    let figures = report::figures(run, summary)?;
    for (name, svg) in &figures {
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
