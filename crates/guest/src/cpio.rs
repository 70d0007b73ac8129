//! newc archives: what the kernel unpacks as its initial file system, and how directories come back from a guest. The same
//! entries give the same bytes: times are 0, owners are root, inodes are counted.

use std::io::{self, Read, Write};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link; its content is where it leads.
    Link,
    /// A character device with these numbers.
    Device(u32, u32),
}

/// The head of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its path, without a slash in front.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its permissions, `0o7777` at most.
    pub mode: u32,
    /// Bytes of content, below 4 GiB.
    pub bytes: u32,
}

const TRAILER: &str = "TRAILER!!!";
/// Longest path that is read.
const MOST_PATH: u32 = 4096;

impl Kind {
    /// Its bits in a mode.
    fn bits(self) -> u32 {
        match self {
            Kind::Directory => 0o040_000,
            Kind::File => 0o100_000,
            Kind::Link => 0o120_000,
            Kind::Device(..) => 0o020_000,
        }
    }

    fn of(mode: u32, major: u32, minor: u32) -> Option<Kind> {
        match mode & 0o170_000 {
            0o040_000 => Some(Kind::Directory),
            0o100_000 => Some(Kind::File),
            0o120_000 => Some(Kind::Link),
            0o020_000 => Some(Kind::Device(major, minor)),
            _ => None,
        }
    }
}

/// Writes an archive.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    inode: u32,
}

impl<W: Write> Writer<W> {
    /// An archive that begins here.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, inode: 0 }
    }

    /// Adds an entry, whose content is read from `content` and must have the length that the head says.
    ///
    /// # Errors
    /// Those of reading and writing; `UnexpectedEof` if the content is shorter.
    pub fn add(&mut self, head: &Head, content: impl Read) -> io::Result<()> {
        self.inode += 1;
        let links = if head.kind == Kind::Directory { 2 } else { 1 };
        self.head(
            &head.path,
            head.kind.bits() | (head.mode & 0o7777),
            links,
            head,
        )?;
        let wanted = u64::from(head.bytes);
        if io::copy(&mut content.take(wanted), &mut self.out)? != wanted {
            let what = format!("{}: it became shorter while it was read", head.path);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        self.pad(head.bytes as usize)
    }

    /// Ends the archive, and returns where it was written.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.inode = 0;
        let end = Head {
            path: TRAILER.to_owned(),
            kind: Kind::File,
            mode: 0,
            bytes: 0,
        };
        self.head(TRAILER, 0, 1, &end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn head(&mut self, path: &str, mode: u32, links: u32, head: &Head) -> io::Result<()> {
        let (major, minor) = match head.kind {
            Kind::Device(major, minor) => (major, minor),
            _ => (0, 0),
        };
        let name = path.len() as u32 + 1;
        let numbers = [
            self.inode, mode, 0, 0, links, 0, head.bytes, 0, 0, major, minor, name, 0,
        ];
        let numbers: String = numbers
            .iter()
            .map(|number| format!("{number:08x}"))
            .collect();
        write!(self.out, "070701{numbers}{path}\0")?;
        self.pad(110 + name as usize)
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        self.out
            .write_all(&[0; 3][..length.next_multiple_of(4) - length])
    }
}

/// Reads an archive, entry after entry.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
}

fn bad(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not a newc archive: {what}"),
    )
}

impl<R: Read> Reader<R> {
    /// The archive that begins here.
    pub fn new(input: R) -> Reader<R> {
        Reader { input }
    }

