//! Empties the rings of a histogram trial while it runs: tens of milliseconds behind the cells, on other cpus, in class OTHER. The
//! histograms go to the disk interval by interval, in a separate thread, so that a slow disk does not keep the rings waiting. Data without
//! room there goes to shared memory instead, from where it is salvaged.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;

use probe::control::State;
use probe::{Barrier, BarrierError, RingReader, Wake, clock};
use record::Metric;
use record::RecordError;
use record::histogram::{Collector, Counts};

use crate::BenchError;
use crate::error::failed;
use crate::salvage::append_whole;
use crate::session::{Going, Progress};

/// Between two looks at the rings, ns; a ring holds two seconds.
const TICK_NS: i64 = 20_000_000;
/// How long after its end an interval is closed if no later job has come, ns.
const GRACE_NS: i64 = 2_000_000_000;
/// Between two messages to the user, ns.
const WORD_NS: i64 = 1_000_000_000;

/// Drains the rings of one trial.
pub(crate) struct Drain<'a> {
    cells: Vec<Drained>,
    writer: Writer,
    progress: &'a mut dyn Progress,
    metric: Metric,
    planned: u64,
    /// When the run should end, CLOCK_MONOTONIC ns.
    expected_end_ns: i64,
    last_word_ns: i64,
}

struct Drained {
    ring: RingReader,
    collector: Collector,
    /// Its log has got its end.
    ended: bool,
}

/// The input of a trial's drain.
pub(crate) struct Rings<'a> {
    /// Ring and log of each cell, and where the rest of its log goes when the disk is full.
    pub files: Vec<(PathBuf, PathBuf, PathBuf)>,
    /// Primary first.
    pub metrics: &'a [Metric],
    pub interval_ns: i64,
    pub go_ns: i64,
    pub expected_end_ns: i64,
}

impl<'a> Drain<'a> {
    /// Opens rings and logs. `wake` wakes the coordinator when a log cannot be written.
    pub(crate) fn start(
        rings: &Rings<'_>,
        wake: Wake,
        progress: &'a mut dyn Progress,
    ) -> Result<Drain<'a>, BenchError> {
        let mut cells = Vec::new();
        let mut logs = Vec::new();
        for (ring, log, rest) in &rings.files {
            cells.push(Drained {
                ring: RingReader::open(ring).map_err(failed(ring, "open the ring"))?,
                collector: Collector::new(rings.metrics, rings.go_ns, rings.interval_ns),
                ended: false,
            });
            let file = host::writer::append(log).map_err(failed(log, "make the histogram log"))?;
            logs.push(Log {
                path: log.clone(),
                file,
                rest: rest.clone(),
            });
        }
        Ok(Drain {
            planned: cells.iter().map(|cell| cell.ring.header().planned).sum(),
            cells,
            writer: Writer::start(logs, wake)
                .map_err(|error| BenchError::Failed(format!("cannot start a thread: {error}")))?,
            progress,
            metric: rings.metrics[0],
            expected_end_ns: rings.expected_end_ns,
            last_word_ns: 0,
        })
    }

    /// Drains until every cell is done; otherwise as [`Barrier::wait_all`].
    pub(crate) fn until_done(
        &mut self,
        barrier: &Barrier,
        deadline_ns: i64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), BarrierError> {
        loop {
            self.look(Some(barrier));
            let tick = clock::now() + TICK_NS;
            let writer = &self.writer;
            let waited = barrier.wait_all(State::Done, "done", tick.min(deadline_ns), || {
                stop() || writer.failed()
            });
            match waited {
                Err(BarrierError::TimedOut { .. }) if clock::now() < deadline_ns => {}
                ended => return ended,
            }
        }
    }

    /// A cell that is done gets the end of its log at once: its measurements no longer depend on this process.
    fn look(&mut self, barrier: Option<&Barrier>) {
        let now = clock::now();
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let Drained {
                ring,
                collector,
                ended,
            } = cell;
            if *ended {
                continue;
            }
            let done = barrier.is_some_and(|barrier| barrier.state(index) == State::Done);
            let header = ring.header();
            ring.drain(|sample| {
                if !collector.has_begun() {
                    self.writer
                        .write(index, collector.begin(&header, SystemTime::now()));
                }
                if let Some(text) = collector.take(sample) {
                    self.writer.write(index, text);
                }
            });
            if done && collector.has_begun() && header.complete == 1 {
                self.writer.write(index, collector.end(&header));
                *ended = true;
            } else if let Some(text) = collector.close_if_over(now, GRACE_NS) {
                self.writer.write(index, text);
            }
        }
        if now - self.last_word_ns >= WORD_NS {
            self.last_word_ns = now;
            self.progress.going(&Going {
                metric: self.metric,
                worst_ns: self
                    .cells
                    .iter()
                    .filter_map(|cell| cell.collector.worst_ns())
                    .max(),
                counts: self.counts(),
                planned: self.planned,
                left_ns: self.expected_end_ns - now,
            });
        }
    }

    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.cells.iter().map(|cell| cell.collector.counts()) {
            sum.executed += counts.executed;
            sum.skipped += counts.skipped;
            sum.lost += counts.lost;
        }
        sum
    }

    /// Takes the rest out of the rings and waits until all is on the disk. Logs of cells that ended normally get their end written, others
    /// only the measurements.
    pub(crate) fn finish(mut self) -> Result<(), BenchError> {
        // Before the rings: a cell that reports only then that it is complete may have written more into them since.
        let headers: Vec<_> = self.cells.iter().map(|cell| cell.ring.header()).collect();
        self.look(None);
        for (index, (cell, header)) in self.cells.iter_mut().zip(headers).enumerate() {
            if cell.ended {
                continue;
            }
            let text = if !cell.collector.has_begun() {
                None
            } else if header.complete == 1 {
                Some(cell.collector.end(&header))
            } else {
                cell.collector.close()
            };
            if let Some(text) = text {
                self.writer.write(index, text);
            }
        }
        self.writer.finish().map_err(BenchError::Record)
    }
}

