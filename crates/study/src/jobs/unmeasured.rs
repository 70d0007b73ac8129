//! Trials that did not take place.

use super::source::Source;
use record::RecordError;
use record::run::{Manifest, Status};
use record::summary::NotMeasured;

/// The trials that the run itself names, those it never reached, and those that were cut off before their end.
pub(crate) fn study(source: &Source, manifest: &Manifest) -> Result<Vec<NotMeasured>, RecordError> {
    let mut list = manifest.not_measured.clone();
    let begun = begun(source)?;
    // A run that is complete cannot be resumed.
    let fix = match manifest.status {
        Status::Complete => "run the experiment again".to_owned(),
        _ => format!("timecell bench --resume {}", source.run.dir().display()),
    };
    for plan in &source.plan.trials {
        let known = list.iter().any(|n| n.trial == plan.name)
            || source.trials.iter().any(|t| t.name == plan.name);
        if !known {
            let reason = match manifest.status {
                _ if begun.contains(&plan.name) => {
                    "it was running when the run ended; what it measured is included once the run is resumed"
                }
                Status::Running => "the run has not reached it, or ended without a trace",
                Status::Interrupted => "the run was interrupted before it",
                Status::Killed => "the run was killed before it",
                Status::Failed => "the run failed before it",
                Status::Complete => "the run holds no record of it",
            };
            list.push(NotMeasured {
                trial: plan.name.clone(),
                reason: reason.to_owned(),
                fix: fix.clone(),
            });
        }
    }
    Ok(list)
}

/// Names of the trials that began but did not end.
fn begun(source: &Source) -> Result<Vec<String>, RecordError> {
    let mut names = Vec::new();
    for number in source.run.begun_trials()? {
        names.extend(source.run.begun_trial(number)?.map(|trial| trial.name));
    }
    Ok(names)
}
