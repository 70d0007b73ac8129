//! The ledger's reader: no bytes panic it, and whatever it takes can be held to be granted.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entries) = supervise::ledger::parse(bytes) {
        for entry in &entries {
            assert!(entry.cells.iter().all(|cell| cell.check().is_ok()));
            assert_eq!(entry.neighbour().cells, entry.cells);
        }
    }
});
