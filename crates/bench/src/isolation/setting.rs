//! The parts of the study, and all trials' common setting.

use serde::{Deserialize, Serialize};

use crate::held::Spot;

model::choice! {
    /// A part of the study.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Part {
        /// Two cells, one of which overruns.
        Contest = "contest",
        /// Cells that spin side by side, each in its budget.
        Received = "received",
    }
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        (Part::ALL.into_iter())
            .find(|part| part.name() == text)
            .ok_or_else(|| {
                format!("`isolation` has no part `{text}`; its parts are contest and received")
            })
    }
}

/// Common setting of all trials.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Where both cells run.
    pub spot: Spot,
    pub tick_ns: u64,
    pub overrun_permille: u32,
    pub contest_ns: i64,
    pub received_ns: i64,
    /// Free for real-time groups, us in every second.
    pub free_us: u64,
}
