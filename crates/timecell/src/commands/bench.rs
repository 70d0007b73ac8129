//! `timecell bench`.

use bench::scenario::{self, Way};
use bench::{BenchError, Plan, Settings};
use host::handover::{self, Owner};
use host::provenance::Provenance;
use model::{InputError, Overrides, TaskPolicy};
use record::run::Run;
use report::{Ask, Kind};

use crate::cli::{Bench, ClassName, SetPolicy};
use crate::commands::bench_plan::{dry, header};
use crate::commands::judge::Asked;
use crate::commands::{bench_hold, bench_pilot, bench_program, bench_until, studied};
use crate::exit::{CommandError, Ended};
use crate::progress::Teller;
use crate::{commands, out};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An experiment file with every key explained.
pub const TEMPLATE: &str = include_str!("template.toml");

/// Measures what is no experiment and no series, from its options on.
type Study = fn(&Bench) -> Result<Ended, CommandError>;

/// Runs an experiment, writes its record, prints its table.
pub fn run(options: &Bench) -> Result<Ended, CommandError> {
    if options.list {
        return Ok(list());
    }
    if options.template {
        out::print(TEMPLATE);
        return Ok(Ended::Fine);
    }
    if options.list_loads {
        return Ok(list_loads());
    }
    if let Some(dir) = &options.resume {
        return resume(dir, options);
    }
    let what = options.experiment.as_deref().unwrap_or_default();
    let study = match scenario::way(what) {
        Some(Way::Itself) => Some(commands::bench_self::run as Study),
        Some(Way::Supply) => Some(commands::supply::bench as Study),
        Some(Way::Isolation) => Some(commands::isolation::bench as Study),
        Some(Way::Experiment(_) | Way::Series(_)) | None => None,
    };
    if let Some(run) = study {
        let _held = match options.dry_run {
            true => None,
            false => Some(bench_hold::of_options(what, options)?),
        };
        return run(options);
    }
    commands::supply::refuse_elsewhere(what, options)?;
    if let Some(ended) = commands::bench_series::run(what, options) {
        return ended;
    }
    if let Some(part) = options.parts.first() {
        return Err(InputError::new(
            part,
            "only `bench self` and `bench isolation` have parts",
            "remove the word",
        )
        .into());
    }
    let mut experiment = scenario::find(what)?;
    let policy = options.policy.map(|policy| match policy {
        SetPolicy::Fifo => TaskPolicy::Fifo,
        SetPolicy::Deadline => TaskPolicy::Deadline,
    });
    if let (Some(tasks), Some(policy)) = (&mut experiment.tasks, policy) {
        // Before the set is read: what can be run depends on it.
        tasks.policy = policy;
    }
    let file = scenario::tasks_file(what, &experiment);
    if let Some(file) = options.tasks.clone().or(file) {
        let (name, set) = commands::analyze::task_set(&file)?;
        scenario::set_tasks(&mut experiment, &name, &set)?;
    }
    let baseline = experiment.baseline.clone();
    let mut changes = overrides(options)?;
    bench_program::find(what, options, &mut experiment, &mut changes)?;
    changes.apply(&mut experiment)?;
    if experiment.baseline != baseline && experiment.scale.is_none() {
        let by = match options.reserve {
            Some(_) if options.engine.is_empty() => "--reserve",
            _ => "--engine",
        };
        out::note(&format!(
            "note    {baseline} is left out by {by}: the comparison is with {}",
            experiment.baseline
        ));
    }
    let place = if options.cpus.is_some() {
        "--cpus"
    } else {
        what
    };
    let conditions = bench_until::plan(what, options, &mut experiment)?;
    let mut plan = bench_until::quick(options, Plan::new(experiment, place)?, place)?;
    if let Some(time) = options.at_most {
        bench_until::at_most(time, &mut plan)?;
    }
    let asked = Asked::of(&options.judge)?.and_until(&conditions);
    let kind = match plan.experiment.scale {
        Some(_) => Kind::Scale,
        None => Kind::Jobs,
    };
    asked.before(kind)?;
    asked.fits(kind, &plan.experiment, options.judge.allow_unlike)?;
    let header = header(&plan);
    if options.dry_run {
        out::print(&header);
        if let Some(line) = bench_pilot::line(&plan, what, options)? {
            out::print(&line);
        }
        out::print(&format!("\n{}", dry(&plan)));
        let refused = (options.require_rt && !plan.real_time) || plan.trials.is_empty();
        return Ok(if refused { Ended::Unmet } else { Ended::Fine });
    }
    if options.json {
        out::note(&header);
    } else {
        out::print(&header);
    }
    before(&plan, options)?;
    if let Some(line) = bench_pilot::line(&plan, what, options)? {
        match options.json {
            true => out::note(&line),
            false => out::print(&line),
        }
    }
    let _held = bench_hold::of_plan(&plan, what, options)?;
    let settings = settings(options);
    let mut teller = Teller::new(plan.experiment.rounds).until(conditions);
    let made_out = !options.out.exists();
    let finished = bench::run(&plan, &settings, &mut teller);
    teller.done();
    let made = made_out.then_some(options.out.as_path());
    studied::after(finished, &asked, options, made)
}

