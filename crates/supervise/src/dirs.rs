//! Where a mission's files are.

use std::path::{Path, PathBuf};

use crate::journal::JournalError;

/// The directory of a mission of one program, which has no file: in memory, and accessible to anyone who knows a name in
/// it, like the program that reports to its page.
pub fn dir_of_one(name: &str) -> PathBuf {
    place_of_ones().join(name)
}

/// Where the directories of all those missions are.
pub(crate) fn place_of_ones() -> PathBuf {
    Path::new(crate::lock::PLACE).join("run")
}

/// Whether this is such a directory.
pub fn is_of_one(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| dir == dir_of_one(name))
}

/// Name of one of a cell's two places: a version that runs beside another one is made in the second. No cell's name has a dot.
pub(crate) fn place(cell: &str, beside: bool) -> String {
    format!("{cell}{}", if beside { ".b" } else { "" })
}

/// That the places of all cells in a mission's directory are directories of our own: their contents are acted upon.
pub(crate) fn own_places(dir: &Path) -> Result<(), JournalError> {
    Ok(host::ground::check_with(dir, &["cells", "pages"])?)
}

/// Where a cell's engine keeps its files.
pub(crate) fn work_dir(dir: &Path, cell: &str, beside: bool) -> PathBuf {
    dir.join("cells").join(place(cell, beside))
}

/// Where the page of a cell lies: a mount of its own.
pub(crate) fn page_dir(dir: &Path, cell: &str, beside: bool) -> PathBuf {
    dir.join("pages").join(place(cell, beside))
}
