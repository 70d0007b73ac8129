//! Numbers of scale studies in words.

use stats::{Even, Fairness};

/// A share as a percentage with three digits.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p.abs() >= 99.95 => format!("{p:.0}%"),
        p if p.abs() >= 10.0 => format!("{p:.1}%"),
        p if p.abs() >= 0.095 || p == 0.0 => format!("{p:.2}%"),
        p => format!("{p:.3}%"),
    }
}

/// What a test of fairness says, in two or three words.
pub(super) fn even(fairness: &Fairness) -> &'static str {
    match fairness.verdict {
        Even::Even => "even",
        Even::Nearly => "nearly even",
        Even::Uneven => "uneven",
    }
}
