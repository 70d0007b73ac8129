//! Options of `bench` that a scenario would ignore are refused, from one list of them all: a scenario names what it
//! applies, so that an option that is new is refused until it does.

use model::InputError;

use crate::cli::Bench;

/// Every option that says what is measured or how it is judged, and whether it was given.
fn given(options: &Bench) -> [(&'static str, bool); 37] {
    let Bench {
        experiment: _,
        parts: _,
        program,
        // Only with --program.
        program_args: _,
        quick,
        duration,
        jobs,
        period,
        deadline,
        // The options of any measurement.
        beside_missions: _,
        cpus,
        priority,
        class,
        rounds,
        decide,
        until,
        at_most,
        engine,
        load,
        histogram,
        interval,
        resume: _,
        heartbeat_timeout,
        tasks,
        policy,
        counts,
        parallel,
        failure_limit,
        reserve,
        memory_reserve,
        starvation_limit,
        enforcer,
        reservation,
        no_try,
        threads,
        utilisation,
        overrun,
        seed,
        rootless_user,
        out: _,
        dry_run: _,
        require_rt,
        judge,
        json: _,
        template: _,
        list: _,
        list_loads: _,
    } = options;
    [
        ("--program", program.is_some()),
        ("--utilisation", !utilisation.is_empty()),
        ("--overrun", overrun.is_some()),
        ("--seed", seed.is_some()),
        ("--enforcer", !enforcer.is_empty()),
        ("--reservation", !reservation.is_empty()),
        ("--load", !load.is_empty()),
        ("--duration", duration.is_some()),
        ("--jobs", jobs.is_some()),
        ("--period", period.is_some()),
        ("--deadline", deadline.is_some()),
        ("--rounds", rounds.is_some()),
        ("--decide", decide.is_some()),
        ("--until", !until.is_empty()),
        ("--at-most", at_most.is_some()),
        ("--quick", *quick),
        ("--no-try", *no_try),
        ("--threads", threads.is_some()),
        ("--engine", !engine.is_empty()),
        ("--rootless-user", rootless_user.is_some()),
        ("--heartbeat-timeout", heartbeat_timeout.is_some()),
        ("--class", class.is_some()),
        ("--tasks", tasks.is_some()),
        ("--policy", policy.is_some()),
        ("--counts", !counts.is_empty()),
        ("--parallel", parallel.is_some()),
        ("--failure-limit", failure_limit.is_some()),
        ("--memory-reserve", memory_reserve.is_some()),
        ("--starvation-limit", starvation_limit.is_some()),
        ("--reserve", reserve.is_some()),
        ("--require-rt", *require_rt),
        ("--histogram", *histogram),
        ("--interval", interval.is_some()),
        ("--cpus", cpus.is_some()),
        ("--priority", priority.is_some()),
        ("--baseline", judge.baseline.is_some()),
        ("--fail-if", !judge.fail_if.is_empty()),
    ]
}

/// Refuses the first option that is given and not applied; `why` says what of the scenario it could not change.
///
/// # Errors
/// With the options that are allowed.
pub fn refuse(options: &Bench, applied: &[&str], why: &str) -> Result<(), InputError> {
    let all = given(options);
    let of_no_use = |(option, given): &&(&str, bool)| *given && !applied.contains(option);
    let Some((option, _)) = all.iter().find(of_no_use) else {
        return Ok(());
    };
    let mut allowed = all.iter().map(|(option, _)| *option);
    let mut allowed: Vec<&str> = allowed.by_ref().filter(|o| applied.contains(o)).collect();
    let last = allowed.pop().unwrap_or_default();
    let mend = format!(
        "remove the option; {} and {last} are allowed",
        allowed.join(", ")
    );
    Err(InputError::new(*option, why, mend))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn refused(words: &str, applied: &[&str]) -> Option<String> {
        let words = ["timecell", "bench", "x"]
            .into_iter()
            .chain(words.split_whitespace());
        let Command::Bench(options) = Cli::parse_from(words).command else {
            panic!("not bench");
        };
        refuse(&options, applied, "it has no use for it")
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn what_is_not_applied_is_refused_with_what_is() {
        let applied = ["--quick", "--rounds", "--cpus"];
        assert_eq!(
            refused("--quick --rounds 3 --json --out there", &applied),
            None
        );
        for option in [
            "--parallel 3",
            "--memory-reserve 1GiB",
            "--load cpu",
            "--seed 2",
        ] {
            let said = refused(option, &applied).expect(option);
            let name = option.split(' ').next().unwrap();
            assert!(said.contains(name), "{said}");
            assert!(
                said.contains("--rounds, --quick and --cpus are allowed"),
                "{said}"
            );
        }
    }
}
