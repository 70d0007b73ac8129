//! Threads of programs that set their own classes, priorities and cpus: each gets the values proved by admission, whichever it asks for, and the
//! tasks find their threads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::sched::{Class, get_affinity, get_class, set_class};

use crate::control::cell;
use crate::missions::{Up, mission, nothing_is_left, pid_of};
use crate::support::eventually;

/// Threads of the names, priorities and ways that its arguments give, `NAME:PRIORITY:HOW`. Of a HOW of several letters: `s`: it sets its
/// priority itself; `e`: it is created with it; `l`: 300 ms later; `f`: it has a child process; `r`: it renames itself on SIGUSR1; `a`: it
/// asks again and again; `b`: it computes for 60 ms on SIGHUP. On SIGUSR2 the memory is unlocked, and locked again on the next one.
pub const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
struct one { char name[16], how[16]; int priority; };
static volatile sig_atomic_t renames, burns, locks;
static void rename_now(int s) { (void)s; renames = 1; }
static void burn_now(int s) { (void)s; burns = 1; }
static void lock_now(int s) { (void)s; locks = 1; }
static void *run(void *of) {
    struct one *own = of;
    struct sched_param p = {.sched_priority = own->priority};
    int error = 0;
    pthread_setname_np(pthread_self(), own->name);
    if (strchr(own->how, 'd')) usleep(400000);
    if (strchr(own->how, 's')) error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    if (strchr(own->how, 'f') && fork() == 0) for (;;) pause();
    printf("%s: %s\n", own->name, error ? strerror(error) : "set");
    for (;;) {
        usleep(20000);
        if (strchr(own->how, 'a')) pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
        if (burns && strchr(own->how, 'b')) {
            struct timespec now;
            burns = 0;
            do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_sec == 0 && now.tv_nsec < 60000000);
        }
        if (renames && strchr(own->how, 'r')) pthread_setname_np(pthread_self(), "other");
    }
}
int main(int count, char **words) {
    setlinebuf(stdout);
    signal(SIGUSR1, rename_now);
    signal(SIGHUP, burn_now);
    signal(SIGUSR2, lock_now);
    printf("lock: %s\n", mlockall(MCL_CURRENT | MCL_FUTURE) ? "refused" : "locked");
    for (int at = 1; at < count; at++) {
        struct one *own = calloc(1, sizeof *own);
        sscanf(words[at], "%15[^:]:%d:%15s", own->name, &own->priority, own->how);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1 << 17);
        if (strchr(own->how, 'e')) {
            struct sched_param p = {.sched_priority = own->priority};
            pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
            pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
            pthread_attr_setschedparam(&attributes, &p);
        }
        if (strchr(own->how, 'l')) usleep(300000);
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, run, own);
        if (error) { printf("create: %s\n", strerror(error)); return 1; }
    }
    for (int locked = 1;; usleep(200000)) {
        if (!locks) continue;
        locks = 0;
        if (locked) munlockall(); else mlockall(MCL_CURRENT | MCL_FUTURE);
        locked = !locked;
    }
}
"#;

pub fn compiled(dir: &Path, source: &str) -> PathBuf {
    let (path, program) = (dir.join("threads.c"), dir.join("threads"));
    fs::write(&path, source).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-static", "-pthread", "-o"]);
    assert!(compile.arg(&program).arg(&path).status().unwrap().success());
    program
}

const TASKS: [(&str, &str, &str); 3] = [
    ("control", "1ms", "20ms"),
    ("filter", "1ms", "40ms"),
    ("log", "1ms", "100ms"),
];

/// A cell of this program with the tasks and arguments, and the further keys of each task.
pub fn threads(program: &Path, args: &[&str], head: &str, more: [&str; 3]) -> String {
    let tasks = TASKS.iter().zip(more).map(|((name, wcet, period), more)| {
        format!(
            "[[cell.task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n{more}\n"
        )
    });
    format!(
        "[[cell]]\nname = \"c\"\nimage = {{ binary = \"{}\" }}\nargs = {args:?}\nstop_timeout = \"0ms\"\n{head}\n{}",
        program.display(),
        tasks.collect::<String>()
    )
}

/// Class of the only thread of this name in the process.
pub fn class_of(pid: i32, name: &str) -> Option<Class> {
    let threads = host::process::threads(pid);
    let of_name = threads
        .into_iter()
        .find(|tid| host::process::name(*tid).as_deref() == Some(name));
    get_class(of_name?).ok()
}

fn fifo(priority: u8) -> Class {
    Class::Fifo { priority }
}

#[track_caller]
fn has(pid: i32, name: &str, class: &Class) {
    eventually(
        &format!("{name} has {class}: {:?}", class_of(pid, name)),
        || class_of(pid, name).as_ref() == Some(class),
    );
}

