//! `podman`, run by an unprivileged user: ourselves, or the chosen one where we are root.

use model::{EngineKind, Requirement};

use crate::identity::Identity;
use crate::podman_cli::{self, Podman as Cli};
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, reach, users};

/// The engine.
pub(crate) struct PodmanRootless {
    /// The user asked for.
    pub(crate) user: Option<String>,
}

impl Engine for PodmanRootless {
    fn kind(&self) -> EngineKind {
        EngineKind::PodmanRootless
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            crate::programs::requirement("podman", "podman"),
            podman_cli::runtime_requirement(true),
            crate::programs::requirement("newuidmap", "uidmap"),
            users::requirement(self.user.as_deref()),
            users::namespaces(),
        ]
    }

    fn version(&self) -> Option<String> {
        podman_cli::version(true)
    }

    fn cell_sets_class(&self) -> bool {
        false
    }

    fn footprint(&self) -> Footprint {
        // conmon, and a process that keeps the user's namespaces open.
        Footprint {
            processes: 3,
            processes_beside: 3,
            files: 38,
            mount_namespaces: 2,
            user_namespaces: 1,
            memory_groups: 0,
            memory_kib: 17 << 10,
            ..Footprint::CONTAINER
        }
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        let spec = match &spec.user {
            Some(_) => spec.clone(),
            None => CellSpec {
                user: Some(
                    users::choose(self.user.as_deref())
                        .map_err(|unmet| made::error(spec, "choose the user", unmet.reason))?,
                ),
                ..spec.clone()
            },
        };
        made::create(&spec, || make(&spec), wipe)
    }
}

fn make(spec: &CellSpec) -> Result<crate::made::Payload, String> {
    let cli = cli(spec)?;
    cli.prepare()?;
    if let Some(user) = reach::other_user(spec) {
        reach::give(spec, &[&cli.home()], user)?;
    }
    cli.make(spec, |command| reach::become_user(command, spec))
}

pub(crate) fn cli(cell: &dyn Identity) -> Result<Cli<'_>, String> {
    let (_, runtime) = podman_cli::runtime(true).ok_or("there is no OCI runtime for podman")?;
    Ok(Cli {
        cell,
        runtime,
        rootless: true,
    })
}

pub(crate) fn wipe(cell: &dyn Identity) -> Result<(), String> {
    cli(cell)?.wipe(|command| reach::become_user(command, cell))
}
