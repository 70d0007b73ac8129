//! One value of a TOML file as text, number or duration, or its fault.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::DeValue;

use crate::{Bytes, Duration};

/// The fault of a value, and the remedy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub what: String,
    pub fix: String,
}

impl Wrong {
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Wrong {
        Wrong {
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// `label` names the value in messages, such as `` `period` ``.
    pub fn of_type(label: &str, found: &DeValue<'_>, wanted: &str) -> Wrong {
        Wrong::new(
            format!("{label} is of type {}", found.type_str()),
            format!("it must be {wanted}"),
        )
    }
}

pub(crate) fn text<'v>(label: &str, value: &'v DeValue<'_>) -> Result<&'v str, Wrong> {
    (value.as_str()).ok_or_else(|| Wrong::of_type(label, value, "a text in quotation marks"))
}

pub(crate) fn boolean(label: &str, value: &DeValue<'_>) -> Result<bool, Wrong> {
    (value.as_bool()).ok_or_else(|| Wrong::of_type(label, value, "true or false"))
}

pub(crate) fn integer(
    label: &str,
    value: &DeValue<'_>,
    range: &RangeInclusive<i64>,
) -> Result<i64, Wrong> {
    let wanted = format!("a whole number of {} to {}", range.start(), range.end());
    let integer = (value.as_integer()).ok_or_else(|| Wrong::of_type(label, value, &wanted))?;
    match whole(value) {
        Some(n) if range.contains(&n) => Ok(n),
        _ => Err(Wrong::new(
            format!("{label} is {integer}"),
            format!("it must be {wanted}"),
        )),
    }
}

/// A whole number however it is written.
pub(crate) fn whole(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// A number with or without a fraction.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Float(number) => number.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.to_string(),
        DeValue::Integer(_) => whole(value)?.to_string(),
        _ => return None,
    };
    let number: f64 = text.replace('_', "").parse().ok()?;
    number.is_finite().then_some(number)
}

/// An amount of memory.
pub(crate) fn bytes(label: &str, value: &DeValue<'_>) -> Result<Bytes, Wrong> {
    with_unit(label, value, "MiB", "an amount of memory such as \"64MiB\"")
}

pub(crate) fn duration(label: &str, value: &DeValue<'_>) -> Result<Duration, Wrong> {
    with_unit(label, value, "ms", "a duration such as \"1ms\"")
}

/// A text that is a number and its unit, such as `unit`.
fn with_unit<T: FromStr<Err: Display>>(
    label: &str,
    value: &DeValue<'_>,
    unit: &str,
    wanted: &str,
) -> Result<T, Wrong> {
    match value {
        DeValue::String(text) => text
            .parse()
            .map_err(|error| Wrong::new(format!("{label}: {error}"), "")),
        DeValue::Integer(number) => {
            let number =
                whole(value).map_or_else(|| number.to_string(), |number| number.to_string());
            Err(Wrong::new(
                format!("{label} has no unit"),
                format!("write it as a text with a unit, such as \"{number}{unit}\""),
            ))
        }
        other => Err(Wrong::of_type(label, other, wanted)),
    }
}
