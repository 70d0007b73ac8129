//! Tests that need something of the machine. One whose need is unmet is counted as ignored, with the reason in its
//! name, and never as passed. Included by the tests of other crates too.

use libtest_mimic::{Arguments, Trial};

/// A test; `unmet` says why it cannot be run here.
pub fn trial(name: &str, unmet: Option<&str>, run: impl FnOnce() + Send + 'static) -> Trial {
    let name = match unmet {
        Some(reason) => format!("{name} (skipped: {reason})"),
        None => name.to_owned(),
    };
    let test = move || {
        run();
        Ok(())
    };
    Trial::test(name, test).with_ignored_flag(unmet.is_some())
}

/// Runs the tests: one at a time if they change what belongs to the whole machine.
pub fn run(trials: Vec<Trial>, one_at_a_time: bool) -> ! {
    let mut arguments = Arguments::from_args();
    if one_at_a_time {
        arguments.test_threads = Some(1);
    }
    libtest_mimic::run(&arguments, trials).exit()
}
