//! Proved cells are the ones that run: bounds beside a cell that spins, and idle cells whose bounds nothing withdraws. The campaign `proved` does the
//! same for longer, and with more cells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::control::cell;
use crate::missions::{Up, mission, nothing_is_left, shell};
use crate::missions_threads::compiled;
use crate::support::Need;

const NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Deadline,
    Need::Freezer,
    Need::Program("cc"),
    Need::Program("busybox"),
    Need::GroupBudget(900),
];

const ALONE: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Deadline,
    Need::Freezer,
    Need::Program("cc"),
    Need::Alone,
];

const ENFORCERS: [&str; 3] = ["rt-cgroup", "deadline", "freezer"];

/// Seconds for each program under each enforcer.
const SECONDS: &str = "TIMECELL_PROVED_SECONDS";
/// Cells that are idle together.
const CELLS: &str = "TIMECELL_PROVED_CELLS";

fn number(variable: &str, usual: u64) -> u64 {
    let told = std::env::var(variable).ok();
    told.map_or(usual, |told| told.parse().expect("a number"))
}

/// Four periodic threads that report their jobs; the second argument multiplies their periods. The first one says how: `s`: each sets its priority, the most urgent the highest; `o`: the other
/// way round; `c`: they are created in another order; `l`: a second after each other; `n`: each renames itself after two seconds; `f`: each
/// has a child process.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include "timecell.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
struct one { const char *name; long period_us, work_us; int up, down; };
static struct one all[] = {
    {"control", 5000, 200, 80, 50}, {"sensor", 10000, 200, 70, 60},
    {"filter", 20000, 500, 60, 70}, {"log", 100000, 1000, 50, 80}};
static const char *how;
static struct timecell_client client;
static int64_t now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void *run(void *of) {
    struct one *own = of;
    struct timecell_task task;
    struct sched_param p = {.sched_priority = strchr(how, 'o') ? own->down : own->up};
    pthread_setname_np(pthread_self(), own->name);
    if (strpbrk(how, "so") && pthread_setschedparam(pthread_self(), SCHED_FIFO, &p)) puts("refused");
    if (strchr(how, 'f') && fork() == 0) for (;;) pause();
    int error = timecell_open_task(&client, own->name, &task);
    if (error) { puts(timecell_error(error)); exit(1); }
    int64_t began = now(CLOCK_MONOTONIC), next = began;
    for (;; next += own->period_us * 1000) {
        struct timespec at = {next / 1000000000, next % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
        timecell_begin_released(&task, next);
        int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + own->work_us * 1000;
        while (now(CLOCK_THREAD_CPUTIME_ID) < until) {}
        timecell_end(&task);
        if (strchr(how, 'n') && next - began > 2000000000) pthread_setname_np(pthread_self(), "other");
    }
}
int main(int count, char **words) {
    if (count < 3) return 2;
    how = words[1];
    for (int at = 0; at < 4; at++) all[at].period_us *= atoi(words[2]);
    setlinebuf(stdout);
    if (mlockall(MCL_CURRENT | MCL_FUTURE)) puts("not locked");
    timecell_open_from_env(&client);
    int other[] = {3, 1, 0, 2};
    for (int at = 0; at < 4; at++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, &all[strchr(how, 'c') ? other[at] : at]);
        if (strchr(how, 'l')) sleep(1);
    }
    for (;;) pause();
}
"#;

/// Name, wcet and period in ms.
const TASKS: [(&str, &str, u64); 4] = [
    ("control", "400us", 5),
    ("sensor", "400us", 10),
    ("filter", "1ms", 20),
    ("log", "2ms", 100),
];

