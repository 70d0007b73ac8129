//! How large a share is, from rounds that each give one.

use crate::compare::student;
use serde::{Deserialize, Serialize};

/// A share and how sure it is, from 0 to 1; a difference of shares from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The estimate.
    pub value: f64,
    /// The lower end of the interval; `None` with fewer than 2 rounds.
    pub low: Option<f64>,
    /// The upper end; absent exactly when the lower is.
    pub high: Option<f64>,
}

impl Share {
    /// The share of jobs that something happens to, from how many it happened to in each round and how many jobs the round had.
    /// `None` without a job.
    ///
    /// Causes that make one job late make its neighbours late, so an interval that counts every job as evidence of its own is far too narrow. Rounds
    /// are the unit of evidence here as elsewhere: their differences say how many independent jobs would scatter
    /// as much, at most as many as there were, and Wilson's interval is taken for that number, with Student's t in place of the
    /// normal quantile (the effective sample size of Korn and Graubard, "Confidence intervals for proportions with small expected
    /// number of positive counts estimated from survey data", Survey Methodology 24(2), 1998, with the interval that Dean and
    /// Pagano find the better one, "Evaluating confidence interval methods for binomial proportions in clustered surveys", Journal of
    /// Survey Statistics and Methodology 3(4), 2015). Wilson's interval stays within 0 and 1 and has a length where nothing or
    /// everything happened; there, nothing shows whether it comes in bursts, and jobs are taken to be independent.
    pub fn of_counts(rounds: &[(u64, u64)], confidence: f64) -> Option<Share> {
        let rounds: Vec<(f64, f64)> = (rounds.iter())
            .filter(|(_, jobs)| *jobs > 0)
            .map(|&(hits, jobs)| (hits.min(jobs) as f64, jobs as f64))
            .collect();
        let hits: f64 = rounds.iter().map(|(hits, _)| hits).sum();
        let jobs: f64 = rounds.iter().map(|(_, jobs)| jobs).sum();
        if rounds.is_empty() {
            return None;
        }
        let value = hits / jobs;
        let Some(t) = student(rounds.len(), confidence) else {
            return Some(Share {
                value,
                low: None,
                high: None,
            });
        };
        let n = rounds.len() as f64;
        let residuals = rounds.iter().map(|(hits, jobs)| hits - value * jobs);
        let squares: f64 = residuals.map(|residual| residual.powi(2)).sum();
        let variance = n / (n - 1.0) * squares / jobs.powi(2);
        // Of no variance an infinite number, of no share not a number: `min` takes the jobs for both.
        let effective = (value * (1.0 - value) / variance).min(jobs);
        let width = t * t / effective;
        let centre = (value + width / 2.0) / (1.0 + width);
        let reach = (width * (value * (1.0 - value) + width / 4.0)).sqrt() / (1.0 + width);
        Some(Share {
            value,
            // Rounding must not bring an end to the wrong side of the estimate.
            low: Some((centre - reach).clamp(0.0, value)),
            high: Some((centre + reach).clamp(value, 1.0)),
        })
    }

    /// The mean of the rounds' shares with Student's interval, no end below `least`.
    pub(crate) fn of(rounds: &[f64], confidence: f64, least: f64) -> Share {
        let n = rounds.len() as f64;
        let value = rounds.iter().sum::<f64>() / n.max(1.0);
        let squares: f64 = rounds.iter().map(|share| (share - value).powi(2)).sum();
        let margin =
            student(rounds.len(), confidence).map(|t| t * (squares / (n * (n - 1.0))).sqrt());
        Share {
            value,
            low: margin.map(|margin| (value - margin).max(least)),
            high: margin.map(|margin| (value + margin).min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn ends(rounds: &[(u64, u64)]) -> (f64, f64) {
        let share = Share::of_counts(rounds, 0.95).unwrap();
        (share.low.unwrap(), share.high.unwrap())
    }

    #[test]
    fn nothing_and_everything_have_an_interval_and_one_round_has_none() {
        // Student's t with 9 degrees of freedom is 2.26216: t^2 / (n + t^2) of 10,000 jobs.
        let (low, high) = ends(&[(0, 1_000); 10]);
        assert_eq!(low, 0.0);
        assert!((high - 5.1174 / (10_000.0 + 5.1174)).abs() < 1e-7, "{high}");
        let (low, high) = ends(&[(20, 20); 10]);
        assert!((0.9..1.0).contains(&low) && high == 1.0, "{low} {high}");
        let one = Share::of_counts(&[(3, 100), (0, 0)], 0.95).unwrap();
        assert_eq!((one.value, one.low, one.high), (0.03, None, None));
        assert_eq!(Share::of_counts(&[(0, 0)], 0.95), None);
    }

    #[test]
    fn late_jobs_that_come_together_count_for_less() {
        let spread = ends(&[(10, 1_000); 10]);
        let together: Vec<(u64, u64)> = (0..10)
            .map(|r| (if r == 4 { 100 } else { 0 }, 1_000))
            .collect();
        let together = ends(&together);
        assert!(spread.0 > 0.007 && spread.1 < 0.014, "{spread:?}");
        assert!(together.0 < 0.002 && together.1 > 0.05, "{together:?}");
    }

    /// The share of 1,000 experiments in which the interval holds the truth, of so many rounds of 1,000 jobs with so many bursts in
    /// a round in the mean, each of 1 to `longest` jobs.
    fn held(random: &mut Xoshiro256PlusPlus, rounds: u32, longest: u64, bursts: f64) -> f64 {
        let truth = bursts * (longest + 1) as f64 / 2.0 / 1_000.0;
        let held = (0..1_000).filter(|_| {
            let rounds: Vec<(u64, u64)> = (0..rounds)
                .map(|_| {
                    let begun = (0..1_000).filter(|_| random.random::<f64>() < bursts / 1_000.0);
                    let begun = begun.count();
                    (0..begun)
                        .map(|_| random.random_range(1..=longest))
                        .sum::<u64>()
                })
                .map(|late| (late, 1_000))
                .collect();
            let (low, high) = ends(&rounds);
            (low..=high).contains(&truth)
        });
        held.count() as f64 / 1_000.0
    }

    /// Ten rounds hold the truth about as often as they say. Of two or three Student's t is so large that the interval is wide and
    /// holds it more often: they promise nothing that they do not know.
    #[test]
    fn the_interval_holds_the_truth_where_jobs_are_late_in_bursts() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(17);
        for (rounds, holds) in [(2, 0.99..=1.0), (3, 0.955..=1.0), (10, 0.93..=0.99)] {
            for (longest, bursts) in [(1_u64, 5.0), (1, 50.0), (10, 5.0), (30, 2.0)] {
                let share = held(&mut random, rounds, longest, bursts);
                assert!(
                    holds.contains(&share),
                    "{rounds} {longest} {bursts}: {share}"
                );
            }
        }
    }

    /// A run that holds a burst or two, or none, cannot tell how often they come: the figures are those of the documentation.
    #[test]
    fn bursts_that_are_rare_in_a_run_are_told_too_small() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(18);
        for (rounds, holds) in [(5, 0.70..=0.80), (10, 0.80..=0.90), (20, 0.85..=0.95)] {
            let share = held(&mut random, rounds, 30, 0.3);
            assert!(holds.contains(&share), "{rounds}: {share}");
        }
    }
}
