//! The conclusion of a run in a sentence or two, and the findings within the machine's states.

use model::EngineKind;
use record::summary::{CellSummary, InTurns, Metric, MetricSummary, RunSummary};
use stats::{Comparison, PLANTED_FACTOR, Ratio, Share, Verdict, holm};

use text::units::{exact, time};
use text::words::{FEWEST_ROUNDS, comparison, count, interval, part, share_of_jobs};

/// States matter if both take at least this share of jobs: rarer ones are found only on machines without noise.
const MATERIAL_SHARE: f64 = 0.02;
/// The probability that any of the reported differences is due to chance.
const LEVEL: f64 = 0.05;

/// A cell, the trial that it is compared with, and the comparison.
struct Compared<'a> {
    cell: &'a CellSummary,
    against: &'a str,
    comparison: &'a Comparison,
}

/// The comparisons that the conclusion rests on: turn by turn, or of whole rounds of a run without turns and without conditions
/// that differ.
fn compared(summary: &RunSummary) -> Vec<Compared<'_>> {
    let in_turns = summary.cells.iter().filter_map(|cell| {
        let turns = cell.in_turns.first()?;
        (turns.comparison.rounds >= FEWEST_ROUNDS).then_some(Compared {
            cell,
            against: &turns.against,
            comparison: &turns.comparison,
        })
    });
    let in_turns: Vec<Compared<'_>> = in_turns.collect();
    let is_of_another_kind = |cell: &CellSummary| cell.task.is_some() || cell.histograms.is_some();
    if summary.cells.iter().any(|cell| !cell.in_turns.is_empty())
        || summary.cells.iter().any(is_of_another_kind)
        || crate::table_conditions::findings(summary).is_some()
    {
        return in_turns;
    }
    let in_rounds = summary.cells.iter().filter_map(|cell| {
        let comparison = cell.against_baseline.as_ref()?;
        (comparison.rounds >= FEWEST_ROUNDS).then_some(Compared {
            cell,
            against: &summary.baseline,
            comparison,
        })
    });
    in_rounds.collect()
}

/// The cells in the conclusion, each with the trial that it is compared with and the comparison; empty if there is no conclusion.
pub(crate) fn told_of(summary: &RunSummary) -> Vec<(&CellSummary, &str, &Comparison)> {
    let compared = compared(summary);
    let told = shown(compared.iter().map(|compared| compared.comparison)).is_some();
    (compared.into_iter().filter(|_| told))
        .map(|of| (of.cell, of.against, of.comparison))
        .collect()
}

/// The conclusion, for terminal and page; empty where nothing was compared.
pub fn conclusion(summary: &RunSummary) -> Vec<String> {
    let compared = compared(summary);
    let Some(shown) = shown(compared.iter().map(|compared| compared.comparison)) else {
        return Vec::new();
    };
    let (mut differ, mut alike) = (Vec::new(), Vec::new());
    for (compared, shown) in compared.iter().zip(shown) {
        match shown {
            true => differ.push(compared),
            false => alike.push(compared),
        }
    }
    let metric = summary.primary.title();
    let mut against: Vec<&str> = Vec::new();
    for Compared { against: trial, .. } in &compared {
        if !against.contains(trial) {
            against.push(trial);
        }
    }
    let baselines = match against.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("{}, each against its own", many.join(", ")),
    };
    let seen = unseen_of(summary, &alike);
    let mut sentences = Vec::new();
    for compared in &differ {
        let (cell, baseline) = (compared.cell, compared.against);
        let ratio = &compared.comparison.ratio_of_medians;
        sentences.push(match is_baseline_again(summary, cell) {
            true => format!(
                "On this machine {baseline} differs from itself by {}: trust no difference of that size.",
                part((ratio.value - 1.0).abs())
            ),
            false => differs(cell, ratio, metric, baseline),
        });
    }
    differ.retain(|compared| !is_baseline_again(summary, compared.cell));
    match (differ.is_empty(), alike.is_empty()) {
        (true, false) => sentences.push(format!(
            "Nothing was shown to change the median {metric} of {baselines}: differences above {} would have been seen.",
            part(seen)
        )),
        (false, false) => sentences.push(format!(
            "No other was shown to change it: differences above {} would have been seen.",
            part(seen)
        )),
        (_, true) => {}
    }
    sentences.extend(by_chance(&alike, compared.len()));
    sentences.extend(executions(summary));
    sentences.extend(of_other_metrics(summary));
    sentences.extend(pooled(summary));
    sentences.extend(one_state(summary));
    sentences.extend(machine(summary));
    sentences
}

