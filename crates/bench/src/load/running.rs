//! A load that runs: started, seen at work, measured over the cells' window, ended.

use std::path::{Path, PathBuf};

use engine::{Cell, CellSpec, Rights};
use host::sched::bandwidth::{self, GIVEN_BACK, set_class_when_free};
use host::sched::{self, Class};
use model::EngineKind;
use probe::clock;
use record::{Achieved, LoadRecord};

use super::account::Usage;
use super::guard::Guarded;
use super::kind::{Gauge, Load, MISSED_SECONDS, Setting, Window};
use super::kinds::by_kind;
use super::planned::PlannedLoad;
use super::tally::Tally;
use super::tally::{COUNTERS, WORKED};
use super::{account, inside};
use crate::error::failed;
use crate::{BenchError, Place};

/// Longest time from the start until a load is at work, ns.
const START_NS: i64 = 30_000_000_000;
/// Longest time from the start until the guest of a load has booted, ns.
const BOOT_NS: i64 = 180_000_000_000;
/// From the first sign of work until the load counts as up to speed, ns.
const SETTLE_NS: i64 = 300_000_000;
/// Longest time for a program to end normally and print its results, ns.
const FAREWELL_NS: i64 = 3_000_000_000;
/// Longest time for a killed load to end, ns.
const DEATH_NS: i64 = 60_000_000_000;
/// Time between two looks at a load that starts or ends, ns.
const LOOK_NS: i64 = 5_000_000;

/// How and where a load is started.
pub(crate) struct Start<'a> {
    pub planned: &'a PlannedLoad,
    pub place: &'a Place,
    pub rootfs: &'a Path,
    pub trial: u32,
    /// Surroundings of the run's loads; see [`super::Ground`].
    pub setting: Setting,
}

/// A load that was started.
pub(crate) struct Running {
    load: &'static dyn Load,
    /// Whether it counts its work on the page.
    counts: bool,
    in_cell: bool,
    /// The class that holds it to its budget, and the cpus that it has.
    held: Option<(Class, Vec<u32>)>,
    id: String,
    cell: Box<dyn Cell>,
    tally: Tally,
    work_dir: PathBuf,
    window: Option<(Look, Option<Look>)>,
    stopped: bool,
}

/// One look at a load.
#[derive(Debug, Clone, Copy)]
struct Look {
    at_ns: i64,
    counts: [u64; COUNTERS],
    /// See [`Load::progress`].
    progress: u64,
    usage: Usage,
    /// The middle of the time in which the usage was gathered: under load that takes a while.
    usage_at_ns: i64,
}

impl Look {
    /// When the last work before it was done, CLOCK_MONOTONIC ns; `None` before the first.
    fn worked_ns(&self) -> Option<i64> {
        Some(self.counts[WORKED])
            .filter(|&ns| ns > 0)
            .map(u64::cast_signed)
    }
}

/// Starts a load.
///
/// # Errors
/// `Ok(Err(why))` when the load cannot be started; an error when the coordinator's own place fails.
pub(crate) fn start(start: &Start<'_>) -> Result<Result<Running, String>, BenchError> {
    let planned = start.planned;
    let load = by_kind(planned.plan.kind);
    let name = format!("load-{}", planned.plan.name);
    let shared = start.place.sub(&format!("trials/{}/{name}", start.trial))?;
    let page = shared.join("tally");
    let tally = Tally::create(&page).map_err(failed(&page, "make the load's page"))?;
    let work_dir = (start.place).sub(&format!("trials/{}/cells/{name}", start.trial))?;
    let engine = planned.plan.cell.unwrap_or(EngineKind::Bare);
    let spec = CellSpec {
        id: format!("timecell-{}-{}-{name}", std::process::id(), start.trial),
        engine,
        rootfs: start.rootfs.to_owned(),
        words: words(start, load),
        shared,
        work_dir: work_dir.clone(),
        user: None,
        rights: Rights::default(),
        machine: planned.machine.clone(),
    };
    let made = engine::by_kind(engine, &engine::Options::default()).create(&spec);
    Ok(made.map_err(|error| error.to_string()).map(|cell| Running {
        load,
        // The page of a guest stays there.
        counts: planned.built_in && planned.machine.is_none(),
        held: planned.class().map(|class| (class, planned.cpus.clone())),
        in_cell: planned.plan.cell.is_some(),
        id: spec.id.clone(),
        cell,
        tally,
        work_dir,
        window: None,
        stopped: false,
    }))
}

