//! The whole experiment: rounds of trials, interleaved, from plan to record.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::latency::DmaLatency;
use host::provenance::Provenance;
use host::rtgroup::RtGroup;
use model::{Enforcer, EngineKind};
use record::histogram::Counts;
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::summary::Metric;
use record::trial::{Part, TrialRecord};

use crate::crowd::{self, Growth, Pot};
use crate::elsewhere::Elsewhere;
use crate::held::group_name;
use crate::interrupt::Interrupt;
use crate::load::Ground;
use crate::place::{self, Place, Unsaved};
use crate::salvage;
use crate::trial::{self, Trial};
use crate::turns;
use crate::utc::{stamp, utc_now};
use crate::{BenchError, Plan, PlannedTrial};

/// Where and as what a run is recorded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory in which the run directory is made.
    pub out: PathBuf,
    /// Version of timecell, for the record.
    pub version: String,
}

/// What a caller learns while the run goes on.
pub trait Progress {
    /// The run directory exists.
    fn began(&mut self, run: &Run, trials: u32);
    /// A trial begins; `left_ns` is the expected time until the run's end.
    fn trial(&mut self, number: u32, round: u32, name: &str, left_ns: i64);
    /// A trial that keeps histograms goes on; comes about once a second.
    fn going(&mut self, going: &Going);
    /// Cells of a crowd are being created: so many of all are there; comes about once a second.
    fn gathering(&mut self, created: u32, asked: u32) {
        let _ = (created, asked);
    }
    /// A trial has ended and is on record.
    fn ended(&mut self, record: &TrialRecord) {
        let _ = record;
    }
    /// A round has ended after which a run may end early: whether all that it asks is decided.
    fn decided(&mut self, run: &Run, round: u32) -> bool {
        let _ = (run, round);
        false
    }
    /// Something the user should know now, one sentence.
    fn note(&mut self, text: &str);
}

/// How a trial that keeps histograms stands.
#[derive(Debug, Clone, Copy)]
pub struct Going {
    /// The primary metric.
    pub metric: Metric,
    /// Its largest value so far, ns.
    pub worst_ns: Option<i64>,
    /// Activations of all cells so far.
    pub counts: Counts,
    /// Activations of all cells that were asked for.
    pub planned: u64,
    /// Expected time until the run's end, ns.
    pub left_ns: i64,
}

