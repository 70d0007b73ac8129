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

/// Conducts a study: `record` is what it keeps, as it is before the first trial, `set_up` makes what all trials need, and `measure` is all
/// that is done with it.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub(crate) fn conduct<D: Document, S>(
    opening: Opening<'_>,
    record: D,
    settings: &Settings,
    progress: &mut dyn Progress,
    set_up: impl FnOnce(&mut Study<'_, D>) -> Result<S, BenchError>,
    measure: impl FnOnce(&mut S, &mut Study<'_, D>) -> Result<(), BenchError>,
) -> Finished {
    let session = Session::open(opening, settings, |run| run.write(&record), progress)
        .map_err(|error| (None, error))?;
    go(session, record, progress, set_up, measure)
}

fn go<D: Document, S>(
    session: Session,
    record: D,
    progress: &mut dyn Progress,
    set_up: impl FnOnce(&mut Study<'_, D>) -> Result<S, BenchError>,
    measure: impl FnOnce(&mut S, &mut Study<'_, D>) -> Result<(), BenchError>,
) -> Finished {
    let mut study = Study {
        session,
        record,
        progress,
        left: TimeLeft::new(0),
        number: 0,
    };
    let mut stage = None;
    let result = set_up(&mut study).and_then(|made| measure(stage.insert(made), &mut study));
    let Study {
        session, record, ..
    } = study;
    let finished = session.close(result, |run| run.write(&record));
    // By its place others know that the run of a coordinator that was killed does not say yet how it ended.
    drop(stage);
    finished
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
    use std::path::PathBuf;

    use record::Kind;
    use record::run::{Manifest, Run, Status};
    use record::series::SeriesRecord;

    use super::super::{Going, Interrupt};
    use super::*;

    struct Silent;

    impl Progress for Silent {
        fn began(&mut self, _: &Run, _: u32) {}
        fn trial(&mut self, _: u32, _: u32, _: &str, _: i64) {}
        fn going(&mut self, _: &Going) {}
        fn note(&mut self, _: &str) {}
    }

    /// What is on record of a run when this goes.
    struct Stage<'a>(PathBuf, &'a mut Option<Status>);

    impl Drop for Stage<'_> {
        fn drop(&mut self) {
            let manifest = Run::open(&self.0).unwrap().read::<Manifest>();
            *self.1 = Some(manifest.unwrap().status);
        }
    }

    #[test]
    fn what_others_find_a_run_by_goes_once_its_end_is_on_record() {
        let ends = [
            Ok(()),
            Err(BenchError::Interrupted),
            Err(BenchError::Failed("it failed".to_owned())),
        ];
        let told = ends.map(|end| {
            let out = tempfile::tempdir().unwrap();
            let settings = Settings {
                out: out.path().to_owned(),
                version: "0".to_owned(),
            };
            let opening = Opening {
                kind: Kind::Series,
                name: "study",
                trials: 1,
                requirements: &[],
                not_measured: &[],
                engines: None,
            };
            let record = SeriesRecord {
                schema: SeriesRecord::SCHEMA,
                scenario: String::new(),
                question: String::new(),
                conditions: Vec::new(),
                rounds_planned: 1,
                baseline_subject: None,
                series: Vec::new(),
                not_measured: Vec::new(),
            };
            let interrupt = Interrupt::listen().unwrap();
            let begin = |run: &Run| run.write(&record);
            let session = Session::begin(interrupt, opening, &settings, begin, &mut Silent);
            let mut status = None;
            let _ = go(
                session.unwrap(),
                record.clone(),
                &mut Silent,
                |study| Ok(Stage(study.session.run.dir().to_owned(), &mut status)),
                |_, _| end,
            );
            status.unwrap()
        });
        let all = [Status::Complete, Status::Interrupted, Status::Failed];
        assert_eq!(told, all);
    }

    #[test]
    fn each_round_begins_with_the_next() {
        let all: Vec<_> = in_turn(3, 2).collect();
        assert_eq!(all, [(1, 0), (1, 1), (2, 1), (2, 0), (3, 0), (3, 1)]);
        assert_eq!(in_turn(3, 0).count(), 0);
    }
}