/// The cells whose interval excludes 1 although they are not shown to differ: the table calls each of them slower or faster by its own
/// interval, and of many intervals some are wrong.
fn by_chance(alike: &[&Compared<'_>], of: usize) -> Option<String> {
    let differs = |compared: &&&Compared<'_>| {
        let verdict = compared.comparison.ratio_of_medians.verdict;
        matches!(verdict, Verdict::Smaller | Verdict::Larger)
    };
    let labels: Vec<&str> = (alike.iter().filter(differs))
        .map(|compared| compared.cell.label.as_str())
        .collect();
    if labels.is_empty() {
        return None;
    }
    let (differ, count) = match labels.len() {
        1 => ("differs", "it is"),
        _ => ("differ", "they are"),
    };
    Some(format!(
        "{} {differ} only by the interval in the table: of {of} such intervals at least one is wrong by chance in up to {} of runs, so {count} not counted.",
        labels.join(", "),
        part(1.0 - (1.0 - LEVEL).powf(of as f64)),
    ))
}

/// A note that a job is a whole execution, so that nobody takes its times for the program's work alone.
fn executions(summary: &RunSummary) -> Option<String> {
    let of = |cell: &&CellSummary| cell.executions;
    let labels: Vec<&str> = (summary.cells.iter().filter(of))
        .map(|cell| cell.label.as_str())
        .collect();
    if labels.is_empty() {
        return None;
    }
    let of = match labels.len() == summary.cells.len() {
        true => String::new(),
        false => format!(" of {}", labels.join(", ")),
    };
    Some(format!(
        "A job{of} is one execution of the program: these times include its start and exit, which may be what differs, not the program's own work."
    ))
}

/// Which of these are shown to differ, with probability [`LEVEL`] that any is wrong (Holm); `None` if there are none, or one has no
/// interval.
fn shown<'a>(compared: impl Iterator<Item = &'a Comparison>) -> Option<Vec<bool>> {
    let p_values: Option<Vec<f64>> = compared
        .map(|comparison| comparison.ratio_of_medians.p_value(comparison.rounds))
        .collect();
    let p_values = p_values.filter(|values| !values.is_empty())?;
    Some(holm(&p_values, LEVEL))
}

/// Shown differences in wake-up latency and response time of trials that took turns: a sentence for each metric but the primary one in
/// which something differs.
fn of_other_metrics(summary: &RunSummary) -> Vec<String> {
    let others = (Metric::ALL.into_iter()).filter(|metric| *metric != summary.primary);
    let sentence = |metric: Metric| {
        let mut rows = crate::in_turns::compared(summary, metric);
        rows.retain(|(_, turns)| turns.comparison.rounds >= FEWEST_ROUNDS);
        let shown = shown(rows.iter().map(|(_, turns)| &turns.comparison))?;
        let differ: Vec<String> = (rows.iter().zip(shown))
            .filter(|(_, shown)| *shown)
            .map(|((cell, turns), _)| {
                let (more, by) = more(turns.comparison.ratio_of_medians.value);
                match is_baseline_again(summary, cell) {
                    true => format!("{} from itself by {}", turns.against, part(by)),
                    false => format!("{} {} {more}", cell.label, part(by)),
                }
            })
            .collect();
        let metric = metric.title();
        (!differ.is_empty()).then(|| {
            format!(
                "The median {metric} was shown to differ: {}.",
                differ.join(", ")
            )
        })
    };
    others.filter_map(sentence).collect()
}

