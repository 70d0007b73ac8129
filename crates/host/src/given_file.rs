//! Files that users name, links to them as well: opening never waits, and reading is bounded.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::foreign_file::read_from;

/// Paths of this process's own descriptors, which may be pipes: standard input, `<(COMMAND)` of a shell.
const GIVEN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a file, or a pipe that this process was given; never waits for a pipe that has no writer.
///
/// # Errors
/// Its fault, as a clause.
pub fn open(path: &Path) -> Result<File, String> {
    let given = GIVEN.iter().any(|given| path.starts_with(given));
    let file = (OpenOptions::new().read(true))
        .custom_flags(if given { 0 } else { libc::O_NONBLOCK })
        .open(path)
        .map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !given && !about.is_file() && !about.is_dir() {
        return Err("it is not a regular file; give a pipe as /dev/stdin".to_owned());
    }
    Ok(file)
}

/// Reads a text that [`open`] opens, of at most this many bytes.
///
/// # Errors
/// Its fault, as a clause.
pub fn text(path: &Path, most_bytes: u64) -> Result<String, String> {
    let bytes = read_from(open(path)?, most_bytes).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => larger(most_bytes),
        _ => error.to_string(),
    })?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}

/// Opens a regular file of at most this many bytes.
///
/// # Errors
/// When it is something else or has more, or on an error of the system.
pub fn regular(path: &Path, most_bytes: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = (options.read(true).custom_flags(libc::O_NONBLOCK)).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        let why = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    if about.len() > most_bytes {
        let why = larger(most_bytes);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(file)
}

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// As [`regular`].
pub fn bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_from(regular(path, most_bytes)?, most_bytes)
}

fn larger(most_bytes: u64) -> String {
    format!("the file is larger than {}", model::mib(most_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_writer_and_an_endless_device_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mission.toml");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        for path in [&path, Path::new("/dev/zero")] {
            let error = text(path, 1 << 20).unwrap_err();
            assert!(error.contains("not a regular file"), "{error}");
            let error = bytes(path, 1 << 20).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file");
        }
        let error = text(dir.path(), 1 << 20).unwrap_err();
        assert!(error.contains("directory"), "{error}");
        assert!(regular(dir.path(), 1 << 20).is_err());
        let (plain, link) = (dir.path().join("plain"), dir.path().join("link"));
        std::fs::write(&plain, "text").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        assert_eq!(text(&link, 1 << 20).as_deref(), Ok("text"));
        assert_eq!(bytes(&link, 4).unwrap(), b"text");
        for error in [
            text(&plain, 3).unwrap_err(),
            bytes(&plain, 3).unwrap_err().to_string(),
        ] {
            assert!(error.contains("the file is larger than"), "{error}");
        }
    }
}