    /// Reads the next entry and passes it with its content to `take`; `false` at the end.
    ///
    /// # Errors
    /// Those of reading and of `take`; `InvalidData` if this is no archive, or if a path leaves the directory that it is unpacked to.
    pub fn next(
        &mut self,
        take: impl FnOnce(&Head, &mut dyn Read) -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut raw = [0; 110];
        self.input.read_exact(&mut raw)?;
        if &raw[..6] != b"070701" {
            return Err(bad("no magic number"));
        }
        let number = |place: usize| {
            let digits =
                std::str::from_utf8(&raw[6 + 8 * place..14 + 8 * place]).unwrap_or_default();
            u32::from_str_radix(digits, 16).map_err(|_| bad("no hexadecimal number"))
        };
        let (mode, bytes, length) = (number(1)?, number(6)?, number(11)?);
        let (major, minor) = (number(9)?, number(10)?);
        if !(2..=MOST_PATH).contains(&length) {
            return Err(bad("a path is too long"));
        }
        let mut path = vec![0; length as usize];
        self.input.read_exact(&mut path)?;
        self.pad(110 + length as usize)?;
        path.pop();
        let path = String::from_utf8(path).map_err(|_| bad("a path is not UTF-8"))?;
        if path == TRAILER {
            return Ok(false);
        }
        if !is_below(&path) {
            return Err(bad("a path leaves the directory"));
        }
        let kind = Kind::of(mode, major, minor).ok_or_else(|| bad("an unknown kind of file"))?;
        let head = Head {
            path,
            kind,
            mode: mode & 0o7777,
            bytes,
        };
        let mut content = (&mut self.input).take(u64::from(bytes));
        take(&head, &mut content)?;
        io::copy(&mut content, &mut io::sink())?;
        if content.limit() > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pad(bytes as usize)?;
        Ok(true)
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        let more = length.next_multiple_of(4) - length;
        self.input.read_exact(&mut [0; 3][..more])
    }
}

/// Whether a path stays below the directory where it begins.
fn is_below(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Entry = (Head, Vec<u8>);

    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        entries
            .iter()
            .for_each(|(head, content)| writer.add(head, &content[..]).unwrap());
        writer.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<Entry>> {
        let mut reader = Reader::new(bytes);
        let mut entries = Vec::new();
        let mut entry = |head: &Head, content: &mut dyn Read| {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            entries.push((head.clone(), bytes));
            Ok(())
        };
        while reader.next(&mut entry)? {}
        Ok(entries)
    }

    fn entry(path: &str, kind: Kind, content: &[u8]) -> Entry {
        let head = Head {
            path: path.to_owned(),
            kind,
            mode: 0o755,
            bytes: content.len() as u32,
        };
        (head, content.to_vec())
    }

    #[test]
    fn cpio_reads_what_is_written() {
        let entries = [
            entry("dev", Kind::Directory, b""),
            entry("dev/console", Kind::Device(5, 1), b""),
            entry("init", Kind::File, b"12345"),
            entry("link", Kind::Link, b"init"),
        ];
        let bytes = written(&entries);
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(read(&bytes).unwrap(), entries);
        let cpio = std::process::Command::new("cpio")
            .args(["-t", "--quiet"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        // Where there is none, the kernel is the judge.
        let Ok(mut cpio) = cpio else { return };
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = cpio.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&listed.stdout),
            "dev\ndev/console\ninit\nlink\n"
        );
    }

    #[test]
    fn a_path_that_leaves_the_directory_is_refused() {
        for path in ["../a", "/etc/passwd", "a/../b", "a//b", "."] {
            let error = read(&written(&[entry(path, Kind::File, b"")])).unwrap_err();
            assert!(
                error.to_string().contains("leaves the directory"),
                "{path}: {error}"
            );
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let (head, _) = entry("a", Kind::File, b"12345");
        let error = Writer::new(Vec::new()).add(&head, &b"123"[..]).unwrap_err();
        assert!(
            error.to_string().contains("a: it became shorter"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn entries_come_back(contents in vec(("[a-zä]{1,9}(/[a-z]{1,9}){0,3}", vec(any::<u8>(), 0..50)), 0..10)) {
            let files = contents.iter().map(|(path, content)| entry(path, Kind::File, content));
            let entries: Vec<Entry> = files.collect();
            let bytes = written(&entries);
            prop_assert_eq!(read(&bytes).unwrap(), entries);
            prop_assert!(bytes.len().is_multiple_of(4));
            // Cut short, it is an error and not a shorter archive.
            prop_assert!(read(&bytes[..bytes.len() - 5]).is_err());
        }

        #[test]
        fn no_input_makes_it_panic(mut bytes in vec(any::<u8>(), 0..400), digits in any::<bool>()) {
            if digits {
                bytes.iter_mut().for_each(|byte| *byte = b"0123456789abcdef"[usize::from(*byte % 16)]);
                bytes.splice(..0, *b"070701");
            }
            let _ = read(&bytes);
        }
    }
}
