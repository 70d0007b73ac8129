//! The child that makes an embedded cell and starts its payload.

use std::fmt::Write;
use std::path::Path;

use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;

use super::groups::Groups;
use super::private_root::{self, Seen};
use super::stamps::Stamps;
use super::words::Errors;
use crate::app::{self, APP};
use crate::made::remove_dir;
use crate::programs::is_root;

/// Create and start; the payload goes on alone.
pub(super) const START: &str = "start";
/// Create, start, wait for the end, delete.
pub(crate) const RUN: &str = "run";

/// The hidden command `timecell oci-child`: `words` are what the engine put behind it. Returns the exit code.
///
/// Must be called before any thread is started.
pub fn child(words: &[String]) -> i32 {
    match deed(words) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("{why}");
            1
        }
    }
}

fn deed(words: &[String]) -> Result<(), String> {
    if let Some((APP, words)) = words
        .split_first()
        .map(|(word, rest)| (word.as_str(), rest))
    {
        Errors::listen();
        return app::child(words);
    }
    let [deed, parent, id, state, rootfs, shared] = words else {
        return Err("oci-child: words are missing".to_owned());
    };
    let mut stamps = Stamps::new();
    Errors::listen();
    die_with(parent)?;
    let state = Path::new(state);
    let mut groups = if is_root() {
        Some(Groups::make(id)?)
    } else {
        None
    };
    stamps.take("cgroups made");
    private_root::enter(state, &[rootfs, shared].map(Seen::following))?;
    // Entering a user namespace forgets it.
    die_with(parent)?;
    stamps.take("private root entered");
    let mut container = create(id, state)?;
    stamps.take("container built by libcontainer");
    let pid = container.pid().ok_or("the container has no pid")?.as_raw();
    if let Some(groups) = &mut groups {
        groups.enter(pid)?;
        groups.reap_helper();
    }
    stamps.take("cgroups joined");
    container.start().map_err(|error| chain(&error))?;
    stamps.take("payload started");
    if deed == RUN {
        let mut status = 0;
        // SAFETY: the payload is a child of this process; `status` is valid.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
            return Err(format!(
                "wait for the payload: {}",
                std::io::Error::last_os_error()
            ));
        }
        stamps.take("payload executed and ended");
        groups.map_or(Ok(()), Groups::remove)?;
        remove_dir(&state.join("runtime"))?;
        stamps.take("cgroups and state removed");
        if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
            return Err(format!("the payload ended with status {status:#x}"));
        }
    }
    Ok(())
}

/// Asks to be killed when the coordinator ends, so that none of this goes on after its cells were swept.
pub(crate) fn die_with(parent: &str) -> Result<(), String> {
    // SAFETY: neither call involves memory.
    let own_parent = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid()
    };
    if own_parent.to_string() == parent {
        Ok(())
    } else {
        Err("the coordinator has ended".to_owned())
    }
}

fn create(id: &str, state: &Path) -> Result<Container, String> {
    ContainerBuilder::new(id.to_owned(), SyscallType::default())
        .with_root_path(state.join("runtime"))
        .and_then(|builder| builder.with_pid_file(Some(state.join("pid"))))
        .and_then(|builder| builder.validate_id())
        .and_then(|builder| {
            builder
                .as_init(state.join("bundle"))
                .with_systemd(false)
                .build()
        })
        .map_err(|error| chain(&error))
}

/// An error with its causes, each once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            let _ = write!(text, ": {words}");
        }
        next = cause.source();
    }
    text
}
