//! `podman`, run by an unprivileged user: ourselves, or the chosen one where we are root.

use std::process::Command;

use model::{EngineKind, Requirement};

use super::calls::{Calls, Form, Namespaces, Network, Source};
use super::info::Info;
use super::podman::cli::{self, Cli};
use crate::error::Result;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, programs, reach, users};

pub(super) static INFO: Info = Info {
    engine: |options| {
        Box::new(PodmanRootless {
            user: options.rootless_user.clone(),
        })
    },
    programs: || cli::programs(true),
    wipe: |cell| Cli::rootless(cell)?.wipe(|command| reach::become_user(command, cell)),
    run: None,
    steps: None,
    calls: Some(&Once),
    apps: None,
};

struct PodmanRootless {
    /// The user asked for.
    user: Option<String>,
}

impl Engine for PodmanRootless {
    fn kind(&self) -> EngineKind {
        EngineKind::PodmanRootless
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("podman", "podman"),
            cli::runtime_requirement(true),
            programs::requirement("newuidmap", "uidmap"),
            users::requirement(self.user.as_deref()),
            users::namespaces(),
        ]
    }

    fn version(&self) -> Option<String> {
        cli::version(true)
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
        made::create(&spec, || make(&spec), INFO.wipe)
    }
}

fn make(spec: &CellSpec) -> Result<made::Payload> {
    prepare(spec)?.make(spec, |command| reach::become_user(command, spec))
}

/// The call with its private storage, within the user's reach.
fn prepare(spec: &CellSpec) -> Result<Cli<'_>> {
    let cli = Cli::rootless(spec)?;
    cli.prepare()?;
    if let Some(user) = reach::other_user(spec) {
        reach::give(spec, &[&cli.home()], user)?;
    }
    Ok(cli)
}

/// Containers by one call.
struct Once;

impl Calls for Once {
    fn forms(&self) -> &'static [Form] {
        const FORMS: &[Form] = &[
            Form::new("podman rootless", Source::Rootfs, Network::Connected),
            Form::new("podman rootless, no net", Source::Rootfs, Network::None),
            Form::new("podman rootless, host net", Source::Rootfs, Network::Host),
        ];
        FORMS
    }

    fn network_needs(&self, network: Network) -> Vec<Requirement> {
        match network {
            Network::Connected => vec![
                programs::requirement("slirp4netns", "slirp4netns"),
                users::tap_device(),
            ],
            Network::None | Network::Host => Vec::new(),
        }
    }

    fn prepare(&self, spec: &CellSpec) -> Result<Option<Namespaces>> {
        prepare(spec).map(|_| None)
    }

    fn call(
        &self,
        spec: &CellSpec,
        _: Option<&Namespaces>,
        source: Source,
        network: Network,
    ) -> Result<Command> {
        let network = match network {
            Network::Connected => "slirp4netns",
            other => other.name(),
        };
        Cli::rootless(spec)?.call(spec, source, network)
    }
}
