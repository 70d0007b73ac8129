//! Studies of temporal isolation: `bench isolation`, and `report` of such a run.

use bench::{BenchError, IsolationOptions, IsolationPlan, Part, Settings, run_isolation};
use model::InputError;
use record::isolation::IsolationSummary;
use record::run::{Run, write_atomically};

use crate::cli::{Bench, Report};
use crate::commands::bench::{VERSION, give_to_sudo_user};
use crate::commands::ignored;
use crate::commands::judge::{Asked, Found};
use crate::commands::report::{style, write_figures};
use crate::commands::supply::{host_line, in_parentheses, refuse_own, requirements, reservations};
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::{Teller, about};

/// What the study is called on the command line.
pub const NAME: &str = "isolation";

/// Why baselines are refused.
const NO_BASELINE: &str = "contests are held against the victim alone, in the same run";

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
    let mine = match &finished {
        Ok(run) | Err((Some(run), _)) => Some(run.dir().to_owned()),
        Err((None, _)) => None,
    };
    let ended = after(finished, &asked, options);
    if let Some(dir) = mine {
        give_to_sudo_user(&dir, made_out.then_some(options.out.as_path()));
    }
    ended
}

fn after(
    finished: Result<Run, (Option<Run>, BenchError)>,
    asked: &Asked,
    options: &Bench,
) -> Result<Ended, CommandError> {
    match finished {
        Ok(run) => study(&run, asked, options),
        Err((run, error)) => {
            // What was measured until then is on record and worth its page.
            if let Some(run) = run
                && run
                    .manifest()
                    .is_ok_and(|manifest| manifest.trials_done > 0)
            {
                let _ = study(&run, asked, options);
            }
            Err(error.into())
        }
    }
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

/// What follows a study at once: summary, page and tables.
fn study(run: &Run, asked: &Asked, options: &Bench) -> Result<Ended, CommandError> {
    asked.keep(run)?;
    let summary = report::isolation_study(run)?;
    let found = asked.judge_isolation(&summary);
    run.write_isolation_summary(&summary)?;
    let page = run.dir().join("report.html");
    write_atomically(&page, report::isolation_html(run, &summary)?.as_bytes())?;
    if options.json {
        print_json(&summary, &found);
    } else {
        out::print(&format!("\n{}", report::isolation_table(&summary, style())));
        out::print_some(&found.tables());
        out::print(&format!("report  {}", page.display()));
    }
    Ok(found.ended(if summary.failures.is_empty() {
        Ended::Fine
    } else {
        Ended::Failed
    }))
}

fn print_json(summary: &IsolationSummary, found: &Found) {
    let mut json = serde_json::to_value(summary).unwrap_or_default();
    found.add_to(&mut json);
    out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
}

/// The report of one study of isolation.
pub fn report(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let refused = [
        ("--baseline", options.judge.baseline.is_some(), NO_BASELINE),
        (
            "--against",
            options.against.is_some(),
            "no published figures are of the same kind",
        ),
    ];
    if let Some((option, _, why)) = refused.into_iter().find(|(_, asked, _)| *asked) {
        return Err(InputError::new(option, why, "remove the option").into());
    }
    let asked = Asked::of_or_kept(&options.judge, run)?;
    let summary = report::isolation_study(run)?;
    let found = asked.judge_isolation(&summary);
    if options.json {
        print_json(&summary, &found);
        return Ok(found.ended(Ended::Fine));
    }
    // With --output nothing is written into the run, which may belong to somebody else.
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            run.write_isolation_summary(&summary)?;
            run.dir().join("report.html")
        }
    };
    write_atomically(&page, report::isolation_html(run, &summary)?.as_bytes())?;
    out::print(&report::isolation_table(&summary, style()));
    out::print_some(&found.tables());
    if let Some(dir) = &options.figures {
        let count = write_figures(&report::isolation_figures(&summary), dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    Ok(found.ended(Ended::Fine))
}
