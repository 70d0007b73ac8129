//! `timecell bench supply`: studies of the supply of enforcers.

use bench::{Reservation, SupplyOptions, SupplyPlan, run_supply};
use model::InputError;
use study::Kind;

use crate::cli::{Enforced, Supply};
use crate::commands::bench_hold;
use crate::commands::common::{cpus, host_line, not_measured, requirements};
use crate::commands::studied::{Planned, Wanted, conduct};
use crate::exit::{CommandError, Ended};
use crate::progress::about;

/// The name of the study on the command line.
const NAME: &str = "supply";

/// Measures, writes the record, prints its table.
pub fn bench(options: &Supply) -> Result<Ended, CommandError> {
    measure(&options_of(options)?, &Wanted::new(&options.enforced.run))
}

/// Measures with these options, or resumes a run of them.
pub fn measure(options: &SupplyOptions, wanted: &Wanted<'_>) -> Result<Ended, CommandError> {
    let _held = bench_hold::of_cpus(NAME, &options.cpus, wanted.measured)?;
    let plan = SupplyPlan::new(options)?;
    let asked = wanted.asked(Kind::Supply)?;
    let planned = Planned {
        header: header(&plan),
        dry: dry(&plan),
        nothing: plan.subjects().is_empty(),
        not_measured: plan.not_measured().to_vec(),
        rounds: plan.rounds,
    };
    conduct(&planned, &asked, wanted, |settings, teller| {
        run_supply(&plan, settings, teller)
    })
}

/// The reservations of the command line.
pub fn reservations(options: &Enforced) -> Result<Vec<Reservation>, InputError> {
    (options.reservation.iter())
        .map(|text| {
            text.parse()
                .map_err(|error: String| InputError::new("--reservation", error, ""))
        })
        .collect()
}

fn options_of(options: &Supply) -> Result<SupplyOptions, InputError> {
    let enforced = &options.enforced;
    Ok(SupplyOptions {
        enforcers: enforced.enforcer.clone(),
        reservations: reservations(enforced)?,
        duration: enforced.duration,
        rounds: enforced.rounds,
        quick: enforced.quick,
        cpus: cpus(enforced.cpus.as_deref())?,
        priority: enforced.priority,
        no_try: options.no_try,
        threads: options.threads,
        loads: enforced.load.clone(),
    })
}

/// The first two lines: the machine, and the measurement.
fn header(plan: &SupplyPlan) -> String {
    let rounds = if plan.rounds == 1 { "round" } else { "rounds" };
    let spinning = plan.subjects().len();
    let tried = match plan.trials() / plan.rounds.max(1) {
        all if all as usize > spinning => {
            format!(
                ", then {} of task sets inside the budgets",
                all as usize - spinning
            )
        }
        _ => String::new(),
    };
    format!(
        "{}plan    {spinning} trials of a spinning thread{tried} x {} {rounds}   about {}\n",
        host_line(),
        plan.rounds,
        about(plan.expected_ns())
    )
}

fn dry(plan: &SupplyPlan) -> String {
    let mut text = String::from("measured in every round, each round starting with the next one\n");
    for subject in plan.subjects() {
        text.push_str(&format!("  {}\n", subject.name()));
    }
    if !plan.tried().is_empty() {
        text.push_str(
            "then, in every round, where the measured supply differs from the textbook's\n",
        );
        for name in plan.tried() {
            text.push_str(&format!("  {name}\n"));
        }
    }
    text.push_str(&not_measured(plan.not_measured(), 32));
    text + &requirements(plan.requirements())
}