/// The priorities that this mission was admitted with, in the order of the tasks. Another one beside it may move them, so
/// asking `timecell admit` as well would be another question.
fn granted(up: &mut Up) -> [Class; 3] {
    TASKS.map(|(name, ..)| {
        let told = up.told(&format!("    {name}: responds within "));
        let (_, priority) = told.rsplit_once("FIFO ").expect(&told);
        fifo(priority.trim().parse().unwrap())
    })
}

#[case(Root, RealTime, Program("cc"), GroupBudget(700))]
fn every_order_of_asking_gets_what_was_proved(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    let none = [""; 3];
    let declared = ["priority = 99", "priority = 20", "priority = 40"];
    let ways: [(&[&str], [&str; 3], Option<&str>); 8] = [
        (&["control:80:s", "filter:70:s", "log:60:s"], none, None),
        // Looked at first while they have the class of the thread that made them.
        (&["control:80:ds", "filter:70:ds", "log:60:ds"], none, None),
        (&["control:0:-", "filter:0:-", "log:0:-"], none, None),
        (&["control:80:e", "filter:70:e", "log:60:e"], none, None),
        (&["log:60:s", "control:80:sl", "filter:70:sf"], none, None),
        (
            &["control:10:sa", "filter:20:sa", "log:30:sa"],
            none,
            Some(
                "the most urgent first: log, filter, control; analysed, and in force: control, filter, log",
            ),
        ),
        (&["control:99:s", "filter:20:s", "log:40:s"], declared, None),
        // Two threads beside that run no task, before and after.
        (
            &[
                "early:90:s",
                "control:80:s",
                "filter:70:s",
                "log:60:s",
                "late:95:sl",
            ],
            none,
            None,
        ),
    ];
    for (args, more, other_order) in ways {
        let head = "enforcer = \"rt-cgroup\"";
        mission(
            dir,
            &format!("{head}\n{}", threads(&program, args, "", more)),
        );
        let mut up = Up::start(dir);
        let granted = granted(&mut up);
        let pid = pid_of(&up.told("c: runs"));
        for ((name, ..), class) in TASKS.iter().zip(&granted) {
            up.told(&format!("c: {name} is thread"));
            has(pid, name, class);
        }
        if let Some(order) = other_order {
            up.told(order);
        }
        let lowest = granted.iter().filter_map(|class| match class {
            Class::Fifo { priority } => Some(*priority),
            _ => None,
        });
        let lowest = lowest.min().unwrap();
        for name in ["early", "late"]
            .iter()
            .filter(|name| args.iter().any(|arg| arg.starts_with(**name)))
        {
            eventually(
                &format!("{name} is below"),
                || matches!(class_of(pid, name), Some(Class::Fifo { priority }) if priority <= lowest),
            );
        }
        assert_eq!(cell(dir, "c")["unheld"].as_array().unwrap().len(), 0);
        let said = || fs::read_to_string(crate::hostile::output(dir, "c")).unwrap();
        eventually("all have asked", || {
            args.iter()
                .all(|arg| said().contains(&format!("{}: set", &arg[..arg.find(':').unwrap()])))
        });
        // At once: a thread mended only at the next look was not kept.
        for ((name, ..), class) in TASKS.iter().zip(&granted) {
            assert_eq!(class_of(pid, name).as_ref(), Some(class), "{args:?}");
        }
        let told = up.ended().join("\n");
        assert!(!told.contains("by others"), "{told}");
        let said = said();
        assert!(said.contains("lock: locked"), "{said}");
        assert!(
            !said.contains("refused") && !said.contains("not permitted"),
            "{said}"
        );
        nothing_is_left(dir);
    }
}

/// A cell with more threads than its agent has rows for: the last one has its class from the thread that made it, and no grant.
#[case(Root, RealTime, Program("cc"), GroupBudget(700))]
fn a_thread_without_a_row_is_not_said_to_be_changed_by_others(dir: &Path) {
    let program = compiled(
        dir,
        r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static void *run(void *name) { if (name) pthread_setname_np(pthread_self(), name); for (;;) pause(); }
int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 15);
    struct sched_param p = {.sched_priority = 80};
    for (int at = 0; at <= 1100; at++) {
        pthread_t thread;
        int error = pthread_create(&thread, &small, run, at == 1100 ? "control" : NULL);
        if (!error && at < 1100) error = pthread_setschedparam(thread, SCHED_FIFO, &p);
        if (error) return 1;
    }
    puts("all");
    fflush(stdout);
    for (;;) pause();
}
"#,
    );
    let cell = threads(&program, &[], "", [""; 3]);
    let (only, _) = cell.match_indices("[[cell.task]]").nth(1).unwrap();
    let cell = &cell[..only];
    mission(
        dir,
        &format!("enforcer = \"rt-cgroup\"\n{cell}\n[cell.rights]\npids = 2000\n"),
    );
    let mut up = Up::start(dir);
    up.told("c: control is thread");
    let why = up.told("(`control`) does not get FIFO ");
    assert!(
        why.contains(": the cell's agent keeps the grants of 1023 threads"),
        "{why}"
    );
    up.told("withdrawn: ");
    let told = up.ended().join("\n");
    assert!(!told.contains("by others"), "{told}");
    let said = fs::read_to_string(crate::hostile::output(dir, "c")).unwrap();
    assert_eq!(said, "all\n");
    nothing_is_left(dir);
}

