//! The page of measured files.

use maud::{Markup, html};
use record::import::measured::Measured;

use super::text::table;
use super::{figure, heading, quantities, tool};
use crate::html::{Extras, Section, drawn, finished, list};
use text::words::{capital, clean};

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
    let figures = figure::draw(files, quantity, number);
    html! {
        p.quiet {
            "A quantile among the values beyond the histogram is \"above\" its end; one with too few values says how many it needs. The \
             maximum is a lower bound of the worst case."
        }
        (table(files, quantity))
        @if figures.is_empty() { p.quiet { "No file has a histogram of it, so there is nothing to draw." } }
        @else { (drawn(&figures)) }
    }
}

fn notes(files: &[Measured]) -> Markup {
    html! {
        @if files.iter().all(|file| file.notes.is_empty()) { p { "Nothing." } }
        @for file in files {
            @if !file.notes.is_empty() {
                @if files.len() > 1 { h3 { (clean(&file.file)) } }
                (list(&file.notes))
            }
        }
    }
}
