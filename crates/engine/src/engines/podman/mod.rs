//! `podman`, run by root; and the code that the rootless engine shares with it.

mod app;
pub(super) mod cli;
mod image;

use std::process::Command;

use model::{EngineKind, Requirement};

use super::calls::{Calls, Form, Namespaces, Network, Source};
use super::info::Info;
use crate::error::Result;
use crate::identity::Identity;
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, made, mounts, process, programs};
use cli::Cli;

pub(super) static INFO: Info = Info {
    engine: |_| Box::new(Podman),
    programs: || cli::programs(false),
    wipe,
    run: None,
    steps: None,
    calls: Some(&Podman),
    apps: Some(&app::Cells),
};

struct Podman;

impl Engine for Podman {
    fn kind(&self) -> EngineKind {
        EngineKind::Podman
    }

    fn requirements(&self) -> Vec<Requirement> {
        vec![
            programs::requirement("podman", "podman"),
            programs::root("podman as a rootful engine"),
            cli::runtime_requirement(false),
        ]
    }

    fn version(&self) -> Option<String> {
        cli::version(false)
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
                let cli = Cli::rootful(spec)?;
                cli.prepare()?;
                cli.make(spec, |_| ())
            },
            wipe,
        )
    }
}

impl Calls for Podman {
    fn forms(&self) -> &'static [Form] {
        const FORMS: &[Form] = &[
            Form::new("podman", Source::Image, Network::Connected),
            Form::new("podman, rootfs", Source::Rootfs, Network::Connected),
            Form::new("podman, no net", Source::Image, Network::None),
            Form::new("podman, host net", Source::Image, Network::Host),
        ];
        FORMS
    }

    fn prepare(&self, spec: &CellSpec) -> Result<Option<Namespaces>> {
        let namespaces = Namespaces::make()?;
        let cli = Cli::rootful(spec)?;
        cli.prepare_with("overlay")?;
        let archive = made::pack(spec)?;
        let mut import = cli.command()?;
        namespaces.enter(&mut import);
        import.arg("import").arg(archive).arg(cli::IMAGE);
        process::run_quiet(&mut import, &made::log(spec))?;
        Ok(Some(namespaces))
    }

    fn call(
        &self,
        spec: &CellSpec,
        own: Option<&Namespaces>,
        source: Source,
        network: Network,
    ) -> Result<Command> {
        let mut command = Cli::rootful(spec)?.call(spec, source, network.name())?;
        if let Some(own) = own {
            own.enter(&mut command);
        }
        Ok(command)
    }
}

fn wipe(cell: &dyn Identity) -> Result<()> {
    app::wipe_shared(cell)?;
    app::wipe_monitor(cell)?;
    Cli::rootful(cell)?.wipe(|_| ())?;
    mounts::remove_below(&made::state(cell))
}
