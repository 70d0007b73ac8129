//! `embedded`: the OCI runtime linked into timecell. Here live the engine, the child process that drives the
//! runtime library, and the private root in which that child works without root's powers.
//!
//! The library changes the working directory and the dumpable flag of its whole process, so every container is
//! made by a single-threaded child: our own binary, executed again with the hidden word `oci-child`.

mod app;
mod child;
mod private_root;
mod stamps;
mod words;

use std::process::Command;

use model::{EngineKind, Requirement};

use super::info::Info;
use crate::error::Result;
use crate::made::{self, Payload};
use crate::note::MARK;
use crate::oci;
use crate::{
    Cell, CellSpec, Engine, EngineError, Footprint, cgroups, process, programs, reach, users,
};

pub(crate) use child::child;
pub(crate) use stamps::VARIABLE as STAMPS;
pub(crate) use words::Errors;

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Embedded),
    programs: Vec::new,
    // The mounts went with the cell's mount namespace.
    wipe: |cell| cgroups::remove(cell.id()),
    run: Some(|spec| Ok(again(spec, child::RUN))),
    steps: None,
    calls: None,
    apps: Some(&app::Cells),
};

struct Embedded;

impl Engine for Embedded {
    fn kind(&self) -> EngineKind {
        EngineKind::Embedded
    }

    fn requirements(&self) -> Vec<Requirement> {
        let privilege = match programs::is_root() {
            true => programs::root("embedded"),
            false => users::namespaces(),
        };
        vec![privilege, mount_attributes()]
    }

    fn version(&self) -> Option<String> {
        Some("libcontainer 0.7".to_owned())
    }

    fn cell_sets_class(&self) -> bool {
        programs::is_root()
    }

    fn footprint(&self) -> Footprint {
        Footprint::CONTAINER
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(spec, || make(spec), INFO.wipe)
    }
}

/// The library mounts everything by calls of which this is the newest.
fn mount_attributes() -> Requirement {
    const WHAT: &str = "mount_setattr";
    // SAFETY: a size of 0 is refused before anything is read.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            -1,
            c"".as_ptr(),
            0,
            0_usize,
            0_usize,
        )
    };
    let is_there =
        answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
    match is_there {
        true => Requirement::met(WHAT, "the kernel has it"),
        false => Requirement::unmet(
            WHAT,
            "embedded needs Linux 5.12, and this kernel is older",
            "take crun or runc, which do without it",
        ),
    }
}

fn make(spec: &CellSpec) -> Result<Payload> {
    oci::write_bundle(spec, oci::power(spec))?;
    process::run(&mut again(spec, child::START), &made::log(spec))?;
    Ok(Payload {
        pid: oci::read_pid(&oci::pid_file(spec))?,
        // The payload outlives the process that made it; the machine's init is its parent.
        child: None,
        helper: None,
    })
}

/// Our own binary, to be executed once more as the child that makes the container.
fn again(spec: &CellSpec, deed: &str) -> Command {
    let mut command = Command::new(spec.rootfs.join("timecell"));
    command
        .arg("oci-child")
        .arg(deed)
        .arg(std::process::id().to_string())
        .arg(&spec.id)
        .arg(made::state(spec))
        .arg(&spec.rootfs)
        .arg(&spec.shared)
        .arg(spec.rights.limits.vcpus.unwrap_or(0).to_string())
        .arg(spec.rights.limits.memory_bytes.unwrap_or(0).to_string())
        .env_clear()
        .env(MARK, &spec.id)
        .current_dir("/");
    reach::become_user(&mut command, spec);
    command
}
