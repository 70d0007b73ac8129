//! A payload of several threads, one for each task of a periodic set: each with its own slot, samples file, class and
//! work, which is measured out as multiply-accumulate steps by a calibration at the start of the cell.

use std::sync::atomic::Ordering::Relaxed;

use model::Work;

use crate::args::{ArgsError, ProbeArgs};
use crate::calibrate::{self, Calibration};
use crate::cell::{attend, live, take};
use crate::{EXIT_BAD_ARGS, arm, clock};

/// Between the words of one task and those of the next.
const NEXT: &str = "--";

/// Portions of a job that looks at its own cpu time.
const PORTIONS: i64 = 50;

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskArgs {
    /// Slot, samples file, period, jobs and so on; its work is not looked at.
    pub probe: ProbeArgs,
    /// Cpu time of one job, ns.
    pub wcet_ns: i64,
    /// Whether a job looks at its own cpu time, so as not to take more; else it is as many steps as the calibration says.
    pub bounded: bool,
}

/// The arguments of a cell that runs a task set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetArgs {
    /// Where the work is calibrated.
    pub cpu: u32,
    /// The threads.
    pub tasks: Vec<TaskArgs>,
}

impl SetArgs {
    /// The words behind `timecell`.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = vec![
            "probe".to_owned(),
            "set".to_owned(),
            format!("cpu={}", self.cpu),
        ];
        for task in &self.tasks {
            words.push(NEXT.to_owned());
            words.extend(task.probe.to_words());
            words.push(format!("wcet={}", task.wcet_ns));
            if task.bounded {
                words.push("bounded".to_owned());
            }
        }
        words
    }

    /// Reads the words behind `timecell probe set`.
    ///
    /// # Errors
    /// Names the word that is missing or not understood.
    pub fn from_words(words: &[String]) -> Result<SetArgs, ArgsError> {
        let bad = |word: &str| ArgsError(format!("cannot read `{word}`"));
        let mut groups = words.split(|word| word == NEXT);
        let mut args = SetArgs {
            cpu: 0,
            tasks: Vec::new(),
        };
        for word in groups.next().unwrap_or_default() {
            match word.split_once('=').unwrap_or((word, "")) {
                ("cpu", value) => args.cpu = value.parse().map_err(|_| bad(word))?,
                _ => return Err(bad(word)),
            }
        }
        args.tasks = groups.map(task).collect::<Result<_, _>>()?;
        if args.tasks.is_empty() {
            return Err(ArgsError("a set needs a task".to_owned()));
        }
        Ok(args)
    }
}

fn task(words: &[String]) -> Result<TaskArgs, ArgsError> {
    let bad = |word: &str| ArgsError(format!("cannot read `{word}`"));
    let mut rest = Vec::new();
    let mut wcet_ns = 0;
    let mut bounded = false;
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("wcet", value) => wcet_ns = value.parse().map_err(|_| bad(word))?,
            ("bounded", "") => bounded = true,
            _ => rest.push(word.clone()),
        }
    }
    if wcet_ns < 1 {
        return Err(ArgsError("a task needs `wcet=`".to_owned()));
    }
    Ok(TaskArgs {
        probe: ProbeArgs::from_words(&rest)?,
        wcet_ns,
        bounded,
    })
}

/// The payload; `words` are those behind `timecell probe set`. Returns the process's exit code: that of the first
/// thread that failed.
pub fn set(words: &[String]) -> i32 {
    let present_ns = clock::now();
    let args = match SetArgs::from_words(words) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return EXIT_BAD_ARGS;
        }
    };
    // On the set's own cpu where that is allowed; its speed may be another's otherwise.
    let _ = arm::pin(args.cpu);
    let calibration = calibrate::calibrate();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (args.tasks.iter())
            .map(|task| scope.spawn(|| run(task, calibration, present_ns)))
            .collect();
        let codes = threads.into_iter().map(|thread| match thread.join() {
            Ok(code) => code,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        codes.fold(0, |first, code| if first == 0 { code } else { first })
    })
}

