//! Measures the cpu cost of holding spinning cells to budgets: the work that one ordinary process (nice -20) and all
//! cells get done together, compared with the work that the ordinary process gets done alone. The difference went to the
//! enforcer, be it a thread or the kernel's own bookkeeping, and to the switches and cold caches that it causes.
//!
//! In each round every number of cells is held by the freezer and, where the kernel has them, by real-time groups,
//! together to a share of the cpu; the arms take turns. Needs root and cgroup v2. Leaves nothing behind, even after
//! SIGINT and SIGTERM.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use freezer::keeper::PRIORITY;
use freezer::{Keeper, Reservation, Stop};
use host::rtgroup::RtGroup;
use host::sched::{self, Class};

use super::spinners::cell;
use super::{Failure, shared, signals};

/// The keeper is to end: when the cells have.
static END: AtomicBool = AtomicBool::new(false);
/// The class of the cells.
const CELL: Class = Class::Fifo { priority: 80 };
/// Most processes of an arm, the ordinary one among them.
const MOST: usize = 65;

/// State shared by all processes of an arm.
struct Page {
    go: AtomicBool,
    end: AtomicBool,
    /// How often each has done a fixed piece of work.
    done: [AtomicU64; MOST],
}

/// How much of a cpu does it cost to hold spinning cells to budgets?
#[derive(Args)]
pub struct Options {
    /// The cells' cpu.
    cpu: u32,
    /// How long each arm of a round goes on, 0.1 to 60.
    #[arg(value_parser = |word: &str| within(word, 0.1..=60.0))]
    seconds: f64,
    /// Number of rounds.
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Share of the cpu that all cells have together, percent, 1 to 80.
    #[arg(value_parser = |word: &str| within(word, 1.0..=80.0))]
    share: f64,
    /// The cells' period, us.
    period_us: i64,
    /// Numbers of cells, each an arm of its own.
    #[arg(required = true, value_parser = clap::value_parser!(u64).range(1..MOST as u64))]
    cells: Vec<u64>,
}

