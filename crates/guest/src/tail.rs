//! The end of what a console or a program has said.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes that are kept.
const KEPT: usize = 32 << 10;
/// What a kernel says when it gives up.
const PANIC: &str = "Kernel panic - not syncing: ";
/// Lines that are shown.
const LINES: usize = 12;

/// The end of a text that grows.
#[derive(Debug, Default, Clone)]
pub struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
}

impl Tail {
    /// Keeps the end of what is read from here on, until there is no more; each piece is shown to `see` as well.
    pub fn follow(
        mut from: impl Read + Send + 'static,
        see: impl Fn(&[u8]) + Send + 'static,
    ) -> Tail {
        let tail = Tail::default();
        let to = tail.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = from.read(&mut buffer)
                && read > 0
            {
                to.push(&buffer[..read]);
                see(&buffer[..read]);
            }
        });
        tail
    }

    fn push(&self, more: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(|held| held.into_inner());
        bytes.extend(more);
        let over = bytes.len().saturating_sub(KEPT);
        bytes.drain(..over);
    }

    /// All that is kept, with nothing in it that controls a terminal.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self
            .bytes
            .lock()
            .unwrap_or_else(|held| held.into_inner())
            .iter()
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        text.chars()
            .filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
            .collect()
    }

    /// The last lines, each indented; of a panic, those from where it begins.
    pub fn lines(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        let last = lines.len().saturating_sub(LINES);
        let panic = lines.iter().position(|line| line.contains(PANIC));
        let from = panic.map_or(last, |panic| panic.saturating_sub(LINES / 2).min(last));
        let shown = lines.iter().skip(from).take(LINES);
        shown
            .map(|line| format!("  {line}"))
            .collect::<Vec<String>>()
            .join("\n")
    }

    /// Why the kernel has panicked, if it has.
    pub fn panic(&self) -> Option<String> {
        let text = self.text();
        let mut said = text.lines().filter_map(|line| line.split_once(PANIC));
        said.next().map(|(_, why)| why.trim().to_owned())
    }
}

/// Of all that a failed program has said, the line that tells why: the first that begins with its name and is no warning, without the
/// name; else the last.
pub(crate) fn reason<'s>(said: &'s str, program: &str) -> &'s str {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut named =
        (lines.clone()).filter_map(|line| line.strip_prefix(program)?.strip_prefix(": "));
    let why = named.find(|line| !line.starts_with("warning: "));
    why.or(lines.next_back()).unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_with_the_name_of_the_program() {
        for (said, why) in [
            (
                "qemu: warning: no KVM\nqemu: -machine vax: unsupported machine type\nUse -machine help\n",
                "-machine vax: unsupported machine type",
            ),
            ("qemu: warning: a\nnot named\n\n", "not named"),
            ("", "it said nothing"),
        ] {
            assert_eq!(reason(said, "qemu"), why);
        }
    }

    #[test]
    fn the_end_is_kept_and_panics_are_found() {
        let tail = Tail::default();
        assert_eq!((tail.lines(), tail.panic()), (String::new(), None));
        tail.push(&vec![b'x'; 2 * KEPT]);
        tail.push(
            b"\r\n[ 1.0] Kernel panic - not syncing: No working init found.\r\n\x1b[31mend\n",
        );
        assert_eq!(tail.text().len(), KEPT - 3);
        assert_eq!(tail.panic().unwrap(), "No working init found.");
        assert!(tail.lines().ends_with("\n  [31mend"), "{}", tail.lines());
    }
}
