//! A mission in which nearly everything is wrong.

use super::faults;

/// A mission in which nearly everything is wrong.
const BAD: &str = include_str!("everything.toml");

/// Its faults.
const SAID: &str = include_str!("everything.txt");

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    let found = faults(BAD).join("\n");
    assert_eq!(found, SAID.trim_end(), "found:\n{found}");
}
