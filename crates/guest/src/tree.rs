//! A tree of files: what is to be in a guest's initial file system, or what a directory holds.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use host::given_file;

use crate::cpio::{Head, Kind, Reader, Writer};

/// Where the content of an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    mode: u32,
    content: Content,
}

/// A tree of files by their paths, which have no slash in front. Directories that lead to an entry are there as well.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

/// Directories of old that are links in a system whose programs are all below `usr`.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

impl Tree {
    /// Adds a directory.
    pub fn directory(&mut self, path: &str, mode: u32) {
        self.put(path, Kind::Directory, mode, Content::Bytes(Vec::new()));
    }

    /// Adds a file with this content.
    pub fn text(&mut self, path: &str, mode: u32, text: impl Into<Vec<u8>>) {
        self.put(path, Kind::File, mode, Content::Bytes(text.into()));
    }

    /// Adds a file of this machine, which is read when the tree is written.
    pub fn file(&mut self, path: &str, mode: u32, from: &Path) {
        self.put(path, Kind::File, mode, Content::Path(from.to_owned()));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, to: &str) {
        self.put(path, Kind::Link, 0o777, Content::Bytes(to.into()));
    }

    /// Adds a character device.
    pub fn device(&mut self, path: &str, mode: u32, major: u32, minor: u32) {
        self.put(
            path,
            Kind::Device(major, minor),
            mode,
            Content::Bytes(Vec::new()),
        );
    }

