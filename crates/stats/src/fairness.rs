//! How alike cells are that were given the same work: coefficient of variation, Lorenz curve, Gini index, and
//! whether chance alone explains their differences.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// How far the means of several cells lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Cells.
    pub cells: u64,
    /// Mean of the cells' means, in their unit.
    pub mean: f64,
    /// Standard deviation of the cells' means (divisor n - 1) over their mean; `None` for one cell or a mean of 0.
    pub coefficient_of_variation: Option<f64>,
    /// Gini index, 0 (all alike) to 1; `None` where a value is negative or all are 0. See [`gini`].
    pub gini: Option<f64>,
}

impl Spread {
    /// Of the cells' means, in any order; `None` without any. Values that are not finite are left out.
    pub fn of(means: &[f64]) -> Option<Spread> {
        let means: Vec<f64> = means.iter().copied().filter(|m| m.is_finite()).collect();
        let mean = average(&means)?;
        let coefficient = variance(&means, mean).map(|v| v.sqrt() / mean.abs());
        Some(Spread {
            cells: means.len() as u64,
            mean,
            coefficient_of_variation: coefficient.filter(|c| c.is_finite()),
            gini: gini(&means),
        })
    }
}

/// The Lorenz curve (M. O. Lorenz, "Methods of measuring the concentration of wealth", 1905): the share of the sum
/// that the least `k` of `n` values have together, as points (k / n, share), ascending, from (0, 0) to (1, 1).
///
/// At most `most` points behind the first, evenly spread. `None` where a value is negative or not finite, or all are 0.
pub fn lorenz(values: &[f64], most: usize) -> Option<Vec<(f64, f64)>> {
    let (sorted, sum) = shares(values)?;
    let count = sorted.len();
    let most = most.clamp(1, count);
    let mut points = vec![(0.0, 0.0)];
    let (mut below, mut next) = (0.0, 1);
    for (place, value) in sorted.iter().enumerate() {
        below += value;
        // The point nearest to each of `most` equal steps; the last is always the end.
        if (place + 1) * most >= next * count {
            let x = (place + 1) as f64 / count as f64;
            points.push((x, (below / sum).min(1.0)));
            next = (place + 1) * most / count + 1;
        }
    }
    if let Some(last) = points.last_mut() {
        *last = (1.0, 1.0);
    }
    Some(points)
}

/// The Gini index: twice the area between the Lorenz curve and the diagonal; the mean absolute difference of two
/// values over twice their mean. 0 where all are alike, (n - 1) / n where one has everything.
///
/// `None` where a value is negative or not finite, or all are 0.
pub fn gini(values: &[f64]) -> Option<f64> {
    let (sorted, sum) = shares(values)?;
    let count = sorted.len() as f64;
    let ranked: f64 = sorted
        .iter()
        .enumerate()
        .map(|(place, value)| (2.0 * (place as f64 + 1.0) - count - 1.0) * (value / sum))
        .sum();
    Some((ranked / count).clamp(0.0, 1.0))
}

/// Ascending, with their sum.
fn shares(values: &[f64]) -> Option<(Vec<f64>, f64)> {
    if values.iter().any(|v| !v.is_finite() || *v < 0.0) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sum: f64 = sorted.iter().sum();
    (sum > 0.0 && sum.is_finite()).then_some((sorted, sum))
}

/// The mean of a cell's jobs, and how uncertain it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchMean {
    /// Mean of the jobs, ns.
    pub mean_ns: f64,
    /// Standard error of that mean from batches of neighbouring jobs, ns.
    pub error_ns: f64,
}

/// Batches that [`BatchMean::of`] makes.
const BATCHES: usize = 16;
/// Jobs that a batch holds at least.
const JOBS_OF_BATCH: usize = 4;

impl BatchMean {
    /// Of the jobs in the order they ran; `None` for fewer than 64.
    ///
    /// Neighbouring jobs resemble each other, so that sd / sqrt(n) would claim too much. The means of 16 batches of
    /// neighbours are nearly independent, and their deviation gives the error (Law, "Simulation Modeling and Analysis",
    /// 5th ed., 2015, section 9.5.3: non-overlapping batch means). Jobs beyond 16 equal batches are in the mean only.
    pub fn of(samples_ns: &[i64]) -> Option<BatchMean> {
        let length = samples_ns.len() / BATCHES;
        if length < JOBS_OF_BATCH {
            return None;
        }
        let mean = |samples: &[i64]| crate::moments::mean(samples);
        let batches: Option<Vec<f64>> = samples_ns
            .chunks_exact(length)
            .take(BATCHES)
            .map(mean)
            .collect();
        let batches = batches?;
        let middle = average(&batches)?;
        Some(BatchMean {
            mean_ns: mean(samples_ns)?,
            error_ns: (variance(&batches, middle)? / BATCHES as f64).sqrt(),
        })
    }
}

