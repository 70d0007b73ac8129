//! Findings, in sentences made from the numbers with their intervals. Where there are too few samples or rounds, the
//! sentence says so instead of a number.

use crate::conclusion;
use crate::tails;
use record::summary::{CellSummary, MetricSummary, RunSummary, SkewSummary};
use stats::{Comparison, Ratio, Verdict};
use text::units::time;
use text::words::{FEWEST_ROUNDS, count, fewer_rounds_of_p99, interval, judged, plural, ratio};

/// The findings of a run, most important first, each one sentence or two with a full stop.
pub fn findings(summary: &RunSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    if summary.cells.iter().all(|cell| cell.metrics.is_empty()) {
        return vec!["No trial succeeded, so there is nothing to say about times.".to_owned()];
    }
    sentences.extend(conclusion::conclusion(summary));
    match crate::table_conditions::findings(summary) {
        Some(of_conditions) => sentences.extend(of_conditions),
        None => overheads(summary, &mut sentences),
    }
    sentences.extend(tails_against(summary));
    let shared = conclusion::states(summary, true);
    let are_states = !shared.is_empty() || tails::has_states(summary);
    sentences.extend((shared.into_iter()).map(|(name, text)| format!("{name}: {text}.")));
    sentences.extend(worst_tail(summary));
    sentences.extend(largest(summary));
    sentences.push(skipped(summary));
    sentences.extend(summary.overloads.iter().cloned());
    sentences.extend(crate::tasks::findings(summary));
    sentences.extend(skews(&summary.skews));
    sentences.extend(correlation(summary));
    sentences.extend(probe_cost(summary));
    sentences.extend(tails::findings(summary));
    sentences.extend(are_states.then(|| OF_STATES.to_owned()));
    sentences
}

/// Advice where jobs showed states.
const OF_STATES: &str = "Against states: look for the change of the machine behind them. `timecell doctor` names changes of frequency, \
    idle states and loads; other virtual machines of the same host show in no file of this one, and a run with turns compares \
    fairly in spite of them.";

/// One sentence for each trial except the baseline and those covered by the conclusion and the table.
fn overheads(summary: &RunSummary, sentences: &mut Vec<String>) {
    let told = conclusion::told_of(summary);
    let is_told = |trial: &str| told.iter().any(|(cell, ..)| cell.trial == trial);
    let mut trials: Vec<&str> = Vec::new();
    for cell in &summary.cells {
        if cell.trial != summary.baseline
            && !is_told(&cell.trial)
            && !trials.contains(&cell.trial.as_str())
        {
            trials.push(&cell.trial);
        }
    }
    for trial in trials {
        let cells: Vec<&CellSummary> = summary.cells.iter().filter(|c| c.trial == trial).collect();
        let compared: Vec<&Comparison> = cells
            .iter()
            .filter_map(|cell| cell.against_baseline.as_ref())
            .collect();
        let unreal = match cells.iter().filter(|cell| !cell.real_time).count() {
            0 => "",
            n if n == cells.len() => " (not real-time)",
            _ => " (not real-time in part)",
        };
        let baseline = &summary.baseline;
        match (cells.as_slice(), compared.as_slice()) {
            (_, []) => sentences.push(format!(
                "{trial}{unreal} could not be compared with {baseline}: they share no round with usable samples."
            )),
            ([_], [one]) => sentences.push(single(summary, &format!("{trial}{unreal}"), one)),
            _ => sentences.push(several(summary, &format!("{trial}{unreal}"), &cells, &compared)),
        }
    }
}

/// Beyond the conclusion, which is about medians: which tails of its cells are heavier or lighter.
fn tails_against(summary: &RunSummary) -> Option<String> {
    let told = conclusion::told_of(summary);
    let mut all = (told.iter())
        .filter_map(|(cell, against, c)| Some((cell, against, c, c.ratio_of_p99.as_ref()?)))
        .peekable();
    all.peek()?;
    let differ: Vec<String> = all
        .filter_map(|(cell, against, comparison, p99)| {
            let tail = match judged(p99, comparison.rounds_of_p99) {
                Verdict::Larger => "a heavier tail",
                Verdict::Smaller => "a lighter tail",
                _ => return None,
            };
            Some(format!(
                "{} {} times that of {against}{} ({tail})",
                cell.label,
                interval(p99),
                fewer_rounds_of_p99(comparison),
            ))
        })
        .collect();
    let metric = summary.primary.title();
    Some(match differ.is_empty() {
        true => format!("No p99 of the {metric} differs from that of its baseline beyond noise."),
        false => format!(
            "The p99 of the {metric}, each interval by itself: {}.",
            differ.join(", ")
        ),
    })
}

