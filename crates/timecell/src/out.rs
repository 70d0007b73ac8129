//! Printing. A closed pipe is not an error, and nothing here panics.

use std::io::{IsTerminal, Write};

/// Prints to standard output.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Prints to standard output unless there is nothing to say.
pub fn print_some(text: &str) {
    if !text.is_empty() {
        print(text);
    }
}

/// Prints a line to standard error.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
