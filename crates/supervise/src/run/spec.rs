//! The request to the engine: a cell of the mission with its grant.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use engine::app::{
    self, AppSpec, Bind, Granted, Grants, Ids, Image, Limits, RealTime, Scheduling, Seccomp, Tmpfs,
};
use model::mission::{self, Cell, MissionFile};
use model::{Enforcer, EngineKind};

use super::cell::Given;
use super::options::OutputTo;
use crate::admit::Grant;

/// The order of killing when the machine's memory is short: best effort, then cells that may be shed, then the rest of
/// the mission, before everything on the host that has the usual protection.
const OOM_BEST_EFFORT: u16 = 900;
const OOM_LOW: u16 = 600;
const OOM_HIGH: u16 = 300;

/// The request to the engine: a cell of the mission with its grant and nothing else, `memory_bytes` where the file does not say
/// how much memory. Where nothing is `given` yet, the request is for checks only.
pub(super) fn of(
    file: &MissionFile,
    cell: &Cell,
    given: Option<&Given>,
    memory_bytes: Option<u64>,
    work_dir: &Path,
) -> AppSpec {
    let grant = given.and_then(Given::grant);
    let path = |path: &Path| host_path(file, path);
    let image = cell.image.with_path(path);
    // The last part is the cell's name, or that of its second place.
    let place = work_dir.file_name().unwrap_or_default().to_string_lossy();
    let id = crate::names::cell_id(&file.mission().name, &place);
    let rights = &cell.rights;
    let mut spec = AppSpec::new(&id, cell.engine, image, work_dir);
    spec.command.clone_from(&cell.command);
    spec.args.clone_from(&cell.args);
    spec.env.clone_from(&cell.env);
    spec.cwd.clone_from(&cell.workdir);
    spec.ids = rights.user;
    // The group around its own is its holder's.
    spec.is_enclosed = grant.is_some_and(|grant| grant.enforcer.holds_outer_group());
    spec.oom_score_adj = match cell.criticality {
        _ if !cell.is_real_time() => OOM_BEST_EFFORT,
        mission::Criticality::Low => OOM_LOW,
        mission::Criticality::High => OOM_HIGH,
    };
    spec.hostname = (cell.engine != EngineKind::Bare).then(|| cell.name.clone());
    spec.writable_root = rights.writable_root;
    spec.binds = (rights.mounts.iter())
        .map(|mount| Bind::new(path(&mount.source), &mount.target, mount.writable))
        .collect();
    spec.tmpfs = (rights.tmpfs.iter())
        .map(|tmpfs| Tmpfs {
            target: tmpfs.target.clone(),
            size_bytes: tmpfs.size.bytes(),
        })
        .collect();
    spec.devices = rights.all_devices();
    spec.network = rights.network;
    spec.limits = Limits {
        memory_bytes: (rights.memory.map(model::Bytes::bytes)).or(memory_bytes),
        pids: rights.pids,
    };
    spec.grants = Grants {
        scheduling: given.map_or(Scheduling::FromOutside, |given| {
            scheduling(given, &file.mission().name, &id)
        }),
        priority_inheritance: grant.is_none_or(Grant::lets_inherit),
        capabilities: capabilities(cell, spec.limits.memory_bytes),
        // All that it touches may stay in memory.
        memlock_bytes: spec.limits.memory_bytes,
        open_files: rights.open_files.into(),
        pending_signals: rights.pending_signals.into(),
        message_queue_bytes: rights.message_queues.bytes(),
        // The kernel counts all processes of a user: a limit for one whom others share would be theirs as well.
        processes: None,
        seccomp: match rights.seccomp {
            mission::Seccomp::Default => Seccomp::Default,
            mission::Seccomp::Cage => Seccomp::Cage,
        },
    };
    spec
}

/// The capabilities of a cell. One of a real-time class may lock all its memory, up to the limit of its group: by the resource limit where
/// this process may raise it so far, else by the capability, which lifts it.
fn capabilities(cell: &Cell, memory_bytes: Option<u64>) -> Vec<String> {
    const LOCK: &str = "CAP_IPC_LOCK";
    let mut all = cell.rights.capabilities.clone();
    let lacks = memory_bytes.is_some_and(|bytes| !engine::may_lock(bytes));
    if cell.is_real_time() && lacks && !all.iter().any(|name| name == LOCK) {
        all.push(LOCK.to_owned());
    }
    all
}

