//! The page of measured files.

use maud::{Markup, html};
use record::import::measured::{Distribution, Measured};

use super::{
    QUANTILES, figure, heading, label, of_quantity, overflow, quantities, shown, tool, total, words,
};
use crate::html::{Extras, Section, finished, pictures, time_cell};
use text::units::Scale;
use text::words::{capital, clean, sentence};

/// The files as one HTML page, without network or script, with the sections of `extras`.
pub fn measured_html(files: &[Measured], extras: Extras) -> String {
    let title = match files {
        [one] => clean(one.file.rsplit('/').next().unwrap_or(&one.file)),
        _ => heading(files),
    };
    let ours = files.iter().filter(|file| file.format.is_none()).count();
    let head = html! {
        p.kicker { "timecell report, files of other tools" }
        h1 { (title) }
        @if ours < files.len() {
            p.banner role="note" {
                strong { "Not measured by timecell." } " The numbers are what these files say; how they were measured is known only as \
                far as the files say."
            }
        }
        @if files.len() > 1 {
            p.banner role="note" {
                strong { "Side by side, not compared." } " The files come from different programs, runs or machines; a \
                difference may be due to any of them."
            }
        }
    };
    let mut sections = vec![Section {
        id: "files",
        heading: "What the files are".to_owned(),
        body: about(files),
    }];
    const IDS: [&str; 4] = ["q1", "q2", "q3", "q4"];
    for (number, quantity) in quantities(files).into_iter().enumerate() {
        sections.push(Section {
            id: IDS[number % IDS.len()],
            heading: capital(quantity),
            body: quantity_body(files, quantity, number),
        });
    }
    sections.push(Section {
        id: "notes",
        heading: "What the files leave open".to_owned(),
        body: notes(files),
    });
    finished("Measured by other tools", &head, sections, extras)
}

fn about(files: &[Measured]) -> Markup {
    html! {
        @for file in files {
            dl {
                dt { "file" } dd { code { (clean(&file.file)) } }
                dt { "tool" } dd {
                    (tool(file))
                    @match file.format {
                        Some(format) => { ", read as " (format.name()) },
                        None => ", a run of timecell",
                    }
                }
                @if let Some(command) = &file.command { dt { "command" } dd { code { (clean(command)) } } }
                @if let Some(machine) = &file.machine { dt { "machine" } dd { (clean(machine)) } }
            }
        }
    }
}

fn quantity_body(files: &[Measured], quantity: &str, number: usize) -> Markup {
    let rows: Vec<(&Measured, &Distribution)> = of_quantity(files, quantity).collect();
    let figures = figure::draw(files, quantity, number);
    let time = |of: fn(&Distribution) -> Option<f64>| {
        let scale = Scale::of(rows.iter().filter_map(|(_, d)| of(d)));
        move |d: &Distribution| of(d).map_or("-".to_owned(), |ns| scale.show(ns))
    };
    let min = time(|d| d.min_ns().map(|ns| ns as f64));
    let mean = time(Distribution::mean_ns);
    let max = time(|d| d.max_ns().map(|ns| ns as f64));
    let all = rows.iter().flat_map(|(_, d)| {
        QUANTILES
            .into_iter()
            .filter_map(|(p, _)| match shown(d, p) {
                super::Shown::At(ns) | super::Shown::Above(ns) => Some(ns as f64),
                _ => None,
            })
    });
    let scale = Scale::of(all);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(quantity) {
            table {
                caption {
                    "A quantile among the values beyond the histogram is \"above\" its end; one with too few values says how many it \
                    needs. The maximum is a lower bound of the worst case."
                }
                thead { tr {
                    th scope="col" { "thread" } th.num scope="col" { "values" }
                    th.num scope="col" { "min" } th.num scope="col" { "mean" }
                    @for (_, name) in QUANTILES { th.num scope="col" { (name) } }
                    th.num scope="col" { "max" } th.num scope="col" { "beyond" br; span.below { "the histogram" } }
                } }
                tbody { @for (file, d) in &rows {
                    tr {
                        th scope="row" {
                            (label(files, file, d))
                            @if let Some(cpu) = d.cpu { @if !d.name.contains("cpu") { br; span.below { "cpu " (cpu) } } }
                        }
                        (time_cell(&total(d), "")) (time_cell(&min(d), "")) (time_cell(&mean(d), ""))
                        @for (probability, _) in QUANTILES {
                            (time_cell(&words(shown(d, probability), |ns| scale.show(ns as f64)), ""))
                        }
                        (time_cell(&max(d), ""))
                        td.num {
                            @match overflow(d).split_once(" of ") {
                                Some((count, of)) => { span.caution { (count) } br; span.below { "of " (of) } },
                                None => "0",
                            }
                        }
                    }
                } }
            }
        }
        @if figures.is_empty() { p.quiet { "No file has a histogram of it, so there is nothing to draw." } }
        @else { (pictures(&figures)) }
    }
}

fn notes(files: &[Measured]) -> Markup {
    html! {
        @if files.iter().all(|file| file.notes.is_empty()) { p { "Nothing." } }
        @for file in files {
            @if !file.notes.is_empty() {
                @if files.len() > 1 { h3 { (clean(&file.file)) } }
                ul.findings { @for note in &file.notes { li { (sentence(&clean(note))) } } }
            }
        }
    }
}
