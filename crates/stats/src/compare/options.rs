//! How a comparison is made.

use super::CompareError;
use crate::DEFAULT_CONFIDENCE;
use serde::{Deserialize, Serialize};

/// How a comparison is made; the default is 2,000 resamples at 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareOptions {
    /// The number of bootstrap resamples, at least [`CompareOptions::MIN_RESAMPLES`].
    pub resamples: u32,
    /// The seed of the resampling: the same samples, options and version give the same result.
    pub seed: u64,
    /// The probability with which intervals should enclose the true ratio, strictly between 0 and 1.
    pub confidence: f64,
}

impl CompareOptions {
    /// The fewest resamples from which a standard error is taken.
    pub const MIN_RESAMPLES: u32 = 100;

    pub(super) fn check(&self) -> Result<(), CompareError> {
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(CompareError::Confidence);
        }
        if self.resamples < Self::MIN_RESAMPLES {
            return Err(CompareError::Resamples {
                resamples: self.resamples,
            });
        }
        Ok(())
    }
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            resamples: 2_000,
            seed: 1,
            confidence: DEFAULT_CONFIDENCE,
        }
    }
}
