//! Checks armed cells' class and cpus from outside.

use host::root::Root;
use host::sched;
use probe::Barrier;
use probe::control::Slot;
use record::trial::{CalibrationRecord, CellRecord};
use std::sync::atomic::Ordering::Acquire;

/// Asks the kernel for class and cpus of process `pid` and records them; a class other than `wanted` or a cpu other than the cell's is a
/// failure. Some OCI runtimes silently ignore the requested class.
///
/// `locked` is the cell's report of its memory ([`probe::control::Slot::memory_locked`]).
pub(crate) fn verify(wanted: &sched::Class, pid: i32, locked: u32, cell: &mut CellRecord) {
    match sched::get_class(pid) {
        Ok(got) => {
            cell.real_time = got.is_real_time();
            cell.class_got = Some(got.to_string());
            cell.failure = same(wanted, &got).err().or(cell.failure.take());
        }
        Err(error) => cell.failure = Some(error.to_string()),
    }
    match sched::get_affinity(pid) {
        Ok(cpus) if cpus == allowed(cell) => {}
        // Before Linux 6.2, a group that is the first to get the cpuset controller lets all tasks use all cpus again.
        Ok(cpus)
            if host::kernel::is_since(&Root::live(), 6, 2) == Some(false)
                && allowed(cell).iter().all(|cpu| cpus.contains(cpu))
                && sched::set_affinity(pid, allowed(cell)).is_ok() =>
        {
            let got = host::cpus::format_list(&cpus);
            cell.notes.push(format!(
                "the kernel let it use cpus {got} again when the group of another cell was made; it was pinned once more"
            ));
        }
        Ok(cpus) => {
            let got = host::cpus::format_list(&cpus);
            let wanted = match host::cpus::format_list(&cell.cpus) {
                all if !all.is_empty() => format!("to use cpus {all}"),
                _ => format!("pinned to cpu {}", cell.cpu),
            };
            cell.failure
                .get_or_insert_with(|| format!("{wanted}, the kernel reports {got}"));
        }
        Err(error) => cell.failure = Some(error.to_string()),
    }
    let note = match locked {
        1 => return,
        2 => {
            "only samples and stack are locked in memory: RLIMIT_MEMLOCK is smaller than the program"
        }
        _ => "memory is not locked (RLIMIT_MEMLOCK); pages were touched, but may be reclaimed",
    };
    cell.notes.push(note.to_owned());
}

/// Cpus that a cell with one thread is to have.
pub(crate) fn allowed(cell: &CellRecord) -> &[u32] {
    match cell.cpus.as_slice() {
        [] => std::slice::from_ref(&cell.cpu),
        cpus => cpus,
    }
}

/// The class that a thread reports in its slot.
fn reported(wanted: &sched::Class, slot: &Slot) -> sched::Class {
    let (policy, priority) = (slot.policy.load(Acquire), slot.priority.load(Acquire));
    match (policy, wanted) {
        (libc::SCHED_FIFO, _) => sched::Class::Fifo {
            priority: u8::try_from(priority).unwrap_or(0),
        },
        (libc::SCHED_OTHER, _) => sched::Class::Other,
        // The times of a deadline thread are the requested ones, or the kernel would have refused them.
        (libc::SCHED_DEADLINE, sched::Class::Deadline { .. }) => wanted.clone(),
        (other, _) => sched::Class::Unknown(other),
    }
}

fn same(wanted: &sched::Class, got: &sched::Class) -> Result<(), String> {
    match got == wanted {
        true => Ok(()),
        false => Err(format!("asked for {wanted}, the kernel reports {got}")),
    }
}

/// Asks the kernel whether each thread of a machine's virtual cpus has its class, with its budget.
pub(crate) fn verify_vcpus(threads: &[i32], wanted: &[sched::Class]) -> Result<(), String> {
    if threads.len() < wanted.len() {
        let (vcpus, wanted) = (threads.len(), wanted.len());
        return Err(format!(
            "QEMU names {vcpus} threads of virtual cpus, of {wanted}"
        ));
    }
    (threads.iter().zip(wanted).enumerate()).try_for_each(|(vcpu, (pid, wanted))| {
        let got = sched::get_class(*pid).map_err(|error| error.to_string())?;
        same(wanted, &got).map_err(|why| format!("virtual cpu {vcpu}: {why}"))
    })
}

