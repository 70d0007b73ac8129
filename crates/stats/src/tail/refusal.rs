//! Why no curve is given.

use serde::{Deserialize, Serialize};

/// One reason for which the tail of these jobs cannot be extrapolated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// There is too little to fit.
    #[error("{jobs} jobs are too few: a fit needs {needed}")]
    FewJobs {
        /// Jobs measured.
        jobs: u64,
        /// Jobs needed.
        needed: u64,
    },
    /// Jobs ran and were not recorded.
    #[error("{lost} jobs were lost from the record, and the longest may be among them")]
    Lost {
        /// Jobs lost.
        lost: u64,
    },
    /// The clock is too coarse, or the times are all alike.
    #[error("the largest jobs took only {distinct} different times, and a fit needs {needed}")]
    FewDistinct {
        /// Distinct values among the largest jobs.
        distinct: u64,
        /// Distinct values needed.
        needed: u64,
    },
    /// The clock's step hides the tail.
    #[error(
        "the values come in steps of {step_ns:.0} ns, too coarse for a tail with a scale of {scale_ns:.0} ns"
    )]
    Coarse {
        /// The clock's step in ns.
        step_ns: f64,
        /// The tail's scale in ns.
        scale_ns: f64,
    },
    /// Rounds too short for blocks.
    #[error(
        "the rounds hold only {blocks} whole blocks of {block_jobs} jobs, and the tests need {needed}"
    )]
    FewBlocks {
        /// Blocks there are.
        blocks: u64,
        /// Jobs in each.
        block_jobs: u64,
        /// Blocks needed.
        needed: u64,
    },
    /// Spikes come periodically.
    #[error("the spikes are periodic, so long jobs are not independent events")]
    Periodic,
    /// Two states alternate.
    #[serde(rename = "regimes")]
    #[error("two states alternate, so jobs do not share one distribution")]
    OwnStates,
    /// Block maxima are correlated.
    #[error("block maxima depend on those before them (Ljung-Box on ranks, p {})", shown(*p_value))]
    Dependent {
        /// Of the test.
        p_value: f64,
    },
    /// The first half differs from the second.
    #[error(
        "block maxima of the first half and of the second do not share one distribution (Kolmogorov-Smirnov, p {})", shown(*p_value))]
    Drift {
        /// Of the test.
        p_value: f64,
    },
    /// Rounds differ.
    #[error("block maxima differ from round to round (Kruskal-Wallis, p {})", shown(*p_value))]
    RoundsDiffer {
        /// Of the test.
        p_value: f64,
    },
    /// Block maxima follow no extreme value law.
    #[error(
        "block maxima follow no generalised extreme value law (Anderson-Darling, p = {p_value:.3} at best)"
    )]
    NoExtremeLaw {
        /// The best of the tests.
        p_value: f64,
    },
    /// The excesses follow no Pareto law.
    #[error(
        "above none of {tried} thresholds does the tail follow a generalised Pareto law that \
         agrees with those above (Anderson-Darling, p = {best_p_value:.3} at best)"
    )]
    NoThreshold {
        /// Thresholds tried.
        tried: u64,
        /// The best of the tests.
        best_p_value: f64,
    },
    /// The tail has no variance.
    #[error(
        "the tail is too heavy to extrapolate: its shape is {shape:.2}, and from 0.5 on it has no variance"
    )]
    TooHeavy {
        /// Shape of the Pareto law.
        shape: f64,
    },
}

/// A p-value as `= 0.0042`, or `< 0.0001` where the digits would all be 0.
fn shown(p_value: f64) -> String {
    if p_value < 0.0001 {
        "< 0.0001".to_owned()
    } else {
        format!("= {p_value:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_p_values_are_not_shown_as_nothing() {
        let text = |p_value| Refusal::Dependent { p_value }.to_string();
        assert!(text(1e-30).ends_with("(Ljung-Box on ranks, p < 0.0001)"));
        assert!(text(0.0042).ends_with("(Ljung-Box on ranks, p = 0.0042)"));
    }
}
