//! Files that are locked for as long as their owner lives, and name the owner.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the file of a lock, or makes it: root's alone, since any process that can open a file can lock it. Closed on exec, so that no
/// cell inherits it and holds it when the supervisor is gone.
///
/// # Errors
/// When the file cannot be opened, or its path leads to a symbolic link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// The text of a lock's file, up to `most` bytes from its beginning; empty if it is not UTF-8.
pub(crate) fn said(mut file: &File, most: u64) -> String {
    let mut text = String::new();
    let _ = file
        .rewind()
        .and_then(|()| file.take(most).read_to_string(&mut text));
    text
}

/// Has it say this from now on.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn say(mut file: &File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}
