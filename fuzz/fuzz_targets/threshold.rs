//! The threshold parser: no text panics it, a refusal points into the text, and what is accepted prints and parses back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use study::judge::Threshold;

fuzz_target!(|text: &str| {
    match text.parse::<Threshold>() {
        Ok(threshold) => assert_eq!(threshold.to_string().parse().as_ref(), Ok(&threshold)),
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.at));
            assert!(!error.fix.is_empty());
        }
    }
});
