//! Mixed criticality against a simulation of the change of mode, tick by tick: no response beyond AMC-rtb's bounds, and
//! no deadline missed in a set that EDF-VD accepts.

use crate::simulator::{Random, set_count};
use timecell_analysis::edf::{EdfVd, edf_vd};
use timecell_analysis::fp::{AmcResponse, amc_rtb};
use timecell_analysis::{MixedTask, Task};

const PERIODS: [u64; 8] = [3, 4, 5, 6, 8, 10, 12, 15];
const TICKS: u64 = 240;
const RUNS: u64 = 12;

#[derive(Debug, Clone)]
struct Job {
    task: usize,
    release: u64,
    /// Its execution time when it ends.
    needs: u64,
    ran: u64,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    FixedPriority,
    /// Deadlines of high tasks times this fraction while in low mode.
    VirtualDeadlines(u64, u64),
}

/// The fate of a job: its response, or how long it had waited when it was given up or the run ended.
#[derive(Debug)]
struct Seen {
    task: usize,
    response: u64,
    ended: bool,
    /// Whether that was before the change of mode.
    low_mode: bool,
}

fn releases(tasks: &[MixedTask], random: &mut Random) -> Vec<Job> {
    let together = random.percent(50);
    let dense = random.percent(60);
    let overruns = random.choose(&[0, 5, 30, 100]);
    let mut jobs = Vec::new();
    for (task, mixed) in tasks.iter().enumerate() {
        let Task { wcet, period, .. } = mixed.task;
        let mut release = if together {
            0
        } else {
            random.between(0, 2 * period)
        };
        while release < TICKS {
            let needs = match mixed.wcet_high {
                Some(high) if random.percent(overruns) => {
                    random.choose(&[high, high, wcet + 1]).min(high)
                }
                _ if random.percent(80) => wcet,
                _ => random.between(1, wcet),
            };
            jobs.push(Job {
                task,
                release,
                needs,
                ran: 0,
            });
            release += period + if dense { 0 } else { random.between(0, period) };
        }
    }
    jobs
}

fn simulate(tasks: &[MixedTask], rule: Rule, mut jobs: Vec<Job>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut low_mode = true;
    for now in 0..TICKS {
        if !low_mode {
            jobs.retain(|job| tasks[job.task].wcet_high.is_some());
        }
        let urgency = |job: &Job| match rule {
            Rule::FixedPriority => (job.task as u64, job.release),
            Rule::VirtualDeadlines(part, whole) => {
                let Task { deadline, .. } = tasks[job.task].task;
                let scaled = low_mode && tasks[job.task].wcet_high.is_some();
                let relative = if scaled {
                    deadline * part
                } else {
                    deadline * whole
                };
                (job.release * whole + relative, job.task as u64)
            }
        };
        let ready = (0..jobs.len()).filter(|&at| jobs[at].release <= now);
        let Some(at) = ready.min_by_key(|&at| urgency(&jobs[at])) else {
            continue;
        };
        jobs[at].ran += 1;
        let job = jobs[at].clone();
        if job.ran == job.needs {
            jobs.swap_remove(at);
            seen.push(Seen {
                task: job.task,
                response: now + 1 - job.release,
                ended: true,
                low_mode,
            });
        } else if low_mode && job.ran == tasks[job.task].task.wcet {
            low_mode = false;
            let dropped = jobs
                .iter()
                .filter(|job| tasks[job.task].wcet_high.is_none() && job.release <= now);
            seen.extend(dropped.map(|job| Seen {
                task: job.task,
                response: now + 1 - job.release,
                ended: false,
                low_mode: true,
            }));
        }
    }
    seen.extend(
        jobs.iter()
            .filter(|job| job.release < TICKS)
            .map(|job| Seen {
                task: job.task,
                response: TICKS - job.release,
                ended: false,
                low_mode,
            }),
    );
    seen
}

