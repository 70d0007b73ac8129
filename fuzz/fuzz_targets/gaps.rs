//! The gaps reader: no bytes panic it, and what it accepts is in order.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use record::gaps;

fuzz_target!(|bytes: &[u8]| {
    // A header page with a real beginning and fuzzed fields, a fuzzed table, then fuzzed records: random bytes alone
    // would never get past the magic number and the page's length.
    let (fields, rest) = bytes.split_at(bytes.len().min(size_of::<gaps::Header>() - 24));
    let (table, records) = rest.split_at(rest.len().min(gaps::HEADER_BYTES - gaps::STRETCHES_AT));
    let mut file = gaps::Header::new().to_bytes()[..24].to_vec();
    file.extend_from_slice(fields);
    file.resize(gaps::STRETCHES_AT, 0);
    file.extend_from_slice(table);
    file.resize(gaps::HEADER_BYTES, 0);
    file.extend_from_slice(records);
    for content in [bytes, file.as_slice()] {
        let Ok(read) = gaps::parse(Path::new("fuzz.gaps"), content.len() as u64, content) else {
            continue;
        };
        let mut at = 0;
        for (stretch, gaps) in &read.stretches {
            assert!(at <= stretch.begin_ns && stretch.begin_ns < stretch.end_ns);
            at = stretch.begin_ns;
            for gap in gaps {
                assert!(at <= gap.begin_ns && gap.begin_ns < gap.end_ns);
                at = gap.end_ns;
            }
            assert!(at <= stretch.end_ns);
            at = stretch.end_ns;
        }
    }
});
