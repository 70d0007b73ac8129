//! `bench mission`: whole missions booted, ended and restarted, by real supervisors.

use std::fs;
use std::path::{Path, PathBuf};

use record::run::{Run, Status};
use record::series::{SeriesRecord, SeriesSummary};

use crate::missions::{Up, mission, name, nothing_is_left, shell};
use crate::series::assert_sums;
use crate::support::{begun, end_of, eventually, only_run, say};

/// The directory of a mission that is measured.
fn place(dir: &Path) -> PathBuf {
    Path::new("/var/lib/timecell").join(format!("{}.bench", name(dir)))
}

fn cell(cell: &str, more: &str) -> String {
    shell(
        cell,
        "exec sleep 100000",
        &format!("class = \"other\"\n{more}"),
    )
}

const TWO_ROUNDS: [&str; 6] = [
    "bench",
    "mission",
    "mission.toml",
    "--rounds",
    "2",
    "--json",
];

#[case(Root, Program("busybox"), Program("crun"))]
fn every_part_of_a_mission_is_measured_once_a_round(dir: &Path) {
    let cells = cell("a", "")
        + &cell(
            "b",
            "engine = \"crun\"\nafter = [\"a\"]\nrestart = { policy = \"never\" }",
        );
    mission(dir, &cells);
    let said = say(dir, &TWO_ROUNDS).ends_with(0);
    let summary: SeriesSummary = serde_json::from_str(&said.out).unwrap();
    let path = only_run(dir);
    let record: SeriesRecord = Run::open(&path).unwrap().read().unwrap();
    assert_sums(&record);
    let whole = name(dir);
    let found: Vec<(&str, &str, u64, u64)> = (summary.figures.iter())
        .filter(|figure| figure.of.is_none())
        .map(|f| (f.subject.as_str(), f.part.as_str(), f.count, f.failed))
        .collect();
    let of = |subject, part| (subject, part, 2, 0);
    assert_eq!(
        found,
        [
            of(whole.as_str(), "boot of the mission"),
            of(&whole, "reboot of the mission"),
            of(&whole, "end of the mission"),
            of("a", "reboot of a cell"),
            of("a", "recovery of a cell"),
            of("b", "reboot of a cell"),
        ]
    );
    assert_eq!(record.not_measured.len(), 1, "{:?}", record.not_measured);
    assert_eq!(record.not_measured[0].trial, "b, recovery of a cell");
    nothing_is_left(dir);
    assert!(!place(dir).exists());
    let path = path.to_string_lossy().into_owned();
    let said = say(dir, &["report", &path, "--against", "published"]).ends_with(0);
    for (subject, ours) in [
        ("Jailhouse boot", "boot of the mission"),
        ("Jailhouse reboot", "reboot of the mission"),
        ("Linux non-root cell reboot", "a, reboot of a cell"),
    ] {
        let is_beside = |line: &str| line.starts_with(subject) && line.contains(ours);
        assert!(said.out.lines().any(is_beside), "{}", said.out);
    }
    // Another mission under the name of the file does not end the run.
    let text = fs::read_to_string(dir.join("mission.toml")).unwrap();
    fs::write(dir.join("mission.toml"), text.replace("100000", "99999")).unwrap();
    let state = Path::new(&path).join("run.json");
    let cut = fs::read_to_string(&state).unwrap();
    fs::write(&state, cut.replace("\"complete\"", "\"interrupted\"")).unwrap();
    let why = say(dir, &["bench", "--resume", &path]).ends_with(2).error();
    assert!(why.contains("digest of the mission file"), "{why}");
}

#[case(Root, Program("busybox"))]
fn rounds_of_a_mission_that_never_runs_are_counted_as_failed(dir: &Path) {
    let more = "class = \"other\"\nready = \"first-job\"\nrestart = { policy = \"never\" }";
    mission(dir, &shell("a", "exit 3", more));
    let said = say(dir, &TWO_ROUNDS).ends_with(1);
    let summary: SeriesSummary = serde_json::from_str(&said.out).unwrap();
    assert!(summary.figures.is_empty(), "{}", said.out);
    let record: SeriesRecord = Run::open(&only_run(dir)).unwrap().read().unwrap();
    let failed = record.series.iter().map(|series| series.failures.len());
    assert_eq!(failed.collect::<Vec<_>>(), [2; 4], "{:?}", record.series);
    nothing_is_left(dir);
    // For whoever wants to know why.
    assert!(place(dir).join("journal").exists());
    fs::remove_dir_all(place(dir)).unwrap();
}

#[case(Root, Program("busybox"))]
fn a_mission_that_cannot_be_measured_is_refused_at_once(dir: &Path) {
    let bench = ["bench", "mission", "mission.toml"];
    mission(dir, &cell("a", "cpus = [4000]"));
    let why = say(dir, &bench).ends_with(2).error();
    assert!(why.contains("mission.toml:"), "{why}");
    let cells = cell("a", "");
    let cells = cells.replace(
        "class = \"other\"",
        "class = \"other\"\nmemory = \"1000000GiB\"",
    );
    mission(dir, &cells);
    if say(dir, &["admit", "mission.toml"]).code == Some(3) {
        let why = say(dir, &bench).ends_with(4).error();
        assert!(why.contains("is not admitted here"), "{why}");
    }
    mission(dir, &cell("a", ""));
    let mut up = Up::start(dir);
    up.until("a: runs");
    let why = say(dir, &bench).ends_with(4).error();
    assert!(why.contains("runs a mission named"), "{why}");
    up.end();
}

#[case(interrupted(libc::SIGINT, Status::Interrupted); Root, Program("busybox"))]
#[case(killed(libc::SIGKILL, Status::Killed); Root, Program("busybox"))]
fn leaves_no_mission(signal: i32, status: Status) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    mission(dir, &cell("a", ""));
    let words = ["bench", "mission", "mission.toml", "--rounds", "10000"];
    let bench = begun(dir, &words);
    eventually("the mission runs", || place(dir).join("control").exists());
    // SAFETY: our own child.
    unsafe { libc::kill(bench.id().cast_signed(), signal) };
    end_of(bench);
    eventually("its supervisor has ended", || {
        !place(dir).join("control").exists()
    });
    nothing_is_left(dir);
    say(dir, &["clean"]);
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.manifest().unwrap().status, status);
    let _ = fs::remove_dir_all(place(dir));
}
