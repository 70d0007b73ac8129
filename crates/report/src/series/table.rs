//! The terminal's tables of a run of single measurements.

use super::{of_part, shares, wholes};
use record::series::{Quantity, SeriesFigure, SeriesSummary};
use stats::{Ratio, Verdict};
use text::amount::Amount;
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::words::{capital, clean, count, judged, not_measured, times, verdict};

/// One table for each part, its shares below it; then what was not measured and what failed. Ends with a line break.
pub fn series_table(summary: &SeriesSummary, style: Style) -> String {
    let mut out = String::new();
    for part in wholes(summary) {
        let figures = of_part(summary, part);
        out += &format!("{}\n\n", capital(part));
        out += &render(&columns(summary, &figures), style);
        out.push('\n');
        if let Some(table) = share_columns(summary, part, &figures) {
            let what = if few(summary, part) {
                "means"
            } else {
                "medians"
            };
            out += &format!("{}: {what} of its shares\n\n", capital(part));
            out += &render(&table, style);
            out.push('\n');
        }
    }
    for sentence in after(summary) {
        out.push_str(&style.wrap(&clean(&sentence), 4));
        out.push('\n');
    }
    out
}

fn columns(summary: &SeriesSummary, figures: &[&SeriesFigure]) -> Vec<Column> {
    let column = |heading: &str, value: &dyn Fn(&SeriesFigure) -> Option<f64>| {
        let amount = scale(figures);
        let text = |f: &&SeriesFigure| value(f).map_or("-".to_owned(), |v| amount.show(v));
        Column::plain(heading, figures.iter().map(text).collect()).right()
    };
    let medians = figures.iter().map(|f| median(f, scale(figures))).collect();
    let mut columns = vec![
        Column::plain(
            "subject",
            figures.iter().map(|f| clean(&f.subject)).collect(),
        ),
        Column::plain("n", figures.iter().map(|f| f.count.to_string()).collect()).right(),
        Column::plain("median", medians).right(),
    ];
    if figures.iter().any(|f| f.median_interval.is_none()) {
        columns.push(column("least", &|f| Some(f.least as f64)));
    }
    columns.push(column("mean", &|f| Some(f.mean)));
    if figures.iter().any(|f| f.sd.is_some_and(|sd| sd > 0.0)) {
        columns.push(column("sd", &|f| f.sd));
    }
    if figures.iter().any(|f| f.p90.is_some()) {
        columns.push(column("p90", &|f| f.p90.map(|v| v as f64)));
    }
    columns.push(column("worst", &|f| Some(f.worst as f64)));
    if let Some(baseline) = summary.baseline_subject.as_deref()
        && figures.iter().any(|f| f.against_baseline.is_some())
    {
        let heading = format!("against {} (95% interval)", clean(baseline));
        let texts = figures.iter().map(|f| against(f, baseline)).collect();
        columns.push(Column::new(&heading, texts));
    }
    columns
}

/// One unit for the whole table: a worst value of a second would make microseconds of the rest unreadable.
pub(super) fn scale(figures: &[&SeriesFigure]) -> Amount {
    let unit = figures.first().map_or(Quantity::Count, |f| f.unit);
    Amount::of(unit, figures.iter().map(|f| f.median as f64))
}

/// The median, or how many values it needs.
pub(super) fn median(figure: &SeriesFigure, scale: Amount) -> String {
    match figure.median_interval {
        Some(_) => scale.show(figure.median as f64),
        None => {
            let needed = stats::needed_count(0.5, stats::DEFAULT_CONFIDENCE);
            needed.map_or("-".to_owned(), |needed| format!("needs {}", count(needed)))
        }
    }
}

fn against(figure: &SeriesFigure, baseline: &str) -> Text {
    match &figure.against_baseline {
        Some(ratio) => {
            let rounds = figure.rounds_compared;
            let tone = match judged(ratio, rounds) {
                Verdict::Larger => Tone::Caution,
                Verdict::Smaller => Tone::Good,
                Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
            };
            Text(said(ratio, rounds, figure.unit), tone)
        }
        None if figure.subject == baseline => Text("1".to_owned(), Tone::Plain),
        None => Text("-".to_owned(), Tone::Plain),
    }
}

/// The ratio over so many rounds with what it says; why there is none where they are too few.
pub(super) fn said(ratio: &Ratio, rounds: u32, unit: Quantity) -> String {
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

/// A share's name beside that of its part: without what only repeats it.
pub(super) fn short_name(part: &str, share: &str) -> String {
    let rest = share.strip_prefix(part).unwrap_or(share);
    let rest = rest.strip_prefix(": ").or(rest.strip_prefix(" of "));
    clean(rest.unwrap_or(share))
}

/// Whether some share of the part has too few values for a median.
fn few(summary: &SeriesSummary, part: &str) -> bool {
    let mut shares = summary
        .figures
        .iter()
        .filter(|f| f.of.as_deref() == Some(part));
    shares.any(|share| share.median_interval.is_none())
}

fn share_columns(
    summary: &SeriesSummary,
    part: &str,
    figures: &[&SeriesFigure],
) -> Option<Vec<Column>> {
    let names = share_names(summary, part, figures);
    if names.is_empty() {
        return None;
    }
    let mut columns = vec![Column::plain(
        "subject",
        figures.iter().map(|f| clean(&f.subject)).collect(),
    )];
    let few = few(summary, part);
    for name in names {
        let of = |f: &SeriesFigure| {
            let all = shares(summary, &f.subject, part);
            let share = all.into_iter().find(|s| s.part == name)?;
            Some(if few { share.mean } else { share.median as f64 })
        };
        let unit = figures.first().map_or(Quantity::Count, |f| f.unit);
        let amount = Amount::of(unit, figures.iter().filter_map(|f| of(f)));
        let texts = figures
            .iter()
            .map(|f| of(f).map_or("-".to_owned(), |v| amount.show(v)));
        columns.push(Column::plain(&short_name(part, name), texts.collect()).right());
    }
    Some(columns)
}

/// The sentences below the tables.
fn after(summary: &SeriesSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(summary.not_measured.iter().map(not_measured));
    for note in &summary.notes {
        sentences.push(format!("note: {note}"));
    }
    for failure in &summary.failures {
        sentences.push(format!("failed: {failure}"));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn shown(figures: &[SeriesFigure]) -> String {
        let figures: Vec<&SeriesFigure> = figures.iter().collect();
        let summary = SeriesSummary {
            schema: 1,
            run: String::new(),
            scenario: String::new(),
            baseline_subject: None,
            figures: Vec::new(),
            not_measured: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
            notes: Vec::new(),
        };
        render(
            &columns(&summary, &figures),
            Style {
                colour: false,
                width: 120,
            },
        )
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
        let Text(text, tone) = against(&two, "bare");
        assert_eq!(
            (text.as_str(), tone),
            ("undecided: two rounds", Tone::Plain)
        );
    }

    #[test]
    fn two_values_have_no_median_and_no_empty_columns() {
        let two = shown(&[figure("bare", "x", 2)]);
        assert!(two.contains("needs 6") && two.contains("least"), "{two}");
        assert!(two.contains("68.0 us") && !two.contains("70.0 us"), "{two}");
        assert!(!two.contains("p90"), "{two}");
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
