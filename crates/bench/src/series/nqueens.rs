//! `nqueens`: time to find every way to put 12 queens on a board, on 1, 2 and 4 threads, in a cell of every engine,
//! with and without a load on the cpus that the threads leave free.
//!
//! After the Jailhouse thesis, section 6.2, whose program is Python; ours is a probe mode of our own binary, so that
//! every engine runs the same machine code. A wrong number of solutions fails the measurement.

use std::collections::BTreeMap;

use engine::CellSpec;
use host::rtgroup::RtGroup;
use host::thermal::{self, Sensor};
use model::{EngineKind, InputErrors, LoadKind, LoadPlan};
use probe::control::State;
use probe::{Barrier, ClassBy, Queens, QueensArgs, Solved};
use record::run::Run;
use record::series::Quantity;
use record::{Condition, NotMeasured};

use super::bench::{
    Bench, OwnOption, Prepared, Reading, SeriesOptions, SeriesScenario, Task, Turn,
};
use super::cells::{self, Form, Subject};
use crate::BenchError;
use crate::cells::{ARMING_NS, Cells};
use crate::here::{allowed_cpus, fifo_requirement};
use crate::launch::{Stage, rights};
use crate::load::{self, PlannedLoad, Setting};
use crate::rt_group::shared_rt_group;

pub(super) const SCENARIO: SeriesScenario = SeriesScenario {
    name: "nqueens",
    question: "How long does a computation on 1, 2 and 4 threads take in each engine, with and without load on the \
               other cpus?",
    rounds: (10, 2),
    own: OwnOption::Cpus,
    prepare,
};

/// Queens, and the number of ways to place them: sequence A000170 of the OEIS.
const QUEENS: u32 = 12;
const SOLUTIONS: u64 = 14_200;
const THREADS: [u32; 3] = [1, 2, 4];
const PRIORITY: u8 = 80;
/// Longest time for its computation, ns.
const SOLVING_NS: i64 = 1_800_000_000_000;
/// Guesses for the estimate of how long a run takes: one computation on one thread, and starting a load, ns.
const SOLVE_GUESS_NS: i64 = 250_000_000;
const LOAD_GUESS_NS: i64 = 700_000_000;

/// One point: an engine, a number of threads, a load or none.
#[derive(Debug, Clone)]
struct Point {
    subject: Subject,
    threads: u32,
    /// Where the threads are pinned, in turn.
    cpus: Vec<u32>,
    load: Option<PlannedLoad>,
}

impl Point {
    fn part(&self) -> String {
        part(self.threads, self.load.is_some())
    }
}

fn part(threads: u32, loaded: bool) -> String {
    let noun = if threads == 1 { "thread" } else { "threads" };
    let load = if loaded { ", cpu load elsewhere" } else { "" };
    format!("{threads} {noun}{load}")
}

struct NQueens {
    points: Vec<Point>,
    fifo: Option<u8>,
    sensor: Option<Sensor>,
    // Before the stage, which notes it.
    group: Option<RtGroup>,
    stage: Stage,
}

fn prepare(options: &SeriesOptions) -> Result<Prepared, InputErrors> {
    let mut found = cells::find(options, false);
    let mut allowed = allowed_cpus();
    allowed.sort_unstable();
    let class = fifo_requirement(PRIORITY);
    let fifo = class.met.then_some(PRIORITY);
    let sensor = thermal::cpu_sensor();
    let mut points = Vec::new();
    for (threads, loaded) in THREADS.map(|t| [(t, false), (t, true)]).concat() {
        let own = own_cpus(&allowed, &options.cpus, threads);
        let rest: Vec<u32> = (allowed.iter().copied())
            .filter(|cpu| !own.contains(cpu))
            .collect();
        let load = match loaded.then(|| elsewhere(&rest)).transpose() {
            Ok(load) => load,
            Err(why) => {
                found.needs.not_measured.push(NotMeasured {
                    trial: part(threads, true),
                    reason: why,
                    fix: "use a machine with more cpus, or list fewer in --cpus".to_owned(),
                });
                continue;
            }
        };
        let detached = |subject: &&Subject| subject.form == Form::Detached;
        for subject in found.subjects.iter().filter(detached) {
            points.push(Point {
                subject: subject.clone(),
                threads,
                cpus: own.clone(),
                load: load.clone(),
            });
        }
    }
    found.needs.requirements.push(class);
    let conditions = conditions(fifo, sensor.as_ref(), &points, &options.cpus);
    Ok(Prepared {
        tasks: points.iter().map(task).collect(),
        needs: found.needs,
        conditions,
        found: BTreeMap::from([("cpus".to_owned(), host::cpus::format_list(&allowed))]),
        sweep: Vec::new(),
        baseline: Some("bare".to_owned()),
        open: Box::new(move |run| Ok(Box::new(NQueens::open(run, points, fifo, sensor)?))),
    })
}

