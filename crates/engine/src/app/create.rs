//! Making a cell of an application, and adopting one.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use host::file::at;
use model::{EngineKind, Requirement};

use super::cell::AppCell;
use super::check::{Checked, check};
use super::engine::{Apps, Images, Made, Making};
use super::log::{self, Log};
use super::making::{Ends, Launcher, Streams};
use super::record::Record;
use super::spec::{AppSpec, Ids, Image};
use super::{Seccomp, program, start};
use crate::agent::{self, Agent};
use crate::engines::{self, info};
use crate::error::{Doing, Error, Result, refused};
use crate::process::Process;
use crate::{EngineError, cgroups, limits, made, marks, note, seccomp, sweep};

const DOING: &str = "create the cell";

/// Creates a cell whose program waits for [`AppCell::start`]: its pid is known, so that it can be given its class, its
/// cpus and its groups before its first instruction.
///
/// # Errors
/// Before anything is made, an impossible part of the specification; later, the engine's error. All that was made until then is removed.
pub fn create(
    spec: &AppSpec,
    streams: Streams,
    launcher: &Launcher,
) -> Result<AppCell, EngineError> {
    let failed = |cause: Error| made::error(spec, DOING, cause);
    let checked = check(spec).map_err(failed)?;
    let spec = &checked.spec;
    if sweep::is_left(&spec.work_dir) {
        return Err(failed(refused!(
            "there is already a cell in {}; adopt it or sweep it away",
            spec.work_dir.display()
        )));
    }
    // A cell that has this id already was not made here, and is not undone here.
    free(spec).map_err(failed)?;
    note::keep(spec, &spec.work_dir).map_err(failed)?;
    make(&checked, streams, launcher)
        .map_err(|cause| failed(made::undone(spec, info(spec.engine).wipe, cause)))
}

/// The part of an engine that makes such cells.
fn apps(engine: EngineKind) -> Result<&'static dyn Apps> {
    (info(engine).apps).ok_or_else(|| refused!("{engine} cannot make cells of applications"))
}

/// Checks that nothing on the machine has the cell's id.
fn free(spec: &AppSpec) -> Result<()> {
    if let Some((pid, group)) = cgroups::occupant(&spec.id) {
        return Err(refused!(
            "the name `{}` is taken: process {pid} runs in {} and was not started here; end it, or choose another name",
            spec.id,
            group.display()
        ));
    }
    Ok(())
}

fn make(checked: &Checked, streams: Streams, launcher: &Launcher) -> Result<AppCell> {
    let (spec, program) = (&checked.spec, checked.program.as_ref());
    let apps = apps(spec.engine)?;
    let state = made::state(spec);
    (DirBuilder::new().mode(0o700).recursive(true).create(&state)).map_err(at(&state))?;
    program::keep(program, &state).map_err(at(&state))?;
    let said_before = log::position(&spec.work_dir);
    let Ends {
        stdin,
        stdout,
        stderr,
        mut log,
    } = streams.open(spec, program)?;
    let (report, end) = start::report()?;
    let (agent, of_agent) = agent::start(spec, launcher, apps.delivery())?.unzip();
    let of_agent = of_agent.flatten();
    let ends = [&stdout, &stderr, &end].into_iter().chain(&of_agent);
    let ends: Vec<_> = ends.map(AsFd::as_fd).collect();
    let call = launcher.command(spec, &checked.sources, &ends);
    let Made { pid, report } = apps.make(Making {
        spec,
        program,
        sources: &checked.sources,
        call,
        stdin,
        log: log.as_mut(),
        report,
        end,
    })?;
    drop((stdout, stderr, of_agent));
    let gone = || "its process ended before it was started".to_owned();
    let process = Process::of(pid).ok_or_else(gone)?;
    let pidfd = process.open().ok_or_else(gone)?;
    apps.complete(spec, pidfd.as_fd())?;
    let record = Record::of(process, log.is_some())?;
    record.write(&state)?;
    Ok(AppCell {
        spec: spec.clone(),
        apps,
        wipe: info(spec.engine).wipe,
        process,
        pidfd,
        record,
        agent,
        log,
        lent: None,
        report,
        ended: None,
        gone: None,
        removed: false,
        said_before,
    })
}

/// The remains that a killed supervisor has left in a cell's private directory.
#[derive(Debug)]
pub enum Adoption {
    /// A cell whose program is there, waiting or running: it is adopted.
    Taken(Box<AppCell>),
    /// A cell whose program has ended, or was never there; [`crate::sweep`] removes the rest.
    Ended,
    /// Nothing.
    Nothing,
}

