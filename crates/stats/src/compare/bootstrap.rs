//! The hierarchical bootstrap of the logarithm of a ratio.
//!
//! Redrawing blocks of jobs for every round of every resample would cost resamples x rounds x jobs. Instead each pair of
//! rounds is resampled [`DRAWS_PER_ROUND`] times, exactly, and a resample over rounds takes one of those draws for each
//! round it picks. The draws are a finite stand-in for the distribution within a round: its spread is known to about 5 %
//! (1/√(2·200)), which is little beside the spread between rounds, known from a handful of them.

use super::round::{Draw, Round};
use super::{CompareOptions, Ratio};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How often the samples within each pair of rounds are redrawn.
const DRAWS_PER_ROUND: u32 = 200;

/// The evidence of one pair of rounds on the logarithm of one ratio.
struct PairLogs {
    /// The value for the samples as recorded.
    recorded: f64,
    /// The values for the redrawn samples; `None` when one of them has no logarithm.
    drawn: Option<Vec<f64>>,
}

pub(super) struct Bootstrap<'a> {
    options: &'a CompareOptions,
    random: Xoshiro256PlusPlus,
}

impl<'a> Bootstrap<'a> {
    pub fn new(options: &'a CompareOptions) -> Self {
        Self {
            options,
            random: Xoshiro256PlusPlus::seed_from_u64(options.seed),
        }
    }

    /// For each probability the ratio of that quantile over all pairs (baseline, other); `None` where a round's
    /// quantile is not positive.
    pub fn ratios(mut self, pairs: &[[Round; 2]], probabilities: &[f64]) -> Vec<Option<Ratio>> {
        // One pair has no interval, however often it is drawn.
        let draws = match pairs.len() {
            1 => 0,
            _ => DRAWS_PER_ROUND.min(self.options.resamples),
        };
        let by_pair: Vec<Vec<Option<PairLogs>>> = pairs
            .iter()
            .map(|pair| self.pair_logs(pair, probabilities, draws))
            .collect();
        let mut by_pair: Vec<_> = by_pair.into_iter().map(Vec::into_iter).collect();
        probabilities
            .iter()
            .map(|_| {
                let logs: Option<Vec<PairLogs>> = by_pair
                    .iter_mut()
                    .map(|logs| logs.next().flatten())
                    .collect();
                self.ratio(&logs?)
            })
            .collect()
    }

    /// The evidence of this pair for each probability; one draw of the samples serves all of them.
    fn pair_logs(
        &mut self,
        pair: &[Round; 2],
        probabilities: &[f64],
        count: u32,
    ) -> Vec<Option<PairLogs>> {
        let recorded = probabilities.iter().map(|&probability| {
            log_ratio(pair.each_ref().map(|round| round.quantile(probability)))
        });
        let mut logs: Vec<Option<PairLogs>> = recorded
            .map(|log| {
                Some(PairLogs {
                    recorded: log?,
                    drawn: Some(Vec::new()),
                })
            })
            .collect();

        let mut draws = [Draw::default(), Draw::default()];
        for _ in 0..count {
            for (round, draw) in pair.iter().zip(&mut draws) {
                round.draw(&mut self.random, draw);
            }
            for (logs, &probability) in logs.iter_mut().zip(probabilities) {
                let Some(PairLogs { drawn, .. }) = logs else {
                    continue;
                };
                let quantile = |side: usize| pair[side].drawn_quantile(&draws[side], probability);
                match (log_ratio([quantile(0), quantile(1)]), drawn.as_mut()) {
                    (Some(log), Some(drawn)) => drawn.push(log),
                    _ => *drawn = None,
                }
            }
        }
        logs
    }

    /// The ratio over all pairs; `None` when there is no pair.
    fn ratio(&mut self, pairs: &[PairLogs]) -> Option<Ratio> {
        let log = mean(pairs.iter().map(|pair| pair.recorded))?;
        let drawn: Option<Vec<&[f64]>> = pairs.iter().map(|pair| pair.drawn.as_deref()).collect();
        let error = drawn
            .filter(|drawn| drawn.len() > 1)
            .and_then(|drawn| self.standard_error(&drawn));
        Some(Ratio::new(
            log,
            error,
            0.0,
            pairs.len(),
            self.options.confidence,
        ))
    }

    /// The standard deviation over resamples of the mean over as many rounds, each picked at random with one of its
    /// draws.
    fn standard_error(&mut self, drawn: &[&[f64]]) -> Option<f64> {
        let resamples: Vec<f64> = (0..self.options.resamples)
            .filter_map(|_| {
                mean((0..drawn.len()).map(|_| {
                    let draws = drawn[self.random.random_range(0..drawn.len())];
                    draws[self.random.random_range(0..draws.len())]
                }))
            })
            .collect();
        let centre = mean(resamples.iter().copied())?;
        let squares: f64 = resamples
            .iter()
            .map(|resample| (resample - centre).powi(2))
            .sum();
        Some((squares / resamples.len() as f64).sqrt())
    }
}

/// The logarithm of other over baseline, given [baseline, other]; `None` unless both are positive.
fn log_ratio(values: [Option<i64>; 2]) -> Option<f64> {
    let [baseline, other] = values.map(|value| value.filter(|&value| value > 0));
    Some((other? as f64).ln() - (baseline? as f64).ln())
}

pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}