/// Goes on with a run that ended before its time.
fn resume(dir: &std::path::Path, options: &Bench) -> Result<Ended, CommandError> {
    let run = Run::open(dir)?;
    let kind = Kind::of(&run)?;
    studied::must(kind, Ask::Resume, dir.display().to_string())?;
    // What the run left behind when it was killed may hold the very budget that the plan asks for.
    let swept = bench::sweep_stale(bench::Unsaved::Keep);
    for line in swept.iter().flat_map(|swept| &swept.sentences) {
        out::note(&format!("note    {line}"));
    }
    let place = dir.join("experiment.toml").display().to_string();
    let mut experiment = run.experiment()?;
    let conditions = bench_until::plan(&place, options, &mut experiment)?;
    let plan = Plan::new(experiment, &place)?;
    bench::check_resume(&run, &plan)?;
    let asked = Asked::of_or_kept(&options.judge, &run)?.and_until(&conditions);
    // What was kept with the run keeps nobody from going on with it.
    if !options.judge.fail_if.is_empty() {
        asked.before(kind)?;
    }
    asked.fits(kind, &plan.experiment, options.judge.allow_unlike)?;
    if options.dry_run {
        out::print(&format!("{}\n{}", header(&plan), dry(&plan)));
        return Ok(Ended::Fine);
    }
    let machine = Provenance::collect(VERSION);
    let text = format!(
        "host    {}\nresume  {}\n",
        machine.one_line(),
        dir.display()
    );
    if options.json {
        out::note(&text);
    } else {
        out::print(&text);
    }
    before(&plan, options)?;
    let _held = bench_hold::of_plan(&plan, &plan.experiment.name, options)?;
    let mut teller = Teller::new(plan.experiment.rounds).until(conditions);
    let finished = bench::resume(run, &plan, &settings(options), &mut teller);
    teller.done();
    studied::after(finished, &asked, options, None)
}

fn settings(options: &Bench) -> Settings {
    Settings {
        out: options.out.clone(),
        version: VERSION.to_owned(),
    }
}

/// What is refused or said before anything is measured.
fn before(plan: &Plan, options: &Bench) -> Result<(), CommandError> {
    if options.require_rt && !plan.real_time {
        return Err(CommandError::Bench(BenchError::Unmet(not_real_time(plan))));
    }
    // What keeps an engine from being measured is said once, below the table.
    let of_engine = |reason: &str| plan.not_measured.iter().any(|n| n.reason == reason);
    for unmet in plan.unmet().filter(|unmet| !of_engine(&unmet.reason)) {
        let mend = unmet.mend.as_deref().unwrap_or("no fix is known");
        out::note(&format!(
            "unmet   {}: {} ({mend})",
            unmet.what, unmet.reason
        ));
    }
    Ok(())
}

/// What was measured under sudo belongs to whoever called it, who will want to study and delete it: the run, and
/// the directory around it if that is new.
pub fn give_to_sudo_user(run: &std::path::Path, around: Option<&std::path::Path>) {
    let id = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|id| id.parse::<u32>().ok())
    };
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if let (true, Some(uid), Some(gid)) = (root, id("SUDO_UID"), id("SUDO_GID")) {
        let owner = Owner { uid, gid };
        // Below a directory of the user's all was written as that user.
        if host::writer::of(run).is_none() {
            let _ = handover::give_tree(run, owner);
            if let Some(around) = around {
                let _ = handover::give_one(around, owner);
            }
        }
    }
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
                format!("{name} is not installed (apt install {package})")
            }
            (None, None) => "-".to_owned(),
        };
        let built_in = if offer.built_in { "yes" } else { "no" };
        line(offer.name, built_in, &program, offer.does);
    }
    Ended::Fine
}

/// The cpus that `--cpus` names; empty without the option.
pub fn cpus(options: &Bench) -> Result<Vec<u32>, InputError> {
    let cpus = match &options.cpus {
        None => Vec::new(),
        Some(text) => host::cpus::parse_list(text)
            .map_err(|error| InputError::new("--cpus", error.to_string(), ""))?,
    };
    if options.cpus.is_some() && cpus.is_empty() {
        return Err(InputError::new(
            "--cpus",
            "the list is empty",
            "write a list such as 1 or 2-3",
        ));
    }
    Ok(cpus)
}

/// The options as changes to an experiment.
pub fn overrides(options: &Bench) -> Result<Overrides, InputError> {
    Ok(Overrides {
        // Seen when the program is tried.
        catch_up: None,
        whole_rounds: false,
        quick: options.quick,
        program: None,
        duration: options.duration,
        jobs: options.jobs,
        period: options.period,
        deadline: options.deadline,
        cpus: cpus(options)?,
        priority: options.priority,
        fifo: options.class.map(|class| matches!(class, ClassName::Fifo)),
        rounds: options.rounds,
        decide: options.decide,
        until: options.until.clone(),
        loads: options.load.iter().copied().flatten().collect(),
        engines: options.engine.clone(),
        histogram: options.histogram,
        interval: options.interval,
        rootless_user: options.rootless_user.clone(),
        counts: options.counts.clone(),
        parallel: options.parallel,
        failure_limit: options.failure_limit,
        reserve: options.reserve,
        memory_reserve: options.memory_reserve,
        starvation_limit: options.starvation_limit,
        task_policy: options.policy.map(|policy| match policy {
            SetPolicy::Fifo => TaskPolicy::Fifo,
            SetPolicy::Deadline => TaskPolicy::Deadline,
        }),
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
                r.mend.as_deref().unwrap_or_default()
            )
        });
    format!(
        "--require-rt: no real-time class is to be had: {}",
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
        // Those that do not go together with all others, each by itself, with what it needs.
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
                    // What has no jobs takes no turns.
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
