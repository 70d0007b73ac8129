//! Studies a run of any kind: right after its measurement, and in `timecell report RUN`.

use std::path::Path;

use bench::{Finished, Settings};
use record::NotMeasured;
use record::run::{Resumption, Run};
use report::Extras;
use study::published::Beside;
use study::{Ask, Kind};

use crate::cli::{Judge, Judged, Measured, Report};
use crate::commands::bench_until;
use crate::commands::common::{
    give_to_sudo_user, host_line, must, settings, style, whole, write_figures, write_page,
};
use crate::commands::judge::{Asked, Found};
use crate::exit::{CommandError, Ended};
use crate::out;
use crate::progress::Teller;

/// A requested run: a new one, or one to resume.
pub struct Wanted<'a> {
    /// Thresholds and the baseline.
    pub judge: &'a Judge,
    /// Options common to all measurements.
    pub measured: &'a Measured,
    /// The run to resume.
    pub resume: Option<&'a Run>,
}

impl<'a> Wanted<'a> {
    /// A new run.
    pub fn new(run: &'a Judged) -> Wanted<'a> {
        Wanted {
            judge: &run.judge,
            measured: &run.measured,
            resume: None,
        }
    }

    /// The conditions by which the run is judged. A resumed run keeps its own unless new ones are given.
    pub fn asked(&self, kind: Kind) -> Result<Asked, CommandError> {
        let asked = Asked::of(self.judge)?;
        asked.before(kind)?;
        let Some(run) = self.resume else {
            return Ok(asked);
        };
        asked.is_not_to(run)?;
        // Conditions kept with the run never prevent resuming it.
        asked.or_kept(run)
    }

    /// Whether the baseline may differ in its work: that of a resumed run was allowed when the run began.
    pub fn allow_unlike(&self) -> bool {
        self.judge.allow_unlike || (self.resume.is_some() && self.judge.baseline.is_none())
    }
}

/// A planned measurement, as printed before it starts.
pub struct Planned {
    /// The machine, and the measurement.
    pub header: String,
    /// All of the plan, for `--dry-run`.
    pub dry: String,
    /// Whether nothing can be measured.
    pub nothing: bool,
    /// The measurements that cannot be made, and why.
    pub not_measured: Vec<NotMeasured>,
    /// Number of rounds.
    pub rounds: u32,
}

/// Prints the plan and, except for a dry run, measures it and studies the run.
pub fn conduct(
    plan: &Planned,
    asked: &Asked,
    wanted: &Wanted<'_>,
    measure: impl FnOnce(&Settings, &mut Teller) -> Finished,
) -> Result<Ended, CommandError> {
    if let Some(run) = wanted.resume {
        bench::check_resume(run, &plan.not_measured)?;
    }
    if wanted.measured.dry_run {
        if wanted.resume.is_some() {
            let settings = Settings {
                only_check: true,
                ..settings(&wanted.measured.out, wanted.resume)
            };
            measure(&settings, &mut Teller::new(plan.rounds)).map_err(|(_, error)| error)?;
        }
        out::print(&format!("{}\n{}", plan.header, plan.dry));
        return Ok(if plan.nothing {
            Ended::Unmet
        } else {
            Ended::Fine
        });
    }
    let header = match wanted.resume {
        None => &plan.header,
        Some(run) => &resumes(run),
    };
    out::say(wanted.measured.json, header);
    measured(Teller::new(plan.rounds), asked, wanted, measure)
}

/// The first two lines of a run that is resumed.
pub fn resumes(run: &Run) -> String {
    format!("{}resume  {}\n", host_line(), run.dir().display())
}

/// Measures, and studies the run.
pub fn measured(
    teller: Teller,
    asked: &Asked,
    wanted: &Wanted<'_>,
    measure: impl FnOnce(&Settings, &mut Teller) -> Finished,
) -> Result<Ended, CommandError> {
    let options = wanted.measured;
    let made_out = !options.out.exists();
    let mut teller = teller.keeping(asked.to_keep());
    let finished = measure(&settings(&options.out, wanted.resume), &mut teller);
    let noted = teller.done();
    let made = made_out.then_some(options.out.as_path());
    after(finished, asked, options.json, &noted, made)
}

/// Prints the table, or JSON, of the measurements, and writes its page; `noted` are reasons of failures that the user has seen,
/// `made` is the directory around the run if that is new.
fn after(
    finished: Finished,
    asked: &Asked,
    json: bool,
    noted: &[String],
    made: Option<&Path>,
) -> Result<Ended, CommandError> {
    let mine = match &finished {
        Ok(run) | Err((Some(run), _)) => Some(run.dir().to_owned()),
        Err((None, _)) => None,
    };
    let ended = match finished {
        Ok(run) => study(&run, asked, json, noted),
        Err((run, error)) => {
            // Measurements until then are recorded, and get their page.
            if let Some(run) = run.filter(holds_something) {
                let _ = study(&run, asked, json, noted);
                if run.has_no_experiment() {
                    // The table of an experiment says it of every trial that was not reached.
                    let dir = run.dir().display();
                    out::note(&format!("resume  timecell bench --resume {dir}"));
                }
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

/// The steps after a measurement: summary, verdicts, page and tables.
fn study(run: &Run, asked: &Asked, as_json: bool, noted: &[String]) -> Result<Ended, CommandError> {
    asked.keep(run)?;
    let mut studied = report::studied(run)?;
    studied.keep(run)?;
    let found = asked.judge(run, &*studied)?;
    let page = run.dir().join("report.html");
    // Whatever has this name in a run's directory is a page of an earlier part of the run.
    let written = write_page(&page, &drawn(run, &*studied, &found, None)?, true)?;
    let decided = match studied.kind() {
        Kind::Jobs => bench_until::decided(run)?,
        _ => None,
    };
    let aside = Aside::of(run, &*studied)?;
    let has_failed = studied.has_failed();
    if as_json {
        let mut json = json(&*studied, &found, None, &aside);
        if let Some(decided) = &decided {
            json["decide"] = decided.json();
        }
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
    } else {
        let seen = studied.without_seen(noted);
        out::print(&format!("\n{}", studied.table(style())));
        out::print_some(&seen.unwrap_or_default());
        out::print_some(&report::gap_notes(&aside.gaps));
        out::print_some(&found.tables());
        if let Some(line) = decided.as_ref().and_then(bench_until::Decided::line) {
            out::print(&line);
        }
        out::print(&written);
    }
    let is_open = decided.is_some_and(|decided| decided.is_open());
    Ok(found.ended(match has_failed || is_open {
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
    let aside = Aside::of(run, &*studied)?;
    if options.json {
        let json = json(&*studied, &found, beside.as_ref(), &aside);
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return ended();
    }
    // With --output, nothing is written into the run, which may belong to somebody else.
    let page = match &options.output {
        Some(page) => page.clone(),
        None => {
            studied.keep(run)?;
            run.dir().join("report.html")
        }
    };
    let drawn = drawn(run, &*studied, &found, beside.as_ref())?;
    let written = write_page(&page, &drawn, options.force)?;
    out::print(&studied.table(style()));
    out::print_some(&report::gap_notes(&aside.gaps));
    out::print_some(&report::remark_notes(&aside.remarks));
    out::print_some(&found.tables());
    if let Some(beside) = &beside {
        out::print(&report::beside_table(beside, style()));
    }
    if let Some(dir) = &options.figures {
        let count = write_figures(&studied.pictures(run)?, dir, is_emulated(run)?)?;
        out::print(&format!("figures {count} SVG files in {}", dir.display()));
    }
    out::print(&written);
    ended()
}

/// Whether the machine that a run was made on was emulated, or cells of it were.
pub fn is_emulated(run: &Run) -> Result<bool, CommandError> {
    Ok(run.caution()?.is_some())
}

/// The part of a run's manifest that is reported beside its summary.
struct Aside {
    /// When nothing was measured because the run had ended and was resumed; empty where the summary has it already.
    gaps: Vec<Resumption>,
    /// Remarks that explain results.
    remarks: Vec<String>,
    /// That times are those of an emulated machine.
    emulated: Option<String>,
}

impl Aside {
    fn of(run: &Run, studied: &dyn report::Drawn) -> Result<Aside, CommandError> {
        let manifest = run.manifest()?;
        let emulated = run.caution()?;
        Ok(Aside {
            gaps: match studied.kind() {
                Kind::Jobs => Vec::new(),
                _ => manifest.resumed,
            },
            remarks: (emulated.clone().into_iter())
                .chain(manifest.remarks)
                .collect(),
            emulated,
        })
    }
}

fn json(
    studied: &dyn report::Drawn,
    found: &Found,
    beside: Option<&Beside>,
    aside: &Aside,
) -> serde_json::Value {
    let mut json = studied.json();
    if !aside.gaps.is_empty() {
        json["resumed"] = serde_json::to_value(&aside.gaps).unwrap_or_default();
    }
    if !aside.remarks.is_empty() {
        json["remarks"] = aside.remarks.clone().into();
    }
    if let Some(emulated) = &aside.emulated {
        json["emulated"] = emulated.as_str().into();
    }
    if let Some(beside) = beside {
        json["published"] = serde_json::to_value(beside).unwrap_or_default();
    }
    found.add_to(&mut json);
    json
}

/// The page of a run.
fn drawn(
    run: &Run,
    studied: &dyn report::Drawn,
    found: &Found,
    beside: Option<&Beside>,
) -> Result<String, CommandError> {
    let extras = Extras {
        beside,
        judged: found.judged.as_ref(),
        compared: found.compared.as_ref(),
    };
    Ok(studied.page(run, extras)?)
}
