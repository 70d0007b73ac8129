//! The reader of OCI bundles: no text panics it, and what it accepts can be run.
#![no_main]

use std::path::Path;

use engine::app::Bundle;
use libfuzzer_sys::fuzz_target;

/// A good bundle, to be damaged.
const GOOD: &[u8] = br#"{"ociVersion":"1.0.2","hostname":"a","root":{"path":"r","readonly":true},
"process":{"terminal":true,"user":{"uid":1,"gid":2,"additionalGids":[3]},"args":["a","b"],"env":["A=b"],"cwd":"/",
"capabilities":{"bounding":["CAP_KILL"]},"rlimits":[{"type":"RLIMIT_CORE","hard":1,"soft":1}]},
"mounts":[{"destination":"/proc","type":"proc","source":"proc"},{"destination":"/d","source":"/s"}],
"hooks":{"prestart":[]},"linux":{"namespaces":[{"type":"pid"}],"resources":{}}}"#;

fuzz_target!(|bytes: &[u8]| {
    let mut damaged = GOOD.to_vec();
    // Three bytes at a time: a place and what stands there from now on.
    for change in bytes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % damaged.len();
        damaged[place] = change[2];
    }
    for text in [bytes, damaged.as_slice()] {
        if let Ok(bundle) = Bundle::parse(Path::new("fuzz/config.json"), text) {
            assert!(bundle.cwd.is_absolute());
        }
    }
});
