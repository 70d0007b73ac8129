//! Scale studies: every cell is accounted for, a death is recorded, a limit ends the study and is named, and the
//! machine is left as it was.

use record::scale::ScaleSummary;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use record::run::{Run, Status};

use crate::support::{eventually, in_its_loop, only_run, payloads, say, timecell, traces_of};

#[case(Root, RealTime, GroupsOfItsOwn(200))]
fn every_cell_and_sample_is_accounted_for(dir: &Path) {
    let words = ["bench", "scale", "--counts", "1,3,8", "--jobs", "30"];
    let said = say(dir, &words).ends_with(0);
    assert!(said.err.contains("created/s"), "{}", said.err);
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Complete);
    assert_eq!(run.experiment().unwrap().scale.unwrap().counts, [1, 3, 8]);
    for (number, cells) in [(1, 1), (2, 3), (3, 8)] {
        let trial = run.trial(number).unwrap();
        assert_eq!(trial.failure, None);
        let crowd = trial.crowd.clone().unwrap();
        let counts = [crowd.asked, crowd.created, crowd.armed, crowd.finished];
        assert_eq!(counts, [cells; 4]);
        assert!(crowd.creation_ns > 0 && crowd.removal_ns.is_some());
        assert_eq!(crowd.memory.unwrap().cells, cells);
        assert!(crowd.waiting.unwrap().window_ns > 0);
        let watchdog = crowd.watchdog.unwrap();
        assert!(!watchdog.froze);
        let priorities = watchdog.priorities.unwrap();
        let all = [
            priorities.cells,
            priorities.coordinator,
            priorities.watchdog,
        ];
        assert_eq!(all, [80, 90, 91]);
        let go_ns = trial.go_ns.unwrap();
        for cell in &trial.cells {
            assert!(cell.started_ns.unwrap() >= go_ns);
            assert_eq!(cell.class_got.as_deref(), Some("FIFO 80"));
            let samples = run.samples(number, &cell.id).unwrap().unwrap();
            assert_eq!(samples.header.planned, 30);
            assert_eq!(samples.unexplained(), 0);
        }
    }
}

/// Starts a study of 12 embedded cells that takes about a minute, and waits until all of them run.
pub fn started(dir: &Path, more: &[&str]) -> (Child, Vec<i32>) {
    // Small jobs, so that nobody is starved.
    let text = "schema = 1\nname = \"crowd\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 60000\n\
                pacing = \"relative\"\n[scheduling]\nclass = \"other\"\n[scale]\nengines = [\"embedded\"]\ncounts = [12]\n\
                total_jobs = 720_000\n";
    std::fs::write(dir.join("crowd.toml"), text).unwrap();
    let child = timecell()
        .current_dir(dir)
        .args(["bench", "crowd.toml"])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pids = Vec::new();
    eventually("the cells run", || {
        pids = (payloads(child.id()).into_iter())
            .map(|(pid, _)| pid)
            .collect();
        pids.len() == 12 && pids.iter().all(|pid| in_its_loop(*pid))
    });
    (child, pids)
}

