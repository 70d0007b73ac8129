//! Words of files: names, quoted texts, and suggestions for unknown words.

/// The candidate most similar to `text`, if any is similar at all. Damerau-Levenshtein finds swapped letters in short
/// words, Jaro-Winkler shared beginnings of long ones.
pub fn nearest<'a>(text: &str, candidates: &[&'a str]) -> Option<&'a str> {
    candidates
        .iter()
        .map(|name| {
            let swaps = strsim::normalized_damerau_levenshtein(text, name);
            ((swaps + 0.15).max(strsim::jaro_winkler(text, name)), *name)
        })
        .filter(|(likeness, _)| *likeness > 0.78)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The fault of a word that is not one of `names`, and the remedy; `all` precedes the list of names.
pub(crate) fn unknown(noun: &str, text: &str, all: &str, names: &[&str]) -> (String, String) {
    let near = nearest(text, names)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default();
    (
        format!("unknown {noun} `{}`", text.escape_debug()),
        format!("{near}{all} {}", names.join(", ")),
    )
}

/// A text as TOML writes it.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Whether a text may be part of the name of a directory.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
