//! The loads of each trial, and how hard they worked.

use super::source::Source;
use record::summary::{AchievedSummary, LoadSummary};
use record::trial::{LoadRecord, TrialRecord};

/// One entry for each load of each trial, rounds together.
pub(super) fn study(source: &Source) -> Vec<LoadSummary> {
    let mut loads = Vec::new();
    for trial in &source.plan.trials {
        let records = source.records(&trial.name);
        for plan in &trial.loads {
            let of_rounds: Vec<(&TrialRecord, &LoadRecord)> = records
                .iter()
                .flat_map(|record| record.loads.iter().map(move |load| (*record, load)))
                .filter(|(_, load)| load.name == plan.name)
                .collect();
            loads.extend(load(&of_rounds));
        }
    }
    loads
}

fn load(of_rounds: &[(&TrialRecord, &LoadRecord)]) -> Option<LoadSummary> {
    let (trial, first) = of_rounds.first()?;
    let mut achieved: Vec<AchievedSummary> = Vec::new();
    for (record, load) in of_rounds {
        for one in &load.achieved {
            let known = (achieved.iter_mut())
                .find(|known| known.quantity == one.quantity && known.unit == one.unit);
            let entry = match known {
                Some(known) => known,
                None => {
                    achieved.push(AchievedSummary {
                        quantity: one.quantity.clone(),
                        unit: one.unit.clone(),
                        rounds: Vec::new(),
                        values: Vec::new(),
                    });
                    achieved.last_mut()?
                }
            };
            entry.rounds.push(record.round);
            entry.values.push(one.value);
        }
    }
    Some(LoadSummary {
        trial: trial.name.clone(),
        name: first.name.clone(),
        kind: first.kind,
        form: first.form.clone(),
        place: first.place.clone(),
        cpus: first.cpus.clone(),
        command: first.command.clone(),
        rounds: of_rounds.len() as u32,
        failed: of_rounds
            .iter()
            .filter(|(_, load)| load.failure.is_some())
            .count() as u32,
        missed_seconds: (of_rounds.iter())
            .map(|(_, load)| load.missed_seconds)
            .fold(None, |sum, seconds| match (sum, seconds) {
                (None, seconds) => seconds,
                (sum, None) => sum,
                (Some(sum), Some(seconds)) => Some(sum + seconds),
            }),
        achieved,
    })
}