/// The thread that appends to the logs and syncs each piece to the disk.
struct Writer {
    to: Option<Sender<(usize, Vec<u8>)>>,
    error: Arc<Mutex<Option<RecordError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(logs: Vec<Log>, wake: Wake) -> std::io::Result<Writer> {
        let (to, from) = channel();
        let error = Arc::default();
        let shared = Arc::clone(&error);
        let thread = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || append(logs, &from, &shared, &wake))?;
        Ok(Writer {
            to: Some(to),
            error,
            thread: Some(thread),
        })
    }

    fn write(&self, log: usize, text: Vec<u8>) {
        if let Some(to) = &self.to {
            // Fails only when the thread gave up, which has its reason on record.
            let _ = to.send((log, text));
        }
    }

    fn failed(&self) -> bool {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn finish(mut self) -> Result<(), RecordError> {
        self.join();
        let error = self
            .error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        error.map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.join();
    }
}

/// Where the thread writes the pieces of one cell.
struct Log {
    path: PathBuf,
    file: File,
    rest: PathBuf,
}

/// Once one piece could not be written, all that follow go to shared memory, so that no log has a gap.
fn append(
    mut logs: Vec<Log>,
    from: &Receiver<(usize, Vec<u8>)>,
    error: &Mutex<Option<RecordError>>,
    wake: &Wake,
) {
    let mut full = false;
    for (log, text) in from {
        let Some(log) = logs.get_mut(log) else {
            continue;
        };
        if !full && let Err(failed) = appended(log, &text) {
            full = true;
            *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
            wake.wake();
        }
        if full {
            // Without it the log ends where the disk was full, which its reader counts.
            let rest = host::foreign_file::append(&log.rest);
            let _ = rest.and_then(|mut rest| rest.write_all(&text));
        }
    }
}

/// Appends the whole text or nothing.
fn appended(log: &mut Log, text: &[u8]) -> Result<(), RecordError> {
    append_whole(&mut log.file, text).map_err(|source| RecordError::Io {
        path: log.path.clone(),
        doing: "write",
        source,
    })
}
