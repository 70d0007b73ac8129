//! What the rounds share, and the rounds themselves.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Mutex, PoisonError};

use engine::{Cell, CellSpec, Engine, Rights};
use host::process;
use host::rtgroup::RtGroup;
use model::{Pacing, Work};
use probe::control::State;
use probe::{Barrier, BarrierKind, ClassBy, ProbeArgs, clock};

use super::shell::{self, Stamps};
use super::{How, Round, Seen};
use crate::BenchError;
use crate::crowd::looks::{memory, used_ns};
use crate::error::failed;
use crate::parallel;
use crate::place::Place;
use crate::sweep::new_place;

/// Longest wait for any step of a round.
const PATIENCE_NS: i64 = 120_000_000_000;

/// What the rounds share.
pub(in crate::selfcheck) struct Stage {
    /// SCHED_FIFO priority of futex cells.
    priority: u8,
    pub(in crate::selfcheck) cpus: Vec<u32>,
    place: Place,
    rootfs: PathBuf,
    rt_group: Option<RtGroup>,
    rounds: u32,
}

/// The cells of one round; removed on drop, on errors too.
struct Cells {
    made: Mutex<Vec<Option<Box<dyn Cell>>>>,
    parallel: usize,
}

impl Cells {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Box<dyn Cell>>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pids(&self) -> Vec<i32> {
        self.lock()
            .iter()
            .flatten()
            .map(|cell| cell.pid())
            .collect()
    }

    fn remove(&self) -> Result<(), BenchError> {
        let mut left = std::mem::take(&mut *self.lock());
        let slots: Vec<Mutex<&mut Option<Box<dyn Cell>>>> =
            left.iter_mut().map(Mutex::new).collect();
        parallel::all(self.parallel, slots.len(), |index| {
            let mut slot = slots[index].lock().unwrap_or_else(PoisonError::into_inner);
            match &mut **slot {
                Some(cell) => Ok(cell.remove()?),
                None => Ok(()),
            }
        })
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

impl Stage {
    pub(in crate::selfcheck) fn new(priority: u8) -> Result<Stage, BenchError> {
        let cpus = host::cpus::online().map_err(|error| BenchError::Failed(error.to_string()))?;
        let mut place = new_place()?;
        let rootfs = place.rootfs()?;
        shell::install(&rootfs)?;
        let rt_group = crate::rt_group::shared_rt_group(&mut place, 0)?;
        Ok(Stage {
            priority,
            cpus,
            place,
            rootfs,
            rt_group,
            rounds: 0,
        })
    }

    /// Makes, arms, releases and removes the cells of one round.
    pub(in crate::selfcheck) fn round(
        &mut self,
        engine: &dyn Engine,
        round: &Round,
        seen: &mut Seen,
    ) -> Result<(), BenchError> {
        self.rounds += 1;
        let number = self.rounds;
        let (how, cells) = (round.how, round.cells);
        let shared = self.place.sub(&format!("trials/{number}/shared"))?;
        let control = shared.join("control");
        let barrier =
            Barrier::create(&control, cells).map_err(failed(&control, "make the control page"))?;
        let deadline = clock::now() + PATIENCE_NS;
        let stamps = (how == How::PollShell)
            .then(|| Stamps::listen(&shared, cells))
            .transpose()?;
        let specs = (0..cells)
            .map(|index| self.spec(engine, how, index, &shared))
            .collect::<Result<Vec<_>, _>>()?;
        let made = Cells {
            made: Mutex::new((0..cells).map(|_| None).collect()),
            parallel: round.parallel,
        };
        let asked = clock::now();
        let created: Result<(), BenchError> = parallel::all(round.parallel, cells, |index| {
            let cell = engine.create(&specs[index])?;
            let pid = cell.pid();
            made.lock()[index] = Some(cell);
            if how == How::PollShell {
                return Ok(());
            }
            wait(barrier.wait_cell(index, State::Present, "present", deadline, || false))?;
            if let Some(group) = &self.rt_group {
                group
                    .add(pid)
                    .map_err(|error| BenchError::Failed(error.to_string()))?;
            }
            barrier.permit(index);
            Ok(())
        });
        created?;
        let last = (0..cells)
            .map(|index| barrier.slot(index).present_ns.load(Acquire))
            .max();
        let last = last.filter(|ns| *ns != 0).unwrap_or_else(clock::now);
        seen.creation_ns.push(last - asked);
        if how != How::PollShell {
            wait(barrier.wait_all(State::Armed, "armed", deadline, || false))?;
            if let Some(why) = (0..cells).find_map(|index| barrier.failure(index)) {
                return Err(BenchError::Failed(format!("a cell {why}")));
            }
        }
        let pids = made.pids();
        // A shell's sleeps are processes of their own, already reaped: only its cpu share of children tells.
        let told_whole = how != How::PollShell;
        let look = || process::cpu_ns(&pids).map_err(told);
        let before = told_whole.then(look).transpose()?;
        clock::sleep_for(round.settle_ns);
        if let Some(before) = before {
            seen.waiting_ns.push(used_ns(&before, &look()?));
        }
        if round.memory {
            let dir = self.place.dir().join(format!("trials/{number}/cells"));
            let mark = format!("timecell-{}-{number}-", std::process::id());
            let all = memory(&pids, &mark, &dir).map_err(told)?;
            let bytes = all.payload_pss_bytes + all.helpers_pss_bytes;
            seen.pss_bytes.push(bytes.cast_signed());
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
        let began = clock::now();
        made.remove()?;
        seen.removal_ns.push(clock::now() - began);
        let trial = self.place.dir().join(format!("trials/{number}"));
        let _ = std::fs::remove_dir_all(trial);
        seen.add_starts(&starts);
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

    fn spec(
        &self,
        engine: &dyn Engine,
        how: How,
        index: usize,
        shared: &Path,
    ) -> Result<CellSpec, BenchError> {
        let args = ProbeArgs {
            control: "/cell/control".into(),
            slot: index,
            samples: None,
            ring: false,
            work: Work::Timer,
            pacing: Pacing::Periodic,
            period_ns: 1_000_000,
            jobs: 0,
            fifo: (how == How::Futex).then_some(self.priority),
            deadline: None,
            cpu: self.cpu(index),
            class_by: ClassBy::Cell,
            barrier: match how {
                How::PollProbe => BarrierKind::PollFile("/cell/GO".into()),
                _ => BarrierKind::Futex,
            },
            ..ProbeArgs::default()
        };
        let words = if how == How::PollShell {
            shell::words(index)
        } else {
            let mut words = vec!["probe".to_owned(), "run".to_owned()];
            words.extend(args.to_words());
            words
        };
        let number = self.rounds;
        Ok(CellSpec {
            id: format!("timecell-{}-{number}-{index}", std::process::id()),
            engine: engine.kind(),
            rootfs: self.rootfs.clone(),
            words,
            shared: shared.to_owned(),
            work_dir: self.place.sub(&format!("trials/{number}/cells/{index}"))?,
            user: None,
            rights: Rights {
                rtprio: self.priority,
                memlock_bytes: 128 << 20,
                devices: Vec::new(),
            },
        })
    }
}

fn wait(result: Result<(), probe::BarrierError>) -> Result<(), BenchError> {
    result.map_err(|error| BenchError::Failed(error.to_string()))
}

fn told(error: std::io::Error) -> BenchError {
    BenchError::Failed(error.to_string())
}

fn touch(path: &Path) -> Result<(), BenchError> {
    std::fs::File::create(path)
        .map(drop)
        .map_err(failed(path, "create"))
}
