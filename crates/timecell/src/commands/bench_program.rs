//! `bench --program`: finds out how the user's program behaves, and plans for it.

use std::path::{Path, PathBuf};

use bench::{Tried, TriedTask};
use model::{
    Duration, Experiment, InputError, Overrides, ProgramJobs, ProgramLoad, ReportedTask, TrialPlan,
};

use crate::cli;
use crate::exit::CommandError;
use crate::out;

/// How long a cell works in a round by default, ns.
const ROUND_NS: i64 = 1_000_000_000;
/// The same for a program that cannot take turns and so has whole rounds: shorter ones, but more of them.
const REPORTED_ROUND_NS: i64 = 500_000_000;
const REPORTED_ROUNDS: i64 = 20;
/// Most rounds of a program that takes turns in a scenario: its jobs are further apart than timecell's own, and each round needs
/// enough of them to bound its p99.
const ROUNDS: u32 = 10;
/// Fewest jobs of a cell in a round.
const FEWEST: i64 = 20;

/// The directory of an experiment's file, from the root on: a run keeps such paths. Of a scenario's name, the working directory.
fn directory_of(what: &str) -> PathBuf {
    let file = std::path::absolute(what).unwrap_or_default();
    file.parent().map(Path::to_owned).unwrap_or_default()
}

/// Finds the program that the options or the file name. If the options name it, a period and number of jobs that they leave open
/// follow from its behaviour.
pub fn find(
    what: &str,
    options: &cli::Experiment,
    experiment: &mut Experiment,
    changes: &mut Overrides,
) -> Result<(), CommandError> {
    experiment.each_program(|program| {
        bench::resolve_program(what, program).map_err(|why| InputError::new(what, why, ""))
    })?;
    experiment.beside(&directory_of(what));
    one_of_a_name(what, experiment)?;
    let Some(path) = &options.program.program else {
        return find_tasks(options, experiment);
    };
    let shown = path.display().to_string();
    let told = |why: String| InputError::new(shown.clone(), why, "");
    let words = [shown.clone()]
        .into_iter()
        .chain(options.program.program_args.iter().cloned());
    let not_possible = |(what, fix)| InputError::new("--program", what, fix);
    let mut program =
        ProgramLoad::new(words.collect(), ProgramJobs::Executions).map_err(not_possible)?;
    experiment.clone().set_program(program.clone())?;
    bench::resolve_program("", &mut program)
        .map_err(|why| InputError::new("--program", why, ""))?;
    engine::libraries::needed(Path::new(program.path()))
        .map_err(|error| told(error.to_string()))?;
    let tried = tried(&program, options.program.task.as_deref())?;
    let (seen, period_ns) = match tried {
        Tried::Ends { .. } | Tried::Endless { .. } if options.program.task.is_some() => {
            return Err(InputError::new(
                "--task",
                format!("{} reports no jobs, so it has no tasks", program.line()),
                "remove --task, or let the program report its jobs through timecell's client",
            )
            .into());
        }
        Tried::Ends { after_ns } => {
            let period_ns = round_up(2 * after_ns);
            let seen = format!(
                "ends by itself after {} and reports no jobs: each execution is a job",
                report::time(after_ns as f64)
            );
            (seen, Some(period_ns))
        }
        Tried::Reports { tasks, catches_up } => {
            program.jobs = ProgramJobs::Reported;
            let period_ns = tasks.first().and_then(|task| task.period_ns);
            program.tasks = with_periods(&tasks, changes.period);
            let seen = told_tasks(&tasks);
            let period = changes.period.or(period_ns.map(Duration::from_ns));
            changes.catch_up = in_turns(experiment, period, catches_up);
            let seen = match (experiment.turns, changes.catch_up) {
                (Some(_), None) => {
                    changes.whole_rounds = true;
                    format!(
                        "{seen} and makes up for releases that passed while stopped: whole rounds, no turns"
                    )
                }
                _ => seen,
            };
            (seen, period_ns.map(three_digits))
        }
        Tried::Endless { within } => {
            program.jobs = ProgramJobs::Endless;
            let seen = format!(
                "neither ends within {within} s nor reports jobs: each round starts it, lets it run and ends it"
            );
            (seen, Some(REPORTED_ROUND_NS))
        }
    };
    let whole_rounds = changes.whole_rounds || program.jobs == ProgramJobs::Endless;
    if changes.period.is_none() {
        let period_ns = period_ns.ok_or_else(|| {
            InputError::new(
                program.line(),
                "reports its jobs too rarely to tell their period",
                "give the period with --period",
            )
        })?;
        let period = Duration::from_ns(period_ns);
        of_a_trial(experiment, program.jobs, period).map_err(not_possible)?;
        changes.period = Some(period);
    }
    let period_ns = changes.period.map_or(ROUND_NS, Duration::ns).max(1);
    if experiment.turns.is_some() && bench::scenario::names().contains(&what) {
        experiment.rounds = experiment.rounds.min(ROUNDS);
    }
    let is_asked = changes.jobs.is_some() || changes.duration.is_some() || changes.quick;
    if !is_asked && experiment.scale.is_none() {
        let takes_turns = experiment.turns.is_some() && !whole_rounds;
        let round_ns = match program.reports() && !takes_turns {
            true => REPORTED_ROUND_NS,
            false => ROUND_NS,
        };
        if program.jobs != ProgramJobs::Endless {
            changes.jobs = Some((round_ns / period_ns).max(FEWEST));
        }
        if whole_rounds && experiment.turns.is_some() && changes.rounds.is_none() {
            changes.rounds = Some(REPORTED_ROUNDS);
        }
    }
    let line = format!("program {} {seen}\n", program.line());
    out::say(options.run.measured.json, &line);
    changes.program = Some(program);
    Ok(())
}

