//! `footprint`: the memory of an idle real-time cell and of every process that its engine keeps for it.
//!
//! The cell is a probe that is armed and waits at the barrier: memory locked, real-time class, pinned. The kernel reports the use of it
//! and its helpers: proportional and resident set, mapped memory, and the charge of the cell's cgroup inside the kernel.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::{Cell, CellSpec, Rights};
use host::process::{self, Resident};
use host::rtgroup::RtGroup;
use model::{Bytes, Duration, EngineKind, InputErrors, Machine, Requirement, Size};
use probe::control::State;
use probe::{ClassBy, ProbeArgs, clock};
use record::Condition;
use record::series::Quantity;

use super::bench::{
    Bench, OwnOption, Prepared, Reading, SeriesOptions, SeriesScenario, Task, Turn,
};
use super::cells::{self, Subject};
use crate::cells::{ARMING_NS, Cells};
use crate::here::fifo_requirement;
use crate::launch::{Stage, probe_words, rights};
use crate::rt_group::shared_rt_group;
use crate::session::Interrupt;

pub(super) const SCENARIO: SeriesScenario = SeriesScenario {
    name: "footprint",
    question: "How much memory do an idle real-time cell and the processes kept for it take?",
    rounds: (10, 2),
    own: OwnOption::Nothing,
    prepare,
};

const PRIORITY: u8 = 80;
/// How a condition begins that names no class; the reason follows, which may name the cgroup of a login.
pub(super) const NO_CLASS: &str = "no real-time class";
/// Pause before looking, until the cell's creator has ended and the rest has settled, ns.
const SETTLING_NS: i64 = 200_000_000;
/// Room to lock all of the payload.
const MEMLOCK_BYTES: u64 = 1 << 30;

struct Footprint {
    subjects: Vec<Subject>,
    fifo: Option<u8>,
    cpu: u32,
    // Before the place: its note tells of the group until the group is gone.
    rt_group: Option<RtGroup>,
    stage: Stage,
}

fn prepare(options: &SeriesOptions) -> Result<Prepared, InputErrors> {
    let mut found = cells::find(options, true);
    let class = fifo_requirement(PRIORITY);
    let fifo = class.met.then_some(PRIORITY);
    found.needs.requirements.push(class.clone());
    let subjects = found.subjects;
    let tasks = subjects
        .iter()
        .map(|subject| Task {
            subject: subject.name.clone(),
            part: PSS.to_owned(),
            guess_ns: subject.kind.creation_ns() + SETTLING_NS,
        })
        .collect();
    Ok(Prepared {
        tasks,
        needs: found.needs,
        conditions: conditions(&class),
        found: BTreeMap::new(),
        sweep: Vec::new(),
        baseline: Some("bare".to_owned()),
        open: Box::new(move |run| {
            let mut stage = Stage::of_run(run)?;
            let contained = subjects.iter().any(|s| s.kind != EngineKind::Bare);
            let rt_group = if fifo.is_some() && contained {
                shared_rt_group(&mut stage.place, 0)?
            } else {
                None
            };
            Ok(Box::new(Footprint {
                subjects,
                fifo,
                cpu: host::cpus::default_rt_cpu(),
                rt_group,
                stage,
            }))
        }),
    })
}

