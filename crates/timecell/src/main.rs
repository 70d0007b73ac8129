//! timecell: real-time containers that keep time on Linux, and prove it.

use std::process::exit;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // What runs inside cells comes first and touches nothing of the command line's machinery.
    match words.first().map(String::as_str) {
        Some("probe") => exit(inside(&words[1..])),
        Some("oci-child") => exit(engine::embedded::child(&words[1..])),
        _ => exit(2),
    }
}

/// The hidden commands of a cell's payload.
fn inside(words: &[String]) -> i32 {
    match words.split_first() {
        // The empty program, for timing an engine.
        Some((word, _)) if word == "nop" => 0,
        Some((word, rest)) if word == "run" => match probe::ProbeArgs::from_words(rest) {
            Ok(args) => probe::run(&args),
            Err(error) => {
                eprintln!("{error}");
                probe::EXIT_BAD_ARGS
            }
        },
        _ => probe::EXIT_BAD_ARGS,
    }
}
