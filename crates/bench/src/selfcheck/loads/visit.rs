//! One look at one load: the load started, the probes run beside it, the machine's own counts around them.

use std::path::Path;

use host::activity::Activity;
use model::Work;
use probe::clock;
use record::{Achieved, LoadRecord};
use serde::Serialize;

use super::figures::{COUNT, Values, fill};
use crate::load::{self, Ground, PlannedLoad, Running, Start, with_words};
use crate::selfcheck::Setup;
use crate::selfcheck::probe_process::Probe;
use crate::session::Interrupt;
use crate::{BenchError, Place};

/// Steps of the probe with work: some hundred microseconds.
const STEPS: u32 = 50_000;

/// Needs of every visit.
pub(super) struct Around<'a> {
    pub setup: &'a Setup,
    pub place: &'a Place,
    pub rootfs: &'a Path,
    pub ground: &'a Ground,
    pub interrupt: &'a Interrupt,
    /// Whether class FIFO is available.
    pub fifo: bool,
    /// Number of the last visit.
    pub trial: u32,
}

/// A visit's findings.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Visit {
    /// The figures, ns.
    pub values: Values,
    /// The machine's work meanwhile.
    activity: Activity,
    /// For so long, ns.
    window_ns: i64,
    /// Activations that the probes skipped.
    skipped: u64,
    /// The probes' report of themselves: the cost of a clock reading, and of one iteration of the loop without work or sleep, ns.
    cost_ns: (i64, i64),
    /// The load's results.
    achieved: Vec<Achieved>,
}

impl Around<'_> {
    /// Whether a probe can run in class FIFO; if not, none will be asked to.
    pub(super) fn try_fifo(&mut self) -> Result<(), String> {
        let tried = self.probe(true, Work::Timer, 10).run();
        self.fifo = tried.is_ok();
        tried.map(drop).map_err(|error| error.to_string())
    }

    fn probe(&self, fifo: bool, work: Work, jobs: u32) -> Probe<'_> {
        Probe {
            dir: self.place.dir(),
            cpu: self.setup.cpu,
            fifo: fifo.then_some(self.setup.priority),
            work,
            period_ns: if work == Work::Timer {
                100_000
            } else {
                1_000_000
            },
            jobs,
            counters: false,
        }
    }

    /// Runs the probes beside `planned`, or beside nothing.
    pub(super) fn visit(
        &mut self,
        planned: Option<&PlannedLoad>,
        counters: bool,
    ) -> Result<Visit, BenchError> {
        self.trial += 1;
        let mut running = match planned {
            Some(planned) => Some((
                self.start(planned)?,
                load::record(planned, &self.ground.setting(planned)),
            )),
            None => None,
        };
        if let Some((load, _)) = &mut running {
            load.open_window();
        }
        let (before, began) = (Activity::read(), clock::now());
        let mut visit = Visit {
            values: [None; COUNT],
            activity: Activity::default(),
            window_ns: 0,
            skipped: 0,
            cost_ns: (0, 0),
            achieved: Vec::new(),
        };
        // A tenth-of-a-millisecond period for the rare disturbances; p99.9 needs some thousand of them.
        let (timer, mac) = if self.setup.quick {
            (2_000, 200)
        } else {
            (30_000, 600)
        };
        for fifo in [false, true].into_iter().filter(|fifo| !fifo || self.fifo) {
            for (work, jobs) in [(Work::Timer, timer), (Work::Mac { steps: STEPS }, mac)] {
                if self.interrupt.came() {
                    return Err(BenchError::Interrupted);
                }
                let probe = Probe {
                    counters,
                    ..self.probe(fifo, work, jobs)
                };
                let (samples, _) = probe.run()?;
                let header = &samples.header;
                visit.skipped += header.skipped;
                let cost = [header.clock_cost_ns, header.loop_cost_ns];
                visit.cost_ns = cost.map(u64::cast_signed).into();
                fill(&mut visit.values, fifo, work != Work::Timer, &samples);
            }
        }
        visit.activity = Activity::read().since(&before);
        visit.window_ns = clock::now() - began;
        if let Some((mut load, mut record)) = running {
            load.close_window();
            visit.achieved = ended(&mut load, &mut record)?;
        }
        Ok(visit)
    }

    fn start(&self, planned: &PlannedLoad) -> Result<Running, BenchError> {
        let running = load::start(&Start {
            planned,
            place: self.place,
            rootfs: self.rootfs,
            trial: self.trial,
            setting: self.ground.setting(planned),
        })?
        .map_err(BenchError::Failed)?;
        running
            .wait_until_at_work(&mut || self.interrupt.came())
            .map_err(|why| BenchError::Failed(with_words(&why, &running.last_words())))?;
        Ok(running)
    }
}

