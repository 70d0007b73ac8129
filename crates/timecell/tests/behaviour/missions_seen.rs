//! What a mission's owner sees of cells that would rather not be seen as they are, and of what was there before them.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::missions::{Up, mission, name, nothing_is_left, shell};
use crate::pty::{PROGRAMS, Pty};
use crate::support::{Case, Need, binary, say};

pub const CASES: &[Case] = &[
    Case {
        name: "missions_seen::what_a_cell_says_reaches_a_terminal_as_text",
        needs: &[
            Need::Root,
            Need::Program("busybox"),
            Need::Program(PROGRAMS[0]),
            Need::Program(PROGRAMS[1]),
            Need::Program(PROGRAMS[2]),
        ],
        run: as_text,
    },
    Case {
        name: "missions_seen::a_group_that_somebody_else_uses_is_left_alone",
        needs: &[Need::Root, Need::Program("busybox")],
        run: occupied,
    },
];

fn as_text() {
    let dir = tempfile::tempdir().unwrap();
    // Clears the screen, names the window, and ends: what it said last is quoted.
    let script = r"printf '\\033[2J\\033]0;owned\\007mine\\n' >&2; sleep 1; exit 3";
    let more = "class = \"other\"\nrestart = { policy = \"never\" }";
    mission(dir.path(), &shell("plain", script, more));
    let mut up = Up::start(dir.path());
    up.told("plain: ended with exit status 3");
    for words in [
        "logs plain --dir state",
        "events --dir state",
        "ps --dir state",
    ] {
        let command = format!("'{}' {words}", binary().display());
        let (rows, columns) = (NonZero::new(40).unwrap(), NonZero::new(250).unwrap());
        let terminal = Pty::start(dir.path(), rows, columns, &command);
        let (code, screen) = terminal.ends();
        assert_eq!(code, Some(0), "{words}");
        let shown = screen.contents();
        assert!(!shown.trim().is_empty(), "{words}");
        if !words.starts_with("ps") {
            assert!(
                shown.contains(r"\u{1b}[2J\u{1b}]0;owned\u{7}mine"),
                "{words}: {shown}"
            );
        }
    }
    up.end();
    nothing_is_left(dir.path());
}

/// A group with a process in it, which both end with this.
struct Occupied(PathBuf, Child);

impl Occupied {
    fn new(group: &Path) -> Occupied {
        fs::create_dir(group).unwrap();
        let child = Command::new("sleep").arg("300").spawn().unwrap();
        fs::write(group.join("cgroup.procs"), child.id().to_string()).unwrap();
        Occupied(group.to_owned(), child)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        let _ = self.1.kill();
        let _ = self.1.wait();
        let gone = || fs::remove_dir(&self.0).is_ok();
        crate::support::eventually("the group to be removed", gone);
    }
}

fn occupied() {
    let dir = tempfile::tempdir().unwrap();
    mission(
        dir.path(),
        &shell("plain", "exec /busybox sleep 1000", "class = \"other\""),
    );
    let cgroups = host::cgroup::detect().unwrap();
    let mount = cgroups.v1_mount("cpu").or(cgroups.v2.as_ref());
    let mount = mount.unwrap().point.clone();
    let id = format!("timecell-cell-{}.plain", name(dir.path()));
    let mut occupied = Occupied::new(&mount.join(&id));
    let said = say(dir.path(), &["up", "mission.toml", "--dir", "state"]).ends_with(1);
    let told = format!(
        "the name `{id}` is taken: process {} runs in",
        occupied.1.id()
    );
    assert!(
        said.err.contains(&told) || said.out.contains(&told),
        "{}{}",
        said.out,
        said.err
    );
    // Neither ended nor moved.
    assert!(occupied.1.try_wait().unwrap().is_none());
    let procs = fs::read_to_string(occupied.0.join("cgroup.procs")).unwrap();
    assert_eq!(procs.trim(), occupied.1.id().to_string());
    drop(occupied);
    let mut up = Up::start(dir.path());
    up.until("plain: runs");
    up.end();
    nothing_is_left(dir.path());
}
