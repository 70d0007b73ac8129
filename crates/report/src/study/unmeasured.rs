//! Trials that did not take place.

use super::source::Source;
use record::run::{Manifest, Status};
use record::summary::NotMeasured;

/// Those that the run itself names, and those it never reached.
pub(crate) fn study(source: &Source, manifest: &Manifest) -> Vec<NotMeasured> {
    let mut list = manifest.not_measured.clone();
    for plan in &source.plan.trials {
        let known = list.iter().any(|n| n.trial == plan.name)
            || source.trials.iter().any(|t| t.name == plan.name);
        if !known {
            let reason = match manifest.status {
                Status::Running => "the run has not reached it, or ended without a word",
                Status::Interrupted => "the run was interrupted before it",
                Status::Killed => "the run was killed before it",
                Status::Failed => "the run failed before it",
                Status::Complete => "the run holds no record of it",
            };
            list.push(NotMeasured {
                trial: plan.name.clone(),
                reason: reason.to_owned(),
                mend: "run the experiment again".to_owned(),
            });
        }
    }
    list
}