/// The cpus of so many threads: of those that they may use, all unless some are `chosen`, the highest.
fn own_cpus(allowed: &[u32], chosen: &[u32], threads: u32) -> Vec<u32> {
    let mut own = match chosen {
        [] => allowed.to_vec(),
        chosen => chosen.to_vec(),
    };
    own.sort_unstable_by_key(|cpu| std::cmp::Reverse(*cpu));
    own.dedup();
    own.truncate(threads as usize);
    own
}

fn task(point: &Point) -> Task {
    let parallel = i64::from(point.threads).min(point.cpus.len() as i64).max(1);
    let load = point.load.as_ref().map_or(0, |_| LOAD_GUESS_NS);
    Task {
        subject: point.subject.name.clone(),
        part: point.part(),
        guess_ns: SOLVE_GUESS_NS / parallel + point.subject.kind.creation_ns() + load,
    }
}

/// The load on these cpus, or why there is none.
fn elsewhere(cpus: &[u32]) -> Result<PlannedLoad, String> {
    if cpus.is_empty() {
        return Err("the threads use every cpu, so none is left for the load".to_owned());
    }
    let mut plan = LoadPlan::new(LoadKind::Cpu);
    plan.cpus = cpus.to_vec();
    load::resolve(&plan, cpus).map_err(|unmet| unmet.reason)
}

fn conditions(
    fifo: Option<u8>,
    sensor: Option<&Sensor>,
    points: &[Point],
    chosen: &[u32],
) -> Vec<record::Condition> {
    let class = match fifo {
        Some(priority) => format!("FIFO {priority}, set before the threads are started"),
        None => "OTHER, not real-time".to_owned(),
    };
    let temperature = match sensor {
        Some(sensor) => format!(
            "{}, read before the release and after the last thread",
            sensor.name
        ),
        None => "no sensor here".to_owned(),
    };
    let cpus = match chosen {
        [] => "each thread is pinned to one cpu, the highest first, in turn".to_owned(),
        chosen => format!(
            "each thread is pinned to one of cpus {} (--cpus), the highest first, in turn",
            host::cpus::format_list(chosen)
        ),
    };
    let load = match points.iter().find_map(|point| point.load.as_ref()) {
        Some(load) => format!("cpu ({}), pinned to all cpus without a thread", load.form),
        None => "none: no cpu is left for it".to_owned(),
    };
    vec![
        Condition::new(
            "computation",
            format!(
                "all {SOLUTIONS} ways to place {QUEENS} queens, by backtracking, dealt out to the threads by the places \
                 of the first two queens; another number of ways fails the measurement"
            ),
        ),
        Condition::new(
            "time",
            "from the release until the last thread has ended; creation of the cell is no part of it",
        ),
        Condition::new("class", class),
        Condition::new("cpus", cpus),
        Condition::new("load elsewhere", load),
        Condition::new("temperature", temperature),
    ]
}

impl NQueens {
    fn open(
        run: &Run,
        points: Vec<Point>,
        fifo: Option<u8>,
        sensor: Option<Sensor>,
    ) -> Result<NQueens, BenchError> {
        let mut stage = Stage::of_run(run)?;
        let contained = points.iter().any(|p| p.subject.kind != EngineKind::Bare);
        let group = if fifo.is_some() && contained {
            shared_rt_group(&mut stage.place, 0)?
        } else {
            None
        };
        Ok(NQueens {
            points,
            fifo,
            sensor,
            group,
            stage,
        })
    }