/// The record of a load that has not begun.
pub(crate) fn record(planned: &PlannedLoad, setting: &Setting) -> LoadRecord {
    LoadRecord {
        name: planned.plan.name.clone(),
        kind: planned.plan.kind,
        form: planned.form.clone(),
        place: planned.place(),
        cpus: planned.cpus.clone(),
        command: command_line(planned, setting),
        achieved: Vec::new(),
        missed_seconds: None,
        failure: None,
    }
}

/// The command line of the load itself, for the record.
fn command_line(planned: &PlannedLoad, setting: &Setting) -> String {
    let load = by_kind(planned.plan.kind);
    if planned.built_in {
        let words = inside::words(planned.plan.kind, setting, "tally");
        format!("timecell {}", words.join(" "))
    } else {
        load.command(&planned.plan, setting).join(" ")
    }
}

fn words(start: &Start<'_>, load: &dyn Load) -> Vec<String> {
    let planned = start.planned;
    let mut setting = start.setting.clone();
    if planned.machine.is_some() {
        setting.cpus = vec![0];
    } else if planned.plan.reservation.is_some() {
        // One thread, which gets all of them back with its class: the kernel takes none that is pinned.
        setting.cpus.truncate(1);
    }
    let mut own = inside::words(planned.plan.kind, &setting, "/cell/tally");
    if planned.plan.cell.is_some() {
        return own;
    }
    let command = if planned.built_in {
        own.insert(0, start.rootfs.join("timecell").display().to_string());
        own
    } else {
        load.command(&planned.plan, &start.setting)
    };
    let guarded = Guarded {
        cpus: start.setting.cpus.clone(),
        dir: start.setting.dir.clone(),
        command,
    };
    let mut words = vec!["load".to_owned(), "guard".to_owned()];
    words.extend(guarded.to_words());
    words
}

impl Running {
    /// The process whose end is the load's end.
    pub(crate) fn pid(&self) -> i32 {
        self.cell.pid()
    }

    /// The last lines it wrote.
    pub(crate) fn last_words(&self) -> String {
        self.cell.log_tail().trim().to_owned()
    }

    /// Waits until the load is seen at work; `stop` ends the wait.
    ///
    /// # Errors
    /// When it does nothing for too long.
    pub(crate) fn wait_until_at_work(&self, stop: &mut dyn FnMut() -> bool) -> Result<(), String> {
        let is_machine = self.in_cell && !self.counts;
        let at_work = || {
            if self.counts {
                self.tally.read()[0] > 0
            } else if is_machine {
                !self.cell.scheduled().is_empty()
            } else {
                account::usage(self.pid()).cpu_ns > 0
            }
        };
        let start_ns = if is_machine { BOOT_NS } else { START_NS };
        let patience = clock::now() + start_ns;
        while !at_work() {
            if stop() {
                return Ok(());
            }
            if clock::now() > patience {
                return Err(format!("did nothing within {} s", start_ns / 1_000_000_000));
            }
            clock::sleep_for(LOOK_NS);
        }
        clock::sleep_for(SETTLE_NS);
        self.hold()
    }

    /// Has SCHED_DEADLINE hold its threads to its budget, if it has one, and asks the kernel whether it does.
    fn hold(&self) -> Result<(), String> {
        let Some((class, cpus)) = &self.held else {
            return Ok(());
        };
        let threads = self.threads();
        if threads.is_empty() {
            return Err("has no thread that could be held".to_owned());
        }
        for thread in threads {
            sched::set_affinity(thread, cpus).map_err(|error| error.to_string())?;
            set_class_when_free(thread, class, GIVEN_BACK).map_err(|error| error.to_string())?;
            let got = sched::get_class(thread).map_err(|error| error.to_string())?;
            if got != *class {
                return Err(format!("asked for {class}, the kernel reports {got}"));
            }
        }
        Ok(())
    }