/// A ratio of times in words: longer or shorter, and the share.
fn more(ratio: f64) -> (&'static str, f64) {
    match ratio > 1.0 {
        true => ("longer", ratio - 1.0),
        false => ("shorter", 1.0 - ratio),
    }
}

/// The difference of medians that a run would have seen, as a share, as its conclusion says. `None` if nothing was compared, or every
/// trial was shown to differ.
pub fn would_have_seen(summary: &RunSummary) -> Option<f64> {
    let compared = compared(summary);
    let shown = shown(compared.iter().map(|compared| compared.comparison))?;
    let alike: Vec<&Compared<'_>> = (compared.iter().zip(shown))
        .filter(|(_, shown)| !shown)
        .map(|(compared, _)| compared)
        .collect();
    (!alike.is_empty()).then(|| unseen_of(summary, &alike))
}

/// The largest difference that would not have been seen of trials that are not shown to differ. Where the baseline and its repetition are
/// compared with the others together, that of the repetition, whose interval is wider, is no answer to the question.
fn unseen_of(summary: &RunSummary, alike: &[&Compared<'_>]) -> f64 {
    let is_pooled = |one: &&&Compared<'_>| {
        (one.cell.in_turns.first()).is_some_and(|turns| !turns.pooled_with.is_empty())
    };
    let counts = |one: &&&Compared<'_>| {
        !alike.iter().any(|other| is_pooled(&other)) || !is_baseline_again(summary, one.cell)
    };
    let ratios = alike.iter().filter(counts);
    (ratios.filter_map(|one| unseen(&one.comparison.ratio_of_medians))).fold(0.0, f64::max)
}

/// The baseline of the others, if it is more than one trial.
fn pooled(summary: &RunSummary) -> Option<String> {
    let mut all = summary
        .cells
        .iter()
        .filter_map(|cell| cell.in_turns.first());
    let turns = all.find(|turns| !turns.pooled_with.is_empty())?;
    let (baseline, repeats) = (&turns.against, turns.pooled_with.join(" and "));
    Some(format!(
        "{repeats}: {baseline} once more, compared with {baseline} alone; the others are compared with the mean of both in each round."
    ))
}

/// Which other state would have been found, if the machine was seen in one state.
fn one_state(summary: &RunSummary) -> Option<String> {
    let mut all = (summary.cells.iter()).filter_map(|cell| cell.in_turns.first());
    let turns = all.find(|turns| {
        turns.metric == summary.primary
            && turns.against == summary.baseline
            && turns.comparison.rounds >= FEWEST_ROUNDS
    })?;
    turns.slow_over_fast.is_none().then_some(())?;
    let from = match turns.least_state_share {
        Some(share) => format!(
            "would have been found if it held at least {} of jobs",
            part(share)
        ),
        None => "would not have been found: the jobs vary too much".to_owned(),
    };
    Some(format!(
        "The {} of all cells together shows no second state of the machine; one in which jobs take {PLANTED_FACTOR} times as long for 10 to \
         160 jobs at a time {from}.",
        summary.primary.title()
    ))
}

/// Whether a trial repeats the baseline.
fn is_baseline_again(summary: &RunSummary, cell: &CellSummary) -> bool {
    let cells = |trial: &str| -> Vec<(EngineKind, Option<&String>)> {
        let of = summary.cells.iter().filter(|cell| cell.trial == trial);
        of.map(|cell| (cell.engine, cell.does.as_ref())).collect()
    };
    cells(&cell.trial) == cells(&summary.baseline)
}

fn differs(cell: &CellSummary, ratio: &Ratio, metric: &str, baseline: &str) -> String {
    let (more, by) = more(ratio.value);
    format!(
        "{}: the median {metric} is {} {more} than that of {baseline}: {} times as long.",
        cell.label,
        part(by),
        interval(ratio)
    )
}

