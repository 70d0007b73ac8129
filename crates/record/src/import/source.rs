//! The source of a file's bytes: read once, in order and decompressed on the way, so that a file of any size takes little memory
//! if its format allows it. Lines end in `\n`, `\r\n` or a lone `\r`; a last line without an end means that the file was cut.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use model::InputError;

use super::words::excerpt;

/// Largest file that is read, in bytes, compressed and decompressed.
pub const MOST_BYTES: u64 = 1 << 30;
/// How much of a file is examined to recognise its format: more than tools print before their first characteristic line.
const LOOK: usize = 65_536;
/// The longest line that is read, in bytes; tools write lines of some thousand threads.
const LONGEST_LINE: usize = 1 << 20;

/// The opening of files with an unsupported compression or encoding.
const NOT_READ: [(&[u8], &str, &str); 7] = [
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd",
        "unpack it first: zstd -d",
    ),
    (
        b"\xfd7zXZ\0",
        "compressed with xz",
        "unpack it first: xz -d",
    ),
    (b"BZh", "compressed with bzip2", "unpack it first: bzip2 -d"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip"),
    (b"\x7fELF", "a program", "give a file that a tool wrote"),
    (b"\xff\xfe", "UTF-16 text", UTF_16),
    (b"\xfe\xff", "UTF-16 text", UTF_16),
];
const UTF_16: &str = "write it as UTF-8: iconv -f UTF-16 -t UTF-8";
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A file as it is read.
pub struct Source<'a> {
    name: String,
    reader: BufReader<Box<dyn Read + 'a>>,
    /// The opening, which [`Source::reader`] returns once more.
    head: Vec<u8>,
    file: Option<File>,
    notes: Vec<String>,
    line: Vec<u8>,
    number: usize,
    /// The last line had no end.
    cut: bool,
    /// A `\r` ended the last line, so that a `\n` right after it ends none.
    after_return: bool,
}

impl<'a> Source<'a> {
    /// Opens `reader`; `name` names it in messages, `file` is the file itself if there is one.
    pub fn new(
        name: &str,
        reader: impl Read + 'a,
        file: Option<File>,
    ) -> Result<Source<'a>, InputError> {
        let unread = |error: &io::Error| InputError::new(name, cannot(error), "");
        let mut notes = Vec::new();
        let mut reader: Box<dyn Read + 'a> = Box::new(Limited::new(reader));
        let mut head = opening(&mut reader).map_err(|error| unread(&error))?;
        let packed = head.starts_with(b"\x1f\x8b");
        if packed {
            let whole = Cursor::new(head).chain(reader);
            reader = Box::new(Limited::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::new(whole),
            )));
            head = opening(&mut reader).map_err(|error| unread(&error))?;
        }
        if let Some((_, what, fix)) = NOT_READ.iter().find(|known| head.starts_with(known.0)) {
            return Err(InputError::new(
                name,
                format!("cannot be read: it is {what}"),
                *fix,
            ));
        }
        if looks_like_utf_16(&head) {
            return Err(InputError::new(
                name,
                "cannot be read: it is UTF-16 text",
                UTF_16,
            ));
        }
        if head.starts_with(BOM) {
            head.drain(..BOM.len());
            notes.push("a byte order mark at the beginning is skipped".to_owned());
        }
        Ok(Source {
            name: name.to_owned(),
            reader: BufReader::new(Box::new(Cursor::new(head.clone()).chain(reader))),
            head,
            file: file.filter(|_| !packed),
            notes,
            line: Vec::new(),
            number: 0,
            cut: false,
            after_return: false,
        })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its opening, up to 64 KiB.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Notes from opening it.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The file, if it is an uncompressed one on a disk: for formats that are read from their end.
    pub fn take_file(&mut self) -> Option<File> {
        self.file.take()
    }

    /// All bytes from here on.
    pub fn reader(&mut self) -> &mut (impl BufRead + use<'a>) {
        &mut self.reader
    }

    /// The next line without its end, and its number from 1; `None` after the last.
    ///
    /// # Errors
    /// When the last line has no end, a line is not UTF-8 or too long, or reading fails.
    pub fn line(&mut self) -> Result<Option<(&str, usize)>, InputError> {
        if self.cut {
            return Err(cut(&self.name, self.number));
        }
        self.line.clear();
        let found = self
            .fill_line()
            .map_err(|error| self.unread(cannot(&error)).at(self.number + 1))?;
        if !found {
            return Ok(None);
        }
        self.number += 1;
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some((line, self.number))),
            Err(_) => Err(self.unread("not UTF-8 text").at(self.number)),
        }
    }

    /// The rest as one text of at most `most_mib` MiB, for formats that are read as a whole.
    ///
    /// # Errors
    /// When it is larger, not UTF-8, or cannot be read.
    pub fn text(&mut self, most_mib: u64) -> Result<String, InputError> {
        let most = most_mib << 20;
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.unread(cannot(&error)))?;
        if bytes.len() as u64 > most {
            return Err(self.unread(format!("the file is larger than {most_mib} MB")));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            self.unread("not UTF-8 text").at(line)
        })
    }

    fn unread(&self, what: impl Into<String>) -> InputError {
        InputError::new(&self.name, what, "")
    }

    /// Reads up to the end of a line; returns whether there was anything.
    fn fill_line(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            let available = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if available.is_empty() {
                self.cut = any;
                return Ok(any);
            }
            if self.after_return && !any && available[0] == b'\n' {
                self.after_return = false;
                self.reader.consume(1);
                continue;
            }
            self.after_return = false;
            any = true;
            let end = available.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let part = end.unwrap_or(available.len());
            if self.line.len() + part > LONGEST_LINE {
                return Err(io::Error::other("the line is longer than 1 MiB"));
            }
            self.line.extend_from_slice(&available[..part]);
            match end {
                Some(at) => {
                    self.after_return = available[at] == b'\r';
                    self.reader.consume(at + 1);
                    return Ok(true);
                }
                None => self.reader.consume(part),
            }
        }
    }
}

/// The fault of a file whose last line, which is this one, has no end.
pub(super) fn cut(name: &str, line: usize) -> InputError {
    InputError::new(
        name,
        "cut short: the last line is not terminated, so its last number may have lost digits",
        "the tool that wrote it may have been stopped early; if the line is complete, add a newline",
    )
    .at(line)
}

/// The first [`LOOK`] bytes.
fn opening(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(LOOK as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// ASCII in UTF-16 without a mark: every other byte is 0, and the others are characters of text.
fn looks_like_utf_16(head: &[u8]) -> bool {
    let pairs = &head[..head.len().min(64) / 2 * 2];
    let text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let of = |at: usize| pairs.iter().skip(at).step_by(2);
    pairs.len() >= 8
        && [(0, 1), (1, 0)]
            .iter()
            .any(|&(low, high)| of(low).all(text) && of(high).all(|byte| *byte == 0))
}

/// Why reading failed, as a clause.
pub(super) fn cannot(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "cut short: the gzip data is incomplete".to_owned(),
        _ => excerpt(&error.to_string()).into_owned(),
    }
}

/// Fails beyond [`MOST_BYTES`].
struct Limited<R> {
    reader: R,
    left: u64,
}

impl<R> Limited<R> {
    fn new(reader: R) -> Limited<R> {
        Limited {
            reader,
            left: MOST_BYTES,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("the file is larger than 1 GB")),
        }
        Ok(count)
    }
}
