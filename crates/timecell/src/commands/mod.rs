//! One file for each subcommand: takes options, calls the crates below, prints text.

pub mod admit;
pub mod analyze;
mod assumptions;
pub mod bench;
pub mod bench_hold;
pub mod bench_pilot;
pub mod bench_plan;
pub mod bench_program;
pub mod bench_self;
pub mod bench_series;
pub mod bench_until;
pub mod board;
pub mod clean;
pub mod common;
pub mod control;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod export;
mod fetched;
pub mod first;
mod found;
pub mod generate;
pub mod held;
pub mod isolation;
pub mod judge;
pub mod kinds;
pub mod latest;
pub mod logs;
pub mod measured;
pub mod ps;
pub mod ps_machine;
pub mod remote;
pub mod report;
pub mod run;
pub mod studied;
pub mod supply;
pub mod up;
pub mod update;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Paths of this process's own descriptors, which may be pipes: standard input, `<(COMMAND)` of a shell.
const GIVEN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Reads a text file of at most this many bytes; never waits for a pipe that has no writer.
///
/// # Errors
/// Its fault, as a clause.
fn read_text(path: &Path, most_bytes: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    open_file(path)?
        .take(most_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most_bytes {
        return Err(format!(
            "the file is larger than {}",
            model::mib(most_bytes)
        ));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}

/// Opens a file; never waits for a pipe that has no writer.
///
/// # Errors
/// Its fault, as a clause.
#[expect(clippy::disallowed_methods, reason = "only read")]
fn open_file(path: &Path) -> Result<File, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_writer_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mission.toml");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = read_text(&path, 1 << 20).unwrap_err();
        assert!(error.contains("not a regular file"), "{error}");
        assert!(read_text(Path::new("/dev/zero"), 1 << 20).is_err());
        assert!(
            read_text(dir.path(), 1 << 20)
                .unwrap_err()
                .contains("directory")
        );
        std::fs::write(dir.path().join("plain"), "text").unwrap();
        let plain = read_text(&dir.path().join("plain"), 1 << 20);
        assert_eq!(plain.as_deref(), Ok("text"));
    }
}