/// The largest difference that the interval leaves room for.
fn unseen(ratio: &Ratio) -> Option<f64> {
    Some((ratio.high? - 1.0).max(1.0 - ratio.low?))
}

/// If the baseline itself misses deadlines, the machine causes it, provided that the work alone would fit.
fn machine(summary: &RunSummary) -> Option<String> {
    let of_baseline = |cell: &&CellSummary| cell.trial == summary.baseline;
    let cells = || summary.cells.iter().filter(of_baseline);
    let unmet = |cell: &CellSummary| cell.late.map(|late| late + cell.skipped);
    let unmet: u64 = cells().filter_map(unmet).sum();
    let planned: u64 = cells().map(|cell| cell.planned).sum();
    if unmet == 0 {
        return None;
    }
    let baseline = &summary.baseline;
    let of = format!("{} of {} deadlines", count(unmet), count(planned));
    // The cell with the longest work speaks for all of the baseline.
    let too_long = cells().filter_map(too_long);
    let worst = too_long.max_by(|a, b| a.share.total_cmp(&b.share));
    Some(match worst {
        None => format!("The machine itself is late: {baseline} did not meet {of}."),
        Some(TooLong {
            share,
            limit: (name, limit_ns),
            median_ns: Some(median_ns),
        }) if share >= 0.5 => format!(
            "The work does not fit its {name}: the median execution time of {baseline} is {}, its {name} {}; it did not meet {of}.",
            time(median_ns as f64),
            exact(limit_ns.unsigned_abs()),
        ),
        Some(TooLong {
            share,
            limit: (name, limit_ns),
            ..
        }) => format!(
            "{baseline} itself did not meet {of}: from start to end alone, at least {} of its jobs take longer than their {name} of {}, \
             because of their work or of the machine.",
            part(share),
            exact(limit_ns.unsigned_abs()),
        ),
    })
}

