//! Types shared by the records of several kinds of run. A kind's folder uses this one, and no other kind's.

mod budget;
pub mod crowd;
mod load;
pub(crate) mod machine;
mod misses;

use serde::{Deserialize, Serialize};

pub use budget::{Budget, Reacted, Share, Times};
pub use load::{Achieved, LoadRecord};
pub use machine::Machine;
pub use misses::Misses;
pub use model::Metric;

/// One condition of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Such as `payload`.
    pub name: String,
    /// One sentence without a full stop.
    pub text: String,
}

impl Condition {
    /// The condition of this name.
    pub fn new(name: &str, text: impl Into<String>) -> Condition {
        Condition {
            name: name.to_owned(),
            text: text.into(),
        }
    }
}

/// A trial that did not take place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// Trial's name.
    pub trial: String,
    /// One sentence.
    pub reason: String,
    /// How to get it.
    #[serde(alias = "mend")]
    pub fix: String,
}
