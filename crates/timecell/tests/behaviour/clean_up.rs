//! The machine is left as it was: after Ctrl-C, and after `kill -9` and `timecell clean`.

use std::path::Path;
use std::process::Child;

use record::run::{Run, Status};

use crate::support::{
    begun, eventually, experiment, in_its_loop, only_run, payloads, say, traces_of,
};
use crate::users_places::{Places, users_link};

/// Root writes runs in a directory of user nobody, who puts no links there.
#[case(Root)]
fn what_root_measures_in_a_users_directory_is_the_users() {
    let places = Places::make();
    let file = experiment(&places.home, &["bare"], 20);
    let once = ["bench", &file, "--rounds", "1"];
    places.measures(&once);
    places.measures(&[&once[..], &["--histogram"]].concat());
    let startup = ["bench", "startup", "--rounds", "2"];
    places.measures(&[&startup[..], &["--engine", "embedded"]].concat());
    let scale = ["bench", "scale", "--counts", "1,2", "--jobs", "20"];
    places.measures(&[&scale[..], &["--class", "other", "--engine", "bare"]].concat());
    users_link(&places.roots, &places.home.join("runs"));
    let said = say(&places.home, &once).ends_with(2);
    assert!(said.err.contains("Permission denied"), "{}", said.err);
    places.nothing_of_roots_was_reached();
}

const ENGINES: [&str; 5] = ["bare", "embedded", "crun", "runc", "podman"];

/// Starts a bench whose single trial takes a minute, and waits until its cell runs.
pub fn started(dir: &Path, engine: &str) -> Option<Child> {
    let file = experiment(dir, &[engine], 60_000);
    let child = begun(dir, &["bench", &file, "--rounds", "1"]);
    let mut child = child;
    let mut ended = false;
    eventually("the cell runs", || {
        ended = child.try_wait().unwrap().is_some();
        ended || payload(child.id()).is_some()
    });
    // The engine is not available; other tests check whether that is right.
    (!ended).then_some(child)
}

/// Pid of a payload of coordinator `pid`.
fn payload(pid: u32) -> Option<i32> {
    Some(payloads(pid).first()?.0)
}

#[case(Root, GroupsOfItsOwn(120))]
fn ctrl_c_removes_every_cell() {
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut child) = started(dir.path(), engine) else {
            continue;
        };
        // SAFETY: our own child.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
        assert_eq!(child.wait().unwrap().code(), Some(1), "{engine}");
        let traces = traces_of(child.id());
        assert!(traces.is_empty(), "{engine} left {traces:#?}");
        let manifest = Run::open(&only_run(dir.path()))
            .unwrap()
            .manifest()
            .unwrap();
        assert_eq!(manifest.status, Status::Interrupted);
    }
}

#[case(Root, GroupsOfItsOwn(120))]
fn clean_removes_what_a_killed_coordinator_left() {
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut child) = started(dir.path(), engine) else {
            continue;
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            !traces_of(child.id()).is_empty(),
            "{engine}: the test sees nothing to remove"
        );
        let said = say(dir.path(), &["clean"]).ends_with(0);
        assert!(
            said.out.contains(&format!("process {}", child.id())),
            "{}",
            said.out
        );
        eventually("no trace is left", || traces_of(child.id()).is_empty());
        assert!(
            say(dir.path(), &["clean"])
                .ends_with(0)
                .out
                .contains("nothing was left")
        );
    }
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_killed_cell_fails_its_trial_and_not_the_run(dir: &Path) {
    let child = started(dir, "embedded").expect("embedded is always there");
    let pid = payload(child.id()).unwrap();
    eventually("the cell has run some jobs", || in_its_loop(pid));
    // SAFETY: a process that the bench under test started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(
        run.manifest().unwrap().status,
        Status::Complete,
        "the run went on to its end"
    );
    let failure = run.trial(1).unwrap().failure.unwrap();
    assert!(
        failure.contains("ended before its jobs were done"),
        "{failure}"
    );
    let samples = run.samples(1, "1-embedded").unwrap();
    assert!(
        samples.is_some_and(|s| s.unexplained() > 0),
        "what was measured until then is kept"
    );
    assert!(traces_of(id).is_empty());
}

#[case(Root, GroupsOfItsOwn(120))]
fn a_finished_run_leaves_no_trace(dir: &Path) {
    let file = experiment(
        dir,
        &["embedded", "crun", "runc", "podman", "podman-rootless"],
        20,
    );
    let mut child = begun(dir, &["bench", &file, "--rounds", "1"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
}
