//! The terminal's tables of measured files.

use record::import::measured::{Distribution, Measured};

use super::{
    QUANTILES, heading, label, of_quantity, overflow, quantities, shown, tool, total, words,
};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::{capital, clean};

/// A table for each quantity, then what each file leaves open.
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
    for quantity in quantities(files) {
        out += &format!("\n{}\n\n", capital(quantity));
        out += &render(&columns(files, quantity), style);
    }
    out.push('\n');
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

fn columns(files: &[Measured], quantity: &str) -> Vec<Column> {
    let rows: Vec<(&Measured, &Distribution)> = of_quantity(files, quantity).collect();
    let names = rows.iter().map(|(file, d)| label(files, file, d)).collect();
    let mut columns = vec![
        Column::plain("", names),
        Column::plain("values", rows.iter().map(|(_, d)| total(d)).collect()).right(),
        times("min", &rows, |d| d.min_ns().map(|ns| ns as f64)),
        times("mean", &rows, Distribution::mean_ns),
    ];
    for (probability, name) in QUANTILES {
        let all = rows
            .iter()
            .filter_map(|(_, d)| match shown(d, probability) {
                super::Shown::At(ns) | super::Shown::Above(ns) => Some(ns as f64),
                _ => None,
            });
        let scale = Scale::of(all);
        let text = |d| words(shown(d, probability), |ns| scale.show(ns as f64));
        columns.push(Column::plain(name, rows.iter().map(|(_, d)| text(d)).collect()).right());
    }
    columns.push(times("max", &rows, |d| d.max_ns().map(|ns| ns as f64)));
    let beyond = rows.iter().map(|(_, d)| {
        let tone = if d.overflow.is_some() {
            Tone::Caution
        } else {
            Tone::Plain
        };
        Text(overflow(d), tone)
    });
    columns.push(Column::new("beyond the histogram", beyond.collect()));
    columns
}

fn times(
    heading: &str,
    rows: &[(&Measured, &Distribution)],
    of: impl Fn(&Distribution) -> Option<f64>,
) -> Column {
    let scale = Scale::of(rows.iter().filter_map(|(_, d)| of(d)));
    let texts = rows
        .iter()
        .map(|(_, d)| of(d).map_or("-".to_owned(), |ns| scale.show(ns)));
    Column::plain(heading, texts.collect()).right()
}