fn single(summary: &RunSummary, trial: &str, comparison: &Comparison) -> String {
    if comparison.rounds < FEWEST_ROUNDS {
        return format!(
            "{trial}: no ratio to {} can be computed from {}; measure {FEWEST_ROUNDS} or more.",
            summary.baseline,
            plural(comparison.rounds.into(), "round"),
        );
    }
    let medians = &comparison.ratio_of_medians;
    let percent = (medians.value - 1.0) * 100.0;
    let metric = summary.primary.title();
    let baseline = &summary.baseline;
    let overhead = format!("{} times that of {baseline}", ratio(medians.value));
    let mut text = match (medians.low, medians.high) {
        (Some(low), Some(high)) => {
            let judged = match medians.verdict {
                Verdict::Larger => format!("slower by {percent:.1} %, more than noise explains"),
                Verdict::Smaller => {
                    format!("faster by {:.1} %, more than noise explains", -percent)
                }
                Verdict::TooWide => "undecided, more rounds are needed".to_owned(),
                _ => "not distinguishable from noise".to_owned(),
            };
            format!(
                "{trial}: the median {metric} is {overhead} (95 % interval {} to {} over {}): {judged}.",
                ratio(low),
                ratio(high),
                plural(comparison.rounds.into(), "round"),
            )
        }
        _ => format!(
            "{trial}: the median {metric} is {overhead}; no interval can be computed from {}, so this may be noise.",
            plural(comparison.rounds.into(), "round"),
        ),
    };
    if let Some(p99) = &comparison.ratio_of_p99 {
        let judged = match p99.verdict {
            Verdict::Larger => ", a heavier tail",
            Verdict::Smaller => ", a lighter tail",
            Verdict::WithinNoise => ", within noise",
            Verdict::TooWide => ", undecided: more rounds are needed",
            Verdict::Undecided => "",
        };
        text += &format!(
            " Its p99 is {} times that of {baseline}{}{judged}.",
            interval(p99),
            fewer_rounds_of_p99(comparison),
        );
    }
    text
}

fn several(
    summary: &RunSummary,
    trial: &str,
    cells: &[&CellSummary],
    compared: &[&Comparison],
) -> String {
    if let Some(few) = compared.iter().find(|c| c.rounds < FEWEST_ROUNDS) {
        return single(summary, trial, few);
    }
    let values = || compared.iter().map(|c| c.ratio_of_medians.value);
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    let of = |wanted: Verdict| {
        let all = compared.iter().map(|c| c.ratio_of_medians.verdict);
        all.filter(|&verdict| verdict == wanted).count() as u64
    };
    let verdicts = [
        (Verdict::Larger, "slower"),
        (Verdict::Smaller, "faster"),
        (Verdict::WithinNoise, "not distinguishable from noise"),
        (Verdict::TooWide, "undecided, too few rounds"),
        (Verdict::Undecided, "undecided"),
    ];
    let parts: Vec<String> = verdicts
        .into_iter()
        .filter(|(verdict, _)| of(*verdict) > 0)
        .map(|(verdict, word)| match of(verdict) {
            all if all == compared.len() as u64 => format!("all {word}"),
            some => format!("{} {word}", count(some)),
        })
        .collect();
    let baseline = &summary.baseline;
    let mut text = format!(
        "{trial}: the median {} of its {} is {} to {} times that of {baseline}: {}.",
        summary.primary.title(),
        plural(cells.len() as u64, "cell"),
        ratio(least),
        ratio(most),
        parts.join(", "),
    );
    let tails: Vec<&Ratio> = compared
        .iter()
        .filter_map(|c| c.ratio_of_p99.as_ref())
        .collect();
    if tails.len() == cells.len() {
        let least = tails.iter().map(|r| r.value).fold(f64::INFINITY, f64::min);
        let most = tails.iter().map(|r| r.value).fold(0.0, f64::max);
        let heavier = tails.iter().filter(|r| r.verdict == Verdict::Larger);
        text += &format!(
            " Their p99 is {} to {} times that of {baseline}, beyond noise in {} of {}.",
            ratio(least),
            ratio(most),
            heavier.count(),
            tails.len(),
        );
    }
    text
}

/// Every cell that was measured, with its primary metric.
fn primaries(summary: &RunSummary) -> impl Iterator<Item = (&CellSummary, &MetricSummary)> {
    let measured = |cell| -> Option<(&CellSummary, &MetricSummary)> {
        let cell: &CellSummary = cell;
        Some((cell, cell.metrics.first()?))
    };
    summary.cells.iter().filter_map(measured)
}

fn worst_tail(summary: &RunSummary) -> Option<String> {
    let tails = || primaries(summary).filter_map(|(c, m)| Some((c, m.summary.tail_ratio_p99?)));
    let Some((cell, worst)) = tails().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        let needed = stats::needed_count(0.99, stats::DEFAULT_CONFIDENCE)?;
        let few = primaries(summary).all(|(_, m)| m.summary.count < needed);
        return few.then(|| {
            format!(
                "Nothing can be said about tails: no cell has the {} samples that a p99 needs.",
                count(needed)
            )
        });
    };
    let baseline = tails()
        .find(|(c, _)| c.trial == summary.baseline && c.label != cell.label)
        .map(|(c, tail)| format!("; for {} it is {} times", c.label, ratio(tail)))
        .unwrap_or_default();
    Some(format!(
        "The longest tail is that of {}: its p99 is {} times its median{baseline}.",
        cell.label,
        ratio(worst),
    ))
}

