//! The process at the console of a guest that somebody types into: a shell where a package brings one, else a prompt that takes
//! words for timecell.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{ioctl_tiocsctty, setsid};

use crate::image::WORK;

/// Runs at the console until its user leaves.
pub fn run(line: &str) -> i32 {
    let Ok(console) = super::open(line) else {
        eprintln!("timecell: there is no console {line}");
        return 1;
    };
    let _ = std::env::set_current_dir(WORK);
    let ended = match Path::new("/usr/bin/busybox").exists() {
        true => shell(&console),
        false => prompt(&console),
    };
    match ended {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("timecell: the console {line} fails: {error}");
            1
        }
    }
}

fn shell(console: &File) -> std::io::Result<()> {
    let _ = Command::new("/usr/bin/busybox")
        .args(["--install", "-s", "/usr/bin"])
        .stderr(Stdio::null())
        .status();
    let mut out = console.try_clone()?;
    out.write_all(b"\ntimecell is here; `exit` switches off, Ctrl-A x leaves at once\n")?;
    let (input, output, error) = (
        console.try_clone()?,
        console.try_clone()?,
        console.try_clone()?,
    );
    // So that Ctrl-C ends what runs and not the shell.
    if setsid().is_ok() {
        let _ = ioctl_tiocsctty(console);
    }
    Err(Command::new("/usr/bin/sh")
        .arg("-i")
        .stdin(input)
        .stdout(output)
        .stderr(error)
        .exec())
}

fn prompt(console: &File) -> std::io::Result<()> {
    let mut out = console.try_clone()?;
    let mut lines = BufReader::new(console.try_clone()?).lines();
    out.write_all(b"\nno shell is here: words for timecell, such as `doctor`; `exit` switches off, Ctrl-A x leaves at once\n")?;
    loop {
        out.write_all(b"timecell ")?;
        let Some(line) = lines.next().transpose()? else {
            return Ok(());
        };
        match line.trim() {
            "" => {}
            "exit" => return Ok(()),
            words => {
                let mut command = Command::new("/usr/bin/timecell");
                command.args(words.split_whitespace());
                command
                    .stdin(Stdio::null())
                    .stdout(console.try_clone()?)
                    .stderr(console.try_clone()?)
                    .status()?;
            }
        }
    }
}
