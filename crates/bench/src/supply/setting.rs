//! What all trials have in common.

use super::stretches::Stretches;
use crate::held::Spot;

/// What all trials have in common.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub spot: Spot,
    /// That share a budget, the measured one among them.
    pub threads: u32,
    pub stretches: Stretches,
}
