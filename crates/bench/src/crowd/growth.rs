//! How far the study of each engine has come: after a count at which too many cells failed, larger ones are not tried.

use std::collections::BTreeMap;

use model::EngineKind;
use record::NotMeasured;
use record::trial::TrialRecord;

use crate::PlannedTrial;
use crate::resume::gave_out;

/// Ended engines: count and reason.
#[derive(Default)]
pub(crate) struct Growth {
    ended: BTreeMap<EngineKind, End>,
}

struct End {
    cells: usize,
    reason: String,
    fix: String,
}

impl Growth {
    /// Takes note of a trial that has taken place.
    pub(crate) fn note(&mut self, record: &TrialRecord) {
        let (Some(crowd), Some(first)) = (&record.crowd, record.cells.first()) else {
            return;
        };
        let guarded = record.cut_off.as_ref().filter(|_| gave_out(record));
        let Some(failure) = record.failure.as_ref().or(guarded) else {
            return;
        };
        let cells = record.cells.len();
        let (what, fix) = match &crowd.gave_out {
            Some(gave_out) => {
                let value = gave_out.value.as_ref();
                let value = value.map_or(String::new(), |value| format!(", {value}"));
                (
                    format!("{} ran out ({}{value})", gave_out.what, gave_out.limit),
                    gave_out.fix.clone(),
                )
            }
            None => (failure.clone(), "see the failed trial".to_owned()),
        };
        let reason = format!("{} ended at {cells} cells: {what}", first.engine);
        self.ended
            .entry(first.engine)
            .or_insert(End { cells, reason, fix });
    }

    /// Why this trial is left out; `None`: it is not.
    pub(crate) fn ended(&self, planned: &PlannedTrial) -> Option<NotMeasured> {
        let (kind, _) = planned.cells.first()?;
        let end = self.ended.get(kind)?;
        (planned.cells.len() > end.cells).then(|| NotMeasured {
            trial: planned.name.clone(),
            reason: end.reason.clone(),
            fix: end.fix.clone(),
        })
    }
}
