//! Programs of the field that set themselves up for real time, unchanged: in `timecell run` and in a mission of eight lines, under every
//! enforcer. Class RR, and mutexes with a protocol.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::sched::Class;
use model::Enforcer;

use crate::missions::{Up, busybox, mission, name, nothing_is_left, pid_of};
use crate::missions_threads::{PROGRAM, class_of, compiled, threads};
use crate::support::{Case, Need, Said, eventually, say, timecell};

pub const CASES: &[Case] = &[
    Case {
        name: "missions_set_up::programs_of_the_field_run_unchanged",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::Deadline,
            Need::Freezer,
            Need::TwoCpus,
            Need::RtGroups,
            Need::Program("busybox"),
            Need::Program("cc"),
            Need::Program("chrt"),
            Need::Program("cyclictest"),
            Need::Program("rt-app"),
            Need::Program("taskset"),
            Need::GroupBudget(400),
        ],
        run: programs_of_the_field_run_unchanged,
    },
    Case {
        name: "missions_set_up::python_sets_its_class_and_its_cpus",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::Deadline,
            Need::Freezer,
            Need::RtGroups,
            Need::Program("python3"),
            Need::GroupBudget(300),
        ],
        run: python_sets_its_class_and_its_cpus,
    },
    Case {
        name: "missions_set_up::mutexes_work_where_that_is_told",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::Freezer,
            Need::RtGroups,
            Need::Program("cc"),
            Need::GroupBudget(400),
        ],
        run: mutexes_work_where_that_is_told,
    },
    Case {
        name: "missions_set_up::threads_of_class_rr_take_turns",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::RtGroups,
            Need::Program("cc"),
            Need::GroupBudget(400),
        ],
        run: threads_of_class_rr_take_turns,
    },
    Case {
        name: "missions_set_up::class_rr_is_admitted_as_fifo",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::RtGroups,
            Need::Program("cc"),
            Need::GroupBudget(700),
        ],
        run: class_rr_is_admitted_as_fifo,
    },
];

const ENFORCERS: [Enforcer; 3] = [Enforcer::RtCgroup, Enforcer::Freezer, Enforcer::Deadline];

const RESERVE: [&str; 2] = ["--reserve", "5ms/20ms"];

/// A graph of three threads that wake each other over eventfds, as an audio server and its clients do, and then a control loop of 1 kHz
/// with a thread beside. The exit status counts the calls that failed; with the argument `inherits` the mutexes have that protocol.
const GRAPH_AND_LOOP: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static int failed, graph[3];
static volatile int over;
static pthread_mutex_t lock;
static void check(const char *what, int error) {
    if (error) { printf("%s: %s\n", what, strerror(error)); failed++; }
}
static void use(void) { check("lock", pthread_mutex_lock(&lock)); check("unlock", pthread_mutex_unlock(&lock)); }
static void *client(void *of) {
    intptr_t place = (intptr_t)of;
    uint64_t one = 1, number;
    while (read(graph[place], &number, 8) == 8) { use(); if (write(graph[(place + 1) % 3], &one, 8) != 8) break; }
    return 0;
}
static void *beside(void *of) { while (!over) { use(); usleep(2000); } return of; }
static void sleep_until(struct timespec *next, long ns) {
    next->tv_nsec += ns;
    if (next->tv_nsec >= 1000000000) { next->tv_nsec -= 1000000000; next->tv_sec++; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, 0);
}
int main(int count, char **words) {
    struct timespec next;
    struct sched_param p = {.sched_priority = 50};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_mutexattr_t protocol;
    uint64_t one = 1;
    setlinebuf(stdout);
    check("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE) ? errno : 0);
    check("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &p) ? errno : 0);
    pthread_mutexattr_init(&protocol);
    check("protocol", pthread_mutexattr_setprotocol(&protocol, count > 1 && !strcmp(words[1], "inherits") ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE));
    check("mutex", pthread_mutex_init(&lock, &protocol));
    pthread_attr_init(&attributes);
    check("inheritance", pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED));
    check("policy", pthread_attr_setschedpolicy(&attributes, SCHED_FIFO));
    for (int place = 0; place < 3; place++) graph[place] = eventfd(0, 0);
    for (intptr_t place = 1; place < 3; place++) {
        p.sched_priority = 70 - place;
        check("parameters", pthread_attr_setschedparam(&attributes, &p));
        check("client", pthread_create(&thread, &attributes, client, (void *)place));
    }
    p.sched_priority = 75;
    check("pthread_setschedparam", pthread_setschedparam(pthread_self(), SCHED_FIFO, &p));
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int cycle = 0; cycle < 50; cycle++) {
        sleep_until(&next, 5333333);
        if (write(graph[1], &one, 8) != 8 || read(graph[0], &one, 8) != 8) return 1;
        one = 1;
    }
    check("thread", pthread_create(&thread, 0, beside, 0));
    for (int cycle = 0; cycle < 300; cycle++) { sleep_until(&next, 1000000); use(); }
    over = 1;
    pthread_join(thread, 0);
    printf("%d calls failed\n", failed);
    return failed;
}
"#;

