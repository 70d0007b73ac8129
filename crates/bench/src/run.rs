//! The whole experiment: rounds of trials, interleaved, from plan to record.

use std::path::Path;
use std::time::Duration;

use host::rtgroup::RtGroup;
use model::{Enforcer, EngineKind};
use record::run::{Manifest, Run};
use record::trial::Part;
use record::{Kind, NotMeasured, RecordError};

use crate::context::{Outcome, Trial};
use crate::crowd::{self, Growth, Pot};
use crate::held::group_name;
use crate::load::Ground;
use crate::place::{self, Place};
use crate::resume;
use crate::rt_group::shared_rt_group;
use crate::salvage;
use crate::session::{Finished, Opening, Progress, Quiet, Session, Settings, TimeLeft, nothing_of};
use crate::sweep::new_place;
use crate::todo::{Todo, all, expected_ns, joined};
use crate::trial;
use crate::{BenchError, Plan, PlannedTrial};

/// Runs the plan, or the rest of it where a run is resumed. Returns the run with its record complete, also when some trials failed.
///
/// Everything made on the way (cells, cgroups, shared memory) is removed before this returns, on errors and
/// signals too.
///
/// # Errors
/// Why the run ended, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: the trials until then are on
/// record. Where a run is resumed, also errors of [`crate::check_resume`].
pub fn run(plan: &Plan, settings: &Settings, progress: &mut dyn Progress) -> Finished {
    let begun = match &settings.resume {
        None => open(plan, settings, progress).map(|session| (session, all(plan))),
        Some(run) => again(plan, run, settings, progress),
    };
    let (session, todo) = begun.map_err(|error| (None, error))?;
    go_on(plan, todo, session, progress)
}

fn open(
    plan: &Plan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Session, BenchError> {
    room_for(plan, settings)?;
    let begin = |run: &Run| run.write_experiment(&plan.experiment);
    Session::open(&opening(plan), settings, begin, progress)
}

/// Resumes a run of this plan, with the rest of it.
fn again<'a>(
    plan: &'a Plan,
    run: &Run,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<(Session, Vec<Todo<'a>>), BenchError> {
    resume::check(run, plan)?;
    let read = |manifest: &Manifest, ended: &str| resume::read(run, plan, manifest, ended);
    Session::resume(run, &opening(plan), settings, read, progress)
}

fn opening(plan: &Plan) -> Opening<'_> {
    let experiment = &plan.experiment;
    Opening {
        kind: match experiment.scale {
            Some(_) => Kind::Scale,
            None => Kind::Jobs,
        },
        name: &experiment.name,
        trials: experiment.rounds * plan.trials.len() as u32,
        requirements: &plan.requirements,
        not_measured: &plan.not_measured,
        engines: Some(plan.engine_options()),
    }
}

/// Measures the rest and records how that ended.
fn go_on(
    plan: &Plan,
    todo: Vec<Todo<'_>>,
    mut session: Session,
    progress: &mut dyn Progress,
) -> Finished {
    let mut place = match new_place() {
        Ok(place) => place,
        Err(error) => return session.close(Err(error), |_| Ok(())),
    };
    let result = trials(plan, todo, &mut session, &mut place, progress);
    let finished = session.close(result, |_| Ok(()));
    // The place of a killed coordinator shows others that its run does not say yet how it ended.
    drop(place);
    finished
}

