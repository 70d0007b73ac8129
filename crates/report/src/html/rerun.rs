//! How to measure the same again, and how to study this run again.

use super::section::{Page, Section};
use maud::html;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    let run = clean(&page.data.summary.run);
    Some(Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p { "The run's directory holds the experiment with every default filled in, so this measures the same again:" }
            pre { code { "sudo timecell bench " (run) "/experiment.toml" } }
            p { "This page is computed from the run's samples and can be regenerated, also by a later timecell; the last line compares two runs:" }
            pre { code { "timecell report " (run) "\ntimecell report " (run) " ANOTHER-RUN" } }
            details {
                summary { "The experiment file" }
                pre { code { (clean_lines(&page.data.plan.to_toml())) } }
            }
        },
    })
}

/// As `clean`, but keeps line breaks.
fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}