#[case(Root, RealTime, Deadline, Freezer, Program("cc"), GroupBudget(700))]
fn a_thread_gets_its_class_under_every_enforcer(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    for enforcer in ["rt-cgroup", "freezer", "cpuset-only", "deadline"] {
        let args = ["log:10:s", "control:20:s", "filter:30:e"];
        let cells = threads(&program, &args, "", [""; 3]);
        mission(dir, &format!("enforcer = \"{enforcer}\"\n{cells}"));
        let mut up = Up::start(dir);
        let pid = pid_of(&up.told("c: runs"));
        for (name, ..) in TASKS {
            up.told(&format!("c: {name} is thread"));
        }
        match enforcer {
            "deadline" => {
                let is_held = |name: &str| {
                    matches!(class_of(pid, name), Some(Class::Deadline { period_ns, .. })
                        if TASKS.iter().any(|(task, _, period)| *task == name && *period == format!("{}ms", period_ns / 1_000_000)))
                };
                for (name, ..) in TASKS {
                    eventually(&format!("{name} is of SCHED_DEADLINE"), || is_held(name));
                }
                // Others are best effort.
                assert_eq!(get_class(pid), Ok(Class::Other));
            }
            _ => {
                let granted = granted(&mut up);
                for ((name, ..), class) in TASKS.iter().zip(&granted) {
                    has(pid, name, class);
                }
            }
        }
        up.end();
        nothing_is_left(dir);
    }
}

#[case(Root, RealTime, Program("cc"), GroupBudget(700))]
fn a_match_ends_with_its_name_and_two_of_one_name_are_none(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    let cells = threads(
        &program,
        &["control:80:sr", "filter:70:s", "log:60:s"],
        "",
        [""; 3],
    );
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("c: runs"));
    up.told("c: control is thread");
    // SAFETY: the cell's process, which runs.
    unsafe { libc::kill(pid, libc::SIGUSR1) };
    up.told("c: control has no thread any more: no thread has the name `control`");
    let unheld = || cell(dir, "c")["unheld"].to_string();
    eventually("it is reported", || {
        unheld().contains("control is not held: no thread")
    });
    up.end();
    let args = ["control:80:s", "control:70:s", "filter:70:s", "log:60:s"];
    mission(dir, &threads(&program, &args, "", [""; 3]));
    let mut up = Up::start(dir);
    up.told("c: log is thread");
    eventually("both are seen", || {
        unheld().contains("control is not held: 2 threads have the name `control`")
    });
    up.end();
    nothing_is_left(dir);
}

#[case(Root, RealTime, Program("cc"), GroupBudget(700))]
fn the_class_that_others_set_is_put_back_once(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    mission(
        dir,
        &threads(
            &program,
            &["control:80:s", "filter:70:s", "log:60:s"],
            "",
            [""; 3],
        ),
    );
    let mut up = Up::start(dir);
    let [control, ..] = granted(&mut up);
    let pid = pid_of(&up.told("c: runs"));
    up.told("c: control is thread");
    has(pid, "control", &control);
    let threads = host::process::threads(pid);
    let name = |tid: &i32| host::process::name(*tid).as_deref() == Some("control");
    let tid = threads.into_iter().find(name).unwrap();
    // It began with this class; by then its own grant is in force, which would undo a change as well.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    set_class(tid, &fifo(1)).unwrap();
    has(pid, "control", &control);
    set_class(tid, &fifo(1)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(get_class(tid), Ok(fifo(1)));
    up.end();
    nothing_is_left(dir);
}

/// Processes of this name whose command line names the directory.
pub fn agents(dir: &Path) -> Vec<i32> {
    let place = dir.display().to_string();
    let is = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&line).replace('\0', " ");
        words.contains(" agent ") && words.contains(&place)
    };
    host::process::all().into_iter().filter(is).collect()
}

