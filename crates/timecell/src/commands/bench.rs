//! `timecell bench`: measures an experiment file or a scenario.

use std::path::Path;

use bench::scenario::{self, Way};
use bench::{BenchError, Plan};
use model::{InputError, Overrides};
use record::Document;
use record::plan::PlanRecord;
use record::run::Run;
use serde::de::DeserializeOwned;
use study::{Ask, Kind};

use crate::cli::{Bench, ClassName, Experiment, Judged, RealTime, Scenario};
use crate::commands::bench_plan::{dry, header};
use crate::commands::common::{cpus, must, settings};
use crate::commands::judge::Asked;
use crate::commands::studied::Wanted;
use crate::commands::{bench_hold, bench_pilot, bench_program, bench_until, studied};
use crate::exit::{CommandError, Ended};
use crate::progress::Teller;
use crate::{commands, out};

/// An experiment file with the usual keys explained.
pub const TEMPLATE: &str = include_str!("template.toml");

/// Measures, writes the record, prints its table.
pub fn run(options: &Bench) -> Result<Ended, CommandError> {
    match &options.scenario {
        Some(Scenario::Experiment(name, options)) => measure(name, options),
        Some(Scenario::Series(name, options)) => commands::bench_series::run(name, options),
        Some(Scenario::Supply(options)) => commands::supply::bench(options),
        Some(Scenario::Isolation(options)) => commands::isolation::bench(options),
        Some(Scenario::Itself(options)) => commands::bench_self::run(options),
        None if options.list => Ok(list()),
        None if options.list_loads => Ok(list_loads()),
        None if options.template => {
            out::print(TEMPLATE);
            Ok(Ended::Fine)
        }
        None => match (&options.resume, &options.file) {
            (Some(dir), _) => resume(dir, &options.options),
            (None, file) => measure(file.as_deref().unwrap_or_default(), &options.options),
        },
    }
}

/// Measures an experiment: a scenario or a file.
fn measure(what: &str, options: &Experiment) -> Result<Ended, CommandError> {
    let Judged { judge, measured } = &options.run;
    let mut experiment = scenario::find(what)?;
    if options.trials.engine.is_empty() && scenario::way(what).is_some() {
        experiment.without_machines();
    }
    (options.trials.set.iter()).try_for_each(|assignment| experiment.assign(assignment))?;
    if let (Some(tasks), Some(policy)) = (&mut experiment.tasks, options.set.policy) {
        // Before the set is read, because the tasks that can be run depend on it.
        tasks.policy = policy.into();
    }
    let file = scenario::tasks_file(what, &experiment);
    if let Some(file) = options.set.tasks.clone().or(file) {
        let (name, set) = commands::analyze::task_set(&file)?;
        scenario::set_tasks(&mut experiment, &name, &set)?;
    }
    let baseline = experiment.baseline.clone();
    let mut changes = overrides(options)?;
    bench_program::find(what, options, &mut experiment, &mut changes)?;
    changes.apply(&mut experiment)?;
    if experiment.baseline != baseline && experiment.scale.is_none() {
        let by = match options.reserved.reserve {
            Some(_) if options.trials.engine.is_empty() => "--reserve",
            _ => "--engine",
        };
        out::note(&format!(
            "note    {by} leaves out {baseline}: trials are compared with {}",
            experiment.baseline
        ));
    }
    let place = if options.trials.cpus.is_some() {
        "--cpus"
    } else {
        what
    };
    let conditions = bench_until::plan(what, options, &mut experiment)?;
    let mut plan = bench_until::quick(options, Plan::new(experiment, place)?, place)?;
    if let Some(time) = options.until.at_most {
        bench_until::at_most(time, &mut plan)?;
    }
    let asked = Asked::of(judge)?.and_until(&conditions);
    let kind = match plan.experiment.scale {
        Some(_) => Kind::Scale,
        None => Kind::Jobs,
    };
    asked.before(kind)?;
    asked.fits(kind, &plan.experiment, judge.allow_unlike)?;
    let header = header(&plan);
    if measured.dry_run {
        out::print(&header);
        if let Some(line) = bench_pilot::line(&plan, what, measured)? {
            out::print(&line);
        }
        out::print(&format!("\n{}", dry(&plan)));
        let refused = (options.real_time.require_rt && !plan.real_time) || plan.trials.is_empty();
        return Ok(if refused { Ended::Unmet } else { Ended::Fine });
    }
    out::say(measured.json, &header);
    before(&plan, options)?;
    if let Some(line) = bench_pilot::line(&plan, what, measured)? {
        out::say(measured.json, &line);
    }
    let _held = bench_hold::of_plan(&plan, what, measured)?;
    let teller = Teller::new(plan.experiment.rounds).until(conditions);
    studied::measured(
        teller,
        &asked,
        &Wanted::new(&options.run),
        |settings, teller| bench::run(&plan, settings, teller),
    )
}

