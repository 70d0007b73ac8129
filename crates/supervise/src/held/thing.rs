//! A thing that a user names: a container, a unit or a process, resolved with its group.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use engine::{running, unit};
use freezer::hold;
use host::cgroup::{Cgroups, detect};
use host::process;
use host::root::Root;
use model::EngineKind;
use serde::{Deserialize, Serialize};

use super::{HeldError, group};

/// The largest number that a process can have (`PID_MAX_LIMIT` of `include/linux/threads.h`); larger ones begin ids of containers.
const MOST_PROCESSES: i32 = 4_194_304;

/// The kind of a held thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A container of podman's, run by root.
    Podman,
    /// A container of docker's.
    Docker,
    /// A unit of systemd.
    Unit,
    /// A process with those that it has started.
    Process,
}

/// Something that runs, and its group in the hierarchy of cgroup v2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    /// Its kind.
    pub kind: Kind,
    /// The container's or unit's name, the process's number.
    pub name: String,
    /// The container's id, the unit's name, the process's name in the kernel.
    pub id: String,
    /// Its first process; `None` for a unit without one.
    pub pid: Option<i32>,
    /// The directory of its group.
    pub group: PathBuf,
    /// The inode of that: a recreated group has another.
    pub inode: u64,
    /// The group from which its processes were taken where it had none of its own: they go back there.
    pub taken_from: Option<PathBuf>,
}

/// As sentences name it: "the podman container `web` (0123456789ab)".
impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.get(..12).unwrap_or(&self.id);
        match self.kind {
            Kind::Podman => write!(f, "the podman container `{}` ({id})", self.name),
            Kind::Docker => write!(f, "the docker container `{}` ({id})", self.name),
            Kind::Unit => write!(f, "the unit `{}`", self.name),
            Kind::Process => write!(f, "process {} ({})", self.name, self.id.escape_debug()),
        }
    }
}

impl Thing {
    /// Whether a user who says this means it.
    pub fn is_called(&self, what: &str) -> bool {
        let container = matches!(self.kind, Kind::Podman | Kind::Docker);
        let by_id = container && what.len() >= 4 && self.id.starts_with(what);
        self.name == what || by_id
    }

    /// Whether its group is there with a process in it.
    pub fn runs(&self) -> bool {
        is_populated(&self.group, self.inode)
    }
}

/// Whether this group is there, the same as it was, with a process in it.
pub(crate) fn is_populated(group: &Path, inode: u64) -> bool {
    std::fs::metadata(group).is_ok_and(|dir| dir.ino() == inode) && hold::is_populated(group)
}

/// A thing that was found, before a group is made for it.
#[derive(Debug)]
pub(super) struct Found {
    /// With its group, or the one in which its own is to be created.
    pub(super) thing: Thing,
    /// Whether a separate group has to be created.
    pub(super) is_guest: bool,
}

/// The thing that runs under this name or number.
///
/// # Errors
/// That nothing does, or that it cannot be held, with the reason.
pub(super) fn find(what: &str) -> Result<Found, HeldError> {
    let root = Root::live();
    let top = hold::top(&root)?;
    let cgroups = detect().map_err(|_| freezer::hold::HoldError::NoV2)?;
    let number = what
        .parse::<i32>()
        .ok()
        .filter(|pid| *pid <= MOST_PROCESSES);
    match number {
        Some(pid) => of_process(pid, &root, &cgroups, &top),
        None if unit::is_name(what) => of_unit(what, &top),
        None => of_container(what, &root, &cgroups, &top),
    }
}

/// The first process of the thing that a user names, regardless of its name when it was put under its budget.
pub(super) fn first_process(what: &str) -> Option<i32> {
    match what.parse::<i32>() {
        Ok(pid) if (1..=MOST_PROCESSES).contains(&pid) => Some(pid),
        _ if unit::is_name(what) => unit::find(what).ok()?.pid,
        _ => Some(running::find(what).ok()?.pid),
    }
}