#[case(Root, RealTime, Program("cc"), GroupBudget(700))]
fn who_answers_outlives_the_supervisor_and_is_replaced(dir: &Path) {
    let program = compiled(dir, PROGRAM);
    mission(
        dir,
        &threads(
            &program,
            &["control:80:sa", "filter:70:sa", "log:60:sa"],
            "",
            [""; 3],
        ),
    );
    let mut up = Up::start(dir);
    let [control, ..] = granted(&mut up);
    let pid = pid_of(&up.told("c: runs"));
    up.told("c: control is thread");
    has(pid, "control", &control);
    // The worker is in the cell; another one comes in its place, and the calls wait meanwhile.
    let before = agents(dir);
    let outer = *before.iter().min().unwrap();
    for worker in before.into_iter().filter(|agent| *agent != outer) {
        // SAFETY: a process that the test's own mission has made.
        unsafe { libc::kill(worker, libc::SIGKILL) };
    }
    eventually("another works", || agents(dir).len() > 1);
    up.kill();
    has(pid, "control", &control);
    let mut up = Up::start(dir);
    up.told("adopted");
    up.told("c: control is thread");
    has(pid, "control", &control);
    up.end();
    nothing_is_left(dir);
    eventually("the agent ends with its cell", || agents(dir).is_empty());
}

/// The calls of programs that set themselves up for real time, each with its outcome.
const SETS_ITSELF_UP: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void say(const char *what, int failed) { printf("%s: %s\n", what, failed ? strerror(errno) : "done"); }
static void *sleeps(void *of) { pause(); return of; }
int main(void) {
    struct sched_param p = {.sched_priority = 50};
    setlinebuf(stdout);
    say("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
    say("fifo", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p));
    say("round-robin", syscall(SYS_sched_setscheduler, 0, SCHED_RR, &p));
    say("parameters", syscall(SYS_sched_setparam, 0, &p));
    struct { unsigned size, policy; unsigned long long flags; int nice; unsigned priority; unsigned long long times[3]; } a = {.size = 48, .policy = SCHED_FIFO, .priority = 50};
    say("attributes", syscall(SYS_sched_setattr, 0, &a, 0));
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    say("own cpus", sched_setaffinity(0, sizeof all, &all));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_RR);
    pthread_attr_setschedparam(&attributes, &p);
    pthread_t thread;
    errno = pthread_create(&thread, &attributes, sleeps, 0);
    say("thread", errno);
    p.sched_priority = 50;
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    pthread_mutexattr_t protocol;
    pthread_mutex_t ceiling;
    pthread_mutexattr_init(&protocol);
    pthread_mutexattr_setprotocol(&protocol, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&protocol, 60);
    errno = pthread_mutex_init(&ceiling, &protocol);
    if (!errno) errno = pthread_mutex_lock(&ceiling);
    if (!errno) errno = pthread_mutex_unlock(&ceiling);
    say("ceiling", errno);
    p.sched_priority = 200;
    say("bad priority", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p));
    say("bad thread", syscall(SYS_sched_setscheduler, 4000000, SCHED_FIFO, &p));
    say("bad memory", syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, (void *)8));
    puts("over");
    for (;;) pause();
}
"#;

#[case(Root, RealTime, Program("cc"), GroupBudget(400))]
fn programs_that_set_themselves_up_just_work(dir: &Path) {
    let program = compiled(dir, SETS_ITSELF_UP);
    let reserved = "reservation = { budget = \"5ms\", period = \"50ms\" }";
    let task = "[[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"50ms\"";
    let path = program.display();
    let cells = [reserved, task].map(|more| {
        let name = if more == task { "task" } else { "plain" };
        format!("[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{path}\" }}\nstop_timeout = \"0ms\"\n{more}\n")
    });
    let done = [
        "mlockall",
        "fifo",
        "round-robin",
        "parameters",
        "attributes",
        "own cpus",
        "thread",
        "ceiling",
    ];
    for enforcer in ["rt-cgroup", "freezer"] {
        mission(
            dir,
            &format!("enforcer = \"{enforcer}\"\n{}", cells.concat()),
        );
        let mut up = Up::start(dir);
        for name in ["plain", "task"] {
            let pid = pid_of(&up.told(&format!("{name}: runs")));
            let output = crate::hostile::output(dir, name);
            let said = || fs::read_to_string(&output).unwrap_or_default();
            eventually("it has said so", || said().ends_with("over\n"));
            let said = said();
            for what in done {
                assert!(
                    said.contains(&format!("{what}: done\n")),
                    "{enforcer} {name} {what}: {said}"
                );
            }
            for (what, why) in [
                ("bad priority", "Invalid argument"),
                ("bad thread", "No such process"),
                ("bad memory", "Bad address"),
            ] {
                assert!(
                    said.contains(&format!("{what}: {why}\n")),
                    "{name} {what}: {said}"
                );
            }
            assert_eq!(get_affinity(pid).unwrap().len(), 1);
        }
        up.end();
        nothing_is_left(dir);
    }
}