fn run(task: &TaskArgs, calibration: Calibration, present_ns: i64) -> i32 {
    let (portion_ns, cpu_ns) = if task.bounded {
        (task.wcet_ns / PORTIONS, task.wcet_ns)
    } else {
        (task.wcet_ns, 0)
    };
    let probe = ProbeArgs {
        work: Work::Mac {
            steps: calibration.steps(portion_ns),
        },
        ..task.probe.clone()
    };
    attend(&probe.control, probe.slot, present_ns, |control, slot| {
        slot.step_ps.store(calibration.step_ps, Relaxed);
        slot.calibrations.store(calibration.tries, Relaxed);
        slot.spread_ppm.store(calibration.spread_ppm, Relaxed);
        live(&probe, cpu_ns, || take(&probe), control, slot)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ClassBy, DeadlineArgs};
    use crate::control::State;
    use crate::{Barrier, BarrierKind, prepare_samples};
    use model::Pacing;
    use std::path::Path;
    use std::sync::atomic::Ordering::Acquire;

    fn args(dir: &Path, slot: usize, deadline: Option<DeadlineArgs>) -> TaskArgs {
        TaskArgs {
            probe: ProbeArgs {
                control: dir.join("control"),
                slot,
                samples: Some(dir.join(format!("{slot}.samples"))),
                ring: false,
                work: Work::Timer,
                pacing: Pacing::Periodic,
                period_ns: 20_000_000,
                jobs: 5,
                fifo: None,
                deadline,
                cpu: host::cpus::default_rt_cpu(),
                class_by: ClassBy::Cell,
                barrier: BarrierKind::Futex,
                ..ProbeArgs::default()
            },
            wcet_ns: 300_000,
            bounded: false,
        }
    }

    #[test]
    fn words_and_back() {
        let dir = Path::new("/cell");
        let deadline = DeadlineArgs {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
            cpus: vec![0, 1],
        };
        let mut set = SetArgs {
            cpu: 1,
            tasks: vec![args(dir, 0, None), args(dir, 1, Some(deadline))],
        };
        set.tasks[1].bounded = true;
        assert_eq!(SetArgs::from_words(&set.to_words()[2..]), Ok(set.clone()));
        let none = SetArgs {
            tasks: Vec::new(),
            ..set
        };
        assert!(SetArgs::from_words(&none.to_words()[2..]).is_err());
        let words = ["cpu=1", "--", "wcet=5", "control=/c", "deadline=1,2@0"].map(str::to_owned);
        assert!(SetArgs::from_words(&words).is_err());
    }

    #[test]
    fn each_task_has_its_slot_its_samples_and_its_work() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 2).unwrap();
        let mut tasks = vec![args(dir.path(), 0, None), args(dir.path(), 1, None)];
        tasks[1].wcet_ns = 900_000;
        for task in &tasks {
            prepare_samples(task.probe.samples.as_ref().unwrap(), 5).unwrap();
        }
        let cpu = host::cpus::default_rt_cpu();
        let set = SetArgs { cpu, tasks };
        let words = set.to_words();
        let cell = std::thread::spawn(move || super::set(&words[2..]));
        let soon = clock::now() + 60_000_000_000;
        barrier
            .wait_all(State::Present, "present", soon, || false)
            .unwrap();
        (0..2).for_each(|slot| barrier.permit(slot));
        barrier
            .wait_all(State::Armed, "armed", soon, || false)
            .unwrap();
        barrier.open(Barrier::lead_ns(2));
        barrier
            .wait_all(State::Done, "done", soon, || false)
            .unwrap();
        barrier.leave();
        assert_eq!(cell.join().unwrap(), 0);
        let read =
            |slot: u32| record::samples::read(&dir.path().join(format!("{slot}.samples"))).unwrap();
        let steps = [0, 1].map(|slot| read(slot).header.steps);
        assert!(
            u64::from(steps[1]).abs_diff(u64::from(steps[0]) * 3) <= 3,
            "three times the work: {steps:?}"
        );
        for slot in 0..2 {
            let header = read(slot as u32).header;
            assert_eq!(header.count + header.skipped, 5);
            assert!(barrier.slot(slot).step_ps.load(Acquire) > 0);
        }
    }
}
