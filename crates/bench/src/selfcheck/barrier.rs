//! Our release barrier against polling for a file, with cells of the same engine.
//!
//! Two pollers: the thesis's, a shell that looks and starts `sleep 0.001` by turns (here busybox, which starts faster
//! than bash and coreutils), and the same loop in our own probe, without a process for each sleep.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use engine::{Cell, CellSpec, Engine, Rights};
use host::rtgroup::RtGroup;
use host::sched;
use model::{EngineKind, Pacing, Work};
use probe::control::State;
use probe::{Barrier, BarrierKind, ClassBy, ProbeArgs, clock};
use serde_json::{Value, json};

use super::{Finding, Section, Setup, us};
use crate::BenchError;
use crate::place::{Place, failed};

const COUNTS: [usize; 4] = [2, 10, 32, 64];
const BUSYBOX: &str = "/bin/busybox";
/// How long the pollers poll before the release: all of them must have begun.
const SETTLE_NS: i64 = 300_000_000;
/// Longest wait for any step of a round.
const PATIENCE_NS: i64 = 120_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Futex,
    PollProbe,
    PollShell,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Futex => "futex and absolute sleep",
            How::PollProbe => "polling a file every 1 ms (probe)",
            How::PollShell => "polling a file every 1 ms (shell)",
        }
    }
}

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let rounds = if setup.quick { 3 } else { 50 };
    let options = engine::Options::default();
    let engine = [EngineKind::Crun, EngineKind::Embedded]
        .map(|kind| engine::by_kind(kind, &options))
        .into_iter()
        .find(|engine| engine.requirements().iter().all(|r| r.met))
        .ok_or_else(|| {
            BenchError::Unmet("neither crun nor embedded cells can be made here".into())
        })?;
    let cpus = host::cpus::online().map_err(|error| BenchError::Failed(error.to_string()))?;
    let mut hows = vec![How::Futex, How::PollProbe];
    let mut unmet = Vec::new();
    if Path::new(BUSYBOX).exists() {
        hows.push(How::PollShell);
    } else {
        unmet.push("the shell poller needs busybox (apt install busybox-static)".to_owned());
    }
    let mut stage = Stage::new(setup.clone(), engine, cpus)?;
    let mut section = Section {
        part: "barrier",
        method: format!(
            "{} cells over cpus {}, {rounds} rounds of each kind in turns; skew is the latest start minus the \
             earliest; futex cells FIFO {}, pollers OTHER as in the thesis's scripts",
            stage.engine.kind(),
            host::cpus::format_list(&stage.cpus),
            setup.priority
        ),
        table: vec![
            [
                "cells",
                "barrier",
                "median skew us",
                "max skew us",
                "first of each cpu us",
                "cpu while waiting",
            ]
            .map(str::to_owned)
            .to_vec(),
        ],
        findings: Vec::new(),
        data: Value::Null,
        unmet,
    };
    let mut data = Vec::new();
    for cells in COUNTS {
        if setup.quick && cells > 10 {
            continue;
        }
        let mut seen: Vec<Seen> = hows.iter().map(|_| Seen::default()).collect();
        for round in 1..=rounds {
            for (how, seen) in hows.iter().zip(&mut seen) {
                say(&format!(
                    "barrier, {cells} cells, round {round} of {rounds}, {}",
                    how.name()
                ));
                stage.round(*how, cells, seen)?;
            }
        }
        for (how, seen) in hows.iter().zip(&seen) {
            section.table.push(seen.row(cells, *how));
            data.push(seen.json(cells, *how));
        }
        goals(cells, &hows, &seen, &mut section);
    }
    section.data = Value::Array(data);
    Ok(section)
}

