//! The program inside the cells: this test binary, whose arguments name its part. The critical one records its jobs in a
//! file that it shares with the test; the hostile ones run for ever.

use host::sched::Class;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::attacks::{self, Refused};
use super::jobs::{Job, Jobs};

/// The first argument of the program.
pub const WORD: &str = "in-a-mission";
/// The line of a hostile program whose attack is under way.
pub const AT_IT: &str = "at it";

/// The ways into SCHED_DEADLINE.
pub const INTO_DEADLINE: [&str; 6] = [
    "deadline",
    "deadline-thread",
    "deadline-child",
    "deadline-vfork",
    "deadline-of-child",
    "deadline-by-setscheduler",
];

/// Ends the process if it was started inside a cell.
pub fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [WORD, deed, rest @ ..] = &words[..] else {
        return;
    };
    let number = |at: usize| rest[at].parse().unwrap();
    match *deed {
        "critical" => critical(number(0), number(1)),
        "spin" => spin(),
        "fork-bomb" => fork_bomb(),
        "memory" => memory(),
        "escapes" => escapes(),
        "signals" => signals(number(0).try_into().unwrap()),
        "classes" => classes(),
        "threads" => threads(rest),
        "end" => end(number(0)),
        _ => std::process::exit(99),
    }
}

/// Runs a job every `period_ns` that takes `work_ns` of cpu time; none is ever skipped, however late.
fn critical(period_ns: i64, work_ns: i64) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/out/jobs")
        .unwrap();
    let mut jobs = Jobs::map(&file);
    // SAFETY: a constant; nothing of this program is in the way of being locked.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
    let mut release_ns = timecell_client::now_ns() + period_ns;
    loop {
        sleep_until(release_ns);
        let begin_ns = timecell_client::now_ns();
        let until = own_cpu_ns() + work_ns;
        while own_cpu_ns() < until {
            std::hint::spin_loop();
        }
        let end_ns = timecell_client::now_ns();
        let recorded = jobs.add(&Job {
            release_ns,
            begin_ns,
            end_ns,
        });
        if !recorded {
            std::process::exit(98);
        }
        release_ns += period_ns;
    }
}

fn sleep_until(ns: i64) {
    let at = libc::timespec {
        tv_sec: ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    };
    let absolute = libc::TIMER_ABSTIME;
    // SAFETY: a time on the stack, and nothing is asked back.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            absolute,
            &raw const at,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

fn own_cpu_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a time on the stack.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn say(what: &str) {
    println!("{what}");
    let _ = std::io::stdout().flush();
}

/// Threads that try to have every cpu to themselves.
fn spin() {
    for (name, policy) in [("fifo", libc::SCHED_FIFO), ("round-robin", libc::SCHED_RR)] {
        // Of the classes with priorities it may have either.
        let now = || match host::sched::get_class(0) {
            Ok(Class::RoundRobin { priority }) => Ok(Class::Fifo { priority }),
            other => other,
        };
        let before = now();
        attacks::set_class(policy, 99);
        let is_same = now() == before;
        say(&format!(
            "{name} {}",
            if is_same { "as before" } else { "changed" }
        ));
    }
    say(AT_IT);
    // A call that is answered sleeps, and of equals the spinning one goes on.
    for _ in 0..3 {
        std::thread::spawn(spin_alone);
    }
    spin_alone();
}

fn spin_alone() {
    attacks::set_class(libc::SCHED_FIFO, 99);
    loop {
        std::hint::spin_loop();
    }
}

/// Processes that create spinning processes, as many as allowed, and again when some have ended.
fn fork_bomb() {
    static REFUSED: AtomicI64 = AtomicI64::new(0);
    // SAFETY: the signal's default is to be ignored; so the dead leave no zombies.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let mut first = true;
    loop {
        // SAFETY: the child only runs this loop.
        match unsafe { libc::fork() } {
            0 => {
                first = false;
                // One child in twenty does not end.
                if REFUSED.load(Ordering::Relaxed) % 20 != 0 {
                    spin_for(Duration::from_millis(200));
                    std::process::exit(0);
                }
            }
            -1 => {
                let error = std::io::Error::last_os_error().raw_os_error();
                if first && REFUSED.fetch_add(1, Ordering::Relaxed) == 0 {
                    say(&format!("fork {error:?}"));
                    say(AT_IT);
                }
                spin_for(Duration::from_millis(1));
            }
            _ => {}
        }
        REFUSED.fetch_add(i64::from(!first), Ordering::Relaxed);
    }
}

fn spin_for(time: Duration) {
    let until = timecell_client::now_ns() + i64::try_from(time.as_nanos()).unwrap();
    while timecell_client::now_ns() < until {
        std::hint::spin_loop();
    }
}

/// Takes all the memory that there is.
fn memory() {
    say(AT_IT);
    let mut all = Vec::new();
    loop {
        all.push(vec![u8::try_from(all.len() % 255).unwrap() + 1; 1 << 20]);
        std::hint::black_box(&all);
    }
}

/// Tries every known way out, again and again.
fn escapes() {
    let names: Vec<&str> = attacks::all()
        .iter()
        .filter(|attack| attack.refused != Refused::Deadly)
        .map(|attack| attack.name)
        .collect();
    // Its log keeps the last rounds.
    loop {
        names.iter().for_each(|name| attacks::attempt(name));
        say(AT_IT);
    }
}

/// Sends every signal to everybody, queued until there is no more room, and to a program outside by its pid on the host.
fn signals(stranger: i32) {
    // SAFETY: ignored signals do not end this program.
    unsafe {
        for signal in 1..libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_IGN);
        }
        for _ in 0..4 {
            if libc::fork() == 0 {
                storm(stranger, false);
            }
        }
    }
    storm(stranger, true);
}

fn storm(stranger: i32, first: bool) -> ! {
    let own = std::process::id().cast_signed();
    for round in 0_u64.. {
        for signal in 1..libc::SIGRTMAX() {
            // SAFETY: signals, to all processes that may get them.
            let reached = unsafe {
                if !matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
                    libc::kill(-1, signal);
                    let value = libc::sigval {
                        sival_ptr: std::ptr::null_mut(),
                    };
                    libc::sigqueue(own, signal, value);
                }
                stranger > 0 && libc::kill(stranger, signal) == 0
            };
            if reached {
                say("reached a stranger");
            }
        }
        if first && round == 0 {
            say(AT_IT);
        }
    }
    unreachable!()
}

/// Prints the classes of the first thread, of a thread that it creates and of a child, and the outcome of the ways into SCHED_DEADLINE.
fn classes() {
    let class = || format!("{:?}", host::sched::get_class(0));
    say(&format!("first {}", class()));
    let thread = std::thread::spawn(class).join().unwrap();
    say(&format!("thread {thread}"));
    // SAFETY: the child only says its class.
    let child = unsafe { libc::fork() };
    if child == 0 {
        say(&format!("child {}", class()));
        std::process::exit(0);
    }
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    INTO_DEADLINE.iter().for_each(|name| attacks::attempt(name));
    say(AT_IT);
    std::thread::sleep(Duration::from_secs(1_000));
}

/// Threads with these names, which only wait.
fn threads(names: &[&str]) {
    for name in names {
        let name = (*name).to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(|| std::thread::sleep(Duration::from_secs(1_000)))
            .unwrap();
    }
    say(AT_IT);
    std::thread::sleep(Duration::from_secs(1_000));
}

/// Ends after this many ms with status 3.
fn end(ms: i64) {
    std::thread::sleep(Duration::from_millis(ms.unsigned_abs()));
    std::process::exit(3);
}