fn ended(load: &mut Running, record: &mut LoadRecord) -> Result<Vec<Achieved>, BenchError> {
    load.stop(record).map_err(BenchError::Failed)?;
    match record.failure.take() {
        Some(why) => Err(BenchError::Failed(why)),
        None => Ok(std::mem::take(&mut record.achieved)),
    }
}

/// Medians over visits of the probe's own cost.
pub(super) fn probe_cost<'a>(visits: impl Iterator<Item = &'a Visit>) -> String {
    let (clock, turn): (Vec<i64>, Vec<i64>) = visits.map(|visit| visit.cost_ns).unzip();
    let [clock, turn] = [clock, turn].map(|costs| stats::median_of(&costs).unwrap_or(0));
    format!(
        "{clock} ns per clock reading, {turn} ns per iteration of its loop without work or sleep"
    )
}

type Rate = fn(&Activity) -> f64;

/// Effects on the machine itself, a second.
const RATES: [(&str, Rate); 9] = [
    ("switches/s", |a| a.context_switches as f64),
    ("interrupts/s", |a| a.interrupts as f64),
    ("TIMER/s", |a| a.softirqs_of("TIMER") as f64),
    ("NET_RX/s", |a| a.softirqs_of("NET_RX") as f64),
    ("BLOCK/s", |a| a.softirqs_of("BLOCK") as f64),
    ("disk MB/s", |a| a.disk_written_bytes as f64 / 1e6),
    ("network MB/s", |a| a.net_received_bytes as f64 / 1e6),
    ("user %", |a| a.user_ns as f64 / 1e7),
    ("kernel %", |a| a.system_ns as f64 / 1e7),
];

/// Cpu time of everything on the machine in percent of one cpu, median over visits.
pub(super) fn busy_percent(visits: &[Visit]) -> f64 {
    let of = |visit: &Visit| {
        let used = visit.activity.user_ns + visit.activity.system_ns;
        100.0 * used as f64 / visit.window_ns.max(1) as f64
    };
    median(visits.iter().map(of))
}

pub(super) fn activity_header() -> Vec<String> {
    let mut header = vec!["the machine meanwhile, median".to_owned()];
    header.extend(RATES.iter().map(|(name, _)| (*name).to_owned()));
    header
}

pub(super) fn activity_row(name: &str, visits: &[Visit]) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for (_, rate) in RATES {
        let of = |visit: &Visit| rate(&visit.activity) * 1e9 / visit.window_ns.max(1) as f64;
        row.push(short(median(visits.iter().map(of))));
    }
    row
}

/// Medians over visits, such as `stored 1.00 MB/s, cpu time 0.9 % of one cpu`.
pub(super) fn achieved(visits: &[Visit]) -> String {
    let first = visits.first().map_or(&[][..], |visit| &visit.achieved);
    let parts = first.iter().map(|one| {
        let same = |a: &&Achieved| a.quantity == one.quantity;
        let values = (visits.iter()).filter_map(|v| Some(v.achieved.iter().find(same)?.value));
        format!("{} {} {}", one.quantity, short(median(values)), one.unit)
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Three digits that matter, or the whole number.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
