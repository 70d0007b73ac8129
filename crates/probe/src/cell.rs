//! The cell's side: present, placed, armed, released, measured, let go.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use host::sched::bandwidth::{GIVEN_BACK, set_class_when_free};
use host::sched::{self, Class};
use model::{Pacing, Work};
use record::samples::layout::Header;

use crate::args::{BarrierKind, ClassBy, ProbeArgs};
use crate::control::{GO, Slot, Stage, State};
use crate::count::{CountedSheet, Meter};
use crate::map::{ControlMap, Map};
use crate::measure::{self, Plan, Recorder, Sheet, Tally};
use crate::program::{self, Endless, Program, Reporting, Started};
use crate::ring::Ring;
use crate::sleep::{InBand, Sleep};
use crate::{arm, clock, futex};

/// Exit code of a probe that could not arm itself; its slot says why.
pub const EXIT_FAILED: i32 = 1;
/// Exit code of a probe whose command line was not understood or whose control page is unusable.
pub const EXIT_BAD_ARGS: i32 = 2;
/// Exit code of a probe whose coordinator fell silent or called the trial off.
pub const EXIT_ABANDONED: i32 = 3;

/// Longest wait for the coordinator: an orphan of a killed coordinator ends on its own.
const PATIENCE_NS: i64 = 3_600_000_000_000;
/// Rest of a cell that only stamps its start, until all of its peers have stamped theirs.
const AFTER_STAMP_NS: i64 = 10_000_000;
/// Longest wait to be let go after the last job.
const FAREWELL_NS: i64 = 120_000_000_000;

/// Runs a probe to its end; returns the process's exit code.
pub fn run(args: &ProbeArgs) -> i32 {
    let present_ns = clock::now();
    attend(&args.control, args.slot, present_ns, |control, slot| {
        live(args, 0, || take(args), control, slot)
    })
}

/// Sets the calling thread's cpus and class, if the cell does that itself.
pub(crate) fn take(args: &ProbeArgs) -> Result<(), (Stage, i32)> {
    if args.class_by == ClassBy::Coordinator {
        return Ok(());
    }
    if let Some(deadline) = &args.deadline {
        sched::set_affinity(0, &deadline.cpus).map_err(|error| (Stage::Affinity, error.errno()))?;
        // A peer of an earlier trial may hold its bandwidth still.
        return set_class_when_free(0, &deadline.class(), GIVEN_BACK)
            .map_err(|error| (Stage::Class, error.errno()));
    }
    arm::pin(args.cpu).map_err(|error| (Stage::Affinity, error.errno()))?;
    if let Some(priority) = args.fifo {
        arm::take_class(&Class::Fifo { priority })
            .map_err(|error| (Stage::Class, error.errno()))?;
    }
    Ok(())
}

/// Runs a payload that takes part in the barrier; a failure is written to its slot. Returns the exit code.
pub(crate) fn attend(
    path: &Path,
    slot: usize,
    present_ns: i64,
    live: impl FnOnce(&ControlMap, &Slot) -> Result<(), (Stage, i32)>,
) -> i32 {
    let control = match ControlMap::open(path) {
        Ok(control) => control,
        Err(error) => {
            eprintln!("probe: {}: {error}", path.display());
            return EXIT_BAD_ARGS;
        }
    };
    let Some(slot) = control.slot(slot) else {
        eprintln!("probe: the control page has no slot {slot}");
        return EXIT_BAD_ARGS;
    };
    slot.present_ns.store(present_ns, Relaxed);
    match live(&control, slot) {
        Ok(()) => 0,
        Err((stage, errno)) => {
            slot.stage.store(stage as u32, Relaxed);
            slot.errno.store(errno, Relaxed);
            report(&control, slot, State::Failed);
            if stage == Stage::Abandoned {
                EXIT_ABANDONED
            } else {
                EXIT_FAILED
            }
        }
    }
}

pub(crate) fn report(control: &ControlMap, slot: &Slot, state: State) {
    slot.state.store(state as u32, Release);
    control.head().events.fetch_add(1, Release);
    futex::wake_all(&control.head().events);
}

