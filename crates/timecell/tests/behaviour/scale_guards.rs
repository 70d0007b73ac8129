//! A scale study names the limit that will end it before it starts, and stops before others go short, keeping its measurements.

use record::scale::ScaleSummary;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use record::run::{Run, Status};

use crate::scale::started;
use crate::support::{only_run, say, traces_of};

/// Runs `bench scale` with these words and this limit of open files; podman and its runtime need more than 30 themselves.
fn with_files(files: u32, words: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!(
        "ulimit -Sn {files}; ulimit -Hn {files}; exec {} bench scale --class other --jobs 20 {words}",
        env!("CARGO_BIN_EXE_timecell")
    );
    command.args(["-c", &script]);
    command
}

#[case]
fn the_limit_that_will_end_a_study_is_named_before_it_begins(dir: &Path) {
    let said = |files: u32, counts: &str| {
        let words = format!("--engine bare --counts {counts} --dry-run");
        let output = with_files(files, &words).current_dir(dir).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = said(60, "2,60");
    assert!(
        text.contains("limit   bare: the first limit reached will be open files of timecell (RLIMIT_NOFILE), at about "),
        "{text}"
    );
    assert!(
        text.contains(" of 60, 1 for each cell; raise it in the shell"),
        "{text}"
    );
    let text = said(60, "2,3");
    assert!(
        text.contains("limit   bare: 3 cells reach no known limit; the first beyond is "),
        "{text}"
    );
    let of_others = say(dir, &["bench", "overhead", "--dry-run"]).ends_with(0);
    assert!(!of_others.out.contains("limit   "), "{}", of_others.out);
}

#[case(Root, Program("podman"))]
fn podman_ends_at_the_limit_that_was_named(dir: &Path) {
    let output = with_files(
        40,
        "--engine podman --counts 2,40,50 --set scale.parallel=4",
    )
    .current_dir(dir)
    .output()
    .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let named = "podman: the first limit reached will be open files of timecell (RLIMIT_NOFILE)";
    assert!(text.contains(named), "{text}");
    let run = Run::open(&only_run(dir)).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    assert_eq!(run.trial(1).unwrap().failure, None);
    let crowd = run.trial(2).unwrap().crowd.unwrap();
    assert!((3..40).contains(&crowd.created), "{}", crowd.created);
    assert_eq!(crowd.gave_out.unwrap().limit, "RLIMIT_NOFILE");
    assert_eq!(manifest.not_measured.len(), 1);
    assert_eq!(manifest.not_measured[0].trial, "podman-50");
}

fn available_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib >> 10
}

#[case(Root, Alone)]
fn cells_are_stopped_before_memory_runs_out_and_what_they_measured_is_kept(dir: &Path) {
    let margin = (available_mb() / 8).min(700);
    let reserve = format!("scale.memory_reserve={}MiB", available_mb() - margin);
    let (mut child, pids) = started(dir, &["--set", &reserve]);
    assert_eq!(pids.len(), 12);
    // Something else takes twice the memory that the study was to leave free.
    let mut hog = tempfile::tempfile_in("/dev/shm").unwrap();
    let mebibyte = vec![1; 1 << 20];
    for _ in 0..2 * margin {
        hog.write_all(&mebibyte).unwrap();
    }
    let code = child.wait().unwrap().code();
    drop(hog);
    assert_eq!(code, Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Complete);
    let trial = run.trial(1).unwrap();
    assert_eq!(trial.failure, None);
    let cut_off = trial.cut_off.unwrap();
    assert!(
        cut_off.starts_with("stopped before the memory of the machine ran out: "),
        "{cut_off}"
    );
    let crowd = trial.crowd.unwrap();
    assert_eq!(crowd.armed, 12);
    assert!(crowd.watchdog.unwrap().froze);
    for cell in &trial.cells {
        let samples = run.samples(1, &cell.id).unwrap().unwrap();
        assert!(samples.header.count > 0, "{}", cell.id);
    }
    let text = say(dir, &["report", &path.to_string_lossy()]).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("the trial was cut off (stopped before the memory"),
        "{text}"
    );
    let summary = run.read::<ScaleSummary>().unwrap();
    assert_eq!(summary.engines[0].largest, None);
    assert_eq!(summary.points[0].unexplained, 0);
}

#[case(Root)]
fn none_is_made_where_the_reserve_is_not_there(dir: &Path) {
    let words = [
        "bench", "scale", "--engine", "bare", "--counts", "2,3", "--jobs", "20", "--class", "other",
    ];
    let mut words = words.to_vec();
    words.extend(["--set", "scale.memory_reserve=1000000GiB"]);
    let said = say(dir, &words).ends_with(1);
    assert!(
        said.err
            .contains("stopped before the memory of the machine ran out: "),
        "{}",
        said.err
    );
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.trial(1).unwrap().crowd.unwrap().created, 0);
    assert_eq!(run.manifest().unwrap().not_measured[0].trial, "bare-3");
}
