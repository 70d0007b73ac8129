//! `timecell bench` for the scenarios that repeat single measurements.

use bench::{HEARTBEAT_NS, SeriesOptions, SeriesPlan, SeriesScenario, Sweep, run_series};
use model::{Duration, InputError};
use study::Kind;

use crate::cli::Series;
use crate::commands::bench_hold;
use crate::commands::common::{cpus, host_line, not_measured, requirements};
use crate::commands::studied::{Planned, Wanted, conduct};
use crate::exit::{CommandError, Ended};
use crate::progress::about;

/// Runs the scenario, writes its record, prints its tables.
pub fn run(scenario: &SeriesScenario, options: &Series) -> Result<Ended, CommandError> {
    let asked = SeriesOptions {
        cpus: cpus(options.own.cpus.as_deref())?,
        rounds: options.rounds,
        quick: options.quick,
        engines: options.cells.engine.clone(),
        rootless_user: options.cells.rootless_user.clone(),
        heartbeat_timeout_ns: (options.own.heartbeat_timeout).map_or(10_000_000, Duration::ns),
        sweep: Sweep::parse(&options.own.sweep)?,
        // The run may be resumed from another directory.
        mission: (options.own.mission.as_deref())
            .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
    };
    // Within a few beats, a payload that is merely late would count as wedged.
    if asked.heartbeat_timeout_ns < 3 * HEARTBEAT_NS {
        return Err(InputError::new(
            "--heartbeat-timeout",
            "the payload beats every 1 ms, so a shorter silence means nothing",
            "it must be 3ms or more",
        )
        .into());
    }
    measure(scenario, &asked, &Wanted::new(&options.run))
}

/// Measures with these options, or resumes a run of them.
pub fn measure(
    scenario: &SeriesScenario,
    options: &SeriesOptions,
    wanted: &Wanted<'_>,
) -> Result<Ended, CommandError> {
    let plan = SeriesPlan::new(scenario, options)?;
    let asked = wanted.asked(Kind::Series)?;
    asked.of_scenario(plan.scenario, wanted.allow_unlike())?;
    let _held = match &options.mission {
        // Its supervisor holds its cpus.
        Some(_) => None,
        None => bench_hold::of_cpus(plan.scenario, &options.cpus, wanted.measured)?,
    };
    let planned = Planned {
        header: header(&plan),
        dry: dry(&plan),
        nothing: plan.tasks().is_empty(),
        not_measured: plan.not_measured().to_vec(),
        rounds: plan.rounds,
    };
    conduct(&planned, &asked, wanted, |settings, teller| {
        run_series(plan, settings, teller)
    })
}

/// The first two lines: the machine, and the measurement.
fn header(plan: &SeriesPlan) -> String {
    format!(
        "{}plan    {} measurements x {} rounds   about {}\n",
        host_line(),
        plan.tasks().len(),
        plan.rounds,
        about(plan.expected_ns())
    )
}

fn dry(plan: &SeriesPlan) -> String {
    let mut text = String::from("measured in every round, each round starting with the next one\n");
    for task in plan.tasks() {
        text.push_str(&format!("  {:<34}{}\n", task.subject, task.part));
    }
    text.push_str(&not_measured(plan.not_measured(), 32));
    text.push_str(&requirements(plan.requirements()));
    if let Some(baseline) = plan.baseline() {
        text.push_str(&format!("\nbaseline {baseline}\n"));
    }
    text
}
