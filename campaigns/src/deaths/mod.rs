//! Kills and stops the processes that hold spinning cells, at random moments, and reports for how long a cell ran without
//! a budget and for how long it had no cpu. The cells themselves record when they ran, not the processes that hold them.

mod cell;
mod figures;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use cell::Cell;
use figures::Figures;
use freezer::page::{self, Page};
use freezer::process::Place;
use freezer::{Hold, Reservation, Stop};

use super::{Failure, built};

/// The processes to kill or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Nothing, to compare with.
    None,
    Keeper,
    Watcher,
    /// Both at once.
    Both,
    KeeperStop,
    WatcherStop,
    BothStop,
    /// Heir, watcher and keeper; this process then acts as the next supervisor.
    All,
}

const CASES: [(&str, Case); 8] = [
    ("none", Case::None),
    ("keeper", Case::Keeper),
    ("watcher", Case::Watcher),
    ("both", Case::Both),
    ("keeper-stop", Case::KeeperStop),
    ("watcher-stop", Case::WatcherStop),
    ("both-stop", Case::BothStop),
    ("all", Case::All),
];

/// Budgets and periods of the cells, us, the most urgent first.
const CELLS: [(i64, i64); 2] = [(3_000, 10_000), (1_000, 10_000)];
/// How long after an event the cells are looked at, ns.
const AFTER: Duration = Duration::from_millis(400);
/// How long the processes may take until all are there again.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long is a cell without its budget, or without the cpu, when the processes that hold it are killed or stopped?
#[derive(Args)]
pub struct Options {
    /// The cells' cpu, on which real-time threads spin; the last one unless told.
    #[arg(long)]
    cpu: Option<u32>,
    /// Events of each case.
    #[arg(long, default_value_t = 40)]
    events: usize,
    /// Seed of the moments.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The keeper: this program instead of the release build of timecell.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// none, keeper, watcher, both, keeper-stop, watcher-stop, both-stop or all; with `+` behind, just before a budget is used up, which
    /// is the worst moment.
    #[arg(value_parser = Aimed::of, default_values = ["keeper", "watcher", "both", "keeper-stop", "watcher-stop"])]
    cases: Vec<Aimed>,
}

/// A case, at random moments or at the worst ones.
#[derive(Clone)]
struct Aimed {
    name: String,
    case: Case,
    is_aimed: bool,
}

impl Aimed {
    fn of(word: &str) -> Result<Aimed, String> {
        let plain = word.strip_suffix('+');
        let (_, case) = (CASES.into_iter())
            .find(|(name, _)| *name == plain.unwrap_or(word))
            .ok_or_else(|| {
                format!(
                    "it must be one of {}",
                    CASES.map(|(name, _)| name).join(", ")
                )
            })?;
        Ok(Aimed {
            name: word.to_owned(),
            case,
            is_aimed: plain.is_some(),
        })
    }
}

/// Everything that has to be gone at the end: cells first, then those who hold them.
struct Campaign {
    place: Place,
    dir: PathBuf,
    holds: Vec<Hold>,
    ids: Vec<u64>,
}