/// Adopts the cell of this private directory from a supervisor that is gone. The cell itself is not touched.
///
/// # Errors
/// When note or record cannot be read.
pub fn adopt(work_dir: &Path) -> Result<Adoption, EngineError> {
    let Some(noted) = note::read(work_dir).map_err(|source| EngineError {
        engine: EngineKind::Bare,
        doing: "read the note of a left cell".to_owned(),
        source,
    })?
    else {
        return Ok(Adoption::Nothing);
    };
    let failed = |cause: Error| made::error(&noted, "adopt the cell", cause);
    let text = host::ground::read(&note::path(work_dir), note::MOST_BYTES);
    let text = text.map_err(|error| failed(error.into()))?;
    let spec: AppSpec = serde_json::from_slice(&text)
        .doing(|| "it does not run an application")
        .map_err(failed)?;
    let apps = apps(spec.engine).map_err(failed)?;
    let state = made::state(&spec);
    let Some(record) = Record::read(&state).map_err(failed)? else {
        return Ok(Adoption::Ended);
    };
    let Some((process, pidfd)) =
        (record.process()).and_then(|process| Some((process, process.open()?)))
    else {
        return Ok(Adoption::Ended);
    };
    // The descriptor keeps another process from getting the pid between this look and the next steps.
    if !marks::is_of(process.pid, &spec.id) && !host::pidfd::ended_within(&pidfd, Duration::ZERO) {
        return Err(failed(refused!(
            "its record names process {}, which is not in the cell's groups and is not seen to carry its mark; it is left alone",
            process.pid
        )));
    }
    let log = (record.logged)
        .then(|| Log::open(&spec.work_dir, spec.log_bytes))
        .transpose()
        .map_err(|error: io::Error| failed(error.into()))?;
    Ok(Adoption::Taken(Box::new(AppCell {
        wipe: info(spec.engine).wipe,
        agent: Agent::find(&spec).map_err(failed)?,
        spec,
        apps,
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

/// The first thing that an engine needs for cells with a system-call filter and lacks here. No program is run to find out, so that a thread that must
/// not wait can ask.
pub fn unmet(engine: EngineKind) -> Option<Requirement> {
    let needs = engines::by_kind(engine, &engines::Options::default()).requirements();
    needs.into_iter().chain([filters()]).find(|need| !need.met)
}

fn filters() -> Requirement {
    match seccomp::is_supported() {
        true => Requirement::met("seccomp", "the kernel has system-call filters"),
        false => Requirement::unmet(
            "seccomp",
            "this kernel has no system-call filters",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

fn images(engine: EngineKind) -> Option<&'static dyn Images> {
    info(engine).apps?.images()
}

/// Whether the engine's storage has an image of this name; `None` where the engine has no storage, or does not answer within 10 s.
pub fn knows_image(engine: EngineKind, name: &str) -> Option<bool> {
    images(engine)?.knows(name)
}

/// User and group of the program of an image in the engine's storage.
///
/// # Errors
/// Why they are not known, a clause: the engine does not say, or the image gives a name, whose number only files in the image tell.
pub fn image_user(engine: EngineKind, name: &str) -> Result<Ids> {
    let images = images(engine).ok_or_else(|| format!("{engine} has no images"))?;
    images.user(name)
}

/// Whether the engine itself writes to the streams of its cells, so that they must go to a log.
pub fn writes_output(engine: EngineKind) -> bool {
    info(engine).apps.is_some_and(Apps::writes_output)
}

/// Requirements of this cell, those of its engine included, met and unmet. Without the met ones it cannot be created; a
/// limit that is not met is lower than the grant.
pub fn requirements(spec: &AppSpec) -> Vec<Requirement> {
    let mut needs = engines::by_kind(spec.engine, &engines::Options::default()).requirements();
    if spec.grants.seccomp != Seccomp::Off {
        needs.push(filters());
    }
    if let Image::Reference(name) = &spec.image {
        needs.extend(images(spec.engine).map(|images| images.requirement(name)));
    }
    for (limit, wanted) in limits::short_of(&spec.grants) {
        needs.push(Requirement::unmet(
            limit.name,
            format!(
                "{wanted} is granted, but at most {} can be given: timecell's own limit is lower, and it lacks CAP_SYS_RESOURCE",
                limit.value
            ),
            "raise the supervisor's limit, for example with `LimitRTPRIO=` in its service",
        ));
    }
    needs
}
