//! Files that users name for guests: regular ones of bounded sizes.

use std::fs::File;
use std::io;
use std::path::Path;

use host::given_file;
use model::InputError;

use crate::GuestError;

/// The largest kernel, initial file system or program, bytes.
pub(crate) const MOST: u64 = 1 << 30;
/// The largest device tree, bytes: Linux takes 2 MiB.
pub(crate) const MOST_TREE: u64 = 16 << 20;

/// Opens a file of at most this many bytes; never waits.
///
/// # Errors
/// If it is not there, none that is regular, or larger.
pub(crate) fn open(path: &Path, most: u64) -> Result<File, GuestError> {
    given_file::regular(path, most).map_err(told(path))
}

/// Reads a file that [`open`] opens.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, GuestError> {
    given_file::bytes(path, most).map_err(told(path))
}

fn told(path: &Path) -> impl Fn(io::Error) -> GuestError {
    move |error| {
        let name = path.display().to_string();
        InputError::new(name, format!("cannot read it: {error}"), "").into()
    }
}
