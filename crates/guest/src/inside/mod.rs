//! What runs inside a guest, as the hidden command `timecell guest`: its first process, which sets up the system and collects what
//! ends ([`first`]), and the one that serves the channel ([`serve`]). Everything here runs in the guest and nowhere else.

mod first;
mod serve;
mod shell;

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// The first word of the hidden command.
pub const WORD: &str = "guest";

/// Runs a process of the guest; returns its exit code.
pub fn inside(words: &[String]) -> i32 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["init", mode, line, name] => first::begin(mode, line, name),
        ["first", mode, line, name] => first::run(mode, line, name),
        ["serve", line] => serve::run(line),
        ["shell", line] => shell::run(line),
        _ => 2,
    }
}

/// The status of a program as shells give it: 128 and the signal if one killed it.
pub(crate) fn status(ended: ExitStatus) -> i32 {
    ended
        .code()
        .or(ended.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

/// Opens a serial line, by its name below /dev.
fn open(line: &str) -> std::io::Result<File> {
    let path = Path::new("/dev").join(Path::new(line).file_name().unwrap_or(OsStr::new("console")));
    // Without waiting for a modem to answer.
    let flags = rustix::fs::OFlags::RDWR
        | rustix::fs::OFlags::NOCTTY
        | rustix::fs::OFlags::NONBLOCK
        | rustix::fs::OFlags::CLOEXEC;
    let line = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?;
    let set = rustix::fs::fcntl_getfl(&line)?;
    rustix::fs::fcntl_setfl(&line, set - rustix::fs::OFlags::NONBLOCK)?;
    Ok(line.into())
}
