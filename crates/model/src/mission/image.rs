//! What a cell is made from.

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

    /// What kind of image it is.
    pub const fn kind(&self) -> ImageKind {
        match self {
            Image::Rootfs(_) => ImageKind::Rootfs,
            Image::Bundle(_) => ImageKind::Bundle,
            Image::Reference(_) => ImageKind::Reference,
            Image::Binary(_) => ImageKind::Binary,
        }
    }

    /// The engines that make cells of such an image.
    pub const fn engines(&self) -> &'static [EngineKind] {
        self.kind().engines()
    }
}

/// The kinds of images. Which engines make cells of which stands here and nowhere else: admission and the making of
/// cells go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// See [`Image::Rootfs`].
    Rootfs,
    /// See [`Image::Bundle`].
    Bundle,
    /// See [`Image::Reference`].
    Reference,
    /// See [`Image::Binary`].
    Binary,
}

impl ImageKind {
    /// Every engine that makes cells of applications.
    pub const ENGINES: [EngineKind; 4] = [
        EngineKind::Embedded,
        EngineKind::Crun,
        EngineKind::Runc,
        EngineKind::Podman,
    ];

    /// The engines that make cells of such an image.
    pub const fn engines(self) -> &'static [EngineKind] {
        match self {
            ImageKind::Rootfs | ImageKind::Binary => &ImageKind::ENGINES,
            ImageKind::Bundle => &[EngineKind::Embedded, EngineKind::Crun, EngineKind::Runc],
            ImageKind::Reference => &[EngineKind::Podman],
        }
    }
}

/// Why missions have no cells of an engine that there is.
pub(crate) const fn no_missions(engine: EngineKind) -> Option<&'static str> {
    match engine {
        EngineKind::Bare => {
            Some("makes plain processes, which nothing keeps from the rest of the machine")
        }
        EngineKind::PodmanRootless => Some(
            "makes no cells of missions: an ordinary user may neither give a cell its budget nor hold it to one",
        ),
        EngineKind::Docker => Some(
            "makes no cells of missions: its daemon starts programs itself, before they have their budget",
        ),
        EngineKind::Embedded | EngineKind::Crun | EngineKind::Runc | EngineKind::Podman => None,
    }
}