/// An absolute path of the host that the mission names; links in it are not followed.
pub(super) fn host_path(file: &MissionFile, path: &Path) -> PathBuf {
    let path = file.resolve(path);
    std::path::absolute(&path).unwrap_or(path)
}

/// Gives a cell that has none ([`has_no_user`]) a user of its own.
pub(super) fn give_user(spec: &mut AppSpec, cell: &Cell, id: u32) {
    spec.ids = Some(Ids { uid: id, gid: id });
    // One more than its group may have, so that the group's limit is the one that is met, and counted.
    spec.grants.processes = Some(u64::from(cell.rights.pids) + 1);
}

/// Whether neither the file nor the image names the user of a cell's program.
pub(super) fn has_no_user(cell: &Cell) -> bool {
    let image = matches!(
        cell.image,
        mission::Image::Rootfs(_) | mission::Image::Binary(_)
    );
    image && cell.rights.user.is_none()
}

/// The cell's threads may ask for any class, and get the granted one: a thread that is no task's the lowest priority of the band.
fn scheduling(given: &Given, mission: &str, id: &str) -> Scheduling {
    let (cpus, real_time) = match given {
        Given::BestEffort(cpus, _) => (cpus, RealTime::None),
        Given::Grant(grant) => {
            let real_time = match grant.band {
                Some(band) => RealTime::Band {
                    lowest: band.lowest,
                    highest: match grant.tasks.is_empty() {
                        true => band.highest,
                        false => band.lowest,
                    },
                    round_robin: grant.round_robin,
                },
                None if grant.enforcer == Enforcer::Deadline => RealTime::ByTask,
                None => RealTime::None,
            };
            (&grant.cpus, real_time)
        }
    };
    Scheduling::Granted(Granted {
        real_time,
        cpus: cpus.clone(),
        held_in: given.grant().and_then(|grant| {
            let is_held = grant.enforcer == Enforcer::Freezer && grant.budget_ns.is_some();
            let top = is_held.then(|| freezer::hold::top(&host::root::Root::live()));
            let dir = freezer::page::memory().join(crate::names::freezer_of(mission));
            Some((dir, top?.ok()?.join(id)))
        }),
    })
}

/// User and group of a cell's program, where they are known before it runs.
///
/// # Errors
/// Why they are not, a clause.
pub(super) fn user(spec: &AppSpec) -> Result<Ids, engine::Error> {
    match (&spec.image, spec.ids) {
        (_, Some(ids)) => Ok(ids),
        (Image::Rootfs(_) | Image::Binary(_), None) => Ok(Ids::NOBODY),
        // Its keeper is root.
        (Image::Inmate(_), None) => Ok(Ids { uid: 0, gid: 0 }),
        (Image::Bundle(dir), None) => Ok(app::Bundle::read(dir)?.ids),
        (Image::Reference(name), None) => app::image_user(spec.engine, name),
    }
}

/// The streams of a cell that this engine makes.
///
/// # Errors
/// When the supervisor's own streams are closed, or it has no descriptor left.
pub(super) fn streams(to: OutputTo, engine: EngineKind) -> io::Result<app::Streams> {
    match to {
        OutputTo::Own if !app::writes_output(engine) => Ok(app::Streams::Given {
            stdin: input()?,
            stdout: io::stdout().as_fd().try_clone_to_owned()?,
            stderr: io::stderr().as_fd().try_clone_to_owned()?,
        }),
        OutputTo::Own | OutputTo::Log => Ok(app::Streams::Log),
    }
}

/// The supervisor's own standard input, for its cell. Not a terminal that another command is reading from, of which the cell, in a session
/// of its own, would not be kept from taking the lines; nor a directory, from which it could go to any other file of the machine.
fn input() -> io::Result<Option<OwnedFd>> {
    let own = io::stdin().as_fd().try_clone_to_owned()?;
    let file = File::from(own);
    // SAFETY: open descriptors; no memory is involved.
    let in_front = || unsafe { libc::tcgetpgrp(file.as_raw_fd()) == libc::getpgrp() };
    let usable = !file.metadata()?.is_dir() && (!file.is_terminal() || in_front());
    Ok(usable.then(|| file.into()))
}
