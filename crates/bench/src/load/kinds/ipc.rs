//! `ipc`: groups of processes that send each other messages over sockets. hackbench with 15 groups of 25 senders and
//! 25 receivers and 512-byte messages, as the thesis on real-time Linux devices runs it, or the same built in.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use model::{LoadKind, LoadPlan};
use record::Achieved;

use crate::load::kind::{Gauge, Load, Program, Setting, Window};
use crate::load::tally::Tally;

pub(crate) struct Ipc;

const GROUPS: usize = 15;
/// Senders of a group, and receivers.
const FDS: usize = 25;
/// Bytes of a message.
const BYTES: usize = 512;

impl Load for Ipc {
    fn kind(&self) -> LoadKind {
        LoadKind::Ipc
    }

    fn does(&self) -> &'static str {
        "750 processes in 15 groups send each other 512-byte messages"
    }

    fn program(&self) -> Option<Program> {
        Some(Program {
            name: "hackbench",
            package: "rt-tests",
            version: &["--version"],
        })
    }

    fn command(&self, _: &LoadPlan, _: &Setting) -> Vec<String> {
        // So many messages that it never ends by itself.
        let words = "hackbench -P -g 15 -f 25 -s 512 -l 1000000000";
        words.split(' ').map(str::to_owned).collect()
    }

    fn told(&self, window: &Window<'_>) -> Vec<Achieved> {
        // hackbench only prints a time at its end; the kernel counts its processes' writes.
        let bytes = window
            .after
            .written_bytes
            .saturating_sub(window.before.written_bytes);
        if bytes == 0 {
            return Vec::new();
        }
        vec![window.per_second("messages", "1/s", bytes as f64 / BYTES as f64)]
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::rate("messages", "1/s", 1.0)]
    }

    fn work(&self, _: &Setting, tally: &Tally) -> String {
        match groups(tally) {
            Ok(why) => why,
            Err(error) => format!("message groups: {error}"),
        }
    }
}

fn groups(tally: &Tally) -> std::io::Result<String> {
    for _ in 0..GROUPS {
        let (mut receiving, mut sending) = (Vec::new(), Vec::new());
        for _ in 0..FDS {
            let (one, other) = UnixStream::pair()?;
            receiving.push(one);
            sending.push(other);
        }
        for stream in &receiving {
            child(|| receive(stream))?;
        }
        for _ in 0..FDS {
            child(|| send(&sending, tally))?;
        }
    }
    tally.die_with_coordinator()?;
    let mut status = 0;
    // SAFETY: `status` is valid.
    let ended = unsafe { libc::wait(&raw mut status) };
    Ok(format!(
        "process {ended} of the groups ended with status {status:#x}"
    ))
}

/// Does `work` in a separate process, which ends with this one. Called before any thread is started.
fn child(work: impl FnOnce() -> std::io::Error) -> std::io::Result<()> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: no memory is involved.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let error = work();
            eprintln!("load: {error}");
            // SAFETY: ends this process without running its parent's exit handlers.
            unsafe { libc::_exit(1) }
        }
        _ => Ok(()),
    }
}

fn receive(mut from: &UnixStream) -> std::io::Error {
    let mut message = [0; BYTES];
    loop {
        if let Err(error) = from.read_exact(&mut message) {
            return error;
        }
    }
}

fn send(to: &[UnixStream], tally: &Tally) -> std::io::Error {
    let message = [1; BYTES];
    loop {
        for mut stream in to {
            if let Err(error) = stream.write_all(&message) {
                return error;
            }
        }
        tally.add(0, to.len() as u64);
    }
}
