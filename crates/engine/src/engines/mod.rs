//! The engines, a folder or file each, and the list of them. Here lives all that differs from engine to engine: making, starting and
//! removing its cells. The code that all of them share, or that asks for a cell of any engine, is beside this folder and never names one.

mod bare;
pub(crate) mod calls;
mod crun;
mod docker;
pub(crate) mod embedded;
pub(crate) mod info;
mod jailhouse;
mod podman;
mod podman_rootless;
mod qemu;
mod runc;
mod runtime;

use std::path::PathBuf;

use host::provenance::EngineFound;
use model::EngineKind;

use crate::Engine;
pub(crate) use info::Info;
pub use info::{Options, Steps};
pub use qemu::{Machine, boot_command};

/// The engine of a kind. Adding one: a file here, a line here, and its description in [`EngineKind`].
pub(crate) fn info(kind: EngineKind) -> &'static Info {
    match kind {
        EngineKind::Bare => &bare::INFO,
        EngineKind::Embedded => &embedded::INFO,
        EngineKind::Crun => &crun::INFO,
        EngineKind::Runc => &runc::INFO,
        EngineKind::Podman => &podman::INFO,
        EngineKind::PodmanRootless => &podman_rootless::INFO,
        EngineKind::Docker => &docker::INFO,
        EngineKind::Qemu => &qemu::INFO,
        EngineKind::Jailhouse => &jailhouse::INFO,
    }
}

/// Every engine, in the order in which tables list them.
pub fn all(options: &Options) -> Vec<Box<dyn Engine>> {
    EngineKind::ALL
        .into_iter()
        .map(|kind| by_kind(kind, options))
        .collect()
}

/// The version of each engine that is available, and the problem of each that is not, for provenance and doctor.
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
    (info(kind).engine)(options)
}

/// The installed programs that an engine consists of besides ours.
pub fn programs(kind: EngineKind) -> Vec<PathBuf> {
    (info(kind).programs)()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::mission::ImageKind;

    #[test]
    fn each_engine_does_what_its_description_says() {
        for kind in EngineKind::ALL {
            let info = info(kind);
            assert_eq!(by_kind(kind, &Options::default()).kind(), kind);
            assert_eq!(info.run.is_some(), kind.is_runtime(), "{kind}");
            assert!(info.steps.is_none() || info.run.is_some(), "{kind}");
            let images = ImageKind::ALL
                .into_iter()
                .filter(|image| kind.makes(*image));
            let images: Vec<ImageKind> = images.collect();
            // These are made as cells of another engine (`app::machine`, `app::partition`).
            let makes = info.apps.is_some() || kind.is_machine() || kind.is_partition();
            assert_eq!(makes, !images.is_empty(), "{kind}");
            assert!(makes || kind.no_missions().is_some(), "{kind}");
            let stores = info.apps.is_some_and(|apps| apps.images().is_some());
            assert_eq!(stores, images.contains(&ImageKind::Reference), "{kind}");
        }
    }
}
