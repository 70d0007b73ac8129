//! rt-app's JSON as task sets; see `task_set`.
#![no_main]

mod task_set;

use libfuzzer_sys::fuzz_target;
use record::import::taskset::{Format, Options};
use task_set::check;

fuzz_target!(|bytes: &[u8]| {
    let options = Options {
        cpus: Some(4),
        ..Options::default()
    };
    check(Format::RtApp, bytes, options);
});
