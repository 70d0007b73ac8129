//! The terminal's tables of published figures.

use study::published::{About, published};
use study::published::{Beside, Block, Line, Ours};

use crate::grid::{Table, named};
use text::style::Style;
use text::units::time;
use text::words::{clean, plural};

/// A value of a run in its own unit.
pub(super) fn own_value(about: About, value: f64) -> String {
    match about {
        About::Memory => format!("{:.1} MB", value / 1e6),
        About::BetweenCells => format!("{value:.4}"),
        About::SizeEffect => format!("{value:.3} times"),
        _ => time(value),
    }
}

/// The line that every published block carries.
pub(super) fn credit(block: &Block) -> String {
    format!(
        "published by {} ({}), measured on {}, {}, not by us",
        block.published_by, block.place, block.board, block.kernel
    )
}

/// Blocks of published figures with the run's beside them, then the unmatched ones. Ends with a line break.
pub fn beside_table(beside: &Beside, style: Style) -> String {
    let mut out = String::from("Beside published figures\n\n");
    let caution = format!(
        "Hardware, kernels and programs differ: these numbers are shown side by side and not compared. Ours were measured on {}.",
        beside.machine
    );
    out += &style.wrap(&clean(&caution), 0);
    out.push('\n');
    for block in &beside.blocks {
        out.push('\n');
        out += &style.wrap(&clean(&credit(block)), 2);
        out.push('\n');
        out += &style.wrap(
            &clean(&format!("  {}: {}", block.metric.title(), block.conditions)),
            2,
        );
        out.push('\n');
        out += &table(block).lines(style);
    }
    out.push('\n');
    for none in &beside.without {
        let sentence = format!(
            "no counterpart: {} {} of {} ({}): {}",
            plural(none.figures as u64, "figure"),
            none.metric.title(),
            none.published_by,
            none.place,
            none.reason
        );
        out += &style.wrap(&clean(&sentence), 4);
        out.push('\n');
    }
    out
}

/// One of the published figures beside one of ours; its name stands in the first row only.
type Row<'b> = (Option<&'b Line>, &'b Ours);

/// A block of published figures with the run's beside them.
pub(super) fn table<'b>(block: &'b Block) -> Table<Row<'b>> {
    let of = |line: &'b Line| {
        line.ours
            .iter()
            .enumerate()
            .map(move |(at, ours)| ((at == 0).then_some(line), ours))
    };
    Table::new(block.place.as_str(), block.lines.iter().flat_map(of))
        .head("published", |(line, _)| {
            line.map_or("", |line| line.subject.as_str())
        })
        .text("number", |(line, _)| {
            line.map_or("", |line| line.kind.title())
        })
        .number("theirs", |(line, _)| {
            line.map_or("", |line| line.published.as_str())
        })
        .number("ours", |(_, ours)| own_value(block.metric, ours.value))
        .text("our cell", |(_, ours)| named(&ours.label, ours.real_time))
        .labelled(|(_, ours)| ours.real_time)
}

/// The documents, and how many figures of which kind each has. Ends with a line break.
pub fn sources_table(style: Style) -> String {
    let all = published();
    let mut out = String::new();
    for document in &all.documents {
        let year = document
            .year
            .map_or("undated".to_owned(), |year| year.to_string());
        let line = format!(
            "{}, {year}: {}; {}",
            document.author, document.title, document.source
        );
        out += &style.wrap(&line, 4);
        out.push('\n');
        let groups = || {
            all.groups
                .iter()
                .filter(|group| group.document == document.id)
        };
        for group in groups() {
            let line = format!(
                "    {} {} in {}: {}; {}",
                plural(group.values.len() as u64, "figure"),
                group.metric.title(),
                group.place,
                group.board,
                group.conditions
            );
            out += &style.wrap(&line, 8);
            out.push('\n');
        }
    }
    out
}
