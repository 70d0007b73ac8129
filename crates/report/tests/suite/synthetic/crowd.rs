//! Scale studies made up by simulating cells that rest and wait in line for their cpu.

use super::{Cell, GO, Synthetic, cell};
use model::EngineKind;
use record::crowd::{CrowdMemory, CrowdRecord, GaveOut, Priorities, Waiting, WatchdogRecord};

/// Cpu time of a job and rest between jobs, ns.
pub const DEMAND: i64 = 270_000;
pub const REST: i64 = 1_000_000;

/// A study of these numbers of cells on cpus 0 and 1.
pub fn toml(engines: &[&str], counts: &[u32]) -> String {
    let engines: Vec<String> = engines.iter().map(|e| format!("\"{e}\"")).collect();
    format!(
        "schema = 1\nname = \"scale\"\nquestion = \"How many?\"\nrounds = 1\n[workload]\nkind = \"mac\"\njobs = 300\n\
         period = \"1ms\"\npacing = \"relative\"\n[scheduling]\nclass = \"fifo\"\npriority = 80\ncpus = [0, 1]\n\
         [scale]\nengines = [{}]\ncounts = {counts:?}\n",
        engines.join(", ")
    )
}

/// Demand with a little noise that repeats.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(2).wrapping_add(1))
    }

    /// Between -`most` and `most`.
    pub fn next(&mut self, most: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % (2 * most as u64 + 1)) as i64 - most
    }
}

/// Cells on two cpus, served in order of arrival, each job taking `demand` within 2 %; cell `slow` takes twice as long.
pub fn simulate(
    engine: EngineKind,
    count: u32,
    jobs: u32,
    demand: i64,
    slow: Option<u32>,
) -> Vec<Cell> {
    let mut noise = Noise::new(u64::from(count) + 77);
    let mut done: Vec<Vec<(i64, i64, i64)>> = vec![Vec::new(); count as usize];
    for cpu in 0..2 {
        let mut free = GO + 4_000;
        let mut waiting: std::collections::BTreeSet<(i64, u32)> = (0..count)
            .filter(|cell| cell % 2 == cpu)
            .map(|cell| (GO, cell))
            .collect();
        while let Some((release, cell)) = waiting.pop_first() {
            let start = free.max(release) + 3_000;
            let times = if slow == Some(cell) { 2 } else { 1 };
            let end = start + times * demand + noise.next(demand / 50);
            free = end;
            let of_cell = &mut done[cell as usize];
            of_cell.push((release, start, end));
            if of_cell.len() < jobs as usize {
                waiting.insert((end + REST, cell));
            }
        }
    }
    done.iter()
        .enumerate()
        .map(|(at, jobs)| {
            let mut made = cell(&format!("{}-{engine}", at + 1), engine, jobs);
            made.record.cpu = at as u32 % 2;
            made.record.started_ns = jobs.first().map(|job| job.1);
            if let Some((header, _)) = &mut made.samples {
                header.pacing = 2;
                header.cpu_time_ns = jobs
                    .iter()
                    .map(|(_, start, end)| (end - start) as u64)
                    .sum();
            }
            made
        })
        .collect()
}

/// Creation, memory and waiting as they might be.
pub fn crowd(count: u32, finished: u32) -> CrowdRecord {
    let cells = u64::from(count);
    CrowdRecord {
        asked: count,
        parallel: 8,
        created: finished,
        armed: finished,
        finished,
        creation_ns: 20_000_000 + i64::from(count) * 6_000_000,
        removal_ns: Some(i64::from(count) * 3_000_000),
        memory: Some(CrowdMemory {
            cells: finished,
            payload_pss_bytes: cells * 640_000 + 2_000_000,
            payload_rss_bytes: cells * 2_600_000,
            helpers_pss_bytes: cells * 90_000,
            kernel_bytes: Some(cells * 310_000),
        }),
        waiting: Some(Waiting {
            window_ns: 10_000_000_000,
            cpu_ns: i64::from(count) * 900,
        }),
        watchdog: Some(WatchdogRecord {
            worst_delay_ns: 3_100_000,
            limit_ns: 1_000_000_000,
            froze: false,
            priorities: Some(Priorities {
                coordinator: 90,
                watchdog: 91,
                cells: 80,
            }),
        }),
        gave_out: None,
        reservation: None,
    }
}

/// A study's limit.
pub fn pids() -> GaveOut {
    GaveOut {
        what: "process ids".to_owned(),
        limit: "/sys/fs/cgroup/pids/pids.max".to_owned(),
        value: Some("1,000 of 1,000".to_owned()),
        fix: "write a larger number into it".to_owned(),
    }
}

/// Adds a trial of so many cells that all came through.
pub fn add(run: &mut Synthetic, engine: EngineKind, count: u32, jobs: u32, demand: i64) {
    run.crowd = Some(crowd(count, count));
    let cells = simulate(engine, count, jobs, demand, None);
    run.trial(&format!("{engine}-{count}"), 1, cells);
}
