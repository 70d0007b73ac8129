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

/// How many tests run at once.
#[derive(Clone, Copy)]
#[allow(
    dead_code,
    reason = "each test that includes this module has one of them"
)]
pub enum Threads {
    /// One: they change state of the whole machine.
    One,
    /// As many as `--test-threads` says, else as there are cpus.
    Cpus,
    /// As many as `--test-threads` says, else all: they wait for each other themselves.
    OneEach,
}

/// Runs the tests.
#[allow(
    dead_code,
    reason = "a test that includes this module has one of the two"
)]
pub fn run(trials: Vec<Trial>, threads: Threads) -> ! {
    run_then(trials, threads, || {})
}

/// Runs the tests, then something else.
pub fn run_then(trials: Vec<Trial>, threads: Threads, then: impl FnOnce()) -> ! {
    let mut arguments = Arguments::from_args();
    match threads {
        Threads::One => arguments.test_threads = Some(1),
        Threads::Cpus => {}
        Threads::OneEach => {
            arguments.test_threads.get_or_insert(trials.len().max(1));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    then();
    conclusion.exit()
}
