//! Spans of time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{self, Fault};

/// A positive or zero span of time in integer nanoseconds, written `1ms`, `100us`, `1.5s`, `2min`.
///
/// Range: 0 to `i64::MAX` ns (292 years), so that it always fits the signed arithmetic of the measuring loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(i64);

/// Why a text is not a duration. Each variant prints as one clause that says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// No digits, or something that is neither digits nor a unit.
    #[error("`{0}` is not a duration; write a number and a unit, such as `1ms` or `100us`")]
    NotADuration(String),
    /// Digits without a unit.
    #[error("`{0}` has no unit; write `{0}us`, `{0}ms` or `{0}s`")]
    NoUnit(String),
    /// A unit that is not known.
    #[error("unknown unit `{0}`; the units are ns, us, ms, s, min and h")]
    UnknownUnit(String),
    /// A minus sign.
    #[error("`{0}` is negative; a duration is zero or more")]
    Negative(String),
    /// More than 292 years.
    #[error("`{0}` is too long; the longest duration is 292 years")]
    TooLong(String),
    /// A fraction below one nanosecond.
    #[error("`{0}` is finer than a nanosecond, the resolution of the clock")]
    TooFine(String),
}

impl Duration {
    /// A duration of `ns` nanoseconds; negative values become zero.
    pub const fn from_ns(ns: i64) -> Duration {
        Duration(if ns < 0 { 0 } else { ns })
    }

    /// The duration in nanoseconds, never negative.
    pub const fn ns(self) -> i64 {
        self.0
    }
}

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        Ok(Duration(quantity::parse(text, &UNITS)?))
    }
}

impl From<Fault> for DurationError {
    fn from(fault: Fault) -> DurationError {
        match fault {
            Fault::NotANumber(text) => DurationError::NotADuration(text),
            Fault::NoUnit(text) => DurationError::NoUnit(text),
            Fault::UnknownUnit(unit) => DurationError::UnknownUnit(unit),
            Fault::Negative(text) => DurationError::Negative(text),
            Fault::TooMuch(text) => DurationError::TooLong(text),
            Fault::TooFine(text) => DurationError::TooFine(text),
        }
    }
}

/// Prints in the largest unit that is exact, so that printing and parsing give the same duration back.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
            .into_iter()
            .find(|(_, scale)| self.0 != 0 && self.0 % scale == 0)
            .unwrap_or(("ns", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_units() {
        for (text, ns) in [
            ("1ms", 1_000_000),
            ("100us", 100_000),
            ("100 \u{b5}s", 100_000),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("2min", 120_000_000_000),
            ("1_000us", 1_000_000),
            ("0ns", 0),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::ns), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_fix() {
        for (text, part) in [
            ("-1ms", "negative"),
            ("5", "no unit"),
            ("1parsec", "unknown unit `parsec`"),
            ("ms", "is not a duration"),
            ("1.2.3ms", "is not a duration"),
            ("", "is not a duration"),
            ("0.5ns", "finer than a nanosecond"),
            ("0.12345678901234567890123456789012345678h", "finer than"),
            ("170141183460469231731687303715884105.728us", "too long"),
            ("300000000h", "too long"),
            ("99999999999999999999999999999999999999999999h", "too long"),
        ] {
            let error = text.parse::<Duration>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(ns in 0i64..) {
            let duration = Duration::from_ns(ns);
            prop_assert_eq!(duration.to_string().parse::<Duration>(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Duration>();
        }
    }
}
