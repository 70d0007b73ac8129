//! Interrupts on nobody's account: a best-effort cell arms as many POSIX timers as it can for the same instant, and the kernel runs
//! them all in one interrupt.

use std::time::Duration;

use super::scene::{Scene, Setting, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::Need;

pub const TIMERS: Attack = Attack {
    name: "timers",
    tries: "a best-effort cell that arms 90,000 POSIX timers for one instant, beside the critical cell",
    before: Before {
        got: "90,000 timers",
        neighbour: "worst delay 33 ms",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

const WANTED: usize = 90_000;
const THREADS: usize = 3;
/// The grant of `pending_signals` where the file says nothing.
const GRANTED: f64 = 256.0;

fn run(seconds: u64) -> Now {
    let hostile = program(
        "hostile",
        "timers",
        &[&seconds.to_string()],
        "class = \"other\"",
    );
    let scene = Scene::start(&Setting::beside(&hostile));
    let said = scene.to_the_end();
    let neighbour = scene.end();
    let made = number(&said, "timers").expect("it says how many");
    Now {
        got: format!("{made} timers"),
        held: made <= GRANTED,
        neighbour: Some(neighbour),
    }
}

/// The program in the cell: threads that are busy at once, so that some are where the critical cell is; a timer runs out on the
/// cpu where it was set.
fn deed(words: &[&str]) {
    let seconds: u64 = words[0].parse().unwrap();
    // SAFETY: signals stay pending, in this thread and those that it makes.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
    let threads: Vec<_> = (0..THREADS)
        .map(|_| std::thread::spawn(move || bursts(seconds)))
        .collect();
    let made = threads.into_iter().map(|thread| thread.join().unwrap());
    say(&format!("timers {}", made.sum::<usize>()));
}

/// Bursts of as many timers as a thread is given; how many there were.
fn bursts(seconds: u64) -> usize {
    let timers: Vec<libc::timer_t> = (0..WANTED / THREADS).map_while(|_| timer()).collect();
    say(AT_IT);
    for _ in 0..seconds.div_ceil(2) {
        let at = timecell_client::now_ns() + 1_500_000_000;
        // SAFETY: zeroes are no interval; the timers are this process's own.
        unsafe {
            let mut time: libc::itimerspec = std::mem::zeroed();
            time.it_value.tv_sec = at / 1_000_000_000;
            time.it_value.tv_nsec = at % 1_000_000_000;
            for timer in &timers {
                let nothing = std::ptr::null_mut();
                libc::timer_settime(*timer, libc::TIMER_ABSTIME, &raw const time, nothing);
            }
        }
        std::thread::sleep(Duration::from_secs(2));
        take_signals();
    }
    timers.len()
}

fn timer() -> Option<libc::timer_t> {
    // SAFETY: zeroes are a valid event; the timer is made in a place of its own.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGRTMIN() + 1;
        let mut timer: libc::timer_t = std::mem::zeroed();
        let made = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        (made == 0).then_some(timer)
    }
}

/// As long as they are pending, timers that expire again cost nothing.
fn take_signals() {
    // SAFETY: all signals, no information wanted, no time to wait.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        while libc::sigtimedwait(&raw const all, std::ptr::null_mut(), &raw const now) > 0 {}
    }
}