fn largest(summary: &RunSummary) -> Option<String> {
    let (cell, metric) = primaries(summary).max_by_key(|(_, m)| m.summary.max_ns)?;
    Some(format!(
        "The largest {} seen is {}, in {}; what was seen is a lower bound of the worst case, not an estimate of it.",
        summary.primary.title(),
        time(metric.summary.max_ns as f64),
        cell.label,
    ))
}

fn skipped(summary: &RunSummary) -> String {
    let planned: u64 = summary.cells.iter().map(|c| c.planned).sum();
    let total: u64 = summary.cells.iter().map(|c| c.skipped).sum();
    if total == 0 {
        return format!(
            "None of the {} was skipped.",
            plural(planned, "planned activation")
        );
    }
    let mut worst: Vec<&CellSummary> = summary.cells.iter().filter(|c| c.skipped > 0).collect();
    worst.sort_by_key(|cell| std::cmp::Reverse(cell.skipped));
    let named: Vec<String> = worst
        .iter()
        .take(4)
        .map(|cell| format!("{} {}", cell.label, count(cell.skipped)))
        .collect();
    let more = match worst.len().saturating_sub(4) as u64 {
        0 => String::new(),
        more => format!(", and {} more", plural(more, "cell")),
    };
    format!(
        "{} of {} were skipped: {}{more}. A job is skipped if the one before it still runs at its release: give it a longer period, \
         or less work.",
        count(total),
        plural(planned, "planned activation"),
        named.join(", "),
    )
}

/// One sentence for each trial with several cells, or one for all when there are many such trials.
fn skews(skews: &[SkewSummary]) -> Vec<String> {
    if skews.len() <= 2 {
        return skews.iter().map(skew).collect();
    }
    let most = |values: &[u64]| values.iter().max().copied();
    let worst = |least: bool| {
        let all = skews.iter().filter_map(|s| Some((most(&s.skew_ns)?, s)));
        if least {
            all.min_by_key(|(ns, _)| *ns)
        } else {
            all.max_by_key(|(ns, _)| *ns)
        }
    };
    let (Some((low, best)), Some((high, worst))) = (worst(true), worst(false)) else {
        return Vec::new();
    };
    let firsts = skews
        .iter()
        .filter_map(|s| most(&s.first_of_cpu_skew_ns))
        .max();
    let firsts = firsts.map_or(String::new(), |ns| {
        format!(
            "; the first cells of each cpu within {} throughout",
            time(ns as f64)
        )
    });
    vec![format!(
        "Cells that ran together started within {} of each other in {} ({} cells) and within {} in {} ({} cells), \
         worst rounds{firsts}.",
        time(low as f64),
        best.trial,
        best.cells,
        time(high as f64),
        worst.trial,
        worst.cells,
    )]
}

fn skew(skew: &SkewSummary) -> String {
    let range = |values: &[u64]| {
        let least = values.iter().min().copied().unwrap_or(0) as f64;
        let most = values.iter().max().copied().unwrap_or(0) as f64;
        if values.len() == 1 {
            time(most)
        } else {
            format!("{} to {}", time(least), time(most))
        }
    };
    let firsts = if skew.first_of_cpu_skew_ns.is_empty() {
        "; all share one cpu, so they start one after the other".to_owned()
    } else {
        format!(
            "; the first cells of each cpu within {}",
            range(&skew.first_of_cpu_skew_ns)
        )
    };
    format!(
        "The {} cells of {} started within {} of each other ({}){firsts}.",
        skew.cells,
        skew.trial,
        range(&skew.skew_ns),
        plural(skew.skew_ns.len() as u64, "round"),
    )
}

/// The probe's own cost, over all cells.
fn probe_cost(summary: &RunSummary) -> Option<String> {
    let most = |cost: fn(&CellSummary) -> u64| {
        let costs = summary.cells.iter().map(cost);
        costs.max().filter(|ns| *ns > 0)
    };
    let (clock, turn) = (most(|c| c.clock_cost_ns)?, most(|c| c.loop_cost_ns)?);
    Some(format!(
        "The probe itself took at most {} per clock reading, one of which is included in every time, and {} per iteration of its loop \
         without work or sleep; neither is subtracted.",
        time(clock as f64),
        time(turn as f64),
    ))
}

/// Beyond this, the intervals of quantiles are called too narrow. Independent jobs stay within 2/sqrt(n).
const CORRELATED: f64 = 0.2;

fn correlation(summary: &RunSummary) -> Option<String> {
    let all = primaries(summary).filter_map(|(c, m)| Some((c, m.lag1_autocorrelation?)));
    let (cell, most) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most > CORRELATED).then(|| {
        format!(
            "Consecutive jobs are correlated (up to {most:.2}, in {}): the intervals of quantiles \
             are too narrow there. The comparisons over rounds allow for it.",
            cell.label
        )
    })
}
