//! Numbers of scale studies in words.

use stats::{Even, Fairness};

/// What a test of fairness says, in two or three words.
pub(super) fn even(fairness: &Fairness) -> &'static str {
    match fairness.verdict {
        Even::Even => "even",
        Even::Nearly => "nearly even",
        Even::Uneven => "uneven",
    }
}
