//! Results from another machine, put in their places here: each run is there as a whole, or not at all.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use guest::GuestError;
use host::writer;

use super::common::give_to_sudo_user;
use crate::exit::CommandError;
use crate::out;

/// Makes the error of a file from the system's.
pub fn told(
    path: &Path,
    doing: &'static str,
) -> impl FnOnce(std::io::Error) -> CommandError + use<> {
    let path = path.to_owned();
    move |source| CommandError::File {
        path,
        doing,
        source,
    }
}

/// Has a directory filled with results, and keeps the runs in it below `into`; `sort` says where in it they are, and may put the rest
/// elsewhere. Returns the runs.
pub fn keep(
    into: &Path,
    fill: impl FnOnce(&Path) -> Result<(), GuestError>,
    sort: impl FnOnce(&Path) -> Result<PathBuf, CommandError>,
) -> Result<Vec<PathBuf>, CommandError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let is_new = !into.exists();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let begun = into.join(format!(".fetched-{}-{number}", std::process::id()));
    writer::create_dir_all(&begun).map_err(told(&begun, "make the directory"))?;
    let filled = fill(&begun).map_err(CommandError::from);
    let kept = filled.and_then(|()| {
        // Two machines may have given their results one name.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(|held| held.into_inner());
        let runs = sort(&begun)?;
        moved(&runs, into).map_err(told(into, "keep the runs"))
    });
    let _ = writer::remove_dir_all(&begun);
    if is_new {
        // Only if nothing is in it.
        let _ = std::fs::remove_dir(into);
    }
    let kept = kept?;
    for run in &kept {
        give_to_sudo_user(run, Some(into).filter(|_| is_new));
        out::note(&format!("run     {}", run.display()));
    }
    Ok(kept)
}

/// Moves runs to their directory; others of the same name stay.
fn moved(from: &Path, into: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    // A link there may lead to any directory here.
    if !from.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        return Ok(kept);
    }
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_hidden || !entry.file_type()?.is_dir() {
            continue;
        }
        let path = free(&into.join(entry.file_name()));
        writer::rename(&entry.path(), &path)?;
        kept.push(path);
    }
    kept.sort();
    Ok(kept)
}

/// Has files written into another directory on the same disk, and puts them in `dir` once all of them are there. Those of the same name there
/// are replaced.
pub fn whole(
    dir: &Path,
    write: impl FnOnce(&Path) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let is_new = !dir.exists();
    // A name that nobody else gives a directory: what stands there was left by one that was killed.
    let begun = match dir.file_name() {
        Some(name) if is_new => {
            dir.with_file_name(format!(".timecell-{}.part", name.to_string_lossy()))
        }
        _ => dir.join(".timecell.part"),
    };
    let _ = writer::remove_dir_all(&begun);
    writer::create_dir_all(&begun).map_err(told(&begun, "make the directory"))?;
    let placed = write(&begun).and_then(|()| {
        let place = || match is_new {
            true => writer::rename(&begun, dir),
            false => (std::fs::read_dir(&begun)?).try_for_each(|entry| {
                let entry = entry?;
                writer::rename(&entry.path(), &dir.join(entry.file_name()))
            }),
        };
        place().map_err(told(dir, "put the files there"))
    });
    let _ = writer::remove_dir_all(&begun);
    placed
}

/// The path, or one beside it with a number if something is there.
pub fn free(path: &Path) -> PathBuf {
    let numbered = |number: u32| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{number}"));
        path.with_file_name(name)
    };
    let mut paths = std::iter::once(path.to_owned()).chain((2..).map(numbered));
    paths
        .find(|path| path.symlink_metadata().is_err())
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_there_as_a_whole_or_not_at_all() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("built");
        let named = |dir: &Path| {
            let mut names: Vec<_> = std::fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let fails = |begun: &Path| {
            std::fs::write(begun.join("kernel"), "half").unwrap();
            Err(told(begun, "write it")(
                std::io::ErrorKind::StorageFull.into(),
            ))
        };
        let works = |begun: &Path| {
            std::fs::write(begun.join("kernel"), "whole").unwrap();
            Ok(())
        };
        assert!(whole(&dir, fails).is_err());
        assert_eq!(named(above.path()), [] as [&str; 0]);
        whole(&dir, works).unwrap();
        std::fs::write(dir.join("mine"), "").unwrap();
        assert!(whole(&dir, fails).is_err());
        whole(&dir, works).unwrap();
        assert_eq!(named(above.path()), ["built"]);
        assert_eq!(named(&dir), ["kernel", "mine"]);
        assert_eq!(std::fs::read(dir.join("kernel")).unwrap(), b"whole");
    }

    #[test]
    fn runs_are_kept_beside_those_of_the_same_name() {
        let dir = tempfile::tempdir().unwrap();
        let (from, into) = (dir.path().join("from"), dir.path().join("into"));
        for path in [
            from.join("a"),
            from.join("b"),
            from.join(".b"),
            into.join("a"),
        ] {
            std::fs::create_dir_all(path).unwrap();
        }
        std::fs::write(from.join("latest"), "").unwrap();
        assert_eq!(
            moved(&from, &into).unwrap(),
            [into.join("a-2"), into.join("b")]
        );
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&into, &link).unwrap();
        assert_eq!(moved(&link, &from).unwrap(), [] as [PathBuf; 0]);
        assert!(into.join("a-2").is_dir());
    }
}
