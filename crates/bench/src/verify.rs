//! A look from outside at what an armed cell really got.

use host::sched;
use record::trial::CellRecord;

/// Asks the kernel for class and cpus of process `pid` and writes them down; another class than `wanted` or another
/// cpu than the cell's is a failure. Some OCI runtimes ignore a class that they were asked for without a word.
///
/// `locked` is what the cell said of its memory ([`probe::control::Slot::memory_locked`]).
pub(crate) fn verify(wanted: &sched::Class, pid: i32, locked: u32, cell: &mut CellRecord) {
    match sched::get_class(pid) {
        Ok(got) => {
            cell.real_time = got.is_real_time();
            cell.class_got = Some(got.to_string());
            if got != *wanted {
                cell.failure = Some(format!("asked for {wanted}, the kernel reports {got}"));
            }
        }
        Err(error) => cell.failure = Some(error.to_string()),
    }
    match sched::get_affinity(pid) {
        Ok(cpus) if cpus == [cell.cpu] => {}
        Ok(cpus) => {
            let got = host::cpus::format_list(&cpus);
            let cpu = cell.cpu;
            cell.failure
                .get_or_insert_with(|| format!("pinned to cpu {cpu}, the kernel reports {got}"));
        }
        Err(error) => cell.failure = Some(error.to_string()),
    }
    let note = match locked {
        1 => return,
        2 => {
            "only samples and stack are locked in memory: RLIMIT_MEMLOCK is smaller than the program"
        }
        _ => "memory is not locked (RLIMIT_MEMLOCK); pages were touched, but may be taken away",
    };
    cell.notes.push(note.to_owned());
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
            class_wanted: String::new(),
            class_got: None,
            set_by: SetBy::Cell,
            real_time: false,
            create_ns: None,
            started_ns: None,
            notes: Vec::new(),
            failure: None,
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
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = looked(sched::Class::Other, pid, cpu).failure.unwrap();
        assert!(gone.contains("no process"), "{gone}");
    }
}