/// Whether cells that share a cpu were treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Coefficient of variation between cells of the same group, pooled over groups.
    pub within: f64,
    /// The spread by chance alone: the pooled error of a cell's mean over the mean.
    pub chance: f64,
    /// The spread without that by chance: sqrt(within^2 - chance^2), 0 where chance explains all.
    pub beyond_chance: f64,
    /// Probability of a spread as wide or wider if all cells of a group were alike (F test of one-way analysis of
    /// variance over batch means).
    pub p_value: f64,
    /// Whether the cells are even, by these figures.
    pub verdict: Even,
}

/// How even cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Even {
    /// Chance explains the differences (p >= 0.01).
    Even,
    /// There are differences, of less than [`Fairness::MATERIAL`] beyond chance.
    Nearly,
    /// Cells of a group differ by more.
    Uneven,
}

impl Fairness {
    /// Differences beyond chance from which cells are called uneven: 5 % of the mean. The zcu102 thesis calls 1.5 to
    /// 3.2 % fair.
    pub const MATERIAL: f64 = 0.05;

    /// Of groups of cells, each group being the cells that share a cpu: only those can expect the same. `None` where
    /// no group has two cells or nothing varies.
    pub fn of(groups: &[Vec<BatchMean>]) -> Option<Fairness> {
        let cells = groups.iter().flatten();
        let (mut between, mut freedom, mut errors, mut count) = (0.0, 0.0, 0.0, 0.0);
        for group in groups.iter().filter(|group| group.len() > 1) {
            let means: Vec<f64> = group.iter().map(|cell| cell.mean_ns).collect();
            let mean = average(&means)?;
            if mean <= 0.0 {
                return None;
            }
            // Relative to the group: cells of a fuller cpu are slower, and that is not unfair.
            between += means.iter().map(|m| (m / mean - 1.0).powi(2)).sum::<f64>();
            freedom += group.len() as f64 - 1.0;
            errors += group
                .iter()
                .map(|cell| (cell.error_ns / mean).powi(2))
                .sum::<f64>();
            count += group.len() as f64;
        }
        if count == 0.0 || !cells.map(|c| c.mean_ns + c.error_ns).all(f64::is_finite) {
            return None;
        }
        let (between, error) = (between / freedom, errors / count);
        let p_value = if error > 0.0 {
            let freedom_of_error = count * (BATCHES as f64 - 1.0);
            let f = FisherSnedecor::new(freedom, freedom_of_error).ok()?;
            f.sf(between / error).clamp(0.0, 1.0)
        } else if between > 0.0 {
            0.0
        } else {
            1.0
        };
        let beyond_chance = (between - error).max(0.0).sqrt();
        let verdict = if p_value >= 0.01 {
            Even::Even
        } else if beyond_chance < Self::MATERIAL {
            Even::Nearly
        } else {
            Even::Uneven
        };
        Some(Fairness {
            within: between.sqrt(),
            chance: error.sqrt(),
            beyond_chance,
            p_value,
            verdict,
        })
    }
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn variance(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    /// 1, 2, 3, 4: mean 2.5, sd sqrt(5/3); mean absolute difference of pairs (with repetition) 20/16 = 1.25, so that
    /// G = 1.25 / 5 = 0.25; the least half has 3 of 10.
    #[test]
    fn four_values_by_hand() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert!((spread.gini.unwrap() - 0.25).abs() < 1e-12);
        let cv = (5.0_f64 / 3.0).sqrt() / 2.5;
        assert!((spread.coefficient_of_variation.unwrap() - cv).abs() < 1e-12);
        let curve = lorenz(&[4.0, 1.0, 3.0, 2.0], 100).unwrap();
        let expected = [(0.0, 0.0), (0.25, 0.1), (0.5, 0.3), (0.75, 0.6), (1.0, 1.0)];
        for (point, by_hand) in curve.iter().zip(expected) {
            assert!((point.0 - by_hand.0).abs() < 1e-12 && (point.1 - by_hand.1).abs() < 1e-12);
        }
        assert_eq!(curve.len(), 5);
    }

    #[test]
    fn one_that_has_everything_and_all_alike() {
        assert!((gini(&[0.0, 0.0, 0.0, 8.0]).unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(gini(&[3.0; 9]).map(|g| g < 1e-12), Some(true));
        assert_eq!(gini(&[0.0, 0.0]), None);
        assert_eq!(gini(&[-1.0, 2.0]), None);
        assert_eq!(lorenz(&[], 10), None);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[5.0]).unwrap().coefficient_of_variation, None);
    }

