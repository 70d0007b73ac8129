//! The terminal's tables of a run of single measurements.

use super::{of_part, shares, wholes};
use crate::grid::{Cell, Table, tone};
use record::series::{Quantity, SeriesFigure, SeriesSummary, compared_with};
use stats::{Ratio, Verdict};
use text::amount::Amount;
use text::style::Style;
use text::words::{capital, clean, count, judged, not_measured, times, verdict};

/// One table for each part, its shares below it; then unmeasured subjects and failures. Ends with a line break.
pub fn series_table(summary: &SeriesSummary, style: Style) -> String {
    let tables = wholes(summary)
        .into_iter()
        .map(|part| values(summary, part).block(style) + &shares_of(summary, part).block(style));
    let mut sentences: Vec<String> = summary.not_measured.iter().map(not_measured).collect();
    sentences.extend(summary.notes.iter().map(|note| format!("note: {note}")));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    tables.collect::<String>() + &style.sentences(&sentences)
}

/// The values of a part.
pub(super) fn values<'s>(summary: &'s SeriesSummary, part: &str) -> Table<&'s SeriesFigure> {
    let figures = of_part(summary, part);
    let amount = scale(&figures);
    let show = |value: f64| amount.show(value);
    let few = figures.iter().any(|f| f.median_interval.is_none());
    let varies = figures.iter().any(|f| f.sd.is_some_and(|sd| sd > 0.0));
    let compared = figures.iter().any(|f| f.against_baseline.is_some());
    let baseline = summary.baseline_subject.as_deref().unwrap_or_default();
    Table::new(capital(part), figures)
        .head("subject", |f| f.subject.as_str())
        .number("n", |f| {
            let failed = (f.failed > 0).then(|| format!("{} failed", f.failed));
            Cell::from(f.count).below(failed.unwrap_or_default())
        })
        .number("median", |f| median(f, amount))
        .when(few, |table| table.number("least", |f| show(f.least as f64)))
        .number("mean", |f| show(f.mean))
        .when(varies, |table| table.number("sd", |f| f.sd.map(show)))
        .number("p90", |f| f.p90.map(|v| show(v as f64)))
        .if_any()
        .number("p99", |f| f.p99.map(|v| show(v as f64)))
        .on_page()
        .if_any()
        .number("worst", |f| show(f.worst as f64))
        .when(compared, |table| {
            let heading = format!("against {baseline}\nratio, 95 % interval");
            let is_first =
                |f: &SeriesFigure| compared_with(&summary.sweep, None, &f.subject).is_none();
            match summary.sweep.is_empty() {
                true => table.text(&heading, |f| against(f, f.subject == baseline)),
                false => table.text("against its first size\nratio, 95 % interval", move |f| {
                    against(f, is_first(f))
                }),
            }
        })
}

/// The shares of a part: medians with the means beside them, or means alone where some share has too few values for a
/// median. Empty if no shares were measured.
pub(super) fn shares_of<'s>(summary: &'s SeriesSummary, part: &str) -> Table<&'s SeriesFigure> {
    let figures = of_part(summary, part);
    let names = share_names(summary, part, &figures);
    let of = |f: &SeriesFigure, name: &str| {
        let all = shares(summary, &f.subject, part);
        all.into_iter().find(|share| share.part == name)
    };
    let unit = figures.first().map_or(Quantity::Count, |f| f.unit);
    let rows = figures.iter().copied().filter(|_| !names.is_empty());
    let few = (summary.figures.iter())
        .any(|f| f.of.as_deref() == Some(part) && f.median_interval.is_none());
    let means = if few { "means" } else { "medians (means)" };
    let table = Table::new(format!("{}: {means} of its shares", capital(part)), rows)
        .head("subject", |f| f.subject.as_str());
    names.iter().fold(table, |table, name| {
        let value = |share: &SeriesFigure| match few {
            true => share.mean,
            false => share.median as f64,
        };
        let values = figures.iter().filter_map(|f| of(f, name)).map(value);
        let amount = Amount::of(unit, values);
        table.number(&short_name(part, name), |f| {
            let share = of(f, name)?;
            let mean = (!few).then(|| format!("mean {}", amount.show(share.mean)));
            let worst = format!("worst {}", amount.show(share.worst as f64));
            let value = Cell::from(amount.show(value(share)));
            Some(value.aside(mean).below(worst))
        })
    })
}

/// One unit for the whole table: a worst value of a second would make microseconds of the rest unreadable.
fn scale(figures: &[&SeriesFigure]) -> Amount {
    let unit = figures.first().map_or(Quantity::Count, |f| f.unit);
    Amount::of(unit, figures.iter().map(|f| f.median as f64))
}

/// The median, or how many values it needs.
fn median(figure: &SeriesFigure, scale: Amount) -> Option<Cell> {
    let Some((low, high)) = figure.median_interval else {
        let needed = stats::needed_count(0.5, stats::DEFAULT_CONFIDENCE)?;
        return Some(format!("needs {}", count(needed)).into());
    };
    let median = figure.median as f64;
    let ends = scale.ends(median, [low as f64, high as f64]);
    Some(Cell::from(scale.show(median)).below(ends))
}