/// Resumes a run of any kind that ended early.
fn resume(dir: &Path, options: &Experiment) -> Result<Ended, CommandError> {
    let run = Run::open(dir)?;
    let kind = Kind::of(&run)?;
    must(kind, Ask::Resume, dir.display().to_string())?;
    // The remains of a killed run may hold the very budget that the plan needs.
    let swept = bench::sweep_stale(bench::Unsaved::Keep);
    for line in swept.iter().flat_map(|swept| &swept.sentences) {
        out::note(&format!("note    {line}"));
    }
    let wanted = Wanted {
        resume: Some(&run),
        ..Wanted::new(&options.run)
    };
    match run.has_no_experiment() {
        true => resume_study(&run, &wanted, &options.real_time),
        false => resume_experiment(&run, &wanted, options),
    }
}

/// Resumes a run that was planned from options alone.
fn resume_study(
    run: &Run,
    wanted: &Wanted<'_>,
    real_time: &RealTime,
) -> Result<Ended, CommandError> {
    let place = run.dir().display().to_string();
    if real_time.require_rt {
        let what = "only runs of an experiment are measured with or without a real-time class";
        return Err(InputError::new("--require-rt", what, "remove the option").into());
    }
    let Some(plan) = run.read_if_there::<PlanRecord>()? else {
        let version = run.manifest()?.timecell_version;
        let what = format!(
            "the run has no {}, since timecell {version}, which made it, kept none",
            PlanRecord::FILE
        );
        return Err(InputError::new(place, what, "run the scenario again").into());
    };
    let unknown = || {
        let what = format!("this timecell has no scenario `{}`", plan.scenario);
        InputError::new(&place, what, "use the timecell that made the run")
    };
    match scenario::way(&plan.scenario).ok_or_else(unknown)? {
        Way::Series(of) => commands::bench_series::measure(of, &options_in(run, &plan)?, wanted),
        Way::Supply => commands::supply::measure(&options_in(run, &plan)?, wanted),
        Way::Isolation => commands::isolation::measure(&options_in(run, &plan)?, wanted),
        Way::Experiment(_) | Way::Itself => Err(unknown().into()),
    }
}

/// The options that a run was planned from.
fn options_in<T: DeserializeOwned>(run: &Run, plan: &PlanRecord) -> Result<T, InputError> {
    T::deserialize(&plan.options).map_err(|error| {
        let place = run.dir().join(PlanRecord::FILE).display().to_string();
        let what = format!("its options are not those of `{}`: {error}", plan.scenario);
        InputError::new(place, what, "use the timecell that made the run")
    })
}

fn resume_experiment(
    run: &Run,
    wanted: &Wanted<'_>,
    options: &Experiment,
) -> Result<Ended, CommandError> {
    let measured = wanted.measured;
    let dir = run.dir();
    let kind = Kind::of(run)?;
    let place = dir.join("experiment.toml").display().to_string();
    let mut experiment = run.experiment()?;
    let conditions = bench_until::plan(&place, options, &mut experiment)?;
    let plan = Plan::new(experiment, &place)?;
    bench::check_experiment(run, &plan)?;
    let asked = wanted.asked(kind)?.and_until(&conditions);
    asked.fits(kind, &plan.experiment, wanted.allow_unlike())?;
    if measured.dry_run {
        bench::check_machine(run, &settings(&measured.out, wanted.resume))?;
        out::print(&format!("{}\n{}", header(&plan), dry(&plan)));
        return Ok(Ended::Fine);
    }
    out::say(measured.json, &studied::resumes(run));
    before(&plan, options)?;
    let _held = bench_hold::of_plan(&plan, &plan.experiment.name, measured)?;
    let teller = Teller::new(plan.experiment.rounds).until(conditions);
    studied::measured(teller, &asked, wanted, |settings, teller| {
        bench::run(&plan, settings, teller)
    })
}

/// Refuses unmet requirements, or prints them as a note.
fn before(plan: &Plan, options: &Experiment) -> Result<(), CommandError> {
    if options.real_time.require_rt && !plan.real_time {
        return Err(CommandError::Bench(BenchError::Unmet(not_real_time(plan))));
    }
    // Why an engine is not measured is printed once, below the table.
    let of_engine = |reason: &str| plan.not_measured.iter().any(|n| n.reason == reason);
    for unmet in plan.unmet().filter(|unmet| !of_engine(&unmet.reason)) {
        let fix = unmet.fix.as_deref().unwrap_or("no fix is known");
        out::note(&format!("unmet   {}: {} ({fix})", unmet.what, unmet.reason));
    }
    Ok(())
}

fn list() -> Ended {
    for (name, way) in scenario::all() {
        out::print(&format!("{name:<14}{}", way.question()));
    }
    Ended::Fine
}

fn list_loads() -> Ended {
    let line = |load: &str, built_in: &str, program: &str, does: &str| {
        out::print(&format!("{load:<10}  {built_in:<8}  {program:<44}  {does}"));
    };
    line("load", "built in", "program", "what it does");
    line("idle", "-", "-", "nothing runs beside the cells");
    for offer in bench::load::offers() {
        let program = match (&offer.program, &offer.version) {
            (_, Some(version)) => version.clone(),
            (Some((name, package)), None) => {
                format!(
                    "{name} is not installed ({})",
                    host::install::install(package)
                )
            }
            (None, None) => "-".to_owned(),
        };
        let built_in = if offer.built_in { "yes" } else { "no" };
        line(offer.name, built_in, &program, offer.does);
    }
    Ended::Fine
}

