//! The supervisor is killed at random moments, again and again: while it starts cells, restarts them, writes its journal,
//! adopts cells. See the campaign `killed`.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use timecell_client::layout;

use crate::faults::Random;
use crate::missions::{Up, mission, nothing_is_left, pid_of};
use crate::reporter::{Deed, Reporter};

const ROUNDS_SET: &str = "TIMECELL_KILL_ROUNDS";
const SEED_SET: &str = "TIMECELL_KILL_SEED";
/// Kills in a test; the campaign has more.
const ROUNDS: u64 = 8;
/// The longest life of a supervisor, ms.
const LONGEST_MS: u64 = 700;

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn reporter(from: u64, deed: Deed) -> String {
    let reporter = Reporter {
        period_ms: 5,
        work_us: 100,
        from,
        until: from + 1,
        deed,
    };
    reporter.lines()
}

fn cells() -> String {
    let cell = |name: &str, lines: &str, more: &str| {
        format!(
            "[[cell]]\nname = \"{name}\"\n{lines}stop_timeout = \"0ms\"\n{more}\n\
             [[cell.task]]\nname = \"loop\"\nwcet = \"5ms\"\nperiod = \"1s\"\n"
        )
    };
    let again = "restart = { limit = 1000000, backoff_min = \"1ms\", backoff_max = \"10ms\" }";
    let watched = format!(
        "{}[[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"40ms\"\ndo = \"restart\"\n",
        cell("wedging", &reporter(9, Deed::Wedge), again)
    );
    cell("steady", &reporter(u64::MAX - 1, Deed::Work), "")
        + &cell("crashing", &reporter(15, Deed::Crash), again)
        + &watched
}

/// Ended jobs of a cell's first task, by its job page.
fn jobs(dir: &Path, cell: &str) -> u64 {
    let page = File::open(dir.join("state/pages").join(cell).join("page")).unwrap();
    let at = layout::counters_at(0) + std::mem::offset_of!(layout::Counters, ended);
    let mut number = [0; 8];
    page.read_exact_at(&mut number, at as u64).unwrap();
    u64::from_ne_bytes(number)
}

#[case(Root, RealTime, GroupBudget(50))]
fn cells_run_on_and_are_taken_over_whenever_the_supervisor_is_killed() {
    let number = |name: &str| set(name).map(|text| text.parse::<u64>().unwrap());
    let rounds = number(ROUNDS_SET).unwrap_or(ROUNDS);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number(SEED_SET).unwrap_or_else(|| now().as_secs());
    eprintln!("seed {seed}: {rounds} kills");
    let mut random = Random::of(seed);
    let dir = tempfile::tempdir().unwrap();
    mission(dir.path(), &cells());
    let mut up = Up::start(dir.path());
    let pid = pid_of(&up.until("steady: runs"));
    let (mut before, mut adopted) = (jobs(dir.path(), "steady"), 0_u32);
    for round in 1..=rounds {
        std::thread::sleep(Duration::from_millis(random.below(LONGEST_MS)));
        up.signal(libc::SIGKILL);
        up.child.wait().unwrap();
        assert!(
            Path::new(&format!("/proc/{pid}")).exists(),
            "seed {seed}, kill {round}: the cell is gone with its supervisor"
        );
        up = Up::start(dir.path());
        let line = up.until("steady: runs");
        assert!(
            line.contains("adopted"),
            "seed {seed}, kill {round}: {line}"
        );
        assert_eq!(pid_of(&line), pid, "seed {seed}, kill {round}");
        let now = jobs(dir.path(), "steady");
        assert!(
            now >= before,
            "seed {seed}, kill {round}: {before} jobs, then {now}"
        );
        before = now;
        for other in ["crashing", "wedging"] {
            adopted += u32::from(up.told(&format!("{other}: runs")).contains("adopted"));
        }
    }
    up.end();
    let journal = fs::read_to_string(dir.path().join("state/journal")).unwrap();
    assert!(journal.contains("clean_down"), "{journal}");
    assert!(!dir.path().join("state/journal.damaged").exists());
    eprintln!(
        "seed {seed}: {rounds} kills survived; steady ran {before} jobs, the others were taken over {adopted} times of {}",
        2 * rounds
    );
    nothing_is_left(dir.path());
}
