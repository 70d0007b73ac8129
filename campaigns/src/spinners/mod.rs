//! Runs spinning cells side by side under budgets held by the freezer and reports the supply of each, how far periods
//! overrun, how long a cell is without the cpu, and the cost of the enforcing thread.
//!
//! Needs root and cgroup v2. Leaves nothing behind, even after SIGINT and SIGTERM.

pub mod cell;
pub mod contender;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use cell::{Behaviour, Cell};
use freezer::keeper::PRIORITY;
use freezer::stats::GroupStats;
use freezer::{Id, Keeper, Reservation, Senses, Stop};

use super::{Failure, signals};

/// The keeper is to end: when the cells have.
static END: AtomicBool = AtomicBool::new(false);
const MS: u64 = 1_000_000;

/// How well does the freezer hold spinning cells to their budgets, and what does it cost?
#[derive(Args)]
pub struct Options {
    /// Reads the clock and cpu.stat only, as where perf does not count.
    #[arg(long)]
    clock: bool,
    /// Behaviour of the cells' threads.
    #[arg(long, value_enum, default_value = "spin")]
    behaviour: Behaviour,
    /// Cells that sleep, beside the others, with the first one's reservation.
    #[arg(long, default_value_t = 0)]
    idle: usize,
    /// The cells' cpu.
    cpu: u32,
    /// How long they spin.
    seconds: u64,
    /// Budget and period of a cell, us, and its threads, such as 3000/10000/1.
    #[arg(required = true, value_parser = Shape::of)]
    cells: Vec<Shape>,
}

/// A cell to make.
#[derive(Clone, Copy)]
struct Shape {
    budget_us: i64,
    period_us: i64,
    threads: usize,
}

impl Shape {
    fn of(word: &str) -> Result<Shape, String> {
        let numbers: Result<Vec<u32>, _> = word.split('/').map(str::parse).collect();
        match numbers.as_deref() {
            Ok([budget, period, threads]) => Ok(Shape {
                budget_us: (*budget).into(),
                period_us: (*period).into(),
                threads: *threads as usize,
            }),
            _ => Err("it must be three numbers, BUDGET/PERIOD/THREADS".to_owned()),
        }
    }
}

/// The groups of this run, with their processes; all are gone when it is dropped.
struct Places(Vec<PathBuf>);

impl Places {
    fn make(&mut self, top: &Path) -> Result<&Path, Failure> {
        let number = self.0.len();
        let dir = top.join(format!("timecell-spinners-{}-{number}", std::process::id()));
        fs::create_dir(&dir)?;
        self.0.push(dir);
        Ok(&self.0[number])
    }

    /// Ends all processes, in frozen groups too. Before the keeper ends: a process that spins without a budget starves those on which
    /// the end of the others depends.
    fn kill(&self) {
        for place in &self.0 {
            let _ = fs::write(place.join("cgroup.kill"), "1");
        }
    }
}

