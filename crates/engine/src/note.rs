//! The note `cell.json` in a cell's private directory: written before anything is made, removed last, so that
//! all remains of a killed coordinator can be found and undone.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use host::file::{at, gone};
use host::ground;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::CellSpec;
use crate::error::{Result, refused};
use crate::identity::{Identity, Noted};

/// Environment variable that marks every process of a cell and of the programs that make it.
pub(crate) const MARK: &str = "TIMECELL_CELL";

/// The longest note that is read, bytes: a mission file's worth of arguments, environment and mounts.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// Where the note is.
pub(crate) fn path(work_dir: &Path) -> PathBuf {
    work_dir.join("cell.json")
}

/// Writes the note, making the directory if needed.
pub(crate) fn write(spec: &CellSpec) -> Result<()> {
    check(
        spec,
        &[
            ("root filesystem", &spec.rootfs),
            ("shared directory", &spec.shared),
        ],
    )?;
    keep(spec, &spec.work_dir)
}

/// Writes a cell's specification as its note, making the directory if needed.
pub(crate) fn keep(spec: &impl Serialize, work_dir: &Path) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        // Not writable by others, even without a umask.
        builder.recursive(true).mode(0o755).create(work_dir)?;
        let whole = path(work_dir);
        let part = whole.with_extension("json.part");
        ground::replace(&part, &serde_json::to_vec(spec)?)?;
        fs::rename(part, whole)
    };
    Ok(write().map_err(at(work_dir))?)
}

/// Reads the note; `None` if there is none.
pub(crate) fn read(work_dir: &Path) -> Result<Option<Noted>> {
    let path = path(work_dir);
    let text = match ground::read(&path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&path)(error).into()),
    };
    let noted: Noted = serde_json::from_slice(&text).map_err(at(&path))?;
    check(&noted, &[])?;
    Ok(Some(noted))
}

/// Reads all that the note says, in the process that makes the cell or its agent.
pub(crate) fn read_whole<T: DeserializeOwned>(work_dir: &Path) -> Result<T> {
    let path = path(work_dir);
    let text = host::file::read(&path).map_err(at(&path))?;
    Ok(serde_json::from_slice(&text).map_err(at(&path))?)
}

/// Removes the note.
pub(crate) fn remove(work_dir: &Path) -> io::Result<()> {
    gone(fs::remove_file(path(work_dir)))
}

/// Longest id: names of cgroups and directories have 255 bytes at most, and some are an id with a few letters around it.
const LONGEST_ID: usize = 200;

/// The id becomes a name of cgroups and directories that are removed later, so it must be a plain one.
pub(crate) fn check(cell: &dyn Identity, paths: &[(&str, &Path)]) -> Result<()> {
    let id = cell.id();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if id.is_empty()
        || id.len() > LONGEST_ID
        || !id.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !id.chars().all(plain)
    {
        return Err(refused!(
            "`{id}` is not a valid cell name; use letters, digits, `-`, `_` and `.`"
        ));
    }
    let own = ("private directory", cell.work_dir());
    for (what, path) in paths.iter().copied().chain([own]) {
        if !path.is_absolute() {
            return Err(refused!(
                "the {what} `{}` is not an absolute path",
                path.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rights, User};

    fn spec(id: &str, work_dir: &Path) -> CellSpec {
        CellSpec {
            id: id.to_owned(),
            engine: model::EngineKind::PodmanRootless,
            rootfs: "/a".into(),
            words: vec!["probe".into(), "nop".into()],
            shared: "/b".into(),
            work_dir: work_dir.to_owned(),
            user: Some(User {
                name: "x".into(),
                uid: 1000,
                gid: 1000,
                home: "/home/x".into(),
            }),
            rights: Rights::default(),
            machine: None,
        }
    }

    #[test]
    fn a_note_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec("timecell-1", &dir.path().join("new"));
        assert_eq!(read(&spec.work_dir).unwrap(), None);
        write(&spec).unwrap();
        let noted = Noted {
            id: spec.id.clone(),
            engine: spec.engine,
            work_dir: spec.work_dir.clone(),
            user: spec.user.clone(),
        };
        assert_eq!(read(&spec.work_dir).unwrap(), Some(noted));
        remove(&spec.work_dir).unwrap();
        remove(&spec.work_dir).unwrap();
        assert_eq!(read(&spec.work_dir).unwrap(), None);
    }

    #[test]
    fn names_that_would_climb_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["", "..", "../x", "a/b", "-f", ".x", "a b"] {
            assert!(write(&spec(id, dir.path())).is_err(), "{id}");
        }
        assert!(
            write(&CellSpec {
                shared: "b".into(),
                ..spec("a", dir.path())
            })
            .is_err()
        );
    }
}
