//! A study: a run that keeps one document beside the raw files of its trials.

use std::time::SystemTime;

use record::plan::PlanRecord;
use record::run::{Manifest, Run};
use record::{Document, NotMeasured};
use serde_json::Value;

use super::progress::Progress;
use super::resume::{Reached, check_machine, check_resume, refused};
use super::time_left::TimeLeft;
use super::{Finished, Opening, Session, Settings};
use crate::BenchError;
use crate::utc::utc_of;

/// Advice for a run that was planned otherwise than it would be now.
const OTHERWISE: &str =
    "run the scenario again; what was measured stays, and `timecell report` reads it";

/// A document that grows trial by trial, in the order of the plan.
pub(crate) trait Grows: Document {
    /// Its fields that grow. All others are as they were before the first trial.
    const GROWING: &'static [&'static str];

    /// The number of the last trial that it holds; 0: none.
    fn last_trial(&self) -> u32;

    /// The document as it is compared with that of another plan: without fields that may differ in the same plan.
    fn compared(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A study under way.
pub(crate) struct Study<'a, D> {
    pub session: Session,
    pub record: D,
    pub progress: &'a mut dyn Progress,
    pub left: TimeLeft,
    /// The last number given to a trial.
    pub number: u32,
    /// Trials that were on record when the run was resumed: those of the numbers up to this.
    done: u32,
}

/// One trial before it takes place.
pub(crate) struct Step {
    pub round: u32,
    pub name: String,
    /// How long it should take, ns.
    pub expected_ns: i64,
}

