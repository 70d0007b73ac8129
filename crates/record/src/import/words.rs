//! Quoting words of files in our sentences: short, and without terminal control characters.

use std::borrow::Cow;

use model::InputError;

/// A fault at a line of the file, whose name [`bounded`] adds.
pub(super) fn fault(line: usize, what: impl Into<String>, fix: &str) -> InputError {
    InputError::new("", what, fix).at(line)
}

/// A fault of the file of this name that does not flood the terminal with its content.
pub(super) fn bounded(name: &str, mut fault: InputError) -> InputError {
    if fault.place.is_empty() {
        name.clone_into(&mut fault.place);
    }
    fault.what = shortened(&fault.what, 240).into_owned();
    fault.fix = shortened(&fault.fix, NOTE).into_owned();
    fault
}

/// A note with the same limit.
pub(super) fn noted(note: &str) -> String {
    shortened(note, NOTE).into_owned()
}

/// Maximum length of a note in characters: enough for a list of twenty names.
const NOTE: usize = 1_200;

/// The beginning of a part of a file, as it may be quoted in a sentence.
pub(super) fn excerpt(text: &str) -> Cow<'_, str> {
    shortened(text, 40)
}

/// At most this number of characters, without terminal control characters.
pub(super) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let plain = |c: char| !c.is_control();
    if text.chars().all(plain) && text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let mut short: String = text
        .chars()
        .take(most)
        .map(|c| if plain(c) { c } else { ' ' })
        .collect();
    if text.chars().nth(most).is_some() {
        short.push_str("...");
    }
    Cow::Owned(short)
}
