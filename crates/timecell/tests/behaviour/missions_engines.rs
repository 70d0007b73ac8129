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

#[case(Root, RealTime, Program("busybox"), GroupBudget(150))]
fn requests_of_a_bundle_that_a_cell_does_not_get_are_named(dir: &Path) {
    let root = dir.join("b/rootfs");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::copy("/usr/bin/busybox", root.join("busybox")).unwrap();
    let config = r#"{"ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": false},
        "process": {"cwd": "/", "args": ["/busybox", "true"], "scheduler": {"policy": "SCHED_FIFO", "priority": 50},
            "rlimits": [{"type": "RLIMIT_RTPRIO", "soft": 50, "hard": 50}]},
        "linux": {"resources": {"cpu": {"realtimeRuntime": 950000}}}}"#;
    std::fs::write(dir.join("b/config.json"), config).unwrap();
    let bundled = |rights: &str| {
        let restart = "restart = { policy = \"never\" }";
        let cell = format!(
            "[[cell]]\nname = \"b\"\nimage = {{ bundle = \"b\" }}\nclass = \"other\"\n{restart}\n{rights}"
        );
        mission(dir, &cell);
    };
    bundled("");
    let ignored = "of its bundle, process.rlimits (RLIMIT_RTPRIO), process.scheduler, root.readonly = false, \
                   linux.resources.cpu.realtimeRuntime are ignored";
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0);
    assert!(
        flat(&said.out).contains(&format!("note: b: {ignored}")),
        "{}",
        said.out
    );
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let notes = json["admission"]["notes"].as_array().unwrap();
    assert!(
        notes
            .iter()
            .any(|note| note.as_str().unwrap().contains(ignored)),
        "{notes:?}"
    );
    let said = say(dir, &["run", "--reserve", "5ms/50ms", "--bundle", "b"]).ends_with(0);
    assert!(flat(&said.err).contains(ignored), "{}", said.err);
    let said = say(dir, &["up", "mission.toml", "--dir", "state"]).ends_with(0);
    assert!(flat(&said.out).contains(ignored), "{}", said.out);
    bundled("[cell.rights]\nwritable_root = true\n");
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0);
    assert!(!flat(&said.out).contains("root.readonly"), "{}", said.out);
    nothing_is_left(dir);
}
