//! The figures that a load may move, and whether it does.

use record::Metric;
use record::samples::Samples;
use serde::Serialize;
use stats::{Sorted, larger, median_of};

/// A ratio below this does not count as a disturbance.
pub(super) const LEAST: f64 = 1.10;
/// How often all figures together may err.
const ERROR: f64 = 0.05;

/// A quantile of a metric of one of the probes.
#[derive(Debug)]
pub(super) struct Figure {
    /// In sentences.
    pub name: &'static str,
    /// In the table.
    pub short: &'static str,
    /// Whether it is the probe in class FIFO.
    pub fifo: bool,
    /// Whether it is the probe with work to do.
    pub mac: bool,
    metric: Metric,
    /// 1: the largest.
    probability: f64,
}

const fn figure(
    name: &'static str,
    short: &'static str,
    (fifo, mac): (bool, bool),
    probability: f64,
) -> Figure {
    Figure {
        name,
        short,
        fifo,
        mac,
        metric: if mac {
            Metric::ExecutionTime
        } else {
            Metric::WakeupLatency
        },
        probability,
    }
}

pub(super) const COUNT: usize = 12;

/// Every figure, in the order of the table.
pub(super) const FIGURES: [Figure; COUNT] = [
    figure(
        "median wake-up latency in OTHER",
        "OTHER wake-up median",
        (false, false),
        0.5,
    ),
    figure(
        "p99 of the wake-up latency in OTHER",
        "p99",
        (false, false),
        0.99,
    ),
    figure(
        "p99.9 of the wake-up latency in OTHER",
        "p99.9",
        (false, false),
        0.999,
    ),
    figure(
        "largest wake-up latency in OTHER",
        "max",
        (false, false),
        1.0,
    ),
    figure(
        "median execution time in OTHER",
        "execution median",
        (false, true),
        0.5,
    ),
    figure(
        "p99 of the execution time in OTHER",
        "p99",
        (false, true),
        0.99,
    ),
    figure(
        "median wake-up latency in FIFO",
        "FIFO wake-up median",
        (true, false),
        0.5,
    ),
    figure(
        "p99 of the wake-up latency in FIFO",
        "p99",
        (true, false),
        0.99,
    ),
    figure(
        "p99.9 of the wake-up latency in FIFO",
        "p99.9",
        (true, false),
        0.999,
    ),
    figure("largest wake-up latency in FIFO", "max", (true, false), 1.0),
    figure(
        "median execution time in FIFO",
        "execution median",
        (true, true),
        0.5,
    ),
    figure(
        "p99 of the execution time in FIFO",
        "p99",
        (true, true),
        0.99,
    ),
];

/// The figures of one visit, ns; `None` where a probe did not run.
pub(super) type Values = [Option<i64>; COUNT];

/// Fills in the figures of one probe's samples.
pub(super) fn fill(values: &mut Values, fifo: bool, mac: bool, samples: &Samples) {
    for (value, figure) in values.iter_mut().zip(&FIGURES) {
        if (figure.fifo, figure.mac) == (fifo, mac) {
            let of = samples.samples.iter().map(|s| s.of(figure.metric));
            *value = Sorted::new(of.collect()).nearest_rank(figure.probability);
        }
    }
}

/// A figure that a load moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Moved {
    /// Its place in [`FIGURES`].
    pub figure: usize,
    /// Median over rounds under load, divided by the median without.
    pub times: f64,
    /// How often equal rounds would lie so high (one-sided rank-sum test).
    pub p: f64,
}

/// The figures whose median over rounds grew by more than [`LEAST`] and whose rounds lie higher than by chance, the most certain first,
/// corrected for their number (Bonferroni).
pub(super) fn moved(idle: &[Values], loaded: &[Values]) -> Vec<Moved> {
    let column = |rounds: &[Values], at: usize| -> Option<Vec<i64>> {
        rounds.iter().map(|values| values[at]).collect()
    };
    let mut moved: Vec<Moved> = (0..COUNT)
        .filter_map(|figure| {
            let (before, after) = (column(idle, figure)?, column(loaded, figure)?);
            let before_ns = median_of(&before).filter(|median| *median > 0)?;
            let times = median_of(&after)? as f64 / before_ns as f64;
            let p = larger(&before, &after);
            (times > LEAST && p <= ERROR / COUNT as f64).then_some(Moved { figure, times, p })
        })
        .collect();
    moved.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.times.total_cmp(&a.times)));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of: impl Fn(usize, usize) -> i64) -> Vec<Values> {
        (0..5)
            .map(|round| std::array::from_fn(|figure| Some(of(round, figure))))
            .collect()
    }

    #[test]
    fn what_is_larger_in_every_round_is_moved_and_noise_is_not() {
        let idle = rounds(|round, _| 1000 + round as i64);
        assert!(moved(&idle, &idle).is_empty());
        let loaded = rounds(|round, figure| match figure {
            3 => 5000 + 10 * round as i64,
            7 => 2000,
            // Twice and half in turns.
            8 => [500, 2000][round % 2],
            // Surely larger, but too little to matter.
            9 => 1050 + round as i64,
            _ => 1000 + round as i64,
        });
        let found = moved(&idle, &loaded);
        let places: Vec<usize> = found.iter().map(|m| m.figure).collect();
        assert_eq!(places, [3, 7]);
        assert!((found[0].times - 5.0).abs() < 0.1 && found[0].p < 0.004);
    }

    #[test]
    fn a_class_that_did_not_run_moves_nothing() {
        let idle = rounds(|_, _| 1000);
        let mut loaded = rounds(|_, _| 3000);
        loaded[2][6] = None;
        assert!(moved(&idle, &loaded).iter().all(|m| m.figure != 6));
        assert_eq!(moved(&idle, &loaded).len(), COUNT - 1);
    }

    #[test]
    fn figures_of_a_probe_stand_together() {
        let of = |fifo, mac| {
            FIGURES
                .iter()
                .filter(|f| (f.fifo, f.mac) == (fifo, mac))
                .count()
        };
        assert_eq!(
            [
                of(false, false),
                of(false, true),
                of(true, false),
                of(true, true)
            ],
            [4, 2, 4, 2]
        );
    }
}
