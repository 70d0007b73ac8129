//! What holds of every importer of task sets: no bytes panic it, what it accepts is a task set of ours, and what it says is short
//! and obeyed by no terminal.

use model::taskset::TaskSet;
use record::import::taskset::{Format, Options, import};

pub fn check(format: Format, bytes: &[u8], options: Options) {
    match import(Some(format), "fuzz", bytes, options) {
        Ok(read) => {
            let again = TaskSet::parse("fuzz", &read.set.to_toml());
            assert_eq!(again.as_ref(), Ok(&read.set));
            for note in &read.notes {
                assert!(note.len() < 5_000 && !note.contains(char::is_control));
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("fuzz") && error.len() < 6_000);
            assert!(!error.contains(char::is_control));
        }
    }
}
