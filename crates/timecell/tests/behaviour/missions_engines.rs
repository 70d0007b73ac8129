//! Engines that a machine lacks: reported before anything is started, by every command that checks a mission.

use std::path::{Path, PathBuf};

use crate::attacks::changed_view;
use crate::control::ask;
use crate::missions::{Up, mission, nothing_is_left, pid_of, runs, shell};
use crate::support::{Said, say};

/// Where programs are looked for, besides the `PATH`.
const MORE: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The files of a program, each once, however many directories lead to it.
fn places(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(MORE.map(PathBuf::from));
    let mut found: Vec<PathBuf> = dirs
        .filter_map(|dir| dir.join(program).canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

fn cell(name: &str, engine: &str) -> String {
    let more = format!("class = \"other\"\nengine = \"{engine}\"");
    shell(name, "/busybox sleep 1000", &more)
}

/// Asserts that this was refused as an error of the file, in one sentence.
#[track_caller]
fn refused(said: Said, line: usize) {
    let said = said.ends_with(2);
    let told: Vec<&str> = (said.err.lines())
        .filter(|told| told.contains("makes no cells here"))
        .collect();
    let wanted = format!(
        "mission.toml:{line}: crun makes no cells here: `crun` is not installed; apt install crun"
    );
    assert!(
        told.len() == 1 && told[0].ends_with(&wanted),
        "{}",
        said.err
    );
}

#[case(Root, Program("busybox"), Program("crun"), Program("runc"))]
fn one_that_is_not_installed_is_told_once_with_its_line_and_its_fix(dir: &Path) {
    let hidden = places("crun");
    let hide: Vec<String> = (hidden.iter())
        .map(|place| format!("mount --bind /dev/null {}", place.display()))
        .collect();
    changed_view(&hide, || {
        let absent = cell("plain", "embedded") + &cell("a", "crun") + &cell("b", "crun");
        mission(dir, &absent);
        let line = line_of(dir, "engine = \"crun\"");
        refused(say(dir, &["admit", "mission.toml"]), line);
        refused(say(dir, &["up", "mission.toml", "--dir", "state"]), line);
        // Running cells keep running.
        mission(dir, &(cell("plain", "embedded") + &cell("r", "runc")));
        let mut up = Up::start(dir);
        let pid = pid_of(&up.told("plain: runs"));
        up.told("r: runs");
        mission(dir, &absent);
        refused(ask(dir, &["update", "mission.toml"]), line);
        assert!(runs(pid));
        // After installing it, the user need not restart anything.
        for place in &hidden {
            let status = std::process::Command::new("umount").arg(place).status();
            assert!(status.unwrap().success());
        }
        say(dir, &["admit", "mission.toml"]).ends_with(0);
        let update = ["update", "mission.toml", "--window", "100ms"];
        ask(dir, &update).ends_with(0);
        assert!(runs(pid));
        up.end();
    });
    nothing_is_left(dir);
}

/// The first line, from 1, of the mission that contains this.
fn line_of(dir: &Path, part: &str) -> usize {
    let text = std::fs::read_to_string(dir.join("mission.toml")).unwrap();
    1 + text.lines().position(|line| line.contains(part)).unwrap()
}
