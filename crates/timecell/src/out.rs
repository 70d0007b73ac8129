//! Printing. A closed pipe is not an error, and nothing here panics. What standard output did not take is kept until the
//! end, where the command fails for it ([`lost`]).

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

/// Prints words of programs and files to standard output. On a terminal, control characters are shown as text: what a
/// cell writes does not move the cursor, set a title or answer questions on its watcher's terminal.
pub fn foreign(text: &str) {
    if std::io::stdout().is_terminal() {
        print(&visible(text));
    } else {
        print(text);
    }
}

/// A name that its owner chose, within a line of ours: nothing in it ends the line or reaches a terminal as it is.
pub fn name(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// As [`foreign`], for bytes, of which nothing is changed where no terminal shows them.
pub fn foreign_raw(bytes: &[u8]) {
    if std::io::stdout().is_terminal() {
        raw(visible(&String::from_utf8_lossy(bytes)).as_bytes());
    } else {
        raw(bytes);
    }
}

/// The text with its control characters, but the ends of lines and tabs, and the marks that turn the direction of
/// writing, as escapes such as `\u{1b}`.
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

/// Whether standard output takes no more, so that going on is of no use.
pub fn is_closed() -> bool {
    LOST.lock().is_ok_and(|lost| lost.is_some())
}

/// Why standard output did not take all that was printed; `None` also where its reader had enough, as `head` has.
pub fn lost() -> Option<Error> {
    let lost = LOST.lock().ok()?.take()?;
    (lost.kind() != ErrorKind::BrokenPipe).then_some(lost)
}

/// Prints to standard output unless there is nothing to say.
pub fn print_some(text: &str) {
    if !text.is_empty() {
        print(text);
    }
}

/// Prints a line to standard error; on a terminal it is wrapped, and lines after the first are indented as far as the
/// text behind a leading word such as `note    ` is.
pub fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    if !err.is_terminal() {
        let _ = writeln!(err, "{text}");
        return;
    }
    let text = visible(text);
    // A terminal may not say how wide it is.
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

/// Prints a text, or notes it where what is printed is JSON.
pub fn say(json: bool, text: &str) {
    match json {
        true => note(text),
        false => print(text),
    }
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

/// Columns of the terminal; where there is none, what COLUMNS says, else 120.
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
