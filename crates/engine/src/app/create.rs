//! Making a cell of an application, and taking one over.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use model::{EngineKind, Requirement};

use super::cell::AppCell;
use super::check::check;
use super::log::{self, Log};
use super::making::{Ends, Launcher, Streams};
use super::program::Program;
use super::record::Record;
use super::spec::{AppSpec, Image, Network};
use super::{Seccomp, config, podman, start};
use crate::process::Process;
use crate::{EngineError, cgroups, limits, made, note, oci, process, seccomp, sweep};

const DOING: &str = "create the cell";
/// How long a bare cell may take to be ready.
const READINESS: Duration = Duration::from_secs(60);

/// Creates a cell whose program waits for [`AppCell::start`]: its pid is known, so that it can be given its class, its
/// cpus and its groups before its first instruction.
///
/// # Errors
/// Says what of the specification cannot be had, before anything is made; else in the engine's words, and whatever was
/// made until then is removed.
pub fn create(
    spec: &AppSpec,
    streams: Streams,
    launcher: &Launcher,
) -> Result<AppCell, EngineError> {
    let failed = |cause: String| made::error(spec, DOING, cause);
    let (spec, program) = check(spec).map_err(failed)?;
    if sweep::is_left(&spec.work_dir) {
        return Err(failed(format!(
            "there is a cell in {} already; take it over or sweep it away",
            spec.work_dir.display()
        )));
    }
    // What has this id already was not made here, and is not undone here.
    free(&spec).map_err(failed)?;
    note::keep(&spec, &spec.work_dir).map_err(failed)?;
    make(&spec, program.as_ref(), streams, launcher).map_err(|cause| {
        let cleared = made::clear(&spec, sweep::wipe(spec.engine));
        failed(match cleared {
            Ok(()) => cause,
            Err(left) => format!("{cause}; and afterwards {left}"),
        })
    })
}

/// That nothing on the machine has the cell's id.
fn free(spec: &AppSpec) -> Result<(), String> {
    if let Some((pid, group)) = cgroups::occupant(&spec.id) {
        return Err(format!(
            "the name `{}` is taken: process {pid} runs in {} and was not started here; end it, or choose another name",
            spec.id,
            group.display()
        ));
    }
    Ok(())
}

fn make(
    spec: &AppSpec,
    program: Option<&Program>,
    streams: Streams,
    launcher: &Launcher,
) -> Result<AppCell, String> {
    let state = made::state(spec);
    (DirBuilder::new().mode(0o700).recursive(true).create(&state))
        .map_err(|error| format!("{}: {error}", state.display()))?;
    let said_before = log::position(&spec.work_dir);
    let Ends {
        stdin,
        stdout,
        stderr,
        mut log,
    } = streams
        .open(spec, program)
        .map_err(|error| error.to_string())?;
    let (mut report, end) = start::report().map_err(|error| error.to_string())?;
    let call = || launcher.command(spec, [&stdout, &stderr, &end]);
    let engine_log = made::log(spec);
    let (pid, report) = match (spec.engine, program) {
        (EngineKind::Bare, _) => {
            let child = process::spawn_on(&mut call(), &engine_log, stdin)?;
            drop(end);
            match report.ready(READINESS)? {
                Some(()) => (child.id().cast_signed(), Some(report)),
                None => return Err(ended_early(child, &engine_log)),
            }
        }
        (EngineKind::Podman, _) => {
            let log = log.as_mut().ok_or(
                "podman writes into the streams of its cells itself; let it have a log, or choose another engine",
            )?;
            podman::create(spec, program)?;
            let made = process::run(&mut call(), &engine_log);
            // podman has written into the cell's streams: the container's name, or what went wrong.
            let said = log.take().map_err(|error| error.to_string())?;
            made.map_err(|why| if said.is_empty() { why } else { said })?;
            (oci::read_pid(&oci::pid_file(spec))?, None)
        }
        (engine, Some(program)) => {
            config::write(spec, program)?;
            process::run_on(&mut call(), &engine_log, stdin)?;
            drop(end);
            let reports = (engine == EngineKind::Embedded).then_some(report);
            (oci::read_pid(&oci::pid_file(spec))?, reports)
        }
        (_, None) => return Err("nothing is known of the image".to_owned()),
    };
    drop((stdout, stderr));
    let gone = || "its process has ended before it was started".to_owned();
    let process = Process::of(pid).ok_or_else(gone)?;
    let pidfd = process.open().ok_or_else(gone)?;
    if spec.engine == EngineKind::Embedded && spec.network == Network::None {
        // The other engines bring it up themselves.
        host::loopback::up(pidfd.as_fd())
            .map_err(|error| format!("its loopback device stays down: {error}"))?;
    }
    let record = Record::of(process, log.is_some()).map_err(|error| error.to_string())?;
    record.write(&state).map_err(|error| error.to_string())?;
    Ok(AppCell {
        spec: spec.clone(),
        process,
        pidfd,
        record,
        log,
        lent: None,
        report,
        ended: None,
        gone: None,
        removed: false,
        said_before,
    })
}

