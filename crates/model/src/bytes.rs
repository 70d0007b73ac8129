//! Amounts of memory.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{self, Fault};

/// An amount of memory in bytes, written `64MiB`, `512KiB`, `1.5GiB` or `100MB`.
///
/// Range: 0 to `i64::MAX` bytes, so that it fits every kernel file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// Why a text is not an amount of memory. Each variant prints as one clause that says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// No digits, or something that is neither digits nor a unit.
    #[error("`{0}` is not an amount of memory; write a number and a unit, such as `64MiB`")]
    NotAnAmount(String),
    /// Digits without a unit.
    #[error("`{0}` has no unit; write `{0}KiB`, `{0}MiB` or `{0}GiB`")]
    NoUnit(String),
    /// A unit that is not known.
    #[error("unknown unit `{0}`; the units are B, KiB, MiB, GiB, kB, MB and GB")]
    UnknownUnit(String),
    /// A minus sign.
    #[error("`{0}` is negative; an amount of memory is zero or more")]
    Negative(String),
    /// More than 8 EiB.
    #[error("`{0}` is too large; the maximum is 8 EiB")]
    TooMuch(String),
    /// A fraction of a byte.
    #[error("`{0}` is not a whole number of bytes")]
    TooFine(String),
}

const UNITS: [(&str, i64); 7] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl Bytes {
    /// An amount of memory; more than `i64::MAX` becomes `i64::MAX`.
    pub const fn new(bytes: u64) -> Bytes {
        const MOST: u64 = i64::MAX as u64;
        Bytes(if bytes > MOST { MOST } else { bytes })
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Bytes, BytesError> {
        Ok(Bytes(quantity::parse(text, &UNITS)?.unsigned_abs()))
    }
}

impl From<Fault> for BytesError {
    fn from(fault: Fault) -> BytesError {
        match fault {
            Fault::NotANumber(text) => BytesError::NotAnAmount(text),
            Fault::NoUnit(text) => BytesError::NoUnit(text),
            Fault::UnknownUnit(unit) => BytesError::UnknownUnit(unit),
            Fault::Negative(text) => BytesError::Negative(text),
            Fault::TooMuch(text) => BytesError::TooMuch(text),
            Fault::TooFine(text) => BytesError::TooFine(text),
        }
    }
}

/// A count, 0 or more, with commas: `1,000,000`.
pub fn grouped(n: impl Into<i128>) -> String {
    let digits = n.into().to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Memory in whole MiB, for people: `5,457 MiB`.
pub fn mib(bytes: u64) -> String {
    format!("{} MiB", grouped(bytes >> 20))
}

/// Prints in the largest binary unit that is exact, so that printing and parsing give the same amount back.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
            .into_iter()
            .find(|(_, scale)| self.0 != 0 && self.0.is_multiple_of(*scale))
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_units() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("512 KiB", 512 << 10),
            ("1.5GiB", 3 << 29),
            ("100MB", 100_000_000),
            ("1_000B", 1_000),
            ("0.001kB", 1),
            ("9223372036854775807B", i64::MAX as u64),
        ] {
            assert_eq!(text.parse::<Bytes>().map(Bytes::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_fix() {
        for (text, part) in [
            ("-1MiB", "negative"),
            ("5", "no unit"),
            ("5 Mb", "unknown unit `Mb`"),
            ("MiB", "is not an amount"),
            ("0.0001kB", "not a whole number of bytes"),
            ("9223372036854775808B", "too large"),
            ("0.12345678901234567890123456789012345678GiB", "not a whole"),
            ("340282366920938463463374607431768211.456kB", "too large"),
        ] {
            let error = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(bytes in 0u64..=i64::MAX as u64) {
            let amount = Bytes::new(bytes);
            prop_assert_eq!(amount.to_string().parse::<Bytes>(), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in "[-0-9._]{0,30}[ a-zA-Z]{0,4}") {
            let _ = text.parse::<Bytes>();
        }
    }
}