fn goals(cells: usize, hows: &[How], seen: &[Seen], section: &mut Section) {
    let median = |how: How| -> Option<f64> {
        let at = hows.iter().position(|h| *h == how)?;
        stats::median_of(&seen[at].skews).map(|ns| ns as f64)
    };
    let Some(ours) = median(How::Futex) else {
        return;
    };
    if let Some(theirs) = median(How::PollShell) {
        let times = theirs / ours.max(1.0);
        let what = format!("median skew of the shell poller over ours, {cells} cells");
        let figure = format!("{times:.0} times");
        section.findings.push(match cells {
            32 => Finding::goal(what, figure, "at least 40 times", times >= 40.0),
            64 => Finding::goal(what, figure, "at least 60 times", times >= 60.0),
            _ => Finding::fact(what, figure),
        });
    }
    if let Some(theirs) = median(How::PollProbe) {
        section.findings.push(Finding::fact(
            format!("median skew of the probe's own polling over ours, {cells} cells"),
            format!("{:.1} times", theirs / ours.max(1.0)),
        ));
    }
    let futex = &seen[0];
    if let Some(first) = stats::median_of(&futex.firsts) {
        section.findings.push(Finding::goal(
            format!("median skew between the first cells of each cpu, {cells} cells"),
            format!("{} us", us(first)),
            "under 60 us",
            first < 60_000,
        ));
    }
    if let Some(waiting) = stats::median_of(&futex.waiting_ns) {
        section.findings.push(Finding::goal(
            format!("cpu time of all {cells} armed cells while waiting 300 ms"),
            format!(
                "{} us (largest round {} us)",
                us(waiting),
                us(futex.waiting_ns.iter().copied().max().unwrap_or(0))
            ),
            "none measurable",
            waiting == 0,
        ));
    }
}

#[derive(Default)]
struct Seen {
    skews: Vec<i64>,
    firsts: Vec<i64>,
    /// Cpu time of all cells over [`SETTLE_NS`] of waiting.
    waiting_ns: Vec<i64>,
}

impl Seen {
    fn row(&self, cells: usize, how: How) -> Vec<String> {
        let median = |values: &[i64]| stats::median_of(values).map_or("-".to_owned(), us);
        vec![
            cells.to_string(),
            how.name().to_owned(),
            median(&self.skews),
            us(self.skews.iter().copied().max().unwrap_or(0)),
            median(&self.firsts),
            stats::median_of(&self.waiting_ns).map_or("-".to_owned(), |ns| {
                format!("{:.1} % of a cpu", ns as f64 * 100.0 / SETTLE_NS as f64)
            }),
        ]
    }

    fn json(&self, cells: usize, how: How) -> Value {
        json!({
            "cells": cells,
            "barrier": how.name(),
            "skew_ns": self.skews,
            "first_of_cpu_skew_ns": self.firsts,
            "waiting_cpu_ns_per_300_ms": self.waiting_ns,
        })
    }

    fn add(&mut self, starts: &[(u32, i64)]) {
        let all: Vec<i64> = starts.iter().map(|(_, start)| *start).collect();
        if let Some(skew) = stats::skew_ns(&all) {
            self.skews.push(skew.cast_signed());
        }
        let mut first = std::collections::BTreeMap::new();
        for (cpu, start) in starts {
            let earliest = first.entry(*cpu).or_insert(*start);
            *earliest = (*earliest).min(*start);
        }
        let first: Vec<i64> = first.into_values().collect();
        if first.len() > 1
            && let Some(skew) = stats::skew_ns(&first)
        {
            self.firsts.push(skew.cast_signed());
        }
    }
}

/// What the rounds share.
struct Stage {
    setup: Setup,
    engine: Box<dyn Engine>,
    cpus: Vec<u32>,
    place: Place,
    rootfs: std::path::PathBuf,
    rt_group: Option<RtGroup>,
    rounds: u32,
}

/// The cells of one round; removed on drop, on errors too.
struct Cells(Vec<Box<dyn Cell>>);

impl Drop for Cells {
    fn drop(&mut self) {
        for cell in &mut self.0 {
            let _ = cell.remove();
        }
    }
}

