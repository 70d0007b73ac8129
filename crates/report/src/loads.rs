//! Loads in words: the same in the terminal and on the page.

use record::summary::{AchievedSummary, LoadSummary};
use text::words::grouped;

/// A number with three digits or more.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => grouped(format!("{value:.0}")),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

/// `bytes 812 MB/s`, or over several rounds `bytes 790..830 MB/s`.
pub(crate) fn achieved(one: &AchievedSummary) -> String {
    format!("{} {} {}", one.quantity, span(&one.values), one.unit)
}

/// Least and largest value over rounds, or the value that they share.
pub(crate) fn span(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match (number(least), number(most)) {
        _ if values.is_empty() => "-".to_owned(),
        (least, most) if least == most => least,
        (least, most) => format!("{least}..{most}"),
    }
}

/// Form, place and work done, such as `stress-ng 0.15.06: cpu time 199 % of one cpu`.
pub(crate) fn line(load: &LoadSummary) -> String {
    let place = match load.place.as_str() {
        "host" => String::new(),
        place => format!(", {place}"),
    };
    let mut parts: Vec<String> = load.achieved.iter().map(achieved).collect();
    if let Some(missed) = load.missed_seconds {
        parts.push(format!("missed seconds {missed}"));
    }
    if load.failed > 0 {
        parts.push(format!(
            "failed in {} of {} rounds",
            load.failed, load.rounds
        ));
    }
    if parts.is_empty() {
        parts.push("nothing was measured".to_owned());
    }
    format!("{} ({}{place}): {}", load.name, load.form, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_read_well() {
        assert_eq!(number(12345.6), "12,346");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.0), "0.00");
        assert_eq!(span(&[1.0, 1.001]), "1.00");
        assert_eq!(span(&[1.0, 250.0, 3.0]), "1.00..250");
        assert_eq!(span(&[]), "-");
    }
}
