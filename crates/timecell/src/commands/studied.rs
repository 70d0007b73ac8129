//! What becomes of a run of whatever kind: right behind its measurement, and in `timecell report RUN`.

use std::path::Path;

use bench::{Finished, Settings};
use record::run::{Run, write_atomically};
use report::Extras;
use study::published::Beside;
use study::{Ask, Kind};

use crate::cli::{Measured, Report};
use crate::commands::bench_until;
use crate::commands::common::{give_to_sudo_user, must, settings, style, whole, write_figures};
use crate::commands::judge::{Asked, Found};
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::Teller;

/// A measurement, told before it begins.
pub struct Planned {
    /// What is measured on, and what will be done.
    pub header: String,
    /// All of it, as `--dry-run` tells.
    pub dry: String,
    /// Whether nothing can be measured.
    pub nothing: bool,
    /// How often everything is repeated.
    pub rounds: u32,
}

/// Tells what is planned and, unless that is all that was asked for, measures it and studies what came of it.
pub fn conduct(
    plan: &Planned,
    asked: &Asked,
    options: &Measured,
    measure: impl FnOnce(&Settings, &mut Teller) -> Finished,
) -> Result<Ended, CommandError> {
    if options.dry_run {
        out::print(&format!("{}\n{}", plan.header, plan.dry));
        return Ok(if plan.nothing {
            Ended::Unmet
        } else {
            Ended::Fine
        });
    }
    out::say(options.json, &plan.header);
    measured(Teller::new(plan.rounds), asked, options, measure)
}

/// Measures and studies what came of it.
pub fn measured(
    mut teller: Teller,
    asked: &Asked,
    options: &Measured,
    measure: impl FnOnce(&Settings, &mut Teller) -> Finished,
) -> Result<Ended, CommandError> {
    let made_out = !options.out.exists();
    let finished = measure(&settings(&options.out), &mut teller);
    teller.done();
    let made = made_out.then_some(options.out.as_path());
    after(finished, asked, options.json, made)
}

/// The table, or JSON, and the page of what was measured; `made` is the directory around the run if that is new.
fn after(
    finished: Finished,
    asked: &Asked,
    json: bool,
    made: Option<&Path>,
) -> Result<Ended, CommandError> {
    let mine = match &finished {
        Ok(run) | Err((Some(run), _)) => Some(run.dir().to_owned()),
        Err((None, _)) => None,
    };
    let ended = match finished {
        Ok(run) => study(&run, asked, json),
        Err((run, error)) => {
            // What was measured until then is on record and worth its page.
            if let Some(run) = run.filter(holds_something) {
                let _ = study(&run, asked, json);
            }
            Err(error.into())
        }
    };
    if let Some(dir) = mine {
        give_to_sudo_user(&dir, made);
    }
    ended
}

fn holds_something(run: &Run) -> bool {
    match run.has_no_experiment() {
        true => (run.manifest()).is_ok_and(|manifest| manifest.trials_done > 0),
        false => (run.trial_numbers()).is_ok_and(|numbers| !numbers.is_empty()),
    }
}

/// What follows a measurement at once: summary, verdicts, page and tables.
fn study(run: &Run, asked: &Asked, as_json: bool) -> Result<Ended, CommandError> {
    asked.keep(run)?;
    let studied = report::studied(run)?;
    studied.keep(run)?;
    let found = asked.judge(run, &*studied)?;
    let page = run.dir().join("report.html");
    write_page(run, &*studied, &found, None, &page)?;
    let decided = match studied.kind() {
        Kind::Jobs => bench_until::decided(run)?,
        _ => None,
    };
    if as_json {
        let mut json = json(&*studied, &found, None);
        if let Some(decided) = &decided {
            json["decide"] = decided.json();
        }
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
    } else {
        out::print(&format!("\n{}", studied.table(style())));
        out::print_some(&found.tables());
        if let Some(line) = decided.as_ref().and_then(bench_until::Decided::line) {
            out::print(&line);
        }
        out::print(&format!("report  {}", page.display()));
    }
    let is_open = decided.is_some_and(|decided| decided.is_open());
    Ok(found.ended(match studied.has_failed() || is_open {
        true => Ended::Failed,
        false => Ended::Fine,
    }))
}

/// The report of one run.
pub fn report(run: &Run, options: &Report) -> Result<Ended, CommandError> {
    let kind = Kind::of(run)?;
    if options.judge.baseline.is_some() {
        must(kind, Ask::Baseline, "--baseline")?;
    }
    if options.against.is_some() {
        must(kind, Ask::Published, "--against")?;
    }
    let asked = Asked::of_or_kept(&options.judge, run)?;
    if !options.judge.fail_if.is_empty() || options.judge.baseline.is_some() {
        asked.suits(run, options.judge.allow_unlike)?;
    }
    let studied = report::studied(run)?;
    let found = asked.judge(run, &*studied)?;
    let beside = match options.against {
        Some(_) => studied.beside(run)?,
        None => None,
    };
    let ended = || -> Result<Ended, CommandError> {
        Ok(found.ended(match kind {
            Kind::Jobs => whole(&[run])?,
            _ => Ended::Fine,
        }))
    };
    if options.json {
        let json = json(&*studied, &found, beside.as_ref());
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return ended();
    }
    // With --output nothing is written into the run, which may belong to somebody else.
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            studied.keep(run)?;
            run.dir().join("report.html")
        }
    };
    write_page(run, &*studied, &found, beside.as_ref(), &page)?;
    out::print(&studied.table(style()));
    out::print_some(&found.tables());
    if let Some(beside) = &beside {
        out::print(&report::beside_table(beside, style()));
    }
    if let Some(dir) = &options.figures {
        let count = write_figures(&studied.pictures(run)?, dir)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&format!("report  {}", page.display()));
    ended()
}

fn json(studied: &dyn report::Drawn, found: &Found, beside: Option<&Beside>) -> serde_json::Value {
    let mut json = studied.json();
    if let Some(beside) = beside {
        json["published"] = serde_json::to_value(beside).unwrap_or_default();
    }
    found.add_to(&mut json);
    json
}

fn write_page(
    run: &Run,
    studied: &dyn report::Drawn,
    found: &Found,
    beside: Option<&Beside>,
    page: &Path,
) -> Result<(), CommandError> {
    let extras = Extras {
        beside,
        judged: found.judged.as_ref(),
        compared: found.compared.as_ref(),
    };
    Ok(write_atomically(
        page,
        studied.page(run, extras)?.as_bytes(),
    )?)
}
