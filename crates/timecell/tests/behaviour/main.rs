//! What a user meets: the binary, run on real cells, with good and with bad input.
//!
//! A test whose need is unmet is counted as ignored, with the need in its name.

mod analyze;
mod analyze_servers;
mod bad_input;
mod bench;
mod clean_up;
mod extreme;
mod support;
mod unprivileged;
mod verbs;

use libtest_mimic::{Arguments, Trial};
use support::Case;

fn main() {
    let arguments = Arguments::from_args();
    let groups: [&[Case]; 8] = [
        analyze::CASES,
        analyze_servers::CASES,
        bad_input::CASES,
        bench::CASES,
        clean_up::CASES,
        extreme::CASES,
        unprivileged::CASES,
        verbs::CASES,
    ];
    let trials = groups
        .into_iter()
        .flatten()
        .map(|case| {
            let unmet = case.needs.iter().find_map(|need| need.unmet());
            let name = match &unmet {
                Some(reason) => format!("{} (skipped: {reason})", case.name),
                None => case.name.to_owned(),
            };
            let run = case.run;
            Trial::test(name, move || {
                run();
                Ok(())
            })
            .with_ignored_flag(unmet.is_some())
        })
        .collect();
    // Cells share cpus and one budget: one test at a time.
    let arguments = Arguments {
        test_threads: Some(1),
        ..arguments
    };
    libtest_mimic::run(&arguments, trials).exit();
}