impl Stage {
    fn new(setup: Setup, engine: Box<dyn Engine>, cpus: Vec<u32>) -> Result<Stage, BenchError> {
        let mut place = Place::create()?;
        let rootfs = place.rootfs()?;
        if Path::new(BUSYBOX).exists() {
            let bin = rootfs.join("bin");
            std::fs::create_dir_all(&bin).map_err(failed(&bin, "make the directory"))?;
            // `sleep` is a program of its own, as in the scripts of the field: the shell starts it anew each time.
            for name in ["sh", "sleep"] {
                let program = bin.join(name);
                std::fs::copy(BUSYBOX, &program).map_err(failed(&program, "copy busybox"))?;
            }
        }
        let rt_group = crate::run::shared_rt_group(&mut place)?;
        Ok(Stage {
            setup,
            engine,
            cpus,
            place,
            rootfs,
            rt_group,
            rounds: 0,
        })
    }

    fn round(&mut self, how: How, cells: usize, seen: &mut Seen) -> Result<(), BenchError> {
        self.rounds += 1;
        let shared = self.place.sub(&format!("trials/{}/shared", self.rounds))?;
        let control = shared.join("control");
        let barrier =
            Barrier::create(&control, cells).map_err(failed(&control, "make the control page"))?;
        let deadline = clock::now() + PATIENCE_NS;
        let mut pids = Vec::new();
        let mut made = Cells(Vec::new());
        let stamps = (how == How::PollShell)
            .then(|| Stamps::listen(&shared, cells))
            .transpose()?;
        for index in 0..cells {
            let cell = self.engine.create(&self.spec(how, index, &shared)?)?;
            let pid = cell.pid();
            pids.push(pid);
            made.0.push(cell);
            if how == How::PollShell {
                continue;
            }
            wait(barrier.wait_cell(index, State::Present, "present", deadline, || false))?;
            if let Some(group) = &self.rt_group {
                group
                    .add(pid)
                    .map_err(|error| BenchError::Failed(error.to_string()))?;
            }
            barrier.permit(index);
        }
        if how != How::PollShell {
            wait(barrier.wait_all(State::Armed, "armed", deadline, || false))?;
            if let Some(why) = (0..cells).find_map(|index| barrier.failure(index)) {
                return Err(BenchError::Failed(format!("a cell {why}")));
            }
        }
        let before = cpu_ns(&pids);
        clock::sleep_for(SETTLE_NS);
        // A shell's sleeps are processes of their own, already reaped: only its cpu share of children tells.
        if how != How::PollShell {
            seen.waiting_ns.push(cpu_ns(&pids) - before);
        }
        let starts = match (how, stamps) {
            (How::Futex, _) => {
                barrier.open(Barrier::lead_ns(cells));
                self.starts(&barrier, cells, deadline)?
            }
            (_, None) => {
                touch(&shared.join("GO"))?;
                self.starts(&barrier, cells, deadline)?
            }
            (_, Some(stamps)) => {
                touch(&shared.join("GO"))?;
                stamps.collect(&self.cpus)?
            }
        };
        barrier.leave();
        barrier.abort();
        drop(made);
        let trial = self.place.dir().join(format!("trials/{}", self.rounds));
        let _ = std::fs::remove_dir_all(trial);
        seen.add(&starts);
        Ok(())
    }

    fn starts(
        &self,
        barrier: &Barrier,
        cells: usize,
        deadline: i64,
    ) -> Result<Vec<(u32, i64)>, BenchError> {
        wait(barrier.wait_all(State::Done, "done", deadline, || false))?;
        Ok((0..cells)
            .map(|index| {
                let start = barrier.slot(index).started_ns.load(Acquire);
                (self.cpu(index), start)
            })
            .collect())
    }

    fn cpu(&self, index: usize) -> u32 {
        self.cpus[index % self.cpus.len()]
    }

