//! Moving processes between cgroups without waiting for the kernel.
//!
//! A move locks out forks and exits. The kernel makes that lock cheap for those, so the first move after a while waits for an
//! RCU grace period: 6 to 20 ms on an idle machine at 250 Hz. The mount option `favordynmods` of version 2 (Linux 6.0)
//! reverses that trade, for the hierarchies of both versions together.

use std::io;

use rustix::mount::{FsOpenFlags, fsconfig_create, fsconfig_set_flag, fsopen};

use crate::mounts;
use crate::root::Root;

const OPTION: &str = "favordynmods";

/// As long as this lives, moves do not wait; forks and exits cost some tens of nanoseconds more. Dropped, it restores the old setting;
/// a process that is killed leaves the option on.
#[derive(Debug)]
pub struct QuickMoves {
    changed: bool,
}

impl QuickMoves {
    /// Asks the kernel for it, unless it is so already. Waits for one grace period itself.
    ///
    /// # Errors
    /// Where version 2 is not mounted, on kernels older than 6.0 (EINVAL), without CAP_SYS_ADMIN (EPERM). Nothing depends on it
    /// but time.
    pub fn hold() -> io::Result<QuickMoves> {
        let is_on = || options().iter().any(|option| option == OPTION);
        if is_on() {
            return Ok(QuickMoves { changed: false });
        }
        let mut wanted = options();
        wanted.push(OPTION.to_owned());
        apply(&wanted)?;
        match is_on() {
            true => Ok(QuickMoves { changed: true }),
            // In a cgroup namespace the kernel takes the options and does nothing.
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for QuickMoves {
    fn drop(&mut self) {
        if self.changed {
            let mut options = options();
            options.retain(|option| option != OPTION);
            // It costs others next to nothing if it stays.
            let _ = apply(&options);
        }
    }
}

/// The options of the hierarchy of version 2, which all its mounts share. Asking for some of them takes the others away.
fn options() -> Vec<String> {
    let mounts = Root::live()
        .read("/proc/self/mountinfo")
        .unwrap_or_default();
    options_in(&mounts)
}

fn options_in(mountinfo: &str) -> Vec<String> {
    let mut mounts = mounts::of(mountinfo);
    let unified = mounts.find(|mount| mount.kind == "cgroup2");
    let options = unified.map_or("", |mount| mount.options).split(',');
    let kept = options.filter(|option| !["", "rw", "ro"].contains(option));
    kept.map(str::to_owned).collect()
}

/// Sets them by a mount that is put nowhere and gone at once.
fn apply(options: &[String]) -> io::Result<()> {
    let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for option in options {
        fsconfig_set_flag(&context, option.as_str())?;
    }
    Ok(fsconfig_create(&context)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_version_2_are_kept() {
        let mounts = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        assert_eq!(options_in(mounts), ["nsdelegate", "memory_recursiveprot"]);
        assert!(options_in("41 31 0:38 / /x rw - cgroup2 none rw\n").is_empty());
        assert!(options_in("").is_empty());
    }

    #[test]
    fn it_is_on_while_it_is_held() {
        let before = options();
        let Ok(held) = QuickMoves::hold() else {
            // Not root, or a kernel without it.
            assert_eq!(options(), before);
            return;
        };
        assert!(options().iter().any(|option| option == OPTION));
        drop(held);
        assert_eq!(options(), before);
    }
}
