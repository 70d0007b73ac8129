//! The control socket's reader: no bytes panic it, no line is longer than it may be, and what is read as a request is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use supervise::control::{LineBuffer, MOST_REQUEST_BYTES, Request, VERSION};

fuzz_target!(|bytes: &[u8]| {
    // The first byte says in what pieces the rest comes.
    let Some((piece, bytes)) = bytes.split_first() else {
        return;
    };
    let mut buffer = LineBuffer::default();
    for piece in bytes.chunks(usize::from(*piece).max(1)) {
        buffer.push(piece);
        loop {
            match buffer.take(MOST_REQUEST_BYTES) {
                Ok(Some(line)) => {
                    assert!(line.len() < MOST_REQUEST_BYTES && !line.contains(&b'\n'));
                    match Request::read(&line) {
                        Ok(request) => {
                            assert_eq!(request.timecell_control, VERSION);
                            let json = serde_json::to_vec(&request).expect("a request is JSON");
                            assert_eq!(Request::read(&json), Ok(request));
                        }
                        Err(why) => assert!(!why.is_empty()),
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(buffer.len() < MOST_REQUEST_BYTES);
    }
});
