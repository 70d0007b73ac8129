//! `timecell bench` of the scenarios that repeat single measurements.

use bench::{HEARTBEAT_NS, SeriesOptions, SeriesPlan, SeriesScenario, run_series};
use model::{Duration, InputError};
use study::Kind;

use crate::cli::{Judged, Series};
use crate::commands::bench_hold;
use crate::commands::common::{cpus, host_line, not_measured, requirements};
use crate::commands::judge::Asked;
use crate::commands::studied::{Planned, conduct};
use crate::exit::{CommandError, Ended};
use crate::progress::about;

/// Runs the scenario, writes its record, prints its tables.
pub fn run(scenario: &SeriesScenario, options: &Series) -> Result<Ended, CommandError> {
    let Judged { judge, measured } = &options.run;
    let wanted = SeriesOptions {
        cpus: cpus(options.own.cpus.as_deref())?,
        rounds: options.rounds,
        quick: options.quick,
        engines: options.engine.clone(),
        rootless_user: options.rootless_user.clone(),
        heartbeat_timeout_ns: (options.own.heartbeat_timeout).map_or(10_000_000, Duration::ns),
    };
    // Below some beats, a payload that is merely late would be taken for a wedged one.
    if wanted.heartbeat_timeout_ns < 3 * HEARTBEAT_NS {
        return Err(InputError::new(
            "--heartbeat-timeout",
            "the payload beats every 1 ms, so a shorter silence means nothing",
            "it must be 3ms or more",
        )
        .into());
    }
    let plan = SeriesPlan::new(scenario, &wanted)?;
    let asked = Asked::of(judge)?;
    asked.before(Kind::Series)?;
    asked.of_scenario(plan.scenario, judge.allow_unlike)?;
    let cpus = options.own.cpus.as_deref();
    let _held = bench_hold::of_options(plan.scenario, cpus, measured)?;
    let planned = Planned {
        header: header(&plan),
        dry: dry(&plan),
        nothing: plan.tasks().is_empty(),
        rounds: plan.rounds,
    };
    conduct(&planned, &asked, measured, |settings, teller| {
        run_series(plan, settings, teller)
    })
}

/// The first two lines: what is measured on, and what will be done.
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
    let mut text =
        String::from("measured in every round, each round beginning with the next one\n");
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
