//! `timecell bench isolation`: studies of temporal isolation.

use bench::{IsolationOptions, IsolationPlan, Part, run_isolation};
use model::InputError;
use study::Kind;

use crate::cli::Isolation;
use crate::commands::bench_hold;
use crate::commands::common::{cpus, host_line, not_measured, requirements};
use crate::commands::studied::{Planned, Wanted, conduct};
use crate::commands::supply::reservations;
use crate::exit::{CommandError, Ended};
use crate::progress::about;

/// The name of the study on the command line.
const NAME: &str = "isolation";

/// Measures, writes the record, prints its tables.
pub fn bench(options: &Isolation) -> Result<Ended, CommandError> {
    measure(&options_of(options)?, &Wanted::new(&options.enforced.run))
}

/// Measures with these options, or resumes a run of them.
pub fn measure(options: &IsolationOptions, wanted: &Wanted<'_>) -> Result<Ended, CommandError> {
    let _held = bench_hold::of_cpus(NAME, &options.cpus, wanted.measured)?;
    let plan = IsolationPlan::new(options)?;
    let asked = wanted.asked(Kind::Isolation)?;
    let planned = Planned {
        header: header(&plan),
        dry: dry(&plan),
        nothing: plan.trials().is_empty(),
        not_measured: plan.not_measured().to_vec(),
        rounds: plan.rounds,
    };
    conduct(&planned, &asked, wanted, |settings, teller| {
        run_isolation(&plan, settings, teller)
    })
}

fn options_of(options: &Isolation) -> Result<IsolationOptions, InputError> {
    let enforced = &options.enforced;
    let parts: Result<Vec<Part>, InputError> = (options.parts.iter())
        .map(|text| {
            text.parse()
                .map_err(|error: String| InputError::new(text, error, ""))
        })
        .collect();
    Ok(IsolationOptions {
        parts: parts?,
        enforcers: enforced.enforcer.clone(),
        utilisations: options.utilisation.clone(),
        overrun: options.overrun,
        seed: options.seed,
        loads: enforced.load.clone(),
        reservations: reservations(enforced)?,
        duration: enforced.duration,
        rounds: enforced.rounds,
        quick: enforced.quick,
        cpus: cpus(enforced.cpus.as_deref())?,
        priority: enforced.priority,
    })
}

/// The first two lines: the machine, and the measurement.
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
    let mut text = String::from("measured, interleaved, this often\n");
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
    text.push_str(&not_measured(plan.not_measured(), 0));
    text + &requirements(plan.requirements())
}
