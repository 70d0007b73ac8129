//! Studies of whole task sets from outside, in the words and numbers that `timecell analyze` prints.

mod extreme;
mod policies;

use timecell_feasibility::TaskSet;

/// The task set in a file.
#[track_caller]
fn set(text: &str) -> TaskSet {
    TaskSet::parse("set.toml", text).expect("a task set")
}