    /// The threads that work: of a virtual machine those of its virtual cpus, else all but the first, which waits for them.
    fn threads(&self) -> Vec<i32> {
        let pid = self.pid();
        match self.cell.scheduled() {
            own if own != [pid] => own,
            _ => (host::process::threads(pid).into_iter())
                .filter(|thread| *thread != pid)
                .collect(),
        }
    }

    /// Looks at it before the cells are released.
    pub(crate) fn open_window(&mut self) {
        self.window = Some((self.look(), None));
    }

    /// Looks at it again after the last cell is done. A load that works once per cycle is given a full cycle, so that even a short trial
    /// shows whether it works.
    pub(crate) fn close_window(&mut self) {
        if let (Some(cycle_ns), Some((before, _))) = (self.cycle_ns(), &self.window) {
            let patience = clock::now() + 2 * cycle_ns;
            while self.tally.read()[0] == before.counts[0] && clock::now() < patience {
                clock::sleep_for(LOOK_NS);
            }
        }
        let now = self.look();
        if let Some((_, after)) = &mut self.window {
            *after = Some(now);
        }
    }

    /// Only the built-in form tells when its last work was done.
    fn cycle_ns(&self) -> Option<i64> {
        self.load.cycle_ns().filter(|_| self.counts)
    }

    fn look(&self) -> Look {
        let at_ns = clock::now();
        let counts = self.tally.read();
        let progress = self.load.progress(&self.log()).unwrap_or(0);
        let began_ns = clock::now();
        let usage = account::usage(self.pid());
        Look {
            at_ns,
            counts,
            progress,
            usage,
            usage_at_ns: began_ns + (clock::now() - began_ns) / 2,
        }
    }

