//! Priority-inheritance mutexes in C programs: the errors of glibc and musl in a cell that is held to a budget, where the kernel's
//! operations are refused, and in one that is not.

use std::fs;
use std::process::Command;

use crate::missions::{RESERVED, Up, mission, nothing_is_left};
use crate::support::{eventually, say};

/// Prints the C library's answers, and waits.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attributes);
    int protocol = pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    int made = pthread_mutex_init(&mutex, &attributes);
    printf("setprotocol %d, init %d.\n", protocol, made);
    fflush(stdout);
    for (;;) pause();
}
"#;

// The protocol is accepted, the mutex is not.
#[case(
    priority_inheritance_is_refused_by_glibc_when_a_mutex_is_made("cc", [0, libc::ENOTSUP]);
    Root, RealTime, Program("cc"), GroupBudget(150)
)]
// The mutex then has no protocol.
#[case(
    priority_inheritance_is_refused_by_musl_when_it_is_asked_for("musl-gcc", [libc::ENOSYS, 0]);
    Root, RealTime, Program("musl-gcc"), GroupBudget(150)
)]
fn says(compiler: &str, refused: [i32; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("mutex.c"), dir.path().join("mutex"));
    fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new(compiler);
    compile.args(["-static", "-pthread", "-o"]);
    let built = compile.arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    let cells = [("held", RESERVED), ("free", "class = \"other\"")].map(|(name, more)| {
        format!(
            "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{}\" }}\nstop_timeout = \"0ms\"\n{more}\n",
            program.display()
        )
    });
    mission(dir.path(), &cells.concat());
    let mut up = Up::start(dir.path());
    for (cell, [protocol, made]) in [("held", refused), ("free", [0, 0])] {
        up.told(&format!("{cell}: runs"));
        let said = || say(dir.path(), &["logs", cell, "--dir", "state"]).out;
        eventually("it has said so", || said().ends_with(".\n"));
        let right = format!("setprotocol {protocol}, init {made}.\n");
        assert_eq!(said(), right, "{cell}, {compiler}");
    }
    up.end();
    nothing_is_left(dir.path());
}
