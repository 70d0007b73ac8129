//! A bare cell: a process that sees the machine's files and devices, but has the limits, the rights and the filter of
//! any other cell. The process that makes it becomes it.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

use host::file::at;
use rustix::process::{
    Gid, Resource, Rlimit, Uid, set_parent_process_death_signal, setrlimit, setsid,
};
use rustix::thread::{
    UnshareFlags, set_keep_capabilities, set_no_new_privs, set_thread_res_gid, set_thread_res_uid,
};

use crate::agent::Delivery;
use crate::app::engine::{Apps, Made, Making};
use crate::app::making::Handed;
use crate::app::spec::{AppSpec, Ids, Network};
use crate::app::{capabilities, executor, groups, start};
use crate::error::{Doing, Error, Result, refused};
use crate::mounts::unshare;
use crate::seccomp::{Filter, policy};
use crate::{agent, limits, made, process};

/// How long a cell may take to be ready.
const READINESS: Duration = Duration::from_secs(60);

/// Such cells.
#[derive(Debug)]
pub(super) struct Cells;

impl Apps for Cells {
    fn make(&self, making: Making<'_>) -> Result<Made> {
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

    /// Becomes the cell; returns only if it could not.
    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<()> {
        let report = handed.report;
        match prepare(spec, &handed) {
            Ok(never) => match never {},
            Err(why) => {
                executor::tell(report, &why);
                Err(why)
            }
        }
    }

    fn start(&self, spec: &AppSpec) -> Result<bool> {
        start::give(spec)
    }
}

/// Why a cell was never ready.
fn ended_early(mut child: std::process::Child, log: &Path) -> Error {
    let status = process::wait(&mut child, READINESS);
    let said = process::tail(log);
    match status {
        _ if !said.is_empty() => said.into(),
        Ok(status) => refused!("its process ended with {status}"),
        Err(error) => error,
    }
}

fn prepare(spec: &AppSpec, handed: &Handed) -> Result<Infallible> {
    let program = handed.program()?;
    let answers = agent::answers(spec, Delivery::Handed);
    let filter = Filter::of(&policy(&spec.grants, spec.network), answers)?;
    let mut groups = groups::make(spec)?;
    groups::limit(spec)?;
    groups.enter(std::process::id().cast_signed())?;
    groups.reap_helper();
    drop(groups);
    if spec.network == Network::None {
        checked("make a network namespace", unshare(UnshareFlags::NEWNET))?;
    }
    // Fails only for the leader of a group, which is as far from the terminal.
    let _ = setsid();
    set_limits(spec)?;
    let listener = start::listen(spec)?;
    std::env::set_current_dir(&program.cwd).map_err(at(&program.cwd))?;
    take(handed.stdout, libc::STDOUT_FILENO)?;
    take(handed.stderr, libc::STDERR_FILENO)?;
    give_up(spec, program.ids)?;
    // SAFETY: marks all descriptors but the streams to be closed on exec.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    checked("mark descriptors", answered(marked))?;
    // From here on it does not end with its maker.
    checked("stay alone", set_parent_process_death_signal(None))?;
    // SAFETY: handed down by the supervisor for this; closed on exec, or with this process.
    let mut report = unsafe { File::from_raw_fd(handed.report) };
    start::say_ready(&mut report)?;
    start::wait(&listener)?;
    let executed = executor::execute(&program.args, &program.env, &filter, handed.agent);
    std::mem::forget(report);
    executed
}

fn take(from: RawFd, to: RawFd) -> Result<()> {
    // SAFETY: both are open.
    checked(
        "take over a stream",
        answered(unsafe { libc::dup2(from, to) }.into()),
    )
}

fn set_limits(spec: &AppSpec) -> Result<()> {
    for limit in limits::of_app(&spec.grants) {
        let resource = match limit.name {
            "RLIMIT_NOFILE" => Resource::Nofile,
            "RLIMIT_RTPRIO" => Resource::Rtprio,
            "RLIMIT_MEMLOCK" => Resource::Memlock,
            "RLIMIT_NICE" => Resource::Nice,
            "RLIMIT_CORE" => Resource::Core,
            "RLIMIT_SIGPENDING" => Resource::Sigpending,
            "RLIMIT_MSGQUEUE" => Resource::Msgqueue,
            "RLIMIT_NPROC" => Resource::Nproc,
            other => return Err(refused!("{other} is not known")),
        };
        let both = Rlimit {
            current: Some(limit.value),
            maximum: Some(limit.value),
        };
        checked(limit.name, setrlimit(resource, both))?;
    }
    Ok(())
}

/// Becomes the cell's user, irrevocably, with no capability but those granted.
fn give_up(spec: &AppSpec, ids: Ids) -> Result<()> {
    capabilities::bound(&spec.grants.capabilities)?;
    // This process has one thread.
    let (uid, gid) = (Uid::from_raw(ids.uid), Gid::from_raw(ids.gid));
    checked("forbid new privileges", set_no_new_privs(true))?;
    checked("keep capabilities", set_keep_capabilities(true))?;
    checked("change the group", set_thread_res_gid(gid, gid, gid))?;
    checked("change the user", set_thread_res_uid(uid, uid, uid))?;
    capabilities::keep(&spec.grants.capabilities, ids.uid == 0)
}

fn answered(answer: libc::c_long) -> io::Result<()> {
    match answer {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn checked(doing: &str, answer: Result<(), impl Into<Error>>) -> Result<()> {
    answer.doing(|| format!("cannot {doing}"))
}
