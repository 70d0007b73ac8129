//! Threads of Linux that EVL runs out of band: their class and their cpus are EVL's affair, and moving one to another cpu can crash its
//! kernel.

use std::collections::BTreeSet;

use crate::root::Root;

/// One directory for each attached thread.
const THREADS: &str = "/sys/class/thread";

/// The ids of all threads that are attached; none where the kernel has no EVL.
pub fn threads() -> BTreeSet<i32> {
    threads_in(&Root::live())
}

fn threads_in(root: &Root) -> BTreeSet<i32> {
    let all = root.names_in(THREADS).into_iter();
    let id = |name: String| {
        root.read(format!("{THREADS}/{name}/pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    all.filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_by_their_ids() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        assert_eq!(threads_in(&root), BTreeSet::new());
        for (name, pid) in [
            ("clone", None),
            ("app:1", Some("812\n")),
            ("gone", Some("none\n")),
        ] {
            let own = tree.path().join("sys/class/thread").join(name);
            std::fs::create_dir_all(&own).unwrap();
            if let Some(pid) = pid {
                std::fs::write(own.join("pid"), pid).unwrap();
            }
        }
        assert_eq!(threads_in(&root), BTreeSet::from([812]));
    }

    #[test]
    fn a_right_to_run_out_of_band_gives_the_devices_that_a_thread_opens() {
        assert_eq!(model::mission::Rights::OF_EVL[..3], evl::NODES);
    }
}
