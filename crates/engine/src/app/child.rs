//! The re-executed, single-threaded process that makes an application's cell: it prepares the root in a mount namespace
//! of its own, then builds the container with the runtime library, becomes the runtime, or becomes the cell itself.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use host::sched::Class;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use model::EngineKind;

use super::executor::Guard;
use super::program::Program;
use super::spec::{AppSpec, Image};
use super::{bare, groups, podman, root, runtime};
use crate::embedded::private_root::{self, Seen};
use crate::embedded::{chain, die_with};
use crate::seccomp::{Filter, policy};
use crate::{made, note, oci};

/// The hidden word for this kind of cell.
pub(crate) const APP: &str = "app";

/// The ends of a cell's streams and of its report, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handed {
    pub(super) stdout: RawFd,
    pub(super) stderr: RawFd,
    pub(super) report: RawFd,
}

/// Makes the cell whose note is in a directory; `words` are what [`super::Launcher`] put behind [`APP`].
pub(crate) fn child(words: &[String]) -> Result<(), String> {
    let [parent, work_dir, ends @ ..] = words else {
        return Err("oci-child: words are missing".to_owned());
    };
    let ends: Vec<RawFd> = ends.iter().filter_map(|end| end.parse().ok()).collect();
    let [stdout, stderr, report] = ends[..] else {
        return Err("oci-child: descriptors are missing".to_owned());
    };
    let handed = Handed {
        stdout,
        stderr,
        report,
    };
    die_with(parent)?;
    // Executed by the number of a descriptor, it would have that for its name.
    // SAFETY: a name that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"timecell".as_ptr()) };
    let spec = read(Path::new(work_dir))?;
    be_ordinary(spec.oom_score_adj)?;
    match spec.engine {
        EngineKind::Embedded => embedded(&spec, &Program::of(&spec)?, handed),
        EngineKind::Crun | EngineKind::Runc => {
            runtime::become_it(&spec, &Program::of(&spec)?, handed)
        }
        EngineKind::Bare => bare::become_it(&spec, &Program::of(&spec)?, handed),
        EngineKind::Podman => podman::become_it(&spec, handed),
        other => Err(format!("{other} makes no cells of applications")),
    }
}

fn read(work_dir: &Path) -> Result<AppSpec, String> {
    let path = note::path(work_dir);
    let text = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Gives up what a supervisor has and no cell is to inherit: class, niceness, cpus, groups, protection when memory is
/// short.
fn be_ordinary(oom_score_adj: u16) -> Result<(), String> {
    host::sched::set_class(0, &Class::Other).map_err(|error| error.to_string())?;
    let cpus = host::cpus::possible().map_err(|error| error.to_string())?;
    host::sched::set_affinity(0, &cpus).map_err(|error| error.to_string())?;
    let failed = |what: &str| format!("cannot {what}: {}", io::Error::last_os_error());
    // SAFETY: no memory is involved.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 0) } != 0 {
        return Err(failed("reset the niceness"));
    }
    // SAFETY: no groups are read from the null pointer.
    if unsafe { libc::setgroups(0, std::ptr::null()) } != 0 {
        return Err(failed("leave the supplementary groups"));
    }
    // SAFETY: no memory is involved.
    unsafe { libc::umask(0o022) };
    let protection = "/proc/self/oom_score_adj";
    let own = fs::read_to_string(protection).unwrap_or_default();
    // Who is more ready to go than the cell is to be stays so: only the lowering of it is privileged.
    if own
        .trim()
        .parse::<i32>()
        .is_ok_and(|own| own < i32::from(oom_score_adj))
    {
        let wanted = oom_score_adj.to_string();
        fs::write(protection, wanted).map_err(|error| format!("{protection}: {error}"))?;
    }
    Ok(())
}

fn embedded(spec: &AppSpec, program: &Program, handed: Handed) -> Result<(), String> {
    let guard = Guard {
        filter: Filter::of(&policy(&spec.grants, spec.network))?,
        report: handed.report,
    };
    let mut groups = groups::make(spec)?;
    groups::limit(spec)?;
    let state = made::state(spec);
    private_root::enter(&state, &seen(spec, program))?;
    root::build(spec, program)?;
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    let (stdout, stderr) = unsafe {
        (
            OwnedFd::from_raw_fd(handed.stdout),
            OwnedFd::from_raw_fd(handed.stderr),
        )
    };
    let mut container = ContainerBuilder::new(spec.id.clone(), SyscallType::default())
        .with_executor(guard)
        .with_stdout(stdout)
        .with_stderr(stderr)
        .with_root_path(oci::runtime_state(spec))
        .and_then(|builder| builder.with_pid_file(Some(oci::pid_file(spec))))
        .and_then(ContainerBuilder::validate_id)
        .and_then(|builder| {
            builder
                .as_init(oci::bundle(spec))
                .with_systemd(false)
                .build()
        })
        .map_err(|error| chain(&error))?;
    let pid = container.pid().ok_or("the container has no pid")?.as_raw();
    groups.enter(pid)?;
    groups.reap_helper();
    // Nothing of it is needed any more, and nothing of it may be undone.
    container.set_clean_up_intel_rdt_directory(false);
    Ok(())
}

/// What of the host making this cell takes, outer directories first.
fn seen(spec: &AppSpec, program: &Program) -> Vec<Seen> {
    let binary = match &spec.image {
        Image::Binary(binary) => Some(binary.clone()),
        _ => None,
    };
    let binds = spec.binds.iter().map(|bind| Seen {
        path: bind.source.clone(),
        follows: false,
    });
    let mut seen: Vec<Seen> = (program.root.clone().into_iter())
        .chain(binary)
        .map(Seen::following)
        .chain(binds)
        .collect();
    seen.sort();
    seen
}