/// The steps of a thread that measures; `take` gives it its cpus and its class, `cpu_ns` is of [`Plan`].
pub(crate) fn live(
    args: &ProbeArgs,
    cpu_ns: i64,
    take: impl FnOnce() -> Result<(), (Stage, i32)>,
    control: &ControlMap,
    slot: &Slot,
) -> Result<(), (Stage, i32)> {
    let samples = map_samples(args).map_err(|errno| (Stage::MapSamples, errno))?;
    // The stack first: only pages that are there can be locked when the limit does not allow for all.
    arm::touch_stack();
    let locked = arm::lock_memory(samples.as_ref()) as u32;
    slot.memory_locked.store(locked, Relaxed);
    arm::least_timer_slack();
    let (meter, said) = Meter::of_this_thread(args.counters, args.period_ns);
    let costs = samples.as_ref().map(|map| {
        map.touch();
        let loop_cost_ns = match Sheets::of(args, map, meter.as_ref()) {
            Sheets::Whole(mut sheet) => {
                sheet.write_header(&said(sheet.read_header()));
                measure::rehearse(&mut sheet)
            }
            Sheets::Counted(mut sheet) => {
                sheet.write_header(&said(sheet.read_header()));
                measure::rehearse(&mut sheet)
            }
            Sheets::Ring(mut ring) => measure::rehearse(&mut ring),
        };
        (clock::reading_cost_ns(), loop_cost_ns)
    });

    report(control, slot, State::Present);
    wait_while(&slot.permit, |permit| permit == 0)?;
    take()?;
    // Where it was placed: a thread that has attached is not moved any more.
    let oob = (args
        .oob
        .then(|| {
            evl::Thread::attach(evl::Policy::Fifo {
                priority: args.fifo.unwrap_or(1),
            })
        })
        .transpose())
    .map_err(of_evl)?;
    // Once it is in the class that the program inherits.
    let mut worker = Worker::of(args)?;
    let (policy, priority) = arm::class_got();
    slot.policy.store(policy, Relaxed);
    slot.priority.store(priority, Relaxed);
    slot.cpu.store(arm::current_cpu(), Relaxed);
    slot.armed_ns.store(clock::now(), Relaxed);
    report(control, slot, State::Armed);
    // Before the release: the first job's time is not touched.
    let sheets = (samples.as_ref()).map(|map| Sheets::of(args, map, meter.as_ref()));

    let (go_ns, started_ns) = released(args, control, oob.as_ref())?;
    slot.started_ns.store(started_ns, Release);
    // Where the loop begins: at the release, after the rest, or with the first turn.
    let turns = args.turns.map(|turns| turns.timetable(args.period_ns));
    let begin = if (args.rest_ns > 0 || turns.is_some()) && samples.is_some() {
        let first_ns = go_ns + args.rest_ns + turns.map_or(0, |turns| turns.turn_ns(0));
        wait_until(first_ns, oob.as_ref());
        (first_ns, clock::now())
    } else {
        (go_ns, started_ns)
    };
    if let (Some(sheets), Some((clock_cost_ns, loop_cost_ns))) = (sheets, costs) {
        let armed = |before: Header| Header {
            started_ns,
            go_ns,
            policy,
            priority,
            memory_locked: locked,
            clock_cost_ns,
            loop_cost_ns,
            cpu_first: arm::current_cpu(),
            ..before
        };
        let doing = (&mut worker, oob.as_ref());
        match sheets {
            Sheets::Whole(mut sheet) => {
                measured(args, cpu_ns, doing, &mut sheet, begin, armed)?;
            }
            Sheets::Counted(mut sheet) => {
                measured(args, cpu_ns, doing, &mut sheet, begin, armed)?;
                sheet.write_header(&sheet.sums(sheet.read_header()));
            }
            Sheets::Ring(mut ring) => {
                measured(args, cpu_ns, doing, &mut ring, begin, armed)?;
            }
        }
    } else {
        // Only the stamp was wanted: out of the way first, so that the next steps do not delay a peer's stamp.
        clock::sleep_for(AFTER_STAMP_NS);
    }
    if let Some(thread) = oob {
        thread.detach();
    }
    // A peer that shares the cpu must not wait for this process to take itself apart. A deadline thread is taken out of
    // its class by the coordinator: its own two calls may be torn apart, and it be left without a runtime between them.
    if args.deadline.is_none() {
        let _ = arm::take_class(&Class::Other);
    }
    report(control, slot, State::Done);
    farewell(control);
    Ok(())
}

fn map_samples(args: &ProbeArgs) -> Result<Option<Map>, i32> {
    let Some(path) = &args.samples else {
        return Ok(None);
    };
    let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(errno)?;
    let map = Map::of(&file).map_err(errno)?;
    let fits = if args.ring {
        Ring::new(&map).is_some()
    } else {
        Sheet::new(&map, args.jobs).is_some()
    };
    if fits {
        Ok(Some(map))
    } else {
        Err(libc::EFBIG)
    }
}

