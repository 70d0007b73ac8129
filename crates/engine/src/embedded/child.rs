use std::fmt::Write;
use std::path::Path;

use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;

use super::groups::Groups;
use super::private_root;
use super::words::Errors;
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
    let [deed, id, state, rootfs, shared] = words else {
        return Err("oci-child: words are missing".to_owned());
    };
    Errors::listen();
    let state = Path::new(state);
    let mut groups = if is_root() {
        Some(Groups::make(id)?)
    } else {
        None
    };
    private_root::enter(state, &[Path::new(rootfs), Path::new(shared)])?;
    let mut container = create(id, state)?;
    let pid = container.pid().ok_or("the container has no pid")?.as_raw();
    if let Some(groups) = &mut groups {
        groups.enter(pid)?;
        groups.reap_helper();
    }
    container.start().map_err(|error| chain(&error))?;
    if deed == RUN {
        let mut status = 0;
        // SAFETY: the payload is a child of this process; `status` is valid.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
            return Err(format!(
                "wait for the payload: {}",
                std::io::Error::last_os_error()
            ));
        }
        groups.map_or(Ok(()), Groups::remove)?;
        remove_dir(&state.join("runtime"))?;
        if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
            return Err(format!("the payload ended with status {status:#x}"));
        }
    }
    Ok(())
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
fn chain(error: &dyn std::error::Error) -> String {
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