    #[test]
    fn a_thinned_curve_keeps_its_ends() {
        let values: Vec<f64> = (1..=2_048).map(f64::from).collect();
        let curve = lorenz(&values, 100).unwrap();
        assert_eq!((curve[0], curve[curve.len() - 1]), ((0.0, 0.0), (1.0, 1.0)));
        assert!((90..=101).contains(&curve.len()), "{}", curve.len());
    }

    /// Cells of one distribution are told to be even 99 times of 100; one that is a tenth slower is found.
    #[test]
    fn chance_is_told_from_favour() {
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(7);
        let mut cell = |mean: i64| {
            let jobs: Vec<i64> = (0..640)
                .map(|_| mean + random.random_range(-500..=500))
                .collect();
            BatchMean::of(&jobs).unwrap()
        };
        let mut even = 0;
        for _ in 0..200 {
            let group: Vec<BatchMean> = (0..8).map(|_| cell(10_000)).collect();
            let fairness = Fairness::of(&[group]).unwrap();
            even += u32::from(fairness.verdict == Even::Even);
        }
        assert!(even >= 190, "{even} of 200");
        let mut group: Vec<BatchMean> = (0..8).map(|_| cell(10_000)).collect();
        group[3] = cell(13_000);
        let fairness = Fairness::of(&[group]).unwrap();
        assert_eq!(fairness.verdict, Even::Uneven);
        assert!(
            (0.08..0.13).contains(&fairness.beyond_chance),
            "{fairness:?}"
        );
        let group: Vec<BatchMean> = (0..8).map(|i| cell(10_000 + 50 * i)).collect();
        assert_eq!(Fairness::of(&[group]).unwrap().verdict, Even::Nearly);
    }

    /// Two cells on one cpu and three on the other are not unfair to each other.
    #[test]
    fn a_fuller_cpu_is_not_unfair() {
        let cell = |mean_ns| BatchMean {
            mean_ns,
            error_ns: 10.0,
        };
        let groups = [
            vec![cell(1_000.0), cell(1_001.0)],
            vec![cell(1_500.0), cell(1_499.0), cell(1_501.0)],
        ];
        assert_eq!(Fairness::of(&groups).unwrap().verdict, Even::Even);
        assert_eq!(Fairness::of(&[vec![cell(1.0)], vec![cell(2.0)]]), None);
    }

    /// Jobs that resemble their neighbours have a larger error than sd / sqrt(n).
    #[test]
    fn batches_see_what_neighbours_share() {
        let slow_waves: Vec<i64> = (0..1_600)
            .map(|i| if (i / 100) % 2 == 0 { 0 } else { 1_000 })
            .collect();
        let batch = BatchMean::of(&slow_waves).unwrap();
        assert_eq!(batch.mean_ns, 500.0);
        assert!(batch.error_ns > 5.0 * 500.0 / 40.0, "{batch:?}");
        assert_eq!(BatchMean::of(&slow_waves[..63]), None);
    }

    proptest! {
        #[test]
        fn indices_stay_in_range_and_the_curve_below_the_diagonal(
            values in prop::collection::vec(0.0f64..1e12, 1..300), most in 1usize..400, scale in 1e-3f64..1e3,
        ) {
            if let Some(index) = gini(&values) {
                prop_assert!((0.0..=1.0).contains(&index));
                let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
                prop_assert!((gini(&scaled).unwrap() - index).abs() < 1e-9);
                let curve = lorenz(&values, most).unwrap();
                prop_assert_eq!(curve[0], (0.0, 0.0));
                prop_assert_eq!(curve[curve.len() - 1], (1.0, 1.0));
                prop_assert!(curve.len() <= most + 2);
                for pair in curve.windows(2) {
                    prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1 + 1e-12);
                    prop_assert!(pair[0].1 <= pair[0].0 + 1e-9);
                }
                // The area by trapezoids of the whole curve is the index.
                let whole = lorenz(&values, values.len()).unwrap();
                let area: f64 = whole.windows(2).map(|p| (p[1].0 - p[0].0) * (p[0].1 + p[1].1) / 2.0).sum();
                prop_assert!((1.0 - 2.0 * area - index).abs() < 1e-9);
            }
        }

        #[test]
        fn no_input_panics(values in prop::collection::vec(any::<f64>(), 0..20), samples in prop::collection::vec(any::<i64>(), 0..200)) {
            let _ = (Spread::of(&values), lorenz(&values, 5), BatchMean::of(&samples));
            let group: Vec<BatchMean> = values.iter().map(|&v| BatchMean { mean_ns: v, error_ns: v }).collect();
            if let Some(fairness) = Fairness::of(&[group]) {
                prop_assert!((0.0..=1.0).contains(&fairness.p_value));
            }
        }
    }
}
