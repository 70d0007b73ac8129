//! Two runs side by side, for a terminal.

use super::{Pair, RunComparison};
use crate::style::{Style, Tone};
use crate::table::{Column, Text, render};
use crate::units::Scale;
use crate::words::{clean, comparison, interval};
use stats::Verdict;

/// What to keep in mind, the table over cells that both runs have, then what differs. Ends with a line break.
pub fn compare_table(comparison: &RunComparison, style: Style) -> String {
    let mut out = format!(
        "first    {}\nsecond   {}\n",
        clean(&comparison.first.run),
        clean(&comparison.second.run)
    );
    for caution in &comparison.cautions {
        out += &style.wrap(&clean(&format!("caution: {caution}")), 4);
        out.push('\n');
    }
    out.push('\n');
    let pairs = &comparison.pairs;
    if pairs.is_empty() {
        out += "no cell is in both runs\n";
    } else {
        out += &render(&columns(pairs), style);
        if pairs.iter().any(|pair| pair.comparison.is_some()) {
            out.push('\n');
            out += &style.wrap(
                &format!("note: {}", crate::words::uncapital(super::RATIO_OF_ROUNDS)),
                4,
            );
            out.push('\n');
        }
    }
    out.push('\n');
    for sentence in sentences(comparison) {
        out += &style.wrap(&clean(&sentence), 4);
        out.push('\n');
    }
    out
}

fn columns(pairs: &[Pair]) -> Vec<Column> {
    let scale = Scale::of(pairs.iter().flat_map(|p| p.medians_ns).map(|ns| ns as f64));
    let time = |place: usize| move |p: &Pair| scale.show(p.medians_ns[place] as f64);
    let mut columns = vec![
        Column::plain("cell", pairs.iter().map(|p| clean(&p.label)).collect()),
        Column::plain("first median", pairs.iter().map(time(0)).collect()).right(),
        Column::plain("second median", pairs.iter().map(time(1)).collect()).right(),
        Column::new(
            "second / first (over rounds, 95% interval)",
            pairs.iter().map(medians).collect(),
        ),
        Column::plain("p99 ratio", pairs.iter().map(p99).collect()),
    ];
    if pairs.iter().any(|pair| !pair.real_time) {
        let label = |p: &Pair| match p.real_time {
            true => Text(String::new(), Tone::Plain),
            false => Text("not real-time".to_owned(), Tone::Caution),
        };
        columns.push(Column::new("", pairs.iter().map(label).collect()));
    }
    columns
}

fn medians(pair: &Pair) -> Text {
    match &pair.comparison {
        Some(c) => {
            let tone = match crate::words::judged(&c.ratio_of_medians, c.rounds) {
                Verdict::Larger => Tone::Caution,
                Verdict::Smaller => Tone::Good,
                Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => Tone::Plain,
            };
            Text(comparison(c), tone)
        }
        None => Text("not comparable".to_owned(), Tone::Caution),
    }
}

fn p99(pair: &Pair) -> String {
    let ratio = pair
        .comparison
        .as_ref()
        .filter(|c| c.rounds >= crate::words::FEWEST_ROUNDS)
        .and_then(|c| c.ratio_of_p99.as_ref());
    ratio.map_or("-".to_owned(), interval)
}

fn sentences(comparison: &RunComparison) -> Vec<String> {
    let mut sentences = Vec::new();
    for pair in &comparison.pairs {
        if let Some(problem) = &pair.problem {
            sentences.push(format!("{}: not comparable: {problem}", pair.label));
        }
    }
    for (place, only) in [
        ("first", &comparison.only_first),
        ("second", &comparison.only_second),
    ] {
        if !only.is_empty() {
            sentences.push(format!("only in the {place}: {}", only.join(", ")));
        }
    }
    for (kind, list) in [
        ("experiment", &comparison.experiment),
        ("machine", &comparison.machine),
    ] {
        for difference in list {
            sentences.push(format!(
                "{kind} differs: {}: {} | {}",
                difference.what, difference.first, difference.second
            ));
        }
    }
    sentences
}
