//! The page's section on published figures.

use maud::{Markup, html};

use super::text::credit;
use crate::html::Section;
use study::published::{Beside, Block};
use text::words::{capital, clean, count};

/// The section of a run's page.
pub(crate) fn section(beside: &Beside) -> Section {
    Section {
        id: "published",
        heading: "Beside published figures".to_owned(),
        body: html! {
            p.banner role="note" {
                strong { "Other hardware, other kernels, other programs." } " Every number under \"theirs\" was printed by the \
                document named above it and measured by its authors, not by us. Ours were measured on " (clean(&beside.machine))
                ". They are shown side by side; nothing is computed from the two."
            }
            @if beside.blocks.is_empty() { p { "No published figure has a counterpart in this run." } }
            @for block in &beside.blocks { (shown(block)) }
            @if !beside.without.is_empty() {
                details {
                    summary { "Published figures without a counterpart in this run: " (count(beside.without.iter().map(|w| w.figures as u64).sum())) }
                    ul.findings { @for none in &beside.without {
                        li {
                            (clean(&none.published_by)) ", " (clean(&none.place)) ": " (none.figures) " of " (none.metric.title())
                            "; " (clean(&none.reason)) "."
                        }
                    } }
                }
            }
        },
    }
}

fn shown(block: &Block) -> Markup {
    html! {
        h3 { (capital(block.metric.title())) ", " (clean(&block.published_by)) ", " (clean(&block.place)) }
        p.quiet { (capital(&clean(&credit(block)))) ". " (capital(&clean(&block.conditions))) "." }
        (super::text::table(block))
    }
}