/// Checks that the threads from this slot on have these classes, by their reports.
pub(super) fn threads(
    barrier: &Barrier,
    first: usize,
    wanted: &[sched::Class],
) -> Result<(), String> {
    let mut slots = (first..).zip(wanted);
    slots.try_for_each(|(slot, wanted)| same(wanted, &reported(wanted, barrier.slot(slot))))
}

/// The same for a thread of a task set, whose slot holds the kernel's report to it.
pub(crate) fn verify_thread(wanted: &sched::Class, slot: &Slot, cell: &mut CellRecord) {
    let got = reported(wanted, slot);
    cell.real_time = got.is_real_time();
    cell.class_got = Some(got.to_string());
    cell.failure = same(wanted, &got).err().or(cell.failure.take());
    if slot.memory_locked.load(Acquire) == 0 {
        cell.notes.push(
            "memory is not locked (RLIMIT_MEMLOCK); pages were touched, but may be reclaimed"
                .to_owned(),
        );
    }
    let Some(task) = &mut cell.task else {
        return;
    };
    let step_ps = slot.step_ps.load(Acquire);
    let spread_ppm = slot.spread_ppm.load(Acquire);
    task.calibration = (step_ps > 0).then(|| CalibrationRecord {
        step_ps,
        tries: slot.calibrations.load(Acquire),
        spread_ppm,
    });
    if spread_ppm > 20_000 {
        cell.notes.push(format!(
            "the calibration of its work did not settle: the two lowest of all tries are {} % apart",
            spread_ppm / 10_000
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EngineKind;
    use record::trial::SetBy;

    fn cell(cpu: u32) -> CellRecord {
        CellRecord {
            id: "1-crun".to_owned(),
            engine: EngineKind::Crun,
            cpu,
            cpus: Vec::new(),
            class_wanted: String::new(),
            class_got: None,
            set_by: SetBy::Cell,
            machine: None,
            real_time: false,
            create_ns: None,
            started_ns: None,
            notes: Vec::new(),
            failure: None,
            task: None,
            reported: Vec::new(),
        }
    }

    #[test]
    fn another_class_or_cpu_than_asked_for_is_a_failure() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let cpu = host::cpus::default_rt_cpu();
        sched::set_affinity(pid, &[cpu]).unwrap();
        let looked = |wanted, pid, cpu| {
            let mut cell = cell(cpu);
            verify(&wanted, pid, 1, &mut cell);
            cell
        };
        let good = looked(sched::Class::Other, pid, cpu);
        assert_eq!(
            (good.failure, good.class_got.as_deref()),
            (None, Some("OTHER"))
        );
        let ignored = looked(sched::Class::Fifo { priority: 80 }, pid, cpu);
        assert!(!ignored.real_time);
        let failure = ignored.failure.unwrap();
        assert_eq!(failure, "asked for FIFO 80, the kernel reports OTHER");
        let elsewhere = looked(sched::Class::Other, pid, cpu + 1).failure.unwrap();
        assert!(elsewhere.contains("the kernel reports"), "{elsewhere}");
        // Wider than asked for: pinned again and told where the kernel forgets, else a failure.
        let all = sched::get_affinity(0).unwrap();
        sched::set_affinity(pid, &all).unwrap();
        let wide = looked(sched::Class::Other, pid, cpu);
        let forgets = host::kernel::is_since(&Root::live(), 6, 2) == Some(false);
        assert_eq!(wide.failure.is_some(), all.len() > 1 && !forgets);
        assert_eq!(wide.notes.len(), usize::from(all.len() > 1 && forgets));
        sched::set_affinity(pid, &[cpu]).unwrap();
        let mut narrow = CellRecord {
            cpus: vec![cpu, cpu + 1],
            ..self::cell(cpu)
        };
        verify(&sched::Class::Other, pid, 1, &mut narrow);
        let failure = narrow.failure.unwrap();
        assert!(failure.starts_with("to use cpus "), "{failure}");
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = looked(sched::Class::Other, pid, cpu).failure.unwrap();
        assert!(gone.contains("no process"), "{gone}");
    }
}
