use std::path::{Path, PathBuf};

use crate::EngineKind;

/// What a cell is made from. Relative paths count from the directory of the mission file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Image {
    /// A directory that becomes the cell's root.
    Rootfs(PathBuf),
    /// An OCI bundle: a directory with `config.json`, whose rights are replaced by those of the mission.
    Bundle(PathBuf),
    /// A name by which the engine knows an image, such as `localhost/camera:1.2`.
    Reference(String),
    /// A static program, which is all that the cell's root holds.
    Binary(PathBuf),
}

impl Image {
    /// The key used in files.
    pub const fn key(&self) -> &'static str {
        match self {
            Image::Rootfs(_) => "rootfs",
            Image::Bundle(_) => "bundle",
            Image::Reference(_) => "reference",
            Image::Binary(_) => "binary",
        }
    }

    /// The path on the host, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Image::Rootfs(path) | Image::Bundle(path) | Image::Binary(path) => Some(path),
            Image::Reference(_) => None,
        }
    }

    /// The engines that make cells of such an image.
    pub const fn engines(&self) -> &'static [EngineKind] {
        match self {
            Image::Rootfs(_) | Image::Binary(_) => &[
                EngineKind::Embedded,
                EngineKind::Crun,
                EngineKind::Runc,
                EngineKind::Podman,
                EngineKind::PodmanRootless,
            ],
            Image::Bundle(_) => &[EngineKind::Embedded, EngineKind::Crun, EngineKind::Runc],
            Image::Reference(_) => &[
                EngineKind::Podman,
                EngineKind::PodmanRootless,
                EngineKind::Docker,
            ],
        }
    }
}
