//! The terminal's table of a supply study.

use record::supply::SupplySummary;

use super::findings::findings;
use super::rows::{HEADINGS, host_row, row};
use super::{heading, reaction, tried};
use text::grid::{Text, from_rows, render};
use text::style::Style;
use text::words::{clean, with_fix};

/// A row for each budget, the host below; then what was found, what was not measured and what failed. Ends with a line
/// break.
pub fn supply_table(summary: &SupplySummary, style: Style) -> String {
    let mut out = String::new();
    let mut rows: Vec<[Text; 8]> = summary.supplies.iter().map(row).collect();
    rows.extend(summary.host.as_ref().map(host_row));
    if !rows.is_empty() {
        out += &format!("{}\n\n", heading(summary));
        out += &render(&from_rows(&HEADINGS, rows, 2..6), style);
        out.push('\n');
    }
    let reactions: Vec<[Text; 8]> = summary.supplies.iter().filter_map(reaction::row).collect();
    if !reactions.is_empty() {
        out += "how exact the freezer was\n\n";
        out += &render(&from_rows(&reaction::HEADINGS, reactions, 1..8), style);
        out.push('\n');
    }
    if !summary.tried.is_empty() {
        let rows = summary.tried.iter().map(tried::row).collect();
        out += "deadlines of two tasks inside each budget, by the supply that chose them\n\n";
        out += &render(&from_rows(&tried::HEADINGS, rows, 5..9), style);
        out.push('\n');
    }
    let mut sentences = findings(summary);
    sentences.extend(summary.not_measured.iter().map(|absent| {
        let why = with_fix(&absent.reason, &absent.fix);
        format!("{}: not measured: {why}", absent.trial)
    }));
    let not_tried = summary.not_tried.iter();
    sentences.extend(not_tried.map(|absent| {
        let why = with_fix(&absent.reason, &absent.fix);
        format!("{}: no set tried: {why}", absent.trial)
    }));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    for sentence in sentences {
        out.push_str(&style.wrap(&clean(&sentence), 4));
        out.push('\n');
    }
    out
}
