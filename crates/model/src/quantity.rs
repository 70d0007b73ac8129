//! Numbers with a unit.

/// Why a text is not a quantity: a number and a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No digits, or something that is neither digits nor a unit.
    NotANumber(String),
    NoUnit(String),
    /// The unit.
    UnknownUnit(String),
    Negative(String),
    /// More than `i64::MAX` of the smallest unit.
    TooMuch(String),
    /// A fraction of the smallest unit.
    TooFine(String),
}

/// Reads a number, optionally with a fraction and with `_` between digits, and one of these units, each with its size; the result
/// is exact, in the smallest unit.
pub(crate) fn parse(text: &str, units: &[(&str, i64)]) -> Result<i64, Fault> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(Fault::Negative(trimmed.to_owned()));
    }
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(Fault::NotANumber(trimmed.to_owned()));
    }
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(Fault::NoUnit(trimmed.to_owned()));
    }
    let scale = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| i128::from(*scale))
        .ok_or_else(|| Fault::UnknownUnit(unit.to_owned()))?;
    let too_much = || Fault::TooMuch(trimmed.to_owned());
    let too_fine = || Fault::TooFine(trimmed.to_owned());
    let whole: i128 = whole.parse().map_err(|_| too_much())?;
    let mut all = whole.checked_mul(scale).ok_or_else(too_much)?;
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        let digits = u32::try_from(fraction.len()).map_err(|_| too_fine())?;
        let denominator = 10i128.checked_pow(digits).ok_or_else(too_fine)?;
        let numerator = (fraction.parse::<i128>().ok())
            .and_then(|numerator| numerator.checked_mul(scale))
            .ok_or_else(too_fine)?;
        if numerator % denominator != 0 {
            return Err(too_fine());
        }
        all = (all.checked_add(numerator / denominator)).ok_or_else(too_much)?;
    }
    i64::try_from(all).map_err(|_| too_much())
}