impl Places {
    /// Whether a process has not ended yet.
    fn are_populated(&self) -> bool {
        cell::reap();
        let events = |place: &PathBuf| fs::read_to_string(place.join("cgroup.events"));
        (self.0.iter()).any(|place| events(place).is_ok_and(|text| text.contains("populated 1")))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        self.kill();
        let until = Instant::now() + Duration::from_secs(20);
        for place in &self.0 {
            while fs::remove_dir(place).is_err() && Instant::now() < until {
                cell::reap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Runs the cells and prints what each received.
///
/// # Errors
///
/// If cells or the enforcing thread cannot be made.
pub fn run(options: &Options) -> Result<(), Failure> {
    signals::note();
    let top = host::cgroup::detect()?;
    let top = top.v2_group(&host::root::Root::live(), 0);
    let top = top.ok_or("no cgroup v2 is mounted here")?;
    // Cells first, while this process has one thread: they are made by fork.
    let mut places = Places(Vec::new());
    let mut cells = Vec::new();
    let sleeping = (0..options.idle).map(|_| (options.cells[0], Behaviour::Sleep));
    let wanted = options.cells.iter().map(|cell| (*cell, options.behaviour));
    for (shape, behaviour) in wanted.chain(sleeping) {
        let place = places.make(&top)?;
        let cell = Cell::start(place, options.cpu, behaviour, shape.threads)?;
        cells.push((
            cell,
            Reservation::new(shape.budget_us * 1000, shape.period_us * 1000)?,
        ));
    }
    let beside = contender::Ordinary::start(options.cpu, options.behaviour)?;
    let mut keeper = match options.clock {
        true => Keeper::with(options.cpu, PRIORITY, Senses::clock("asked for"))?,
        false => Keeper::new(options.cpu, PRIORITY, &top)?,
    };
    println!(
        "enforcer  FIFO {PRIORITY} on cpu {}; {}",
        options.cpu,
        keeper.senses()
    );
    let ids: Vec<Id> = (places.0.iter().zip(&cells))
        .map(|(place, (_, reservation))| keeper.add(place, Stop::Lower, *reservation))
        .collect::<Result<_, _>>()?;
    // Away from the cells' cpu, so that reading does not disturb.
    let others: Vec<u32> = (host::cpus::online()?.into_iter())
        .filter(|cpu| *cpu != options.cpu)
        .collect();
    if !others.is_empty() {
        host::sched::set_affinity(0, &others)?;
    }
    let (stats, handle) = (keeper.stats(), keeper.handle());
    let thread = std::thread::spawn(move || keeper.run(&END));
    while stats.alive_ns.load(Ordering::Relaxed) == 0 && !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    cells.iter().for_each(|(cell, _)| cell.go());
    let sleep = |seconds: f64| {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < until && !signals::came() && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    sleep(0.5);
    let mark = || {
        let used: Vec<i64> = cells.iter().map(|(cell, _)| cell.used_ns()).collect();
        let keeper = stats.own_cpu_ns.load(Ordering::Relaxed);
        let wakeups = stats.wakeups.load(Ordering::Relaxed);
        (Instant::now(), used, keeper, wakeups, beside.used_ns())
    };
    let of_each = |pick: fn(&GroupStats) -> &AtomicI64| -> Vec<i64> {
        let groups = ids.iter().map(|id| stats.group(*id));
        let load = |group: Option<&GroupStats>| {
            group.map_or(0, |group| pick(group).load(Ordering::Relaxed))
        };
        groups.map(load).collect()
    };
    let best_effort = || of_each(|group| &group.best_effort_ns);
    let charged_ns = || of_each(|group| &group.used_ns);
    cells.iter().for_each(|(cell, _)| cell.forget_gaps());
    let (before, spared, charged) = (mark(), best_effort(), charged_ns());
    sleep(options.seconds as f64);
    let (after, spared_after, charged_after) = (mark(), best_effort(), charged_ns());
    let gaps: Vec<i64> = cells
        .iter()
        .map(|(cell, _)| cell.longest_gap_ns())
        .collect();

    let wall = (after.0 - before.0).as_nanos() as f64;
    println!(
        "cell            share %  charged %  granted %  of granted   best effort %  overrun us: median   99 %    max   longest gap ms  2(P-Q) ms  exhausted/periods  lowered"
    );
    for (place, (_, reservation)) in cells.iter().enumerate().take(options.cells.len()) {
        let (budget, period) = (reservation.budget_ns(), reservation.period_ns());
        let Some(group) = stats.group(ids[place]) else {
            continue;
        };
        let spared = (spared_after[place] - spared[place]) as f64 / wall;
        let share = (after.1[place] - before.1[place]) as f64 / wall - spared;
        let granted = budget as f64 / period as f64;
        let us = |permille| group.overruns.quantile_ns(permille) as f64 / 1e3;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "{:>6}/{:<8} {:>7.3}   {:>7.3}   {:>7.3}    {:>8.4}        {:>7.3}        {:>9.1} {:>7.1} {:>7.1}   {:>12.3}   {:>8.3}   {:>8}/{:<8} {:>7}{}",
            budget / 1000,
            period / 1000,
            share * 100.0,
            (charged_after[place] - charged[place]) as f64 / wall * 100.0,
            granted * 100.0,
            share / granted,
            spared * 100.0,
            us(500),
            us(990),
            group.overruns.most_ns() as f64 / 1e3,
            gaps[place] as f64 / 1e6,
            2.0 * (period - budget) as f64 / MS as f64,
            load(&group.exhausted),
            load(&group.periods),
            load(&group.lowered),
            match (
                load(&group.errors),
                load(&group.missed_notices),
                load(&group.deadline)
            ) {
                (0, 0, 0) => String::new(),
                (errors, missed, deadline) =>
                    format!("  errors {errors} missed {missed} deadline {deadline}"),
            },
        );
    }
    println!(
        "enforcing thread: {:.3} % of the cpu, {:.0} wake-ups a second, woke late by {:.1} / {:.1} / {:.1} us (median, 99 %, max), busy {:.1} / {:.1} / {:.1} us; ordinary work beside: {:.2} %",
        (after.2 - before.2) as f64 / wall * 100.0,
        (after.3 - before.3) as f64 / wall * 1e9,
        stats.late.quantile_ns(500) as f64 / 1e3,
        stats.late.quantile_ns(990) as f64 / 1e3,
        stats.late.most_ns() as f64 / 1e3,
        stats.busy.quantile_ns(500) as f64 / 1e3,
        stats.busy.quantile_ns(990) as f64 / 1e3,
        stats.busy.most_ns() as f64 / 1e3,
        (after.4 - before.4) as f64 / wall * 100.0,
    );
    places.kill();
    let until = Instant::now() + Duration::from_secs(20);
    while places.are_populated() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    END.store(true, Ordering::Relaxed);
    handle.wake();
    thread
        .join()
        .map_err(|_| "the enforcing thread panicked")??;
    Ok(())
}