/// Runs the plan. Returns the run with its record complete, also when some trials failed.
///
/// Everything made on the way (cells, cgroups, shared memory) is removed before this returns, on errors and
/// signals too.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: the
/// trials until then are on record.
pub fn run(
    plan: &Plan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Run, (Option<Run>, BenchError)> {
    let (run, interrupt, manifest) =
        prepare(plan, settings, progress).map_err(|error| (None, error))?;
    go_on(plan, all(plan), run, &interrupt, manifest, progress)
}

/// Measures what is to do and writes down how that ended.
pub(crate) fn go_on(
    plan: &Plan,
    todo: Vec<Todo<'_>>,
    run: Run,
    interrupt: &Interrupt,
    mut manifest: Manifest,
    progress: &mut dyn Progress,
) -> Result<Run, (Option<Run>, BenchError)> {
    let mut place = match Place::create() {
        Ok(place) => place,
        Err(error) => return finish(run, manifest, Err(error)),
    };
    let result = trials(
        plan,
        todo,
        &run,
        interrupt,
        &mut manifest,
        &mut place,
        progress,
    );
    let finished = finish(run, manifest, result);
    // By the place of a coordinator that was killed others know that its run does not say yet how it ended.
    drop(place);
    finished
}

/// Writes down how the run ended.
fn finish(
    run: Run,
    mut manifest: Manifest,
    mut result: Result<(), BenchError>,
) -> Result<Run, (Option<Run>, BenchError)> {
    manifest.status = match &result {
        Ok(()) => Status::Complete,
        Err(BenchError::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    manifest.failure = result.as_ref().err().map(ToString::to_string);
    manifest.finished = Some(utc_now());
    let written = run.write_manifest(&manifest);
    if result.is_ok() {
        result = written.map_err(BenchError::Record);
    }
    match result {
        Ok(()) => Ok(run),
        Err(error) => Err((Some(run), error)),
    }
}

fn prepare(
    plan: &Plan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<(Run, Interrupt, Manifest), BenchError> {
    room_for(plan, settings)?;
    let interrupt = alone(progress)?;
    let provenance = provenance(plan, settings);
    let rounds = plan.experiment.rounds;
    let total = rounds * plan.trials.len() as u32;
    let manifest = Manifest {
        schema: RUN_SCHEMA,
        timecell_version: settings.version.clone(),
        status: Status::Running,
        started: utc_now(),
        finished: None,
        trials_planned: total,
        trials_done: 0,
        requirements: plan.requirements.clone(),
        not_measured: plan.not_measured.clone(),
        failure: None,
        resumed: Vec::new(),
    };
    let run = Run::create(
        &settings.out,
        &stamp(),
        &plan.experiment,
        &provenance,
        &manifest,
    )?;
    progress.began(&run, total);
    Ok((run, interrupt, manifest))
}

/// Makes sure that nobody else measures, listens for signals, and removes what killed runs have left.
pub(crate) fn alone(progress: &mut dyn Progress) -> Result<Interrupt, BenchError> {
    if let Some(pid) = place::another() {
        return Err(BenchError::Unmet(format!(
            "another timecell (process {pid}) is measuring on this machine; wait until it has ended, \
             or the two would measure each other"
        )));
    }
    for pid in place::of_other_users() {
        progress.note(&format!(
            "another user's timecell (process {pid}) is measuring on this machine: each of the two is in what the other measures"
        ));
    }
    let interrupt = Interrupt::listen()
        .map_err(|error| BenchError::Failed(format!("cannot listen for signals: {error}")))?;
    for swept in place::sweep_stale(Unsaved::Keep) {
        swept.sentences.iter().for_each(|line| progress.note(line));
    }
    Ok(interrupt)
}

/// The machine as it is now, engines included.
pub(crate) fn provenance(plan: &Plan, settings: &Settings) -> Provenance {
    let mut provenance = Provenance::collect(&settings.version);
    let options = engine::Options {
        rootless_user: plan.experiment.rootless_user.clone(),
    };
    provenance.engines = engine::found(&options);
    provenance
}

/// One trial that is to take place.
pub(crate) struct Todo<'a> {
    pub planned: Cow<'a, PlannedTrial>,
    pub number: u32,
    pub round: u32,
    /// Activations of each cell.
    pub jobs: Vec<u32>,
    /// The trial whose remaining jobs these are.
    pub continues: Option<u32>,
}

/// Every trial of the plan, interleaved.
fn all(plan: &Plan) -> Vec<Todo<'_>> {
    let trials = plan.trials.len() as u32;
    (1..=plan.experiment.rounds)
        .flat_map(|of| round(plan, of, (of - 1) * trials + 1))
        .collect()
}

/// The trials of one round, whose numbers begin with `first`.
pub(crate) fn round(plan: &Plan, round: u32, first: u32) -> Vec<Todo<'_>> {
    (plan.trials.iter().zip(first..))
        .map(|(planned, number)| Todo {
            planned: Cow::Borrowed(planned),
            number,
            round,
            jobs: planned.jobs(),
            continues: None,
        })
        .collect()
}

fn trials(
    plan: &Plan,
    todo: Vec<Todo<'_>>,
    run: &Run,
    interrupt: &Interrupt,
    manifest: &mut Manifest,
    place: &mut Place,
    progress: &mut dyn Progress,
) -> Result<(), BenchError> {
    let todo = turns::joined(plan, todo);
    place.note_run(run.dir())?;
    let rootfs = place.rootfs()?;
    for program in plan.experiment.programs() {
        engine::libraries::add(&rootfs, Path::new(program.path()))?;
    }
    let rt_group = rt_group(plan, place, progress)?;
    if plan.holds_any() {
        // Before any is made: whoever comes after a `kill -9` removes it.
        place.note_held_groups(&group_name())?;
    }
    let pot = Pot::find(plan, rt_group.as_ref(), progress)?;
    let (ground, remarks) = Ground::make(plan, run.dir(), place)?;
    for remark in remarks {
        progress.note(&remark);
    }
    let _elsewhere = Elsewhere::than(&plan.cpus());
    let _awake = hold_awake(plan, progress);
    let began = Instant::now();
    let mut time = Time::of(plan);
    let expected = expected_ns(&todo);
    let mut growth = Growth::default();
    let next_round = |done: usize| todo.get(done + 1).map(|next| next.round);
    let looks = plan.experiment.looks();
    for (done, todo) in todo.iter().enumerate() {
        let left = left_ns(&expected, began, done);
        let planned: &PlannedTrial = &todo.planned;
        if let Some(ended) = growth.ended(planned) {
            manifest.trials_planned = manifest.trials_planned.saturating_sub(1);
            if !manifest.not_measured.contains(&ended) {
                manifest.not_measured.push(ended);
            }
            run.write_manifest(manifest)?;
            continue;
        }
        progress.trial(todo.number, todo.round, &planned.name, left);
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
            interrupt,
            run,
            jobs: todo.jobs.clone(),
            continues: todo.continues,
            expected_end_ns: probe::clock::now() + left,
        };
        let outcome = match &plan.experiment.scale {
            Some(scale) => crowd::run(&trial, scale, progress),
            None => trial::run(&trial, progress),
        };
        let outcome = match outcome {
            Err(BenchError::Unwritten {
                number,
                source,
                place: dir,
            }) => {
                place.keep_trial(number, &source)?;
                return Err(BenchError::Unwritten {
                    number,
                    source,
                    place: dir,
                });
            }
            outcome => outcome?,
        };
        if interrupt.came() && outcome.record.go_ns.is_none() {
            // Nothing was measured yet.
            outcome.discard();
            for part in outcome.record.clone().parts() {
                run.forget_trial(part.record.number);
            }
            return Err(BenchError::Interrupted);
        }
        // Without it what the cells were released with is on record, which is enough to write the trial later.
        let _ = salvage::note_ended(place, &outcome.record);
        let parts = outcome.record.clone().parts();
        for part in &parts {
            let written = if outcome.begun {
                run.end_trial(&part.record)
            } else {
                run.write_trial(&part.record, &outcome.samples_of(part))
            };
            if let Err(source) = written {
                place.keep_trial(todo.number, &source)?;
                return Err(BenchError::Unwritten {
                    number: part.record.number,
                    source,
                    place: place.dir().to_owned(),
                });
            }
        }
        outcome.discard();
        manifest.trials_done += u32::try_from(parts.len()).unwrap_or(u32::MAX);
        run.write_manifest(manifest)?;
        growth.note(&outcome.record);
        for Part { record, .. } in &parts {
            progress.ended(record);
            if let Some(failure) = &record.failure {
                progress.note(&format!(
                    "trial {} ({}) failed: {failure}",
                    record.number, record.name
                ));
            }
        }
        if interrupt.came() {
            return Err(BenchError::Interrupted);
        }
        if let Some(why) = &outcome.record.cut_off {
            progress.note(&format!(
                "trial {} ({}) was cut off, and what it had measured is kept: {why}",
                todo.number, planned.name
            ));
        }
        if next_round(done).is_none_or(|next| next == todo.round) {
            continue;
        }
        let is_decided = looks.contains(&todo.round) && progress.decided(run, todo.round);
        let is_over = time.after_a_round(began.elapsed());
        if is_over && !is_decided {
            progress.note(&format!(
                "after round {} the run ends: another would take it beyond --at-most",
                todo.round
            ));
        }
        if is_decided || is_over {
            manifest.trials_planned = manifest.trials_done;
            run.write_manifest(manifest)?;
            break;
        }
    }
    Ok(())
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

    /// A round has ended, so long after the beginning: whether another, as long as the longest so far, would end too late.
    fn after_a_round(&mut self, since_began: Duration) -> bool {
        self.longest = self.longest.max(since_began.saturating_sub(self.last));
        self.last = since_began;
        self.most
            .is_some_and(|most| since_began + self.longest > most)
    }
}

