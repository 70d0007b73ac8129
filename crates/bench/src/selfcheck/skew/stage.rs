//! The rounds, and their common parts.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;

use engine::{CellSpec, Engine};
use host::process;
use host::rtgroup::RtGroup;
use probe::control::State;
use probe::{Barrier, BarrierKind, ProbeArgs, clock};

use super::shell::{self, Stamps};
use super::{How, Round, Seen};
use crate::BenchError;
use crate::cells::{Cells, Placement, parallel};
use crate::crowd::looks::{memory, used_ns};
use crate::error::failed;
use crate::launch::{probe_words, rights};
use crate::place::Place;
use crate::sweep::new_place;

/// Longest wait for any step of a round.
const PATIENCE_NS: i64 = 120_000_000_000;

/// Common to all rounds.
pub(crate) struct Stage {
    /// SCHED_FIFO priority of futex cells.
    priority: u8,
    pub(crate) cpus: Vec<u32>,
    place: Place,
    rootfs: PathBuf,
    rt_group: Option<RtGroup>,
    rounds: u32,
}

impl Stage {
    pub(crate) fn new(priority: u8) -> Result<Stage, BenchError> {
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
    pub(crate) fn round(
        &mut self,
        engine: &dyn Engine,
        round: &Round,
        seen: &mut Seen,
    ) -> Result<(), BenchError> {
        self.rounds += 1;
        let number = self.rounds;
        let (how, cells) = (round.how, round.cells);
        let shared = self.place.sub(&format!("trials/{number}/shared"))?;
        let made = Cells::new(&shared, cells, None)?;
        let barrier = &made.barrier;
        let stamps = (how == How::PollShell)
            .then(|| Stamps::listen(&shared, cells))
            .transpose()?;
        let specs = (0..cells)
            .map(|index| self.spec(engine, how, index, &shared))
            .collect::<Result<Vec<_>, _>>()?;
        let placement = Placement {
            rt_group: self.rt_group.as_ref(),
            ..Placement::default()
        };
        let asked = clock::now();
        parallel::all(round.parallel, cells, |index| {
            made.add(index..index + 1, engine.create(&specs[index])?);
            if how == How::PollShell {
                return Ok(());
            }
            (made.seat(index..index + 1, &placement)).map_err(BenchError::Failed)
        })?;
        let last = (0..cells)
            .map(|index| barrier.slot(index).present_ns.load(Acquire))
            .max();
        let last = last.filter(|ns| *ns != 0).unwrap_or_else(clock::now);
        seen.creation_ns.push(last - asked);
        if how != How::PollShell {
            (made.reach(0..cells, State::Armed, PATIENCE_NS)).map_err(BenchError::Failed)?;
        }
        let pids = made.threads();
        // A shell's sleeps are separate processes, already reaped: only its children's cpu time shows them.
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
            let all = memory(&pids, &mark, &dir, None).map_err(told)?;
            let bytes = all.payload_pss_bytes + all.helpers_pss_bytes;
            seen.pss_bytes.push(bytes.cast_signed());
        }
        let starts = match (how, stamps) {
            (How::Futex, _) => {
                barrier.open(Barrier::lead_ns(cells));
                self.starts(&made, cells)?
            }
            (_, None) => {
                touch(&shared.join("GO"))?;
                self.starts(&made, cells)?
            }
            (_, Some(stamps)) => {
                touch(&shared.join("GO"))?;
                stamps.collect(&self.cpus)?
            }
        };
        barrier.abort();
        let began = clock::now();
        if let Some(why) = made.remove(round.parallel).into_iter().next() {
            return Err(BenchError::Failed(why));
        }
        seen.removal_ns.push(clock::now() - began);
        let trial = self.place.dir().join(format!("trials/{number}"));
        let _ = std::fs::remove_dir_all(trial);
        seen.add_starts(&starts);
        Ok(())
    }

    fn starts(&self, made: &Cells<'_>, cells: usize) -> Result<Vec<(u32, i64)>, BenchError> {
        (made.reach(0..cells, State::Done, PATIENCE_NS)).map_err(BenchError::Failed)?;
        let start = |index| made.barrier.slot(index).started_ns.load(Acquire);
        Ok((0..cells)
            .map(|index| (self.cpu(index), start(index)))
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
            period_ns: 1_000_000,
            fifo: (how == How::Futex).then_some(self.priority),
            cpu: self.cpu(index),
            barrier: match how {
                How::PollProbe => BarrierKind::PollFile("/cell/GO".into()),
                _ => BarrierKind::Futex,
            },
            ..ProbeArgs::default()
        };
        let words = if how == How::PollShell {
            shell::words(index)
        } else {
            probe_words(&args)
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
            rights: rights(self.priority),
            machine: None,
        })
    }
}

fn told(error: std::io::Error) -> BenchError {
    BenchError::Failed(error.to_string())
}

fn touch(path: &Path) -> Result<(), BenchError> {
    std::fs::File::create(path)
        .map(drop)
        .map_err(failed(path, "create"))
}
