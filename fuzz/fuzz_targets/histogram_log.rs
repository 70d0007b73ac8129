//! The histogram log's reader: no text panics it, and what it accepts adds up.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;
use std::time::SystemTime;

use libfuzzer_sys::fuzz_target;
use record::histogram::{Collector, parse};
use record::samples::{Header, Sample};
use record::summary::Metric;

/// A good log of a few jobs, to be damaged: random bytes alone would never be a histogram.
fn good() -> Vec<u8> {
    let metrics = Metric::of_work(model::Work::Mac { steps: 1 });
    let mut collector = Collector::new(metrics, 0, 1_000_000);
    let header = Header {
        planned: 30,
        ..Header::new()
    };
    let mut text = collector.begin(&header, SystemTime::UNIX_EPOCH);
    for index in 0..30 {
        let release_ns = i64::from(index) * 100_000;
        let sample = Sample {
            index,
            skipped: 0,
            release_ns,
            start_ns: release_ns + 5_000,
            end_ns: release_ns + 70_000 + i64::from(index) * 977,
        };
        text.extend(collector.take(&sample).unwrap_or_default());
    }
    let end = Header {
        count: 30,
        complete: 1,
        ..header
    };
    text.extend(collector.end(&end));
    text
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(good);

fuzz_target!(|bytes: &[u8]| {
    let mut damaged = GOOD.clone();
    // Three bytes at a time: a place and what stands there from now on.
    for change in bytes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % damaged.len();
        damaged[place] = change[2];
    }
    for text in [bytes, damaged.as_slice()] {
        if let Ok(Some(log)) = parse(Path::new("fuzz.hlog"), text) {
            assert!(log.counts.accounted() <= log.planned());
            assert_eq!(log.counts.accounted() + log.unexplained(), log.planned());
        }
    }
});
