//! Reads counters beside the cells while they are measured, from a separate thread in class OTHER.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use host::counters::{self, HARDWARE, SOFTWARE, TaskCounters};
use host::sched;
use probe::clock;
use record::trial::CellCounters;

/// Time between two readings, ns.
const WINDOW_NS: i64 = 10_000_000;
/// Readings of one trial at most; in a longer trial they are farther apart.
const MOST: i64 = 20_000;

/// The thread.
pub(crate) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<CellCounters>>>,
}

/// A cell to be watched.
pub(crate) struct Subject {
    /// Its identity in the trial.
    pub id: String,
    /// The task that measures; `None` where the counters of the task are not read: it reads them itself, and two readers of one task's
    /// counters would wait for each other.
    pub pid: Option<i32>,
    /// Its cpu.
    pub cpu: u32,
}

/// One cell that is watched.
struct Watched {
    cpu: u32,
    task: Option<TaskCounters>,
    first: Option<Vec<u64>>,
    found: CellCounters,
}

impl Sampler {
    /// Begins to read the counters of these cells, which will be measured for `loop_ns`.
    pub(crate) fn start(cells: Vec<Subject>, loop_ns: i64) -> Sampler {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let window_ns = WINDOW_NS.max(loop_ns / MOST);
        let thread = std::thread::Builder::new()
            .name("counters".to_owned())
            .spawn(move || sample(cells, window_ns, &seen))
            .ok();
        Sampler { over, thread }
    }

    /// Ends it and returns its readings.
    pub(crate) fn stop(mut self) -> Vec<CellCounters> {
        self.over.store(true, Ordering::Release);
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

fn sample(cells: Vec<Subject>, window_ns: i64, over: &AtomicBool) -> Vec<CellCounters> {
    let mut lacking = Vec::new();
    let cpus: Vec<u32> = cells.iter().map(|cell| cell.cpu).collect();
    let elsewhere: Vec<u32> = (sched::get_affinity(0).unwrap_or_default().into_iter())
        .filter(|cpu| !cpus.contains(cpu))
        .collect();
    if elsewhere.is_empty() || sched::set_affinity(0, &elsewhere).is_err() {
        lacking.push("a cpu without cells: the counters were read on the cells' cpus".to_owned());
    }
    let mut watched: Vec<Watched> = (cells.into_iter())
        .map(|cell| watch(cell, window_ns, &lacking))
        .collect();
    let mut next = clock::now();
    while !over.load(Ordering::Acquire) {
        read(&mut watched);
        // Late windows are not made up for: their own times are on record.
        next = (next + window_ns).max(clock::now());
        clock::sleep_for((next - clock::now()).max(0));
    }
    read(&mut watched);
    watched.into_iter().map(|watched| watched.found).collect()
}

fn watch(subject: Subject, window_ns: i64, lacking: &[String]) -> Watched {
    let mut found = CellCounters {
        cell: subject.id,
        window_ns,
        lacking: lacking.to_vec(),
        ..CellCounters::default()
    };
    let task = subject.pid.and_then(|pid| {
        TaskCounters::attach(pid, &HARDWARE)
            .or_else(|why| {
                found.lacking.push(why.to_string());
                TaskCounters::attach(pid, &SOFTWARE)
            })
            .map_err(|why| found.lacking.push(why.to_string()))
            .ok()
    });
    let of_task = task.iter().flat_map(TaskCounters::counters);
    found.names = of_task
        .map(|counter| format!("{} of the cell", counter.name()))
        .chain(["interrupts of its cpu".to_owned()])
        .collect();
    found.counts = vec![Vec::new(); found.names.len()];
    Watched {
        cpu: subject.cpu,
        task,
        first: None,
        found,
    }
}

fn read(watched: &mut [Watched]) {
    let interrupts = counters::interrupts().unwrap_or_default();
    for one in watched {
        let mut now = match &one.task {
            None => Vec::new(),
            Some(task) => match task.read() {
                Ok(counts) => counts,
                Err(_) => continue,
            },
        };
        let own = interrupts.iter().find(|(cpu, _)| *cpu == one.cpu);
        now.push(own.map_or(0, |(_, count)| *count));
        let first = one.first.get_or_insert_with(|| now.clone());
        one.found.at_ns.push(clock::now());
        for ((column, count), first) in one.found.counts.iter_mut().zip(&now).zip(first) {
            column.push(count.saturating_sub(*first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_switches_is_seen_to_switch() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while sleep 0.01; do :; done"])
            .spawn()
            .unwrap();
        let cpu = host::cpus::default_rt_cpu();
        let pid = child.id().cast_signed();
        let subject = |id: &str, pid| Subject {
            id: id.to_owned(),
            pid,
            cpu,
        };
        let cells = vec![subject("1-bare", Some(pid)), subject("2-bare", None)];
        let sampler = Sampler::start(cells, 0);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let found = sampler.stop();
        child.kill().unwrap();
        child.wait().unwrap();
        let [cell, by_itself] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(by_itself.names, ["interrupts of its cpu"]);
        assert_eq!(cell.names.len(), cell.counts.len());
        assert!(cell.at_ns.len() >= 2);
        assert!(cell.at_ns.is_sorted());
        assert!(
            cell.counts
                .iter()
                .all(|column| column.len() == cell.at_ns.len() && column.is_sorted())
        );
        if cell.names.len() > 1 {
            assert!(
                cell.counts.iter().any(|column| column.last() > Some(&0)),
                "{cell:?}"
            );
        } else {
            assert!(!cell.lacking.is_empty());
        }
    }
}
