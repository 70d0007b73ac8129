//! jitterdebugger's JSON: no bytes panic the importer, what it accepts is in order, and what it refuses is one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::import::measured::{Format, Options, import};

fuzz_target!(|bytes: &[u8]| {
    match import(
        Some(Format::JitterdebuggerJson),
        "fuzz",
        bytes,
        Options::default(),
    ) {
        Ok(read) => {
            for d in &read.distributions {
                assert!(d.counts.windows(2).all(|pair| pair[0].0 < pair[1].0));
                assert!(d.ccdf().iter().all(|point| (0.0..=1.0).contains(&point.1)));
                let _ = (d.quantile(0.5), d.quantile(0.9999), d.mean_ns(), d.max_ns());
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("fuzz") && !error.contains('\n'));
        }
    }
});