    fn log(&self) -> String {
        let log = std::fs::read(engine::log_file(&self.work_dir)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Ends the load and writes down its results.
    pub(crate) fn stop(&mut self, record: &mut LoadRecord) -> Result<(), String> {
        if self.stopped {
            return Ok(());
        }
        if self.held.is_some() {
            // The kernel may lose count of a deadline thread that ends in its class. One that has ended is no loss.
            for thread in self.threads() {
                let _ = bandwidth::release(thread);
            }
        }
        self.ask_to_end();
        let log = self.log();
        if let Some((before, Some(after))) = self.window {
            let window = Window {
                before: before.usage,
                after: after.usage,
                progress: after.progress.saturating_sub(before.progress),
                window_ns: after.usage_at_ns - before.usage_at_ns,
                log: &log,
            };
            self.judge(&before, &after, &window, record);
        }
        self.remove()
    }

    fn remove(&mut self) -> Result<(), String> {
        let patience = clock::now() + DEATH_NS;
        loop {
            let removed = (self.cell.remove().map_err(|error| error.to_string()))
                // Without root's powers the guard has no pid namespace: its children outlive it, but bear its mark.
                .and_then(|()| engine::kill_marked(&self.id).map_err(|error| error.to_string()));
            match removed {
                Ok(()) => break,
                // A process that is killed during disk work ends when the disk is done.
                Err(_) if clock::now() < patience => {}
                Err(why) => return Err(why),
            }
        }
        self.stopped = true;
        Ok(())
    }

    fn judge(&self, before: &Look, after: &Look, window: &Window<'_>, record: &mut LoadRecord) {
        let cpu_ns = after.usage.cpu_ns - before.usage.cpu_ns;
        let counted_ns = match self.cycle_ns() {
            None => after.at_ns - before.at_ns,
            Some(cycle_ns) => cycles_ns(before, after, cycle_ns),
        };
        if self.counts {
            for (index, gauge) in self.load.gauges().iter().enumerate() {
                let count = after.counts[index].saturating_sub(before.counts[index]);
                let achieved = measured(gauge, count, counted_ns);
                if gauge.unit == MISSED_SECONDS {
                    record.missed_seconds = Some(count);
                } else {
                    record.achieved.push(achieved);
                }
            }
        } else {
            record.achieved.extend(self.load.told(window));
        }
        record.achieved.push(Achieved {
            quantity: "cpu time".to_owned(),
            unit: "% of one cpu".to_owned(),
            value: 100.0 * cpu_ns as f64 / window.window_ns.max(1) as f64,
            window_ns: window.window_ns,
        });
        let worked = if self.counts {
            after.counts[0] > before.counts[0]
        } else {
            cpu_ns > 0
        };
        if !worked && counted_ns > self.load.pause_ns() {
            record.failure.get_or_insert_with(|| {
                let ms = counted_ns / 1_000_000;
                with_words(
                    &format!("did nothing in the {ms} ms measured"),
                    &self.last_words(),
                )
            });
        }
    }

    /// A program that is asked in time prints its results at its end, and a guard that is asked ends its load normally.
    fn ask_to_end(&self) {
        if self.in_cell {
            return;
        }
        let pid = self.pid();
        // SAFETY: the guard, a child of this process that has not been reaped.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        let patience = clock::now() + FAREWELL_NS;
        while clock::now() < patience && account::usage(pid).processes > 0 {
            clock::sleep_for(LOOK_NS);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.remove();
        }
    }
}

/// The time that the work between two looks took, of a load that works once a cycle: from the last work before the
/// one to the last work before the other, ns. A window that cuts cycles in two would count too many of them or too
/// few. Once the load is late by a cycle, the time until the look counts too: it may have stopped.
fn cycles_ns(before: &Look, after: &Look, cycle_ns: i64) -> i64 {
    let began = before.worked_ns().unwrap_or(before.at_ns);
    let ended = after.worked_ns().unwrap_or(after.at_ns);
    if ended <= began || after.at_ns - ended > 2 * cycle_ns {
        after.at_ns - began
    } else {
        ended - began
    }
}

fn measured(gauge: &Gauge, count: u64, window_ns: i64) -> Achieved {
    let amount = count as f64 / gauge.per;
    Achieved {
        quantity: gauge.quantity.to_owned(),
        unit: gauge.unit.to_owned(),
        value: if gauge.rate {
            amount * 1e9 / window_ns.max(1) as f64
        } else {
            amount
        },
        window_ns,
    }
}

/// A sentence with the load's last output.
pub(crate) fn with_words(what: &str, words: &str) -> String {
    if words.is_empty() {
        what.to_owned()
    } else {
        format!("{what}, saying: {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A look at a time, with the last work before it, both in ms.
    fn look(at_ms: i64, worked_ms: i64) -> Look {
        let mut counts = [0; COUNTERS];
        counts[WORKED] = (worked_ms * 1_000_000).unsigned_abs();
        Look {
            at_ns: at_ms * 1_000_000,
            counts,
            progress: 0,
            usage: Usage::default(),
            usage_at_ns: 0,
        }
    }

    #[test]
    fn whole_cycles_are_measured_however_the_window_lies() {
        let ms = |before: (i64, i64), after: (i64, i64)| {
            let ns = cycles_ns(&look(before.0, before.1), &look(after.0, after.1), SECOND);
            ns / 1_000_000
        };
        // Worked at 5,010 and 6,012: one cycle, though the looks are 0.2 s or 1.9 s apart.
        assert_eq!(ms((5_900, 5_010), (6_100, 6_012)), 1_002);
        assert_eq!(ms((5_020, 5_010), (6_920, 6_012)), 1_002);
        // Nothing since: all the time counts.
        assert_eq!(ms((5_900, 5_010), (6_500, 5_010)), 1_490);
        // It has stopped: so does the time since.
        assert_eq!(ms((5_900, 5_010), (9_000, 6_012)), 3_990);
    }
}