/// Where records go: room for all, with their counts or without, or a ring.
enum Sheets<'a> {
    Whole(Sheet<'a>),
    Counted(CountedSheet<'a>),
    Ring(Ring<'a>),
}

impl<'a> Sheets<'a> {
    fn of(args: &ProbeArgs, map: &'a Map, meter: Option<&'a Meter>) -> Sheets<'a> {
        const CHECKED: &str = "checked when mapped";
        if args.ring {
            return Sheets::Ring(Ring::new(map).expect(CHECKED));
        }
        let counted = meter.and_then(|meter| {
            CountedSheet::new(map, args.jobs, meter, meter.read().unwrap_or_default())
        });
        match counted {
            Some(sheet) => Sheets::Counted(sheet),
            None => Sheets::Whole(Sheet::new(map, args.jobs).expect(CHECKED)),
        }
    }
}

pub(crate) fn wait_while(
    word: &std::sync::atomic::AtomicU32,
    waiting: impl Fn(u32) -> bool,
) -> Result<u32, (Stage, i32)> {
    let deadline = clock::now() + PATIENCE_NS;
    loop {
        let seen = word.load(Acquire);
        if !waiting(seen) {
            return Ok(seen);
        }
        if clock::now() >= deadline {
            return Err((Stage::Abandoned, libc::ETIMEDOUT));
        }
        futex::wait(word, seen, deadline);
    }
}

/// Waits for the release; returns the published instant and the first clock reading after it.
fn released(
    args: &ProbeArgs,
    control: &ControlMap,
    oob: Option<&evl::Thread>,
) -> Result<(i64, i64), (Stage, i32)> {
    if let BarrierKind::PollFile(file) = &args.barrier {
        let deadline = clock::now() + PATIENCE_NS;
        while !file.exists() {
            if clock::now() > deadline {
                return Err((Stage::Abandoned, libc::ETIMEDOUT));
            }
            clock::sleep_for(1_000_000);
        }
        let now = clock::now();
        return Ok((now, now));
    }
    let head = control.head();
    let go = wait_while(&head.go, |go| go == 0)?;
    if go != GO {
        return Err((Stage::Abandoned, libc::ECANCELED));
    }
    let go_ns = head.go_ns.load(Acquire);
    wait_until(go_ns, oob);
    Ok((go_ns, clock::now()))
}

fn wait_until(instant_ns: i64, oob: Option<&evl::Thread>) {
    match oob {
        Some(thread) => thread.until(instant_ns),
        None => InBand.until(instant_ns),
    }
}

pub(crate) fn of_evl(error: evl::EvlError) -> (Stage, i32) {
    (Stage::Evl, error.to_number())
}

/// Runs the jobs out of band; also the core's account of them.
fn out_of_band<R: Recorder>(
    thread: &evl::Thread,
    plan: &Plan<'_>,
    sheet: &mut R,
    begin: (i64, i64),
) -> Result<(Tally, evl::State, [u32; 4]), (Stage, i32)> {
    evl::count_causes();
    thread.warn(true).map_err(of_evl)?;
    let (before, causes) = (thread.state().map_err(of_evl)?, evl::causes());
    let tally = measure::run(plan, thread, sheet, begin.0, begin.1);
    let after = thread.state().map_err(of_evl)?;
    thread.warn(false).map_err(of_evl)?;
    let now = evl::causes();
    let state = evl::State {
        in_band_switches: after.in_band_switches.wrapping_sub(before.in_band_switches),
        context_switches: after.context_switches.wrapping_sub(before.context_switches),
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
    };
    let causes = std::array::from_fn(|one| now[one].wrapping_sub(causes[one]));
    Ok((tally, state, causes))
}

fn measured<R: Recorder>(
    args: &ProbeArgs,
    cpu_ns: i64,
    (worker, oob): (&mut Worker, Option<&evl::Thread>),
    sheet: &mut R,
    begin: (i64, i64),
    armed: impl FnOnce(Header) -> Header,
) -> Result<(), (Stage, i32)> {
    let header = armed(sheet.read_header());
    let plan = |program| Plan {
        work: args.work,
        cpu_ns,
        pacing: args.pacing,
        period_ns: args.period_ns,
        jobs: args.jobs,
        turns: args.turns.map(|turns| turns.timetable(args.period_ns)),
        program,
    };
    sheet.write_header(&header);
    worker.write_headers(&header);
    let before = arm::usage();
    let cpu_before = clock::thread_cpu_time();
    let children_before = program::children_cpu_ns();
    let (go_ns, started_ns) = begin;
    let mut account = None;
    let tally = match worker {
        Worker::Own => match oob {
            Some(thread) => {
                let (tally, state, causes) = out_of_band(thread, &plan(None), sheet, begin)?;
                account = Some((thread.level(), state, causes));
                tally
            }
            None => measure::run(&plan(None), &InBand, sheet, go_ns, started_ns),
        },
        Worker::Executions(program) => {
            measure::run(&plan(Some(&**program)), &InBand, sheet, go_ns, started_ns)
        }
        Worker::Reports(started) => match args.turns {
            Some(turns) => {
                let turns = turns.timetable(args.period_ns);
                started.take_turns(&plan(None), turns, sheet, go_ns)?
            }
            None => started.follow(&plan(None), args.fifo, sheet, go_ns)?,
        },
        Worker::Endless(life) => life.live(args.period_ns, sheet)?,
    };
    if let Some(failure) = tally.failure {
        return Err(failure);
    }
    let cpu_time_ns = match worker {
        Worker::Own => match account {
            Some((_, state, _)) => state.cpu_ns as i64,
            None => clock::thread_cpu_time() - cpu_before,
        },
        Worker::Executions(program) => {
            program.reap();
            program::children_cpu_ns() - children_before
        }
        Worker::Reports(_) | Worker::Endless(_) => tally.program_cpu_ns,
    };
    let ended_ns = clock::now();
    let after = arm::usage();
    // Starting a program faults, which says nothing of memory that a loop should have locked.
    let own = u64::from(matches!(worker, Worker::Own));
    let (evl_level, state, in_band_causes) = account.unwrap_or_default();
    let last = Header {
        count: (tally.executed - sheet.lost()).into(),
        skipped: tally.skipped.into(),
        planned: args.jobs.into(),
        complete: 1,
        ended_ns,
        period_ns: args.period_ns,
        work: match args.work {
            Work::Mac { .. } => 1,
            Work::Timer | Work::Busy => 2,
            Work::Program => 3,
            Work::Endless => 4,
        },
        pacing: match args.pacing {
            Pacing::Periodic => 1,
            Pacing::Relative => 2,
        },
        steps: match args.work {
            Work::Mac { steps } => steps,
            Work::Timer | Work::Busy | Work::Program | Work::Endless => 0,
        },
        cpu_last: arm::current_cpu(),
        cpu_time_ns: cpu_time_ns.max(0).unsigned_abs(),
        minor_faults: (after.minor_faults - before.minor_faults) * own,
        major_faults: (after.major_faults - before.major_faults) * own,
        voluntary_switches: after.voluntary - before.voluntary,
        involuntary_switches: after.involuntary - before.involuntary,
        over_declared: tally.over.into(),
        evl_level,
        in_band_switches: state.in_band_switches,
        in_band_causes,
        ..header
    };
    sheet.write_header(&last);
    worker.write_headers(&last);
    Ok(())
}

/// The executor of the jobs.
enum Worker {
    /// The probe itself.
    Own,
    /// A program, once for each job.
    Executions(Box<Program>),
    /// A program that waits to be let go and tells its jobs.
    Reports(Started),
    /// A program that is started and ended.
    Endless(Box<Endless>),
}

impl Worker {
    /// The executor of these jobs; a program that reports its jobs is started.
    fn of(args: &ProbeArgs) -> Result<Worker, (Stage, i32)> {
        let failed = |errno| (Stage::Start, errno);
        Ok(match (args.program.is_empty(), &args.page) {
            (true, _) => Worker::Own,
            _ if args.work == Work::Endless => {
                Worker::Endless(Box::new(Endless::new(&args.program, args.cpu, args.fifo)))
            }
            (false, None) => Worker::Executions(Box::new(
                (Program::new(&args.program, None).and_then(Program::with_reaper))
                    .map_err(failed)?,
            )),
            (false, Some(page)) => {
                let reporting = Reporting::new(args, page).map_err(failed)?;
                let mut started = reporting.start()?;
                if args.turns.is_some() {
                    // Until its first.
                    started.signal(libc::SIGSTOP);
                }
                Worker::Reports(started)
            }
        })
    }
}

impl Worker {
    /// Those of the records beside the first.
    fn write_headers(&self, first: &Header) {
        if let Worker::Reports(started) = self {
            started.write_headers(first);
        }
    }
}

pub(crate) fn farewell(control: &ControlMap) {
    let leave = &control.head().leave;
    let deadline = clock::now() + FAREWELL_NS;
    while leave.load(Acquire) == 0 && clock::now() < deadline {
        futex::wait(leave, 0, deadline);
    }
}
