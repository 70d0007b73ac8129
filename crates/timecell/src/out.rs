//! Printing. A closed pipe is not an error, and nothing here panics. Any other failure of standard output is kept until the
//! end, when the command fails because of it ([`lost`]).

use std::io::{Error, ErrorKind, IsTerminal, Write};
use std::sync::Mutex;

/// The first failure of standard output.
static LOST: Mutex<Option<Error>> = Mutex::new(None);

/// Prints to standard output.
pub fn print(text: &str) {
    let ending = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(ending.as_bytes()))
        .and_then(|()| out.flush());
    if let Err(error) = written
        && let Ok(mut lost) = LOST.lock()
    {
        lost.get_or_insert(error);
    }
}

/// Prints bytes as they are.
pub fn raw(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush())
        && let Ok(mut lost) = LOST.lock()
    {
        lost.get_or_insert(error);
    }
}

/// Prints text from programs and files to standard output. On a terminal, control characters are shown as text, so that the output of a cell cannot
/// move the cursor, set a title or answer queries on the terminal.
pub fn foreign(text: &str) {
    if std::io::stdout().is_terminal() {
        print(&visible(text));
    } else {
        print(text);
    }
}

/// Escapes a name that others chose, for use within a printed line: nothing in it ends the line or controls the terminal.
pub fn name(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// As [`foreign`], for bytes, which are printed unchanged if standard output is not a terminal.
pub fn foreign_raw(bytes: &[u8]) {
    if std::io::stdout().is_terminal() {
        raw(visible(&String::from_utf8_lossy(bytes)).as_bytes());
    } else {
        raw(bytes);
    }
}

/// The text with control characters (except line ends and tabs) and marks that change the direction of writing shown as escapes such
/// as `\u{1b}`.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(character.escape_unicode());
            }
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Whether standard output has failed, so that printing more is useless.
pub fn is_closed() -> bool {
    LOST.lock().is_ok_and(|lost| lost.is_some())
}

/// Why standard output failed; `None` also if its reader had enough, as `head` has.
pub fn lost() -> Option<Error> {
    let lost = LOST.lock().ok()?.take()?;
    (lost.kind() != ErrorKind::BrokenPipe).then_some(lost)
}

/// Prints to standard output unless the text is empty.
pub fn print_some(text: &str) {
    if !text.is_empty() {
        print(text);
    }
}

/// Prints a line to standard error; on a terminal it is wrapped, with continuation lines aligned with the text after a leading
/// word such as `note    `.
pub fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    if !err.is_terminal() {
        let _ = writeln!(err, "{text}");
        return;
    }
    let text = visible(text);
    // A terminal may not report its width.
    let _ = match terminal_size::terminal_size_of(&err) {
        Some((width, _)) => writeln!(err, "{}", wrapped(&text, width.0.into())),
        None => writeln!(err, "{text}"),
    };
}

fn wrapped(text: &str, width: usize) -> String {
    let style = report::Style {
        colour: false,
        width: width.clamp(40, 160),
    };
    let wrap = |line: &str| {
        let word = line.find(' ').unwrap_or(0);
        let gap = line[word..].chars().take_while(|c| *c == ' ').count();
        style.wrap(line, if gap > 1 { word + gap } else { 2 })
    };
    let lines: Vec<String> = text.lines().map(wrap).collect();
    lines.join("\n")
}

/// Prints a text to standard output, or to standard error if `json`.
pub fn say(json: bool, text: &str) {
    match json {
        true => note(text),
        false => print(text),
    }
}

/// Prints what another machine's program says to standard error; onto a terminal without what controls it.
pub fn foreign_note(bytes: &[u8]) {
    let mut err = std::io::stderr().lock();
    // Nothing can be said of a standard error that fails.
    let _ = match err.is_terminal() {
        true => {
            let text = String::from_utf8_lossy(bytes);
            let plain: String = text
                .chars()
                .filter(|c| "\n\t".contains(*c) || !c.is_control())
                .collect();
            err.write_all(plain.as_bytes())
        }
        false => err.write_all(bytes),
    };
}

/// Prints `error: ...` to standard error.
pub fn error(text: &str) {
    note(&format!("error: {text}"));
}

/// Whether standard output may carry colour: a terminal, and NO_COLOR unset (no-color.org).
pub fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stdout().is_terminal()
}

/// Width of the terminal in columns, 40 to 160; without a terminal, COLUMNS, else 120.
pub fn width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok();
    let terminal = terminal_size::terminal_size().map(|(width, _)| width.0.into());
    terminal.or_else(said).unwrap_or(120).clamp(40, 160)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_text() {
        assert_eq!(
            visible("a\tb\n\u{1b}]0;title\u{7}\u{9b}2J\r\u{202e}é\n"),
            "a\tb\n\\u{1b}]0;title\\u{7}\\u{9b}2J\\r\\u{202e}é\n"
        );
    }

    #[test]
    fn a_name_stays_within_its_line() {
        assert_eq!(name("\u{1b}[31mX\n\ty"), "\\u{1b}[31mX\\n\\ty");
    }

    #[test]
    fn long_notes_are_wrapped_behind_their_first_word() {
        let text = "note    one two three four five six seven eight nine ten";
        assert_eq!(
            wrapped(text, 40),
            "note    one two three four five six\n        seven eight nine ten"
        );
        assert_eq!(wrapped("short", 40), "short");
        let paths = "error: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b\nsecond";
        assert!(
            wrapped(paths, 40).ends_with("\n  b\nsecond"),
            "{}",
            wrapped(paths, 40)
        );
    }
}
