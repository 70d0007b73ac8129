//! Two runs side by side, for a terminal.

use crate::grid::{Cell, Table, named, told};
use study::{Difference, Pair, RunComparison};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::clean;

/// Cautions, the table over cells in both runs, then differences. Ends with a line break.
pub fn compare_table(comparison: &RunComparison, style: Style) -> String {
    let runs = [&comparison.first.run, &comparison.second.run];
    let mut out = opening(runs, &comparison.cautions, style);
    let pairs = &comparison.pairs;
    if pairs.is_empty() {
        out += "no cell is in both runs\n";
    } else {
        out += &table(pairs).lines(style);
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

/// The names of both runs, and cautions on any comparison of them.
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

/// Labels in one run only, and lists of differences, each with its name.
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

/// The cells that are in both runs.
pub(super) fn table(pairs: &[Pair]) -> Table<&Pair> {
    let scale = Scale::of(pairs.iter().flat_map(|p| p.medians_ns).map(|ns| ns as f64));
    let time = |ns: i64| scale.show(ns as f64);
    Table::new("Cells in both runs", pairs)
        .head("cell", |pair| named(&pair.label, pair.real_time))
        .number("first median", |pair| time(pair.medians_ns[0]))
        .number("second median", |pair| time(pair.medians_ns[1]))
        .text(
            "second / first\nover rounds, 95 % interval",
            |pair| match &pair.comparison {
                Some(c) => told(&c.ratio_of_medians, c.rounds),
                None => Cell::new("not comparable", Tone::Caution)
                    .below(pair.problem.as_deref().unwrap_or("no rounds")),
            },
        )
        .text("p99 ratio", |pair| {
            let c = pair.comparison.as_ref()?;
            let p99 = c.ratio_of_p99.as_ref();
            Some(p99.map_or_else(|| "too few samples".into(), |p99| told(p99, c.rounds)))
        })
        .labelled(|pair| pair.real_time)
}
