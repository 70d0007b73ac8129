//! The journal's reader: no bytes panic it, no line with a wrong checksum becomes an entry, and whatever is not read is said.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use supervise::journal::{Journal, load};
use supervise::state::{Entry, Hold, Record, Text, replay};
use supervise::{End, Stamp};

/// A good journal, to be damaged: random bytes alone would never have a right checksum.
fn good() -> Vec<u8> {
    let cell = || "control".to_owned();
    let entries = [
        Entry::MissionAdmitted { name: "rover".to_owned(), file: Text::new("[mission]\nname = \"rover\"\n"), unaccounted: Vec::new(), sources: Default::default() },
        Entry::CellStarting { cell: cell(), generation: 1, beside: false },
        Entry::CellEnded { cell: cell(), generation: 1, end: End::Unknown, cause: None },
        Entry::CellHeld { cell: cell(), why: Hold::ByHand },
        Entry::CellReleased { cell: cell(), why: Hold::ByHand },
        Entry::CleanDown,
    ];
    let dir = std::env::temp_dir().join(format!("timecell-fuzz-{}", std::process::id()));
    let (mut journal, _) = Journal::open(&dir).expect("a directory of its own");
    let records = entries.map(|entry| Record { at: Stamp::now(), entry });
    journal.append_all(&records).expect("room for a journal");
    let bytes = std::fs::read(journal.path()).expect("what was written");
    std::fs::remove_dir_all(&dir).expect("nothing left behind");
    bytes
}

static GOOD: LazyLock<Vec<u8>> = LazyLock::new(good);

/// Sequence numbers of the lines whose checksum is right, reckoned here once more.
fn intact(bytes: &[u8]) -> Vec<u64> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| {
            let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
            let (checksum, body) = line.split_once(' ')?;
            let right = format!("{:08x}", crc32c::crc32c(body.as_bytes())) == checksum;
            right.then(|| body.split(' ').nth(1)?.parse().ok())?
        })
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    let mut damaged = GOOD.clone();
    // Three bytes at a time: a place and what stands there from now on; a zero cuts the file there.
    for change in bytes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % damaged.len();
        if change[2] == 0 && place > 0 {
            damaged.truncate(place);
        } else {
            damaged[place] = change[2];
        }
    }
    for journal in [bytes, damaged.as_slice()] {
        let loaded = load::<Record>(journal);
        let intact = intact(journal);
        assert!(loaded.entries.iter().all(|(sequence, _)| intact.contains(sequence)));
        assert!(loaded.entries.is_sorted_by(|a, b| a.0 < b.0));
        assert!(loaded.whole_bytes <= journal.len());
        assert!(loaded.whole_bytes == journal.len() || !loaded.dropped.is_empty());
        assert!(loaded.dropped.iter().all(|dropped| dropped.at_byte + dropped.bytes <= journal.len()));
        let state = replay(loaded.entries.iter().map(|(_, record)| record));
        assert!(state.incidents.len() <= supervise::state::State::MOST_INCIDENTS);
    }
});