/// Runs the program once, to see its behaviour.
fn tried(program: &ProgramLoad, task: Option<&str>) -> Result<Tried, InputError> {
    bench::try_program(&program.words, task).map_err(|why| {
        InputError::new(
            program.line(),
            format!("run once as a plain process, it {why}"),
            "",
        )
    })
}

/// Finds the tasks of the programs of a file that report their jobs and whose tasks it does not name.
fn find_tasks(options: &cli::Experiment, experiment: &mut Experiment) -> Result<(), CommandError> {
    let mut seen: Vec<ProgramLoad> = Vec::new();
    experiment.each_program(|program| {
        let same = |other: &&ProgramLoad| other.words == program.words;
        if !program.reports() || !program.tasks.is_empty() {
            return Ok(());
        }
        if let Some(same) = seen.iter().find(same) {
            program.tasks.clone_from(&same.tasks);
        } else if let Tried::Reports { tasks, .. } = tried(program, None)? {
            program.tasks = with_periods(&tasks, None);
            seen.push(program.clone());
            let line = format!("program {} {}\n", program.line(), told_tasks(&tasks));
            out::say(options.run.measured.json, &line);
        }
        Ok::<(), InputError>(())
    })?;
    Ok(())
}

/// The tasks whose periods are known; that of the first may be given.
fn with_periods(tasks: &[TriedTask], first: Option<Duration>) -> Vec<ReportedTask> {
    let seen = |task: &TriedTask| task.period_ns.map(|ns| Duration::from_ns(three_digits(ns)));
    let mut periods: Vec<Option<Duration>> = tasks.iter().map(seen).collect();
    if let Some(own) = periods.first_mut() {
        *own = first.or(*own);
    }
    // Without a period of the first, another would take its place.
    if periods.first().is_none_or(Option::is_none) {
        return Vec::new();
    }
    (tasks.iter().zip(periods))
        .filter_map(|(task, period)| {
            Some(ReportedTask {
                name: task.name.clone(),
                period: period?,
            })
        })
        .collect()
}

/// Which of them is compared, as in `reports its jobs: tasks control (compared), log`.
fn told_tasks(tasks: &[TriedTask]) -> String {
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    match &names[..] {
        [] => "reports its jobs".to_owned(),
        [only] => format!("reports its jobs: task {only}"),
        [first, others @ ..] => format!(
            "reports its jobs: tasks {first} (compared), {}",
            others.join(", ")
        ),
    }
}

/// The periods that the program needs in each turn to catch up with the jobs due in the turns of the others; `None` if it takes no
/// turns, or would do little else.
fn in_turns(
    experiment: &Experiment,
    period: Option<Duration>,
    catches_up: Option<f64>,
) -> Option<u32> {
    let (turns, period, share) = (experiment.turns?, period?, catches_up?);
    let together = |load: &TrialPlan| {
        let same = experiment
            .trials
            .iter()
            .filter(|trial| trial.loads == load.loads);
        same.count()
    };
    let arms = experiment.trials.iter().map(together).max()?;
    // Each turn gets longer by this many periods, and so does the time for which the program is stopped.
    let others = share * arms.saturating_sub(1) as f64;
    let jobs = f64::from(turns.jobs(period));
    let needed = (f64::from(turns.catch_up) + others * (jobs + 2.0)) / (1.0 - others);
    (others < 1.0 && needed <= 2.0 * jobs).then_some(needed.ceil() as u32)
}

