//! Cells that SCHED_DEADLINE holds to equal shares: the kernel's report about each, and the outcome of a study
//! whose threads it does not admit.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use host::sched::{self, Class, SchedError, bandwidth};
use record::run::{Run, Status};

use crate::scale::started;
use crate::support::{only_run, say, timecell, traces_of};

const RESERVE: [&str; 4] = ["--class", "fifo", "--reserve", "deadline"];

#[case(Root, Deadline)]
fn the_kernel_holds_every_cell_to_an_equal_share(dir: &Path) {
    let every_cpu = sched::get_affinity(0).unwrap();
    let free_us = bandwidth::free_bandwidth_us(&every_cpu).unwrap();
    let (mut child, pids) = started(dir, &RESERVE);
    let class = sched::get_class(pids[0]).unwrap();
    let Class::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    } = class
    else {
        panic!("{class}");
    };
    assert_eq!((deadline_ns, period_ns), (1_000_000_000, 1_000_000_000));
    // Together less than the cpus, and most of the share that is not kept back.
    let cpus = every_cpu.len() as u64;
    let all_ns = runtime_ns * 12;
    assert!(all_ns < cpus * 950_000_000 && all_ns > 0, "{class}");
    for pid in pids {
        assert_eq!(sched::get_class(pid).unwrap(), class);
        assert_eq!(sched::get_affinity(pid).unwrap(), every_cpu);
    }
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    // Removing the cells' cgroups changes cpusets, after which the kernel must have the same total as before.
    let after_us = bandwidth::free_bandwidth_us(&every_cpu).unwrap();
    assert!(
        after_us.abs_diff(free_us) <= 50,
        "{free_us}, then {after_us}"
    );
    let trial = Run::open(&only_run(dir)).unwrap().trial(1).unwrap();
    for cell in trial.cells {
        assert_eq!(cell.class_wanted, class.to_string());
        assert_eq!(cell.class_got, Some(class.to_string()));
        assert_eq!((cell.real_time, cell.cpus), (true, every_cpu.clone()));
    }
}

#[case(Root, Deadline)]
fn shares_of_one_study_after_the_other_are_on_record_and_in_the_report(dir: &Path) {
    let words = [
        "bench",
        "scale",
        "--counts",
        "4,16",
        "--jobs",
        "20",
        "--rounds",
        "2",
        "--reserve",
        "deadline",
    ];
    let said = say(dir, &words).ends_with(0);
    let note = "embedded-16: each cell holds ";
    assert!(said.err.contains(note), "{}", said.err);
    assert!(
        said.err.contains("on any cpu (SCHED_DEADLINE)"),
        "{}",
        said.err
    );
    assert!(
        said.out.contains("an equal share, by SCHED_DEADLINE"),
        "{}",
        said.out
    );
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    // The second round asks for bandwidth that the cells of the first held a moment ago.
    let held = [1, 2, 3, 4].map(|number| {
        let trial = run.trial(number).unwrap();
        assert_eq!(trial.failure, None);
        let crowd = trial.crowd.unwrap();
        assert_eq!(crowd.finished, crowd.asked);
        let held = crowd.reservation.unwrap();
        assert_eq!(held.enforcer.name(), "deadline");
        held.runtime_us
    });
    assert_eq!((held[0], held[1]), (held[2], held[3]));
    assert!(held[1] <= held[0] / 2, "{held:?}");
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for part in [
        "SCHED_DEADLINE, on every cpu",
        "an equal part of what the kernel admits",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let json = say(dir, &["report", &path.to_string_lossy(), "--json"]).ends_with(0);
    let summary: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let point = &summary["points"][1];
    assert_eq!(point["pinned"], false);
    assert!(point["class"].as_str().unwrap().starts_with("DEADLINE "));
    assert_eq!(point["crowds"][0]["reservation"]["enforcer"], "deadline");
}

/// A thread of this test that holds as much deadline bandwidth of a cpu as is available, in steps of 2 %, until dropped.
fn greedy() -> bandwidth::Asker {
    let (asker, taken) = bandwidth::Asker::new(|| {
        let class = |percent: u64| Class::Deadline {
            runtime_ns: percent * 100_000,
            deadline_ns: 10_000_000,
            period_ns: 10_000_000,
        };
        let mut sizes = (1..=50).rev().map(|step| 2 * step);
        sizes.find(|percent| match sched::set_class(0, &class(*percent)) {
            Ok(()) => true,
            Err(SchedError::OverBandwidth { .. }) => false,
            Err(other) => panic!("{other}"),
        })
    })
    .unwrap();
    assert!(taken.is_some(), "nothing was left to take");
    asker
}

/// A study of 64 and 80 cells, stopped once the first trial has told the share that each cell will hold.
fn stopped_before_the_cells(
    dir: &std::path::Path,
) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = timecell()
        .current_dir(dir)
        .args(["bench", "scale", "--counts", "64,80", "--jobs", "20"])
        .args(["--reserve", "deadline", "--set", "scale.parallel=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("each cell holds") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended too early");
    }
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGSTOP) };
    (child, said)
}

#[case(Root, Deadline)]
fn a_study_ends_where_the_kernel_admits_no_more_and_names_the_test(dir: &Path) {
    let (mut child, mut said) = stopped_before_the_cells(dir);
    let holder = greedy();
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGCONT) };
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    drop(holder);
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    let run = Run::open(&only_run(dir)).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    let trial = run.trial(1).unwrap();
    assert!(trial.failure.unwrap().contains("of 64 cells failed"));
    let mut failures = trial
        .cells
        .iter()
        .filter_map(|cell| cell.failure.as_deref());
    let first = failures.next().unwrap();
    assert!(
        first.contains("it would exceed what the kernel admits"),
        "{first}"
    );
    let gave_out = trial.crowd.unwrap().gave_out.unwrap();
    assert_eq!(gave_out.what, "deadline bandwidth");
    assert!(
        gave_out.limit.contains("kernel.sched_rt_runtime_us"),
        "{gave_out:?}"
    );
    assert!(
        gave_out
            .fix
            .contains("sysctl -w kernel.sched_rt_runtime_us="),
        "{gave_out:?}"
    );
    let left_out = &manifest.not_measured[0];
    assert_eq!(left_out.trial, "embedded-80");
    let reason = "embedded ended at 64 cells: deadline bandwidth ran out";
    assert!(left_out.reason.starts_with(reason), "{}", left_out.reason);
}

#[case(Root, Deadline)]
fn what_the_class_cannot_be_is_said_before_anything_runs(dir: &Path) {
    let error = |more: &[&str]| {
        let words = ["bench", "scale", "--reserve", "deadline", "--counts", "1"];
        let words = [&words[..], more].concat();
        say(dir, &words).ends_with(4).error()
    };
    let other = error(&["--class", "other"]);
    assert!(
        other.contains("SCHED_DEADLINE is a real-time class"),
        "{other}"
    );
    let cpus = sched::get_affinity(0).unwrap();
    if cpus.len() > 1 {
        let one = error(&["--cpus", &cpus[0].to_string()]);
        assert!(
            one.contains("to some of the cpus of its root domain"),
            "{one}"
        );
        assert!(one.contains("leave out --cpus"), "{one}");
    }
    assert!(!dir.join("runs").exists());
}
