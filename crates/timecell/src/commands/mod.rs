//! One file for each verb: options in, one call below, text out.

pub mod admit;
pub mod analyze;
pub mod bench;
pub mod bench_hold;
pub mod bench_self;
pub mod bench_series;
pub mod clean;
pub mod control;
pub mod demo;
pub mod doctor;
pub mod events;
pub mod export;
pub mod generate;
pub mod isolation;
pub mod judge;
pub mod kinds;
pub mod latest;
pub mod logs;
pub mod measured;
pub mod ps;
pub mod ps_machine;
pub mod report;
pub mod scale;
pub mod supply;
pub mod up;
pub mod update;

use std::io::Read;
use std::path::Path;

/// A text file of the user's, of no more than so many bytes.
///
/// # Errors
/// What is wrong with it, a clause.
fn read_text(path: &Path, most_bytes: u64) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(most_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most_bytes {
        return Err(format!("the file is larger than {} MB", most_bytes >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
}