fn conditions(class: &Requirement) -> Vec<Condition> {
    let class = if class.met {
        format!("SCHED_FIFO {PRIORITY}")
    } else {
        format!("{NO_CLASS}: {}", class.reason)
    };
    vec![
        Condition::new(
            "payload",
            "our own static binary, armed at the release barrier, without samples: all its memory is locked and so resident, \
             but where a user may lock little (rootless podman) only what it has touched",
        ),
        Condition::new("scheduling", class),
        Condition::new(
            "helpers",
            "every process that lives beside the payload because of the cell; a daemon that serves all cells is none, \
             and neither is the coordinator. \"attached\": the OCI runtime waits for the payload instead of detaching",
        ),
        Condition::new(
            "virtual machines",
            "the payload is in the guest, whose memory is QEMU's; timecell is QEMU's parent, which boots the machine. The least guest \
             memory with which it boots and its payload is armed is searched for once, by halving, from 64 MiB to the machine's own memory, \
             to 8 MiB; a guest that does not answer within 45 s does not boot. What QEMU maps for a machine that it emulates has room for \
             translated code in it, usually 1 GiB",
        ),
        Condition::new(
            "figures",
            "PSS and RSS from /proc/PID/smaps_rollup; mapped memory is VmSize of /proc/PID/status, the total that pmap \
             prints; kernel memory is what the cell's cgroup is charged for inside the kernel, where it has one",
        ),
    ]
}

const PSS: &str = "PSS";
const RSS: &str = "RSS";
const MAPPED: &str = "mapped memory";
const QEMU: &str = "QEMU";

/// Memory of a virtual machine in which its kernel boots and a task is ready, and which part of it is found by the search.
const LEAST: &str = "least guest memory";
/// The search for it ends when the bounds are so far apart, bytes.
const STEP_BYTES: u64 = 8 << 20;
/// How long a machine may take to boot during the search.
const TRIED_FOR: Duration = Duration::from_ns(45_000_000_000);

impl Bench for Footprint {
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String> {
        let subject = &self.subjects[turn.task];
        let name = format!("{}-{}", turn.number, subject.kind);
        let machine = subject.machine.as_ref();
        let mut readings = self.one(subject, &name, machine, turn.interrupt)?;
        // It is searched for once, in the first round.
        if let Some(machine) = machine.filter(|_| turn.number as usize <= self.subjects.len()) {
            let found = self.least(subject, machine, &readings, turn)?;
            readings.extend(found);
        }
        Ok(readings)
    }
}

