//! Several missions on one machine: names, and the ledger of what is granted.

use std::path::Path;

use crate::missions::{Up, mission, name, pid_of, runs, shell};
use crate::support::{Case, Need, say, timecell};

const CELLS: &[Need] = &[Need::Root, Need::Program("busybox")];

pub const CASES: &[Case] = &[
    Case {
        name: "missions_beside::names_that_look_alike_are_two_missions",
        needs: CELLS,
        run: names_that_look_alike_are_two_missions,
    },
    Case {
        name: "missions_beside::a_name_is_one_supervisors_in_whatever_directory",
        needs: CELLS,
        run: a_name_is_one_supervisors_in_whatever_directory,
    },
];

fn named(dir: &Path, file: &str, name: &str, cells: &str) {
    let text = format!("schema = 1\nname = \"{name}\"\n{cells}");
    std::fs::write(dir.join(file), text).unwrap();
}

fn up(dir: &Path, file: &str, state: &str) -> Up {
    Up::of(
        timecell()
            .current_dir(dir)
            .args(["up", file, "--dir", state]),
    )
}

fn best_effort(name: &str) -> String {
    shell(name, "while :; do sleep 1; done", "class = \"other\"")
}

fn names_that_look_alike_are_two_missions() {
    let dir = tempfile::tempdir().unwrap();
    let base = name(dir.path());
    named(dir.path(), "one.toml", &base, &best_effort("b-c"));
    named(
        dir.path(),
        "two.toml",
        &format!("{base}-b"),
        &best_effort("c"),
    );
    let mut one = up(dir.path(), "one.toml", "one");
    let first = pid_of(&one.until("b-c: started"));
    let mut two = up(dir.path(), "two.toml", "two");
    let second = pid_of(&two.until("c: started"));
    assert!(runs(first) && runs(second));
    two.end();
    assert!(runs(first));
    one.end();
}

fn a_name_is_one_supervisors_in_whatever_directory() {
    let dir = tempfile::tempdir().unwrap();
    mission(dir.path(), &best_effort("a"));
    let mut first = Up::start(dir.path());
    let pid = pid_of(&first.until("a: started"));
    let elsewhere = ["up", "mission.toml", "--dir", "elsewhere"];
    let said = say(dir.path(), &elsewhere).ends_with(1);
    assert!(said.error().contains("kept running by another timecell"));
    assert!(runs(pid));
    first.kill();
    let said = say(dir.path(), &elsewhere).ends_with(1);
    assert!(said.error().contains("of another directory still run"));
    assert!(runs(pid));
    let mut again = Up::start(dir.path());
    again.until("taken over");
    again.end();
}
