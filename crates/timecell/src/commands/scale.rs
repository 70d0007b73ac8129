//! Scale studies: what `bench` and `report` do with a run of growing numbers of cells.

use model::InputError;
use record::run::{Run, write_atomically};
use record::scale::ScaleSummary;

use crate::cli::Report;
use crate::commands::report::{style, write_figures};
use crate::exit::{CommandError, Ended};
use crate::out;

/// The report of one scale study.
pub fn report(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let judged = [
        ("--fail-if", !options.judge.fail_if.is_empty()),
        ("--baseline", options.judge.baseline.is_some()),
    ];
    if let Some((option, _)) = judged.into_iter().find(|(_, asked)| *asked) {
        return Err(InputError::new(option, NOT_JUDGED, "remove the option").into());
    }
    let summary = report::scale_study(run)?;
    let beside = match options.against {
        Some(_) => Some(report::scale_beside(run, &summary)?),
        None => None,
    };
    if options.json {
        let mut json = serde_json::to_value(&summary).unwrap_or_default();
        if let Some(beside) = &beside {
            json["published"] = serde_json::to_value(beside).unwrap_or_default();
        }
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return Ok(Ended::Fine);
    }
    // With --output nothing is written into the run, which may belong to somebody else.
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            run.write_scale_summary(&summary)?;
            run.dir().join("report.html")
        }
    };
    let html = report::scale_html(run, &summary, beside.as_ref())?;
    write_atomically(&page, html.as_bytes())?;
    out::print(&report::scale_table(&summary, style()));
    if let Some(beside) = &beside {
        out::print(&report::beside_table(beside, style()));
    }
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::scale_figures(&summary), dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(Ended::Fine)
}

/// Why thresholds and baselines are refused.
pub const NOT_JUDGED: &str = "a scale study holds numbers of cells, which no threshold is about";

/// What follows a scale study at once: summary, page and table.
pub fn after_bench(run: &Run, json: bool) -> Result<Ended, CommandError> {
    let summary = report::scale_study(run)?;
    run.write_scale_summary(&summary)?;
    let page = run.dir().join("report.html");
    let html = report::scale_html(run, &summary, None)?;
    write_atomically(&page, html.as_bytes())?;
    if json {
        out::print(&serde_json::to_string_pretty(&summary).unwrap_or_default());
    } else {
        out::print(&format!("\n{}", report::scale_table(&summary, style())));
        out::print(&format!("report  {}", page.display()));
    }
    Ok(ended(&summary))
}

/// A cell that failed is a fact of a study that goes on. It has failed where a number of cells did or was cut off, where
/// nothing came through, or where jobs are gone and nobody knows why.
fn ended(summary: &ScaleSummary) -> Ended {
    let nothing = summary
        .engines
        .iter()
        .all(|engine| engine.largest.is_none());
    let points = &summary.points;
    let lost = points.iter().any(|point| point.unexplained > 0);
    let failed = points
        .iter()
        .any(|point| point.failure.is_some() || !point.cut_off.is_empty());
    if nothing || lost || failed {
        Ended::Failed
    } else {
        Ended::Fine
    }
}
