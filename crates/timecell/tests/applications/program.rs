//! The program inside the cells: this test once more, told by its first word what to try.

/// Ends the process if it was started inside a cell.
pub fn run_if_asked() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("in-a-cell", _)) = words
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        std::process::exit(2);
    }
}