impl Footprint {
    /// The memory of one cell.
    fn one(
        &self,
        subject: &Subject,
        name: &str,
        machine: Option<&engine::Machine>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Reading>, String> {
        let cells = Cells::new(&self.stage.shared, 1, Some(interrupt))
            .map_err(|error| error.to_string())?;
        let spec = CellSpec {
            machine: machine.cloned(),
            ..self.spec(subject, name)?
        };
        cells.add(0..1, subject.create(&spec)?);
        let group = self.rt_group.as_ref();
        let readings = cells
            .seat(0..1, &subject.placement(group, &[self.cpu], self.fifo))
            .and_then(|()| cells.reach(0..1, State::Armed, ARMING_NS))
            .and_then(|()| {
                clock::sleep_for(SETTLING_NS);
                let looked = cells.look(0, |cell| look(subject, cell, &spec));
                looked.unwrap_or_else(|| Err("the cell is gone".to_owned()))
            });
        let ended = cells.end().result();
        let _ = std::fs::remove_dir_all(&spec.work_dir);
        readings.and_then(|readings| ended.map(|()| readings))
    }

    /// The least memory with which the machine boots, found by halving, and what QEMU takes then. `usual` is the memory of the machine as
    /// it is.
    fn least(
        &self,
        subject: &Subject,
        machine: &engine::Machine,
        usual: &[Reading],
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Reading>, String> {
        let mut why_not = None;
        let mut at_least = usual.to_vec();
        let least = halved(machine.memory_bytes, |memory_bytes| {
            let size = Size {
                vcpus: None,
                memory_bytes: Some(memory_bytes),
            };
            let tried = (machine.sized(size, Some(TRIED_FOR))).map_err(|unmet| unmet.reason)?;
            let name = format!("{}-{}-{}", turn.number, subject.kind, memory_bytes >> 20);
            match self.one(subject, &name, Some(&tried), turn.interrupt) {
                Ok(readings) => {
                    at_least = readings;
                    Ok(true)
                }
                Err(why) if turn.interrupt.came() => Err(why),
                Err(why) => {
                    why_not = Some((memory_bytes, why));
                    Ok(false)
                }
            }
        })?;
        if let Some((bytes, why)) = why_not {
            let bytes = Bytes::new(bytes);
            // With the end of the console, on one line.
            let why: Vec<&str> = why.lines().map(str::trim).collect();
            let why = why.join(" / ");
            (turn.remarks).push(format!(
                "{} does not boot with {bytes}: {why}",
                subject.name
            ));
        }
        let bytes = |part: String, value| Reading::whole(part, Quantity::Bytes, value);
        let mut found = vec![bytes(LEAST.to_owned(), least.cast_signed())];
        for whole in [MAPPED, RSS] {
            let part = format!("{whole} of {QEMU}");
            let same = at_least.iter().find(|reading| reading.part == part);
            found.extend(same.map(|same| bytes(format!("{part} with the {LEAST}"), same.value)));
        }
        Ok(found)
    }

    fn spec(&self, subject: &Subject, name: &str) -> Result<CellSpec, String> {
        let args = ProbeArgs {
            control: "/cell/control".into(),
            slot: 0,
            period_ns: 1_000_000,
            jobs: 1,
            fifo: self.fifo,
            cpu: self.cpu,
            class_by: if subject.sets_class() {
                ClassBy::Cell
            } else {
                ClassBy::Coordinator
            },
            ..ProbeArgs::default()
        };
        let rights = Rights {
            memlock_bytes: MEMLOCK_BYTES,
            ..rights(self.fifo.unwrap_or(0))
        };
        let (kind, user) = (subject.kind, subject.user.as_ref());
        (self
            .stage
            .spec(name, kind, user, probe_words(&args), rights))
        .map_err(|error| error.to_string())
    }
}

/// The least of the multiples of [`STEP_BYTES`] from the least memory of a machine to `most` of which `boots` says yes, as it does of
/// `most`, bytes.
fn halved(most: u64, mut boots: impl FnMut(u64) -> Result<bool, String>) -> Result<u64, String> {
    let (mut no, mut yes) = (
        Machine::LEAST_MEMORY / STEP_BYTES - 1,
        most.div_ceil(STEP_BYTES),
    );
    while no + 1 < yes {
        let middle = u64::midpoint(no, yes);
        match boots(middle * STEP_BYTES)? {
            true => yes = middle,
            false => no = middle,
        }
    }
    Ok(yes * STEP_BYTES)
}

/// Everything of the cell, once.
fn look(subject: &Subject, cell: &dyn Cell, spec: &CellSpec) -> Result<Vec<Reading>, String> {
    let payload = Taken::of(cell.pid())?.ok_or("the payload has ended")?;
    let own = if subject.machine.is_some() {
        "timecell"
    } else {
        "payload"
    };
    let mut processes = vec![(own.to_owned(), payload)];
    for helper in cell.processes() {
        // One that ended meanwhile takes nothing any more.
        if let Some(taken) = Taken::of(helper.pid)? {
            let name = match helper.name.as_str() {
                name if name.starts_with("qemu-system") => QEMU.to_owned(),
                "timecell" => "embedded runtime".to_owned(),
                name => name.to_owned(),
            };
            processes.push((name, taken));
        }
    }
    let mut readings = Vec::new();
    for (whole, of) in [
        (PSS, (|t| t.pss) as fn(&Taken) -> i64),
        (RSS, |t| t.rss),
        (MAPPED, |t| t.mapped),
    ] {
        let sum = processes.iter().map(|(_, taken)| of(taken)).sum();
        readings.push(Reading::whole(whole, Quantity::Bytes, sum));
        for (name, bytes) in summed(&processes, of) {
            let part = format!("{whole} of {name}");
            readings.push(Reading::share(part, whole, Quantity::Bytes, bytes));
        }
    }
    if let Some(bytes) = kernel_bytes(&spec.id) {
        let part = "kernel memory of the cgroup";
        readings.push(Reading::whole(part, Quantity::Bytes, bytes));
    }
    let whole = "programs on disk";
    let mut programs = vec![spec.rootfs.join("timecell")];
    programs.extend(engine::programs_of(subject.kind));
    let sizes: Vec<(String, i64)> = programs.iter().filter_map(size).collect();
    readings.push(Reading::whole(
        whole,
        Quantity::Bytes,
        sizes.iter().map(|(_, bytes)| bytes).sum(),
    ));
    for (name, bytes) in sizes {
        let part = format!("{name} on disk");
        readings.push(Reading::share(part, whole, Quantity::Bytes, bytes));
    }
    Ok(readings)
}

/// Processes of one name together.
fn summed(processes: &[(String, Taken)], of: fn(&Taken) -> i64) -> Vec<(&str, i64)> {
    let mut sums: Vec<(&str, i64)> = Vec::new();
    for (name, taken) in processes {
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += of(taken),
            None => sums.push((name, of(taken))),
        }
    }
    sums
}

fn size(path: &PathBuf) -> Option<(String, i64)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let bytes = std::fs::metadata(path).ok()?.len();
    Some((name, i64::try_from(bytes).ok()?))
}