/// A cell whose jobs take longer than they may even if they begin at once.
struct TooLong {
    /// The least share of its jobs that do.
    share: f64,
    /// Deadline or period, and its length, ns.
    limit: (&'static str, i64),
    median_ns: Option<i64>,
}

fn too_long(cell: &CellSummary) -> Option<TooLong> {
    let of = |metric: &&MetricSummary| metric.metric == Metric::ExecutionTime;
    let execution = &cell.metrics.iter().find(of)?.summary;
    let deadline = cell.deadline_ns.map(|ns| ("deadline", ns));
    let period = cell.period_ns.map(|ns| ("period", ns));
    let limit = (deadline.into_iter().chain(period)).min_by_key(|(_, ns)| *ns)?;
    let is_beyond = |probability: f64| {
        let quantile = execution.quantile(probability);
        quantile
            .and_then(|q| q.value_ns)
            .is_some_and(|ns| ns > limit.1)
    };
    let probability = [0.5, 0.9, 0.95, 0.99].into_iter().find(|&p| is_beyond(p))?;
    Some(TooLong {
        share: 1.0 - probability,
        limit,
        median_ns: execution.quantile(0.5).and_then(|q| q.value_ns),
    })
}

/// Sentences about the states of the machine, each with its subject: one for each cell that differs within them from what it
/// took turns with, and one for all others together. About the primary metric, or about all.
pub(crate) fn states(summary: &RunSummary, all: bool) -> Vec<(String, String)> {
    let mut sentences = Vec::new();
    for metric in Metric::ALL {
        if !all && metric != summary.primary {
            continue;
        }
        let compared = summary.cells.iter().filter_map(|cell| {
            let of = cell.in_turns.iter().find(|turns| turns.metric == metric)?;
            Some((cell, of, state(of)?))
        });
        let (alike, differ): (Vec<_>, Vec<_>) = compared.partition(|(_, of, _)| is_alike(of));
        // Cells that took turns with another trial may have seen another state.
        let mut of_states: Vec<(String, Vec<_>)> = Vec::new();
        for (cell, of, sentence) in alike {
            let machine = state_of_machine(of);
            match of_states.iter_mut().find(|(state, _)| *state == machine) {
                Some((_, cells)) => cells.push((cell, sentence)),
                None => of_states.push((machine, vec![(cell, sentence)])),
            }
        }
        for (machine, cells) in of_states {
            if let [(cell, sentence)] = cells.as_slice() {
                sentences.push((cell.label.clone(), sentence.clone()));
                continue;
            }
            let names: Vec<&str> = cells.iter().map(|(cell, _)| cell.label.as_str()).collect();
            let sentence = format!(
                "{machine}; no difference from what they took turns with was shown in it, outside it, or in how often it holds: {}",
                names.join(", ")
            );
            sentences.push((metric.title().to_owned(), sentence));
        }
        sentences.extend((differ.into_iter()).map(|(cell, _, text)| (cell.label.clone(), text)));
    }
    sentences
}

/// Whether a cell was compared within both states and in its share of the slow one, and no difference was shown.
fn is_alike(in_turns: &InTurns) -> bool {
    let is_noise = |ratio: &Option<Ratio>| {
        let verdict = ratio.as_ref().map(|ratio| ratio.verdict);
        verdict == Some(Verdict::WithinNoise)
    };
    in_turns.within.as_ref().is_some_and(|within| {
        let share = &within.slow_share_difference;
        let has_none = |(low, high)| low <= 0.0 && high >= 0.0;
        share.low.zip(share.high).is_some_and(has_none)
            && is_noise(&within.fast)
            && is_noise(&within.slow)
    })
}

/// The slow state in words.
fn state_of_machine(in_turns: &InTurns) -> String {
    let factor = in_turns.slow_over_fast.unwrap_or(1.0);
    format!("the machine has a state in which jobs take {factor:.2} times as long")
}

/// A sentence for each cell that took turns with a trial other than the baseline, with the cell's name.
pub(crate) fn beside_own(summary: &RunSummary) -> Vec<(String, String)> {
    let sentence = |cell: &CellSummary| {
        let in_turns = (cell.in_turns.first()).filter(|turns| turns.against != summary.baseline)?;
        Some((
            cell.label.clone(),
            format!(
                "in turns against {}, under the same disturbances: {}; p99 {}",
                in_turns.against,
                comparison(&in_turns.comparison),
                crate::in_turns::p99_text(in_turns)
            ),
        ))
    };
    summary.cells.iter().filter_map(sentence).collect()
}

fn state(in_turns: &InTurns) -> Option<String> {
    let baseline = &in_turns.against;
    let within = (in_turns.within.as_ref()).filter(|_| in_turns.slow_over_fast.is_some())?;
    (in_turns.comparison.rounds >= FEWEST_ROUNDS).then_some(())?;
    let share = within.slow_share_of_baseline.value;
    (MATERIAL_SHARE..=1.0 - MATERIAL_SHARE)
        .contains(&share)
        .then_some(())?;
    let told = |ratio: &Option<Ratio>| match ratio {
        Some(ratio) => format!("{} times {baseline}", interval(ratio)),
        None => "too few turns to compare".to_owned(),
    };
    Some(format!(
        "{}: {}; in the fast state {}, in the slow one {}; {} of its jobs \
         were in the slow state and {} of those of {baseline}, {}",
        in_turns.metric.title(),
        state_of_machine(in_turns),
        told(&within.fast),
        told(&within.slow),
        in_it(&within.slow_share_of_other),
        in_it(&within.slow_share_of_baseline),
        equally(&within.slow_share_difference),
    ))
}

/// `20 % (18..23 %)` of jobs.
pub(crate) fn in_it(share: &Share) -> String {
    share_of_jobs(share.value, share.low.zip(share.high))
}

/// Of shares that differ.
fn equally(difference: &Share) -> &'static str {
    match (difference.low, difference.high) {
        (Some(low), Some(high)) if low <= 0.0 && high >= 0.0 => "equal within noise",
        (Some(_), Some(_)) => "more than noise explains",
        _ => "with too few rounds to compare",
    }
}
