//! The documents of a run: JSON files with versioned schemas, written so that a power cut leaves either the old or the new
//! content.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::provenance::Provenance;
use host::writer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::RecordError;
use crate::output::Output;

/// A file of a run with a versioned schema.
pub trait Document: Serialize + DeserializeOwned {
    /// Name of the file in the directory of the run, or of the trial for a file of a trial.
    const FILE: &'static str;
    /// The newest schema that is read, and the one that is written.
    const SCHEMA: u64;
    /// Whether the file is overwritten in place if the disk has no room for a second one. A power cut during that damages
    /// it.
    const OVERWRITES_ON_A_FULL_DISK: bool = false;

    /// Reads a file of this schema, under any name.
    ///
    /// # Errors
    /// When it cannot be read, is malformed or cut short, or is of a newer schema.
    fn read(path: &Path) -> Result<Self, RecordError> {
        read_json(path, Self::SCHEMA)
    }

    /// Replaces a file of this schema, under any name.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, path: &Path) -> Result<(), RecordError> {
        write_json(path, self).or_else(|error| {
            let overwritten = Self::OVERWRITES_ON_A_FULL_DISK.then(|| overwrite_json(path, self));
            overwritten.flatten().ok_or(error)
        })
    }
}

impl Document for Provenance {
    const FILE: &'static str = "provenance.json";
    const SCHEMA: u64 = host::provenance::SCHEMA as u64;
}

/// Syncs the entries of a directory to disk.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), RecordError> {
    writer::below(dir, || File::open(dir))
        .and_then(|open| open.sync_all())
        .map_err(RecordError::io(dir, "write"))
}

/// Writes a file so that a reader sees the old or the new content, never half of it, even after a power cut; see
/// [`Output`].
///
/// # Errors
/// When the file cannot be written or renamed into place.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), RecordError> {
    let mut file = Output::create(path)?;
    file.write_all(content)
        .map_err(RecordError::io(path, "write"))?;
    file.finish()
}

pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RecordError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| RecordError::malformed(path, error.to_string()))?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Overwrites a file without taking more room on the disk; `None` if its blocks do not suffice or it does not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "done as the user who writes there"
)]
fn overwrite_json<T: Serialize>(path: &Path, value: &T) -> Option<()> {
    let mut text = serde_json::to_vec_pretty(value).ok()?;
    text.push(b'\n');
    let mut file = writer::below(path, || fs::OpenOptions::new().write(true).open(path)).ok()?;
    let room = file.metadata().ok()?.blocks().saturating_mul(512);
    if (text.len() as u64) > room {
        return None;
    }
    file.write_all(&text).ok()?;
    file.set_len(text.len() as u64).ok()?;
    file.sync_all().ok()
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path, known: u64) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let text = fs::read(path).map_err(RecordError::io(path, "read"))?;
    let explain = |error: serde_json::Error| match error.classify() {
        serde_json::error::Category::Eof => RecordError::CutShort {
            path: path.to_owned(),
            what: format!("the JSON ends at line {}", error.line()),
        },
        _ => RecordError::malformed(path, format!("not of this schema: {error}")),
    };
    let version: Version = serde_json::from_slice(&text).map_err(explain)?;
    if version.schema > known {
        return Err(RecordError::Newer {
            path: path.to_owned(),
            found: version.schema,
            known,
        });
    }
    serde_json::from_slice(&text).map_err(explain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_over_within_its_blocks_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        assert!(overwrite_json(&path, &1).is_none(), "it is not there");
        write_json(&path, &"longer than the next").unwrap();
        overwrite_json(&path, &2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
        assert!(overwrite_json(&path, &"x".repeat(1 << 20)).is_none());
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n", "untouched");
    }
}
