//! Small made-up trees of `/proc` and `/sys` for tests.

use crate::root::Root;

/// A directory that plays the machine; gone when it is dropped.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Adds a file, with its directories, or replaces it.
    pub(crate) fn file(self, absolute: &str, text: &str) -> Self {
        self.bytes(absolute, text.as_bytes())
    }

    pub(crate) fn bytes(self, absolute: &str, bytes: &[u8]) -> Self {
        let path = self.root().path(absolute);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, bytes).expect("a file");
        self
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.0.path())
    }
}

/// `text` as the kernel packs its build options.
pub(crate) fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}
