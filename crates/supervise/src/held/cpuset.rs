//! The cpuset of a container that is held: what `exec` starts in it later is confined to the one cpu too, and nothing in
//! it can choose others. Other things that are held have no cpuset of their own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::cgroup::detect;
use host::root::Root;
use serde::{Deserialize, Serialize};

use super::thing::around;
use super::{Kind, Thing};

/// The cpus of a container's own group, and what they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cpuset {
    file: PathBuf,
    /// Empty: those of the group around it (version 2).
    had: String,
}

impl Cpuset {
    /// That of a container; `None`: there is no such controller, or its group is not the container's own.
    pub(super) fn of(thing: &Thing) -> Option<Cpuset> {
        let (Kind::Podman | Kind::Docker, Some(pid)) = (thing.kind, thing.pid) else {
            return None;
        };
        let cgroups = detect().ok()?;
        let dir = match cgroups.v1_mount("cpuset") {
            Some(mount) => {
                let own = cgroups.v1_group(&Root::live(), "cpuset", pid)?;
                around(&own, &thing.id, &mount.point)?
            }
            None => thing.group.clone(),
        };
        Cpuset::at(dir.join("cpuset.cpus"))
    }

    fn at(file: PathBuf) -> Option<Cpuset> {
        let had = fs::read_to_string(&file).ok()?.trim().to_owned();
        Some(Cpuset { file, had })
    }

    /// The cpus that it is given, where this one is not among them.
    pub(super) fn lacks(&self, cpu: u32) -> Option<&str> {
        // Empty, or not understood: those of the surrounding group.
        let cpus = host::cpus::parse_list(&self.had).unwrap_or_default();
        (!cpus.is_empty() && !cpus.contains(&cpu)).then_some(&self.had)
    }

    /// Leaves it this cpu alone. Where groups in it have others, the kernel refuses it, and the affinity has to do.
    pub(super) fn keep(&self, cpu: u32) {
        let _ = fs::write(&self.file, cpu.to_string());
    }

    /// Gives it those that it had; fine if it is gone.
    pub(super) fn put_back(&self) {
        self.put_back_by(|file, text| fs::write(file, text));
    }

    fn put_back_by(&self, write: impl Fn(&Path, &str) -> io::Result<()>) {
        let had = write(&self.file, &format!("{}\n", self.had));
        // Linux 6.1 takes no empty list for a group with processes in it (ENOSPC): those of the group around it are the same cpus.
        if had.is_err() && self.had.is_empty() {
            let around = self.file.ancestors().nth(2).unwrap_or(Path::new("/"));
            if let Ok(cpus) = fs::read_to_string(around.join("cpuset.cpus.effective")) {
                let _ = write(&self.file, &cpus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_kernel_takes_no_empty_list_it_has_all_of_the_group_around_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("container/cpuset.cpus");
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(dir.path().join("cpuset.cpus.effective"), "0-3\n").unwrap();
        fs::write(&file, "\n").unwrap();
        let cpuset = Cpuset::at(file.clone()).unwrap();
        cpuset.keep(1);
        cpuset.put_back_by(|file, text| match text.trim() {
            "" => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            text => fs::write(file, text),
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "0-3");
    }

    #[test]
    fn what_it_had_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cpuset.cpus");
        assert_eq!(Cpuset::at(file.clone()), None);
        for had in ["0-3\n", "\n"] {
            fs::write(&file, had).unwrap();
            let cpuset = Cpuset::at(file.clone()).unwrap();
            cpuset.keep(1);
            assert_eq!(fs::read_to_string(&file).unwrap(), "1");
            cpuset.put_back();
            assert_eq!(fs::read_to_string(&file).unwrap(), had);
            assert_eq!((cpuset.lacks(3), cpuset.lacks(0)), (None, None));
            let lacks = cpuset.lacks(4);
            assert_eq!(lacks, Some("0-3").filter(|_| had != "\n"));
        }
    }
}
