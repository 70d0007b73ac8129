//! What a run whose trials took turns comes to, in a sentence or two, and what was seen within the machine's states.

use model::EngineKind;
use record::summary::{CellSummary, InTurns, RunSummary};
use stats::{Ratio, Share, holm};

use crate::units::percent;
use crate::words::{comparison, count, interval};

/// States matter when both take at least this share of jobs: what is rarer shows in p99.
const MATERIAL_SHARE: f64 = 0.1;
/// The probability with which any of the differences told may be chance.
const LEVEL: f64 = 0.05;

/// The conclusion, for terminal and page; empty where no trials took turns.
pub(crate) fn conclusion(summary: &RunSummary) -> Vec<String> {
    let compared: Vec<(&CellSummary, &InTurns)> = (summary.cells.iter())
        .filter_map(|cell| Some((cell, cell.in_turns.first()?)))
        .collect();
    let p_values: Option<Vec<f64>> = (compared.iter())
        .map(|(_, in_turns)| {
            let comparison = &in_turns.comparison;
            comparison.ratio_of_medians.p_value(comparison.rounds)
        })
        .collect();
    let Some(p_values) = p_values.filter(|values| !values.is_empty()) else {
        return Vec::new();
    };
    let shown = holm(&p_values, LEVEL);
    let (mut differ, mut alike) = (Vec::new(), Vec::new());
    for ((cell, in_turns), shown) in compared.iter().zip(shown) {
        match shown {
            true => differ.push((*cell, *in_turns)),
            false => alike.push(&in_turns.comparison.ratio_of_medians),
        }
    }
    let metric = summary.primary.title();
    let mut against: Vec<&str> = Vec::new();
    for (_, in_turns) in &compared {
        if !against.contains(&in_turns.against.as_str()) {
            against.push(&in_turns.against);
        }
    }
    let baselines = match against.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("{}, each against its own", many.join(", ")),
    };
    let seen = (alike.iter().filter_map(|ratio| unseen(ratio))).fold(0.0, f64::max);
    let mut sentences = Vec::new();
    for (cell, in_turns) in &differ {
        let baseline = &in_turns.against;
        let ratio = &in_turns.comparison.ratio_of_medians;
        sentences.push(match is_baseline_again(summary, cell) {
            true => format!(
                "The machine tells {baseline} from itself by {}: trust no difference of that size.",
                percent((ratio.value - 1.0).abs())
            ),
            false => differs(cell, ratio, metric, baseline),
        });
    }
    differ.retain(|(cell, _)| !is_baseline_again(summary, cell));
    match (differ.is_empty(), alike.is_empty()) {
        (true, false) => sentences.push(format!(
            "Nothing was shown to change the median {metric} of {baselines}: differences above {} would have been seen.",
            percent(seen)
        )),
        (false, false) => sentences.push(format!(
            "No other was shown to change it: differences above {} would have been seen.",
            percent(seen)
        )),
        (_, true) => {}
    }
    sentences.extend(machine(summary));
    sentences
}

/// Whether a trial is the baseline once more.
fn is_baseline_again(summary: &RunSummary, cell: &CellSummary) -> bool {
    let engines = |trial: &str| -> Vec<EngineKind> {
        let of = summary.cells.iter().filter(|cell| cell.trial == trial);
        of.map(|cell| cell.engine).collect()
    };
    engines(&cell.trial) == engines(&summary.baseline)
}

fn differs(cell: &CellSummary, ratio: &Ratio, metric: &str, baseline: &str) -> String {
    let (more, by) = if ratio.value > 1.0 {
        ("longer", ratio.value - 1.0)
    } else {
        ("shorter", 1.0 - ratio.value)
    };
    format!(
        "{}: the median {metric} is {} {more} than that of {baseline}: {} times as long.",
        cell.label,
        percent(by),
        interval(ratio)
    )
}

/// The largest difference that the interval leaves room for.
fn unseen(ratio: &Ratio) -> Option<f64> {
    Some((ratio.high? - 1.0).max(1.0 - ratio.low?))
}

/// What the baseline itself missed is the machine's doing.
fn machine(summary: &RunSummary) -> Option<String> {
    let of_baseline = |cell: &&CellSummary| cell.trial == summary.baseline;
    let cells = || summary.cells.iter().filter(of_baseline);
    let late: u64 = cells().filter_map(|cell| cell.late).sum();
    let planned: u64 = cells().map(|cell| cell.planned).sum();
    (late > 0).then(|| {
        format!(
            "The machine itself is late: {} missed {} of {} deadlines.",
            summary.baseline,
            count(late),
            count(planned)
        )
    })
}

/// A sentence for each cell that was compared within states, with the cell's name: about the primary metric, or about
/// all.
pub(crate) fn states(summary: &RunSummary, all: bool) -> Vec<(String, String)> {
    let told = |in_turns: &&InTurns| all || in_turns.metric == summary.primary;
    let sentences = summary.cells.iter().flat_map(|cell| {
        (cell.in_turns.iter().filter(told))
            .filter_map(|in_turns| Some((cell.label.clone(), state(in_turns)?)))
    });
    sentences.collect()
}

/// A sentence for each cell that took turns with another than the baseline, with the cell's name.
pub(crate) fn beside_own(summary: &RunSummary) -> Vec<(String, String)> {
    let sentence = |cell: &CellSummary| {
        let in_turns = (cell.in_turns.first()).filter(|turns| turns.against != summary.baseline)?;
        Some((
            cell.label.clone(),
            format!(
                "in turns against {}, which the same disturbs: {}",
                in_turns.against,
                comparison(&in_turns.comparison)
            ),
        ))
    };
    summary.cells.iter().filter_map(sentence).collect()
}

fn state(in_turns: &InTurns) -> Option<String> {
    let baseline = &in_turns.against;
    let (within, factor) = (in_turns.within.as_ref()?, in_turns.slow_over_fast?);
    let share = within.slow_share_of_baseline.value;
    (MATERIAL_SHARE..=1.0 - MATERIAL_SHARE)
        .contains(&share)
        .then_some(())?;
    let told = |ratio: &Option<Ratio>| match ratio {
        Some(ratio) => format!("{} times {baseline}", interval(ratio)),
        None => "too few turns to compare".to_owned(),
    };
    Some(format!(
        "{}: the machine has a state in which jobs take {factor:.2} times as long; in the fast state {}, in the slow one {}; {} of its jobs \
         were in the slow state and {} of those of {baseline}, {}",
        in_turns.metric.title(),
        told(&within.fast),
        told(&within.slow),
        percent(within.slow_share_of_other.value),
        percent(within.slow_share_of_baseline.value),
        equally(&within.slow_share_difference),
    ))
}

fn equally(difference: &Share) -> &'static str {
    match (difference.low, difference.high) {
        (Some(low), Some(high)) if low <= 0.0 && high >= 0.0 => "equally long within noise",
        (Some(_), Some(_)) => "which noise does not explain",
        _ => "with too few rounds to compare",
    }
}
