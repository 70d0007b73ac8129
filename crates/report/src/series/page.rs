//! The report of a run of single measurements as one HTML file.

use super::table::{median, said, scale, share_names, short_name};
use super::{draw, of_part, shares, wholes};
use crate::html::{
    Extras, Own, Section, failure_list, framed, not_measured_table, pictures, region, time_cell,
    unmet_table,
};
use maud::{Markup, html};
use model::Requirement;
use record::RecordError;
use record::run::Run;
use record::series::{SeriesFigure, SeriesRecord, SeriesSummary};
use stats::Verdict;
use text::amount::Amount;
use text::words::{capital, clean, judged, sentence};

/// The report as one HTML file, with the sections of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn series_html(
    run: &Run,
    summary: &SeriesSummary,
    extras: Extras,
) -> Result<String, RecordError> {
    let record: SeriesRecord = run.read()?;
    let figures = draw(&record, summary);
    let mut sections = vec![asked(&record, summary)];
    sections.extend(tables(summary));
    sections.extend((!figures.is_empty()).then(|| Section {
        id: "figures",
        heading: "Figures".to_owned(),
        body: pictures(&figures),
    }));
    sections.extend(made_of(summary));
    sections.extend([lacking(summary), again(summary)]);
    let own = Own {
        name: &summary.scenario,
        run: &summary.run,
        of: "measurement",
        failures: &summary.failures,
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn asked(record: &SeriesRecord, summary: &SeriesSummary) -> Section {
    Section {
        id: "asked",
        heading: "What was asked".to_owned(),
        body: html! {
            p.question { (clean(&record.question)) }
            dl {
                dt { "rounds" } dd { (record.rounds_planned) ", every subject once per round" }
                dt { "subjects" } dd { (clean(&record.subjects().join(", "))) }
                @if let Some(baseline) = &summary.baseline_subject { dt { "baseline" } dd { (clean(baseline)) } }
                @for condition in &record.conditions {
                    dt { (clean(&condition.name)) } dd { (clean(&condition.text)) }
                }
            }
        },
    }
}

fn tables(summary: &SeriesSummary) -> Option<Section> {
    let parts = wholes(summary);
    (!parts.is_empty()).then(|| Section {
        id: "values",
        heading: "What was found".to_owned(),
        body: html! {
            p.quiet {
                "Below each median stands its 95% interval; \"needs n\" is the number of values that it takes. A percentile that no \
                 subject has enough values for has no column. The worst value is what was seen, a lower bound of the worst case."
            }
            @for note in &summary.notes { p { (sentence(&clean(note))) } }
            @for part in parts { (main_table(summary, part)) }
        },
    })
}

/// The shares of every part that has some.
fn made_of(summary: &SeriesSummary) -> Option<Section> {
    let parts = wholes(summary);
    let has_shares = |part: &&str| {
        summary
            .figures
            .iter()
            .any(|f| f.of.as_deref() == Some(*part))
    };
    parts.iter().any(has_shares).then(|| Section {
        id: "shares",
        heading: "What it is made of".to_owned(),
        body: html! {
            p.quiet { "Means over rounds, which add up to the mean of the whole; below each the worst value seen." }
            @for part in parts { (share_table(summary, part)) }
        },
    })
}

fn main_table(summary: &SeriesSummary, part: &str) -> Markup {
    let figures = of_part(summary, part);
    let scale = scale(&figures);
    let few = figures.iter().any(|f| f.median_interval.is_none());
    let (p90, p99) = (
        figures.iter().any(|f| f.p90.is_some()),
        figures.iter().any(|f| f.p99.is_some()),
    );
    let some =
        |value: Option<i64>| time_cell(&value.map_or("-".to_owned(), |v| scale.show(v as f64)), "");
    let compared = figures.iter().any(|f| f.against_baseline.is_some());
    let baseline = summary.baseline_subject.as_deref().unwrap_or_default();
    region(
        &capital(&clean(part)),
        html! {
            thead { tr {
                th scope="col" { "subject" } th.num scope="col" { "values" }
                th.num scope="col" { "median" }
                @if few { th.num scope="col" { "least" } }
                th.num scope="col" { "mean" } th.num scope="col" { "sd" }
                @if p90 { th.num scope="col" { "p90" } }
                @if p99 { th.num scope="col" { "p99" } }
                th.num scope="col" { "worst" }
                @if compared {
                    th scope="col" { "against " (clean(baseline)) br; span.below { "ratio, 95% interval over rounds" } }
                }
            } }
            tbody { @for f in &figures { tr {
                th scope="row" { (clean(&f.subject)) }
                (time_cell(&f.count.to_string(), &match f.failed { 0 => String::new(), n => format!("{n} failed") }))
                (time_cell(&median(f, scale), &f.median_interval.map_or(String::new(), |(low, high)| {
                    scale.ends(f.median as f64, [low as f64, high as f64])
                })))
                @if few { (some(Some(f.least))) }
                (time_cell(&scale.show(f.mean), ""))
                (time_cell(&f.sd.map_or("-".to_owned(), |v| scale.show(v)), ""))
                @if p90 { (some(f.p90)) }
                @if p99 { (some(f.p99)) }
                (some(Some(f.worst)))
                @if compared { (against(f, baseline)) }
            } } }
        },
    )
}

fn against(figure: &SeriesFigure, baseline: &str) -> Markup {
    let Some(ratio) = &figure.against_baseline else {
        return html! {
            td { @if figure.subject == baseline { "1 (baseline)" } @else { span.quiet { "-" } } }
        };
    };
    let rounds = figure.rounds_compared;
    let class = match judged(ratio, rounds) {
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => "quiet",
    };
    html! { td.verdict { span class=(class) { (said(ratio, rounds, figure.unit)) } } }
}

fn share_table(summary: &SeriesSummary, part: &str) -> Markup {
    let figures = of_part(summary, part);
    let names = share_names(summary, part, &figures);
    if names.is_empty() {
        return html! {};
    }
    let cell = |f: &SeriesFigure, name: &str| {
        let found = shares(summary, &f.subject, part);
        let found = found.into_iter().find(|share| share.part == name);
        let values = figures
            .iter()
            .flat_map(|f| shares(summary, &f.subject, part));
        let scale = Amount::of(f.unit, values.filter(|s| s.part == name).map(|s| s.mean));
        match found {
            Some(share) => time_cell(
                &scale.show(share.mean),
                &format!("worst {}", scale.show(share.worst as f64)),
            ),
            None => time_cell("-", ""),
        }
    };
    region(
        &capital(&clean(part)),
        html! {
            thead { tr {
                th scope="col" { "subject" }
                @for name in &names { th.num scope="col" { (short_name(part, name)) } }
            } }
            tbody { @for f in &figures { tr {
                th scope="row" { (clean(&f.subject)) }
                @for name in &names { (cell(f, name)) }
            } } }
        },
    )
}

fn lacking(summary: &SeriesSummary) -> Section {
    let nothing =
        summary.failures.is_empty() && summary.not_measured.is_empty() && summary.unmet.is_empty();
    // The reason why a subject is not measured is given once.
    let said = |need: &Requirement| summary.not_measured.iter().any(|n| n.reason == need.reason);
    let unmet: Vec<Requirement> = (summary.unmet.iter())
        .filter(|need| !said(need))
        .cloned()
        .collect();
    Section {
        id: "lacking",
        heading: "What is missing".to_owned(),
        body: html! {
            @if nothing { p { "Nothing: every subject was measured and every requirement was met." } }
            (failure_list(&summary.failures))
            (not_measured_table("subject", &summary.not_measured))
            (unmet_table(&unmet))
        },
    }
}

fn again(summary: &SeriesSummary) -> Section {
    Section {
        id: "rerun",
        heading: "Again".to_owned(),
        body: html! {
            p { "The first line repeats the measurement; the second regenerates this page from the run's raw values; the third writes \
                 them as a table:" }
            pre { code {
                "sudo timecell bench " (clean(&summary.scenario)) "\ntimecell report " (clean(&summary.run))
                "\ntimecell export --csv " (clean(&summary.run))
            } }
        },
    }
}
