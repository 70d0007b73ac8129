//! Task sets of other tools: no bytes panic an importer, what it accepts is a task set of ours, and what it says is short
//! and obeyed by no terminal. The first byte picks the format, or leaves it to the content of what is called XML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::taskset::TaskSet;
use record::import::taskset::{Format, Options, import};

fuzz_target!(|bytes: &[u8]| {
    let Some((&pick, bytes)) = bytes.split_first() else {
        return;
    };
    let options = Options {
        cpus: Some(4),
        ..Options::default()
    };
    match import(Format::all().nth(pick.into()), "fuzz.xml", bytes, options) {
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
});