/// Conducts a study: `record` is its document, as it is before the first trial, `set_up` makes all trials' needs, and `measure` is all
/// that is done with it. A run that is resumed goes the same way: the trials that are on record are passed over.
///
/// # Errors
/// Why the run ended, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: measurements until then are on
/// record. A run that cannot be resumed is refused.
pub(crate) fn conduct<D: Grows, S>(
    opening: &Opening<'_>,
    plan: &PlanRecord,
    record: D,
    settings: &Settings,
    progress: &mut dyn Progress,
    set_up: impl FnOnce(&mut Study<'_, D>) -> Result<S, BenchError>,
    measure: impl FnOnce(&mut S, &mut Study<'_, D>) -> Result<(), BenchError>,
) -> Finished {
    let begin = |run: &Run| run.write(plan).and_then(|()| run.write(&record));
    let begun = match &settings.resume {
        None => Session::open(opening, settings, begin, progress).map(|session| (session, record)),
        Some(run) if settings.only_check => {
            let checked = check_resume(run, opening.not_measured)
                .and_then(|()| check_machine(run, settings))
                .and_then(|()| run.manifest().map_err(BenchError::Record))
                .and_then(|manifest| as_planned(run, &manifest, opening, plan, &record));
            return match checked {
                Ok(_) => Ok(run.clone()),
                Err(error) => Err((None, error)),
            };
        }
        Some(run) => {
            let read = |manifest: &Manifest, _: &str| again(run, manifest, opening, plan, &record);
            Session::resume(run, opening, settings, read, progress)
        }
    };
    let (session, record) = begun.map_err(|error| (None, error))?;
    go(session, record, progress, set_up, measure)
}

/// How far a run has come that is resumed by this plan, and its document.
fn again<D: Grows>(
    run: &Run,
    manifest: &Manifest,
    opening: &Opening<'_>,
    plan: &PlanRecord,
    fresh: &D,
) -> Result<(Reached, D), BenchError> {
    let record = as_planned(run, manifest, opening, plan, fresh)?;
    let done = record.last_trial();
    run.forget_raw_after(done)?;
    let written = (run.dir().join(D::FILE).metadata()).and_then(|file| file.modified());
    let reached = Reached {
        done,
        planned: manifest.trials_planned,
        last_record: utc_of(written.unwrap_or(SystemTime::UNIX_EPOCH)),
        cut_off_trial: None,
    };
    Ok((reached, record))
}

/// The document of a run that is resumed by this plan; a run of another plan is refused.
fn as_planned<D: Grows>(
    run: &Run,
    manifest: &Manifest,
    opening: &Opening<'_>,
    plan: &PlanRecord,
    fresh: &D,
) -> Result<D, BenchError> {
    let record: D = run.read()?;
    let differs = (run.read::<PlanRecord>()?.difference(plan))
        .or_else(|| measurable(&manifest.not_measured, opening.not_measured))
        .or_else(|| otherwise(&record, fresh));
    if let Some(difference) = differs {
        let what = format!("the same options give another plan now: {difference}");
        return Err(refused(run, what, OTHERWISE));
    }
    Ok(record)
}

/// A trial that could not be measured when the run began, and can be now: the order would be another.
fn measurable(then: &[NotMeasured], now: &[NotMeasured]) -> Option<String> {
    let known = |name: &str| now.iter().any(|n| n.trial == name);
    let more = then.iter().find(|n| !known(&n.trial))?;
    Some(format!(
        "`{}` could not be measured when the run began, and can be now",
        more.trial
    ))
}

/// The first thing that was planned in another way than now, as a clause.
fn otherwise<D: Grows>(record: &D, fresh: &D) -> Option<String> {
    // Reasons may hold figures of the moment; their trials are compared apart.
    let ignored = |field: &str| {
        ["schema", "question", "not_measured"].contains(&field) || D::GROWING.contains(&field)
    };
    let [then, now] = [record, fresh].map(D::compared);
    let fields = now.as_object()?;
    fields
        .iter()
        .filter(|(field, _)| !ignored(field))
        .find_map(|(field, now)| {
            let (path, then, now) = first_difference(field, &then[field], now)?;
            Some(format!("`{path}` was {then} and is {now}"))
        })
}

/// Where the values of `path` differ first, and the parts that do, in short.
fn first_difference(path: &str, then: &Value, now: &Value) -> Option<(String, String, String)> {
    if then == now {
        return None;
    }
    match (then, now) {
        (Value::Array(then), Value::Array(now)) => {
            let pairs = then.iter().zip(now).zip(1..);
            let found = pairs.into_iter().find_map(|((then, now), place)| {
                let path = match now["name"].as_str() {
                    Some(name) => format!("{path}.{name}"),
                    None => format!("{path}.{place}"),
                };
                first_difference(&path, then, now)
            });
            found.or_else(|| {
                let lengths = (then.len(), now.len());
                let path = path.to_owned();
                Some((
                    path,
                    format!("a list of {}", lengths.0),
                    format!("one of {}", lengths.1),
                ))
            })
        }
        (Value::Object(fields), Value::Object(others)) => (fields.keys().chain(others.keys()))
            .find_map(|field| {
                first_difference(&format!("{path}.{field}"), &then[field], &now[field])
            }),
        _ => {
            let (then, now) = around_difference(&then.to_string(), &now.to_string());
            Some((path.to_owned(), then, now))
        }
    }
}

/// Long texts are cut to a part around their first difference.
fn around_difference(then: &str, now: &str) -> (String, String) {
    const BEFORE: usize = 40;
    const LONGEST: usize = 200;
    let same = then.chars().zip(now.chars()).take_while(|(a, b)| a == b);
    let from = same.count().saturating_sub(BEFORE);
    let cut = |text: &str| {
        let length = text.chars().count();
        if length <= LONGEST {
            return text.to_owned();
        }
        let part: String = text.chars().skip(from).take(LONGEST).collect();
        let [before, after] = [from > 0, from + LONGEST < length].map(|is_cut| match is_cut {
            true => "...",
            false => "",
        });
        format!("{before}{part}{after}")
    };
    (cut(then), cut(now))
}

fn go<D: Grows, S>(
    session: Session,
    record: D,
    progress: &mut dyn Progress,
    set_up: impl FnOnce(&mut Study<'_, D>) -> Result<S, BenchError>,
    measure: impl FnOnce(&mut S, &mut Study<'_, D>) -> Result<(), BenchError>,
) -> Finished {
    let mut study = Study {
        done: record.last_trial(),
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
    // Its place shows others that the run of a killed coordinator does not say yet how it ended.
    drop(stage);
    finished
}

/// The trials of each round, by their place of `count`: each begins a round in turn, since those before it may have an effect.
pub(crate) fn in_turn(rounds: u32, count: usize) -> impl Iterator<Item = (u32, usize)> {
    (1..=rounds).flat_map(move |round| {
        (0..count).map(move |turn| (round, (turn + round as usize - 1) % count))
    })
}

impl<D: Grows> Study<'_, D> {
    /// Whether the trial of this number was already on record when the run was resumed; if so, the time that is left excludes it.
    pub(crate) fn is_done(&mut self, number: u32, expected_ns: i64) -> bool {
        let is_done = number <= self.done;
        if is_done {
            self.left.without(expected_ns);
        }
        is_done
    }

    /// One trial, unless it is already on record: announced, measured by its number, and put on record by `keep`, which returns failures;
    /// except for one that a signal cut off.
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
        if self.is_done(number, step.expected_ns) {
            return Ok(());
        }
        (self.progress).trial(number, step.round, &step.name, self.left.ns());
        let trial = measure(&self.session, number);
        self.session.unless_interrupted()?;
        if let Some(failure) = keep(&mut self.record, trial) {
            (self.progress).failed(&format!("trial {number} ({})", step.name), &failure);
        }
        self.session.manifest.trials_done += 1;
        self.left.past(step.expected_ns);
        self.write()
    }

    /// Writes the record so far.
    pub(crate) fn write(&self) -> Result<(), BenchError> {
        self.session.run.write(&self.record)?;
        self.session.write_manifest()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use record::run::Status;
    use record::series::{Quantity, SeriesRecord, Value};
    use record::{Condition, Kind};

    use super::super::{Going, Interrupt, Lock};
    use super::*;

    struct Silent;

    impl Progress for Silent {
        fn began(&mut self, _: &Run, _: u32) {}
        fn trial(&mut self, _: u32, _: u32, _: &str, _: i64) {}
        fn going(&mut self, _: &Going) {}
        fn note(&mut self, _: &str) {}
    }

    /// The run's status on record when this goes.
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
                resume: None,
                only_check: false,
            };
            let opening = Opening {
                kind: Kind::Series,
                name: "study",
                trials: 1,
                requirements: &[],
                not_measured: &[],
                engines: None,
            };
            let record = record();
            let interrupt = Interrupt::listen().unwrap();
            let begin = |run: &Run| run.write(&record);
            let session = Session::begin(interrupt, &opening, &settings, begin, &mut Silent);
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

    fn record() -> SeriesRecord {
        SeriesRecord {
            schema: SeriesRecord::SCHEMA,
            scenario: String::new(),
            question: String::new(),
            conditions: vec![Condition::new("class", "FIFO 80")],
            rounds_planned: 2,
            baseline_subject: None,
            series: Vec::new(),
            sweep: Vec::new(),
            not_measured: Vec::new(),
        }
    }

    fn absent(name: &str) -> NotMeasured {
        NotMeasured {
            trial: name.to_owned(),
            reason: "of 5 MB".to_owned(),
            fix: String::new(),
        }
    }

    #[test]
    fn what_was_planned_otherwise_is_named_and_what_grows_is_not() {
        let then = record();
        let mut now = then.clone();
        now.of("bare", "time", None, Quantity::Ns);
        now.not_measured.push(absent("crun"));
        now.question = "another wording".to_owned();
        assert_eq!(otherwise(&then, &now), None);
        now.conditions[0].text = "OTHER".to_owned();
        let said = otherwise(&then, &now).unwrap();
        assert_eq!(
            said,
            r#"`conditions.class.text` was "FIFO 80" and is "OTHER""#
        );
        now.conditions.clear();
        let said = otherwise(&then, &now).unwrap();
        assert_eq!(said, "`conditions` was a list of 1 and is one of 0");
        let [a, b] = ["a", "b"].map(|end| format!("{}{end}{}", "-".repeat(300), "+".repeat(300)));
        let (then, now) = around_difference(&a, &b);
        assert_eq!((then.len(), now.len()), (206, 206));
        assert!(then.contains("-a+") && now.contains("-b+"), "{then}");
        // The reason may name the cgroup of a login.
        let mut then = record();
        then.conditions[0].text = "no real-time class: session-1.scope".to_owned();
        let mut now = then.clone();
        now.conditions[0].text = "no real-time class: session-2.scope".to_owned();
        assert_eq!(otherwise(&then, &now), None);
        assert_eq!(measurable(&[absent("crun")], &[absent("crun")]), None);
        let said = measurable(&[absent("crun")], &[]).unwrap();
        assert!(said.starts_with("`crun` could not be measured"), "{said}");
    }

    #[test]
    fn trials_on_record_are_passed_over_and_the_rest_take_place_once() {
        let out = tempfile::tempdir().unwrap();
        let settings = Settings {
            out: out.path().to_owned(),
            version: "0".to_owned(),
            resume: None,
            only_check: false,
        };
        let opening = Opening {
            kind: Kind::Series,
            name: "study",
            trials: 4,
            requirements: &[],
            not_measured: &[],
            engines: None,
        };
        let plan = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            PlanRecord::new("study", &0, names)
        };
        // Four trials, of which a signal cuts off the third.
        let measured = |study: &mut Study<'_, SeriesRecord>, upto: u32| -> Result<(), BenchError> {
            for round in 1..=4 {
                let step = Step {
                    round,
                    name: "a".to_owned(),
                    expected_ns: 1,
                };
                if round > upto {
                    return Err(BenchError::Interrupted);
                }
                let keep = |record: &mut SeriesRecord, order| {
                    let series = record.of("a", "b", None, Quantity::Ns);
                    series.values.push(Value {
                        round,
                        order,
                        value: 0,
                    });
                    None
                };
                study.trial(&step, |_, number| number, keep)?;
            }
            Ok(())
        };
        let begin = |run: &Run| run.write(&plan(&["a"])).and_then(|()| run.write(&record()));
        let interrupt = Interrupt::listen().unwrap();
        let mut session =
            Session::begin(interrupt, &opening, &settings, begin, &mut Silent).unwrap();
        for _ in 0..2 {
            session.remark("only half was free".to_owned(), &mut Silent);
        }
        let run = session.run.clone();
        let ended = go(
            session,
            record(),
            &mut Silent,
            |_| Ok(()),
            |(), study| measured(study, 2),
        );
        assert!(matches!(ended, Err((Some(_), BenchError::Interrupted))));
        let manifest = run.manifest().unwrap();
        let again = |plan: &PlanRecord| again(&run, &manifest, &opening, plan, &record());
        let refused = again(&plan(&["b"])).err().unwrap().to_string();
        assert!(refused.contains("trial 1 was `a` and is `b`"), "{refused}");
        let (reached, on_record) = again(&plan(&["a"])).unwrap();
        assert_eq!((reached.done, reached.planned), (2, 4));
        assert!(reached.last_record >= manifest.started);
        let session = Session {
            run: run.clone(),
            manifest,
            interrupt: Interrupt::listen().unwrap(),
            _lock: Lock::of(&run).unwrap(),
        };
        go(
            session,
            on_record,
            &mut Silent,
            |_| Ok(()),
            |(), study| measured(study, 4),
        )
        .unwrap();
        let after = run.read::<SeriesRecord>().unwrap();
        let orders = after.series[0]
            .values
            .iter()
            .map(|value| (value.round, value.order));
        assert_eq!(orders.collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
        let manifest = run.manifest().unwrap();
        assert_eq!(manifest.trials_done, 4);
        assert_eq!(
            manifest.remarks,
            ["only half was free"],
            "told twice, kept once"
        );
    }

    #[test]
    fn each_round_begins_with_the_next() {
        let all: Vec<_> = in_turn(3, 2).collect();
        assert_eq!(all, [(1, 0), (1, 1), (2, 1), (2, 0), (3, 0), (3, 1)]);
        assert_eq!(in_turn(3, 0).count(), 0);
    }
}
