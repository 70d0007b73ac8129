//! Samples in, summaries, confidence and comparisons out.
//!
//! Pure functions on signed 64-bit nanoseconds: no files, no clocks, no global random state (a bootstrap takes its
//! seed from the caller). Here is decided which statements recorded samples support. Elsewhere: measuring them, storing
//! them, drawing them, or judging them against a threshold.
//!
//! Three promises hold everywhere:
//! - **Nothing is invented.** A quantile that the sample is too small to bound is absent and says how many samples
//!   it needs; a ratio over one round has no interval.
//! - **No number is NaN or infinite.** An undefined number is an `Option` that is `None`.
//! - **No input panics**, of any size, order, sign or ties.
//!
//! ```
//! use timecell_stats::{CompareOptions, Sorted, Summary, Verdict, compare};
//!
//! let summary = Summary::of(&Sorted::new((1..=400).collect())).unwrap();
//! assert_eq!(summary.median_ns, 200);
//! assert_eq!(summary.quantile(0.999).unwrap().value_ns, None); // 400 samples are too few ...
//! assert_eq!(summary.quantile(0.999).unwrap().needed_count, 2_995); // ... and this many would do.
//!
//! let bare = [vec![1_000; 50], vec![1_010; 50], vec![990; 50]];
//! let container = [vec![1_200; 50], vec![1_215; 50], vec![1_185; 50]];
//! let comparison = compare(&bare, &container, &CompareOptions::default()).unwrap();
//! assert_eq!(comparison.ratio_of_medians.verdict, Verdict::Larger);
//! ```

mod autocorrelation;
mod binned;
mod binomial;
mod box_plot;
mod ccdf;
mod closed;
mod compare;
mod correlation;
mod fairness;
mod holm;
mod interleaved;
mod knee;
mod moments;
mod quantile;
mod rank_sum;
mod series;
mod share;
mod sign;
mod skew;
mod sorted;
mod summary;
mod tail;

pub use autocorrelation::autocorrelation;
pub use binned::{Bin, Binned};
pub use box_plot::BoxPlot;
pub use ccdf::{CCDF_TAIL, ccdf, ccdf_binned};
pub use closed::{Closed, Predicted};
pub use compare::{
    CompareError, CompareOptions, Comparison, Ratio, RoundQuantiles, Side, Verdict, compare,
    compare_quantiles,
};
pub use correlation::{pearson, spearman};
pub use fairness::{BatchMean, Even, Fairness, Spread, gini, lorenz};
pub use holm::holm;
pub use interleaved::{
    Foreseen, PLANTED_FACTOR, Planned, States, Turn, WithinStates, compare_turns,
    confidence_of_each_look, foreseen_half_width,
};
pub use knee::{Growth, Knee};
pub use quantile::{DEFAULT_CONFIDENCE, Quantile, needed_count};
pub use rank_sum::larger;
pub use series::{SeriesBucket, thin_series};
pub use share::Share;
pub use sign::{share_at_most, sign_test};
pub use skew::skew_ns;
pub use sorted::{Sorted, median_of};
pub use summary::{DEFAULT_PROBABILITIES, Summary};
pub use tail::{
    Blocks, CurvePoint, KeptInterval, KeptRound, OwnStates, Pareto, Refusal, Spikes, State,
    TAIL_JOBS, Tail, TailRound,
};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
