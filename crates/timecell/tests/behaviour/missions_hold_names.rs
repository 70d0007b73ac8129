//! Held things under another name than they were held by, on the cpus that they were given, and after all processes that hold
//! them were killed or stopped answering.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use freezer::page::Page;

use host::sched::get_affinity;

use crate::missions_hold::{
    Busy, Container, IN_PODMAN, NEEDS, hold, kill_all_who_hold, list, nothing_is_held, only, place,
    release,
};
use crate::support::{begun, say};

const RESERVED: [&str; 2] = ["--reserve", "5ms/50ms"];

fn held(words: &[&str]) -> crate::support::Said {
    hold(&[&RESERVED[..], words].concat())
}

pub fn podman(words: &[&str]) {
    let done = Command::new("podman").args(words).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?}: {said}");
}

#[case(..IN_PODMAN)]
fn a_container_is_known_by_all_its_names_and_kept_to_its_cpus(dir: &Path) {
    let container = Container::start(dir);
    let own = container.name.as_str();
    held(&[own]).ends_with(0);
    let pid = only()["pid"].to_string();
    // Nothing holds it, and it may stay frozen for good: `clean` takes care of that.
    kill_all_who_hold();
    let told = say(Path::new("/"), &["clean"]).ends_with(0);
    assert!(told.out.contains("it is held again"), "{}", told.out);
    assert!(!told.out.contains("nothing was left"), "{}", told.out);
    let told = hold(&["--list"]).ends_with(0);
    assert!(told.err.is_empty(), "{}", told.err);
    // Held by one name, and released by another.
    let renamed = format!("{own}-renamed");
    podman(&["rename", own, &renamed]);
    let let_go = release(&renamed).ends_with(0);
    podman(&["rename", &renamed, own]);
    assert!(let_go.out.contains(": released"), "{}", let_go.out);
    for (by, other) in [(own, pid.as_str()), (pid.as_str(), own)] {
        held(&[by]).ends_with(0);
        let let_go = release(other).ends_with(0);
        assert!(let_go.out.contains(": released"), "{}", let_go.out);
        nothing_is_held();
    }
    // It was not given this cpu, which its owner may want to keep free.
    podman(&["update", "--cpuset-cpus", "1", own]);
    let refused = held(&["--cpu", "0", own]).ends_with(2);
    assert!(
        refused.error().contains("its cpuset has cpus 1 only"),
        "{}",
        refused.err
    );
    assert_eq!(list()["held"].as_array().map(Vec::len), Some(0));
    held(&[own]).ends_with(0);
    assert_eq!(only()["holds"][0]["cpus"][0], 1);
    assert_eq!(get_affinity(pid.parse().unwrap()).unwrap(), [1]);
    release(own).ends_with(0);
    nothing_is_held();
}

/// Signals the processes that hold something.
fn signal_all_who_hold(signal: i32) {
    let page = Page::open(&place()).unwrap().unwrap();
    for pid in [page.heir(), page.watcher(), page.keeper()] {
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }
}

#[case(..NEEDS)]
fn those_who_do_not_answer_keep_nobody_from_deciding() {
    let mut busy = Busy::start();
    hold(&["--reserve", "5ms/50ms", "--cpu", "1", &busy.id()]).ends_with(0);
    only();
    signal_all_who_hold(libc::SIGSTOP);
    let mut listing = begun(Path::new("/"), &["hold", "--list"]);
    std::thread::sleep(Duration::from_secs(1));
    let lock = fs::File::open("/run/timecell/lock").unwrap();
    let is_free = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        lock.try_lock().is_ok()
    });
    lock.unlock().unwrap();
    let waits = listing.try_wait().unwrap().is_none();
    signal_all_who_hold(libc::SIGCONT);
    assert!(waits, "it did not wait for those who hold it");
    assert!(is_free, "the ledger is locked meanwhile");
    assert_eq!(listing.wait().unwrap().code(), Some(0));
    release(&busy.id()).ends_with(0);
    busy.end();
    nothing_is_held();
}
