//! Supply studies: `bench supply`, and `report` of such a run.

use bench::{Reservation, SupplyOptions, SupplyPlan, run_supply};
use model::InputError;
use study::Kind;

use crate::cli::{Enforced, Judged, Supply};
use crate::commands::bench_hold;
use crate::commands::common::{cpus, host_line, not_measured, requirements};
use crate::commands::judge::Asked;
use crate::commands::studied::{Planned, conduct};
use crate::exit::{CommandError, Ended};
use crate::progress::about;

/// What the study is called on the command line.
const NAME: &str = "supply";

/// Measures, writes the record, prints its table.
pub fn bench(options: &Supply) -> Result<Ended, CommandError> {
    let Judged { judge, measured } = &options.enforced.run;
    let _held = bench_hold::of_options(NAME, options.enforced.cpus.as_deref(), measured)?;
    let plan = SupplyPlan::new(&wanted(options)?)?;
    let asked = Asked::of(judge)?;
    asked.before(Kind::Supply)?;
    let planned = Planned {
        header: header(&plan),
        dry: dry(&plan),
        nothing: plan.subjects().is_empty(),
        rounds: plan.rounds,
    };
    conduct(&planned, &asked, measured, |settings, teller| {
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

fn wanted(options: &Supply) -> Result<SupplyOptions, InputError> {
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

/// The first two lines: what is measured on, and what will be done.
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
    let mut text =
        String::from("measured in every round, each round beginning with the next one\n");
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