fn against(figure: &SeriesFigure, is_baseline: bool) -> Option<Cell> {
    let rounds = figure.rounds_compared;
    match &figure.against_baseline {
        Some(ratio) => Some(Cell::new(
            said(ratio, rounds, figure.unit),
            tone(ratio, rounds),
        )),
        None => is_baseline.then(|| Cell::from("1").below("baseline")),
    }
}

/// The ratio over so many rounds with its verdict; why there is none where they are too few.
fn said(ratio: &Ratio, rounds: u32, unit: Quantity) -> String {
    let word = match (judged(ratio, rounds), unit) {
        (Verdict::Larger, unit) if unit != Quantity::Ns => "more",
        (Verdict::Smaller, unit) if unit != Quantity::Ns => "less",
        _ => verdict(ratio, rounds),
    };
    times(ratio, rounds) + word
}

/// Names of the shares of a part over all subjects, each once; a name stands behind the one that it follows in its
/// own subject.
pub(super) fn share_names<'a>(
    summary: &'a SeriesSummary,
    part: &str,
    figures: &[&SeriesFigure],
) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        let mut at = 0;
        for share in shares(summary, &figure.subject, part) {
            match names.iter().position(|name| *name == share.part) {
                Some(known) => at = known + 1,
                None => {
                    names.insert(at, &share.part);
                    at += 1;
                }
            }
        }
    }
    names
}

/// A share's name beside that of its part: without a repeated beginning.
pub(super) fn short_name(part: &str, share: &str) -> String {
    let rest = share.strip_prefix(part).unwrap_or(share);
    let rest = rest.strip_prefix(": ").or(rest.strip_prefix(" of "));
    clean(rest.unwrap_or(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::style::Tone;

    fn figure(subject: &str, part: &str, count: u64) -> SeriesFigure {
        SeriesFigure {
            subject: subject.to_owned(),
            part: part.to_owned(),
            of: None,
            unit: Quantity::Ns,
            count,
            failed: 0,
            least: 68_000,
            median: 70_000,
            median_interval: (count >= 6).then_some((69_000, 71_000)),
            mean: 72_500.0,
            sd: Some(6_300.0),
            p90: (count >= 29).then_some(76_000),
            p99: None,
            worst: 77_000,
            against_baseline: None,
            rounds_compared: 0,
        }
    }

    fn summary(figures: &[SeriesFigure]) -> SeriesSummary {
        SeriesSummary {
            schema: 1,
            run: String::new(),
            scenario: String::new(),
            baseline_subject: None,
            figures: figures.to_vec(),
            not_measured: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
            notes: Vec::new(),
            sweep: Vec::new(),
        }
    }

    fn shown(figures: &[SeriesFigure]) -> String {
        values(&summary(figures), "x").block(Style::default())
    }

    #[test]
    fn ratios_are_told_of_three_rounds_or_more() {
        let ratio = Ratio {
            value: 1.5,
            low: Some(1.4),
            high: Some(1.6),
            confidence: 0.95,
            verdict: Verdict::Larger,
        };
        let said = |rounds: u32, unit: Quantity| said(&ratio, rounds, unit);
        assert_eq!(said(1, Quantity::Ns), "undecided: one round");
        assert_eq!(said(2, Quantity::Bytes), "undecided: two rounds");
        assert_eq!(said(3, Quantity::Ns), "1.500 (1.400..1.600) slower");
        assert_eq!(said(3, Quantity::Bytes), "1.500 (1.400..1.600) more");
        let two = SeriesFigure {
            against_baseline: Some(ratio),
            rounds_compared: 2,
            ..figure("crun", "x", 2)
        };
        let undecided = Cell::new("undecided: two rounds", Tone::Plain);
        assert_eq!(against(&two, false), Some(undecided));
    }

    #[test]
    fn two_values_have_no_median_and_no_empty_columns() {
        let two = shown(&[figure("bare", "x", 2)]);
        assert!(two.contains("needs 6") && two.contains("least"), "{two}");
        assert!(two.contains("68.0 us") && !two.contains("70.0 us"), "{two}");
        assert!(!two.contains("p90"), "{two}");
        let shares = |count: u64| {
            let of = Some("x".to_owned());
            let share = SeriesFigure {
                of,
                ..figure("bare", "x: exec", count)
            };
            let summary = summary(&[figure("bare", "x", count), share]);
            shares_of(&summary, "x").block(Style::default())
        };
        let (two, six) = (shares(2), shares(6));
        assert!(two.starts_with("X: means of its shares\n"), "{two}");
        assert!(two.ends_with("   72.5 us\n\n"), "{two}");
        assert!(
            six.starts_with("X: medians (means) of its shares\n"),
            "{six}"
        );
        assert!(six.ends_with("   70.0 us (mean 72.5 us)\n\n"), "{six}");
        let ten = shown(&[figure("bare", "x", 10)]);
        assert!(
            ten.contains("70.0 us") && !ten.contains("least") && !ten.contains("p90"),
            "{ten}"
        );
        let forty = shown(&[figure("bare", "x", 40), figure("crun", "x", 10)]);
        assert!(
            forty.contains("p90") && forty.contains("76.0 us"),
            "{forty}"
        );
    }
}