    /// Whether there is such an entry.
    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path)
    }

    /// Adds links from `bin`, `lib` and so on to those below `usr`, where [`Tree::add`] puts what is in them.
    pub fn merge_usr(&mut self) {
        for name in MERGED {
            self.directory(&format!("usr/{name}"), 0o755);
            self.link(name, &format!("usr/{name}"));
        }
    }

    /// Adds what is below a directory of this machine.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn add(&mut self, from: &Path) -> io::Result<()> {
        self.add_placed(from, &Some)
    }

    /// Adds what is below a directory of this machine, each at the place of its path, or not at all.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn add_placed(
        &mut self,
        from: &Path,
        place: &dyn Fn(String) -> Option<String>,
    ) -> io::Result<()> {
        self.add_below(from, "", place)
    }

    /// Adds the files of an unpacked package: those of `bin`, `lib` and so on below `usr`, and none for whose path `skip` is true.
    ///
    /// # Errors
    /// Those of reading the directory.
    pub fn add_package(&mut self, from: &Path, skip: &dyn Fn(&str) -> bool) -> io::Result<()> {
        let place = |path: String| {
            let top = path.split('/').next().unwrap_or_default();
            let path = if MERGED.contains(&top) {
                format!("usr/{path}")
            } else {
                path
            };
            (!skip(&path)).then_some(path)
        };
        self.add_below(from, "", &place)
    }

    fn add_below(
        &mut self,
        from: &Path,
        below: &str,
        place: &dyn Fn(String) -> Option<String>,
    ) -> io::Result<()> {
        for found in fs::read_dir(from)? {
            let found = found?;
            let name = found.file_name().into_string();
            let name = name.map_err(|name| {
                io::Error::other(format!("{}: the name is not UTF-8", name.display()))
            })?;
            let whole = format!("{below}{name}");
            let Some(path) = place(whole.clone()) else {
                continue;
            };
            let about = found.metadata()?;
            let (kind, mode) = (about.file_type(), about.permissions().mode() & 0o7777);
            if kind.is_symlink() {
                let to = fs::read_link(found.path())?;
                self.link(&path, &to.to_string_lossy());
            } else if kind.is_dir() {
                self.directory(&path, mode);
                self.add_below(&found.path(), &format!("{whole}/"), place)?;
            } else if kind.is_file() {
                self.file(&path, mode, &found.path());
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &str, kind: Kind, mode: u32, content: Content) {
        if let Some((above, _)) = path.rsplit_once('/')
            && !self.entries.contains_key(above)
        {
            self.directory(above, 0o755);
        }
        let entry = Entry {
            kind,
            mode,
            content,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Writes the tree as a newc archive: the same tree, the same bytes.
    ///
    /// # Errors
    /// Those of reading its files and of writing; a file of 4 GiB or more does not fit.
    pub fn write<W: Write>(&self, out: W) -> io::Result<W> {
        let mut writer = Writer::new(out);
        for (path, entry) in &self.entries {
            let told = |error: io::Error, of: &Path| {
                io::Error::new(error.kind(), format!("{}: {error}", of.display()))
            };
            let mut head = Head {
                path: path.clone(),
                kind: entry.kind,
                mode: entry.mode,
                bytes: 0,
            };
            match &entry.content {
                Content::Bytes(bytes) => {
                    head.bytes = bytes.len() as u32;
                    writer.add(&head, &bytes[..])?;
                }
                Content::Path(from) => {
                    let file = given_file::regular(from, u64::MAX);
                    let file = file.map_err(|error| told(error, from))?;
                    let size = file.metadata().map_err(|error| told(error, from))?.size();
                    head.bytes = size.try_into().map_err(|_| {
                        io::Error::other(format!(
                            "{}: files of 4 GiB and more do not fit",
                            from.display()
                        ))
                    })?;
                    writer.add(&head, file)?;
                }
            }
        }
        writer.finish()
    }
}

impl Tree {
    /// Makes the tree below a directory of this machine that is empty; no devices, which a guest has of its kernel.
    ///
    /// # Errors
    /// Those of reading its files and of writing.
    pub fn place(&self, into: &Path) -> io::Result<()> {
        for (path, entry) in &self.entries {
            let to = into.join(path);
            match (entry.kind, &entry.content) {
                (Kind::Directory, _) => fs::create_dir(&to)?,
                (Kind::Link, Content::Bytes(bytes)) => {
                    std::os::unix::fs::symlink(OsStr::from_bytes(bytes), &to)?;
                }
                (Kind::File, Content::Bytes(bytes)) => fs::write(&to, bytes)?,
                (Kind::File, Content::Path(from)) => drop(fs::copy(from, &to)?),
                _ => {}
            }
            if matches!(entry.kind, Kind::Directory | Kind::File) {
                fs::set_permissions(&to, fs::Permissions::from_mode(entry.mode))?;
            }
        }
        Ok(())
    }

    /// Bytes that its files take, and the number of its entries.
    ///
    /// # Errors
    /// If a file is not there any more.
    pub fn size(&self) -> io::Result<(u64, u64)> {
        let size = |entry: &Entry| match &entry.content {
            Content::Bytes(bytes) => Ok(bytes.len() as u64),
            Content::Path(from) => Ok(fs::metadata(from)?.len()),
        };
        let sizes: io::Result<Vec<u64>> = self.entries.values().map(size).collect();
        let sizes = sizes?;
        Ok((sizes.iter().sum(), sizes.len() as u64))
    }
}

/// Unpacks files, directories and links of an archive into a directory that is there, and empty; of devices nothing is made. Whoever has made
/// the archive reaches nothing outside: what is written is new, and in directories that this has made.
///
/// # Errors
/// Those of reading and writing; `InvalidData` if it is no archive, or has a path or a link that leads out of the directory.
pub fn unpack(archive: impl Read, into: &Path) -> io::Result<()> {
    let mut reader = Reader::new(archive);
    let mut made = HashSet::from([into.to_owned()]);
    let bad = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let mut one = |head: &Head, content: &mut dyn Read| {
        let path = into.join(&head.path);
        if !path.parent().is_some_and(|above| made.contains(above)) {
            return bad("an archive with files below no directory of its own");
        }
        match head.kind {
            Kind::Directory => {
                host::writer::create_dir(&path)?;
                made.insert(path);
            }
            Kind::File => {
                let mut options = File::options();
                options.write(true).create_new(true);
                let mut file = host::writer::below(&path, || options.open(&path))?;
                io::copy(content, &mut file)?;
                file.set_permissions(fs::Permissions::from_mode(head.mode & 0o755 | 0o600))?;
            }
            Kind::Link => {
                let mut to = String::new();
                content.take(4096).read_to_string(&mut to)?;
                let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
                if !Path::new(&to).components().all(is_below) {
                    return bad("an archive with a link that leads out of it");
                }
                host::writer::below(&path, || std::os::unix::fs::symlink(to, &path))?;
            }
            Kind::Device(..) => {}
        }
        Ok(())
    };
    while reader.next(&mut one)? {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("lib/x")).unwrap();
        fs::create_dir_all(dir.path().join("usr/share/doc")).unwrap();
        fs::write(dir.path().join("lib/x/a.so"), "so").unwrap();
        fs::write(dir.path().join("usr/share/doc/long"), "text").unwrap();
        std::os::unix::fs::symlink("a.so", dir.path().join("lib/x/b.so")).unwrap();
        dir
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let tree = |dir: &Path| {
            let mut tree = Tree::default();
            tree.add_package(dir, &|path| path.starts_with("usr/share/doc/"))
                .unwrap();
            tree.merge_usr();
            tree.text("etc/passwd", 0o644, "root");
            tree
        };
        let (one, other) = (dir(), dir());
        let bytes = tree(one.path()).write(Vec::new()).unwrap();
        // Made later, elsewhere, and found in whatever order.
        assert_eq!(bytes, tree(other.path()).write(Vec::new()).unwrap());
        let tree = tree(one.path());
        assert!(tree.has("usr/lib/x/a.so") && tree.has("lib") && tree.has("etc"));
        assert!(!tree.has("lib/x/a.so") && !tree.has("usr/share/doc/long"));
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let from = dir();
        let mut tree = Tree::default();
        tree.add(from.path()).unwrap();
        tree.device("dev/console", 0o600, 5, 1);
        let bytes = tree.write(Vec::new()).unwrap();
        let into = tempfile::tempdir().unwrap();
        unpack(&bytes[..], into.path()).unwrap();
        let read = |path: &str| fs::read_to_string(into.path().join(path)).unwrap();
        assert_eq!(
            (read("lib/x/a.so"), read("lib/x/b.so")),
            ("so".into(), "so".into())
        );
        assert!(!into.path().join("dev/console").exists());
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let victim = tempfile::tempdir().unwrap();
        fs::create_dir(victim.path().join("inner")).unwrap();
        fs::write(victim.path().join("file"), "old").unwrap();
        let out = victim.path().to_str().unwrap();
        let unpacked = |link: (&str, &str), file: &str| {
            let head = |path: &str, kind, bytes: usize| Head {
                path: path.to_owned(),
                kind,
                mode: 0o644,
                bytes: bytes as u32,
            };
            let mut writer = Writer::new(Vec::new());
            writer
                .add(&head(link.0, Kind::Link, link.1.len()), link.1.as_bytes())
                .unwrap();
            writer.add(&head(file, Kind::File, 3), &b"new"[..]).unwrap();
            let bytes = writer.finish().unwrap();
            let into = tempfile::tempdir().unwrap();
            unpack(&bytes[..], into.path()).unwrap_err().to_string()
        };
        let leads_out = "a link that leads out";
        for link in [out, "../../../tmp", &format!("{out}/file")] {
            let error = unpacked(("a", link), "b");
            assert!(error.contains(leads_out), "{error}");
        }
        // Not even where the link stays inside.
        let error = unpacked(("a", "b"), "a");
        assert!(error.contains("exists"), "{error}");
        for file in ["a/x", "a/inner/x"] {
            let error = unpacked(("a", "."), file);
            assert!(error.contains("below no directory"), "{error}");
        }
        assert_eq!(
            fs::read_to_string(victim.path().join("file")).unwrap(),
            "old"
        );
        assert_eq!(
            fs::read_dir(victim.path().join("inner")).unwrap().count(),
            0
        );
    }
}
