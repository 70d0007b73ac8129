//! rt-app's JSON as task sets: no text panics the importer, and what it accepts is a task set of ours.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::taskset::TaskSet;
use record::import::taskset::{Format, Options, import};

fuzz_target!(|text: &str| {
    let options = Options {
        cpus: Some(4),
        ..Options::default()
    };
    match import(Format::RtApp, "fuzz", text, options) {
        Ok(read) => {
            let again = TaskSet::parse("fuzz", &read.set.to_toml());
            assert_eq!(again.as_ref(), Ok(&read.set));
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz")),
    }
});
