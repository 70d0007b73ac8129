//! How to measure the same again, and how to study this run again.

use super::section::{Page, Section};
use maud::html;
use model::Experiment;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    let run = &page.data.summary.run;
    let again = again(run, &format!("{run}/experiment.toml"), Some("report"));
    Some(with_experiment(again, &page.data.plan))
}

/// The commands that repeat the measurement, make this page anew, and use the run otherwise: `more` of them, by the name of the command.
pub(crate) fn again(run: &str, bench: &str, more: Option<&str>) -> Section {
    let (run, bench) = (clean(run), clean(bench));
    let (command, use_of) = match more {
        Some("report") => (
            format!("\ntimecell report {run} ANOTHER-RUN"),
            " The last line compares two runs.",
        ),
        Some(_) => (
            format!("\ntimecell export --csv {run}"),
            " The last line writes them as a table.",
        ),
        None => (String::new(), ""),
    };
    let commands = format!("sudo timecell bench {bench}\ntimecell report {run}{command}");
    Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p {
                "The first line measures the same again; the second regenerates this page from the run's raw values, also by a later \
                 timecell." (use_of)
            }
            pre { code { (clean_lines(&commands)) } }
        },
    }
}

/// The same with the file that the run's directory holds.
pub(crate) fn with_experiment(again: Section, plan: &Experiment) -> Section {
    let body = html! {
        (again.body)
        details {
            summary { "The experiment file, every default filled in" }
            pre { code { (clean_lines(&plan.to_toml())) } }
        }
    };
    Section { body, ..again }
}

/// As `clean`, but keeps line breaks.
fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}
