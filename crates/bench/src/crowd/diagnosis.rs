//! The shortage when a cell failed: matches the text of the failure with the limits of the machine at that moment.

use host::limits::{self, Kind, Limit};
use host::root::Root;
use host::sched::bandwidth::{bandwidth_held_us, bandwidth_limit_us};
use record::crowd::GaveOut;

/// Texts of failures, and limits that may have run out then; the kernel says the same of several.
const WORDS: [(&str, &[Kind]); 17] = [
    ("inotify", &[Kind::Inotify]),
    ("keyring", &[Kind::Keys]),
    ("Disk quota exceeded", &[Kind::Keys]),
    ("Too many open files", &[Kind::Files, Kind::Inotify]),
    (
        "Resource temporarily unavailable",
        &[Kind::Processes, Kind::Cgroups],
    ),
    ("cannot start a process", &[Kind::Processes, Kind::Memory]),
    ("fork", &[Kind::Processes, Kind::Memory]),
    ("pthread_create", &[Kind::Processes, Kind::Memory]),
    ("newosproc", &[Kind::Processes]),
    ("clone", &[Kind::Processes, Kind::Namespaces]),
    ("unshare", &[Kind::Namespaces]),
    ("namespace", &[Kind::Namespaces]),
    (
        "Cannot allocate memory",
        &[Kind::Memory, Kind::Cgroups, Kind::Processes],
    ),
    ("out of memory", &[Kind::Memory]),
    ("OOM", &[Kind::Memory]),
    ("samples file", &[Kind::SharedMemory, Kind::Files]),
    (
        "No space left on device",
        &[
            Kind::SharedMemory,
            Kind::Namespaces,
            Kind::Inotify,
            Kind::Cgroups,
        ],
    ),
];

/// From here on a limit counts as reached: failed cells gave theirs back before the look.
const REACHED: f64 = 0.9;

/// How [`host::sched::SchedError`] and the probe report the kernel's admission test for deadline threads: no other limit is reported so.
const NOT_ADMITTED: &str = "what the kernel admits";

/// The machine's shortage, now that a cell failed with these words.
pub(super) fn of(why: &str) -> GaveOut {
    if why.contains(NOT_ADMITTED) {
        let root = Root::live();
        let cpus = host::cpus::online().map_or(1, |cpus| cpus.len());
        let number = |name: &str| root.read_number(format!("/proc/sys/kernel/sched_rt_{name}_us"));
        return bandwidth(
            bandwidth_held_us(),
            bandwidth_limit_us(&root, cpus),
            [number("runtime"), number("period")].map(|us| us.unwrap_or(0)),
        );
    }
    let uid = crate::place::uid();
    judge(why, &limits::all(&Root::live(), uid))
}

/// Deadline bandwidth that is held and that may be, us of every second of all cpus; runtime and period of the limit.
fn bandwidth(held_us: u64, most_us: Option<u64>, [runtime_us, period_us]: [u64; 2]) -> GaveOut {
    let raised = runtime_us.midpoint(period_us);
    GaveOut {
        what: "deadline bandwidth".to_owned(),
        limit:
            "the kernel's admission test for SCHED_DEADLINE: kernel.sched_rt_runtime_us of every \
                kernel.sched_rt_period_us"
                .to_owned(),
        value: most_us.map(|most| {
            format!(
                "deadline threads hold {} of {} ms in every second of all cpus",
                held_us / 1_000,
                most / 1_000
            )
        }),
        fix: format!(
            "end the deadline threads that hold the rest (newer kernels also keep 5 % of each cpu for ordinary work), or raise the limit, \
             now {runtime_us} of every {period_us} us: sysctl -w kernel.sched_rt_runtime_us={raised}"
        ),
    }
}

fn judge(why: &str, limits: &[Limit]) -> GaveOut {
    let spoken: Vec<&[Kind]> = (WORDS.iter())
        .filter(|(words, _)| why.contains(words))
        .map(|(_, kinds)| *kinds)
        .collect();
    let fullest = |limits: &mut dyn Iterator<Item = &Limit>| -> Option<Limit> {
        limits
            .max_by(|a, b| a.share().total_cmp(&b.share()))
            .cloned()
    };
    let named = |limit: &&Limit| spoken.iter().any(|kinds| kinds.contains(&limit.kind));
    let by_words = fullest(&mut limits.iter().filter(named));
    let by_use = fullest(&mut limits.iter()).filter(|limit| limit.share() >= REACHED);
    // A limit that is reached explains more than a text that fits several; a text alone, more than nothing.
    let reached = by_words.clone().filter(|limit| limit.share() >= REACHED);
    match reached.or(by_use).or_else(|| own(why)).or(by_words) {
        Some(limit) => GaveOut {
            what: limit.what.clone(),
            limit: limit.name.clone(),
            value: (limit.most > 0).then(|| limit.value()),
            fix: limit.fix,
        },
        None => GaveOut {
            what: "nothing that timecell can name".to_owned(),
            limit: "unknown".to_owned(),
            value: None,
            fix: "see the message of the first failed cell".to_owned(),
        },
    }
}

