//! Runs made up for tests and for the demonstration, written through the record's own writer.
#![allow(dead_code, missing_docs)]

pub mod crowd;

use host::doctor::{Check, State};
use host::provenance::{EngineFound, Provenance};
use host::virt::Virtualization;
use model::{EngineKind, Experiment, Requirement};
use record::Kind;
use record::histogram::Collector;
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::samples::{HEADER_BYTES, Header, Sample};
use record::summary::{Metric, NotMeasured};
use record::trial::{
    CellRecord, CrowdRecord, HoldsRecord, LoadRecord, SetBy, TRIAL_SCHEMA, TrialRecord, TurnsRecord,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A small deterministic generator; its number is the seed.
pub struct Chance(pub u64);

impl Chance {
    /// Uniform between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }

    /// Of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// A run under construction.
pub struct Synthetic {
    pub dir: PathBuf,
    pub run: Run,
    pub manifest: Manifest,
    pub jobs: u64,
    /// Loads of the next trial.
    pub loads: Vec<LoadRecord>,
    /// The next trial's crowd, beyond its cells.
    pub crowd: Option<CrowdRecord>,
    /// The part of the next trial in turns.
    pub turns: Option<TurnsRecord>,
    /// The holders of the next trial's cells.
    pub holds: Option<HoldsRecord>,
    next: u32,
}

/// Record and samples of a trial's cell.
pub struct Cell {
    pub record: CellRecord,
    pub samples: Option<(Header, Vec<Sample>)>,
}

impl Synthetic {
    /// `toml` is an experiment file; the run is made in `base`.
    pub fn new(base: &Path, toml: &str) -> Synthetic {
        Synthetic::with(base, toml, &provenance())
    }

    pub fn with(base: &Path, toml: &str, provenance: &Provenance) -> Synthetic {
        let experiment = Experiment::parse("test.toml", toml).unwrap();
        let manifest = Manifest {
            failure: None,
            schema: RUN_SCHEMA,
            timecell_version: "0.1.0".to_owned(),
            status: Status::Complete,
            started: "2026-11-21T20:05:00Z".to_owned(),
            finished: Some("2026-11-21T20:06:31Z".to_owned()),
            trials_planned: experiment.rounds * experiment.trials.len() as u32,
            trials_done: 0,
            requirements: Vec::new(),
            not_measured: Vec::new(),
            resumed: Vec::new(),
            remarks: Vec::new(),
        };
        let run = Run::create(
            base,
            "2026-11-21T210500",
            Kind::Jobs,
            &experiment.name,
            |run| run.write_experiment(&experiment),
            provenance,
            &manifest,
        )
        .unwrap();
        Synthetic {
            dir: run.dir().to_owned(),
            run,
            manifest,
            jobs: experiment.workload.jobs.into(),
            loads: Vec::new(),
            crowd: None,
            turns: None,
            holds: None,
            next: 1,
        }
    }

    /// Adds a trial.
    pub fn trial(&mut self, name: &str, round: u32, cells: Vec<Cell>) {
        self.trial_failed(name, round, cells, None);
    }

    pub fn trial_failed(
        &mut self,
        name: &str,
        round: u32,
        cells: Vec<Cell>,
        failure: Option<&str>,
    ) {
        let mut files = Vec::new();
        for cell in &cells {
            if let Some((header, samples)) = &cell.samples {
                let path = self.dir.join(format!("{}.tmp", cell.record.id));
                std::fs::write(&path, bytes(header, samples)).unwrap();
                files.push((cell.record.id.clone(), path));
            }
        }
        let cells = cells.into_iter().map(|cell| cell.record).collect();
        let record = self.record(name, round, cells, failure);
        self.run.write_trial(&record, &files).unwrap();
        for (_, path) in files {
            std::fs::remove_file(path).unwrap();
        }
        self.next += 1;
        self.manifest.trials_done += 1;
        self.finish();
    }

    /// Adds a trial of which histograms of one second each are kept.
    pub fn kept(&mut self, name: &str, round: u32, cells: Vec<Cell>) {
        let work = self.run.experiment().unwrap().workload.work;
        let mut logs = Vec::new();
        let mut records = Vec::new();
        for cell in cells {
            if let Some((header, samples)) = &cell.samples {
                let metrics = Metric::of_work(work);
                let mut collector = Collector::new(metrics, GO, 1_000_000_000);
                let mut log = collector.begin(header, SystemTime::UNIX_EPOCH);
                for sample in samples {
                    log.extend(collector.take(sample).unwrap_or_default());
                }
                log.extend(collector.end(header));
                logs.push((cell.record.id.clone(), log));
            }
            records.push(cell.record);
        }
        let record = self.record(name, round, records, None);
        self.run.begin_trial(&record).unwrap();
        for (id, log) in logs {
            std::fs::write(self.run.log_path(self.next, &id), log).unwrap();
        }
        self.run.end_trial(&record).unwrap();
        self.next += 1;
        self.manifest.trials_done += 1;
        self.finish();
    }

    fn record(
        &mut self,
        name: &str,
        round: u32,
        cells: Vec<CellRecord>,
        failure: Option<&str>,
    ) -> TrialRecord {
        TrialRecord {
            schema: TRIAL_SCHEMA,
            number: self.next,
            name: name.to_owned(),
            round,
            go_ns: Some(GO),
            go_unix_ns: Some(1_700_000_000_000_000_000),
            arming_ns: Some(30_000_000),
            cells,
            loads: std::mem::take(&mut self.loads),
            isolation: None,
            counters: Vec::new(),
            failure: failure.map(str::to_owned),
            continues: None,
            cut_off: None,
            crowd: self.crowd.take(),
            holds: self.holds.take(),
            turns: self.turns.take(),
            arms: Vec::new(),
        }
    }

    /// Writes the manifest as it stands.
    pub fn finish(&self) {
        self.run.write(&self.manifest).unwrap();
    }
}

/// The instant that every barrier of these runs publishes.
pub const GO: i64 = 1_000_000_000_000;

/// A good cell that ran FIFO 80 on cpu 1; jobs are (release, start, end) in ns.
pub fn cell(id: &str, engine: EngineKind, jobs: &[(i64, i64, i64)]) -> Cell {
    let samples: Vec<Sample> = jobs
        .iter()
        .enumerate()
        .map(|(index, &(release_ns, start_ns, end_ns))| Sample {
            index: index as u32,
            skipped: 0,
            release_ns,
            start_ns,
            end_ns,
        })
        .collect();
    let header = Header {
        complete: 1,
        planned: samples.len() as u64,
        count: samples.len() as u64,
        go_ns: GO,
        period_ns: 1_000_000,
        work: 1,
        pacing: 1,
        policy: 1,
        priority: 80,
        memory_locked: 1,
        cpu_time_ns: 280_000 * samples.len() as u64,
        clock_cost_ns: 24,
        loop_cost_ns: 61,
        ..Header::new()
    };
    Cell {
        record: CellRecord {
            task: None,
            reported: Vec::new(),
            id: id.to_owned(),
            engine,
            cpu: 1,
            cpus: Vec::new(),
            class_wanted: "FIFO 80".to_owned(),
            class_got: Some("FIFO 80".to_owned()),
            set_by: SetBy::Cell,
            real_time: true,
            create_ns: Some(3_000_000),
            started_ns: Some(GO + 4_000),
            machine: None,
            notes: Vec::new(),
            failure: None,
        },
        samples: Some((header, samples)),
    }
}

/// Jobs released every millisecond that start at once and take these times in ns.
pub fn taking(times_ns: &[i64]) -> Vec<(i64, i64, i64)> {
    let job = |(index, &time): (usize, &i64)| {
        let release = GO + index as i64 * 1_000_000;
        (release, release + 2_000, release + 2_000 + time)
    };
    times_ns.iter().enumerate().map(job).collect()
}

/// Marks activations before the job at `position` as skipped.
pub fn miss(cell: &mut Cell, position: usize, skipped: u32) {
    if let Some((header, samples)) = &mut cell.samples {
        samples[position].skipped += skipped;
        for sample in &mut samples[position..] {
            sample.index += skipped;
        }
        header.skipped += u64::from(skipped);
        header.planned += u64::from(skipped);
    }
}

fn bytes(header: &Header, samples: &[Sample]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let head = header.to_bytes();
    bytes[..head.len()].copy_from_slice(&head);
    for sample in samples {
        bytes.extend_from_slice(&sample.to_bytes());
    }
    bytes
}

/// An unmet requirement and an engine that was not measured.
pub fn lacking(manifest: &mut Manifest) {
    manifest.requirements = vec![
        Requirement::met("SCHED_FIFO", "granted by CAP_SYS_NICE"),
        Requirement::unmet(
            "docker",
            "no daemon answers on /run/docker.sock",
            "apt install docker.io",
        ),
    ];
    manifest.not_measured = vec![NotMeasured {
        trial: "docker".to_owned(),
        reason: "no daemon answers on /run/docker.sock".to_owned(),
        fix: "apt install docker.io".to_owned(),
    }];
}

/// A made-up machine.
pub fn provenance() -> Provenance {
    let check = |id: &'static str,
                 title: &'static str,
                 state,
                 found: &str,
                 why: &'static str,
                 fix: &str| Check {
        id: id.into(),
        title: title.into(),
        state,
        found: found.to_owned(),
        why: why.into(),
        fix: (!fix.is_empty()).then(|| fix.to_owned()),
    };
    Provenance {
        schema: 1,
        time_utc: "2026-11-21T20:05:00Z".to_owned(),
        timecell_version: "0.1.0".to_owned(),
        hostname: Some("board".to_owned()),
        kernel_release: Some("6.18.0".to_owned()),
        kernel_version: Some("#1 SMP PREEMPT_DYNAMIC".to_owned()),
        preempt_rt: Some(false),
        arch: "x86_64".to_owned(),
        cpu_model: Some("AMD EPYC 7763 64-Core Processor".to_owned()),
        cpus_online: vec![0, 1],
        memory_bytes: Some(8 << 30),
        cmdline: Some("console=ttyS0 root=/dev/vda1 isolcpus=1 nohz_full=1 rcu_nocbs=1".to_owned()),
        virtualization: Virtualization {
            emulated: None,
            virtual_machine: Some(true),
            hypervisor: Some("KVM".to_owned()),
            container: false,
        },
        uid: Some(0),
        capabilities: vec!["CAP_SYS_ADMIN".to_owned(), "CAP_SYS_NICE".to_owned()],
        checks: vec![
            check(
                "preemption",
                "preemption model",
                State::Warning,
                "PREEMPT_DYNAMIC, voluntary",
                "Without PREEMPT_RT, kernel code may hold up a real-time task for milliseconds.",
                "boot a kernel built with CONFIG_PREEMPT_RT=y",
            ),
            check(
                "rt-throttling",
                "real-time throttling",
                State::Warning,
                "real-time tasks may use 950000 us of every 1000000 us on each cpu",
                "A real-time task that never sleeps is stopped for 50 ms in every second.",
                "sysctl -w kernel.sched_rt_runtime_us=-1",
            ),
            check(
                "clocksource",
                "clock source",
                State::Good,
                "tsc",
                "A slow clock source adds its reading time to every measurement.",
                "",
            ),
            check(
                "hypervisor",
                "hypervisor",
                State::Info,
                "KVM",
                "The hypervisor may take the cpu away at any time.",
                "",
            ),
            check(
                "swap",
                "swap",
                State::Good,
                "none",
                "A page fault from disk takes milliseconds.",
                "",
            ),
        ],
        engines: vec![
            EngineFound {
                name: "podman".to_owned(),
                version: Some("5.4.2".to_owned()),
                path: Some("/usr/bin/podman".to_owned()),
                problem: None,
            },
            EngineFound {
                name: "docker".to_owned(),
                version: None,
                path: None,
                problem: Some("no daemon answers".to_owned()),
            },
        ],
    }
}