fn within(word: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    (word.parse().ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("it must be {} to {}", range.start(), range.end()))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Arm {
    Alone,
    Freezer(usize),
    RtGroup(usize),
}

/// Measures the arms and prints the share that each has lost.
///
/// # Errors
///
/// If cells or the enforcing thread cannot be made.
pub fn run(options: &Options) -> Result<(), Failure> {
    signals::note();
    let others: Vec<u32> = (host::cpus::online()?.into_iter())
        .filter(|cpu| *cpu != options.cpu)
        .collect();
    if !others.is_empty() {
        sched::set_affinity(0, &others)?;
    }
    let mut arms = vec![Arm::Alone];
    for cells in options.cells.iter().map(|cells| *cells as usize) {
        arms.push(Arm::Freezer(cells));
        if host::rtgroup::detect().is_ok() {
            arms.push(Arm::RtGroup(cells));
        }
    }
    let mut lost: Vec<Vec<f64>> = vec![Vec::new(); arms.len()];
    let mut keepers: Vec<Vec<f64>> = vec![Vec::new(); arms.len()];
    for round in 0..options.rounds as usize {
        let mut rates = vec![0.0; arms.len()];
        // Each round begins with the next arm.
        for at in (0..arms.len()).map(|place| (place + round) % arms.len()) {
            let (rate, keeper) = measured(arms[at], options)?;
            if signals::came() {
                return Err("interrupted; nothing is left behind".into());
            }
            rates[at] = rate;
            keepers[at].extend(keeper);
        }
        for (lost, rate) in lost.iter_mut().zip(&rates) {
            lost.push((1.0 - rate / rates[0]) * 100.0);
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    println!(
        "cpu lost compared with one process alone, median of {} rounds [95 % interval]",
        options.rounds
    );
    for (arm, (lost, keepers)) in arms.iter().zip(lost.iter_mut().zip(&mut keepers)).skip(1) {
        lost.sort_by(f64::total_cmp);
        keepers.sort_by(f64::total_cmp);
        let (low, high) = interval(lost);
        let thread = middle(keepers).map_or(String::new(), |share| {
            format!(", {share:.2} % of it by the enforcing thread itself")
        });
        println!(
            "{:<12} {:>6.2} % [{low:.2}, {high:.2}]{thread}",
            format!("{arm:?}"),
            middle(lost).unwrap_or(f64::NAN),
        );
    }
    Ok(())
}

/// The median of sorted values.
fn middle(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// Between which of the sorted values the median lies with 95 % confidence, by the sign test; of fewer than six the least and the most, which
/// is less.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len();
    let mut below = 0;
    let (mut term, mut sum) = (0.5_f64.powi(count as i32), 0.0);
    while below < count / 2 && sum + term <= 0.025 {
        sum += term;
        term *= (count - below) as f64 / (below + 1) as f64;
        below += 1;
    }
    let low = below.saturating_sub(1);
    (sorted[low], sorted[count - 1 - low])
}

/// Everything that an arm made; gone when it is dropped.
#[derive(Default)]
struct Made {
    pids: Vec<i32>,
    frozen: Vec<PathBuf>,
    groups: Vec<RtGroup>,
}

impl Made {
    /// Before the keeper ends: a process that spins without a budget starves those on which the end of the others depends.
    fn kill(&mut self) {
        for group in &self.frozen {
            let _ = fs::write(group.join("cgroup.kill"), "1");
        }
        for pid in self.pids.drain(..) {
            // SAFETY: our own children, not waited for yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.kill();
        for group in self.groups.drain(..) {
            let _ = group.remove();
        }
        let until = Instant::now() + Duration::from_secs(5);
        for group in &self.frozen {
            while fs::remove_dir(group).is_err() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Pieces of work a second of an arm, and the enforcing thread's share of the cpu, %.
fn measured(arm: Arm, options: &Options) -> Result<(f64, Option<f64>), Failure> {
    let cells = match arm {
        Arm::Alone => 0,
        Arm::Freezer(cells) | Arm::RtGroup(cells) => cells,
    };
    // SAFETY: atomics only.
    let page: &Page = unsafe { shared::page()? };
    let mut made = Made::default();
    // All are made by fork while this process has one thread.
    for place in 0..=cells {
        let cpu = options.cpu;
        let class = (place > 0).then_some(CELL);
        made.pids
            .push(cell::child(move || work(page, place, cpu, class))?);
    }
    let budget_us = (options.share / 100.0 * options.period_us as f64 / cells.max(1) as f64) as i64;
    let mut keeper = None;
    match arm {
        Arm::Alone => {}
        Arm::RtGroup(_) => {
            for place in 1..=cells {
                let name = format!("timecell-cost-{}-{place}", std::process::id());
                let group = RtGroup::create(
                    &name,
                    budget_us.unsigned_abs(),
                    options.period_us.unsigned_abs(),
                )?;
                group.add(made.pids[place])?;
                made.groups.push(group);
            }
        }
        Arm::Freezer(_) => {
            let top = host::cgroup::detect()?;
            let top = top.v2_group(&host::root::Root::live(), 0);
            let top = top.ok_or("no cgroup v2 is mounted here")?;
            let mut one = Keeper::new(options.cpu, PRIORITY, &top)?;
            for place in 1..=cells {
                let group = group(&top, place, &mut made)?;
                fs::write(group.join("cgroup.procs"), made.pids[place].to_string())?;
                one.add(
                    &group,
                    Stop::Lower,
                    Reservation::new(budget_us * 1000, options.period_us * 1000)?,
                )?;
            }
            keeper = Some(one);
        }
    }
    END.store(false, Ordering::Relaxed);
    let kept = keeper.map(|mut keeper| {
        let (stats, handle) = (keeper.stats(), keeper.handle());
        let thread = std::thread::spawn(move || keeper.run(&END));
        while stats.alive_ns.load(Ordering::Relaxed) == 0 && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        (stats, handle, thread)
    });
    page.go.store(true, Ordering::Relaxed);
    pause(0.3);
    let mark = || {
        let done: u64 = page
            .done
            .iter()
            .map(|done| done.load(Ordering::Relaxed))
            .sum();
        let keeper = kept
            .as_ref()
            .map_or(0, |(stats, _, _)| stats.own_cpu_ns.load(Ordering::Relaxed));
        (Instant::now(), done, keeper)
    };
    let before = mark();
    pause(options.seconds);
    let after = mark();
    page.end.store(true, Ordering::Relaxed);
    made.kill();
    let wall = (after.0 - before.0).as_secs_f64();
    let mut share = None;
    if let Some((_, handle, thread)) = kept {
        END.store(true, Ordering::Relaxed);
        handle.wake();
        thread
            .join()
            .map_err(|_| "the enforcing thread panicked")??;
        share = Some((after.2 - before.2) as f64 / 1e9 / wall * 100.0);
    }
    Ok(((after.1 - before.1) as f64 / wall, share))
}

/// Until then, or until a signal comes.
fn pause(seconds: f64) {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while !signals::came() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

fn group(top: &Path, place: usize, made: &mut Made) -> Result<PathBuf, Failure> {
    let dir = top.join(format!("timecell-cost-{}-{place}", std::process::id()));
    fs::create_dir(&dir)?;
    made.frozen.push(dir.clone());
    Ok(dir)
}

/// Waits for the start and then does pieces of work, each of some microseconds, until it is killed.
fn work(page: &Page, place: usize, cpu: u32, class: Option<Class>) {
    // SAFETY: only how this process's pages are kept changes.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    while !page.go.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let got = sched::set_affinity(0, &[cpu])
        .and_then(|()| (class.as_ref()).map_or(Ok(()), |class| sched::set_class(0, class)));
    if let Err(error) = got {
        eprintln!("cell: {error}");
        return;
    }
    if class.is_none() {
        // Other work on this cpu is to get next to nothing meanwhile, in every arm.
        // SAFETY: a number for the calling process.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    }
    let mut state = place as u64;
    while !page.end.load(Ordering::Relaxed) {
        for _ in 0..2_000 {
            state = std::hint::black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
        }
        page.done[place].fetch_add(1, Ordering::Relaxed);
    }
}
