//! `timecell bench` of the scenarios that repeat single measurements.

use bench::{HEARTBEAT_NS, SeriesOptions, SeriesPlan, Settings, run_series};
use host::provenance::Provenance;
use model::{Duration, InputError};
use report::Kind;

use crate::cli::Bench;
use crate::commands::bench::{VERSION, cpus};
use crate::commands::judge::Asked;
use crate::exit::{CommandError, Ended};
use crate::progress::{Teller, about};
use crate::{commands, out};

/// Runs the scenario `what` if it is one of this kind, writes its record, prints its tables.
pub fn run(what: &str, options: &Bench) -> Option<Result<Ended, CommandError>> {
    let cpus = match cpus(options) {
        Ok(cpus) => cpus,
        Err(error) => return Some(Err(error.into())),
    };
    let wanted = SeriesOptions {
        cpus,
        rounds: options.rounds,
        quick: options.quick,
        engines: options.engine.clone(),
        rootless_user: options.rootless_user.clone(),
        heartbeat_timeout_ns: options.heartbeat_timeout.map_or(10_000_000, Duration::ns),
    };
    if what != "recovery" && options.heartbeat_timeout.is_some() {
        return Some(Err(InputError::new(
            "--heartbeat-timeout",
            "only scenario `recovery` watches a heartbeat",
            "remove the option",
        )
        .into()));
    }
    // Below some beats, a payload that is merely late would be taken for a wedged one.
    if wanted.heartbeat_timeout_ns < 3 * HEARTBEAT_NS {
        return Some(Err(InputError::new(
            "--heartbeat-timeout",
            "the payload beats every 1 ms, so a shorter silence means nothing",
            "it must be 3ms or more",
        )
        .into()));
    }
    let plan = SeriesPlan::find(what, &wanted)?;
    let plan = plan.map_err(CommandError::Input);
    Some(plan.and_then(|plan| measure(plan, options)))
}

fn measure(plan: SeriesPlan, options: &Bench) -> Result<Ended, CommandError> {
    refuse_ignored(plan.scenario, options)?;
    let asked = Asked::of(&options.judge)?;
    asked.before(Kind::Series)?;
    asked.of_scenario(plan.scenario, options.judge.allow_unlike)?;
    let header = header(&plan);
    if options.dry_run {
        out::print(&format!("{header}\n{}", dry(&plan)));
        let nothing = plan.tasks().is_empty();
        return Ok(if nothing { Ended::Unmet } else { Ended::Fine });
    }
    if options.json {
        out::note(&header);
    } else {
        out::print(&header);
    }
    let _held = commands::bench_hold::of_options(plan.scenario, options)?;
    let settings = Settings {
        out: options.out.clone(),
        version: VERSION.to_owned(),
    };
    let mut teller = Teller::new(plan.rounds);
    let made_out = !options.out.exists();
    let finished = run_series(plan, &settings, &mut teller);
    teller.done();
    let made = made_out.then_some(options.out.as_path());
    commands::studied::after(finished, &asked, options, made)
}

fn refuse_ignored(scenario: &str, options: &Bench) -> Result<(), InputError> {
    if let Some(part) = options.parts.first() {
        return Err(InputError::new(
            part,
            "only `bench self` and `bench isolation` have parts",
            "remove the word",
        ));
    }
    let mut applied = vec![
        "--rounds",
        "--quick",
        "--engine",
        "--rootless-user",
        "--fail-if",
        "--baseline",
    ];
    applied.extend(match scenario {
        "nqueens" => Some("--cpus"),
        "recovery" => Some("--heartbeat-timeout"),
        _ => None,
    });
    let why = format!("scenario `{scenario}` has no periodic jobs that this could apply to");
    commands::ignored::refuse(options, &applied, &why)
}

/// The first two lines: what is measured on, and what will be done.
fn header(plan: &SeriesPlan) -> String {
    let machine = Provenance::collect(VERSION);
    let warnings = match machine.warnings() {
        0 => String::new(),
        1 => "   1 finding, see timecell doctor".to_owned(),
        n => format!("   {n} findings, see timecell doctor"),
    };
    format!(
        "host    {}{warnings}\nplan    {} measurements x {} rounds   about {}\n",
        machine.one_line(),
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
    for missing in plan.not_measured() {
        text.push_str(&format!(
            "  {:<34}will not be measured: {}{}\n",
            missing.trial,
            missing.reason,
            in_parentheses(&missing.mend)
        ));
    }
    text.push_str("\nrequirements\n");
    for requirement in plan.requirements() {
        let state = if requirement.met { "met" } else { "unmet" };
        let mend = in_parentheses(requirement.mend.as_deref().unwrap_or_default());
        text.push_str(&format!(
            "  {state:<8}{}: {}{mend}\n",
            requirement.what, requirement.reason
        ));
    }
    if let Some(baseline) = plan.baseline() {
        text.push_str(&format!("\nbaseline {baseline}\n"));
    }
    text
}

fn in_parentheses(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}
