//! Finding the unprivileged user who runs rootless cells. Files are read directly: a static program has no
//! name service.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Requirement;

use crate::User;
use crate::programs::is_root;

/// Ids that a rootless cell's user namespace needs besides the user's own.
const SUB_IDS: u64 = 65_536;

/// The user for rootless cells: the one `given`, else the caller of `sudo`, else this process's user if that is not
/// root, else the first login user with entries in `/etc/subuid` and `/etc/subgid`.
///
/// # Errors
/// The unmet requirement, whose fix is the command that gives such a user.
pub fn choose(given: Option<&str>) -> Result<User, Box<Requirement>> {
    let uid = rustix::process::geteuid().as_raw();
    let sudo = std::env::var("SUDO_USER").ok();
    Files::at(Path::new("/etc")).choose(given, sudo.as_deref(), uid)
}

/// The user with this id; `None`: `/etc/passwd` has none.
pub fn of_id(uid: u32) -> Option<User> {
    Files::at(Path::new("/etc")).of_id(uid)
}

/// The users' accounts and id ranges.
struct Files {
    accounts: Vec<Account>,
    subuid: Vec<Range>,
    subgid: Vec<Range>,
}

struct Account {
    user: User,
    shell: PathBuf,
}

/// A line of `/etc/subuid` or `/etc/subgid`.
struct Range {
    owner: String,
    first: u64,
    count: u64,
}

impl Files {
    fn at(etc: &Path) -> Files {
        let lines = |name: &str| -> Vec<Vec<String>> {
            host::file::text(etc.join(name))
                .unwrap_or_default()
                .lines()
                .map(|line| line.split(':').map(str::to_owned).collect())
                .collect()
        };
        let account = |fields: Vec<String>| {
            let [name, _, uid, gid, _, home, shell] = <[String; 7]>::try_from(fields).ok()?;
            let user = User {
                name,
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
                home: home.into(),
            };
            Some(Account {
                user,
                shell: shell.into(),
            })
        };
        let range = |fields: Vec<String>| {
            let [owner, first, count] = <[String; 3]>::try_from(fields).ok()?;
            Some(Range {
                owner,
                first: first.trim().parse().ok()?,
                count: count.trim().parse().ok()?,
            })
        };
        Files {
            accounts: lines("passwd").into_iter().filter_map(account).collect(),
            subuid: lines("subuid").into_iter().filter_map(range).collect(),
            subgid: lines("subgid").into_iter().filter_map(range).collect(),
        }
    }

    fn choose(
        &self,
        given: Option<&str>,
        sudo: Option<&str>,
        uid: u32,
    ) -> Result<User, Box<Requirement>> {
        let root = uid == 0;
        if let Some(name) = given {
            let user = self
                .named(name)
                .ok_or_else(|| self.unmet(format!("there is no user `{name}`"), name, true))?;
            if !root && user.uid != uid {
                return Err(Box::new(Requirement::unmet(
                    WHAT,
                    format!("only root can run cells as another user, `{name}`"),
                    "run it with `sudo`",
                )));
            }
            return self.with_ids(user);
        }
        if !root {
            let user = self.of_id(uid).ok_or_else(|| {
                self.unmet(format!("user {uid} is not in /etc/passwd"), DEFAULT, true)
            })?;
            return self.with_ids(&user);
        }
        if let Some(user) = sudo
            .and_then(|name| self.named(name))
            .filter(|user| user.uid != 0)
        {
            return self.with_ids(user);
        }
        let mut login = self
            .accounts
            .iter()
            .filter(|account| account.may_log_in())
            .peekable();
        let first = login.peek().map(|account| account.user.name.clone());
        match (login.find(|account| self.has_ids(&account.user)), first) {
            (Some(account), _) => Ok(account.user.clone()),
            (None, Some(name)) => Err(self.unmet(
                "no user has 65536 ids in both /etc/subuid and /etc/subgid".to_owned(),
                &name,
                false,
            )),
            (None, None) => Err(self.unmet("there is no login user".to_owned(), DEFAULT, true)),
        }
    }

    fn of_id(&self, uid: u32) -> Option<User> {
        let mut users = self.accounts.iter().map(|account| &account.user);
        users.find(|user| user.uid == uid).cloned()
    }

    fn named(&self, name: &str) -> Option<&User> {
        self.accounts
            .iter()
            .map(|account| &account.user)
            .find(|user| user.name == name)
    }

    fn with_ids(&self, user: &User) -> Result<User, Box<Requirement>> {
        if self.has_ids(user) {
            return Ok(user.clone());
        }
        let name = &user.name;
        Err(self.unmet(
            format!("user `{name}` lacks 65536 ids in /etc/subuid or /etc/subgid"),
            name,
            false,
        ))
    }

    fn has_ids(&self, user: &User) -> bool {
        let uid = user.uid.to_string();
        [&self.subuid, &self.subgid].into_iter().all(|ranges| {
            ranges.iter().any(|range| {
                (range.owner == user.name || range.owner == uid) && range.count >= SUB_IDS
            })
        })
    }

