//! How soon a cell that crashes runs again while another one does its worst. `-- missions_reaction --nocapture` prints the
//! figures; asserted is only that a neighbour costs no more than a few seconds, where it could cost minutes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::missions::{Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{Case, Need, timecell};

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
];

const NEEDS: &[Need] = &[Need::Root, Need::Program("busybox")];
const PLAIN: &str = "class = \"other\"";
const ROUNDS: usize = 5;
/// The engine's own limit is 120 s.
const BOUND: Duration = Duration::from_secs(10);
/// How long the engine hangs, s.
const HANGS: u32 = 20;

fn reacts(neighbour: &str, bad: &str, hangs: bool) {
    let dir = tempfile::tempdir().unwrap();
    let restart = "class = \"other\"\nrestart = { limit = 1000000, backoff_min = \"0ms\", backoff_max = \"0ms\" }";
    let good = shell("good", "/busybox sleep 1000", restart);
    mission(dir.path(), &format!("{bad}{good}"));
    let mut up = timecell();
    up.current_dir(dir.path())
        .args(["up", "mission.toml", "--dir", "state"]);
    if hangs {
        up.env("PATH", hanging_crun(dir.path()));
    }
    let began = Instant::now();
    let mut up = Up::of(&mut up);
    let mut pid = pid_of(&up.until("good: runs"));
    assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
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
