//! More cpu time than a budget by inheritance: a thread holds a futex for which another thread of its cell waits, and so runs with
//! the other's priority or reservation, which the kernel does not throttle.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use model::Enforcer;

use super::scene::{Scene, Setting, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::hostile::attacks::set_class;
use crate::support::Need;

pub const FIFO: Attack = Attack {
    name: "pi-fifo",
    tries: "two FIFO threads, one of which holds a PI futex for the other, in a group of 8 ms every 40 ms",
    before: Before {
        got: "98.7 % of a cpu",
        neighbour: "worst 2,987 ms, 170 of 250 late",
    },
    needs: &[
        Need::Root,
        Need::RtGroups,
        Need::TwoCpus,
        Need::GroupBudget(600),
    ],
    deed,
    run: fifo,
};

pub const FREEZER: Attack = Attack {
    name: "pi-freezer",
    tries: "the two FIFO threads of pi-fifo with 8 ms every 40 ms held by the freezer, which leaves them the futex",
    before: Before {
        got: "no such enforcer",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::RealTime, Need::Freezer, Need::TwoCpus],
    deed,
    run: freezer,
};

pub const DEADLINE: Attack = Attack {
    name: "pi-deadline",
    tries: "a deadline thread that waits for a PI futex of its child, with a reservation of 2 ms every 20 ms",
    before: Before {
        got: "99.4 % of a cpu",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::Deadline, Need::TwoCpus],
    deed,
    run: |seconds| {
        deadline(
            seconds,
            DEADLINE.name,
            "reservation = { budget = \"2ms\", period = \"20ms\" }",
        )
    },
};

pub const DEADLINE_TASK: Attack = Attack {
    name: "pi-deadline-task",
    tries: "the same by a cell that declares a task of 1.8 ms every 20 ms and no reservation",
    before: Before {
        got: "100.0 % of a cpu (at 544f05a)",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::Deadline, Need::TwoCpus],
    deed,
    run: |seconds| {
        let task = "[[cell.task]]\nname = \"a\"\nwcet = \"1800us\"\nperiod = \"20ms\"";
        deadline(seconds, DEADLINE_TASK.name, task)
    },
};

fn fifo(seconds: u64) -> Now {
    let (critical, hostile) = two_threads(FIFO.name, seconds);
    let setting = Setting {
        enforcer: Enforcer::RtCgroup,
        critical: &critical,
        hostile: &hostile,
    };
    outcome(&setting, 20.0, libc::ENOSYS)
}

/// A thread that inherits a priority is stopped with the rest of its group.
fn freezer(seconds: u64) -> Now {
    let (critical, hostile) = two_threads(FREEZER.name, seconds);
    let setting = Setting {
        enforcer: Enforcer::Freezer,
        critical: &critical,
        hostile: &hostile,
    };
    outcome(&setting, 20.0, 0)
}

/// The keys of a critical cell, and a hostile cell of 8 ms every 40 ms above it.
fn two_threads(attack: &str, seconds: u64) -> (String, String) {
    let words = ["fifo", &seconds.to_string()];
    let hostile = program(
        "hostile",
        attack,
        &words,
        "class = \"fifo\"\npriorities = { lowest = 50, highest = 60 }\n\
         reservation = { budget = \"8ms\", period = \"40ms\" }\n\
         [[cell.task]]\nname = \"a\"\nwcet = \"100us\"\nperiod = \"200ms\"\npriority = 60\n\
         [[cell.task]]\nname = \"b\"\nwcet = \"100us\"\nperiod = \"400ms\"\npriority = 50",
    );
    let critical = "class = \"fifo\"\npriorities = { lowest = 20, highest = 30 }\n\
                    reservation = { budget = \"12ms\", period = \"40ms\" }";
    (critical.to_owned(), hostile)
}

/// 2 ms every 20 ms, however the mission asks for it.
fn deadline(seconds: u64, attack: &str, asked: &str) -> Now {
    let words = ["deadline", &seconds.to_string()];
    let hostile = program(
        "hostile",
        attack,
        &words,
        &format!("class = \"deadline\"\n{asked}"),
    );
    outcome(
        &Setting {
            enforcer: Enforcer::Deadline,
            critical: "class = \"deadline\"\nreservation = { budget = \"4ms\", period = \"20ms\" }",
            hostile: &hostile,
        },
        10.0,
        libc::ENOSYS,
    )
}

/// The share of a cell with this grant, in percent, whose futex was to be answered so, with 0 or an error.
fn outcome(setting: &Setting<'_>, granted: f64, right: i32) -> Now {
    let scene = Scene::start(setting);
    let said = scene.to_the_end();
    let neighbour = scene.end();
    let share = number(&said, "share").expect("it says its share");
    let answer = number(&said, "futex").expect("it says what it was told");
    // A budget is noticed to be used up at the next tick, and the rest taken off the next. Much less than was granted would be an
    // attack that did not take place, or a cell that is robbed of its own.
    let fair = 0.7 * granted..=granted + 5.0;
    let held = fair.contains(&share) && answer as i32 == right;
    let told = match answer as i32 {
        0 => "the futex is given".to_owned(),
        libc::ENOSYS => "ENOSYS".to_owned(),
        other => format!("error {other}"),
    };
    Now {
        got: format!("{told}, {share:.1} % of a cpu of {granted:.0} % granted"),
        held,
        neighbour: Some(neighbour),
    }
}

static FUTEX: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicU32 = AtomicU32::new(0);
const OWNED: u32 = 1;
const REFUSED: u32 = 2;

/// The program in the cell. Refused the futex, it spins by itself, for its whole grant.
fn deed(words: &[&str]) {
    let (mode, seconds) = (words[0].to_owned(), words[1].parse().unwrap());
    let owner = std::thread::spawn(move || owner(&mode, seconds));
    while STATE.load(Ordering::Acquire) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    if STATE.load(Ordering::Acquire) == REFUSED {
        say(AT_IT);
        spin(seconds);
    } else {
        futex(libc::FUTEX_LOCK_PI);
    }
    owner.join().unwrap();
}

fn owner(mode: &str, seconds: u64) {
    if mode == "fifo" {
        // It needs no priority of its own; a deadline thread's child has none.
        set_class(libc::SCHED_OTHER, 0);
    }
    std::thread::sleep(Duration::from_millis(300));
    let error = futex(libc::FUTEX_LOCK_PI);
    say(&format!("futex {error}"));
    if error != 0 {
        STATE.store(REFUSED, Ordering::Release);
        return;
    }
    say(AT_IT);
    STATE.store(OWNED, Ordering::Release);
    std::thread::sleep(Duration::from_millis(100));
    spin(seconds);
    futex(libc::FUTEX_UNLOCK_PI);
}

/// 0, or the error.
fn futex(operation: i32) -> i32 {
    // SAFETY: a word that is always there; without a timeout.
    let answer = unsafe { libc::syscall(libc::SYS_futex, FUTEX.as_ptr(), operation, 0, 0, 0, 0) };
    match answer {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(-1),
    }
}

/// Spins, and says how much of a cpu that was, in percent.
fn spin(seconds: u64) {
    let time = |clock| {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: a time on the stack.
        unsafe { libc::clock_gettime(clock, &raw mut now) };
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let (begin, cpu) = (
        time(libc::CLOCK_MONOTONIC),
        time(libc::CLOCK_THREAD_CPUTIME_ID),
    );
    while time(libc::CLOCK_MONOTONIC) < begin + seconds as f64 {
        std::hint::spin_loop();
    }
    let ran = time(libc::CLOCK_THREAD_CPUTIME_ID) - cpu;
    say(&format!(
        "share {:.3}",
        100.0 * ran / (time(libc::CLOCK_MONOTONIC) - begin)
    ));
}
