//! A fault in the user's input: its place, its nature, and the remedy.

use std::fmt;

/// A fault in the user's input: its place, its nature, the remedy.
///
/// Prints as one sentence, `file:line: what; fix`. Maps to exit code 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct InputError {
    /// File name as the user gave it, or the option's name.
    pub place: String,
    /// Line in the file, from 1; `None` where the fault has no line.
    pub line: Option<usize>,
    /// The fault.
    pub what: String,
    /// How to fix it; empty when `what` already says it.
    pub fix: String,
}

impl InputError {
    /// A fault in `place` that has no line.
    pub fn new(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> InputError {
        InputError {
            place: place.into(),
            line: None,
            what: what.into(),
            fix: fix.into(),
        }
    }

    /// The same fault, on this line (from 1).
    #[must_use]
    pub fn at(mut self, line: usize) -> InputError {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)?;
        if !self.fix.is_empty() {
            write!(f, "; {}", self.fix)?;
        }
        Ok(())
    }
}
