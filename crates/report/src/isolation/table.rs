//! The terminal's tables of a study of isolation.

use record::isolation::IsolationSummary;

use super::findings::findings;
use super::rows::{ARM, RECEIVED, STANDING, arm, received, standing};
use text::grid::{from_rows, render};
use text::style::Style;
use text::words::{clean, with_fix};

/// The arms, the enforcers, the budgets; then what was found, what was not measured and what failed. Ends with a line break.
pub fn isolation_table(summary: &IsolationSummary, style: Style) -> String {
    let mut out = String::new();
    let mut block = |title: &str, table: String| {
        out += &format!("{title}\n\n{table}\n");
    };
    if !summary.arms.is_empty() {
        let rows = summary.arms.iter().map(arm).collect();
        block(
            &format!(
                "deadlines of a cell beside one of higher priority that runs {} times as long as it declared",
                summary.overrun
            ),
            render(&from_rows(&ARM, rows, 4..8), style),
        );
        let rows = summary.standings.iter().map(standing).collect();
        block(
            "the attacker overrunning, against the victim alone",
            render(&from_rows(&STANDING, rows, 3..6), style),
        );
    }
    if !summary.received.is_empty() {
        let rows = summary.received.iter().map(received).collect();
        block(
            "cpu time received by cells that always want it, side by side, as a share of what they were granted",
            render(&from_rows(&RECEIVED, rows, 2..7), style),
        );
    }
    let mut sentences = findings(summary);
    sentences.extend(summary.not_measured.iter().map(|absent| {
        let why = with_fix(&absent.reason, &absent.fix);
        format!("{}: not measured: {why}", absent.trial)
    }));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    for sentence in sentences {
        out.push_str(&style.wrap(&clean(&sentence), 4));
        out.push('\n');
    }
    out
}
