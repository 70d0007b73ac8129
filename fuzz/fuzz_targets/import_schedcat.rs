//! SchedCAT's XML as task sets; see `task_set`.
#![no_main]

mod task_set;

use libfuzzer_sys::fuzz_target;
use record::import::taskset::{Format, Options};
use task_set::check;

fuzz_target!(|bytes: &[u8]| {
    check(Format::SchedCat, bytes, Options::default());
});
