//! `timecell logs`: the output of a cell. The files are read here; the supervisor only says where they are.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use host::ground;
use model::InputError;
use supervise::control::{Ask, ControlError, Say, Status, from_journal};

use super::control::{ask_for, named, unexpected};
use crate::cli::Logs;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Interval between two looks at the output of a cell.
const LOOK: Duration = Duration::from_millis(200);
/// Number of looks before the supervisor is asked again for the cell's directory.
const LOOKS: u32 = 10;

/// Prints the output of a cell, and with `--follow` all further output.
pub fn run(options: &Logs) -> Result<Ended, CommandError> {
    let (dir, names) = named(&options.which, std::slice::from_ref(&options.cell))?;
    let cell = names.concat();
    ground::check_with(&dir, &["cells"]).map_err(ControlError::from)?;
    let place = match place(&dir, &cell)? {
        place if options.previous => previous(&place, &cell)?,
        place => place,
    };
    let mut reader = Reader::default();
    let mut bytes = Vec::new();
    reader.begin(&place, &mut bytes).map_err(failed(&place))?;
    if let Some(count) = options.lines {
        bytes = last_lines(bytes, count);
    }
    let mut printer = Printer {
        cell: &cell,
        json: options.json,
        rest: Vec::new(),
    };
    printer.print(&bytes);
    while options.follow && !out::is_closed() {
        follow(&dir, &cell, &mut reader, &mut printer)?;
    }
    printer.end();
    Ok(Ended::Fine)
}

/// Asks where the cell writes, then looks several times at its output.
fn follow(
    dir: &Path,
    cell: &str,
    reader: &mut Reader,
    printer: &mut Printer<'_>,
) -> Result<(), CommandError> {
    let place = place(dir, cell)?;
    for _ in 0..LOOKS {
        let mut bytes = Vec::new();
        reader.go_on(&place, &mut bytes).map_err(failed(&place))?;
        printer.print(&bytes);
        if out::is_closed() {
            break;
        }
        sleep(LOOK);
    }
    Ok(())
}

fn failed(place: &Path) -> impl Fn(io::Error) -> CommandError {
    move |source| CommandError::File {
        path: place.join("output"),
        doing: "read it",
        source,
    }
}

/// The directory of a cell's output.
fn place(dir: &Path, cell: &str) -> Result<PathBuf, CommandError> {
    let status: Status = match ask_for(dir, Ask::Status) {
        Ok(Say::Status(status)) => *status,
        Ok(other) => return Err(unexpected(&other).into()),
        Err(ControlError::NobodyListens { .. } | ControlError::Ended) => from_journal(dir)?,
        Err(error) => return Err(error.into()),
    };
    if let Some(found) = status.cells.iter().find(|known| known.cell == cell) {
        return Ok(found.dir.clone());
    }
    // The files outlive a mission that has ended, and a cell that an update removed.
    let left = dir.join("cells").join(cell);
    let plain = Path::new(cell).components().count() == 1 && !cell.starts_with('.');
    if plain && left.join("output").exists() {
        return Ok(left);
    }
    let names: Vec<&str> = status.cells.iter().map(|cell| cell.cell.as_str()).collect();
    let fix = match model::nearest(cell, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`timecell ps` lists the cells".to_owned(),
    };
    Err(InputError::new(cell, "there is no such cell", fix).into())
}

/// The other of a cell's two directories, which its versions use in turn.
fn previous(place: &Path, cell: &str) -> Result<PathBuf, CommandError> {
    let name = match place.extension() {
        Some(_) => cell.to_owned(),
        None => format!("{cell}.b"),
    };
    let other = place.with_file_name(name);
    match other.join("output").exists() {
        true => Ok(other),
        false => {
            let fix = "omit --previous to see what it writes now";
            Err(InputError::new(cell, "no earlier version of it wrote anything", fix).into())
        }
    }
}

/// The reading position: the newer of the two files, by its inode.
#[derive(Default)]
pub(super) struct Reader {
    open: Option<(File, u64)>,
}

impl Reader {
    fn begin(&mut self, place: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
        if let Some((mut old, _)) = open(&place.join("output.old"))? {
            old.read_to_end(bytes)?;
        }
        self.open = open(&place.join("output"))?;
        if let Some((file, _)) = &mut self.open {
            file.read_to_end(bytes)?;
        }
        Ok(())
    }

    pub(super) fn go_on(&mut self, place: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
        if let Some((file, _)) = &mut self.open {
            file.read_to_end(bytes)?;
        }
        let path = place.join("output");
        let same = match std::fs::metadata(&path) {
            Ok(found) => (self.open.as_ref()).is_some_and(|(_, inode)| *inode == found.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        if same {
            return Ok(());
        }
        // Output written between the read and the rotation is still in the old file.
        if let Some((file, _)) = &mut self.open {
            file.read_to_end(bytes)?;
        }
        self.open = open(&path)?;
        if let Some((file, _)) = &mut self.open {
            file.read_to_end(bytes)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    match ground::open(path) {
        Ok(file) => {
            let inode = file.metadata()?.ino();
            Ok(Some((file, inode)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn last_lines(mut bytes: Vec<u8>, count: usize) -> Vec<u8> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes).len();
    let mut begin = body;
    let mut left = count;
    while left > 0 && begin > 0 {
        let before = bytes[..begin].iter().rposition(|byte| *byte == b'\n');
        left -= 1;
        match before {
            Some(at) if left > 0 => begin = at,
            Some(at) => return bytes.split_off(at + 1),
            None => return bytes,
        }
    }
    bytes.split_off(if count == 0 { bytes.len() } else { 0 })
}

/// Prints the output unchanged (on a terminal, control characters as text), or one JSON object per line.
struct Printer<'a> {
    cell: &'a str,
    json: bool,
    /// An incomplete line, or without JSON an incomplete character.
    rest: Vec<u8>,
}

impl Printer<'_> {
    fn print(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        if !self.json {
            // An incomplete character waits for its remaining bytes.
            let whole = match std::str::from_utf8(&self.rest) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => self.rest.len(),
            };
            out::foreign_raw(&self.rest[..whole]);
            self.rest.drain(..whole);
            return;
        }
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let rest = self.rest.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.rest, rest);
            line.pop();
            self.line(&line);
        }
    }

    fn end(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            match self.json {
                true => self.line(&rest),
                false => out::foreign_raw(&rest),
            }
        }
    }

    fn line(&self, line: &[u8]) {
        let json = serde_json::json!({
            "schema": 1,
            "cell": self.cell,
            "text": String::from_utf8_lossy(line),
        });
        out::print(&json.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let of = |text: &str, count| {
            String::from_utf8(last_lines(text.as_bytes().to_vec(), count)).unwrap()
        };
        assert_eq!(of("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(of("a\nb\nc", 2), "b\nc");
        assert_eq!(of("a\nb\nc\n", 3), "a\nb\nc\n");
        assert_eq!(of("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(of("a\nb\n\n", 1), "\n");
        assert_eq!(of("a\nb\n", 0), "");
        assert_eq!(of("", 3), "");
    }
}
