//! How soon a cell that crashes runs again while another one does its worst. `-- missions_reaction --nocapture` prints the
//! figures; asserted is only that a neighbour costs no more than a few seconds, where it could cost minutes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::control::cell;
use crate::missions::{Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{Case, Need, eventually, timecell};

pub const CASES: &[Case] = &[
    Case {
        name: "missions_reaction::beside_a_cell_that_does_nothing",
        needs: NEEDS,
        run: || {
            reacts(
                "nothing",
                &shell("bad", "/busybox sleep 1000", PLAIN),
                false,
            )
        },
    },
    Case {
        name: "missions_reaction::beside_a_cell_that_floods_its_output",
        needs: NEEDS,
        run: || {
            let script = "for i in 1 2 3 4; do /busybox dd if=/dev/zero bs=64k & done; wait";
            reacts("floods its output", &shell("bad", script, PLAIN), false);
        },
    },
    Case {
        name: "missions_reaction::beside_a_cell_that_hangs_in_its_start",
        needs: &[Need::Root, Need::Program("busybox"), Need::Program("crun")],
        run: || {
            let hangs = format!("engine = \"crun\"\n{PLAIN}");
            let cell = shell("bad", "/busybox sleep 1000", &hangs);
            reacts("hangs in its start", &cell, true);
        },
    },
    Case {
        name: "missions_reaction::beside_a_cell_that_does_not_die",
        needs: NEEDS,
        run: beside_a_cell_that_does_not_die,
    },
    Case {
        name: "missions_reaction::beside_a_cell_that_fills_the_disk",
        needs: NEEDS,
        run: beside_a_cell_that_fills_the_disk,
    },
    Case {
        name: "missions_reaction::a_reader_that_has_stopped_holds_up_nobody",
        needs: NEEDS,
        run: a_reader_that_has_stopped_holds_up_nobody,
    },
    Case {
        name: "missions_reaction::who_asks_twice_does_not_wait_for_a_start_that_hangs",
        needs: &[Need::Root, Need::Program("busybox"), Need::Program("crun")],
        run: who_asks_twice_does_not_wait_for_a_start_that_hangs,
    },
    Case {
        name: "missions_reaction::a_locked_record_of_user_ids_holds_up_its_start_only",
        needs: NEEDS,
        run: a_locked_record_of_user_ids_holds_up_its_start_only,
    },
];

const NEEDS: &[Need] = &[Need::Root, Need::Program("busybox")];
const PLAIN: &str = "class = \"other\"";
const ROUNDS: usize = 5;
/// The engine's own limit is 120 s.
const BOUND: Duration = Duration::from_secs(10);
/// How long the engine hangs, s.
const HANGS: u32 = 20;

const RESTART: &str = "class = \"other\"\nrestart = { limit = 1000000, backoff_min = \"0ms\", backoff_max = \"0ms\" }";

fn reacts(neighbour: &str, bad: &str, hangs: bool) {
    let dir = tempfile::tempdir().unwrap();
    let good = shell("good", "/busybox sleep 1000", RESTART);
    mission(dir.path(), &format!("{bad}{good}"));
    let mut up = timecell();
    up.current_dir(dir.path())
        .args(["up", "mission.toml", "--dir", "state"]);
    if hangs {
        up.env("PATH", hanging_crun(dir.path()));
    }
    let began = Instant::now();
    let mut up = Up::of(&mut up);
    let pid = pid_of(&up.until("good: runs"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    killed_and_back(neighbour, &mut up, pid);
    up.end();
    nothing_is_left(dir.path());
}

/// Kills `good` and waits until it runs again, some times.
fn killed_and_back(neighbour: &str, up: &mut Up, mut pid: i32) {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        std::thread::sleep(Duration::from_millis(200));
        let killed = Instant::now();
        // SAFETY: no memory is involved; the cell's first process.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        pid = pid_of(&up.until("good: runs"));
        took.push(killed.elapsed());
        assert!(killed.elapsed() < BOUND, "{took:?}\n{}", up.said.join("\n"));
    }
    took.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "beside a cell that does this: {neighbour}; killed until it runs again, {ROUNDS} times: median {:.1} ms, longest {:.1} ms",
        ms(took[ROUNDS / 2]),
        ms(took[ROUNDS - 1])
    );
}

/// SIGTERM is ignored, and two minutes are left to it.
fn beside_a_cell_that_does_not_die() {
    let dir = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; while :; do /busybox sleep 1; done";
    let bad = shell("bad", script, PLAIN).replace("\"100ms\"", "\"120s\"");
    let good = shell("good", "/busybox sleep 1000", RESTART);
    mission(dir.path(), &format!("{bad}{good}"));
    let mut up = Up::start(dir.path());
    let pid = pid_of(&up.until("good: runs"));
    up.told("bad: runs");
    let mut stop = timecell()
        .current_dir(dir.path())
        .args(["stop", "--dir", "state", "bad"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    killed_and_back("does not die", &mut up, pid);
    assert!(matches!(stop.try_wait(), Ok(None)), "it has died");
    // Twice: nobody waits for two minutes.
    up.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    up.end();
    let _ = stop.wait();
    nothing_is_left(dir.path());
}

/// The mission's directory has 24 MB, and the cell's output takes them all.
fn beside_a_cell_that_fills_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "timecell-test"])
        .arg(&state)
        .status();
    assert!(mounted.unwrap().success());
    let bad = shell("bad", "/busybox sleep 1000", PLAIN);
    let good = shell("good", "/busybox sleep 1000", RESTART);
    mission(dir.path(), &format!("{bad}{good}"));
    let mut up = Up::start(dir.path());
    let pid = pid_of(&up.until("good: runs"));
    let filled = fs::File::create(state.join("filler")).and_then(|mut file| {
        let block = vec![1_u8; 1 << 16];
        loop {
            std::io::Write::write_all(&mut file, &block)?;
        }
        #[expect(unreachable_code, reason = "it ends when the disk is full")]
        Ok(())
    });
    assert!(filled.is_err());
    killed_and_back("has filled the disk", &mut up, pid);
    fs::remove_file(state.join("filler")).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    up.end();
    let unmounted = std::process::Command::new("umount").arg(&state).status();
    assert!(unmounted.unwrap().success());
    nothing_is_left(dir.path());
}