/// Shortages although no limit of the kernel is reached: time, a class, a cell that was killed.
fn own(why: &str) -> Option<Limit> {
    let limit = |what: &str, name: &str, fix: &str| {
        Some(Limit {
            kind: Kind::Processes,
            what: what.to_owned(),
            name: name.to_owned(),
            used: None,
            most: 0,
            unit: "",
            fix: fix.to_owned(),
        })
    };
    if why.contains("no answer within")
        || why.contains("no pid within")
        || why.starts_with("after ")
    {
        return limit(
            "time to create a cell",
            "120 s for each cell, 30 s to arm",
            "create fewer at a time (--set scale.parallel=1), or use an engine that starts faster",
        );
    }
    if why.contains("scheduling class")
        || why.contains("the kernel reports")
        || why.contains("SCHED_")
    {
        return limit(
            "real-time budget or privilege",
            "cpu.rt_runtime_us, CAP_SYS_NICE, RLIMIT_RTPRIO",
            "see timecell doctor for the free real-time budgets",
        );
    }
    if why.contains("ended before its jobs were done") {
        return limit(
            "a cell was killed",
            "none is known",
            "look for an out-of-memory kill (dmesg), or find out who killed it",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(kind: Kind, what: &str, used: u64, most: u64) -> Limit {
        Limit {
            kind,
            what: what.to_owned(),
            name: format!("/{what}"),
            used: Some(used),
            most,
            unit: "",
            fix: format!("raise {what}"),
        }
    }

    #[test]
    fn the_limit_that_is_reached_is_named_with_its_use() {
        let limits = [
            limit(Kind::Processes, "pid_max", 32_700, 32_768),
            limit(Kind::Keys, "maxkeys", 199, 200),
            limit(Kind::Memory, "memory", 10, 100),
        ];
        let found = |why: &str| judge(why, &limits);
        let keys = found("crun: create keyring `x`: Disk quota exceeded: OCI runtime error");
        assert_eq!(
            (keys.what.as_str(), keys.value.as_deref()),
            ("maxkeys", Some("199 of 200"))
        );
        let pids =
            found("timecell cannot be started: Resource temporarily unavailable (os error 11)");
        assert_eq!(
            (pids.limit.as_str(), pids.fix.as_str()),
            ("/pid_max", "raise pid_max")
        );
        // A text that says nothing: the fullest limit, if any is full.
        assert_eq!(found("exit status: 1").what, "pid_max");
    }

    #[test]
    fn what_the_kernel_does_not_admit_names_the_admission_test() {
        let found = bandwidth(1_780_400, Some(1_900_000), [950_000, 1_000_000]);
        assert_eq!(
            found.value.as_deref(),
            Some("deadline threads hold 1780 of 1900 ms in every second of all cpus")
        );
        assert!(
            found.fix.ends_with("kernel.sched_rt_runtime_us=975000"),
            "{found:?}"
        );
        // As reported by the refused process: a cell, or the coordinator on its behalf.
        let error = host::sched::SchedError::OverBandwidth {
            class: host::sched::Class::Other,
            pid: 1,
        };
        for why in [
            error.to_string(),
            "cannot set its scheduling class: Device or resource busy (os error 16) (with the deadline threads already \
             there it would exceed what the kernel admits)"
                .to_owned(),
        ] {
            assert_eq!(of(&why).what, "deadline bandwidth", "{why}");
        }
    }

    #[test]
    fn without_a_reached_limit_the_words_decide() {
        let limits = [
            limit(Kind::Processes, "pid_max", 1, 32_768),
            limit(Kind::Inotify, "instances", 100, 128),
        ];
        let found = |why: &str| judge(why, &limits).what;
        assert_eq!(found("inotify_init: Too many open files"), "instances");
        assert_eq!(
            found("after 120 s only 0 of 1 cells were present"),
            "time to create a cell"
        );
        assert_eq!(found("no answer within 120 s"), "time to create a cell");
        assert_eq!(
            found("asked for FIFO 80, the kernel reports OTHER"),
            "real-time budget or privilege"
        );
        assert_eq!(
            found("its process ended before its jobs were done"),
            "a cell was killed"
        );
        assert_eq!(found("exit status: 1"), "nothing that timecell can name");
    }
}
