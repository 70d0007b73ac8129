//! The summary of one set of samples.

use crate::moments;
use crate::{Binned, DEFAULT_CONFIDENCE, Quantile, Sorted};
use serde::{Deserialize, Serialize};

/// The quantiles every summary holds, ascending.
pub const DEFAULT_PROBABILITIES: [f64; 8] = [0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// The description of one set of samples, in nanoseconds.
///
/// Mean and deviation are here because readers expect them; latencies have long tails, so judge by the quantiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of samples, at least 1.
    pub count: u64,
    /// The arithmetic mean in nanoseconds.
    pub mean_ns: f64,
    /// The standard deviation in nanoseconds (divisor n - 1); `None` for one sample.
    pub sd_ns: Option<f64>,
    /// The smallest sample in nanoseconds.
    pub min_ns: i64,
    /// The largest sample in nanoseconds: a lower bound of the worst case, never an estimate of it.
    pub max_ns: i64,
    /// The median in nanoseconds, an observed sample (see [`Sorted::median_ns`]); given even where the sample is too
    /// small for the interval that the entry in `quantiles` carries.
    pub median_ns: i64,
    /// The quantiles of [`DEFAULT_PROBABILITIES`] with their intervals at [`DEFAULT_CONFIDENCE`].
    pub quantiles: Vec<Quantile>,
    /// Standard deviation over mean, without unit; `None` without a deviation or unless the mean is positive.
    pub coefficient_of_variation: Option<f64>,
    /// p95 over median, without unit; `None` unless p95 is bounded by enough samples and the median is positive.
    pub tail_ratio_p95: Option<f64>,
    /// p99 over median, without unit; `None` unless p99 is bounded by enough samples and the median is positive.
    pub tail_ratio_p99: Option<f64>,
}

impl Summary {
    /// Describes the samples; `None` when there are none.
    pub fn of(sorted: &Sorted) -> Option<Self> {
        let samples = sorted.as_slice();
        let (&min_ns, &max_ns) = (samples.first()?, samples.last()?);
        let mean_ns = moments::mean(samples)?;
        let sd_ns = moments::standard_deviation(samples);
        let mut summary = Self {
            count: samples.len() as u64,
            mean_ns,
            sd_ns,
            min_ns,
            max_ns,
            median_ns: sorted.median_ns()?,
            quantiles: DEFAULT_PROBABILITIES
                .iter()
                .filter_map(|&probability| Quantile::of(sorted, probability, DEFAULT_CONFIDENCE))
                .collect(),
            coefficient_of_variation: sd_ns.filter(|_| mean_ns > 0.0).map(|sd| sd / mean_ns),
            tail_ratio_p95: None,
            tail_ratio_p99: None,
        };
        summary.tail_ratio_p95 = summary.tail_ratio(0.95);
        summary.tail_ratio_p99 = summary.tail_ratio(0.99);
        Some(summary)
    }

    /// Describes binned samples, of which mean and standard deviation in ns are known; `None` when there are none.
    ///
    /// Median and quantiles are upper ends of bins, see [`Quantile::of_binned`].
    pub fn of_binned(binned: &Binned, mean_ns: f64, sd_ns: Option<f64>) -> Option<Self> {
        let (min_ns, max_ns) = (binned.min_ns()?, binned.max_ns()?);
        let mut summary = Self {
            count: binned.len(),
            mean_ns,
            sd_ns,
            min_ns,
            max_ns,
            median_ns: binned.nearest_rank(0.5)?,
            quantiles: DEFAULT_PROBABILITIES
                .iter()
                .filter_map(|&probability| {
                    Quantile::of_binned(binned, probability, DEFAULT_CONFIDENCE)
                })
                .collect(),
            coefficient_of_variation: sd_ns.filter(|_| mean_ns > 0.0).map(|sd| sd / mean_ns),
            tail_ratio_p95: None,
            tail_ratio_p99: None,
        };
        summary.tail_ratio_p95 = summary.tail_ratio(0.95);
        summary.tail_ratio_p99 = summary.tail_ratio(0.99);
        Some(summary)
    }

    /// The entry for this probability (0.99 for p99), if the summary holds one.
    pub fn quantile(&self, probability: f64) -> Option<&Quantile> {
        self.quantiles
            .iter()
            .find(|quantile| (quantile.probability - probability).abs() < 1e-9)
    }

    fn tail_ratio(&self, probability: f64) -> Option<f64> {
        let value = self.quantile(probability)?.value_ns?;
        (self.median_ns > 0).then(|| value as f64 / self.median_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(samples: impl IntoIterator<Item = i64>) -> Summary {
        Summary::of(&Sorted::new(samples.into_iter().collect())).unwrap()
    }

    /// 1..=1000: mean 500.5, sample variance n(n+1)/12.
    #[test]
    fn a_ramp_by_hand() {
        let summary = summary((1..=1000).rev());
        assert_eq!(
            (
                summary.count,
                summary.min_ns,
                summary.max_ns,
                summary.median_ns
            ),
            (1000, 1, 1000, 500)
        );
        assert_eq!(summary.mean_ns, 500.5);
        let sd = (1000.0 * 1001.0 / 12.0_f64).sqrt();
        assert!((summary.sd_ns.unwrap() - sd).abs() < 1e-9);
        assert!((summary.coefficient_of_variation.unwrap() - sd / 500.5).abs() < 1e-12);
        assert_eq!(summary.tail_ratio_p95, Some(1.9));
        assert_eq!(summary.tail_ratio_p99, Some(1.98));
        assert_eq!(summary.quantile(0.99).unwrap().value_ns, Some(990));
        assert_eq!(summary.quantile(0.999).unwrap().value_ns, None);
        assert_eq!(summary.quantile(0.999).unwrap().needed_count, 2_995);
        assert_eq!(summary.quantile(0.42), None);
    }

    #[test]
    fn one_sample_has_a_median_and_nothing_that_needs_more() {
        let summary = summary([-7]);
        assert_eq!(
            (summary.min_ns, summary.median_ns, summary.max_ns),
            (-7, -7, -7)
        );
        assert_eq!(
            (summary.sd_ns, summary.coefficient_of_variation),
            (None, None)
        );
        assert!(
            summary
                .quantiles
                .iter()
                .all(|quantile| quantile.value_ns.is_none())
        );
        assert_eq!(summary.quantiles.len(), DEFAULT_PROBABILITIES.len());
    }

    #[test]
    fn ratios_to_what_is_not_positive_are_undefined() {
        let summary = summary([0; 400]);
        assert_eq!(
            (summary.tail_ratio_p95, summary.tail_ratio_p99),
            (None, None)
        );
        assert_eq!(summary.coefficient_of_variation, None);
        assert_eq!(summary.sd_ns, Some(0.0));
        assert_eq!(Summary::of(&Sorted::default()), None);
    }

    #[test]
    fn the_record_names_its_units_and_reads_back() {
        let summary = summary(1..=400);
        let text = serde_json::to_string(&summary).unwrap();
        for key in [
            "\"mean_ns\"",
            "\"sd_ns\"",
            "\"median_ns\"",
            "\"value_ns\"",
            "\"needed_count\":2995",
        ] {
            assert!(text.contains(key), "{key} in {text}");
        }
        let back: Summary = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (back.count, back.quantiles.len()),
            (summary.count, summary.quantiles.len())
        );
        assert_eq!(back.quantile(0.99), summary.quantile(0.99));
    }
}