fn trials(
    plan: &Plan,
    todo: Vec<Todo<'_>>,
    session: &mut Session,
    place: &mut Place,
    progress: &mut dyn Progress,
) -> Result<(), BenchError> {
    let todo = joined(plan, todo);
    place.note_run(session.run.dir())?;
    let rootfs = place.rootfs()?;
    for program in plan.experiment.programs() {
        engine::libraries::add(&rootfs, Path::new(program.path()))?;
    }
    let rt_group = rt_group(plan, place, session, progress)?;
    if plan.holds_any() {
        // Before any is created, so that it is removed after a `kill -9`.
        place.note_held_groups(&group_name())?;
    }
    let pot = Pot::find(plan, rt_group.as_ref(), session, progress)?;
    let (ground, remarks) = Ground::make(&plan.loads(), session.run.dir(), place)?;
    for remark in remarks {
        session.remark(remark, progress);
    }
    let _quiet = Quiet::around(&plan.cpus(), plan.real_time, session, progress);
    let expected = expected_ns(&todo);
    let sum = expected
        .iter()
        .fold(0i64, |sum, ns| sum.saturating_add(*ns));
    let mut left = TimeLeft::new(sum);
    let mut time = Time::of(plan);
    let mut growth = growth(plan, &session.run)?;
    let next_round = |done: usize| todo.get(done + 1).map(|next| next.round);
    let looks = plan.experiment.looks();
    for ((done, todo), expected) in todo.iter().enumerate().zip(expected) {
        let left_ns = left.ns();
        left.past(expected);
        let planned: &PlannedTrial = &todo.planned;
        if let Some(ended) = growth.ended(planned) {
            let manifest = &mut session.manifest;
            manifest.trials_planned = manifest.trials_planned.saturating_sub(1);
            // A resumed run may find the reason in other words.
            let known = |one: &NotMeasured| one.trial == ended.trial;
            if !manifest.not_measured.iter().any(known) {
                manifest.not_measured.push(ended);
            }
            session.write_manifest()?;
            continue;
        }
        progress.trial(todo.number, todo.round, &planned.name, left_ns);
        let trial = Trial {
            plan,
            planned,
            number: todo.number,
            round: todo.round,
            place,
            rootfs: &rootfs,
            ground: &ground,
            rt_group: rt_group.as_ref(),
            reserved: pot.map(|pot| pot.part(planned.cells.len())),
            interrupt: &session.interrupt,
            run: &session.run,
            jobs: todo.jobs.clone(),
            continues: todo.continues,
            expected_end_ns: probe::clock::now() + left_ns,
        };
        let outcome = match &plan.experiment.scale {
            Some(scale) => crowd::run(&trial, scale, progress),
            None => trial::run(&trial, progress),
        };
        let outcome = match outcome {
            Err(BenchError::Unwritten { number, source, .. }) => {
                return Err(unwritten(place, number, number, source));
            }
            outcome => outcome?,
        };
        keep(&outcome, todo.number, session, place, progress)?;
        growth.note(&outcome.record);
        session.unless_interrupted()?;
        if let Some(why) = &outcome.record.cut_off {
            progress.note(&format!(
                "trial {} ({}) was cut off; what it had measured is kept: {why}",
                todo.number, planned.name
            ));
        }
        if next_round(done).is_none_or(|next| next == todo.round) {
            continue;
        }
        let is_decided = looks.contains(&todo.round) && progress.decided(&session.run, todo.round);
        let is_over = time.after_a_round(left.elapsed());
        if is_over && !is_decided {
            let remark = format!(
                "the run ends after round {}: another one would exceed --at-most",
                todo.round
            );
            session.remark(remark, progress);
        }
        if is_decided || is_over {
            session.manifest.trials_planned = session.manifest.trials_done;
            session.write_manifest()?;
            break;
        }
    }
    Ok(())
}

/// How far the study of each engine has come in a resumed run.
pub(crate) fn growth(plan: &Plan, run: &Run) -> Result<Growth, BenchError> {
    let mut growth = Growth::default();
    if plan.experiment.scale.is_some() {
        for number in run.trial_numbers()? {
            growth.note(&run.trial(number)?);
        }
    }
    Ok(growth)
}

/// Records the outcome of a trial, or of those that ran as one; nothing of one in which a signal came before anything was measured.
fn keep(
    outcome: &Outcome,
    number: u32,
    session: &mut Session,
    place: &mut Place,
    progress: &mut dyn Progress,
) -> Result<(), BenchError> {
    let parts = outcome.record.clone().parts();
    if session.interrupt.came() && outcome.record.go_ns.is_none() {
        outcome.discard();
        for part in parts {
            session.run.forget_trial(part.record.number);
        }
        return Err(BenchError::Interrupted);
    }
    // Without it, the record from the release remains, which is enough to write the trial later.
    let _ = salvage::note_ended(place, &outcome.record);
    for part in &parts {
        let written = if outcome.begun {
            session.run.end_trial(&part.record)
        } else {
            (session.run).write_trial(&part.record, &outcome.samples_of(part))
        };
        written.map_err(|source| unwritten(place, number, part.record.number, source))?;
    }
    outcome.discard();
    session.manifest.trials_done += u32::try_from(parts.len()).unwrap_or(u32::MAX);
    session.write_manifest()?;
    for Part { record, .. } in &parts {
        progress.ended(record);
        if let Some(failure) = &record.failure {
            progress.failed(
                &format!("trial {} ({})", record.number, record.name),
                failure,
            );
        }
    }
    Ok(())
}

