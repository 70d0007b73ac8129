//! Files that the user asked for, and records that are replaced as a whole: they appear once they are complete, and
//! not before.
//!
//! Every page, table and figure, and every JSON of a run goes through here. Root writes below a user's directory, and through
//! a user's link, as that user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use host::handover::Owner;
use host::writer;

use crate::RecordError;

/// A file that is being written.
///
/// Until [`Output::finish`] it has a temporary name, and without it nothing remains. Links are followed, and an existing
/// file that is not regular (a device, a pipe) is written to, not replaced.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    owner: Option<Owner>,
    /// Its temporary and its final name; `None` for a file that is not replaced.
    names: Option<(PathBuf, PathBuf)>,
    file: BufWriter<File>,
}

impl Output {
    /// Begins to write a file.
    ///
    /// # Errors
    /// When it cannot be created, or the existing file not be opened.
    pub fn create(path: &Path) -> Result<Output, RecordError> {
        let owner = writer::of(path);
        let (names, file) = writer::acting_as(owner, || begin(path))?;
        Ok(Output {
            path: path.to_owned(),
            owner,
            names,
            file: BufWriter::new(file),
        })
    }

    /// The file, for what is not written from beginning to end; `None` if it is a device or pipe.
    pub fn file(&self) -> Option<&File> {
        self.names.as_ref().map(|_| self.file.get_ref())
    }

    /// Syncs the file to disk and gives it its final name.
    ///
    /// # Errors
    /// When the disk is full or the name cannot be given.
    #[expect(clippy::disallowed_methods, reason = "done as the owner")]
    pub fn finish(mut self) -> Result<(), RecordError> {
        let written = self.file.flush();
        let Some((part, whole)) = &self.names else {
            return written.map_err(RecordError::io(&self.path, "write"));
        };
        written
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| writer::acting_as(self.owner, || fs::rename(part, whole)))
            .map_err(RecordError::io(&self.path, "write"))?;
        self.names = None;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.names {
            let _ = writer::acting_as(self.owner, || fs::remove_file(part));
        }
    }
}

/// The temporary and final names, and the open file.
type Begun = (Option<(PathBuf, PathBuf)>, File);

#[expect(clippy::disallowed_methods, reason = "called as the owner")]
fn begin(path: &Path) -> Result<Begun, RecordError> {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&whole).is_ok_and(|found| !found.is_file()) {
        // A pipe without a reader is refused instead of waited for.
        let file = host::writer::open_at_once(OpenOptions::new().write(true), &whole);
        return Ok((None, file.map_err(RecordError::io(path, "write"))?));
    }
    let part = whole.with_added_extension("part");
    // Left by a killed process, or a planted link: never written through.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(RecordError::io(path, "create")(error));
        }
        _ => {}
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&part)
        .map_err(RecordError::io(path, "create"))?;
    Ok((Some((part, whole)), file))
}
