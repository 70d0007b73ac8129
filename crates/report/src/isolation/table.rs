//! The terminal's tables of a study of isolation.

use record::isolation::IsolationSummary;

use super::findings::findings;
use super::rows::{arms, budgets, standings};
use text::style::Style;
use text::words::not_measured;

/// The arms, the enforcers, the budgets; then findings, unmeasured trials and failures. Ends with a line break.
pub fn isolation_table(summary: &IsolationSummary, style: Style) -> String {
    let tables = arms(summary).block(style)
        + &standings(summary).block(style)
        + &budgets(summary).block(style);
    let mut sentences = findings(summary);
    sentences.extend(summary.not_measured.iter().map(not_measured));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    tables + &style.sentences(&sentences)
}
