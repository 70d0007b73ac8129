//! The source of a file's bytes: read once, in order and decompressed on the way, so that a file of any size takes little memory
//! if its format allows it. Lines end in `\n`, `\r\n` or a lone `\r`; a last line without an end means that the file was cut.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use model::InputError;

use super::prefix::{logged, prefix, unescaped};
use super::words::excerpt;

/// Largest file that is read, in bytes, compressed and decompressed.
pub const MOST_BYTES: u64 = 1 << 30;
/// How much of a file is examined to recognise its format: more than tools print before their first characteristic line.
const LOOK: usize = 65_536;
/// The longest line that is read, in bytes; tools write lines of some thousand threads.
const LONGEST_LINE: usize = 1 << 20;

/// The opening of files with an unsupported compression, and the tool that unpacks them.
const PACKED: [(&[u8], &str); 3] = [
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
];
/// The opening of other files that are no text, and the remedy.
const NO_TEXT: [(&[u8], &str, &str); 5] = [
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip"),
    (b"PAR1", "Parquet", PARQUET),
    (b"\x7fELF", "a program", "give a file that a tool wrote"),
    (b"\xff\xfe", "UTF-16 text", UTF_16),
    (b"\xfe\xff", "UTF-16 text", UTF_16),
];
const PARQUET: &str = "if timecell exported it, use `timecell report RUN` on its run";
const UTF_16: &str = "write it as UTF-8: iconv -f UTF-16 -t UTF-8";
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A file as it is read.
pub struct Source<'a> {
    name: String,
    reader: BufReader<Box<dyn Read + 'a>>,
    /// The opening, which [`Source::reader`] returns once more.
    head: Vec<u8>,
    notes: Vec<String>,
    line: Vec<u8>,
    /// Lines have prefixes, as its opening shows.
    prefixed: bool,
    number: usize,
    /// The last line had no end.
    cut: bool,
    /// A `\r` ended the last line, so that a `\n` right after it ends none.
    after_return: bool,
}

/// A line without its end, without the prefix of a log, escape sequences and spaces around it.
pub struct Line<'a> {
    pub text: Cow<'a, str>,
    /// The program to which a log ascribes the line; empty if the log does not say.
    pub program: &'a str,
    /// From 1.
    pub number: usize,
    /// It has no end, as no other line.
    pub is_cut: bool,
}

impl<'a> Source<'a> {
    /// Opens `reader`; `name` names it in messages.
    pub fn new(name: &str, reader: impl Read + 'a) -> Result<Source<'a>, InputError> {
        let unread = |error: io::Error| unread(cannot(&error));
        let mut notes = Vec::new();
        let mut reader: Box<dyn Read + 'a> = Box::new(Limited::new(reader));
        let mut head = opening(&mut reader).map_err(unread)?;
        let packed = head.starts_with(b"\x1f\x8b");
        if packed {
            let whole = Cursor::new(head).chain(reader);
            reader = Box::new(Limited::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::new(whole),
            )));
            head = opening(&mut reader).map_err(unread)?;
        }
        let cannot_be_read = |what: String, fix: &str| {
            let what = format!("cannot be read: it is {what}");
            Err(InputError::new("", what, fix))
        };
        if let Some((_, tool)) = PACKED.iter().find(|known| head.starts_with(known.0)) {
            let fix = format!("unpack it first: {tool} -d");
            return cannot_be_read(format!("compressed with {tool}"), &fix);
        }
        if let Some((_, what, fix)) = NO_TEXT.iter().find(|known| head.starts_with(known.0)) {
            return cannot_be_read((*what).to_owned(), fix);
        }
        if looks_like_utf_16(&head) {
            return cannot_be_read("UTF-16 text".to_owned(), UTF_16);
        }
        if head.starts_with(BOM) {
            head.drain(..BOM.len());
            notes.push("a byte order mark at the beginning is skipped".to_owned());
        }
        let prefixed = lines(&head)
            .any(|line| line.starts_with(LOGGED) || prefix(&unescaped(&line)).is_some());
        Ok(Source {
            name: name.to_owned(),
            reader: BufReader::new(Box::new(Cursor::new(head.clone()).chain(reader))),
            prefixed,
            notes,
            head,
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

    /// All bytes from here on.
    pub fn reader(&mut self) -> &mut (impl BufRead + use<'a>) {
        &mut self.reader
    }

    /// The lines of the opening, as [`Source::line`] returns them.
    pub fn opening(&self) -> impl Iterator<Item = String> {
        let plain = |line: String| plain(&line, self.prefixed).0.into_owned();
        lines(&self.head).map(plain)
    }

    /// The next line; `None` after the last.
    ///
    /// # Errors
    /// When a line is not UTF-8 or too long, or reading fails.
    pub fn line(&mut self) -> Result<Option<Line<'_>>, InputError> {
        self.line.clear();
        let found = self
            .fill_line()
            .map_err(|error| unread(cannot(&error)).at(self.number + 1))?;
        if !found {
            return Ok(None);
        }
        self.number += 1;
        let (number, is_cut) = (self.number, self.cut);
        let line =
            std::str::from_utf8(&self.line).map_err(|_| unread("not UTF-8 text").at(number))?;
        let (text, program) = plain(line, self.prefixed);
        Ok(Some(Line {
            text,
            program,
            number,
            is_cut,
        }))
    }

    /// The rest as one text of at most `most_mib` MiB, for formats that are read as a whole.
    ///
    /// # Errors
    /// When it is larger, not UTF-8, or cannot be read.
    pub fn text(&mut self, most_mib: u64) -> Result<String, InputError> {
        let most = most_mib << 20;
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| unread(cannot(&error)))?;
        if bytes.len() as u64 > most {
            return Err(unread(format!("the file is larger than {most_mib} MiB")));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            unread("not UTF-8 text").at(line)
        })
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

fn unread(what: impl Into<String>) -> InputError {
    InputError::new("", what, "")
}

/// The fault of a file whose last line, which is this one, has no end.
pub(super) fn cut(line: usize) -> InputError {
    InputError::new(
        "",
        "cut short: the last line is not terminated, so its last number may have lost digits",
        "the tool that wrote it may have been stopped early; if the line is complete, add a newline",
    )
    .at(line)
}

/// How entries of docker's `json-file` log begin.
pub(super) const LOGGED: &str = "{\"log\":\"";

/// A line, and the program that its prefix names.
fn plain(line: &str, prefixed: bool) -> (Cow<'_, str>, &str) {
    match unescaped(line) {
        Cow::Borrowed(line) => bare(line, prefixed),
        Cow::Owned(line) => (bare(&line, prefixed).0.into_owned().into(), ""),
    }
}

fn bare(line: &str, prefixed: bool) -> (Cow<'_, str>, &str) {
    let is_entry = prefixed && line.starts_with(LOGGED);
    if let Some(text) = is_entry.then(|| logged(line)).flatten() {
        return (plain(&text, true).0.into_owned().into(), "");
    }
    let found = if prefixed { prefix(line) } else { None };
    let (length, program) = found.unwrap_or((0, ""));
    let text = Cow::Borrowed(line[length..].trim());
    let quoted = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match quoted.filter(|inner| !inner.contains('"')) {
        Some(inner) => (inner.to_owned().into(), program),
        None => (text, program),
    }
}

/// The lines of a text, those without UTF-8 or with control characters of no text as they are.
fn lines(head: &[u8]) -> impl Iterator<Item = String> {
    let lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.map(|line| String::from_utf8_lossy(line).into_owned())
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
