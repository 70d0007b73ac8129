//! Studies of temporal isolation: `bench isolation`, and `report` of such a run.

use bench::{IsolationOptions, IsolationPlan, Part, Settings, run_isolation};
use model::InputError;
use report::Kind;

use crate::cli::Bench;
use crate::commands::bench::VERSION;
use crate::commands::judge::Asked;
use crate::commands::supply::{host_line, in_parentheses, refuse_own, requirements, reservations};
use crate::commands::{ignored, studied};
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::{Teller, about};

/// What the study is called on the command line.
pub const NAME: &str = "isolation";

/// Refuses options that only this study has, for whatever else is measured.
pub fn refuse_elsewhere(what: &str, options: &Bench) -> Result<(), InputError> {
    let own = [
        ("--utilisation", !options.utilisation.is_empty()),
        ("--overrun", options.overrun.is_some()),
        ("--seed", options.seed.is_some()),
    ];
    match own.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(InputError::new(
            *option,
            format!("`{what}` draws no task sets; only scenario `{NAME}` does"),
            "remove the option",
        )),
        None => Ok(()),
    }
}

/// Measures, writes the record, prints its tables.
pub fn bench(options: &Bench) -> Result<Ended, CommandError> {
    refuse_ignored(options)?;
    let plan = IsolationPlan::new(&wanted(options)?)?;
    let asked = Asked::of(&options.judge)?;
    asked.before(Kind::Isolation)?;
    let header = header(&plan);
    if options.dry_run {
        out::print(&format!("{header}\n{}", dry(&plan)));
        let nothing = plan.trials().is_empty();
        return Ok(if nothing { Ended::Unmet } else { Ended::Fine });
    }
    if options.json {
        out::note(&header);
    } else {
        out::print(&header);
    }
    let settings = Settings {
        out: options.out.clone(),
        version: VERSION.to_owned(),
    };
    let mut teller = Teller::new(plan.rounds);
    let made_out = !options.out.exists();
    let finished = run_isolation(&plan, &settings, &mut teller);
    teller.done();
    let made = made_out.then_some(options.out.as_path());
    studied::after(finished, &asked, options, made)
}

fn wanted(options: &Bench) -> Result<IsolationOptions, InputError> {
    let cpus = match &options.cpus {
        None => Vec::new(),
        Some(text) => host::cpus::parse_list(text)
            .map_err(|error| InputError::new("--cpus", error.to_string(), ""))?,
    };
    let parts: Result<Vec<Part>, InputError> = (options.parts.iter())
        .map(|text| {
            text.parse()
                .map_err(|error: String| InputError::new(text, error, ""))
        })
        .collect();
    Ok(IsolationOptions {
        parts: parts?,
        enforcers: options.enforcer.clone(),
        utilisations: options.utilisation.clone(),
        overrun: options.overrun,
        seed: options.seed,
        loads: options.load.clone(),
        reservations: reservations(options)?,
        duration: options.duration,
        rounds: options.rounds,
        quick: options.quick,
        cpus,
        priority: options.priority,
    })
}

fn refuse_ignored(options: &Bench) -> Result<(), InputError> {
    refuse_own(NAME, options)?;
    let applied = [
        "--utilisation",
        "--overrun",
        "--seed",
        "--enforcer",
        "--reservation",
        "--load",
        "--duration",
        "--rounds",
        "--quick",
        "--cpus",
        "--priority",
        "--fail-if",
        "--baseline",
    ];
    let why = format!(
        "scenario `{NAME}` runs sets of its own in two cells and has nothing that this could apply to"
    );
    ignored::refuse(options, &applied, &why)
}

/// The first two lines: what is measured on, and what will be done.
fn header(plan: &IsolationPlan) -> String {
    let rounds = if plan.rounds == 1 { "round" } else { "rounds" };
    let trials: usize = plan.trials().iter().map(|(_, count)| count).sum();
    format!(
        "{}plan    {trials} trials in {} {rounds} of contests and spinning cells   about {}\n",
        host_line(),
        plan.rounds,
        about(plan.expected_ns())
    )
}

fn dry(plan: &IsolationPlan) -> String {
    let mut text = String::from("measured, interleaved, so often\n");
    for (name, count) in plan.trials() {
        text.push_str(&format!("  {count:>5}  {name}\n"));
    }
    text.push_str("\ntask sets\n");
    for draws in plan.draws() {
        let refused: Vec<String> = (draws.refused.iter())
            .map(|(name, count)| format!("{count} refused for {name}"))
            .collect();
        text.push_str(&format!(
            "  utilisation {}: {} drawn; {}\n",
            f64::from(draws.utilisation_permille) / 1_000.0,
            draws.drawn,
            refused.join(", ")
        ));
    }
    for missing in plan.not_measured() {
        text.push_str(&format!(
            "  {} will not be measured: {}{}\n",
            missing.trial,
            missing.reason,
            in_parentheses(&missing.mend)
        ));
    }
    text + &requirements(plan.requirements())
}
