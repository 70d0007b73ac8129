//! The first process of a guest.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_move, mount_remount, unmount,
};
use rustix::process::{WaitOptions, chdir, chroot, getpid, wait};
use rustix::system::{RebootCommand, finit_module, reboot, sethostname};

use crate::image::MODULES;

/// How long the device of the root may take to appear.
const DEVICE: Duration = Duration::from_secs(60);

/// Kinds of file system that the kernel unpacks an initial file system to.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
const PROGRAM: &str = "/usr/bin/timecell";

/// What is mounted where, with its options; the last one may not be there.
const MOUNTS: [(&str, &str, &str); 8] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", "mode=1777"),
    ("cgroup2", "/sys/fs/cgroup", ""),
];

/// Loads the drivers that were brought. Then moves onto the root that the kernel's command line names, or puts the system on a mount of its
/// own, whose root OCI runtimes can change by pivot_root, which that of the kernel does not allow; and goes on as [`run`].
pub fn begin(mode: &str, line: &str, name: &str) -> i32 {
    let kind = rustix::fs::statfs("/").map_or(0, |about| about.f_type as u64);
    if getpid().as_raw_nonzero().get() != 1 || !IN_MEMORY.contains(&kind) {
        eprintln!("timecell: this is the first process of a guest, and nothing to start by hand");
        return 2;
    }
    load();
    match root() {
        None => {
            if let Err(error) = moved() {
                eprintln!("timecell: cannot put the system on a mount of its own: {error}");
                return 1;
            }
        }
        Some(device) => {
            if let Err(error) = onto(Path::new(&device)) {
                eprintln!("timecell: cannot move onto {device}: {error}");
                return 1;
            }
        }
    }
    let error = Command::new(PROGRAM)
        .args([super::WORD, "first", mode, line, name])
        .exec();
    eprintln!("timecell: cannot go on: {error}");
    1
}

/// Loads the drivers, each behind those that it needs. One that fails is missed by its device.
fn load() {
    let entries = fs::read_dir(MODULES).into_iter().flatten();
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let file = fs::File::open(&path);
        let loaded = file.and_then(|file| Ok(finit_module(file, c"", 0)?));
        if let Err(error) = loaded {
            eprintln!("timecell: cannot load {}: {error}", path.display());
        }
    }
}

/// The device that the kernel's command line names as the root.
fn root() -> Option<String> {
    mounted("proc", "/proc", "").ok()?;
    let words = host::file::text("/proc/cmdline");
    let _ = unmount("/proc", UnmountFlags::DETACH);
    of_words(&words.ok()?).map(str::to_owned)
}

fn of_words(words: &str) -> Option<&str> {
    let mut words = words.split_whitespace().take_while(|word| *word != "--");
    words.find_map(|word| word.strip_prefix("root="))
}

/// Makes the file system of a device the root, once the device is there; the files of the old root are removed.
fn onto(device: &Path) -> io::Result<()> {
    mounted("devtmpfs", "/dev", "")?;
    let until = Instant::now() + DEVICE;
    while !device.exists() {
        if Instant::now() >= until {
            return Err(io::Error::other(format!(
                "it is not there after {} s; drivers that it needs are named in `modules` of the board's file",
                DEVICE.as_secs()
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let new = Path::new("/new");
    fs::create_dir(new)?;
    mount(device, new, "ext4", MountFlags::NOATIME, None)?;
    unmount("/dev", UnmountFlags::DETACH)?;
    for entry in fs::read_dir("/")? {
        let path = entry?.path();
        if path != new {
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
    moved_to(new)
}

fn moved_to(new: &Path) -> io::Result<()> {
    chdir(new)?;
    mount_move(".", "/")?;
    chroot(".")?;
    Ok(chdir("/")?)
}

fn moved() -> io::Result<()> {
    let new = Path::new("/new");
    fs::create_dir(new)?;
    // The kernel gives it half of the memory.
    mount_remount("/", MountFlags::empty(), c"size=90%")?;
    mount_bind("/", new)?;
    moved_to(new)?;
    fs::remove_dir(new)
}

/// Sets up the system, starts the process that does the work, collects whatever ends, and switches off after that process.
pub fn run(mode: &str, line: &str, name: &str) -> i32 {
    for (kind, place, options) in MOUNTS {
        if let Err(error) = mounted(kind, place, options) {
            eprintln!("timecell: cannot mount {kind} at {place}: {error}");
        }
    }
    // devtmpfs has no names for what a process has open.
    for (name, leads) in [
        ("fd", "fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        let _ = std::os::unix::fs::symlink(format!("/proc/self/{leads}"), format!("/dev/{name}"));
    }
    // As service managers do when they start. On kernels before 6.2 the first group with cpus of its own would otherwise give
    // everybody else all cpus back.
    for controller in ["cpuset", "cpu", "io", "memory", "pids"] {
        let _ = fs::write(
            "/sys/fs/cgroup/cgroup.subtree_control",
            format!("+{controller}"),
        );
    }
    let _ = sethostname(name.as_bytes());
    if let Err(error) = loopback() {
        eprintln!("timecell: the loopback device stays down: {error}");
    }
    let child = Command::new(PROGRAM)
        .args([super::WORD, mode, line])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin")
        .env("HOME", "/root")
        .env("TERM", "vt100")
        .spawn();
    match child {
        Ok(child) => collect(child.id()),
        Err(error) => eprintln!("timecell: cannot start what does the work: {error}"),
    }
    off()
}

fn mounted(kind: &str, place: &str, options: &str) -> io::Result<()> {
    fs::create_dir_all(place)?;
    let options = std::ffi::CString::new(options)?;
    Ok(mount(
        kind,
        place,
        kind,
        MountFlags::NOSUID,
        options.as_c_str(),
    )?)
}

fn loopback() -> io::Result<()> {
    let own = rustix::process::pidfd_open(getpid(), rustix::process::PidfdFlags::empty())?;
    host::loopback::up(std::os::fd::AsFd::as_fd(&own))
}

/// Collects processes that have ended until this one has.
fn collect(last: u32) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, _))) if ended.as_raw_nonzero().get() as u32 == last => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Switches the guest off.
pub fn off() -> i32 {
    rustix::fs::sync();
    // So that the root of a card is clean. One that somebody still writes to is repaired by its journal.
    let _ = mount_remount("/", MountFlags::RDONLY, "");
    // Not every machine can switch itself off, and one that cannot halts; QEMU takes that it starts again as its end.
    let _ = reboot(RebootCommand::Restart);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_that_of_the_command_line() {
        let words = "console=ttyPS0 root=/dev/mmcblk0p2 rw -- guest root=/dev/sda";
        assert_eq!(of_words(words), Some("/dev/mmcblk0p2"));
        assert_eq!(of_words("console=ttyPS0 -- guest root=/dev/sda"), None);
    }
}
