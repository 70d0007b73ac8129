//! A kind of load: its effect, its forms, and how its work is measured.

use std::path::Path;

use host::sched;
use model::{LoadKind, LoadPlan};
use record::Achieved;

use super::account::Usage;
use super::tally::Tally;

/// A program that a load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name in PATH.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// Arguments that make it tell its version.
    pub version: &'static [&'static str],
}

/// The meaning of a built-in load's counter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauge {
    pub quantity: &'static str,
    pub unit: &'static str,
    /// Counts in one unit.
    pub per: f64,
    /// Whether it is divided by the window's length.
    pub rate: bool,
}

impl Gauge {
    pub(super) const fn rate(quantity: &'static str, unit: &'static str, per: f64) -> Gauge {
        Gauge {
            quantity,
            unit,
            per,
            rate: true,
        }
    }

    pub(super) const fn count(quantity: &'static str, unit: &'static str) -> Gauge {
        Gauge {
            quantity,
            unit,
            per: 1.0,
            rate: false,
        }
    }
}

/// The setting in which a load runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Cpus that it may use, ascending; never empty.
    pub cpus: Vec<u32>,
    /// A directory on a disk, for loads that need one.
    pub dir: Option<String>,
    /// Address of the network's other end, for loads that need one.
    pub peer: Option<String>,
    /// Our own address in that network.
    pub own: Option<String>,
    /// The other end's network namespace, a file; `None`: loopback.
    pub network: Option<String>,
}

impl Setting {
    pub(super) fn peer(&self) -> &str {
        self.peer.as_deref().unwrap_or_default()
    }

    pub(super) fn own(&self) -> &str {
        self.own.as_deref().unwrap_or_default()
    }
}

/// A program's work between two looks at it.
pub(crate) struct Window<'a> {
    pub before: Usage,
    pub after: Usage,
    /// Time between the looks, ns.
    pub window_ns: i64,
    /// The increase of [`Load::progress`] between the looks.
    pub progress: u64,
    /// All that it wrote until its end.
    pub log: &'a str,
}

impl Window<'_> {
    /// An amount of the window as a rate.
    pub(super) fn per_second(&self, quantity: &str, unit: &str, amount: f64) -> Achieved {
        Achieved {
            quantity: quantity.to_owned(),
            unit: unit.to_owned(),
            value: amount * 1e9 / self.window_ns.max(1) as f64,
            window_ns: self.window_ns,
        }
    }
}

/// A load.
pub(crate) trait Load: Sync {
    /// Which one it is.
    fn kind(&self) -> LoadKind;

    /// Its effect, one sentence for listings.
    fn does(&self) -> &'static str;

    /// The program of its program form; `None`: there is none.
    fn program(&self) -> Option<Program> {
        None
    }

    /// Command line of the program form.
    fn command(&self, plan: &LoadPlan, setting: &Setting) -> Vec<String> {
        let _ = setting;
        plan.command.clone()
    }

    /// Input of the program form in the loads' directory: a command that makes it there.
    fn prepare(&self, dir: &Path) -> Option<Vec<String>> {
        let _ = dir;
        None
    }

    /// How far the program form has come, from its output so far.
    fn progress(&self, log: &str) -> Option<u64> {
        let _ = log;
        None
    }

    /// The program form's results, apart from its cpu time, which everyone gets.
    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        let _ = window;
        Vec::new()
    }

    /// Meaning of the built-in form's counters; the first must advance for the load to count as alive.
    fn gauges(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// The built-in form: works and counts until it is killed. It returns only the reason why it cannot go on.
    fn work(&self, setting: &Setting, tally: &Tally) -> String {
        let _ = (setting, tally);
        format!("the load {} has no built-in form", self.kind())
    }

    /// Longest time in which a load that is alive may achieve nothing, ns.
    fn pause_ns(&self) -> i64 {
        200_000_000
    }

    /// Time between two works of a load that pauses in between, ns; `None`: it works all the time. Its built-in form
    /// notes on its page when the last was done.
    fn cycle_ns(&self) -> Option<i64> {
        None
    }

    /// Whether this form works on a disk.
    fn needs_disk(&self, built_in: bool) -> bool {
        let _ = built_in;
        false
    }

    /// Whether it needs a network with another end.
    fn needs_network(&self) -> bool {
        false
    }
}

/// Unit of the gauge that counts seconds without their work done.
pub(crate) const MISSED_SECONDS: &str = "missed seconds";

/// Runs `work` in one thread on each cpu; returns only if one of them does.
pub(crate) fn on_each_cpu(
    setting: &Setting,
    tally: &Tally,
    work: impl Fn(u32) -> String + Sync,
) -> String {
    if let Err(error) = tally.die_with_coordinator() {
        return error.to_string();
    }
    let (said, words) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for &cpu in &setting.cpus {
            let (said, work) = (said.clone(), &work);
            scope.spawn(move || {
                let why = match sched::set_affinity(0, &[cpu]) {
                    Ok(()) => work(cpu),
                    Err(error) => error.to_string(),
                };
                let _ = said.send(why);
            });
        }
        let why = words.recv().unwrap_or_default();
        // The other workers never end by themselves.
        eprintln!("load: {why}");
        std::process::exit(1)
    })
}
