//! The cgroups of a cell for which no runtime makes any: one group in every hierarchy, as runtimes make them.
//!
//! The runtime library could do this too, but it reads the mounts again for every controller and waits for the kernel in
//! the middle of its work. Moving a process costs a grace period of the kernel, 6 to 20 ms on an idle machine, unless
//! there was another move in the last 20 ms or so. So a helper process makes a first move while the container is being
//! built, and the payload's own, just before it starts, is cheap. The helper must not move earlier: during that wait the
//! kernel makes no groups.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use host::file::there;
use host::root::Root;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::error::{Doing, Result};
use crate::oci::CPU_PERIOD_US;

/// How long the kernel may need to let go of a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// The groups, held by descriptors: they stay usable in a root where their paths are not seen.
pub(crate) struct Groups {
    id: String,
    groups: Vec<Group>,
    helper: Option<libc::pid_t>,
}

struct Group {
    parent: File,
    name: CString,
    processes: File,
}

impl Groups {
    /// Makes the group `/<id>` in every hierarchy and starts the helper.
    pub(crate) fn make(id: &str) -> Result<Groups> {
        Groups::make_inside(id, None, None)
    }

    /// The same, in that of version 2 within the group of this name at the top, which is there, and with one of the name `inner` in it for
    /// the processes: the outer one is for those who hold the cell, and may be there. They use version 2, so that elsewhere there is no
    /// need of it.
    pub(crate) fn make_inside(
        id: &str,
        within: Option<&str>,
        inner: Option<&str>,
    ) -> Result<Groups> {
        let cgroups = host::cgroup::detect()?;
        let mut groups = Vec::new();
        let v1 = cgroups.v1.iter().map(|mount| (mount, true));
        for (mount, v1) in v1.chain(cgroups.v2.iter().map(|mount| (mount, false))) {
            let cpuset = v1 && mount.controllers.iter().any(|name| name == "cpuset");
            let top = match within.filter(|_| !v1) {
                Some(within) => mount.point.join(within),
                None => mount.point.clone(),
            };
            let made = match inner.filter(|_| !v1) {
                None => make_one(&top, id, cpuset),
                Some(inner) => {
                    let outer = top.join(id);
                    there(fs::create_dir(&outer)).and_then(|()| make_one(&outer, inner, false))
                }
            };
            let group = made.doing(|| format!("cgroup {}", top.join(id).display()))?;
            groups.push(group);
        }
        let mut made = Groups {
            id: id.to_owned(),
            groups,
            helper: None,
        };
        made.start_helper()?;
        Ok(made)
    }

    fn start_helper(&mut self) -> Result<()> {
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                let moved = (self.groups.first()).map(|group| (&group.processes).write_all(b"0"));
                // SAFETY: ends only the helper, at once.
                unsafe { libc::_exit(i32::from(!matches!(moved, Some(Ok(()))))) }
            }
            helper if helper > 0 => {
                self.helper = Some(helper);
                Ok(())
            }
            _ => Err(io::Error::last_os_error()).doing(|| "cannot start a process"),
        }
    }

    /// Moves a process into the groups.
    pub(crate) fn enter(&self, pid: i32) -> Result<()> {
        let text = pid.to_string();
        for group in &self.groups {
            (&group.processes)
                .write_all(text.as_bytes())
                .doing(|| format!("cannot move process {pid} into cgroup /{}", self.id))?;
        }
        Ok(())
    }

    /// Waits for the helper to be gone.
    pub(crate) fn reap_helper(&mut self) {
        if let Some(helper) = self.helper.take() {
            // SAFETY: the helper is a child of this process, and its status is of no interest.
            unsafe { libc::waitpid(helper, std::ptr::null_mut(), 0) };
        }
    }

    /// Removes the groups; their processes have ended.
    pub(crate) fn remove(mut self) -> Result<()> {
        self.reap_helper();
        let began = Instant::now();
        for group in &self.groups {
            while let Err(error) = unlinkat(&group.parent, &group.name, AtFlags::REMOVEDIR) {
                if error != Errno::BUSY || began.elapsed() > PATIENCE {
                    return Err(error).doing(|| format!("cgroup /{} cannot be removed", self.id));
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        }
        Ok(())
    }
}

/// Limits the groups `/<id>`, which are there, to so many cpus and bytes.
pub(crate) fn limit(id: &str, cpus: Option<u64>, bytes: Option<u64>) -> Result<()> {
    if cpus.is_none() && bytes.is_none() {
        return Ok(());
    }
    let cgroups = host::cgroup::detect()?;
    let quota = cpus.map(|cpus| cpus * CPU_PERIOD_US);
    let v2 = quota.map(|quota| format!("{quota} {CPU_PERIOD_US}"));
    let quota = quota.map(|quota| quota.to_string());
    let bytes = bytes.map(|bytes| bytes.to_string());
    for (controller, v1_file, v1_text, v2_file, v2_text) in [
        ("cpu", "cpu.cfs_quota_us", &quota, "cpu.max", &v2),
        (
            "memory",
            "memory.limit_in_bytes",
            &bytes,
            "memory.max",
            &bytes,
        ),
    ] {
        let (place, text) = match (cgroups.v1_mount(controller), &cgroups.v2) {
            (Some(mount), _) => (mount.point.join(id).join(v1_file), v1_text),
            (None, Some(mount)) => {
                host::cgroup::hand_down_in(&Root::live(), &mount.point, controller)
                    .map_err(|error| error.to_string())?;
                (mount.point.join(id).join(v2_file), v2_text)
            }
            (None, None) => continue,
        };
        if let Some(text) = text {
            fs::write(&place, text).doing(|| format!("{}", place.display()))?;
        }
    }
    Ok(())
}

fn make_one(point: &Path, id: &str, inherit_cpuset: bool) -> io::Result<Group> {
    let dir = point.join(id);
    fs::create_dir(&dir)?;
    if inherit_cpuset {
        // On version 1 a new group has no cpus, and no process may enter it.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            fs::write(dir.join(file), host::file::read(point.join(file))?)?;
        }
    }
    Ok(Group {
        parent: OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
            .open(point)?,
        name: CString::new(id)?,
        processes: OpenOptions::new()
            .write(true)
            .open(dir.join("cgroup.procs"))?,
    })
}
