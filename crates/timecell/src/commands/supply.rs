//! Supply studies: `bench supply`, and `report` of such a run.

use bench::{Reservation, Settings, SupplyOptions, SupplyPlan, run_supply};
use host::provenance::Provenance;
use model::{InputError, Requirement};
use report::Kind;

use crate::cli::Bench;
use crate::commands::bench::VERSION;
use crate::commands::judge::Asked;
use crate::commands::{ignored, isolation, studied};
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::{Teller, about};

/// What the study is called on the command line.
pub const NAME: &str = "supply";

/// Refuses options that only this study and `isolation` have, for whatever else is measured.
pub fn refuse_elsewhere(what: &str, options: &Bench) -> Result<(), InputError> {
    let own = [
        ("--enforcer", !options.enforcer.is_empty()),
        ("--reservation", !options.reservation.is_empty()),
    ];
    match own.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(InputError::new(
            *option,
            format!(
                "`{what}` measures no enforcer; only the scenarios `{NAME}` and `{}` do",
                isolation::NAME
            ),
            "remove the option",
        )),
        None => {
            refuse_own(what, options)?;
            isolation::refuse_elsewhere(what, options)
        }
    }
}

/// Refuses options that only this study has, for whatever else is measured.
pub fn refuse_own(what: &str, options: &Bench) -> Result<(), InputError> {
    if options.no_try {
        return Err(InputError::new(
            "--no-try",
            format!("`{what}` tries no task sets inside budgets; only scenario `{NAME}` does"),
            "remove the option",
        ));
    }
    if options.threads.is_some() {
        return Err(InputError::new(
            "--threads",
            format!(
                "`{what}` has no budgets that threads could share; only scenario `{NAME}` does"
            ),
            "remove the option",
        ));
    }
    Ok(())
}

/// Measures, writes the record, prints its table.
pub fn bench(options: &Bench) -> Result<Ended, CommandError> {
    refuse_ignored(options)?;
    let plan = SupplyPlan::new(&wanted(options)?)?;
    let asked = Asked::of(&options.judge)?;
    asked.before(Kind::Supply)?;
    let header = header(&plan);
    if options.dry_run {
        out::print(&format!("{header}\n{}", dry(&plan)));
        let nothing = plan.subjects().is_empty();
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
    let finished = run_supply(&plan, &settings, &report::supply_study, &mut teller);
    teller.done();
    let made = made_out.then_some(options.out.as_path());
    studied::after(finished, &asked, options, made)
}

/// The reservations of the command line.
pub fn reservations(options: &Bench) -> Result<Vec<Reservation>, InputError> {
    (options.reservation.iter())
        .map(|text| {
            text.parse()
                .map_err(|error: String| InputError::new("--reservation", error, ""))
        })
        .collect()
}

fn wanted(options: &Bench) -> Result<SupplyOptions, InputError> {
    let cpus = match &options.cpus {
        None => Vec::new(),
        Some(text) => host::cpus::parse_list(text)
            .map_err(|error| InputError::new("--cpus", error.to_string(), ""))?,
    };
    Ok(SupplyOptions {
        enforcers: options.enforcer.clone(),
        reservations: reservations(options)?,
        duration: options.duration,
        rounds: options.rounds,
        quick: options.quick,
        cpus,
        priority: options.priority,
        no_try: options.no_try,
        threads: options.threads,
        loads: options.load.clone(),
    })
}

fn refuse_ignored(options: &Bench) -> Result<(), InputError> {
    if let Some(part) = options.parts.first() {
        let what = "only `bench self` and `bench isolation` have parts";
        return Err(InputError::new(part, what, "remove the word"));
    }
    isolation::refuse_elsewhere(NAME, options)?;
    let applied = [
        "--enforcer",
        "--reservation",
        "--duration",
        "--rounds",
        "--quick",
        "--no-try",
        "--cpus",
        "--priority",
        "--load",
        "--threads",
        "--fail-if",
        "--baseline",
    ];
    let why =
        format!("scenario `{NAME}` spins in a budget and has nothing that this could apply to");
    ignored::refuse(options, &applied, &why)
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

/// What is measured on, with its line break.
pub fn host_line() -> String {
    let machine = Provenance::collect(VERSION);
    let warnings = match machine.warnings() {
        0 => String::new(),
        1 => "   1 finding, see timecell doctor".to_owned(),
        n => format!("   {n} findings, see timecell doctor"),
    };
    format!("host    {}{warnings}\n", machine.one_line())
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
    for missing in plan.not_measured() {
        text.push_str(&format!(
            "  {:<34}will not be measured: {}{}\n",
            missing.trial,
            missing.reason,
            in_parentheses(&missing.mend)
        ));
    }
    text + &requirements(plan.requirements())
}

/// What is met and what is not, with a heading.
pub fn requirements(all: &[Requirement]) -> String {
    let mut text = String::from("\nrequirements\n");
    for requirement in all {
        let state = if requirement.met { "met" } else { "unmet" };
        let mend = in_parentheses(requirement.mend.as_deref().unwrap_or_default());
        text.push_str(&format!(
            "  {state:<8}{}: {}{mend}\n",
            requirement.what, requirement.reason
        ));
    }
    text
}

/// In parentheses behind a reason, where there is something to say.
pub fn in_parentheses(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}
