//! A cell that uses up a per-user resource, here pending signals, and the rest for another cell.

use super::scene::{Scene, Setting, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::Need;

pub const SIGNALS: Attack = Attack {
    name: "signals",
    tries: "a cell that queues all signals its user may have; what another cell of no declared user still gets",
    before: Before {
        got: "96,364 signals; the other cell gets 0 of 10",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

/// The need of a small program.
const MODEST: u32 = 10;

fn run(_: u64) -> Now {
    let mut hostile = program("hostile", "signals", &[], "class = \"other\"");
    hostile += &program("other", "signals", &["modest"], "class = \"other\"");
    let scene = Scene::start(&Setting::beside(&hostile));
    let said = scene.to_the_end();
    let taken = number(&said, "queued").expect("how many it could queue");
    let said = scene.until_said("other", super::THE_END);
    let left = number(&said, "queued").expect("how many the other could queue");
    Now {
        got: format!("{taken} signals; the other cell gets {left} of {MODEST}"),
        held: left == f64::from(MODEST),
        neighbour: Some(scene.end()),
    }
}

/// The program in the cells.
fn deed(words: &[&str]) {
    let most = if words.is_empty() { 1_000_000 } else { MODEST };
    // Nobody takes them: they stay pending as long as the cell lives.
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGRTMIN());
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
    say(AT_IT);
    if !words.is_empty() {
        // The other one has taken all it can by then: it needs milliseconds.
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let value = libc::sigval {
        sival_ptr: std::ptr::null_mut(),
    };
    // SAFETY: a signal to this process, which blocks it.
    let sent = |_: &u32| unsafe { libc::sigqueue(libc::getpid(), libc::SIGRTMIN(), value) == 0 };
    say(&format!("queued {}", (0..most).take_while(sent).count()));
}