const RT_APP: &str = r#"{"tasks": {
 "loop": {"policy": "SCHED_FIFO", "priority": 40, "loop": 30, "run": 500, "timer": {"ref": "unique", "period": 10000}},
 "second": {"policy": "SCHED_RR", "priority": 30, "loop": 15, "run": 300, "timer": {"ref": "unique", "period": 20000}}},
 "global": {"duration": 1, "calibration": 100, "default_policy": "SCHED_OTHER", "lock_pages": true, "pi_enabled": true, "logdir": "/dev/shm"}}"#;

/// A root directory with these programs and what they load, and a shell.
fn root_of(dir: &Path, programs: &[&str]) -> PathBuf {
    let root = dir.join("root");
    let copy = |from: &str| {
        let to = root.join(from.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    let loaded = |of: &str| {
        let said = Command::new("ldd").arg(of).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let words = said.split_whitespace().filter(|word| word.starts_with('/'));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for program in programs {
        let path = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(program))
            .find(|path| path.is_file());
        let path = path.unwrap().canonicalize().unwrap();
        let path = path.to_str().unwrap();
        loaded(path).iter().for_each(|library| copy(library));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::copy(path, root.join("bin").join(program)).unwrap();
    }
    // What glibc loads when a thread ends.
    let gcc = Command::new("cc")
        .arg("-print-file-name=libgcc_s.so.1")
        .output()
        .unwrap();
    let libc = loaded("/bin/sh")
        .into_iter()
        .find(|path| path.contains("libc.so"));
    let beside = PathBuf::from(libc.unwrap());
    let beside = root
        .join(beside.strip_prefix("/").unwrap())
        .with_file_name("libgcc_s.so.1");
    fs::create_dir_all(beside.parent().unwrap()).unwrap();
    fs::copy(String::from_utf8_lossy(&gcc.stdout).trim(), beside).unwrap();
    fs::copy(busybox(), root.join("bin/busybox")).unwrap();
    symlink("busybox", root.join("bin/sh")).unwrap();
    root
}

/// Runs a program under an enforcer, and the messages about it.
fn run(dir: &Path, enforcer: Enforcer, words: &[&str]) -> Said {
    let name = name(dir);
    let mut run = timecell();
    run.current_dir(dir).arg("run").args(RESERVE);
    run.args(["--name", &name, "--enforcer", enforcer.name()]);
    run.arg("--").args(words).output().unwrap().into()
}

fn programs_of_the_field_run_unchanged() {
    let built = tempfile::tempdir().unwrap();
    let program = compiled(built.path(), GRAPH_AND_LOOP);
    let root = root_of(built.path(), &["chrt", "cyclictest", "rt-app", "taskset"]);
    fs::copy(&program, root.join("graph")).unwrap();
    let json = root.join("rt-app.json");
    fs::write(&json, RT_APP).unwrap();
    let json = json.to_str().unwrap();
    let program = program.to_str().unwrap();
    let cyclictest = ["cyclictest", "-p", "90", "-t", "2", "-m", "-D", "1", "-q"];
    let launched = ["sh", "-c", "chrt -p $$"];
    for enforcer in ENFORCERS {
        let dir = tempfile::tempdir().unwrap();
        let graph = [
            program,
            if enforcer == Enforcer::Freezer {
                "inherits"
            } else {
                ""
            },
        ];
        let rr = [&["chrt", "-r", "50"][..], &launched].concat();
        let fifo = [&["chrt", "-f", "50"][..], &launched].concat();
        let of = |class| match enforcer {
            Enforcer::Deadline => "SCHED_DEADLINE",
            _ => class,
        };
        let ways: [(&[&str], &str); 6] = [
            (&cyclictest, "T: 1"),
            (&["rt-app", json], ""),
            (&fifo, of("SCHED_FIFO")),
            (&rr, of("SCHED_RR")),
            (&["taskset", "-c", "1", "sh", "-c", "echo pinned"], "pinned"),
            (&graph, "0 calls failed"),
        ];
        for (words, said) in ways {
            let ended = run(dir.path(), enforcer, words).ends_with(0);
            assert!(
                ended.out.contains(said),
                "{words:?}: {} {}",
                ended.out,
                ended.err
            );
            assert!(ended.err.contains("mutexes: "), "{}", ended.err);
        }
        let script = format!(
            "cyclictest -p 90 -t 2 -m -D 1 -q && rt-app /rt-app.json && chrt -f 50 sh -c 'chrt -p $$' && \
             taskset -c 0 sh -c : && /graph {} && echo all && busybox sleep 1000",
            graph[1]
        );
        let text = format!(
            "enforcer = \"{}\"\n[[cell]]\nname = \"c\"\nimage = {{ rootfs = {root:?} }}\ncommand = [\"sh\", \"-c\", {script:?}]\n\
             reservation = {{ budget = \"5ms\", period = \"20ms\" }}\n",
            enforcer.name()
        );
        let path = mission(dir.path(), &text);
        assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 8);
        let mut up = Up::start(dir.path());
        up.told("c: mutexes: ");
        let output = crate::hostile::output(dir.path(), "c");
        let said = || fs::read_to_string(&output).unwrap_or_default();
        eventually("all have run", || said().ends_with("0 calls failed\nall\n"));
        up.end();
        nothing_is_left(dir.path());
    }
}

fn python_sets_its_class_and_its_cpus() {
    const SCRIPT: &str = "import os
for policy in [os.SCHED_FIFO, os.SCHED_RR]:
    os.sched_setscheduler(0, policy, os.sched_param(50))
os.sched_setparam(0, os.sched_param(40))
for cpus in [os.sched_getaffinity(0), {max(os.sched_getaffinity(0))}]:
    os.sched_setaffinity(0, cpus)
print('over')";
    let dir = tempfile::tempdir().unwrap();
    for enforcer in ENFORCERS {
        let said = run(dir.path(), enforcer, &["python3", "-c", SCRIPT]).ends_with(0);
        assert_eq!(said.out, "over\n", "{}", said.err);
    }
}

/// A thread of the lowest priority holds a mutex for which one of the highest waits while one between them computes: with a protocol
/// that works, the highest has it before that is done.
const INVERSION: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock;
static sem_t held, wanted, computes, over;
static void spin(long ms) {
    struct timespec now;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}
static void *low(void *of) {
    pthread_mutex_lock(&lock);
    sem_post(&held);
    spin(20);
    pthread_mutex_unlock(&lock);
    return of;
}
static void *middle(void *of) { sem_wait(&computes); spin(200); puts("middle"); sem_post(&over); return of; }
static void *high(void *of) { sem_wait(&wanted); pthread_mutex_lock(&lock); puts("high"); pthread_mutex_unlock(&lock); sem_post(&over); return of; }
static void start(int priority, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct sched_param p = {.sched_priority = priority};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &p);
    if (pthread_create(&thread, &attributes, run, 0)) exit(1);
}
int main(int count, char **words) {
    struct sched_param p = {.sched_priority = 63};
    pthread_mutexattr_t protocol;
    setlinebuf(stdout);
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    pthread_mutexattr_init(&protocol);
    if (count < 2) return 1;
    pthread_mutexattr_setprotocol(&protocol, words[1][0] == 'i' ? PTHREAD_PRIO_INHERIT : words[1][0] == 'c' ? PTHREAD_PRIO_PROTECT : PTHREAD_PRIO_NONE);
    pthread_mutexattr_setprioceiling(&protocol, 63);
    int error = pthread_mutex_init(&lock, &protocol);
    if (error) puts(strerror(error));
    else {
        start(62, high);
        start(61, middle);
        usleep(100000);
        start(60, low);
        sem_wait(&held);
        sem_post(&wanted);
        sem_post(&computes);
        sem_wait(&over);
        sem_wait(&over);
    }
    puts("over");
    for (;;) pause();
}
"#;