/// Memory of one process, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    pss: i64,
    rss: i64,
    mapped: i64,
}

impl Taken {
    /// `None` of a process that has ended.
    fn of(pid: i32) -> Result<Option<Taken>, String> {
        let text = |error: std::io::Error| error.to_string();
        let resident = Resident::of(pid).map_err(text)?;
        let mapped = process::mapped_bytes(pid).map_err(text)?;
        Ok(resident.zip(mapped).map(|(resident, mapped)| Taken {
            pss: resident.pss_bytes.cast_signed(),
            rss: resident.rss_bytes.cast_signed(),
            mapped: mapped.cast_signed(),
        }))
    }
}

/// The charge of the cgroup `/<id>` inside the kernel; `None` if there is none or the kernel does not report it.
fn kernel_bytes(id: &str) -> Option<i64> {
    let cgroups = host::cgroup::detect().ok()?;
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    if let Some(mount) = cgroups.v1_mount("memory") {
        let text = read(&mount.point.join(id).join("memory.kmem.usage_in_bytes"))?;
        return text.trim().parse().ok();
    }
    let stat = read(&cgroups.v2.as_ref()?.point.join(id).join("memory.stat"))?;
    let line = stat.lines().find_map(|line| line.strip_prefix("kernel "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_memory_is_found_by_halving() {
        for least in [64_u64, 65, 100, 128, 249, 256] {
            let mut tries = 0;
            let found = halved(256 << 20, |bytes| {
                tries += 1;
                Ok(bytes >= least << 20)
            });
            assert_eq!(found, Ok(least.next_multiple_of(8) << 20));
            assert!(tries <= 5, "{tries}");
        }
        assert_eq!(halved(64 << 20, |_| Err(String::new())), Ok(64 << 20));
        assert_eq!(
            halved(256 << 20, |_| Err("no".to_owned())),
            Err("no".to_owned())
        );
    }

    #[test]
    fn what_is_here_takes_memory_and_what_has_ended_takes_none() {
        let own = Taken::of(std::process::id().cast_signed())
            .unwrap()
            .unwrap();
        assert!(own.pss > 0 && own.pss <= own.rss && own.rss <= own.mapped);
        assert_eq!(Taken::of(i32::MAX), Ok(None));
    }

    #[test]
    fn processes_of_one_name_are_one_share() {
        let taken = |pss| Taken {
            pss,
            rss: 0,
            mapped: 0,
        };
        let processes = [("a", 1), ("b", 2), ("a", 3)].map(|(n, b)| (n.to_owned(), taken(b)));
        assert_eq!(summed(&processes, |t| t.pss), [("a", 4), ("b", 2)]);
    }
}
