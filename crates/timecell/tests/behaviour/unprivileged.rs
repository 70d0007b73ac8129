//! Without privilege, the same command runs, names the unmet requirements, and labels its results.

use record::summary::RunSummary;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use record::run::Run;

use crate::support::{Said, copy_program, experiment, only_run, timecell};

const NOBODY: u32 = 65_534;

/// A directory and a copy of the binary that everybody can reach.
pub fn open_place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(dir.path(), all.clone()).unwrap();
    let binary = dir.path().join("timecell");
    copy_program(env!("CARGO_BIN_EXE_timecell"), &binary);
    std::fs::set_permissions(&binary, all).unwrap();
    (dir, binary)
}

pub fn as_nobody(dir: &Path, binary: &Path, words: &[&str]) -> Said {
    let mut command = std::process::Command::new(binary);
    command
        .current_dir(dir)
        .args(words)
        .uid(NOBODY)
        .gid(NOBODY)
        .env_remove("SUDO_USER")
        .env_remove("XDG_RUNTIME_DIR")
        .env("HOME", dir)
        .stdin(std::process::Stdio::null());
    command.output().unwrap().into()
}

#[case(Root)]
fn runs_and_labels_everything() {
    let (dir, binary) = open_place();
    let file = experiment(dir.path(), &["bare", "embedded", "crun"], 20);
    let words = ["bench", &file, "--fail-if", "latency.p99 > 100us"];
    let said = as_nobody(dir.path(), &binary, &words).ends_with(4);
    assert!(said.err.contains("unmet   SCHED_FIFO 80: "), "{}", said.err);
    for part in ["not real-time", "not applicable", "in no real-time class"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert!(said.out.contains("crun needs root here"), "{}", said.out);
    let path = only_run(dir.path());
    let summary = Run::open(&path).unwrap().read::<RunSummary>().unwrap();
    assert!(!summary.real_time);
    let labels: Vec<&str> = summary.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["bare", "embedded"]);
    assert!(
        summary
            .cells
            .iter()
            .all(|cell| !cell.real_time && cell.class == "OTHER")
    );
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.to_lowercase().contains("not real-time"));
}

#[case(Root)]
fn require_rt_is_exit_code_4() {
    let (dir, binary) = open_place();
    let said = as_nobody(
        dir.path(),
        &binary,
        &["bench", "overhead", "--quick", "--require-rt"],
    );
    let said = said.ends_with(4);
    assert!(said.error().contains("SCHED_FIFO 80"), "{}", said.err);
    assert!(!dir.path().join("runs").exists());
    let asked = timecell()
        .current_dir(dir.path())
        .args([
            "bench",
            "overhead",
            "--class",
            "other",
            "--require-rt",
            "--dry-run",
        ])
        .output()
        .unwrap();
    assert_eq!(
        asked.status.code(),
        Some(4),
        "asking for class other and real time contradict"
    );
}

#[case(Root)]
fn a_user_without_subuids_is_told_how_to_get_them() {
    let (dir, binary) = open_place();
    let file = experiment(dir.path(), &["podman-rootless"], 20);
    let said = as_nobody(dir.path(), &binary, &["bench", &file]).ends_with(4);
    let error = said.error();
    assert!(
        error.contains("nothing of this experiment can be measured here"),
        "{error}"
    );
    assert!(
        error.contains("usermod --add-subuids") || error.contains("install"),
        "{error}"
    );
}