/// The options as changes to an experiment.
fn overrides(options: &Experiment) -> Result<Overrides, InputError> {
    let Experiment {
        trials,
        pace,
        set,
        growth,
        reserved,
        ..
    } = options;
    Ok(Overrides {
        // Determined when the program is tried.
        catch_up: None,
        whole_rounds: false,
        quick: trials.quick,
        program: None,
        duration: trials.duration,
        jobs: pace.jobs,
        period: pace.period,
        deadline: pace.deadline,
        cpus: cpus(trials.cpus.as_deref())?,
        priority: trials.priority,
        fifo: trials.class.map(|class| matches!(class, ClassName::Fifo)),
        rounds: trials.rounds,
        decide: options.decided.decide,
        until: options.until.until.clone(),
        loads: options.loads.load.iter().copied().flatten().collect(),
        engines: trials.engine.clone(),
        histogram: options.kept.histogram,
        interval: options.kept.interval,
        rootless_user: trials.rootless_user.clone(),
        counts: growth.counts.clone(),
        reserve: reserved.reserve,
        task_policy: set.policy.map(Into::into),
        stage: options.pace.stage.map(Into::into),
    })
}

fn not_real_time(plan: &Plan) -> String {
    let why = plan
        .unmet()
        .find(|requirement| requirement.what.starts_with("SCHED_"))
        .map(|r| {
            format!(
                "{}: {} ({})",
                r.what,
                r.reason,
                r.fix.as_deref().unwrap_or_default()
            )
        });
    format!(
        "--require-rt: no real-time class is available: {}",
        why.unwrap_or_else(|| "the experiment asks for class \"other\"".to_owned())
    )
}

#[cfg(test)]
mod tests {
    use model::Experiment;

    use super::*;

    #[test]
    fn the_template_is_an_experiment_also_with_what_it_comments_out() {
        let parse = |text: &str| Experiment::parse("template.toml", text);
        let experiment = parse(TEMPLATE).unwrap();
        assert_eq!(experiment.trials.len(), 4);
        // Every line that is a key behind a comment sign is one; `interval` goes with histograms alone, and histograms without turns.
        let is_key = |line: &str| {
            let word = line.split([' ', '=']).next().unwrap_or_default();
            line.starts_with("[matrix]")
                || (line.contains(" = ")
                    && word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        };
        let (trials, scale) = TEMPLATE.split_once("# [scale]\n").unwrap();
        let all: Vec<String> = trials
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if is_key(key) && !is_any(key, &ALONE) => {
                    key.replace("\"samples\"", "\"histogram\"")
                }
                _ => line.to_owned(),
            })
            .filter(|line| !line.starts_with("load = ") && line != "[turns]")
            .collect();
        let whole = parse(&all.join("\n")).unwrap();
        assert_eq!(whole.trials.len(), 4 + 2 * 3 * 2);
        assert_eq!(whole.trials[3].loads.len(), 2);
        // Growing numbers stand in place of all trials.
        let (head, _) = trials.split_once("[[trial]]").unwrap();
        let keys = scale.lines().map_while(|line| line.strip_prefix("# "));
        let keys: Vec<&str> = keys.collect();
        let head = head.replace("[turns]\n", "");
        let growing = parse(&format!("{head}[scale]\n{}", keys.join("\n"))).unwrap();
        assert_eq!(growing.trials.len(), 3);
        // Those that do not go together with all others, each by itself, with the keys that it needs.
        for key in ALONE {
            let needed: &[&str] = match key {
                "reports" | "endless" => &["program"],
                _ => &[],
            };
            let lines = trials
                .lines()
                .filter_map(|line| match line.strip_prefix("# ") {
                    Some(bare) if is_any(bare, &[key]) => Some(bare.replace("= false", "= true")),
                    Some(bare) if is_any(bare, needed) => Some(bare.to_owned()),
                    // A workload without jobs takes no turns.
                    _ if key == "endless" && (line == "[turns]" || is_any(line, &["jobs"])) => None,
                    _ => Some(line.to_owned()),
                });
            let mut text: Vec<String> = lines.collect();
            if key == "program" || needed == ["program"] {
                text.retain(|line| !is_any(line, &["steps"]));
                let kind = text.iter_mut().find(|line| is_any(line, &["kind"]));
                *kind.unwrap() = "kind = \"program\"".to_owned();
            }
            let alone = parse(&text.join("\n")).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert_ne!(alone, experiment, "{key}");
        }
    }

    /// Keys of the template that exclude others.
    const ALONE: [&str; 8] = [
        "until", "program", "reports", "endless", "length", "settle", "catch_up", "decide",
    ];

    fn is_any(line: &str, keys: &[&str]) -> bool {
        let word = line.split_once(" = ").map_or("", |(word, _)| word);
        keys.contains(&word)
    }
}