/// Leaves trial `number`'s samples in its place, because `part` of it cannot be written.
fn unwritten(place: &mut Place, number: u32, part: u32, source: RecordError) -> BenchError {
    match place.keep_trial(number, &source) {
        Ok(()) => BenchError::Unwritten {
            number: part,
            source,
            place: place.dir().to_owned(),
        },
        Err(error) => error,
    }
}

/// The time that a run may take, and how long its rounds are.
struct Time {
    most: Option<Duration>,
    longest: Duration,
    /// When the last round ended, since the beginning.
    last: Duration,
}

impl Time {
    fn of(plan: &Plan) -> Time {
        Time {
            most: plan
                .at_most_ns
                .map(|ns| Duration::from_nanos(ns.max(0).unsigned_abs())),
            longest: Duration::ZERO,
            last: Duration::ZERO,
        }
    }

    /// A round has ended, so long after the beginning: returns whether another, as long as the longest so far, would end too late.
    fn after_a_round(&mut self, since_began: Duration) -> bool {
        self.longest = self.longest.max(since_began.saturating_sub(self.last));
        self.last = since_began;
        self.most
            .is_some_and(|most| since_began + self.longest > most)
    }
}

fn room_for(plan: &Plan, settings: &Settings) -> Result<(), BenchError> {
    if plan.trials.is_empty() {
        return Err(nothing_of("nothing of this experiment", &plan.not_measured));
    }
    let shared = Place::free_bytes();
    let needed = plan.trial_bytes() + (64 << 20);
    if shared < needed {
        return Err(BenchError::Failed(format!(
            "shared memory has {} free, the samples of one trial need {}; request fewer jobs or cells",
            model::mib(shared),
            model::mib(needed)
        )));
    }
    let made = !settings.out.exists();
    host::writer::create_dir_all(&settings.out).map_err(|source| {
        BenchError::Record(record::RecordError::Io {
            path: settings.out.clone(),
            doing: "create the directory",
            source,
        })
    })?;
    let free = place::free_bytes(&settings.out);
    if free < plan.run_bytes() {
        if made {
            let _ = std::fs::remove_dir(&settings.out);
        }
        return Err(BenchError::Failed(format!(
            "{}: the disk has {} free, the run may take {}; free some space, request fewer jobs, or choose another place with --out",
            settings.out.display(),
            model::mib(free),
            model::mib(plan.run_bytes())
        )));
    }
    Ok(())
}

/// On cgroup v1 with RT_GROUP_SCHED a new container's group has no real-time budget at all. All cells of the run share one group with
/// all free budget: measurements must not be throttled, and many small budgets would throttle the release itself.
fn rt_group(
    plan: &Plan,
    place: &mut Place,
    session: &mut Session,
    progress: &mut dyn Progress,
) -> Result<Option<RtGroup>, BenchError> {
    let contained = (plan.trials.iter())
        .flat_map(|trial| &trial.cells)
        .any(|(kind, _)| *kind != EngineKind::Bare);
    let crowd = plan.experiment.scale.is_some();
    let held = plan.holds_by(Enforcer::RtCgroup);
    if !plan.real_time || !(contained || crowd || held) || plan.deadline() {
        return Ok(None);
    }
    // A crowd takes all that it may: the rest is kept for the coordinator, which the root's throttling then never stops.
    let kept_us = if crowd { crowd::KEPT_US } else { 0 };
    let group = shared_rt_group(place, kept_us)?;
    if let Some(group) = &group
        && group.budget().per_second_us() < 900_000
    {
        let remark = format!(
            "only {} ms of real-time budget per second were free for the cells; other cgroups held the rest",
            group.budget().per_second_us() / 1000
        );
        session.remark(remark, progress);
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_round_begins_that_would_end_too_late() {
        let s = Duration::from_secs;
        let mut time = Time {
            most: Some(s(10)),
            longest: Duration::ZERO,
            last: Duration::ZERO,
        };
        // Rounds of two seconds, three, and two.
        assert_eq!(
            [2, 5, 7, 8].map(|at| time.after_a_round(s(at))),
            [false, false, false, true]
        );
        time.most = None;
        assert!(!time.after_a_round(s(1_000)));
    }
}
