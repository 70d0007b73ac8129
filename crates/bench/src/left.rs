//! Tasks and interrupts that a killed coordinator left moved: a change of the machine before they are put back would take that for its original
//! state.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::place::{ISOLATION, PREFIX, base, list, living_in, uid};

/// The place of a gone coordinator of this user, with tasks and interrupts still off its cpus; [`sweep_stale`](crate::sweep_stale) puts them back.
pub fn left_isolated() -> Option<PathBuf> {
    left_isolated_in(&base())
}

fn left_isolated_in(base: &Path) -> Option<PathBuf> {
    let mine = format!("{PREFIX}{}-", uid());
    let living = living_in(base);
    list(base).into_iter().find(|dir| {
        let has = |file: &Path, begin: &str| {
            (file.file_name()).is_some_and(|name| name.to_string_lossy().starts_with(begin))
        };
        let is_own = fs::symlink_metadata(dir)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == uid() && meta.mode() & 0o022 == 0);
        is_own
            && has(dir, &mine)
            && living.iter().all(|place| place.dir != *dir)
            && list(dir).iter().any(|file| has(file, ISOLATION))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{OWNER, start_ticks};
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;

    #[test]
    fn what_a_killed_one_has_moved_is_found() {
        let base = tempfile::tempdir().unwrap();
        let own = std::process::id().cast_signed();
        let place = |name: &str, start_ticks: Option<u64>| {
            let dir = base.path().join(format!("{PREFIX}{}-{name}", uid()));
            DirBuilder::new().mode(0o711).create(&dir).unwrap();
            let note = serde_json::json!({"pid": own, "start_ticks": start_ticks});
            fs::write(dir.join(OWNER), note.to_string()).unwrap();
            dir
        };
        let living = place("1", start_ticks(own));
        fs::write(living.join(format!("{ISOLATION}1")), "").unwrap();
        let dead = place("2", Some(1));
        assert_eq!(left_isolated_in(base.path()), None);
        fs::write(dead.join(format!("{ISOLATION}3")), "").unwrap();
        assert_eq!(left_isolated_in(base.path()), Some(dead));
    }
}
