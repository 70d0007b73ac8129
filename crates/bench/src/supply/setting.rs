//! Common setting of all trials.

use super::stretches::Stretches;
use crate::held::Spot;

/// Common setting of all trials.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub spot: Spot,
    /// That share a budget, the measured one among them.
    pub threads: u32,
    pub stretches: Stretches,
}
