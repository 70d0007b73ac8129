//! The terminal's table of a supply study.

use record::supply::SupplySummary;

use super::findings::findings;
use super::{reaction, rows, tried};
use text::style::Style;
use text::words::{not_measured, with_fix};

/// A row for each budget, the host below; then findings, unmeasured subjects and failures. Ends with a line break.
pub fn supply_table(summary: &SupplySummary, style: Style) -> String {
    let tables = rows::table(summary).block(style)
        + &reaction::table(summary).block(style)
        + &tried::table(summary).block(style);
    let mut sentences = findings(summary);
    sentences.extend(summary.not_measured.iter().map(not_measured));
    sentences.extend(summary.not_tried.iter().map(|absent| {
        let why = with_fix(&absent.reason, &absent.fix);
        format!("{}: no set tried: {why}", absent.trial)
    }));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    tables + &style.sentences(&sentences)
}
