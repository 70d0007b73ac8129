//! A shell on a terminal, in place of a board's console.

use std::fs;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::host::done;
use super::{JOBS, jobs, small};
use crate::support::{binary, only_run, say};

/// A shell on a terminal, whose bytes go to and from a serial line; some are lost.
struct Console {
    shell: Child,
    /// The end of the line that timecell opens by its path.
    _line: OwnedFd,
    path: String,
}

impl Console {
    /// Starts it. Of the bytes that it says, the last of so many is lost.
    fn start(lost: u64) -> Console {
        let (mut ours, mut line) = (0, 0);
        let mut path = [0; 64];
        let (size, settings) = (std::ptr::null(), std::ptr::null());
        // SAFETY: all pointers are valid; the name has room for a path below /dev/pts.
        let opened = unsafe {
            libc::openpty(
                &raw mut ours,
                &raw mut line,
                path.as_mut_ptr(),
                settings,
                size,
            )
        };
        assert_eq!(opened, 0);
        // SAFETY: it ends with a NUL; both descriptors were just opened, and are nobody else's.
        let (path, ours, line) = unsafe {
            for end in [ours, line] {
                libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
            }
            let path = std::ffi::CStr::from_ptr(path.as_ptr());
            (
                path,
                fs::File::from_raw_fd(ours),
                OwnedFd::from_raw_fd(line),
            )
        };
        let path = path.to_str().unwrap().to_owned();
        // Nothing comes back before timecell says how the line is.
        done("stty", &["-F", &path, "raw", "-echo"]);
        let mut shell = Command::new("script")
            .args(["--quiet", "--flush", "--command", "sh -i", "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut keys, mut said) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let (mut typed, mut shown) = (ours.try_clone().unwrap(), ours);
        std::thread::spawn(move || std::io::copy(&mut typed, &mut keys));
        std::thread::spawn(move || {
            let mut at = 0_u64;
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = std::io::Read::read(&mut said, &mut buffer) {
                let kept = buffer[..read].iter().filter(|_| {
                    at += 1;
                    !at.is_multiple_of(lost)
                });
                let kept: Vec<u8> = kept.copied().collect();
                if std::io::Write::write_all(&mut shown, &kept).is_err() {
                    return;
                }
            }
        });
        Console {
            shell,
            _line: line,
            path,
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shell.kill().unwrap();
        self.shell.wait().unwrap();
    }
}

#[case(
    Alone,
    Root,
    RealTime,
    Program("script"),
    Program("stty"),
    Program("sha256sum")
)]
fn a_run_over_a_console_that_loses_bytes_arrives_whole(dir: &Path) {
    // The program was brought before: over a console, one that is not optimised takes minutes.
    let loaded = guest::program(&binary()).unwrap().loaded;
    let there = dir.join("there");
    fs::create_dir(&there).unwrap();
    fs::write(there.join("new"), loaded).unwrap();
    done("chmod", &["755", there.join("new").to_str().unwrap()]);
    let sum = Command::new("sha256sum")
        .arg(there.join("new"))
        .output()
        .unwrap();
    let digest = String::from_utf8(sum.stdout).unwrap();
    let place = there.join("bin").join(digest.split(' ').next().unwrap());
    fs::create_dir_all(&place).unwrap();
    fs::rename(there.join("new"), place.join("timecell")).unwrap();
    small(dir, 2);
    let console = Console::start(70_001);
    let target = format!("serial:{},115200", console.path);
    let there = there.to_str().unwrap();
    let on = ["--on", &target, "--remote-dir", there];
    let words = [&["bench", "small.toml"], &on[..]].concat();
    let said = say(dir, &words).ends_with(0);
    assert_eq!(said.err.matches("trial 2 of 2:").count(), 1, "{}", said.err);
    assert_eq!(jobs(dir, &only_run(dir)), 2 * JOBS);
    // The shell is there again, and the next command finds it.
    let said = say(dir, &[&["doctor", "--json"], &on[..]].concat()).ends_with(0);
    let doctor: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(doctor["checks"].is_array());
    // Another program that has the line is told apart from a board that is away.
    assert_eq!(
        fs::read_dir(Path::new(there).join("orders"))
            .unwrap()
            .count(),
        0
    );
}
