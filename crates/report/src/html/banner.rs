//! What a reader must know before any number.

use super::Page;
use crate::words::{clean, count, plural};
use maud::{Markup, html};
use record::run::Status;

/// Banners for a run that did not end well, that failed in part, or that was not real-time.
pub(super) fn banners(page: &Page) -> Markup {
    let manifest = &page.data.manifest;
    let done = format!(
        "{} of {} are on record; the numbers rest on these alone",
        count(manifest.trials_done.into()),
        plural(manifest.trials_planned.into(), "planned trial"),
    );
    // Trials that were not measured may be counted as planned; they have a reason of their own.
    let explained = manifest.not_measured.len() as u64 * u64::from(page.data.plan.rounds);
    let known = explained.saturating_add(manifest.trials_done.into());
    let ended = match manifest.status {
        Status::Complete if known < manifest.trials_planned.into() => Some("Incomplete"),
        Status::Complete => None,
        Status::Interrupted => Some("Interrupted"),
        Status::Killed => Some("Killed"),
        Status::Failed => Some("Failed"),
        Status::Running => Some("Not finished"),
    };
    let summary = page.data.summary;
    let unreal: Vec<String> = summary
        .cells
        .iter()
        .filter(|cell| !cell.real_time)
        .map(|cell| clean(&cell.label))
        .collect();
    html! {
        @if let Some(word) = ended {
            p.banner.bad role="note" { strong { (word) ":" } " " (done) "." }
        }
        @if !summary.failures.is_empty() {
            p.banner.bad role="note" {
                strong { "Failures:" } " " (count(summary.failures.len() as u64)) ", told under "
                a href="#lacking" { "what is lacking" } "."
            }
        }
        @if !summary.real_time {
            p.banner role="note" {
                strong { "not real-time:" } " " (named(&unreal)) " ran in no real-time class. "
                "Their numbers show how best-effort work behaves; they say nothing about real-time work."
            }
        }
    }
}

fn named(cells: &[String]) -> String {
    if cells.len() > 6 {
        plural(cells.len() as u64, "cell")
    } else {
        cells.join(", ")
    }
}