fn mutexes_work_where_that_is_told() {
    let built = tempfile::tempdir().unwrap();
    let program = compiled(built.path(), INVERSION);
    let refused = "PTHREAD_PRIO_INHERIT is refused under `rt-cgroup` (ENOTSUP); enforcer = \"freezer\" grants it";
    let works = "PTHREAD_PRIO_INHERIT works under";
    // Without a protocol the highest comes last, or the other orders would prove nothing.
    let ways = [
        (Enforcer::RtCgroup, "none", refused, "middle\nhigh\nover\n"),
        (
            Enforcer::RtCgroup,
            "inherit",
            refused,
            "Operation not supported\nover\n",
        ),
        (
            Enforcer::RtCgroup,
            "ceiling",
            refused,
            "high\nmiddle\nover\n",
        ),
        (Enforcer::Freezer, "inherit", works, "high\nmiddle\nover\n"),
        (
            Enforcer::CpusetOnly,
            "inherit",
            works,
            "high\nmiddle\nover\n",
        ),
    ];
    for (enforcer, protocol, told, order) in ways {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "enforcer = \"{}\"\n[[cell]]\nname = \"c\"\nimage = {{ binary = \"{}\" }}\nargs = [\"{protocol}\"]\n\
             priorities = {{ lowest = 60, highest = 63 }}\nreservation = {{ budget = \"5ms\", period = \"20ms\" }}\nstop_timeout = \"0ms\"\n",
            enforcer.name(),
            program.display()
        );
        mission(dir.path(), &text);
        let mut up = Up::start(dir.path());
        let line = up.told("c: mutexes: ");
        assert!(
            line.contains(told) && line.contains("ceilings from 60, and raises to 63"),
            "{line}"
        );
        if order.starts_with("Operation") {
            up.told("c: asked for a mutex with priority inheritance and was refused (ENOTSUP)");
        }
        let output = crate::hostile::output(dir.path(), "c");
        let said = || fs::read_to_string(&output).unwrap_or_default();
        eventually("it has said so", || said().ends_with("over\n"));
        assert_eq!(said(), order, "{} {protocol}", enforcer.name());
        up.end();
        nothing_is_left(dir.path());
    }
}

