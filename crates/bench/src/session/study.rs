//! A run that keeps one document beside the raw files of its trials.

use record::Document;

use super::progress::Progress;
use super::time_left::TimeLeft;
use super::{Finished, Opening, Session, Settings};
use crate::BenchError;

/// A study under way.
pub(crate) struct Study<'a, D> {
    pub session: Session,
    pub record: D,
    pub progress: &'a mut dyn Progress,
    pub left: TimeLeft,
    /// The last number given to a trial.
    pub number: u32,
}

/// One trial before it takes place.
pub(crate) struct Step {
    pub round: u32,
    pub name: String,
    /// How long it should take, ns.
    pub expected_ns: i64,
}

/// Conducts a study: `record` is what it keeps, as it is before the first trial, and `measure` all that is done.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub(crate) fn conduct<D: Document>(
    opening: Opening<'_>,
    record: D,
    settings: &Settings,
    progress: &mut dyn Progress,
    measure: impl FnOnce(&mut Study<'_, D>) -> Result<(), BenchError>,
) -> Finished {
    let session = Session::open(opening, settings, |run| run.write(&record), progress)
        .map_err(|error| (None, error))?;
    let mut study = Study {
        session,
        record,
        progress,
        left: TimeLeft::new(0),
        number: 0,
    };
    let result = measure(&mut study);
    let Study {
        session, record, ..
    } = study;
    session.close(result, |run| run.write(&record))
}

/// What is measured in each round, by its place of `count`: each begins in turn, since what stands before in the round may have an
/// effect.
pub(crate) fn in_turn(rounds: u32, count: usize) -> impl Iterator<Item = (u32, usize)> {
    (1..=rounds).flat_map(move |round| {
        (0..count).map(move |turn| (round, (turn + round as usize - 1) % count))
    })
}

impl<D: Document> Study<'_, D> {
    /// One trial: announced, measured by its number, and put on record by `keep`, which says what failed; but for one that a signal
    /// cut off.
    ///
    /// # Errors
    /// When a signal has come or the record cannot be written.
    pub(crate) fn trial<T>(
        &mut self,
        step: &Step,
        measure: impl FnOnce(&Session, u32) -> T,
        keep: impl FnOnce(&mut D, T) -> Option<String>,
    ) -> Result<(), BenchError> {
        self.number += 1;
        let number = self.number;
        (self.progress).trial(number, step.round, &step.name, self.left.ns());
        let trial = measure(&self.session, number);
        self.session.unless_interrupted()?;
        if let Some(failure) = keep(&mut self.record, trial) {
            (self.progress).note(&format!("trial {number} ({}) failed: {failure}", step.name));
        }
        self.session.manifest.trials_done += 1;
        self.left.past(step.expected_ns);
        self.write()
    }

    /// Puts what is known on record.
    pub(crate) fn write(&self) -> Result<(), BenchError> {
        self.session.run.write(&self.record)?;
        self.session.write_manifest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_the_next() {
        let all: Vec<_> = in_turn(3, 2).collect();
        assert_eq!(all, [(1, 0), (1, 1), (2, 1), (2, 0), (3, 0), (3, 1)]);
        assert_eq!(in_turn(3, 0).count(), 0);
    }
}
