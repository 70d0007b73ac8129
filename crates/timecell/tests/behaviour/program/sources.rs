//! The measured C programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::say;

/// Compiles a program, with timecell's header beside it.
pub fn built(dir: &Path, name: &str, text: &str) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    fs::write(&source, text).unwrap();
    fs::write(
        dir.join("timecell.h"),
        say(dir, &["header"]).ends_with(0).out,
    )
    .unwrap();
    let program = dir.join(name);
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-lm")
        .status();
    assert!(status.unwrap().success());
    program
}

/// Sums as many sines as it is told, prints the sum, and exits with the second argument.
pub const PLAIN: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    volatile double sum = 0;
    for (int i = 0; i < atoi(argv[1]); i++) sum += sin(i);
    printf("%f\n", sum);
    if (argc > 2) fprintf(stderr, "no such sensor\n");
    return argc > 2 ? atoi(argv[2]) : 0;
}
"#;

/// Runs a job every 2 ms, one in so many of which sleeps for 5 ms; ends after so many jobs, if told.
pub const LOOP: &str = r#"
#include "timecell.h"
#include <stdio.h>
static void sleep_until(int64_t ns) {
    struct timespec at = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
}
int main(int argc, char **argv) {
    struct timecell_client client;
    struct timecell_task control;
    int slow = atoi(argv[1]), last = argc > 2 ? atoi(argv[2]) : 0, job = 0;
    if (timecell_open_from_env(&client) || timecell_open_task(&client, "control", &control)) return 1;
    for (int64_t release = timecell_now_ns(); !last || job < last; release += 2000000) {
        sleep_until(release);
        timecell_begin_released(&control, release);
        job++;
        if (slow && job % slow == 0) sleep_until(timecell_now_ns() + 5000000);
        timecell_end(&control);
        while (release + 2000000 < timecell_now_ns() - 2000000) release += 2000000;
    }
    return 0;
}
"#;

/// Three tasks in threads of their own, the one of the longest period before that of the shortest; they let go of releases that have passed.
pub const TASKS: &str = r#"
#include "timecell.h"
#include <pthread.h>
struct timecell_client client;
struct task { const char *name; int64_t period; int work; } tasks[] = {
    {"filter", 10000000, 3000}, {"log", 20000000, 3000}, {"control", 2000000, 3000}};
static void *run(void *of) {
    struct task *own = of;
    struct timecell_task task;
    if (timecell_open_task(&client, own->name, &task)) exit(1);
    for (int64_t release = timecell_now_ns();; release += own->period) {
        struct timespec at = {release / 1000000000, release % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
        timecell_begin_released(&task, release);
        for (volatile int step = 0; step < own->work; step++) {}
        timecell_end(&task);
        while (release + own->period < timecell_now_ns() - own->period) release += own->period;
    }
}
int main(void) {
    pthread_t threads[3];
    if (timecell_open_from_env(&client)) return 1;
    for (int at = 0; at < 3; at++) {
        pthread_create(&threads[at], NULL, run, &tasks[at]);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    for (int at = 0; at < 3; at++) pthread_join(threads[at], NULL);
    return 0;
}
"#;

/// Runs a job every 2 ms that takes so many us, and keeps to its releases by catching up on those that have passed. Given a
/// directory, it writes there when each job began.
pub const STRICT: &str = r#"
#include "timecell.h"
#include <stdio.h>
int main(int argc, char **argv) {
    struct timecell_client client;
    struct timecell_task control;
    FILE *log = NULL;
    if (argc > 2) {
        char path[300];
        snprintf(path, sizeof path, "%s/%d", argv[2], getpid());
        log = fopen(path, "w");
        setvbuf(log, NULL, _IONBF, 0);
    }
    if (timecell_open_from_env(&client) || timecell_open_task(&client, "control", &control)) return 1;
    for (int64_t release = timecell_now_ns();; release += 2000000) {
        struct timespec at = {release / 1000000000, release % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {}
        timecell_begin_released(&control, release);
        if (log) fprintf(log, "%lld\n", (long long)timecell_now_ns());
        int64_t end = timecell_now_ns() + atoi(argv[1]) * 1000;
        while (timecell_now_ns() < end) {}
        timecell_end(&control);
    }
}
"#;

/// Works all the time, or with `sleep` never; with `deaf` it ignores SIGTERM, and with `leave` it exits after 100 ms.
pub const ENDLESS: &str = r#"
#include <signal.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "work";
    if (!strcmp(how, "deaf")) signal(SIGTERM, SIG_IGN);
    if (!strcmp(how, "leave")) { usleep(100000); return 4; }
    for (volatile long n = 0;; n++) if (!strcmp(how, "sleep") || !strcmp(how, "deaf")) pause();
}
"#;

/// In a cell, checks whether it may write to the executable of every process that it sees, and as a plain process, with `self`, to
/// its own. Opening would tell less: a file that is busy now may not be later. With `look`, it prints in a cell the
/// number of binaries it saw.
pub const REACH: &str = r#"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int seen = 0;
static int reach(const char *path) {
    if (access(path, W_OK) && (errno == EROFS || errno == EACCES || errno == EPERM || errno == ENOENT)) {
        seen += errno == EROFS;
        return 0;
    }
    fprintf(stderr, "reached %s\n", path);
    return 3;
}
int main(int argc, char **argv) {
    int told = argc > 1 && !strcmp(argv[1], "look");
    if (access("/cell", F_OK)) return argc > 1 && !told ? reach("/proc/self/exe") : 0;
    int reached = reach("/proc/self/exe");
    char path[300];
    DIR *all = opendir("/proc");
    for (struct dirent *one; all && (one = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%s/exe", one->d_name);
        if (one->d_name[0] >= '1' && one->d_name[0] <= '9') reached |= reach(path);
    }
    reached |= reach("/timecell");
    if (told) fprintf(stderr, "it saw %d binaries\n", seen);
    return told ? 5 : reached;
}
"#;

/// Three threads of lower priorities than its own end shortly before the program does.
pub const LOWER: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
static void *lower(void *priority) {
    struct sched_param param = {(int)(long)priority};
    sched_setscheduler(0, SCHED_FIFO, &param);
    usleep(3000);
    return NULL;
}
int main(void) {
    pthread_t thread;
    for (long priority = 70; priority >= 50; priority -= 10) pthread_create(&thread, NULL, lower, (void *)priority);
    usleep(2000);
    return 0;
}
"#;
