//! A private part of the cgroups' real-time budgets for a case. A case that takes all that is free then takes only this part, so
//! that many such cases can run in parallel.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use host::rtgroup::{self, RtGroup, RtGroupError};

/// A cgroup with a budget. A case that sees it in place of the top of the hierarchy creates cgroups only inside it.
#[derive(Debug, Clone)]
pub struct Part {
    top: PathBuf,
    group: PathBuf,
}

const NAME: &str = "behaviour";

/// How long a case waits for budgets that an earlier one, or one beside it, is about to give back.
const GIVEN_BACK: Duration = Duration::from_secs(60);

impl Part {
    /// One with this many thousandths of each cpu, once so much is free; `None` if there are no such budgets.
    pub fn of(share: u16) -> Result<Option<Part>, RtGroupError> {
        static SWEPT: Once = Once::new();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(top) = rtgroup::detect() else {
            return Ok(None);
        };
        SWEPT.call_once(|| sweep(&top));
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{NAME}-{}-{next}", std::process::id());
        let (began, mut told) = (Instant::now(), false);
        loop {
            match RtGroup::create(&name, u64::from(share) * 1_000, 1_000_000) {
                Ok(made) => {
                    let group = made.keep();
                    return Ok(Some(Part { top, group }));
                }
                Err(RtGroupError::AncestorRefused { .. }) if began.elapsed() < GIVEN_BACK => {
                    if !told {
                        eprintln!("{name} waits: budgets are held by {}", holders(&top));
                    }
                    told = true;
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves this thread, and its children, into it, and hides everything else from them. The thread has its own mount namespace and
    /// `/dev/shm`.
    pub fn enter(&self) -> io::Result<()> {
        fs::write(self.group.join("tasks"), "0")?;
        // Instead of the hierarchy and not over it: the files below would be listed, too.
        let aside = Path::new("/dev/shm/groups");
        fs::create_dir(aside)?;
        mount(&self.group, aside, libc::MS_BIND)?;
        let top = in_c(&self.top);
        // SAFETY: nothing but this thread's view of the file system changes, and the string ends with a nul.
        if unsafe { libc::umount2(top.as_ptr(), libc::MNT_DETACH) } != 0 {
            return Err(io::Error::last_os_error());
        }
        mount(aside, &self.top, libc::MS_MOVE)?;
        fs::remove_dir(aside)
    }

    /// Releases it. It stays if a failed case leaves processes in it.
    pub fn remove(self) {
        if let Err(error) = rtgroup::remove_group_with_inner(&self.group) {
            eprintln!("{}: {error}", self.group.display());
        }
    }
}

fn in_c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path without a nul")
}

fn mount(from: &Path, to: &Path, how: libc::c_ulong) -> io::Result<()> {
    let [from, to] = [from, to].map(in_c);
    let none = std::ptr::null();
    // SAFETY: nothing but this thread's view of the file system changes, and both strings end with a nul.
    match unsafe { libc::mount(from.as_ptr(), to.as_ptr(), none, how, none.cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The groups below the top that have budgets, with their runtimes, us.
fn holders(top: &Path) -> String {
    let groups = fs::read_dir(top).into_iter().flatten().flatten();
    let told = groups.filter_map(|group| {
        let us = fs::read_to_string(group.path().join("cpu.rt_runtime_us")).ok()?;
        let name = group.file_name().to_string_lossy().into_owned();
        (us.trim() != "0").then(|| format!("{name} ({})", us.trim()))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Removes the remains of killed tests.
fn sweep(top: &Path) {
    let groups = fs::read_dir(top).into_iter().flatten().flatten();
    for group in groups {
        let name = group.file_name().to_string_lossy().into_owned();
        let of = name
            .strip_prefix(NAME)
            .and_then(|rest| rest.strip_prefix('-'));
        let of = of.and_then(|rest| rest.split('-').next());
        if of.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = rtgroup::remove_group_with_inner(&group.path());
        }
    }
}
