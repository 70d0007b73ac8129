//! Faults at random moments: if anything dies or runs out, the machine is left as it was, and no finished cell's samples
//! are lost.
//!
//! A few runs here, each time with another seed, which a failure names; the campaign `faults` makes a
//! hundred. The expected contents of a run do not come from timecell: an independent witness reads the samples of every cell in
//! shared memory while they measure.

mod checks;
mod fault;
mod layout;
mod machine;
mod witness;

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::say;
use fault::{Fault, Ground};
use layout::Layout;
use machine::Machine;
use witness::Witness;

/// Number of runs in a test; variables that set another number, the seed and the first run.
const RUNS: u32 = 9;
const RUNS_SET: &str = "TIMECELL_FAULT_RUNS";
const SEED_SET: &str = "TIMECELL_FAULT_SEED";
const FIRST_SET: &str = "TIMECELL_FAULT_FIRST";

/// Longest time that a bench may take to end after a fault.
const PATIENCE: Duration = Duration::from_secs(90);

#[case(Root, GroupsOfItsOwn(120))]
fn the_machine_is_as_before_and_nothing_finished_is_lost() {
    let set = |name: &str| std::env::var(name).ok();
    let number = |name: &str| set(name).and_then(|text| text.parse::<u64>().ok());
    let runs = number(RUNS_SET).map_or(RUNS, |runs| u32::try_from(runs).unwrap());
    let first = number(FIRST_SET).map_or(1, |first| u32::try_from(first).unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number(SEED_SET).unwrap_or_else(|| now.unwrap().as_secs());
    let mut problems = Vec::new();
    let mut told = String::new();
    for run in first..first + runs {
        let outcome = one(seed, run);
        let line = format!("run {run}: {}", outcome.told);
        // Printed at once in a long campaign, and with the seed if a short one fails.
        eprintln!("{line}");
        told.push_str(&format!("{line}\n"));
        problems.extend(
            outcome
                .problems
                .iter()
                .map(|why| format!("run {run}: {why}")),
        );
        for why in &outcome.problems {
            eprintln!("run {run}: PROBLEM {why}");
        }
    }
    eprintln!("seed {seed}: {runs} runs, {} problems", problems.len());
    assert!(problems.is_empty(), "seed {seed}\n{told}\n{problems:#?}");
}

/// The outcome of one run.
struct Outcome {
    told: String,
    problems: Vec<String>,
}

fn one(seed: u64, run: u32) -> Outcome {
    let mut random = Random(seed ^ (u64::from(run) << 32));
    let kind = Fault::of(run, &mut random);
    let layout = Layout::random(&mut random, kind);
    let dir = tempfile::tempdir().unwrap();
    layout.write(dir.path());
    let mut ground = Ground::of(kind, dir.path());
    let machine = Machine::now(&[]);
    let mut child = ground.start(dir.path());
    let pid = child.id();
    let witness = Witness::start(ground.shared_memory(), pid);
    let moment = Duration::from_millis(random.below(layout.expected_ms()));
    let ended_before = wait(&mut child, moment);
    let hit = if ended_before {
        "ended before it".to_owned()
    } else {
        ground.inflict(kind, &child, &mut random)
    };
    let mut problems = Vec::new();
    if !wait(&mut child, PATIENCE) {
        problems.push(format!("does not end within {} s", PATIENCE.as_secs()));
        let _ = child.kill();
    }
    let code = child.wait().unwrap().code();
    let seen = witness.stop();
    let errors = std::fs::read_to_string(dir.path().join("errors")).unwrap_or_default();
    if errors.contains("panicked") {
        problems.push(format!("panicked: {errors}"));
    }
    if ended_before && code != Some(0) {
        problems.push(format!("failed without a fault: {errors}"));
    }
    ground.relieve();
    let clean = ground.say(dir.path(), &["clean"]);
    if clean.code != Some(0) {
        problems.push(format!("clean: {}{}", clean.out, clean.err));
    }
    problems.extend(settled(pid, &machine));
    let (on_record, more) = checks::runs(&dir.path().join("runs"), &seen);
    problems.extend(more);
    if problems.is_empty() && random.below(4) == 0 {
        problems.extend(goes_on(dir.path()));
    }
    Outcome {
        told: format!(
            "{kind:?} after {} ms ({hit}), {}, exit {}, {} cells had finished, {on_record}",
            moment.as_millis(),
            layout.told(),
            code.map_or("by a signal".to_owned(), |code| code.to_string()),
            seen.len(),
        ),
        problems,
    }
}

/// Waits at most this long until the process has ended; returns whether it has.
fn wait(child: &mut Child, at_most: Duration) -> bool {
    let began = Instant::now();
    loop {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        if began.elapsed() >= at_most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The remains on the machine once it has had time to settle: init reaps orphans at some time.
fn settled(pid: u32, before: &Machine) -> Vec<String> {
    let began = Instant::now();
    loop {
        let left = Machine::now(&[pid]).since(before);
        if left.is_empty() || began.elapsed() > Duration::from_secs(10) {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The next experiment runs as if nothing had happened.
fn goes_on(dir: &Path) -> Vec<String> {
    let file = crate::support::experiment(dir, &["embedded"], 20);
    let said = say(dir, &["bench", &file, "--rounds", "1", "--out", "next"]);
    match said.code {
        Some(0) => Vec::new(),
        _ => vec![format!("the next bench fails: {}", said.err)],
    }
}

/// Random numbers reproduced from a seed: splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn of(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}