    fn spec(&self, how: How, index: usize, shared: &Path) -> Result<CellSpec, BenchError> {
        let args = ProbeArgs {
            control: "/cell/control".into(),
            slot: index,
            samples: None,
            ring: false,
            work: Work::Timer,
            pacing: Pacing::Periodic,
            period_ns: 1_000_000,
            jobs: 0,
            fifo: (how == How::Futex).then_some(self.setup.priority),
            cpu: self.cpu(index),
            class_by: ClassBy::Cell,
            barrier: match how {
                How::PollProbe => BarrierKind::PollFile("/cell/GO".into()),
                _ => BarrierKind::Futex,
            },
            rest_ns: 0,
        };
        let words = if how == How::PollShell {
            let script = format!(
                "while [ ! -e /cell/GO ]; do /bin/sleep 0.001 || exit 1; done; \
                 echo {index} > /cell/stamp; exec /bin/sleep 100"
            );
            ["probe", "exec", "/bin/sh", "-c", &script]
                .map(str::to_owned)
                .to_vec()
        } else {
            let mut words = vec!["probe".to_owned(), "run".to_owned()];
            words.extend(args.to_words());
            words
        };
        let number = self.rounds;
        Ok(CellSpec {
            id: format!("timecell-{}-{number}-{index}", std::process::id()),
            engine: self.engine.kind(),
            rootfs: self.rootfs.clone(),
            words,
            shared: shared.to_owned(),
            work_dir: self.place.sub(&format!("trials/{number}/cells/{index}"))?,
            user: None,
            rights: Rights {
                rtprio: self.setup.priority,
                memlock_bytes: 128 << 20,
                devices: Vec::new(),
            },
        })
    }
}

fn wait(result: Result<(), probe::BarrierError>) -> Result<(), BenchError> {
    result.map_err(|error| BenchError::Failed(error.to_string()))
}

fn touch(path: &Path) -> Result<(), BenchError> {
    std::fs::File::create(path)
        .map(drop)
        .map_err(failed(path, "create"))
}

/// Cpu time of these processes so far, ns (first field of schedstat).
fn cpu_ns(pids: &[i32]) -> i64 {
    pids.iter()
        .filter_map(|pid| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<i64>().ok()
        })
        .sum()
}

/// Hears the shells' stamps through a named pipe, in a thread above them all.
///
/// `echo` is built into the shell, so a stamp costs it no process: the thesis's `date` would look worse.
struct Stamps(std::thread::JoinHandle<std::io::Result<Vec<(usize, i64)>>>);

impl Stamps {
    fn listen(shared: &Path, cells: usize) -> Result<Stamps, BenchError> {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::PermissionsExt;
        let path = shared.join("stamp");
        let name = std::ffi::CString::new(path.as_os_str().as_bytes())
            .map_err(|_| BenchError::Failed("a path holds a zero byte".to_owned()))?;
        // SAFETY: a valid C string.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o666) } != 0 {
            return Err(failed(&path, "make the pipe")(
                std::io::Error::last_os_error(),
            ));
        }
        let open = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))
            // Read and write: the end of one writer must not be the end of the pipe.
            .and_then(|()| std::fs::File::options().read(true).write(true).open(&path));
        let mut pipe = open.map_err(failed(&path, "open the pipe"))?;
        Ok(Stamps(std::thread::spawn(move || {
            let _ = sched::set_class(0, &sched::Class::Fifo { priority: 90 });
            let mut stamps = Vec::new();
            let mut pending = String::new();
            let mut bytes = [0u8; 4096];
            while stamps.len() < cells {
                let count = pipe.read(&mut bytes)?;
                let now = clock::now();
                pending.push_str(&String::from_utf8_lossy(&bytes[..count]));
                while let Some((line, rest)) = pending.split_once('\n') {
                    if let Ok(index) = line.parse() {
                        stamps.push((index, now));
                    }
                    pending = rest.to_owned();
                }
            }
            Ok(stamps)
        })))
    }

    fn collect(self, cpus: &[u32]) -> Result<Vec<(u32, i64)>, BenchError> {
        let heard = self.0.join().map_err(|_| {
            BenchError::Failed("the thread that hears the stamps failed".to_owned())
        })?;
        let heard = heard.map_err(failed(Path::new("stamp"), "read the pipe"))?;
        Ok(heard
            .into_iter()
            .map(|(index, at)| (cpus[index % cpus.len()], at))
            .collect())
    }
}
