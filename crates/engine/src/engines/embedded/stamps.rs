//! Where the time goes: instants of the child's steps, for `timecell bench self startup`.

use std::fs::File;
use std::io::Write;

/// The environment variable that names the file to write the stamps to.
pub(crate) const VARIABLE: &str = "TIMECELL_STAMPS";

/// Stamps in memory; written when dropped, if a file was asked for.
pub(super) struct Stamps {
    file: Option<File>,
    taken: Vec<(&'static str, i64)>,
}

impl Stamps {
    /// Opens the file now: later its path is not visible any more.
    pub(super) fn new() -> Stamps {
        let file = std::env::var_os(VARIABLE).and_then(|path| File::create(path).ok());
        let mut stamps = Stamps {
            file,
            taken: Vec::new(),
        };
        stamps.take("child runs");
        stamps
    }

    /// Notes that `step` is done.
    pub(super) fn take(&mut self, step: &'static str) {
        if self.file.is_some() {
            self.taken.push((step, host::clock::now()));
        }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        let Some(file) = &mut self.file else { return };
        let lines: String = (self.taken.iter())
            .map(|(step, ns)| format!("{ns} {step}\n"))
            .collect();
        let _ = file.write_all(lines.as_bytes());
    }
}
