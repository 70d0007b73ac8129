//! Benchmarks with criterion: `cargo bench -p benches`, one of them with `--bench NAME`.
//!
//! A member of the workspace of its own, so that neither `cargo test` nor a build of the product compiles criterion.
//! Timings are read by people; no test asserts one.

use std::io::Read as _;

use analysis::{Ns, Task};

/// Tasks of a set.
pub const TASKS: usize = 10;

/// Tasks in the order of their priorities.
pub type Set = [Task; TASKS];

/// The sets of a compressed file: a line of titles, then a set a line, wcet and period of each task in us.
///
/// # Panics
/// When the file is not such a one: it is part of the repository.
pub fn sets_of(compressed: &[u8]) -> Vec<Set> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed)
        .read_to_string(&mut text)
        .expect("compressed text");
    text.lines()
        .skip(1)
        .map(|line| {
            let times: Vec<Ns> = line
                .split(' ')
                .map(|time| time.parse().expect("a number"))
                .collect();
            std::array::from_fn(|i| Task::new(times[2 * i] * 1_000, times[2 * i + 1] * 1_000))
        })
        .collect()
}