/// Why a bare cell was never ready.
fn ended_early(mut child: std::process::Child, log: &Path) -> String {
    let status = process::wait(&mut child, READINESS);
    let said = process::tail(log);
    match status {
        _ if !said.is_empty() => said,
        Ok(status) => format!("its process ended with {status}"),
        Err(error) => error,
    }
}

/// What a killed supervisor has left in a cell's private directory.
#[derive(Debug)]
pub enum Adoption {
    /// A cell whose program is there, waiting or running: it is taken over.
    Taken(Box<AppCell>),
    /// A cell whose program has ended, or was never there; [`crate::sweep`] removes the rest.
    Ended,
    /// Nothing.
    Nothing,
}

/// Takes over the cell of this private directory from a supervisor that is gone. The cell is not touched.
///
/// # Errors
/// When note or record cannot be read.
pub fn adopt(work_dir: &Path) -> Result<Adoption, EngineError> {
    let Some(noted) = note::read(work_dir).map_err(|cause| EngineError {
        engine: EngineKind::Bare,
        doing: "read the note of a left cell".to_owned(),
        cause,
    })?
    else {
        return Ok(Adoption::Nothing);
    };
    let failed = |cause: String| made::error(&noted, "take the cell over", cause);
    let text = host::ground::read(&note::path(work_dir), note::MOST_BYTES);
    let text = text.map_err(|error| failed(error.to_string()))?;
    let spec: AppSpec = serde_json::from_slice(&text)
        .map_err(|error| failed(format!("it runs no application: {error}")))?;
    let state = made::state(&spec);
    let Some(record) = Record::read(&state).map_err(failed)? else {
        return Ok(Adoption::Ended);
    };
    let Some((process, pidfd)) =
        (record.process()).and_then(|process| Some((process, process.open()?)))
    else {
        return Ok(Adoption::Ended);
    };
    // The descriptor keeps another process from getting the pid between this look and whatever is done to it.
    if !process::is_of(process.pid, &spec.id) && !process::ended(&pidfd, Duration::ZERO) {
        return Err(failed(format!(
            "its record names process {}, which is not in the cell's groups and does not carry its mark; it is left alone",
            process.pid
        )));
    }
    let log = (record.logged)
        .then(|| Log::open(&spec.work_dir, spec.log_bytes))
        .transpose()
        .map_err(|error: io::Error| failed(error.to_string()))?;
    Ok(Adoption::Taken(Box::new(AppCell {
        spec,
        process,
        pidfd,
        record,
        log,
        lent: None,
        report: None,
        ended: None,
        gone: None,
        removed: false,
        said_before: 0,
    })))
}

/// The first thing that an engine needs for cells with a filter of system calls, and does not have here. No program is run to find
/// it out, so that a thread that must not wait can ask.
pub fn unmet(engine: EngineKind) -> Option<Requirement> {
    let needs = crate::by_kind(engine, &crate::Options::default()).requirements();
    needs.into_iter().chain([filters()]).find(|need| !need.met)
}

fn filters() -> Requirement {
    match seccomp::is_supported() {
        true => Requirement::met("seccomp", "the kernel has filters"),
        false => Requirement::unmet(
            "seccomp",
            "this kernel has no filters of system calls",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

/// What this cell needs of the machine beyond its engine, met and unmet. Without the met ones it cannot be created; a
/// limit that is not met is lower than what was granted.
pub fn requirements(spec: &AppSpec) -> Vec<Requirement> {
    let mut needs = crate::by_kind(spec.engine, &crate::Options::default()).requirements();
    if spec.grants.seccomp != Seccomp::Off {
        needs.push(filters());
    }
    if let Image::Reference(name) = &spec.image {
        needs.push(podman::image_requirement(name));
    }
    for (limit, wanted) in limits::short_of(&spec.grants) {
        needs.push(Requirement::unmet(
            limit.name,
            format!(
                "{wanted} is granted, but no more than {} can be given: the own limit is lower, and there is no CAP_SYS_RESOURCE",
                limit.value
            ),
            "raise the limit of the supervisor, such as by `LimitRTPRIO=` of its service",
        ));
    }
    needs
}
