//! One line: checksum, length, sequence number, JSON.

use std::ops::Range;

use super::Why;

/// Appends the line of an entry to `to`.
pub(super) fn write(to: &mut Vec<u8>, sequence: u64, json: &str) {
    let body = format!("{} {sequence} {json}", json.len());
    let line = format!("{:08x} {body}\n", crc32c::crc32c(body.as_bytes()));
    to.extend_from_slice(line.as_bytes());
}

/// A line of a journal, whole or not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its bytes in the file, the newline included.
    pub(super) range: Range<usize>,
    pub(super) content: Result<Content<'a>, Why>,
}

/// The content of a whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub(super) sequence: u64,
    pub(super) json: &'a str,
}

/// The lines of a file.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let range = at..at + line.len();
            at = range.end;
            let content = match line.strip_suffix(b"\n") {
                Some(line) => read(line),
                None => Err(Why::CutOff),
            };
            Line { range, content }
        })
}

fn read(line: &[u8]) -> Result<Content<'_>, Why> {
    let (checksum, rest) = line.split_at_checked(8).ok_or(Why::NotALine)?;
    let body = rest.strip_prefix(b" ").ok_or(Why::NotALine)?;
    let checksum = hexadecimal(checksum).ok_or(Why::NotALine)?;
    if checksum != crc32c::crc32c(body) {
        return Err(Why::Checksum);
    }
    let body = std::str::from_utf8(body).map_err(|_| Why::NotALine)?;
    let mut words = body.splitn(3, ' ');
    let mut word = || words.next().ok_or(Why::NotALine);
    let (length, sequence, json) = (word()?, word()?, word()?);
    let length: usize = length.parse().map_err(|_| Why::NotALine)?;
    let sequence = sequence.parse().map_err(|_| Why::NotALine)?;
    if json.len() != length {
        return Err(Why::Length);
    }
    Ok(Content { sequence, json })
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    // `from_str_radix` takes a sign and capitals, which are never written.
    let written = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let text = std::str::from_utf8(text).ok()?;
    (text.bytes().all(|byte| written(&byte)))
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_what_the_documentation_shows() {
        let mut line = Vec::new();
        let json = r#"{"at":{"monotonic_ns":1,"wall_unix_ns":2},"entry":"clean_down"}"#;
        write(&mut line, 42, json);
        let text = String::from_utf8(line.clone()).unwrap();
        assert!(
            text.ends_with(&format!(" {} 42 {json}\n", json.len())),
            "{text}"
        );
        let documented = include_str!("mod.rs");
        assert!(documented.contains(text.trim_end()), "{text}");
        // The check value of CRC-32C (Castagnoli): that of the nine digits.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        let content = Ok(Content { sequence: 42, json });
        let range = 0..line.len();
        assert_eq!(lines(&line).collect::<Vec<_>>(), [Line { range, content }]);
    }

    #[test]
    fn a_line_with_a_right_checksum_is_still_looked_at() {
        let line = |body: &str| format!("{:08x} {body}\n", crc32c::crc32c(body.as_bytes()));
        let why = |text: &str| {
            let line = lines(text.as_bytes()).next().unwrap();
            line.content.map(|content| content.sequence)
        };
        assert_eq!(why(&line("2 7 {}")), Ok(7));
        assert_eq!(why(&line("3 7 {}")), Err(Why::Length));
        assert_eq!(why(&line("2 x {}")), Err(Why::NotALine));
        assert_eq!(why(&line("2 7")), Err(Why::NotALine));
        assert_eq!(why(&line("2 7 {}").to_uppercase()), Err(Why::NotALine));
        assert_eq!(why("0000000+ 2 7 {}\n"), Err(Why::NotALine));
        assert_eq!(why("00000000 2 7 {}\n"), Err(Why::Checksum));
        assert_eq!(why("\n"), Err(Why::NotALine));
        assert_eq!(why(line("2 7 {}").trim_end()), Err(Why::CutOff));
    }

    proptest! {
        #[test]
        fn the_lines_of_any_file_are_all_of_it(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n')], 0..200)) {
            let mut at = 0;
            for line in lines(&bytes) {
                prop_assert_eq!(line.range.start, at);
                prop_assert!(line.range.end > at);
                at = line.range.end;
            }
            prop_assert_eq!(at, bytes.len());
        }
    }
}
