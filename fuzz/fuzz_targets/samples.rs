//! The samples reader: no bytes panic it, and what it accepts adds up.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use record::samples;

fuzz_target!(|bytes: &[u8]| {
    // A header page with a real beginning and fuzzed fields, then fuzzed records: random bytes alone would never
    // get past the magic number and the page's length.
    let fields = bytes.len().min(size_of::<samples::Header>() - 24);
    let mut file = samples::Header::new().to_bytes()[..24].to_vec();
    file.extend_from_slice(&bytes[..fields]);
    file.resize(samples::HEADER_BYTES, 0);
    file.extend_from_slice(&bytes[fields..]);
    for content in [bytes, file.as_slice()] {
        if let Ok(read) = samples::parse(Path::new("fuzz.samples"), content.len() as u64, content) {
            assert_eq!(read.samples.len() as u64, read.header.count);
            let sum = read.header.count + read.header.skipped + read.unexplained();
            assert_eq!(sum, read.header.planned);
        }
    }
});
