//! The terminal's tables of measured files.

use record::import::measured::{Distribution, Measured};

use super::{
    QUANTILES, Shown, heading, label, of_quantity, overflow, quantities, shown, tool, total, words,
};
use crate::grid::{Cell, Table};
use text::style::{Style, Tone};
use text::words::{capital, clean};

/// A table for each quantity, then the notes on each file.
///
/// Ends with a line break.
pub fn measured_table(files: &[Measured], style: Style) -> String {
    let mut out = String::new();
    for file in files {
        let machine = file.machine.as_deref().map(|m| format!(", {m}"));
        let line = format!(
            "{}   {}{}",
            file.file,
            tool(file),
            machine.unwrap_or_default()
        );
        out += &style.wrap(&clean(&line), 4);
        out.push('\n');
    }
    out.push('\n');
    for quantity in quantities(files) {
        out += &table(files, quantity).block(style);
    }
    for file in files {
        for note in &file.notes {
            let of = if files.len() == 1 {
                String::new()
            } else {
                format!("{}: ", file.file)
            };
            out += &style.wrap(&clean(&format!("note: {of}{note}")), 6);
            out.push('\n');
        }
    }
    if files.len() > 1 {
        let sentence = format!(
            "note: {} from different programs, runs or machines: the tables show them side by side and compare nothing",
            heading(files)
        );
        out += &style.wrap(&sentence, 6);
        out.push('\n');
    }
    out
}

/// The distributions of a quantity.
pub(super) fn table<'f>(
    files: &'f [Measured],
    quantity: &'f str,
) -> Table<(&'f Measured, &'f Distribution)> {
    let table = Table::new(capital(quantity), of_quantity(files, quantity))
        .head("thread", |(file, d)| {
            let cpu = d.cpu.filter(|_| !d.name.contains("cpu"));
            let cpu = cpu.map(|cpu| format!("cpu {cpu}"));
            Cell::from(label(files, file, d)).below(cpu.unwrap_or_default())
        })
        .number("values", |(_, d)| total(d))
        .times("min", |(_, d)| Some(d.min_ns()? as f64))
        .times("mean", |(_, d)| d.mean_ns());
    let table = QUANTILES
        .into_iter()
        .fold(table, |table, (probability, name)| {
            let scale = table.scale(|(_, d)| match shown(d, probability) {
                Shown::At(ns) | Shown::Above(ns) => Some(ns as f64),
                Shown::Needs(_) | Shown::Absent => None,
            });
            table.number(name, |(_, d)| {
                words(shown(d, probability), |ns| scale.show(ns as f64))
            })
        });
    table
        .times("max", |(_, d)| Some(d.max_ns()? as f64))
        .text("beyond the histogram", |(_, d)| {
            let tone = match d.overflow {
                Some(_) => Tone::Caution,
                None => Tone::Plain,
            };
            Cell::new(overflow(d), tone)
        })
}
