//! Numbers of scale studies in words.

use stats::{Even, Fairness};

/// A fairness test's verdict, in one or two words.
pub(super) fn even(fairness: &Fairness) -> &'static str {
    match fairness.verdict {
        Even::Even => "even",
        Even::Nearly => "nearly even",
        Even::Uneven => "uneven",
    }
}
