//! `podman`, run by root.

use model::{EngineKind, Requirement};

use crate::app::podman as podman_app;
use crate::identity::Identity;
use crate::podman_cli::{self, Podman as Cli};
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, programs};

/// The engine.
pub(crate) struct Podman;

impl Engine for Podman {
    fn kind(&self) -> EngineKind {
        EngineKind::Podman
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("podman", "podman"),
            programs::root("podman as a rootful engine"),
            podman_cli::runtime_requirement(false),
        ]
    }

    fn version(&self) -> Option<String> {
        podman_cli::version(false)
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        // conmon, and its own group; on cgroup v2 it watches for `oom_kill` by inotify.
        Footprint {
            processes: 2,
            files: 36,
            inotify_v2: 1,
            memory_groups: 3,
            memory_kib: 9 << 10,
            ..Footprint::CONTAINER
        }
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(
            spec,
            || {
                let cli = cli(spec)?;
                cli.prepare()?;
                cli.make(spec, |_| ())
            },
            wipe,
        )
    }
}

pub(crate) fn cli(cell: &dyn Identity) -> Result<Cli<'_>, String> {
    let (_, runtime) = podman_cli::runtime(false).ok_or("there is no OCI runtime for podman")?;
    Ok(Cli {
        cell,
        runtime,
        rootless: false,
    })
}

pub(crate) fn wipe(cell: &dyn Identity) -> Result<(), String> {
    podman_app::wipe_shared(cell)?;
    podman_app::wipe_monitor(cell)?;
    cli(cell)?.wipe(|_| ())
}
