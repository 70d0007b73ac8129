//! Two runs side by side, for a terminal.

use stats::Verdict;
use study::{Difference, Pair, RunComparison};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::{clean, comparison, interval};

/// What to keep in mind, the table over cells in both runs, then what differs. Ends with a line break.
pub fn compare_table(comparison: &RunComparison, style: Style) -> String {
    let runs = [&comparison.first.run, &comparison.second.run];
    let mut out = opening(runs, &comparison.cautions, style);
    let pairs = &comparison.pairs;
    if pairs.is_empty() {
        out += "no cell is in both runs\n";
    } else {
        out += &render(&columns(pairs), style);
        if pairs.iter().any(|pair| pair.comparison.is_some()) {
            let note = format!("note: {}", text::words::uncapital(super::RATIO_OF_ROUNDS));
            out += &format!("\n{}\n", style.wrap(&note, 4));
        }
    }
    out.push('\n');
    let problems = comparison.pairs.iter().filter_map(|pair| {
        let problem = pair.problem.as_ref()?;
        Some(format!("{}: not comparable: {problem}", pair.label))
    });
    for sentence in problems {
        out += &format!("{}\n", style.wrap(&clean(&sentence), 4));
    }
    let differ = [
        ("experiment", comparison.experiment.as_slice()),
        ("machine", &comparison.machine),
    ];
    out + &closing(
        [&comparison.only_first, &comparison.only_second],
        differ,
        style,
    )
}

/// The names of both runs, and what to keep in mind of any comparison of them.
pub(super) fn opening(runs: [&String; 2], cautions: &[String], style: Style) -> String {
    let [first, second] = runs.map(|run| clean(run));
    let mut out = format!("first    {first}\nsecond   {second}\n");
    for caution in cautions {
        out += &style.wrap(&clean(&format!("caution: {caution}")), 4);
        out.push('\n');
    }
    out.push('\n');
    out
}

/// What only one of the two has, and lists of what differs, each with its name.
pub(super) fn closing(
    only: [&[String]; 2],
    differ: [(&str, &[Difference]); 2],
    style: Style,
) -> String {
    let mut out = String::new();
    let mut say = |sentence: &str| out += &format!("{}\n", style.wrap(&clean(sentence), 4));
    for (place, only) in ["first", "second"].into_iter().zip(only) {
        if !only.is_empty() {
            say(&format!("only in the {place}: {}", only.join(", ")));
        }
    }
    for (kind, list) in differ {
        for Difference {
            what,
            first,
            second,
        } in list
        {
            say(&format!("{kind} differs: {what}: {first} | {second}"));
        }
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
            let tone = match text::words::judged(&c.ratio_of_medians, c.rounds) {
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
        .filter(|c| c.rounds >= text::words::FEWEST_ROUNDS)
        .and_then(|c| c.ratio_of_p99.as_ref());
    ratio.map_or("-".to_owned(), interval)
}
