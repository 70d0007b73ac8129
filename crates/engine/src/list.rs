//! The engines that there are.

use host::provenance::EngineFound;
use model::EngineKind;

use std::path::PathBuf;

use crate::{
    Engine, bare, crun, docker, embedded, podman, podman_cli, podman_rootless, programs, runc,
};

/// What the user may choose about engines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Who runs rootless cells; `None`: see [`crate::users::choose`].
    pub rootless_user: Option<String>,
}

/// Every engine, in the order in which tables list them.
pub fn all(options: &Options) -> Vec<Box<dyn Engine>> {
    EngineKind::ALL
        .into_iter()
        .map(|kind| by_kind(kind, options))
        .collect()
}

/// Version of each engine that is there, and the problem of each that is not, for provenance and doctor.
pub fn found(options: &Options) -> Vec<EngineFound> {
    let describe = |engine: Box<dyn Engine>| EngineFound {
        name: engine.kind().name().to_owned(),
        version: engine.version(),
        path: None,
        problem: (engine.requirements().into_iter())
            .find(|requirement| !requirement.met)
            .map(|requirement| requirement.reason),
    };
    all(options).into_iter().map(describe).collect()
}

/// One engine.
pub fn by_kind(kind: EngineKind, options: &Options) -> Box<dyn Engine> {
    match kind {
        EngineKind::Bare => Box::new(bare::Bare),
        EngineKind::Embedded => Box::new(embedded::Embedded),
        EngineKind::Crun => Box::new(crun::Crun),
        EngineKind::Runc => Box::new(runc::Runc),
        EngineKind::Podman => Box::new(podman::Podman),
        EngineKind::PodmanRootless => Box::new(podman_rootless::PodmanRootless {
            user: options.rootless_user.clone(),
        }),
        EngineKind::Docker => Box::new(docker::Docker),
    }
}

/// The programs that an engine consists of besides ours, where they are installed.
pub fn programs(kind: EngineKind) -> Vec<PathBuf> {
    let names: &[&str] = match kind {
        EngineKind::Bare | EngineKind::Embedded => &[],
        EngineKind::Crun => &["crun"],
        EngineKind::Runc => &["runc"],
        EngineKind::Podman | EngineKind::PodmanRootless => &["podman", "conmon"],
        EngineKind::Docker => &["docker"],
    };
    let mut found: Vec<PathBuf> = names
        .iter()
        .filter_map(|name| programs::find(name))
        .collect();
    if matches!(kind, EngineKind::Podman | EngineKind::PodmanRootless) {
        let runtime = podman_cli::runtime(kind == EngineKind::PodmanRootless);
        found.extend(runtime.map(|(_, path)| path));
    }
    found
}