fn set(random: &mut Random, constrained: bool) -> Vec<MixedTask> {
    let count = random.between(1, 4);
    (0..count)
        .map(|_| {
            let period = random.choose(&PERIODS);
            let wcet = random.between(1, (period / count).max(1));
            let high = random.between(wcet, (3 * wcet).min(period));
            let deadline = match constrained {
                true => random.between(high, period),
                false => period,
            };
            let task = Task::new(wcet, period).due(deadline);
            if random.percent(60) {
                MixedTask::high(task, high)
            } else {
                MixedTask::low(task)
            }
        })
        .collect()
}

#[test]
fn no_response_is_beyond_the_bounds_of_amc_rtb() {
    let (mut checked, mut attained, mut changed) = (0u64, 0u64, 0u64);
    for seed in 0..set_count(500) {
        let random = &mut Random::new(seed);
        let tasks = set(random, true);
        let bounds = amc_rtb(&tasks);
        // A task beyond its deadline may have several jobs waiting, which the bounds of all below it do not cover.
        let sound = bounds.iter().take_while(|bound| bound.meets()).count();
        if !bounds.iter().all(AmcResponse::meets) && sound == 0 {
            continue;
        }
        let tasks = &tasks[..sound];
        for _ in 0..RUNS {
            for seen in simulate(tasks, Rule::FixedPriority, releases(tasks, random)) {
                let bound = &bounds[seen.task];
                let most = match (seen.low_mode, &bound.high) {
                    (false, Some(high)) => high.bound().unwrap().max(bound.low.bound().unwrap()),
                    _ => bound.low.bound().unwrap(),
                };
                assert!(
                    seen.response <= most,
                    "seed {seed}: {seen:?} of {tasks:?}, at most {most}"
                );
                checked += 1;
                attained += u64::from(seen.ended && seen.response == most);
                changed += u64::from(!seen.low_mode);
            }
        }
    }
    println!(
        "AMC-rtb: {checked} jobs, {changed} after a change of mode, {attained} at their bound"
    );
    assert!(changed > 0 && attained > 0, "the simulation shows nothing");
}

#[test]
fn what_edf_vd_accepts_misses_no_deadline() {
    let (mut scaled, mut changed) = (0u64, 0u64);
    for seed in 0..set_count(500) {
        let random = &mut Random::new(seed);
        let tasks = set(random, false);
        let rule = match edf_vd(&tasks) {
            EdfVd::Plain => Rule::VirtualDeadlines(1, 1),
            EdfVd::Scaled(part, whole) => Rule::VirtualDeadlines(part, whole),
            EdfVd::Refused | EdfVd::Undecided(_) => continue,
        };
        scaled += u64::from(matches!(edf_vd(&tasks), EdfVd::Scaled(..)));
        for _ in 0..RUNS {
            for seen in simulate(&tasks, rule, releases(&tasks, random)) {
                let Task { deadline, .. } = tasks[seen.task].task;
                assert!(
                    seen.response <= deadline,
                    "seed {seed}: {seen:?} of {tasks:?} under {rule:?}"
                );
                changed += u64::from(!seen.low_mode);
            }
        }
    }
    println!("EDF-VD: {scaled} sets with scaled deadlines, {changed} jobs after a change of mode");
    assert!(scaled > 0 && changed > 0, "the simulation shows nothing");
}

/// The simulation itself: a change of mode at 2 drops the low job, and the high one runs to its end.
#[test]
fn the_simulation_changes_its_mode() {
    let tasks = [
        MixedTask::high(Task::new(2, 300), 5),
        MixedTask::low(Task::new(3, 300)),
    ];
    let job = |task, needs| Job {
        task,
        release: 0,
        needs,
        ran: 0,
    };
    let seen = simulate(&tasks, Rule::FixedPriority, vec![job(0, 5), job(1, 3)]);
    let ends: Vec<_> = seen
        .iter()
        .map(|seen| (seen.task, seen.response, seen.ended))
        .collect();
    assert_eq!(ends, [(1, 2, false), (0, 5, true)]);
}
