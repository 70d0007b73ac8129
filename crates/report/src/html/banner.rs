//! Banners: cautions to a reader before any number.

use super::section::Page;
use maud::{Markup, html};
use record::run::{Manifest, Status};
use text::words::{clean, count, plural, resumed};

/// Banners for a run that did not complete, that failed in part, or that was not real-time.
pub(super) fn banners(page: &Page) -> Markup {
    let manifest = &page.data.manifest;
    // Trials that were not measured may be counted as planned; they have a reason of their own.
    let explained = manifest.not_measured.len() as u64 * u64::from(page.data.plan.rounds);
    let known = explained.saturating_add(manifest.trials_done.into());
    let whole = known >= manifest.trials_planned.into();
    let summary = &page.data.summary;
    let unreal: Vec<String> = summary
        .cells
        .iter()
        .filter(|cell| !cell.real_time)
        .map(|cell| clean(&cell.label))
        .collect();
    html! {
        (ended(manifest, "trial", whole))
        (remarks(manifest))
        (failures(&summary.failures))
        @if !summary.real_time {
            p.banner role="note" {
                strong { "not real-time:" } " " (named(&unreal)) " ran in no real-time class. "
                "Their numbers show how best-effort work behaves; they say nothing about real-time work."
            }
        }
    }
}

/// A banner if the run ended early, or lacks planned parts without saying why; `of`: the name of a part.
pub(crate) fn ended(manifest: &Manifest, of: &str, whole: bool) -> Markup {
    let word = match manifest.status {
        Status::Complete if whole => return html! {},
        Status::Complete => "Incomplete",
        Status::Interrupted => "Interrupted",
        Status::Killed => "Killed",
        Status::Failed => "Failed",
        Status::Running => "Not finished",
    };
    let planned = plural(manifest.trials_planned.into(), &format!("planned {of}"));
    html! {
        p.banner.bad role="note" {
            strong { (word) ":" } " " (count(manifest.trials_done.into())) " of " (planned)
            " are on record; the numbers rest on these alone."
        }
    }
}

/// One banner per interval in which nothing was measured because the run had ended and was resumed later.
pub(crate) fn gaps(manifest: &Manifest) -> Markup {
    html! {
        @for gap in &manifest.resumed {
            p.banner role="note" { strong { "Resumed:" } " " (clean(&resumed(gap))) }
        }
    }
}

/// One banner per remark on the run that explains results.
pub(crate) fn remarks(manifest: &Manifest) -> Markup {
    html! {
        @for remark in &manifest.remarks {
            p.banner role="note" { strong { "Remark:" } " " (clean(remark)) "." }
        }
    }
}

/// A banner if something failed, with a link to the list.
pub(crate) fn failures(failures: &[String]) -> Markup {
    html! {
        @if !failures.is_empty() {
            p.banner.bad role="note" {
                strong { "Failures:" } " " (count(failures.len() as u64)) ", listed under "
                a href="#lacking" { "what is missing" } "."
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

#[cfg(test)]
mod tests {
    use record::run::Resumption;

    use super::*;

    #[test]
    fn only_a_whole_run_that_came_to_its_end_needs_no_banner() {
        let mut manifest = Manifest {
            schema: 1,
            timecell_version: "0.1.0".to_owned(),
            started: "2026-11-21T22:44:03Z".to_owned(),
            finished: None,
            status: Status::Complete,
            trials_planned: 1_200,
            trials_done: 1_100,
            requirements: Vec::new(),
            not_measured: Vec::new(),
            failure: None,
            resumed: Vec::new(),
            remarks: Vec::new(),
        };
        assert_eq!(ended(&manifest, "trial", true).0, "");
        let said = ended(&manifest, "trial", false).0;
        assert!(
            said.contains("Incomplete:</strong> 1,100 of 1,200 planned trials are"),
            "{said}"
        );
        manifest.status = Status::Killed;
        (manifest.trials_planned, manifest.trials_done) = (2, 0);
        let said = ended(&manifest, "measurement", true).0;
        assert!(
            said.contains("Killed:</strong> 0 of 2 planned measurements are"),
            "{said}"
        );
        assert_eq!(gaps(&manifest).0, "");
        manifest.resumed.push(Resumption {
            resumed: "2026-11-22T06:00:00Z".to_owned(),
            last_record: "2026-11-21T23:00:00Z".to_owned(),
            ended: "<killed>".to_owned(),
            cut_off_trial: None,
            differences: vec!["the kernel changed".to_owned()],
        });
        let said = gaps(&manifest).0;
        assert!(
            said.contains("(&lt;killed&gt;): nothing was measured from 2026-11-21T23:00:00Z until then; the kernel changed."),
            "{said}"
        );
        assert_eq!(failures(&[]).0, "");
        assert!(
            failures(&["a".to_owned(), "b".to_owned()])
                .0
                .contains("</strong> 2, listed under")
        );
    }
}