    fn spec(&self, point: &Point, number: u32) -> Result<CellSpec, String> {
        let args = QueensArgs {
            control: "/cell/control".to_owned(),
            page: "/cell/queens".to_owned(),
            n: QUEENS,
            threads: point.threads,
            cpus: point.cpus.clone(),
            fifo: self.fifo,
            class_by: if point.subject.sets_class() {
                ClassBy::Cell
            } else {
                ClassBy::Coordinator
            },
        };
        let subject = &point.subject;
        let name = format!("{number}-{}", subject.kind);
        let (kind, user) = (subject.kind, subject.user.as_ref());
        let rights = rights(self.fifo.unwrap_or(0));
        (self.stage.spec(&name, kind, user, args.to_words(), rights))
            .map_err(|error| error.to_string())
    }
}

impl Bench for NQueens {
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String> {
        let point = &self.points[turn.task];
        let spec = self.spec(point, turn.number)?;
        let result = Case {
            all: self,
            point,
            turn,
        }
        .run(&spec);
        let _ = std::fs::remove_dir_all(&spec.work_dir);
        result
    }
}

/// One computation in one cell.
struct Case<'a> {
    all: &'a NQueens,
    point: &'a Point,
    turn: &'a Turn<'a>,
}

impl Case<'_> {
    fn run(&self, spec: &CellSpec) -> Result<Vec<Reading>, String> {
        let shared = &self.all.stage.shared;
        let cells =
            Cells::new(shared, 1, Some(self.turn.interrupt)).map_err(|error| error.to_string())?;
        let page = Queens::create(&shared.join("queens")).map_err(|error| error.to_string())?;
        cells.add(0..1, self.point.subject.create(spec)?);
        let readings = self.solve(&cells, &page);
        let ended = cells.end().result();
        readings.and_then(|readings| ended.map(|()| readings))
    }

    fn solve(&self, cells: &Cells<'_>, page: &Queens) -> Result<Vec<Reading>, String> {
        let (all, point) = (self.all, self.point);
        let placement = (point.subject).placement(all.group.as_ref(), &point.cpus, all.fifo);
        cells.seat(0..1, &placement)?;
        cells.reach(0..1, State::Armed, ARMING_NS)?;
        cells.verify(0, &[cells::class(all.fifo)])?;
        if let Some(planned) = &point.load {
            cells.start_load(&load::Start {
                planned,
                place: &all.stage.place,
                rootfs: &all.stage.rootfs,
                trial: self.turn.number,
                setting: Setting {
                    cpus: planned.cpus.clone(),
                    ..Setting::default()
                },
            })?;
        }
        cells.open_windows();
        let before = self.temperature();
        cells.barrier.open(Barrier::lead_ns(1));
        cells.reach(0..1, State::Done, SOLVING_NS)?;
        let after = self.temperature();
        cells.close_windows();
        let solved = page.solved().ok_or("the payload left no result")?;
        self.readings(&solved, before, after)
    }

    fn readings(
        &self,
        solved: &Solved,
        before: Option<i64>,
        after: Option<i64>,
    ) -> Result<Vec<Reading>, String> {
        if solved.solutions != SOLUTIONS {
            return Err(format!(
                "found {} solutions instead of {SOLUTIONS}",
                solved.solutions
            ));
        }
        let part = self.point.part();
        let mut readings = vec![
            Reading::whole(part.clone(), Quantity::Ns, solved.wall_ns),
            Reading::whole(format!("cpu time, {part}"), Quantity::Ns, solved.cpu_ns),
        ];
        for (when, value) in [("before", before), ("after", after)] {
            let name = format!("temperature {when}, {part}");
            readings.extend(value.map(|value| Reading::whole(name, Quantity::Millicelsius, value)));
        }
        Ok(readings)
    }

    fn temperature(&self) -> Option<i64> {
        self.all.sensor.as_ref().and_then(Sensor::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_the_highest_of_the_cpus_that_they_may_use() {
        let all = [0, 1, 2, 3];
        assert_eq!(own_cpus(&all, &[], 2), [3, 2]);
        assert_eq!(own_cpus(&all, &[0, 2], 1), [2]);
        assert_eq!(own_cpus(&all, &[0, 2], 4), [2, 0]);
        assert_eq!(own_cpus(&[0], &[], 4), [0]);
    }
}