fn of_container(
    what: &str,
    root: &Root,
    cgroups: &Cgroups,
    top: &Path,
) -> Result<Found, HeldError> {
    let running = running::find(what).map_err(|error| match error {
        running::NotRunning::Unknown { .. } => HeldError::NoContainer(error),
        error => HeldError::Container(error),
    })?;
    let mut thing = Thing {
        kind: match running.engine {
            EngineKind::Docker => Kind::Docker,
            _ => Kind::Podman,
        },
        name: running.name,
        id: running.id,
        pid: Some(running.pid),
        group: PathBuf::new(),
        inode: 0,
        taken_from: None,
    };
    let ended = |thing: &Thing| HeldError::Ended(thing.to_string());
    let own = cgroups.v2_group(root, running.pid);
    let own = own.ok_or_else(|| ended(&thing))?;
    let groups = host::file::text(format!("/proc/{}/cgroup", running.pid));
    let (found, is_guest) = match around(&own, &thing.id, top) {
        Some(found) => below(thing.kind, own, found, running.pid),
        None if !bears(&groups.unwrap_or_default(), &thing.id) => {
            let what = thing.to_string();
            let pid = running.pid;
            return Err(HeldError::Elsewhere { what, pid });
        }
        None if own != top && group::is_of(&own, running.pid) => (own, false),
        // An engine that does not know this hierarchy, beside those of version 1.
        None if !cgroups.v1.is_empty() => (own, true),
        None => {
            let what = thing.to_string();
            return Err(HeldError::Shared { what, group: own });
        }
    };
    thing.inode = group::inode(&found).map_err(|_| ended(&thing))?;
    thing.group = found;
    Ok(Found { thing, is_guest })
}

/// The innermost group around this one that bears the container's id: a container that manages groups itself has its first process
/// somewhere below.
pub(super) fn around(own: &Path, id: &str, top: &Path) -> Option<PathBuf> {
    let below_top = own.ancestors().take_while(|dir| *dir != top);
    let mut named = below_top.filter(|dir| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        name.contains(id)
    });
    named.next().map(Path::to_owned)
}

/// The group that is held of a container whose first process is in `own`, or the one in which it is to be made, as
/// `is_guest` says. runc, which docker uses, takes a container whose own group is frozen for paused: `docker exec`
/// would be refused then, and health checks fail. It does not know of a group below.
fn below(kind: Kind, own: PathBuf, found: PathBuf, pid: i32) -> (PathBuf, bool) {
    match kind {
        Kind::Docker if own == found => (found, true),
        // Held already.
        Kind::Docker if own == found.join(group::name_for(pid)) => (own, false),
        _ => (found, false),
    }
}

/// Whether one of a process's groups (`/proc/PID/cgroup`) is the container's. The engine may speak of another machine, where the number is
/// another process's.
fn bears(groups: &str, id: &str) -> bool {
    groups.lines().any(|line| {
        let path = line.splitn(3, ':').nth(2).unwrap_or_default();
        path.split('/').any(|name| name.contains(id))
    })
}

fn of_unit(what: &str, top: &Path) -> Result<Found, HeldError> {
    let unit = unit::find(what)?;
    let dir = top.join(unit.group.trim_start_matches('/'));
    let mut thing = Thing {
        kind: Kind::Unit,
        name: unit.name.clone(),
        id: unit.name,
        pid: unit.pid,
        group: dir,
        inode: 0,
        taken_from: None,
    };
    thing.inode = group::inode(&thing.group).map_err(|reason| HeldError::File {
        path: thing.group.clone(),
        reason,
    })?;
    Ok(Found {
        thing,
        is_guest: false,
    })
}

