//! Recovery of crashed and wedged cells. The campaign `recovery` prints how long it takes; asserted here is only that each
//! cell runs again.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::missions::{Up, busybox, mission, nothing_is_left, pid_of, shell};
use crate::reporter::{Deed, NOTES, Reporter};
use crate::support::{eventually, say};

/// Number of failures to wait for, if figures are wanted.
const ROUNDS_SET: &str = "TIMECELL_RECOVERY_ROUNDS";
const ROUNDS: usize = 5;
const TIMEOUT_MS: i64 = 40;
const PATIENCE: Duration = Duration::from_secs(120);

/// The budget that admission finds is so small that the start of a program takes several periods of it.
const LEAST: &str = "";
const ROOM: &str = "reservation = { budget = \"10ms\", period = \"50ms\" }\n";

#[case(after_a_crash(Deed::Crash, LEAST); Root, RealTime, GroupBudget(100))]
#[case(
    after_a_crash_with_a_budget_that_holds_the_start(Deed::Crash, ROOM);
    Root, RealTime, GroupBudget(250)
)]
#[case(after_a_wedge(Deed::Wedge, LEAST); Root, RealTime, GroupBudget(100))]
#[case(
    after_a_wedge_with_a_budget_that_holds_the_start(Deed::Wedge, ROOM);
    Root, RealTime, GroupBudget(250)
)]
fn recovers(deed: Deed, reservation: &str) {
    let asked = std::env::var(ROUNDS_SET)
        .ok()
        .filter(|text| !text.is_empty());
    let rounds = asked.as_ref().map_or(ROUNDS, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::set_permissions(&notes, fs::Permissions::from_mode(0o777)).unwrap();
    let fails = Reporter {
        period_ms: 5,
        work_us: 100,
        from: 40,
        until: 41,
        deed,
    };
    let cell = format!(
        "[[cell]]\nname = \"failing\"\n{}\
         rights = {{ mounts = [{{ source = \"{}\", target = \"{NOTES}\", writable = true }}] }}\n\
         restart = {{ limit = 1000000, backoff_min = \"0ms\", backoff_max = \"0ms\" }}\n\
         {reservation}\
         [[cell.task]]\nname = \"loop\"\nwcet = \"5ms\"\nperiod = \"200ms\"\n\
         [[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"{TIMEOUT_MS}ms\"\ndo = \"restart\"\n",
        fails.lines(),
        notes.display()
    );
    mission(dir.path(), &cell);
    let up = Up::start(dir.path());
    let end = Instant::now() + PATIENCE * u32::try_from(rounds).unwrap() / 5;
    let gone = loop {
        let text = fs::read_to_string(notes.join("notes")).unwrap_or_default();
        let gone = gone_ns(&text);
        if gone.len() >= rounds {
            break gone;
        }
        assert!(Instant::now() < end, "{text}\n{}", up.said.join("\n"));
        std::thread::sleep(Duration::from_millis(20));
    };
    up.end();
    nothing_is_left(dir.path());
    if asked.is_some() {
        print(deed, reservation, gone);
    }
}

/// Times from each failure to the first job after it, ns.
pub fn gone_ns(notes: &str) -> Vec<i64> {
    let mut failed = None;
    let mut gone = Vec::new();
    for line in notes.lines() {
        let Some((at, what)) = line.split_once(' ') else {
            continue;
        };
        let at: i64 = at.parse().unwrap();
        match (what, failed) {
            ("fails", _) => failed = Some(at),
            ("first job", Some(from)) => {
                gone.push(at - from);
                failed = None;
            }
            _ => {}
        }
    }
    gone
}

fn print(deed: Deed, reservation: &str, mut gone: Vec<i64>) {
    gone.sort_unstable();
    let ms = |of: f64| {
        let at = (gone.len() as f64 * of) as usize;
        gone[at.min(gone.len() - 1)] as f64 / 1e6
    };
    let detected = match deed {
        Deed::Wedge => TIMEOUT_MS,
        _ => 0,
    };
    println!(
        "{deed:?}, {}: {} times; from the failure to the first job: median {:.1} ms, 95 % within {:.1} ms, all within {:.1} ms, of \
         which {detected} ms are the heartbeat's timeout",
        match reservation {
            LEAST => "least budget",
            _ => "10 ms every 50 ms",
        },
        gone.len(),
        ms(0.5),
        ms(0.95),
        ms(1.0)
    );
}

/// Its program can no longer be executed when the cell is restarted: the output of its first life explains nothing.
#[case(Root, Program("busybox"))]
fn a_failed_start_quotes_its_own_life_only(dir: &Path) {
    let inside = dir.join("root/busybox");
    fs::create_dir(dir.join("root")).unwrap();
    fs::copy(busybox(), &inside).unwrap();
    let script = "echo a word of the first life; /busybox sleep 2; exit 1";
    let cell = format!(
        "[[cell]]\nname = \"one\"\nclass = \"other\"\nimage = {{ rootfs = \"root\" }}\n\
         command = [\"/busybox\", \"sh\", \"-c\", \"{script}\"]\n"
    );
    mission(dir, &cell);
    let mut up = Up::start(dir);
    up.until("one: runs");
    eventually("its output is kept", || {
        let said = say(dir, &["logs", "one", "--dir", "state"]);
        said.out.contains("a word of the first life")
    });
    // Another file: the running cell keeps the old one.
    fs::remove_file(&inside).unwrap();
    fs::write(&inside, [b"\x7fELF".as_slice(), &[0; 2000]].concat()).unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    let line = up.until("one: could not be started");
    assert!(
        line.contains("Exec format error") && !line.contains("first life"),
        "{line}"
    );
    up.end();
    nothing_is_left(dir);
}

/// The directory has room for one page. While somebody holds the old page, the next one waits, and finally the directory is
/// mounted again.
#[case(Root, Program("busybox"))]
fn nobody_keeps_the_page_of_a_life_that_is_over(dir: &Path) {
    let at_once = "class = \"other\"\nrestart = { backoff_min = \"0ms\", backoff_max = \"0ms\" }";
    mission(dir, &shell("one", "/busybox sleep 1000", at_once));
    let mut up = Up::start(dir);
    let first = pid_of(&up.told("one: runs"));
    let place = || fs::metadata(dir.join("state/pages/one")).unwrap().dev();
    let before = place();
    // SAFETY: no memory is involved; the cell's first process.
    assert_eq!(unsafe { libc::kill(first, libc::SIGKILL) }, 0);
    assert_ne!(pid_of(&up.until("one: runs (pid")), first);
    assert_eq!(place(), before, "{}", up.said.join("\n"));
    up.end();
    nothing_is_left(dir);
}
