//! The experiment parser: no text panics it, every fault has a line of the file, and what it accepts it writes and reads back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Experiment;

fuzz_target!(|text: &str| {
    match Experiment::parse("fuzz.toml", text) {
        Ok(experiment) => {
            let again = Experiment::parse("fuzz.toml", &experiment.to_toml());
            assert_eq!(again.as_ref(), Ok(&experiment));
        }
        Err(errors) => {
            let lines = text.lines().count() + 1;
            for error in &errors {
                assert!(error.to_string().starts_with("fuzz.toml:"));
                assert!(error.line.is_some_and(|line| (1..=lines).contains(&line)));
            }
        }
    }
});
