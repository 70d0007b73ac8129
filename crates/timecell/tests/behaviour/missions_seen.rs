//! A mission's owner's view of cells that try to hide something, and of files that were there before them.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::control::{RESERVED, SLEEPS, cell};
use crate::missions::{Up, mission, name, nothing_is_left, pid_of, shell};
use crate::pty::{PROGRAMS, Pty};
use crate::support::{Need, binary, eventually, say};

pub const NEEDS: &[Need] = &[Need::Root, Need::Program("busybox")];
pub const ON_A_TERMINAL: &[Need] = &[
    Need::Root,
    Need::Program("busybox"),
    Need::Program(PROGRAMS[0]),
    Need::Program(PROGRAMS[1]),
    Need::Program(PROGRAMS[2]),
];

/// Clears the screen and sets the window's title, in a TOML string and as a terminal shows it.
const ESCAPES: &str = r"\u001b[2J\u001b]0;owned\u0007mine";
const SHOWN: &str = r"\u{1b}[2J\u{1b}]0;owned\u{7}mine";

#[case(..ON_A_TERMINAL)]
pub fn what_a_cell_says_reaches_a_terminal_as_text() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("root/dev")).unwrap();
    // `logs` shows a cell's output; `events` and `ps` show why it could not be started: its engine names the program.
    let writes = r"printf '\\033[2J\\033]0;owned\\007mine\\n'; exec /busybox sleep 1000";
    let cells = shell("writes", writes, "class = \"other\"")
        + &format!(
            "[[cell]]\nname = \"fails\"\nclass = \"other\"\nimage = {{ rootfs = \"root\" }}\n\
             command = [\"/{ESCAPES}\"]\nrestart = {{ policy = \"never\" }}\n"
        );
    mission(dir.path(), &cells);
    let mut up = Up::start(dir.path());
    up.told("writes: runs");
    up.told("fails: stays stopped");
    let logs = || say(dir.path(), &["logs", "writes", "--dir", "state"]).out;
    eventually("the cell has written", || logs().contains("mine"));
    for words in [
        "logs writes --dir state",
        "events --dir state",
        "ps --dir state",
    ] {
        // Unchanged if no terminal shows it.
        let piped: Vec<&str> = words.split(' ').collect();
        let piped = say(dir.path(), &piped).ends_with(0).out;
        assert!(piped.contains("\x1b]0;owned\x07mine"), "{words}: {piped}");
        let command = format!("'{}' {words}", binary().display());
        let (rows, columns) = (NonZero::new(60).unwrap(), NonZero::new(1000).unwrap());
        let mut terminal = Pty::start(dir.path(), rows, columns, &command);
        let (code, screen) = terminal.ends();
        let shown = screen.contents();
        assert_eq!(code, Some(0), "{words}: {shown}");
        assert!(shown.contains(SHOWN), "{words}: {shown}");
        assert_eq!(terminal.title(), None, "{words}: {shown}");
    }
    up.end();
    nothing_is_left(dir.path());
}

/// No cell can do this itself: somebody who may change its threads from outside has done it.
#[case(
    Root,
    RealTime,
    RtGroups,
    Deadline,
    DeadlineBudget,
    Program("busybox"),
    GroupBudget(50)
)]
fn a_thread_beside_the_budget_of_its_cell_is_told_of(dir: &Path) {
    // The kernel refuses the class to a thread that is confined to some cpus.
    let cpus = host::sched::get_affinity(0).unwrap();
    let app = shell("app", SLEEPS, &format!("{RESERVED}\ncpus = {cpus:?}"));
    mission(dir, &format!("enforcer = \"rt-cgroup\"\n{app}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("app: runs"));
    assert_eq!(cell(dir, "app")["unheld"], serde_json::json!([]));
    let class = host::sched::Class::Deadline {
        runtime_ns: 100_000,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    host::sched::set_class(pid, &class).unwrap();
    let told = format!("its thread {pid} is of SCHED_DEADLINE");
    // Reports are up to a second old.
    eventually("that one beside the budget is told of", || {
        let unheld = cell(dir, "app")["unheld"][0].clone();
        unheld
            .as_str()
            .is_some_and(|unheld| unheld.starts_with(&told))
    });
    let ps = say(dir, &["ps", "--dir", "state"]).ends_with(0).out;
    assert!(ps.contains("SCHED_DEADLINE"), "{ps}");
    host::sched::bandwidth::leave(pid).unwrap();
    eventually("that nothing is told of any more", || {
        cell(dir, "app")["unheld"] == serde_json::json!([])
    });
    up.end();
    nothing_is_left(dir);
}

/// Even on a terminal that does not report its width, and if the name looks like an option.
#[case(Program(PROGRAMS[0]), Program(PROGRAMS[1]), Program(PROGRAMS[2]))]
fn the_name_of_a_file_reaches_a_terminal_as_text(dir: &Path) {
    let name = "\x1b]0;owned\x07mine.csv";
    fs::write(dir.join(name), "x,y\n").unwrap();
    let binary = binary();
    for (words, code) in [
        (format!("report '{name}'"), 2),
        (format!("admit '{name}'"), 2),
        (format!("admit 'not {name}'"), 2),
        (format!("report '--{name}'"), 2),
    ] {
        for size in ["", "stty rows 0 cols 0; "] {
            let command = format!("sh -c \"{size}exec '{}' {words}\"", binary.display());
            let (rows, columns) = (NonZero::new(60).unwrap(), NonZero::new(1000).unwrap());
            let mut terminal = Pty::start(dir, rows, columns, &command);
            let (ended, screen) = terminal.ends();
            let shown = screen.contents();
            assert_eq!(ended, Some(code), "{words}: {shown}");
            assert!(shown.contains("mine.csv"), "{words}: {shown}");
            assert_eq!(terminal.title(), None, "{words}: {shown}");
        }
    }
}

/// A cgroup with a process in it; both end with this.
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

#[case(..NEEDS)]
pub fn a_group_that_somebody_else_uses_is_left_alone() {
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