/// Refuses a period that follows from the program's behaviour if every trial has a different one of its own; the error is the fault, and the fix.
fn of_a_trial(
    experiment: &Experiment,
    jobs: ProgramJobs,
    period: Duration,
) -> Result<(), (String, String)> {
    let own = |trial: &TrialPlan| trial.period.is_some_and(|own| own != period);
    if !experiment.trials.iter().all(own) {
        return Ok(());
    }
    let mut periods: Vec<Duration> = (experiment.trials.iter())
        .filter_map(|trial| trial.period)
        .collect();
    periods.sort_by_key(|period| period.ns());
    periods.dedup();
    let periods: Vec<String> = periods.iter().map(Duration::to_string).collect();
    let of = format!(
        "the trials of `{}` have their own periods, {}",
        experiment.name,
        periods.join(", ")
    );
    let choose = "choose one of these with --period".to_owned();
    Err(match jobs {
        ProgramJobs::Executions => (
            format!(
                "{of}, and the program needs {period}, at least twice the time of an execution"
            ),
            choose,
        ),
        ProgramJobs::Reported => (
            format!("{of}, and the program releases a job every {period}"),
            choose,
        ),
        ProgramJobs::Endless => (
            format!("{of}, and the program neither ends nor reports jobs, so it has none"),
            "use scenario overhead, concurrency or latency, or an experiment file".to_owned(),
        ),
    })
}

/// Refuses programs that would be the same file in a container.
fn one_of_a_name(what: &str, experiment: &Experiment) -> Result<(), InputError> {
    let programs = experiment.programs();
    let paths: Vec<&Path> = (programs.iter())
        .map(|program| Path::new(program.path()))
        .collect();
    let twice = paths.iter().enumerate().find(|(at, path)| {
        let same = |other: &&Path| other.file_name() == path.file_name() && other != *path;
        paths[..*at].iter().any(same)
    });
    match twice {
        None => Ok(()),
        Some((_, path)) => Err(InputError::new(
            what,
            format!(
                "another program has the same file name as {}, and in a container both would be in /program",
                path.display()
            ),
            "rename one of them",
        )),
    }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on ms.
fn round_up(ns: i64) -> i64 {
    let mut decade = 1_000_000_i64;
    loop {
        for step in [1, 2, 5] {
            if step * decade >= ns {
                return step * decade;
            }
        }
        decade = decade.saturating_mul(10);
    }
}

/// Rounds to three digits: a measured period is not exact.
fn three_digits(ns: i64) -> i64 {
    let mut unit = 1;
    while ns / unit >= 1_000 {
        unit *= 10;
    }
    (ns + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_an_experiment_begins_at_the_root() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(directory_of("mine.toml"), here);
        assert_eq!(directory_of("overhead"), here);
        assert_eq!(directory_of("a/mine.toml"), here.join("a"));
        assert_eq!(directory_of("/etc/mine.toml"), Path::new("/etc"));
    }

    #[test]
    fn a_turn_is_longer_by_what_must_be_made_up_for() {
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[turns]\n[matrix]\ncells = [[\"bare\"], [\"crun\"], [\"runc\"]]\n\
                    loads = [\"idle\", \"cpu\"]\n";
        let experiment = Experiment::parse("x", text).unwrap();
        let period = Some(Duration::from_ns(1_000_000));
        let of = |share| in_turns(&experiment, period, share);
        assert_eq!(of(None), None);
        assert_eq!(of(Some(0.0)), Some(2));
        // 9 % of the time of each of two others, with 12 jobs: (2 + 0.18 * 14) / 0.82.
        assert_eq!(of(Some(0.09)), Some(6));
        assert_eq!(of(Some(0.4)), None);
        assert_eq!(of(Some(0.6)), None);
    }

    #[test]
    fn a_period_that_no_trial_has_is_blamed_on_nobody() {
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[matrix]\ncells = [[\"bare\"]]\n\
                    periods = [\"10ms\", \"1ms\"]\nduration = \"2s\"\n";
        let experiment = Experiment::parse("x", text).unwrap();
        let of = |jobs, ms: i64| of_a_trial(&experiment, jobs, Duration::from_ns(ms * 1_000_000));
        assert_eq!(of(ProgramJobs::Executions, 10), Ok(()));
        let (what, fix) = of(ProgramJobs::Executions, 5).unwrap_err();
        let told = "the trials of `x` have their own periods, 1ms, 10ms, and the program needs 5ms, at least twice the time of an execution";
        assert_eq!(what, told);
        assert_eq!(fix, "choose one of these with --period");
        let (what, fix) = of(ProgramJobs::Endless, 500).unwrap_err();
        assert!(what.contains("neither ends nor reports jobs"), "{what}");
        assert!(!fix.contains("--period"), "{fix}");
        // Trials without periods of their own take any.
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n";
        let experiment = Experiment::parse("x", text).unwrap();
        assert_eq!(
            of_a_trial(&experiment, ProgramJobs::Executions, Duration::from_ns(5)),
            Ok(())
        );
    }

    #[test]
    fn periods_are_round_numbers() {
        assert_eq!(round_up(1), 1_000_000);
        assert_eq!(round_up(2_000_001), 5_000_000);
        assert_eq!(round_up(70_000_000), 100_000_000);
        assert_eq!(three_digits(1_000_312), 1_000_000);
        assert_eq!(three_digits(12_345), 12_300);
        assert_eq!(three_digits(999), 999);
    }
}