/// `up` writes to a pipe that nobody reads, and restarts cells as before.
fn a_reader_that_has_stopped_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let crashes = shell("bad", "exit 1", RESTART);
    mission(dir.path(), &crashes);
    let (reader, writer) = std::io::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
    // SAFETY: no memory is involved; the pipe is ours.
    assert!(unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, 4096) } >= 4096);
    let mut up = timecell()
        .current_dir(dir.path())
        .args(["up", "mission.toml", "--dir", "state"])
        .stdout(writer)
        .spawn()
        .unwrap();
    let starts = || {
        let said = crate::support::say(dir.path(), &["ps", "--dir", "state", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_default();
        json["cells"][0]["starts"].as_u64().unwrap_or(0)
    };
    let end = Instant::now() + Duration::from_secs(60);
    // Its lines have long filled 4 kB.
    while starts() < 60 {
        assert!(Instant::now() < end, "{} starts", starts());
        std::thread::sleep(Duration::from_millis(200));
    }
    // SAFETY: no memory is involved; our own child, not reaped yet.
    unsafe { libc::kill(up.id().cast_signed(), libc::SIGINT) };
    assert_eq!(up.wait().unwrap().code(), Some(0));
    drop(reader);
    nothing_is_left(dir.path());
}

fn who_asks_twice_does_not_wait_for_a_start_that_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let hangs = format!("engine = \"crun\"\n{PLAIN}");
    let bad = shell("bad", "/busybox sleep 1000", &hangs);
    mission(
        dir.path(),
        &(bad + &shell("good", "/busybox sleep 1000", PLAIN)),
    );
    let mut up = timecell();
    up.current_dir(dir.path())
        .args(["up", "mission.toml", "--dir", "state"])
        .env("PATH", hanging_crun(dir.path()));
    let mut up = Up::of(&mut up);
    up.until("good: runs");
    let began = Instant::now();
    up.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    up.signal(libc::SIGINT);
    up.until("bad: left behind: it is still being started");
    assert_eq!(up.child.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    // The next one clears it.
    mission(dir.path(), &shell("good", "/busybox sleep 1000", PLAIN));
    let mut up = Up::start(dir.path());
    up.until("good: runs");
    up.end();
    nothing_is_left(dir.path());
}

/// The supervisor answers while the start waits.
fn a_locked_record_of_user_ids_holds_up_its_start_only() {
    let dir = tempfile::tempdir().unwrap();
    mission(
        dir.path(),
        &shell("a", "/busybox sleep 1000", "class = \"other\""),
    );
    let mut up = Up::start(dir.path());
    up.until("a: runs");
    let lock = fs::File::options()
        .write(true)
        .open("/run/timecell/uids.lock");
    let lock = lock.unwrap();
    lock.lock().unwrap();
    let mut restart = timecell()
        .current_dir(dir.path())
        .args(["restart", "--dir", "state", "a"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the start is seen", || {
        cell(dir.path(), "a")["state"] == "starting"
    });
    lock.unlock().unwrap();
    assert!(restart.wait().unwrap().success());
    up.end();
    nothing_is_left(dir.path());
}

/// A PATH with a crun first that hangs where it starts a container.
fn hanging_crun(dir: &Path) -> String {
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join("crun"))
        .find(|file| file.is_file())
        .unwrap();
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do [ \"$word\" = start ] && exec sleep {HANGS}; done\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(bin.join("crun"), script).unwrap();
    fs::set_permissions(bin.join("crun"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", bin.display())
}
