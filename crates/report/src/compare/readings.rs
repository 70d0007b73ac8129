//! Figures of two runs side by side, for terminal and page.

use maud::{Markup, html};
use study::judge::{Ends, Unit};
use study::{Change, Difference, ReadingPair, ReadingsComparison};

use super::{page, text};
use crate::grid::{Cell, Table};
use crate::html::Section;
use crate::judge::shown;
use ::text::style::{Style, Tone};
use ::text::words::{count, ratio};

/// The basis of the verdicts, without a full stop.
const RULE: &str = "A difference is reported where the two 95 % intervals do not touch; largest and smallest values, means and counts are \
    what each run saw, and nothing is claimed about them";

/// How the second compares with the first: `1.230x, larger`.
fn said(pair: &ReadingPair) -> String {
    let [a, b] = [&pair.values[0], &pair.values[1]].map(|measured| measured.value);
    let by = match pair.unit {
        Unit::Count if b >= a => format!("+{}", count((b - a) as u64)),
        Unit::Count => format!("-{}", count((a - b) as u64)),
        _ if a > 0.0 && b > 0.0 => format!("{}x", ratio(b / a)),
        _ => "-".to_owned(),
    };
    match pair.change {
        Change::Larger => format!("{by}, larger"),
        Change::Smaller => format!("{by}, smaller"),
        Change::NotTold => format!("{by}, within noise"),
        Change::Same => "the same".to_owned(),
        Change::Seen => format!("{by}, as seen"),
    }
}

fn tone(pair: &ReadingPair) -> Tone {
    match pair.change {
        Change::Larger => Tone::Caution,
        Change::Smaller => Tone::Good,
        Change::NotTold | Change::Same | Change::Seen => Tone::Plain,
    }
}

fn figures_table(compared: &ReadingsComparison) -> Table<&ReadingPair> {
    let value = |pair: &ReadingPair, at: usize| {
        let measured = &pair.values[at];
        match measured.ends {
            Ends::AtMost => format!("at most {}", shown(measured.value, None, pair.unit)),
            Ends::AtLeast(_) => format!("at least {}", shown(measured.value, None, pair.unit)),
            _ => shown(measured.value, measured.interval(), pair.unit),
        }
    };
    Table::new("Figures of both runs", &compared.pairs)
        .head(compared.kind.subject(), |pair| pair.label.as_str())
        .text("figure", |pair| Cell::code(&pair.figure.to_string()))
        .text("first (95 % interval)", |pair| value(pair, 0))
        .text("second (95 % interval)", |pair| value(pair, 1))
        .text("second against first", |pair| {
            Cell::new(said(pair), tone(pair))
        })
}

fn runs(compared: &ReadingsComparison) -> [&String; 2] {
    [&compared.runs[0], &compared.runs[1]]
}

fn only(compared: &ReadingsComparison) -> [&[String]; 2] {
    [&compared.only_first, &compared.only_second]
}

fn differ(compared: &ReadingsComparison) -> [(&'static str, &[Difference]); 2] {
    [
        ("machine", &compared.machine),
        ("conditions", &compared.experiment),
    ]
}

/// Cautions, the table, then differences. Ends with a line break.
pub(super) fn table(compared: &ReadingsComparison, style: Style) -> String {
    let mut out = text::opening(runs(compared), &compared.cautions, style);
    if compared.pairs.is_empty() {
        out += &format!("no {} is in both runs\n", compared.kind.subject());
    } else {
        out += &figures_table(compared).lines(style);
        out += &format!("\n{}\n", style.wrap(&format!("note: {RULE}"), 4));
    }
    out.push('\n');
    let differ = [
        ("condition", compared.experiment.as_slice()),
        ("machine", &compared.machine),
    ];
    out + &text::closing(only(compared), differ, style)
}

/// The comparison as a page of its own.
pub(super) fn html(compared: &ReadingsComparison) -> String {
    let section = Section {
        id: "figures",
        heading: "Figures in both runs".to_owned(),
        body: figures(compared),
    };
    page::whole(
        runs(compared),
        &compared.cautions,
        section,
        differ(compared),
    )
}

/// The comparison as a section of the second run's page.
pub(super) fn section(compared: &ReadingsComparison) -> Section {
    let first = &compared.runs[0];
    let body = html! {
        p.quiet { (page::comparison_of(first)) "." }
        (figures(compared))
    };
    page::within(first, &compared.cautions, &body, differ(compared))
}

fn figures(compared: &ReadingsComparison) -> Markup {
    html! {
        @if compared.pairs.is_empty() { p { "No " (compared.kind.subject()) " is in both runs." } }
        @else {
            (figures_table(compared))
            p.quiet { (RULE) "." }
        }
        (page::only(only(compared)))
    }
}