impl Drop for Campaign {
    fn drop(&mut self) {
        for hold in &self.holds {
            let _ = fs::write(hold.path().join("cgroup.kill"), "1");
        }
        let until = Instant::now() + PATIENCE;
        for (hold, id) in self.holds.iter().zip(&self.ids) {
            let _ = self.place.release(*id);
            while hold.remove().is_err() && Instant::now() < until {
                cell::reap();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        while self.place.dir().join("page").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Kills or stops the processes of each case in turn and prints what the cells received.
///
/// # Errors
///
/// If cells cannot be made or held, or nobody replaces a process.
pub fn run(options: &Options) -> Result<(), Failure> {
    let online = host::cpus::online()?;
    let cpu = options.cpu.or(online.last().copied()).unwrap_or(0);
    let cgroups = host::cgroup::detect()?;
    let own = std::process::id();
    let dir = page::memory().join(format!("timecell-deaths-{own}"));
    let program = match &options.binary {
        Some(program) => program.canonicalize()?,
        None => built::timecell()?,
    };
    let place = Place::new(dir.join("place"), program);
    let mut campaign = Campaign {
        place,
        dir,
        holds: Vec::new(),
        ids: Vec::new(),
    };
    fs::create_dir(&campaign.dir)?;
    let mut cells = Vec::new();
    for (at, (budget, period)) in CELLS.into_iter().enumerate() {
        let hold = Hold::make(&cgroups, &format!("timecell-deaths-{own}-{at}"))?;
        campaign.holds.push(hold.clone());
        let reservation = Reservation::new(budget * 1000, period * 1000)?;
        let inner = hold.path().join(freezer::hold::INNER);
        fs::create_dir(&inner)?;
        let cell = Cell::start(&inner, cpu, 80 - at as u8)?;
        let id = campaign
            .place
            .hold(hold.path(), Stop::Lower, cpu, reservation)?;
        campaign.ids.push(id);
        cells.push((cell, reservation));
    }
    // Away from the cells' cpu.
    let others: Vec<u32> = (online.into_iter()).filter(|other| *other != cpu).collect();
    if !others.is_empty() {
        host::sched::set_affinity(0, &others)?;
    }
    let page = campaign.place.page()?.ok_or("no page")?;
    wait_for_all(&page)?;
    cells.iter().for_each(|(cell, _)| cell.go());
    std::thread::sleep(Duration::from_millis(500));
    println!(
        "{} events a case, seed {}, cells {} on cpu {}",
        options.events,
        options.seed,
        CELLS
            .map(|(budget, period)| format!("{budget}/{period} us"))
            .join(" and "),
        cpu
    );
    let from_ns = cell::now_ns();
    print_costs(&page);
    let wall = (cell::now_ns() - from_ns) as f64;
    for ((cell, _), (budget, period)) in cells.iter().zip(CELLS) {
        let ran = cell.ran_since(from_ns);
        let used = |of: Option<&cell::Stretch>| of.map_or(0, |of| of.used);
        let used = used(ran.last()) - used(ran.first());
        let share = used as f64 / wall * period as f64 / budget as f64;
        println!(
            "cell {budget}/{period}: uses {:.1} % of its budget by its own cpu clock",
            share * 100.0
        );
    }
    println!(
        "case           cell        beyond its budget us: median   99 %    max      longest gap ms: median   max    replaced after us: median    max"
    );
    let mut random = Random(options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut figures: Vec<Figures> = options
        .cases
        .iter()
        .map(|_| Figures::new(CELLS.len()))
        .collect();
    // The cases take turns, so that other events on the machine meet all alike.
    for _ in 0..options.events {
        for (aimed, figures) in options.cases.iter().zip(&mut figures) {
            let page = campaign.place.page()?.ok_or("no page")?;
            wait_for_all(&page)?;
            std::thread::sleep(Duration::from_micros(20_000 + random.below(50_000)));
            if aimed.is_aimed {
                let cell = random.below(CELLS.len() as u64) as usize;
                let before_ns = random.below(150_000) as i64;
                wait_for_budget(&page, campaign.ids[cell], before_ns)?;
            }
            let event = event(aimed.case, &page, &campaign.place)?;
            std::thread::sleep(AFTER.saturating_sub(event.at.elapsed()));
            figures.replaced.extend(event.replaced_after_ns);
            let until_ns = event.at_ns + AFTER.as_nanos() as i64;
            for (at, (cell, reservation)) in cells.iter().enumerate() {
                let ran = cell.ran_since(event.at_ns - 30_000_000);
                figures.add(at, &ran, event.at_ns, until_ns, *reservation, cpu);
            }
        }
    }
    for (aimed, figures) in options.cases.iter().zip(&figures) {
        figures.print(&aimed.name, &CELLS);
    }
    Ok(())
}

/// The cpu use of the processes while none dies.
fn print_costs(page: &Page) {
    let pids = [
        ("keeper", page.keeper()),
        ("watcher", page.watcher()),
        ("heir", page.heir()),
    ];
    let used = || pids.map(|(_, pid)| cell::cpu_ns(pid));
    let (before, began) = (used(), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let wall = began.elapsed().as_nanos() as f64;
    let shares = used().into_iter().zip(before).zip(pids);
    let shares: Vec<String> = shares
        .map(|((after, before), (name, _))| {
            format!("{name} {:.2} %", (after - before) as f64 / wall * 100.0)
        })
        .collect();
    println!("cpu used: {}", shares.join(", "));
}

/// Waits until so long before a group's budget can be used up.
fn wait_for_budget(page: &Page, id: u64, before_ns: i64) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let end_ns = || {
        let groups = page.groups();
        let progress = groups.into_iter().find(|group| group.which.id == id)?;
        let progress = progress.progress;
        let end_ns = progress.state.looked_ns + progress.state.left_ns;
        (progress.state.left_ns > 0 && end_ns - before_ns > cell::now_ns()).then_some(end_ns)
    };
    while Instant::now() < until {
        if let Some(end_ns) = end_ns() {
            while cell::now_ns() < end_ns - before_ns {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    Err("no budget is ever used up".into())
}

/// Waits until keeper, watcher and heir are there.
fn wait_for_all(page: &Page) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    while !page.is_watched() || !page.has_heir() {
        if Instant::now() > until {
            return Err("keeper, watcher and heir are not all there".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

struct Event {
    at: Instant,
    at_ns: i64,
    replaced_after_ns: Option<i64>,
}

fn event(case: Case, page: &Page, place: &Place) -> Result<Event, Failure> {
    let (keeper, watcher, heir) = (page.keeper(), page.watcher(), page.heir());
    let (at, at_ns) = (Instant::now(), cell::now_ns());
    let (kill, stop) = (libc::SIGKILL, libc::SIGSTOP);
    let victims: &[(i32, i32)] = match case {
        Case::None => &[],
        Case::Keeper => &[(keeper, kill)],
        Case::Watcher => &[(watcher, kill)],
        // In this order the watcher does not take over first.
        Case::Both => &[(watcher, kill), (keeper, kill)],
        Case::KeeperStop => &[(keeper, stop)],
        Case::WatcherStop => &[(watcher, stop)],
        Case::BothStop => &[(watcher, stop), (keeper, stop)],
        Case::All => &[(heir, kill), (watcher, kill), (keeper, kill)],
    };
    for (pid, signal) in victims {
        // SAFETY: no memory is involved; processes of this place, which have just been seen at work.
        if unsafe { libc::kill(*pid, *signal) } != 0 {
            return Err(format!("process {pid}: {}", std::io::Error::last_os_error()).into());
        }
    }
    if case == Case::All {
        place.adopt()?;
    }
    let is_replaced = || match case {
        Case::None => true,
        Case::Watcher | Case::WatcherStop => page.watcher() != watcher && page.is_watched(),
        _ => page.keeper() != keeper && page.resumed_ns() > at_ns,
    };
    let until = at + PATIENCE;
    while !is_replaced() {
        if Instant::now() > until {
            return Err(format!("{case:?}: nobody took the place").into());
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    let is_watchers = matches!(case, Case::Watcher | Case::WatcherStop);
    let replaced_ns = match is_watchers {
        true => cell::now_ns(),
        false => page.resumed_ns(),
    };
    Ok(Event {
        at,
        at_ns,
        replaced_after_ns: (case != Case::None).then_some(replaced_ns - at_ns),
    })
}

/// Marsaglia's xorshift: the same moments for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