/// Two threads that compute at the priority with which the program was started.
const TURNS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static void *compute(void *of) {
    struct timespec now;
    puts("begins");
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); while (now.tv_nsec < 300000000 && now.tv_sec == 0);
    puts("ends");
    return of;
}
int main(void) {
    pthread_t threads[2];
    setlinebuf(stdout);
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], 0, compute, 0);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    return 0;
}
"#;

fn threads_of_class_rr_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), TURNS);
    for (option, order) in [
        ("--fifo", "begins\nends\nbegins\nends\n"),
        ("--rr", "begins\nbegins\nends\nends\n"),
    ] {
        let mut run = timecell();
        run.current_dir(dir.path())
            .args(["run", "--reserve", "8ms/20ms", option, "50"]);
        run.args(["--name", &name(dir.path()), "--enforcer", "rt-cgroup", "--"]);
        let said: Said = run
            .arg(&program)
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into();
        let said = said.ends_with(0);
        assert_eq!(said.out, order, "{option}");
    }
    let refused = ["run", "--reserve", "1ms/10ms", "--rr", "99", "--", "true"];
    let why = say(dir.path(), &refused).ends_with(2).error();
    assert!(why.contains("--rr") && why.contains("too high"), "{why}");
}

fn class_rr_is_admitted_as_fifo() {
    let dir = tempfile::tempdir().unwrap();
    let program = compiled(dir.path(), PROGRAM);
    let args = ["control:80:s", "filter:70:s", "log:60:s", "other:90:s"];
    let admitted = ["fifo", "rr"].map(|class| {
        let head = format!("class = \"{class}\"");
        mission(dir.path(), &threads(&program, &args, &head, [""; 3]));
        let said = say(dir.path(), &["admit", "mission.toml", "--json"]).ends_with(0);
        let mut json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let cell = json["admission"]["cells"][0].take();
        assert_eq!(cell["round_robin"], class == "rr");
        cell
    });
    let [fifo, rr] = &admitted;
    for key in ["band", "budget_ns", "period_ns", "tasks", "enforcer"] {
        assert_eq!(fifo[key], rr[key], "{key}");
    }
    let mut up = Up::start(dir.path());
    let pid = pid_of(&up.told("c: runs"));
    for task in rr["tasks"].as_array().unwrap() {
        let (name, priority) = (task["task"].as_str().unwrap(), task["priority"].as_u64());
        up.told(&format!("c: {name} is thread"));
        let priority = u8::try_from(priority.unwrap()).unwrap();
        let class = Some(Class::RoundRobin { priority });
        eventually(&format!("{name} has {class:?}"), || {
            class_of(pid, name) == class
        });
    }
    for (words, shown) in [
        (&["admit", "mission.toml"][..], ", RR "),
        (&["ps", "--machine"], ", RR "),
        (
            &["ps", "--dir", "state", "--json"],
            "\"mutexes\": \"PTHREAD_PRIO_INHERIT is refused",
        ),
    ] {
        let said = say(dir.path(), words);
        assert!(said.out.contains(shown), "{words:?}: {}", said.out);
    }
    // The program asks for FIFO.
    up.told("asks for FIFO");
    up.end();
    nothing_is_left(dir.path());
}