fn of_process(pid: i32, root: &Root, cgroups: &Cgroups, top: &Path) -> Result<Found, HeldError> {
    let name = process::name(pid).unwrap_or_default();
    let mut thing = Thing {
        kind: Kind::Process,
        name: pid.to_string(),
        id: name.trim_end().to_owned(),
        pid: Some(pid),
        group: PathBuf::new(),
        inode: 0,
        taken_from: None,
    };
    match process::kind(pid).filter(|_| pid > 0) {
        None => return Err(HeldError::NoProcess(pid)),
        Some(process::Kind::Kernel) => return Err(HeldError::Kernel(pid)),
        Some(process::Kind::ThreadOf(of)) => return Err(HeldError::Thread { tid: pid, of }),
        Some(process::Kind::Program) if pid == 1 => {
            return Err(HeldError::Init("process 1".to_owned()));
        }
        Some(process::Kind::Program) => {}
    }
    if group::is_own(pid) {
        let what = thing.to_string();
        return Err(HeldError::Own { what, pid });
    }
    let ended = || HeldError::NoProcess(pid);
    let own = cgroups.v2_group(root, pid).ok_or_else(ended)?;
    let is_guest = own == top || !group::is_of(&own, pid);
    thing.inode = group::inode(&own).map_err(|_| ended())?;
    thing.group = own;
    Ok(Found { thing, is_guest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_container_is_the_one_with_its_id() {
        let id = "ab".repeat(32);
        let top = Path::new("/sys/fs/cgroup");
        let found = |path: &str| around(&top.join(path), &id, top);
        let scope = format!("machine.slice/libpod-{id}.scope");
        assert_eq!(found(&format!("{scope}/container")), Some(top.join(&scope)));
        assert_eq!(
            found(&format!("docker/{id}/init.scope")),
            Some(top.join(format!("docker/{id}")))
        );
        assert_eq!(found("user.slice/session-1.scope"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn what_runc_looks_at_is_not_frozen() {
        let scope = PathBuf::from("/sys/fs/cgroup/system.slice/docker-ab.scope");
        let of = |kind, own: &Path| below(kind, own.to_owned(), scope.clone(), 7);
        assert_eq!(of(Kind::Docker, &scope), (scope.clone(), true));
        let held = scope.join("held-by-timecell-7");
        assert_eq!(of(Kind::Docker, &held), (held.clone(), false));
        let inside = scope.join("init.scope");
        assert_eq!(of(Kind::Docker, &inside), (scope.clone(), false));
        assert_eq!(of(Kind::Podman, &scope), (scope.clone(), false));
    }

    #[test]
    fn the_process_of_a_container_is_in_a_group_of_the_container() {
        let id = "ab".repeat(32);
        let bears = |groups: &str| bears(groups, &id);
        assert!(bears(&format!("4:cpu:/docker/{id}\n0::/\n")));
        assert!(bears(&format!("0::/machine.slice/libpod-{id}.scope/a\n")));
        assert!(!bears("4:cpu:/docker/cd\n0::/user.slice/session-1.scope\n"));
        assert!(!bears(&format!("1:name={id}:/\n")));
        assert!(!bears(""));
    }

    #[test]
    fn what_is_no_process_of_a_program_is_refused() {
        let find = |what: &str| find(what).unwrap_err();
        if freezer::hold::top(&Root::live()).is_err() {
            assert!(matches!(find("1"), HeldError::NoFreezer(_)));
            return;
        }
        assert!(matches!(find("1"), HeldError::Init(_)));
        assert!(matches!(find("0"), HeldError::NoProcess(0)));
        assert!(matches!(find("-7"), HeldError::NoProcess(-7)));
        assert!(matches!(find("4194304"), HeldError::NoProcess(_)));
        let own = std::process::id().to_string();
        assert!(matches!(find(&own), HeldError::Own { .. }));
        assert!(matches!(find("no/name"), HeldError::NoContainer(_)));
    }

    #[test]
    fn it_is_called_by_its_name_or_the_beginning_of_its_id() {
        let thing = Thing {
            kind: Kind::Podman,
            name: "web".to_owned(),
            id: "0123456789abcdef".repeat(4),
            pid: Some(7),
            group: "/nowhere".into(),
            inode: 1,
            taken_from: None,
        };
        for what in ["web", "0123", "0123456789abcdef"] {
            assert!(thing.is_called(what), "{what}");
        }
        for what in ["we", "012", "7", ""] {
            assert!(!thing.is_called(what), "{what}");
        }
        assert_eq!(
            thing.to_string(),
            "the podman container `web` (0123456789ab)"
        );
        assert!(!thing.runs());
    }
}
