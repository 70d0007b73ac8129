//! The frame of every page: head, style, navigation, sections.

use super::section::Section;
use crate::chart::{css, dark, light};
use host::provenance::Provenance;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::run::Manifest;
use text::words::clean;

/// How the page looks, apart from figures and colours.
const CSS: &str = include_str!("page.css");

/// The value of `<meta name="generator">` of every page, by which timecell knows its own.
const GENERATOR: &str = "timecell";

/// Whether a file that begins like this is a page of ours; its first 512 bytes tell.
pub fn is_page(begin: &[u8]) -> bool {
    let mark = format!("<meta name=\"generator\" content=\"{GENERATOR}\">");
    begin
        .windows(mark.len())
        .any(|part| part == mark.as_bytes())
}

/// A whole page.
pub(crate) fn document(title: &str, head: &Markup, sections: &[Section]) -> String {
    let style = format!(
        ":root{{color-scheme:light dark;{}--soft:#f5f7f9;--warn:#8a4b00;--warnsoft:#fff4e0;--bad:#a3210f;\
         --badsoft:#fdecea;--good:#1a6b3c;--link:#0059b3}}\
         @media screen and (prefers-color-scheme:dark){{:root{{{}--soft:#1c2229;--warn:#f0b45e;--warnsoft:#33270f;\
         --bad:#ff9a8a;--badsoft:#3a1b17;--good:#74d39b;--link:#7bb8ff}}}}{CSS}{}",
        light(),
        dark(),
        css(false)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="generator" content=(GENERATOR);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (clean(title)) }
                style { (PreEscaped(style)) }
            }
            body {
                header { (head) }
                nav aria-label="Sections" {
                    @for section in sections { a href=(format!("#{}", section.id)) { (section.heading) } " " }
                }
                main {
                    @for section in sections {
                        section id=(section.id) aria-labelledby=(format!("{}-h", section.id)) {
                            h2 id=(format!("{}-h", section.id)) { (section.heading) }
                            (section.body)
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// The top of the report of a run: its name, when and where it was made, and cautions before any number.
pub(crate) fn run_head(
    name: &str,
    run: &str,
    manifest: &Manifest,
    provenance: &Provenance,
    banners: &Markup,
) -> Markup {
    html! {
        p.kicker { "timecell report" }
        h1 { (clean(name)) }
        p.meta {
            "run " code { (clean(run)) } ", started " (manifest.started)
            @if let Some(finished) = &manifest.finished { ", finished " (finished) }
            ", " (provenance.one_line())
        }
        @if let Some(caution) = provenance.virtualization.caution() {
            p.banner.bad role="note" { strong { "Caution:" } " " (clean(&caution)) "." }
        }
        (banners)
    }
}
