//! What a cell is made from.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a cell is made from. Relative paths start at the directory of the mission file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Image {
    /// A directory that becomes the cell's root.
    Rootfs(PathBuf),
    /// An OCI bundle: a directory with `config.json`; the mission's rights replace those in it.
    Bundle(PathBuf),
    /// A name by which the engine knows an image, such as `localhost/camera:1.2`.
    Reference(String),
    /// A static program, the only file in the cell's root.
    Binary(PathBuf),
}

impl Image {
    /// The key used in files.
    pub const fn key(&self) -> &'static str {
        self.kind().name()
    }

    /// The path on the host, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Image::Rootfs(path) | Image::Bundle(path) | Image::Binary(path) => Some(path),
            Image::Reference(_) => None,
        }
    }

    /// The same with another path on the host, if it has one.
    #[must_use]
    pub fn with_path(&self, other: impl FnOnce(&Path) -> PathBuf) -> Image {
        match self {
            Image::Rootfs(path) => Image::Rootfs(other(path)),
            Image::Bundle(path) => Image::Bundle(other(path)),
            Image::Binary(path) => Image::Binary(other(path)),
            Image::Reference(name) => Image::Reference(name.clone()),
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
}

choice! {
    /// The kinds of images. Which engines make cells from which: [`crate::EngineKind::makes`].
    pub enum ImageKind {
        /// See [`Image::Rootfs`].
        Rootfs = "rootfs",
        /// See [`Image::Bundle`].
        Bundle = "bundle",
        /// See [`Image::Reference`].
        Reference = "reference",
        /// See [`Image::Binary`].
        Binary = "binary",
    }
}
