//! A run's bounds: how long it would have to be for the quantiles that it is too short for, and its evidence on the maximum, which no run
//! bounds.

use record::summary::RunSummary;
use stats::{DEFAULT_CONFIDENCE, needed_count};

use text::words::{count, lost, part};

/// The rare quantiles and their names.
const RARE: [(f64, &str); 3] = [(0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// `bounding p99.99 takes 29,956 jobs of each cell (--rounds 30, about 5 min)`; `None` if all are bounded, or if the run is not about
/// jobs.
pub(crate) fn sentence(summary: &RunSummary) -> Option<String> {
    let measured = || summary.cells.iter().filter(|cell| cell.executed > 0);
    if measured().any(|cell| cell.task.is_some()) {
        return None;
    }
    let fewest = measured().min_by_key(|cell| cell.executed)?;
    let rounds = u64::from(fewest.rounds.max(1));
    let parts = RARE.iter().filter_map(|(probability, name)| {
        let needed = needed_count(*probability, DEFAULT_CONFIDENCE)?;
        if needed <= fewest.executed {
            return None;
        }
        let asked = u128::from(needed) * u128::from(rounds);
        let asked = asked.div_ceil(u128::from(fewest.executed));
        let lasts = summary.lasted_ns.map_or_else(String::new, |ns| {
            let ns = ns as f64 * asked as f64 / rounds as f64;
            format!(", about {}", for_people(ns / 1e9))
        });
        Some((*name, needed, format!("--rounds {asked}{lasts}")))
    });
    let mut all = String::new();
    for (name, needed, how) in parts {
        let needed = count(needed);
        match all.is_empty() {
            true => all = format!("bounding {name} takes {needed} jobs of each cell ({how})"),
            false => all.push_str(&format!(", {name} {needed} ({how})")),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// A bound on the share of jobs above the largest that exceeds this is not worth a sentence.
const MOST_ABOVE: f64 = 0.05;

/// The words in place of a bound of the maximum: how many jobs may lie above the largest seen in the cell with the fewest; `None` where a
/// task's analysis bounds it, where jobs were lost, or where none ran.
pub(crate) fn maximum(summary: &RunSummary) -> Option<String> {
    let cells = || summary.cells.iter();
    if cells().any(|cell| cell.task.is_some() || lost(cell) > 0) {
        return None;
    }
    let counts = cells().filter_map(|cell| Some(cell.metrics.first()?.summary.count));
    let fewest = counts.filter(|&jobs| jobs > 0).min()?;
    // All of n independent jobs lie below a quantile with the probability of the quantile to the power of n.
    let above = -((1.0 - DEFAULT_CONFIDENCE).ln() / fewest as f64).exp_m1();
    if above > MOST_ABOVE {
        return Some("no number of jobs bounds the maximum".to_owned());
    }
    Some(format!(
        "no number of jobs bounds the maximum; the largest of {} independent jobs shows, with {:.0} % confidence, that at most {} of all \
         exceed it",
        count(fewest),
        DEFAULT_CONFIDENCE * 100.0,
        part(above)
    ))
}

/// `40 s`, `3 min`, `26 h`.
fn for_people(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3_600.0),
    }
}
