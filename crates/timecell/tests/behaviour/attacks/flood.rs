//! A cell that writes without end, and how long its supervisor takes to notice that another cell has ended. The table shows only
//! that it stays fast: how fast the cell writes relative to its reader is chance, and 7338fa0 noticed the end in time, too. That
//! a reader can be kept busy for ever is shown by the unit test `a_cell_that_writes_without_end_is_drained_in_turns` of the engine's log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::scene::{Scene, Setting, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::missions::{pid_of, runs};
use crate::support::Need;

pub const FLOOD: Attack = Attack {
    name: "flood",
    tries: "a best-effort cell that writes without end; how long the end of another cell goes unnoticed",
    before: Before {
        got: "drained without end (unit test of the log); here noticed in 0.3 to 0.9 s",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

/// An end is noticed within this.
const SOON: Duration = Duration::from_secs(1);

fn run(seconds: u64) -> Now {
    let mut hostile = program("hostile", "flood", &[], "class = \"other\"");
    let life = format!("{}", seconds * 1_000);
    hostile += &program("other", "flood", &["end-after", &life], "class = \"other\"");
    let mut scene = Scene::start(&Setting::beside(&hostile));
    let pid = pid_of(&scene.up.told("other: runs"));
    while runs(pid) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = Instant::now();
    let told = catch_unwind(AssertUnwindSafe(|| scene.up.until("other: exited")));
    let took = ended.elapsed();
    if told.is_err() {
        return Now {
            got: format!("nothing noticed within {} s", took.as_secs()),
            held: false,
            neighbour: Some(scene.abandon()),
        };
    }
    Now {
        got: format!("noticed within {:.1} ms", took.as_secs_f64() * 1e3),
        held: took <= SOON,
        neighbour: Some(scene.end()),
    }
}

/// The program in the cells.
fn deed(words: &[&str]) {
    say(AT_IT);
    if let ["end-after", ms] = words {
        std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
        std::process::exit(3);
    }
    // Four that write into as large a pipe as there is: a reader that reads until it is empty reads for ever.
    // SAFETY: plain numbers; there is one thread.
    unsafe {
        libc::fcntl(1, libc::F_SETPIPE_SZ, 1 << 20);
        libc::fork();
        libc::fork();
    }
    // Any part of it that is kept says that the attack is under way.
    let much = format!("{AT_IT}\n").repeat(10_000).into_bytes();
    loop {
        // SAFETY: the buffer is as long as is said.
        unsafe { libc::write(1, much.as_ptr().cast(), much.len()) };
    }
}
