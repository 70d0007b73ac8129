//! The barrier inside a virtual machine: coordinator and cells share no page across machines, so a process in the guest stands in for the
//! coordinator there. It makes a page of its own, runs the probe, and says over its standard output how far that is; over its standard
//! input it is told what the coordinator does. One line of JSON each.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use serde::{Deserialize, Serialize};

use crate::args::{ArgsError, ProbeArgs};
use crate::barrier::Barrier;
use crate::cell::{EXIT_BAD_ARGS, EXIT_FAILED};
use crate::clock;
use crate::control::{Slot, State};
use crate::set::SetArgs;

/// Longest wait for the probe, ns: ten years. Who waits too long ends the machine.
const PATIENCE_NS: i64 = 315_360_000_000_000_000;

/// To the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// What is your clock?
    Clock,
    /// The probe may arm itself.
    Permit,
    /// The release, on the guest's clock, ns.
    Go(i64),
    /// The probe may end.
    Leave,
}

/// A thread of the probe that is armed, as its slot says ([`crate::control::Slot`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Armed {
    pub policy: i32,
    pub priority: i32,
    pub memory_locked: u32,
    pub armed_ns: i64,
    pub step_ps: u64,
    pub calibrations: u32,
    pub spread_ppm: u32,
}

/// From the guest, with an item for each thread of the probe. Instants are on its CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// Its clock.
    Clock(i64),
    /// The probe runs since then.
    Present(Vec<i64>),
    /// The probe is armed.
    Armed(Vec<Armed>),
    /// The probe is done; when it saw the release.
    Done(Vec<i64>),
    /// The probe gave up: at which stage, and the number that belongs to it.
    Failed(u32, i32),
}

/// What a payload in a machine is: one probe, or one for each task of a set.
pub(crate) enum Payload {
    Run(Box<ProbeArgs>),
    Set(SetArgs),
}

impl Payload {
    /// Reads the words behind `timecell probe`.
    pub(crate) fn from_words(words: &[String]) -> Result<Payload, ArgsError> {
        match words.split_first() {
            Some((word, rest)) if word == "set" => SetArgs::from_words(rest).map(Payload::Set),
            Some((word, rest)) if word == "run" => {
                ProbeArgs::from_words(rest).map(|args| Payload::Run(Box::new(args)))
            }
            _ => Err(ArgsError("nothing says what to run".to_owned())),
        }
    }

    /// The words behind `timecell probe`.
    pub(crate) fn to_words(&self) -> Vec<String> {
        match self {
            Payload::Run(args) => {
                let word = std::iter::once("run".to_owned());
                word.chain(args.to_words()).collect()
            }
            Payload::Set(args) => args.to_words().split_off(1),
        }
    }

    /// Its probes, in the order of their slots.
    pub(crate) fn probes(&self) -> Vec<&ProbeArgs> {
        match self {
            Payload::Run(args) => vec![args],
            Payload::Set(args) => args.tasks.iter().map(|task| &task.probe).collect(),
        }
    }

    /// The same.
    pub(crate) fn probes_mut(&mut self) -> Vec<&mut ProbeArgs> {
        match self {
            Payload::Run(args) => vec![args],
            Payload::Set(args) => args.tasks.iter_mut().map(|task| &mut task.probe).collect(),
        }
    }
}

fn tell(told: &Told) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(told)?)?;
    out.flush()
}

/// Runs a payload in the guest with these words, which name its page and its samples; returns the exit code.
pub fn mirror(words: &[String]) -> i32 {
    let payload = match Payload::from_words(words) {
        Ok(payload) => payload,
        Err(error) => {
            eprintln!("{error}");
            return EXIT_BAD_ARGS;
        }
    };
    match stand_in(words, &payload.probes()) {
        Ok(true) => 0,
        Ok(false) => EXIT_FAILED,
        Err(error) => {
            eprintln!("probe: the guest's side of the barrier fails: {error}");
            EXIT_FAILED
        }
    }
}

/// Whether the payload has done its jobs.
fn stand_in(words: &[String], probes: &[&ProbeArgs]) -> std::io::Result<bool> {
    let control = probes[0].control.as_path();
    let dir = control.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    for probe in probes {
        if let Some(samples) = &probe.samples {
            crate::prepare_samples(samples, probe.jobs.into())?;
        }
    }
    let barrier = Arc::new(Barrier::create(control, probes.len())?);
    let mut payload = Command::new(std::env::current_exe()?)
        .arg("probe")
        .args(words)
        .stdin(Stdio::null())
        .spawn()?;
    let gone = Arc::new(AtomicBool::new(false));
    let (asked, slots) = (barrier.clone(), probes.len());
    // It ends with this process: nobody waits for a line that does not come.
    std::thread::spawn(move || follow(&asked, slots));
    let (ended, waker) = (gone.clone(), barrier.waker());
    let waits = std::thread::spawn(move || {
        let _ = payload.wait();
        ended.store(true, Release);
        waker.wake();
    });
    let slots = || (0..probes.len()).map(|slot| barrier.slot(slot));
    let mut good = true;
    for state in [State::Present, State::Armed, State::Done] {
        let until = clock::now() + PATIENCE_NS;
        let _ = barrier.wait_all(state, "there", until, || gone.load(Acquire));
        let there = |slot: usize| {
            let is = barrier.state(slot);
            is != State::Failed && is >= state
        };
        let Some(failed) = (0..probes.len()).find(|slot| !there(*slot)) else {
            tell(&match state {
                State::Present => {
                    Told::Present(slots().map(|slot| slot.present_ns.load(Acquire)).collect())
                }
                State::Armed => Told::Armed(slots().map(armed).collect()),
                _ => Told::Done(slots().map(|slot| slot.started_ns.load(Acquire)).collect()),
            })?;
            continue;
        };
        good = false;
        let slot = barrier.slot(failed);
        tell(&Told::Failed(
            slot.stage.load(Acquire),
            slot.errno.load(Acquire),
        ))?;
        break;
    }
    let _ = waits.join();
    Ok(good)
}

fn armed(slot: &Slot) -> Armed {
    Armed {
        policy: slot.policy.load(Acquire),
        priority: slot.priority.load(Acquire),
        memory_locked: slot.memory_locked.load(Acquire),
        armed_ns: slot.armed_ns.load(Acquire),
        step_ps: slot.step_ps.load(Acquire),
        calibrations: slot.calibrations.load(Acquire),
        spread_ppm: slot.spread_ppm.load(Acquire),
    }
}

/// Does what the coordinator does, until the line closes.
fn follow(barrier: &Barrier, slots: usize) {
    for line in std::io::stdin().lock().lines() {
        match line.ok().map(|line| serde_json::from_str(&line)) {
            Some(Ok(Ask::Clock)) => {
                if tell(&Told::Clock(clock::now())).is_err() {
                    break;
                }
            }
            Some(Ok(Ask::Permit)) => (0..slots).for_each(|slot| barrier.permit(slot)),
            Some(Ok(Ask::Go(at_ns))) => barrier.open_at(at_ns),
            Some(Ok(Ask::Leave)) => barrier.leave(),
            _ => break,
        }
    }
    barrier.abort();
}