#[case(Root)]
fn cells_that_die_are_facts_and_not_the_end() {
    for (limit, fails) in [("0.2", false), ("0", true)] {
        let limit = format!("scale.failure_limit={limit}");
        let dir = tempfile::tempdir().unwrap();
        let (mut child, pids) = started(dir.path(), &["--set", &limit, "--duration", "4s"]);
        // SAFETY: two processes that the bench under test started.
        for pid in pids.iter().take(2) {
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        child.wait().unwrap();
        let run = Run::open(&only_run(dir.path())).unwrap();
        assert_eq!(run.manifest().unwrap().status, Status::Complete);
        let trial = run.trial(1).unwrap();
        assert_eq!(trial.failure.is_some(), fails, "{:?}", trial.failure);
        let crowd = trial.crowd.clone().unwrap();
        assert_eq!((crowd.armed, crowd.finished), (12, 10));
        let (dead, alive): (Vec<_>, Vec<_>) =
            trial.cells.iter().partition(|cell| cell.failure.is_some());
        assert_eq!(dead.len(), 2);
        assert!(dead[0].failure.as_ref().unwrap().contains("ended before"));
        for cell in alive {
            let samples = run.samples(1, &cell.id).unwrap().unwrap();
            assert_eq!(samples.unexplained(), 0, "{}", cell.id);
        }
    }
}

/// Where processes can be limited: a directory for a new cgroup.
fn pids_group() -> Option<PathBuf> {
    let cgroups = host::cgroup::detect().ok()?;
    let top = match cgroups.v1_mount("pids") {
        Some(mount) => mount.point.clone(),
        None => cgroups.v2.as_ref()?.point.clone(),
    };
    let group = top.join(format!("timecell-test-pids-{}", std::process::id()));
    std::fs::create_dir(&group).ok()?;
    if std::fs::write(group.join("pids.max"), "34").is_err() {
        std::fs::remove_dir(&group).unwrap();
        return None;
    }
    Some(group)
}

#[case(Root)]
fn a_study_ends_at_the_limit_that_gave_out_and_names_it() {
    let Some(group) = pids_group() else {
        // Without a pids controller there is no limit to reach.
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    // Plain processes stay in the coordinator's cgroup.
    let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
    let output = Command::new("/bin/sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_timecell")])
        .args(["bench", "scale", "--engine", "bare", "--counts", "2,60,70"])
        .args([
            "--jobs",
            "20",
            "--class",
            "other",
            "--set",
            "scale.parallel=4",
        ])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    eventually("the group is empty", || std::fs::remove_dir(&group).is_ok());
    assert_eq!(output.status.code(), Some(1));
    let run = Run::open(&only_run(dir.path())).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    let before = run.trial(1).unwrap();
    assert_eq!(before.failure, None);
    // Its measurements are kept: every job of the previous crowd, and a report of it.
    for cell in &before.cells {
        let samples = run.samples(1, &cell.id).unwrap().unwrap();
        let header = samples.header;
        assert_eq!(
            (header.count + header.skipped, samples.unexplained()),
            (20, 0)
        );
    }
    let kept = &run.read::<ScaleSummary>().unwrap().points[0];
    assert_eq!((kept.planned, kept.executed + kept.skipped), (40, 40));
    let full = run.trial(2).unwrap();
    let crowd = full.crowd.unwrap();
    assert!((1..60).contains(&crowd.created), "{}", crowd.created);
    assert!(full.failure.unwrap().contains("of 60 cells failed"));
    let gave_out = crowd.gave_out.unwrap();
    assert!(gave_out.limit.ends_with("pids.max"), "{gave_out:?}");
    assert!(gave_out.fix.contains("echo max > "), "{gave_out:?}");
    let left_out = &manifest.not_measured;
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0].trial, "bare-70");
    assert!(left_out[0].reason.starts_with("bare ended at 60 cells: "));
    assert!(run.trial(3).is_err());
}

#[case(Root, RealTime, GroupsOfItsOwn(200))]
fn each_cell_holds_an_equal_part_where_groups_are_asked_for(dir: &Path) {
    let words = [
        "bench",
        "scale",
        "--counts",
        "1,4",
        "--jobs",
        "20",
        "--reserve",
        "rt-cgroup",
    ];
    if host::rtgroup::detect().is_err() {
        let said = say(dir, &words).ends_with(4);
        assert!(
            said.err.contains("boot a kernel with RT_GROUP_SCHED"),
            "{}",
            said.err
        );
        return;
    }
    let said = say(dir, &words).ends_with(0);
    assert!(
        said.err.contains("embedded-4: each cell holds"),
        "{}",
        said.err
    );
    let run = Run::open(&only_run(dir)).unwrap();
    let held = |number| {
        let crowd = run.trial(number).unwrap().crowd.unwrap();
        assert_eq!(crowd.armed, crowd.finished);
        crowd.reservation.unwrap().runtime_us
    };
    assert_eq!(held(2), held(1) / 4);
}

#[case(Root)]
fn ctrl_c_removes_every_cell(dir: &Path) {
    let (mut child, _) = started(dir, &[]);
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Interrupted);
    // Its jobs were not lost: nothing was left to run them.
    let text = say(dir, &["report", &path.to_string_lossy()]).out;
    assert!(
        text.contains("not reached: the trial was cut off (interrupted)"),
        "{text}"
    );
    assert!(!text.contains("in cells that ended normally"), "{text}");
    let summary = run.read::<ScaleSummary>().unwrap();
    let point = &summary.points[0];
    assert_eq!((point.unexplained, point.lost_with_cells), (0, 0));
    assert!(point.not_reached > 0 && point.cut_off == ["interrupted"]);
    assert_eq!(
        point.executed + point.skipped + point.not_reached,
        point.planned
    );
}

#[case(Root)]
fn clean_removes_what_a_killed_coordinator_left(dir: &Path) {
    let (mut child, _) = started(dir, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!traces_of(child.id()).is_empty());
    let said = say(dir, &["clean"]).ends_with(0);
    assert!(
        said.out.contains(&format!("process {}", child.id())),
        "{}",
        said.out
    );
    eventually("no trace is left", || traces_of(child.id()).is_empty());
}
