//! The statistics from outside: properties, coverage of intervals, and tails whose truth is known.

mod coverage;
mod interleaved;
mod kept_tails;
mod properties;
mod simulated;
mod tails;

/// Whether every simulation has its full count. Those that take long have a tenth unless `TIMECELL_TEST_FULL` is set: do so before a release
/// and after a change of the code they test.
fn is_full() -> bool {
    std::env::var_os("TIMECELL_TEST_FULL").is_some()
}

/// Number of experiments of which `full` are the full count.
fn repetitions(full: u64) -> u64 {
    if is_full() { full } else { full.div_ceil(10) }
}

/// By how much an estimate from these experiments may be off, if with the full count it is `full`: a tenth of them makes that √10 times
/// as much.
fn margin(full: f64) -> f64 {
    if is_full() {
        full
    } else {
        full * 10_f64.sqrt()
    }
}
