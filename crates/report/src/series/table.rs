//! The tables that a terminal shows after a run of single measurements.

use super::amount::Amount;
use super::{of_part, shares, wholes};
use crate::style::{Style, Tone};
use crate::table::{Column, Text, render};
use crate::words::{capital, clean, interval};
use record::series::{Quantity, SeriesFigure, SeriesSummary};
use stats::{Ratio, Verdict};

/// One table for each part, its shares below it; then what was not measured and what failed. Ends with a line break.
pub fn series_table(summary: &SeriesSummary, style: Style) -> String {
    let mut out = String::new();
    for part in wholes(summary) {
        let figures = of_part(summary, part);
        out += &format!("{}\n\n", capital(part));
        out += &render(&columns(summary, &figures), style);
        out.push('\n');
        if let Some(table) = share_columns(summary, part, &figures) {
            out += &format!("{}: medians of its shares\n\n", capital(part));
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
        let unit = figures.first().map_or(Quantity::Count, |f| f.unit);
        // One unit for the whole table: a worst value of a second would make microseconds of the rest unreadable.
        let amount = Amount::of(unit, figures.iter().map(|f| f.median as f64));
        let text = |f: &&SeriesFigure| value(f).map_or("-".to_owned(), |v| amount.show(v));
        Column::plain(heading, figures.iter().map(text).collect()).right()
    };
    let mut columns = vec![
        Column::plain(
            "subject",
            figures.iter().map(|f| clean(&f.subject)).collect(),
        ),
        Column::plain("n", figures.iter().map(|f| f.count.to_string()).collect()).right(),
        column("median", &|f| Some(f.median as f64)),
        column("mean", &|f| Some(f.mean)),
    ];
    if figures.iter().any(|f| f.sd.is_some_and(|sd| sd > 0.0)) {
        columns.push(column("sd", &|f| f.sd));
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

fn against(figure: &SeriesFigure, baseline: &str) -> Text {
    match &figure.against_baseline {
        Some(ratio) => {
            let tone = match ratio.verdict {
                Verdict::Larger => Tone::Caution,
                Verdict::Smaller => Tone::Good,
                Verdict::WithinNoise | Verdict::Undecided => Tone::Plain,
            };
            Text(said(ratio, figure.unit), tone)
        }
        None if figure.subject == baseline => Text("1".to_owned(), Tone::Plain),
        None => Text("-".to_owned(), Tone::Plain),
    }
}

/// The ratio with what it says.
pub(super) fn said(ratio: &Ratio, unit: Quantity) -> String {
    let word = match (ratio.verdict, unit) {
        (Verdict::Larger, Quantity::Ns) => "slower",
        (Verdict::Smaller, Quantity::Ns) => "faster",
        (Verdict::Larger, _) => "more",
        (Verdict::Smaller, _) => "less",
        (Verdict::WithinNoise, _) => "within noise",
        (Verdict::Undecided, _) => "undecided",
    };
    format!("{} {word}", interval(ratio))
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
    for name in names {
        let of = |f: &SeriesFigure| {
            let all = shares(summary, &f.subject, part);
            all.into_iter()
                .find(|s| s.part == name)
                .map(|s| s.median as f64)
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
    for absent in &summary.not_measured {
        let mend = match absent.mend.as_str() {
            "" => String::new(),
            mend => format!(" ({mend})"),
        };
        sentences.push(format!(
            "{}: not measured: {}{mend}",
            absent.trial, absent.reason
        ));
    }
    for failure in &summary.failures {
        sentences.push(format!("failed: {failure}"));
    }
    sentences
}