#[case(..NEEDS)]
fn threads_that_set_themselves_up_beside_a_spinner(dir: &Path) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client/include");
    let header = include.join("timecell.h").canonicalize().unwrap();
    let program = compiled(
        dir,
        &PROGRAM.replace("timecell.h", &header.to_string_lossy()),
    );
    let ways: &[&str] = match std::env::var_os(SECONDS) {
        Some(_) => &["s", "-", "o", "sc", "sl", "sn", "sf"],
        None => &["sc"],
    };
    for enforcer in ENFORCERS {
        // SCHED_DEADLINE keeps threads to some cpus on few machines, and may overrun by a tick there.
        let (cpus, slower) = match enforcer {
            "deadline" => ("", 10),
            _ => ("cpus = [1]", 1),
        };
        let tasks: String = (TASKS.iter())
            .map(|(name, wcet, period)| {
                let period = period * slower;
                format!(
                    "[[cell.task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}ms\"\n"
                )
            })
            .collect();
        let spinner = shell(
            "spinner",
            "while :; do :; done",
            &format!("{cpus}\nreservation = {{ budget = \"20ms\", period = \"200ms\" }}"),
        );
        for how in ways {
            mission(
                dir,
                &format!(
                    "enforcer = \"{enforcer}\"\n[[cell]]\nname = \"c\"\nimage = {{ binary = \"{}\" }}\nargs = [\"{how}\", \"{slower}\"]\n\
                     stop_timeout = \"0ms\"\n{cpus}\n{tasks}{spinner}",
                    program.display()
                ),
            );
            let mut up = Up::start(dir);
            up.told("c: runs");
            for (name, ..) in TASKS {
                up.told(&format!("c: {name} is thread"));
            }
            std::thread::sleep(Duration::from_secs(number(SECONDS, 3)));
            let seen = cell(dir, "c");
            let (tasks, bounds) = (&seen["tasks"], &seen["bounds"]);
            let mut told = String::new();
            for (at, (name, ..)) in TASKS.iter().enumerate() {
                let (task, bound) = (&tasks[at], &bounds[at]);
                assert_eq!(
                    (&task["task"], &bound["task"]),
                    (&(*name).into(), &(*name).into())
                );
                assert!(task["jobs"].as_u64().unwrap() > 0, "{seen}");
                let ms = |ns: &serde_json::Value| ns.as_f64().unwrap() / 1e6;
                told += &format!(
                    " {name} {} of {} late, worst {:.3} of {:.3} ms;",
                    task["late"],
                    task["jobs"],
                    ms(&task["worst_response_ns"]),
                    ms(&bound["bound_ns"]),
                );
            }
            println!("{enforcer}, {how}:{told} {}", withdrawals(&mut up));
            let said = fs::read_to_string(crate::hostile::output(dir, "c")).unwrap_or_default();
            assert_eq!(said, "", "{enforcer}, {how}");
            up.end();
            nothing_is_left(dir);
        }
    }
}

/// How many bounds were withdrawn for which reason, a clause.
fn withdrawals(up: &mut Up) -> String {
    up.has_said("");
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for line in &up.said {
        if let Some((_, why)) = line.split_once("withdrawn: ") {
            let why = why.replace(|digit: char| digit.is_ascii_digit(), "#");
            *all.entry(why).or_default() += 1;
        }
    }
    match all.is_empty() {
        true => "no bound withdrawn".to_owned(),
        false => format!("withdrawn: {all:?}"),
    }
}

// The real-time threads of other cases would be strangers.
#[case(..ALONE)]
fn nothing_is_withdrawn_while_nothing_happens(dir: &Path) {
    let source = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <unistd.h>\n\
        static void *wait(void *name) { pthread_setname_np(pthread_self(), name); for (;;) pause(); }\n\
        int main(void) { char *names[] = {\"only\", \"one\", \"two\"}; pthread_t t; \
        for (int i = 0; i < 3; i++) pthread_create(&t, 0, wait, names[i]); wait(\"main\"); }\n";
    let program = compiled(dir, source);
    let cells = number(CELLS, 4);
    let seconds = Duration::from_secs(number(SECONDS, 3));
    for enforcer in ENFORCERS {
        let all: String = (1..=cells)
            .map(|at| {
                format!(
                    "[[cell]]\nname = \"c{at}\"\nimage = {{ binary = \"{}\" }}\nstop_timeout = \"0ms\"\n\
                     [[cell.task]]\nname = \"only\"\nwcet = \"20us\"\nperiod = \"1s\"\n",
                    program.display()
                )
            })
            .collect();
        mission(dir, &format!("enforcer = \"{enforcer}\"\n{all}"));
        let mut up = Up::start(dir);
        for at in 1..=cells {
            up.told(&format!("c{at}: runs"));
            up.told(&format!("c{at}: only is thread"));
        }
        std::thread::sleep(seconds);
        println!(
            "{enforcer}, {cells} cells, {} s: {}",
            seconds.as_secs(),
            withdrawals(&mut up)
        );
        // The machine may stop for a while, which is no one's deviation.
        let other = (up.said.iter()).find(|line| {
            line.contains("withdrawn: ") && !line.contains("the supervisor did not run")
        });
        assert_eq!(other, None, "{enforcer}");
        up.end();
        nothing_is_left(dir);
    }
}