    /// The unmet requirement with the commands that give `name` (or make it and give it) ids nobody has.
    fn unmet(&self, reason: String, name: &str, make: bool) -> Box<Requirement> {
        let first = self
            .subuid
            .iter()
            .chain(&self.subgid)
            .map(|range| range.first.saturating_add(range.count))
            .max()
            .unwrap_or(0)
            .max(100_000);
        let last = first.saturating_add(SUB_IDS - 1);
        let made = if make {
            format!("useradd --create-home {name} && ")
        } else {
            String::new()
        };
        Box::new(Requirement::unmet(
            WHAT,
            reason,
            format!(
                "{made}usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {name}"
            ),
        ))
    }
}

const WHAT: &str = "user for rootless cells";
/// The user that a fix makes where there is none.
const DEFAULT: &str = "cells";

impl Account {
    fn may_log_in(&self) -> bool {
        let shell = self
            .shell
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        (1000..60_000).contains(&self.user.uid) && !matches!(shell, "nologin" | "false")
    }
}

/// The requirement that [`choose`] checks, met or unmet.
pub(crate) fn requirement(given: Option<&str>) -> Requirement {
    match choose(given) {
        Ok(user) => Requirement::met(WHAT, user.name),
        Err(unmet) => *unmet,
    }
}

/// The requirement that every user may open the device with which slirp4netns connects a network namespace.
pub fn tap_device() -> Requirement {
    const DEVICE: &str = "/dev/net/tun";
    let (why, fix) = match fs::metadata(DEVICE) {
        Ok(found) if found.mode() & 0o006 == 0o006 => {
            return Requirement::met(DEVICE, "open to every user");
        }
        Ok(found) => (
            format!(
                "only its owner may open {DEVICE} (mode {:o}), which slirp4netns needs",
                found.mode() & 0o777
            ),
            "chmod 0666 /dev/net/tun",
        ),
        Err(_) => (
            format!("there is no {DEVICE}, which slirp4netns needs"),
            "modprobe tun",
        ),
    };
    Requirement::unmet(DEVICE, why, fix)
}

/// The requirement that an unprivileged process may make user namespaces.
pub fn namespaces() -> Requirement {
    const WHAT: &str = "user namespaces";
    let number = |path: &str| -> Option<u64> { host::file::text(path).ok()?.trim().parse().ok() };
    for (path, fix) in [
        (
            "/proc/sys/user/max_user_namespaces",
            "sysctl -w user.max_user_namespaces=10000",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
    ] {
        if number(path) == Some(0) {
            return Requirement::unmet(WHAT, format!("{path} is 0"), fix);
        }
    }
    let restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    if !is_root() && number(restricted).is_some_and(|found| found != 0) {
        return Requirement::unmet(
            WHAT,
            "AppArmor allows them only to programs with a profile",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        );
    }
    Requirement::met(WHAT, "allowed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(passwd: &str, sub: &str) -> Files {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), passwd).unwrap();
        fs::write(dir.path().join("subuid"), sub).unwrap();
        fs::write(dir.path().join("subgid"), sub).unwrap();
        Files::at(dir.path())
    }

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
        daemon:x:1001:1001::/:/usr/sbin/nologin\n\
        ann:x:1002:1002::/home/ann:/bin/bash\n\
        bob:x:1003:1003::/home/bob:/bin/bash\n";

    #[test]
    fn the_first_login_user_with_ids_is_chosen() {
        let files = files(PASSWD, "daemon:100000:65536\nbob:165536:65536\n");
        assert_eq!(files.choose(None, None, 0).unwrap().name, "bob");
        assert_eq!(
            files.choose(Some("daemon"), Some("bob"), 0).unwrap().uid,
            1001
        );
        assert_eq!(files.choose(None, Some("root"), 0).unwrap().name, "bob");
        assert_eq!(files.choose(None, None, 1003).unwrap().name, "bob");
    }

    #[test]
    fn the_fix_gives_ids_that_nobody_has() {
        let files = files(PASSWD, "bob:100000:65536\n");
        let unmet = files.choose(None, Some("ann"), 0).unwrap_err();
        assert_eq!(
            unmet.fix.unwrap(),
            "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 ann"
        );
        assert!(
            files
                .choose(Some("bob"), None, 1002)
                .unwrap_err()
                .reason
                .contains("only root")
        );
    }

    #[test]
    fn without_any_user_one_is_to_be_made() {
        let files = files("root:x:0:0:root:/root:/bin/bash\nbroken\n", "");
        let unmet = files.choose(None, None, 0).unwrap_err();
        assert_eq!(
            unmet.fix.unwrap(),
            "useradd --create-home cells && usermod --add-subuids 100000-165535 --add-subgids 100000-165535 cells"
        );
        assert!(
            files
                .choose(Some("eve"), None, 0)
                .unwrap_err()
                .reason
                .contains("`eve`")
        );
    }
}
