//! Failures, as sentences. A run with one of them has failed.

use super::source::{Source, is_good};
use record::summary::CellSummary;
use record::trial::TrialRecord;
use text::words::{count, plural};

/// Failed trials and cells, unexplained losses, and classes other than the requested ones.
///
/// `ended` is why the run ended early. `damage` is the record's loss since ([`record::run::Run::damage`]).
pub(super) fn study(
    source: &Source,
    cells: &[CellSummary],
    ended: Option<&str>,
    damage: &[String],
) -> Vec<String> {
    let mut sentences: Vec<String> = ended
        .map(|why| format!("the run: {why}"))
        .into_iter()
        .collect();
    sentences.extend(damage.iter().cloned());
    let told = |number: u32| {
        damage
            .iter()
            .any(|said| said.starts_with(&format!("trial {number} has")))
    };
    for number in source.cut_off.iter().filter(|number| !told(**number)) {
        sentences.push(format!(
            "trial {number} was cut off while its record was written; it is left out of the figures"
        ));
    }
    for record in &source.trials {
        trial(source, record, &mut sentences);
    }
    sentences.extend(other_classes(source));
    for cell in cells.iter().filter(|cell| cell.lost > 0) {
        sentences.push(format!(
            "{}: lost {}: the reader was not scheduled in time",
            cell.label,
            plural(cell.lost, "sample"),
        ));
    }
    for cell in cells.iter().filter(|cell| cell.unexplained > 0) {
        sentences.push(format!(
            "{}: {} of {} neither ran nor were counted as skipped",
            cell.label,
            count(cell.unexplained),
            plural(cell.planned, "activation"),
        ));
    }
    sentences
}

fn trial(source: &Source, record: &TrialRecord, sentences: &mut Vec<String>) {
    let name = format!(
        "trial {} ({}, round {})",
        record.number, record.name, record.round
    );
    if !source.plan.trials.iter().any(|t| t.name == record.name) {
        sentences.push(format!(
            "{name} does not belong to the experiment; it is left out of the figures"
        ));
        return;
    }
    let before = sentences.len();
    if let Some(failure) = &record.failure {
        sentences.push(format!("{name}: {failure}"));
    }
    for cell in &record.cells {
        if let Some(failure) = &cell.failure {
            // A trial often fails for the same reason as one of its cells: that is said once.
            if record
                .failure
                .as_deref()
                .is_none_or(|of_trial| !of_trial.contains(failure.as_str()))
            {
                sentences.push(format!("{name}: cell {}: {failure}", cell.id));
            }
        }
    }
    if !is_good(record) {
        let left_out = "counted, but left out of the figures";
        match sentences.get_mut(before..).and_then(<[String]>::last_mut) {
            Some(why) => *why += &format!("; it is {left_out}"),
            None => sentences.push(format!("{name} is {left_out}")),
        }
    }
}

/// Cells that ran in a class other than the requested one, each once with its number of rounds.
fn other_classes(source: &Source) -> Vec<String> {
    let mut seen: Vec<([&str; 4], u64)> = Vec::new();
    for record in &source.trials {
        for cell in &record.cells {
            let Some(got) = cell.class_got.as_deref() else {
                continue;
            };
            let key = [&record.name, &cell.id, got, &cell.class_wanted];
            if got == cell.class_wanted {
                continue;
            }
            match seen.iter_mut().find(|(known, _)| *known == key) {
                Some((_, rounds)) => *rounds += 1,
                None => seen.push((key, 1)),
            }
        }
    }
    seen.into_iter()
        .map(|([trial, id, got, wanted], rounds)| {
            let rounds = plural(rounds, "round");
            format!("{trial}: cell {id} ran in class {got} in {rounds}, but {wanted} was requested")
        })
        .collect()
}
