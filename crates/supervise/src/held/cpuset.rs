//! The cpuset around the threads of a held thing. A container's is left the hold's cpus alone: programs that `exec` starts in it
//! later are confined to them too, and nothing in it can choose others. Of any other held thing the cpuset is only looked at. Once
//! others have changed it, it is theirs.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::cgroup::detect;
use host::root::Root;
use serde::{Deserialize, Serialize};

use super::thing::around;
use super::{Kind, Thing};

/// The cpus of a group, and its former ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cpuset {
    file: PathBuf,
    /// Empty: those of the group around it (version 2), or the kernel has no such file there yet.
    had: String,
    /// The cpus that this came to.
    had_cpus: Vec<u32>,
    /// As timecell has left it; `None`: it was about to change it.
    left: Option<String>,
    /// Whether it is a container's, which gets the hold's cpus.
    is_given: bool,
}

impl Cpuset {
    /// That of a thing, one of whose processes is `pid`; `None`: it shares that of the whole machine.
    pub(super) fn of(thing: &Thing, pid: i32) -> Option<Cpuset> {
        let is_container = matches!(thing.kind, Kind::Podman | Kind::Docker);
        let cgroups = detect().ok()?;
        let dir = match cgroups.v1_mount("cpuset") {
            Some(mount) => {
                let own = cgroups.v1_group(&Root::live(), "cpuset", pid)?;
                match is_container {
                    true => around(&own, &thing.id, &mount.point)?,
                    false => (own != mount.point).then_some(own)?,
                }
            }
            None => thing.group.clone(),
        };
        Some(Cpuset::at(dir.join("cpuset.cpus"), is_container))
    }

    fn at(file: PathBuf, is_given: bool) -> Cpuset {
        let had = read(&file);
        let in_effect = ["cpuset.cpus.effective", "cpuset.effective_cpus"]
            .map(|name| read(&file.with_file_name(name)));
        let lists = in_effect.iter().chain([&had]);
        let had_cpus = lists
            .filter_map(|list| host::cpus::parse_list(list).ok())
            .find(|cpus| !cpus.is_empty());
        Cpuset {
            had_cpus: had_cpus.unwrap_or_default(),
            left: (!is_given).then(|| had.clone()),
            had,
            file,
            is_given,
        }
    }

    /// Where it is read and written.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The cpus that it is given, where one of these is not among them.
    pub(super) fn lacks(&self, wanted: u32) -> Option<&str> {
        // Empty, or not understood: those of the surrounding group.
        let cpus = host::cpus::parse_list(&self.had).unwrap_or_default();
        (!cpus.is_empty() && !cpus.contains(&wanted)).then_some(&self.had)
    }

    /// Leaves a container these cpus alone. Where groups in it have others, the kernel refuses it, and the affinity has to do.
    pub(super) fn keep(&mut self, cpus: &[u32]) {
        if self.is_given {
            let _ = fs::write(&self.file, host::cpus::format_list(cpus));
            self.left = Some(read(&self.file));
        }
    }

    /// The change of it by others; `None`: it is as timecell has left it, or gone.
    pub(super) fn theirs(&self) -> Option<Theirs<'_>> {
        let now = read(&self.file);
        let left = self.left.as_deref()?;
        (now != left && self.file.parent()?.exists()).then_some(Theirs {
            left,
            cpus: host::cpus::parse_list(&now).unwrap_or_default(),
            now,
        })
    }

    /// Whether a thread with these cpus had all that there were, before anything was changed.
    pub(super) fn is_all(&self, cpus: &[u32]) -> bool {
        cpus == self.had_cpus
    }

    /// Gives it those that it had, unless others have changed it; fine if it is gone. Whether it did.
    pub(super) fn put_back(&mut self) -> bool {
        let is_ours = self.is_given && self.theirs().is_none();
        if is_ours {
            self.put_back_by(|file, text| fs::write(file, text));
            self.left = Some(read(&self.file));
        }
        is_ours
    }

    fn put_back_by(&self, write: impl Fn(&Path, &str) -> io::Result<()>) {
        let had = write(&self.file, &format!("{}\n", self.had));
        // Linux 6.1 takes no empty list for a group with processes in it (ENOSPC): those of the group around it are the same cpus.
        if had.is_err() && self.had.is_empty() {
            let around = self.file.ancestors().nth(2).unwrap_or(Path::new("/"));
            if let Ok(cpus) = host::file::text(around.join("cpuset.cpus.effective")) {
                let _ = write(&self.file, &cpus);
            }
        }
    }
}

/// A cpuset that others have changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Theirs<'a> {
    left: &'a str,
    now: String,
    /// The cpus that it has now.
    pub(super) cpus: Vec<u32>,
}

/// Such as: its cpuset was changed from `0` to `1`.
impl fmt::Display for Theirs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, now) = (self.left, &self.now);
        write!(f, "its cpuset was changed from `{left}` to `{now}`")
    }
}

fn read(file: &Path) -> String {
    let text = host::file::text(file).unwrap_or_default();
    text.trim().to_owned()
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
        let mut cpuset = Cpuset::at(file.clone(), true);
        cpuset.keep(&[1]);
        cpuset.put_back_by(|file, text| match text.trim() {
            "" => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            text => fs::write(file, text),
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "0-3");
    }

    #[test]
    fn what_it_had_is_put_back_unless_others_have_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cpuset.cpus");
        for had in ["0-3\n", "\n"] {
            fs::write(&file, had).unwrap();
            let mut cpuset = Cpuset::at(file.clone(), true);
            cpuset.keep(&[1, 2]);
            assert_eq!(fs::read_to_string(&file).unwrap(), "1-2");
            assert_eq!(cpuset.theirs(), None);
            assert!(cpuset.put_back());
            assert_eq!(fs::read_to_string(&file).unwrap(), had);
            assert_eq!((cpuset.lacks(3), cpuset.lacks(0)), (None, None));
            assert_eq!(cpuset.lacks(4), Some("0-3").filter(|_| had != "\n"));
            assert!(cpuset.is_all(&[0, 1, 2, 3]) == (had != "\n"));
            cpuset.keep(&[1]);
            // Its former value is theirs as well, once it is not the one left by timecell.
            for theirs in ["0", "0-3"] {
                fs::write(&file, theirs).unwrap();
                let said = cpuset.theirs().unwrap().to_string();
                assert_eq!(
                    said,
                    format!("its cpuset was changed from `1` to `{theirs}`")
                );
                assert!(!cpuset.put_back());
                assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
            }
        }
        // That of a unit is nobody's to write but systemd's, which may make it later.
        fs::remove_file(&file).unwrap();
        let mut cpuset = Cpuset::at(file.clone(), false);
        cpuset.keep(&[1]);
        assert!(!file.exists() && cpuset.theirs().is_none());
        fs::write(&file, "1\n").unwrap();
        assert_eq!(cpuset.theirs().unwrap().cpus, [1]);
        assert!(!cpuset.put_back());
    }
}
