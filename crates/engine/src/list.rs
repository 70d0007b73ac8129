use host::provenance::EngineFound;
use model::EngineKind;

use crate::{Engine, bare, crun, docker, embedded, podman, podman_rootless, runc};

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
