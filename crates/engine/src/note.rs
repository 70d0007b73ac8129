//! The note `cell.json` in a cell's private directory: written before anything is made, removed last, so that
//! whatever a killed coordinator left behind can be found and undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::CellSpec;

/// Environment variable that marks every process of a cell and of the programs that make it.
pub(crate) const MARK: &str = "TIMECELL_CELL";

/// Where the note is.
pub(crate) fn path(work_dir: &Path) -> PathBuf {
    work_dir.join("cell.json")
}

/// Writes the note, making the directory if needed.
pub(crate) fn write(spec: &CellSpec) -> Result<(), String> {
    check(spec)?;
    let write = || -> io::Result<()> {
        fs::create_dir_all(&spec.work_dir)?;
        let whole = path(&spec.work_dir);
        let part = whole.with_extension("json.part");
        fs::write(&part, serde_json::to_vec(spec)?)?;
        fs::rename(part, whole)
    };
    write().map_err(|error| format!("{}: {error}", spec.work_dir.display()))
}

/// Reads the note; `None` if there is none.
pub(crate) fn read(work_dir: &Path) -> Result<Option<CellSpec>, String> {
    let path = path(work_dir);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let spec: CellSpec =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    check(&spec)?;
    Ok(Some(spec))
}

/// Removes the note.
pub(crate) fn remove(work_dir: &Path) -> io::Result<()> {
    match fs::remove_file(path(work_dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The id becomes a name of cgroups and directories that are removed later, so it must be a plain one.
fn check(spec: &CellSpec) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if spec.id.is_empty()
        || spec.id.len() > 128
        || !spec.id.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !spec.id.chars().all(plain)
    {
        return Err(format!(
            "`{}` is not a name for a cell; use letters, digits, `-`, `_` and `.`",
            spec.id
        ));
    }
    for (what, path) in [
        ("root filesystem", &spec.rootfs),
        ("shared directory", &spec.shared),
        ("private directory", &spec.work_dir),
    ] {
        if !path.is_absolute() {
            return Err(format!(
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
        }
    }

    #[test]
    fn a_note_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec("timecell-1", &dir.path().join("new"));
        assert_eq!(read(&spec.work_dir), Ok(None));
        write(&spec).unwrap();
        assert_eq!(read(&spec.work_dir), Ok(Some(spec.clone())));
        remove(&spec.work_dir).unwrap();
        remove(&spec.work_dir).unwrap();
        assert_eq!(read(&spec.work_dir), Ok(None));
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
