//! Processes of others that bear the mark of a cell, and processes whose memory cannot be read: nobody believes, kills or awaits them.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use host::sched::{Class, set_class};
use supervise::names;

use crate::attacks::changed_view;
use crate::clean_up;
use crate::missions::{Up, is_gone, mission, name, nothing_is_left, pid_of, runs, shell};
use crate::support::{begun, end_of, eventually, payloads, say};

const STRANGER: u32 = 4711;
const ROOT: u32 = 0;

/// Sleeping processes that bear a mark, killed on drop.
struct Baits(Vec<Child>);

impl Baits {
    fn bearing(mark: &str, users: &[u32]) -> Baits {
        let bait = |user: &u32| {
            let mut sleep = Command::new("/bin/sleep");
            sleep.arg("1000").env("TIMECELL_CELL", mark);
            sleep.uid(*user).spawn().unwrap()
        };
        Baits(users.iter().map(bait).collect())
    }

    /// Commands after which opening their environments never ends.
    fn unreadable(&self, dir: &Path) -> Vec<String> {
        let pipe = dir.join("endless");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let pids = self.0.iter().map(Child::id);
        let hide = |pid| format!("mount --bind {} /proc/{pid}/environ", pipe.display());
        pids.map(hide).collect()
    }

    #[track_caller]
    fn all_live(mut self) {
        for bait in &mut self.0 {
            let ended = bait.try_wait().unwrap();
            assert_eq!(ended, None, "a process of a stranger's was ended");
        }
    }
}

impl Drop for Baits {
    fn drop(&mut self) {
        for bait in &mut self.0 {
            let _ = bait.kill();
            let _ = bait.wait();
        }
    }
}

/// The mark of the mission's cell.
fn mark(dir: &Path) -> String {
    names::cell_id(&name(dir), "app")
}

fn a_mission(dir: &Path) -> Up {
    let again = "class = \"other\"\nrestart = { policy = \"always\", backoff_min = \"10ms\" }";
    mission(dir, &shell("app", "while :; do sleep 1; done", again));
    Up::start(dir)
}

/// Kills the supervisor and all processes of the cell; the next one starts it again.
fn recovers(dir: &Path, up: Up, pid: i32) -> Up {
    up.kill();
    for pid in host::process::all() {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup"));
        if groups.is_ok_and(|groups| groups.contains(&mark(dir))) {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
    eventually("the cell has ended", || !runs(pid));
    let mut up = Up::start(dir);
    up.until("app: runs (pid");
    up
}

#[case(Alone, Root, RealTime, Program("busybox"))]
fn the_mark_of_a_stranger_is_not_believed(dir: &Path) {
    let mut up = a_mission(dir);
    let pid = pid_of(&up.until("app: runs"));
    let baits = Baits::bearing(&mark(dir), &[STRANGER; 12]);
    let first = baits.0[0].id();
    set_class(first.cast_signed(), &Class::Fifo { priority: 91 }).unwrap();
    let machine = say(dir, &["ps", "--machine"]).ends_with(0).out;
    set_class(first.cast_signed(), &Class::Other).unwrap();
    let told = format!("process {first}, thread");
    assert!(machine.contains(&told), "{machine}");
    recovers(dir, up, pid).end();
    nothing_is_left(dir);
    baits.all_live();
}

#[case(Alone, Root)]
fn clean_leaves_strangers_alone_and_waits_for_none(dir: &Path) {
    let mut child = clean_up::started(dir, "bare").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (pid, environment) = payloads(child.id()).remove(0);
    let mut words = environment.split('\0');
    let mark = words.find_map(|word| word.strip_prefix("TIMECELL_CELL="));
    let mark = mark.unwrap();
    let readable = Baits::bearing(mark, &[STRANGER; 12]);
    let unreadable = Baits::bearing(mark, &[STRANGER, ROOT]);
    changed_view(&unreadable.unreadable(dir), || {
        let ended = end_of(begun(dir, &["clean"]));
        assert_eq!(ended.and_then(|status| status.code()), Some(0));
    });
    is_gone(pid);
    readable.all_live();
    unreadable.all_live();
}
