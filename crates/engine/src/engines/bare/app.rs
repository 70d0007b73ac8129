//! A bare cell: a process that sees the machine's files and devices, but has the limits, the rights and the filter of
//! any other cell. The process that makes it becomes it.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

use caps::{CapSet, Capability, CapsHashSet};

use crate::app::engine::{Apps, Made, Making};
use crate::app::making::Handed;
use crate::app::program::Program;
use crate::app::spec::{AppSpec, Ids, Network};
use crate::app::{executor, groups, start};
use crate::seccomp::{Filter, policy};
use crate::{limits, made, process};

/// How long a cell may take to be ready.
const READINESS: Duration = Duration::from_secs(60);

/// Such cells.
#[derive(Debug)]
pub(super) struct Cells;

impl Apps for Cells {
    fn make(&self, making: Making<'_>) -> Result<Made, String> {
        let Making {
            spec,
            mut call,
            stdin,
            mut report,
            end,
            ..
        } = making;
        let log = made::log(spec);
        let child = process::spawn_on(&mut call, &log, stdin)?;
        drop(end);
        match report.ready(READINESS)? {
            Some(()) => Ok(Made {
                pid: child.id().cast_signed(),
                report: Some(report),
            }),
            None => Err(ended_early(child, &log)),
        }
    }

    /// Becomes the cell; returns why it could not.
    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<(), String> {
        match prepare(spec, &Program::of(spec)?, handed) {
            Ok(never) => match never {},
            Err(why) => {
                executor::tell(handed.report, &why);
                Err(why)
            }
        }
    }

    fn start(&self, spec: &AppSpec) -> Result<bool, String> {
        start::give(spec)
    }
}

/// Why a cell was never ready.
fn ended_early(mut child: std::process::Child, log: &Path) -> String {
    let status = process::wait(&mut child, READINESS);
    let said = process::tail(log);
    match status {
        _ if !said.is_empty() => said,
        Ok(status) => format!("its process ended with {status}"),
        Err(error) => error,
    }
}

fn prepare(spec: &AppSpec, program: &Program, handed: Handed) -> Result<Infallible, String> {
    let filter = Filter::of(&policy(&spec.grants, spec.network))?;
    let mut groups = groups::make(spec)?;
    groups::limit(spec)?;
    groups.enter(std::process::id().cast_signed())?;
    groups.reap_helper();
    drop(groups);
    if spec.network == Network::None {
        // SAFETY: this process has one thread.
        checked("make a network namespace", unsafe {
            libc::unshare(libc::CLONE_NEWNET)
        })?;
    }
    // SAFETY: no memory is involved. Fails only for the leader of a group, which is as far from the terminal.
    unsafe { libc::setsid() };
    set_limits(spec)?;
    let listener = start::listen(spec)?;
    std::env::set_current_dir(&program.cwd)
        .map_err(|error| format!("{}: {error}", program.cwd.display()))?;
    take(handed.stdout, libc::STDOUT_FILENO)?;
    take(handed.stderr, libc::STDERR_FILENO)?;
    give_up(spec, program.ids)?;
    // SAFETY: marks all descriptors but the streams to be closed on exec.
    checked("mark descriptors", unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        ) as i32
    })?;
    // From here on it does not end with its maker.
    // SAFETY: no memory is involved.
    checked("stay alone", unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, 0, 0, 0, 0)
    })?;
    // SAFETY: handed down by the supervisor for this; closed on exec, or with this process.
    let mut report = unsafe { File::from_raw_fd(handed.report) };
    start::say_ready(&mut report).map_err(|error| error.to_string())?;
    start::wait(&listener).map_err(|error| error.to_string())?;
    let why = executor::execute(&program.args, &program.env, &filter);
    std::mem::forget(report);
    Err(why)
}

fn take(from: RawFd, to: RawFd) -> Result<(), String> {
    // SAFETY: both are open.
    checked("take over a stream", unsafe { libc::dup2(from, to) })
}

fn set_limits(spec: &AppSpec) -> Result<(), String> {
    for limit in limits::of_app(&spec.grants) {
        let resource = match limit.name {
            "RLIMIT_NOFILE" => libc::RLIMIT_NOFILE,
            "RLIMIT_RTPRIO" => libc::RLIMIT_RTPRIO,
            "RLIMIT_MEMLOCK" => libc::RLIMIT_MEMLOCK,
            "RLIMIT_NICE" => libc::RLIMIT_NICE,
            "RLIMIT_CORE" => libc::RLIMIT_CORE,
            "RLIMIT_SIGPENDING" => libc::RLIMIT_SIGPENDING,
            "RLIMIT_MSGQUEUE" => libc::RLIMIT_MSGQUEUE,
            "RLIMIT_NPROC" => libc::RLIMIT_NPROC,
            other => return Err(format!("{other} is not known")),
        };
        let both = libc::rlimit {
            rlim_cur: limit.value,
            rlim_max: limit.value,
        };
        // SAFETY: a structure on the stack.
        checked(limit.name, unsafe {
            libc::setrlimit(resource, &raw const both)
        })?;
    }
    Ok(())
}

/// Becomes the cell's user with no capability but those granted, for ever.
fn give_up(spec: &AppSpec, ids: Ids) -> Result<(), String> {
    let granted: CapsHashSet = (spec.grants.capabilities.iter())
        .filter_map(|name| name.parse::<Capability>().ok())
        .collect();
    let failed = |error: caps::errors::CapsError| format!("cannot give up capabilities: {error}");
    for capability in caps::read(None, CapSet::Bounding).map_err(failed)? {
        if !granted.contains(&capability) {
            caps::drop(None, CapSet::Bounding, capability).map_err(failed)?;
        }
    }
    // SAFETY: no memory is involved.
    unsafe {
        checked(
            "forbid new privileges",
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        )?;
        checked(
            "keep capabilities",
            libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0),
        )?;
        checked(
            "change the group",
            libc::setresgid(ids.gid, ids.gid, ids.gid),
        )?;
        checked(
            "change the user",
            libc::setresuid(ids.uid, ids.uid, ids.uid),
        )?;
    }
    caps::set(None, CapSet::Effective, &granted).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &granted).map_err(failed)?;
    if ids.uid != 0 {
        // Others than root keep over exec only what is ambient.
        caps::set(None, CapSet::Inheritable, &granted).map_err(failed)?;
        caps::set(None, CapSet::Ambient, &granted).map_err(failed)?;
    }
    Ok(())
}

fn checked(doing: &str, answer: i32) -> Result<(), String> {
    if answer >= 0 {
        Ok(())
    } else {
        Err(format!("cannot {doing}: {}", io::Error::last_os_error()))
    }
}
