//! The images of cells.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Cell;
use crate::file::{Kind, Node, Shape, Writer, keys, quoted};

/// The image from which a cell is made. Relative paths start at the directory of the mission file.
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
    /// The program of a partition beside Linux, as it is loaded into its memory.
    Inmate(PathBuf),
}

/// The keys of an image.
pub(super) static IMAGE: Shape = Shape {
    title: "`image`",
    name: "image",
    doc: "What a cell is made from: one of these. Relative paths start at the directory of the mission file.",
    choice: true,
    keys: keys! {
        "rootfs": Kind::HostPath, Without "",
            "directory that becomes the cell's root; engines `embedded`, `crun`, `runc`, `podman`";
        "bundle": Kind::HostPath, Without "",
            "OCI bundle: a directory with `config.json`; the mission's rights replace those in it; engines `embedded`, `crun`, `runc`";
        "reference": Kind::Reference, Without "",
            "name by which the engine knows an image, such as `localhost/camera:1.2`; engine `podman`";
        "binary": Kind::HostPath, Without "", "static program, the only file in the cell's root; engines as for `rootfs`, and `qemu`, in whose guest it runs";
        "inmate": Kind::HostPath, Without "", "program of a partition, as it is loaded into its memory; engine `jailhouse`";
    },
};

pub(super) fn read(cell: &Node<'_>) -> Image {
    let table = cell.below("image");
    if let Some(path) = table.path("bundle") {
        return Image::Bundle(path);
    }
    if let Some(path) = table.path("binary") {
        return Image::Binary(path);
    }
    if let Some(path) = table.path("inmate") {
        return Image::Inmate(path);
    }
    match table.some_text("reference") {
        Some(name) => Image::Reference(name),
        None => Image::Rootfs(table.path("rootfs").unwrap_or_default()),
    }
}

pub(super) fn write(cell: &Cell, out: &mut Writer) {
    let value = match &cell.image {
        Image::Reference(name) => name.clone(),
        other => other
            .path()
            .map_or_else(String::new, |path| path.to_string_lossy().into_owned()),
    };
    out.line(
        "image",
        &format!("{{ {} = {} }}", cell.image.key(), quoted(&value)),
    );
}

impl Image {
    /// The key used in files.
    pub const fn key(&self) -> &'static str {
        self.kind().name()
    }

    /// The path on the host, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Image::Rootfs(path)
            | Image::Bundle(path)
            | Image::Binary(path)
            | Image::Inmate(path) => Some(path),
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
            Image::Inmate(path) => Image::Inmate(other(path)),
            Image::Reference(name) => Image::Reference(name.clone()),
        }
    }

    /// The kind of the image.
    pub const fn kind(&self) -> ImageKind {
        match self {
            Image::Rootfs(_) => ImageKind::Rootfs,
            Image::Bundle(_) => ImageKind::Bundle,
            Image::Reference(_) => ImageKind::Reference,
            Image::Binary(_) => ImageKind::Binary,
            Image::Inmate(_) => ImageKind::Inmate,
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
        /// See [`Image::Inmate`].
        Inmate = "inmate",
    }
}