/// How long each trial should take, ns: what is left of one that is continued.
fn expected_ns(todo: &[Todo<'_>]) -> Vec<i64> {
    let part = |todo: &Todo| {
        // Each cell's share of its own jobs: they may have different numbers.
        let whole = todo.planned.jobs();
        let left = todo.jobs.iter().zip(&whole).map(|(jobs, whole)| {
            let expected = i128::from(todo.planned.expected_ns());
            (expected * i128::from(*jobs) / i128::from((*whole).max(1))) as i64
        });
        left.max().unwrap_or(0)
    };
    todo.iter().map(part).collect()
}

/// Expected at first, stretched by what was seen as the run goes on.
fn left_ns(expected: &[i64], began: Instant, done: usize) -> i64 {
    let sum = |part: &[i64]| part.iter().fold(0i64, |sum, ns| sum.saturating_add(*ns));
    let (past, left) = expected.split_at(done.min(expected.len()));
    let past = sum(past);
    if past <= 0 {
        return sum(left);
    }
    let seen = began.elapsed().as_nanos() as f64;
    (sum(left) as f64 * seen / past as f64) as i64
}

fn room_for(plan: &Plan, settings: &Settings) -> Result<(), BenchError> {
    if plan.trials.is_empty() {
        let why: Vec<String> = (plan.not_measured.iter())
            .map(|n| format!("{}: {} ({})", n.trial, n.reason, n.mend))
            .collect();
        return Err(BenchError::Unmet(format!(
            "nothing of this experiment can be measured here: {}",
            why.join("; ")
        )));
    }
    let shared = Place::free_bytes();
    let needed = plan.trial_bytes() + (64 << 20);
    if shared < needed {
        return Err(BenchError::Failed(format!(
            "shared memory has {} MB free, the samples of one trial need {} MB; ask for fewer jobs or cells",
            shared >> 20,
            needed >> 20
        )));
    }
    let made = !settings.out.exists();
    host::writer::create_dir_all(&settings.out).map_err(|source| {
        BenchError::Record(record::RecordError::Io {
            path: settings.out.clone(),
            doing: "make the directory",
            source,
        })
    })?;
    let free = place::free_bytes(&settings.out);
    if free < plan.run_bytes() {
        if made {
            let _ = std::fs::remove_dir(&settings.out);
        }
        return Err(BenchError::Failed(format!(
            "{}: the disk has {} MB free, the run may take {} MB; free some space, ask for fewer jobs, or name another place with --out",
            settings.out.display(),
            free >> 20,
            plan.run_bytes() >> 20
        )));
    }
    Ok(())
}

/// On cgroup v1 with RT_GROUP_SCHED a new container's group has no real-time budget at all. All cells of the run
/// share one group with whatever is free: measuring wants no throttling, and many small budgets would throttle
/// the release itself.
fn rt_group(
    plan: &Plan,
    place: &mut Place,
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
    // A crowd takes all that it may: what is kept back is the coordinator's, which the root's throttling never meets.
    let kept_us = if crowd { crowd::KEPT_US } else { 0 };
    let group = shared_rt_group_but(place, kept_us)?;
    if let Some(group) = &group
        && group.budget().per_second_us() < 900_000
    {
        progress.note(&format!(
            "only {} ms of real-time budget in every second are free for the cells; other cgroups hold the rest",
            group.budget().per_second_us() / 1000
        ));
    }
    Ok(group)
}

/// One rt cgroup with all the budget that is free, noted in the place before it is made; `None` where the kernel
/// has no such groups.
pub(crate) fn shared_rt_group(place: &mut Place) -> Result<Option<RtGroup>, BenchError> {
    shared_rt_group_but(place, 0)
}

/// The same, with so many us of every second kept back.
fn shared_rt_group_but(place: &mut Place, kept_us: u64) -> Result<Option<RtGroup>, BenchError> {
    if host::rtgroup::detect().is_err() {
        return Ok(None);
    }
    let failed = |error: host::rtgroup::RtGroupError| {
        BenchError::Failed(format!("cannot give the cells a real-time budget: {error}"))
    };
    let free = host::rtgroup::largest_free_runtime().map_err(failed)?;
    let free = if free > 2 * kept_us {
        free - kept_us
    } else {
        free
    };
    let name = format!("timecell-{}", std::process::id());
    place.note_rt_group(&name)?;
    RtGroup::create(&name, free, 1_000_000)
        .map(Some)
        .map_err(failed)
}

/// Keeps the cpus out of deep idle states while anything is measured, as cyclictest does.
fn hold_awake(plan: &Plan, progress: &mut dyn Progress) -> Option<DmaLatency> {
    if !plan.real_time {
        return None;
    }
    match DmaLatency::hold() {
        Ok(held) => Some(held),
        Err(why) => {
            progress.note(&format!("idle states are left as they are: {why}"));
            None
        }
    }
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
