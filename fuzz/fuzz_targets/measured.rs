//! Files of other tools: no bytes panic an importer, what it accepts is in order and can be true together, and what it
//! refuses is one short sentence. The first byte picks the format, or leaves it to the content, the second the unit, or
//! none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::import::measured::{Format, Options, Unit, import};

fuzz_target!(|bytes: &[u8]| {
    let Some((&[pick, unit], bytes)) = bytes.split_first_chunk() else {
        return;
    };
    let unit = Unit::NAMES.get(usize::from(unit)).map(|(_, unit)| *unit);
    match import(Format::all().nth(pick.into()), "fuzz", bytes, Options { unit }) {
        Ok(read) => {
            assert!(!read.distributions.is_empty());
            for d in &read.distributions {
                assert!(d.counts.windows(2).all(|pair| pair[0].0 < pair[1].0));
                assert!(d.ccdf().all(|point| (0.0..=1.0).contains(&point.1)));
                let _ = (d.quantile(0.5), d.quantile(0.9999), d.mean_ns(), d.max_ns());
                if let (Some(min), Some(max)) = (d.said.min_ns, d.said.max_ns) {
                    assert!(min <= max);
                }
            }
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("fuzz") && error.len() < 2_000);
            assert!(!error.contains(char::is_control));
        }
    }
});
