//! Open files, and inotify, whose instances are files.

use super::limit::{Kind, Limit, Resource, of_file, of_process, pids};
use crate::root::Root;
use std::os::unix::fs::MetadataExt;

pub(super) fn limits(root: &Root, uid: u32) -> Vec<Limit> {
    let own = root.names_in("/proc/self/fd").len() as u64;
    let all = (root.read("/proc/sys/fs/file-nr").ok())
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    let instances = instances(root, uid);
    [
        of_process(
            Kind::Files,
            "open files of timecell",
            Resource::Files,
            Some(own),
        ),
        of_file(
            root,
            Kind::Files,
            "open files of the machine",
            "/proc/sys/fs/file-max",
            all,
        ),
        of_file(
            root,
            Kind::Inotify,
            "inotify instances of the user",
            "/proc/sys/fs/inotify/max_user_instances",
            Some(instances),
        ),
        of_file(
            root,
            Kind::Inotify,
            "inotify watches of the user",
            "/proc/sys/fs/inotify/max_user_watches",
            None,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// inotify instances in the open files of the user's processes.
fn instances(root: &Root, uid: u32) -> u64 {
    let mine = |pid: &String| {
        let dir = root.path(format!("/proc/{pid}"));
        dir.metadata().is_ok_and(|found| found.uid() == uid)
    };
    let of = |pid: String| {
        let fds = format!("/proc/{pid}/fd");
        let is = |fd: &String| {
            std::fs::read_link(root.path(format!("{fds}/{fd}")))
                .is_ok_and(|to| to.as_os_str() == "anon_inode:inotify")
        };
        root.names_in(&fds).iter().filter(|fd| is(fd)).count() as u64
    };
    pids(root).filter(mine).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::inotify;
    use rustix::process::geteuid;

    #[test]
    fn an_instance_of_ours_is_counted() {
        let _instance = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        assert!(instances(&Root::live(), geteuid().as_raw()) >= 1);
    }
}
