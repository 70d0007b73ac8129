//! `timecell bench`: an experiment file, or a scenario as a command of its own, one for each in the list of them all, with the options that
//! say something to it.

use std::ffi::OsString;
use std::path::PathBuf;

use bench::scenario::{self, Way};
use bench::{OwnOption, SeriesScenario};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Id, Subcommand, ValueHint};
use model::InputError;

use super::bench_options::{
    Cpus, Experiment, Growth, Heartbeat, Isolation, Itself, Judged, Own, RealTime, Reserved,
    Series, Supply, TaskSet, Trials,
};

/// Options of `bench`: those of an experiment file, and the scenarios with theirs.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_value_name = "SCENARIO",
    subcommand_help_heading = "Scenarios, each with options of its own (timecell bench SCENARIO --help)",
    override_usage = "timecell bench <SCENARIO> [OPTIONS]\n       timecell bench <FILE> [OPTIONS]\n       timecell bench --resume <RUN>",
    after_help = "Real-time classes need privilege: run with sudo. Without it the same command runs with SCHED_OTHER and every \
    result is labelled \"not real-time\".\n\n\
    Examples:\n  \
    sudo timecell bench overhead --quick                        every engine against bare metal, under 30 s\n  \
    timecell bench --template > mine.toml                       an experiment of your own, to be changed\n  \
    sudo timecell bench latency --until 'latency.p99.99 < 100us' as long as it takes to know\n  \
    sudo timecell bench mine.toml --load cpu,disk               the same, disturbed\n  \
    sudo timecell bench overhead --program ./app -- --rate 100  your own program in every engine\n  \
    sudo timecell bench latency --histogram --duration 24h      a day, in constant memory\n  \
    sudo timecell bench mine.toml --fail-if 'latency.p99 > 100us' --fail-if 'missed > 0'\n  \
    sudo timecell bench mine.toml --baseline runs/... --fail-if 'execution.median > 1.1x'\n\n\
    Exit codes with --fail-if: 3 a threshold is missed; else 1 a trial failed or a threshold is undecided; else 4 a \
    threshold is not applicable (no real-time class, too few jobs, not measured); else 0. With --decide: 1 if a ratio is \
    neither known well enough nor shown to differ, or there is none."
)]
pub struct Bench {
    /// Path of an experiment file, in place of a scenario.
    #[arg(value_name = "SCENARIO|FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["list", "list_loads", "resume", "template"])]
    pub file: Option<String>,
    /// Go on with this run (`latest`: the newest below runs), which ended before its time: a power cut, an interrupt, a full disk.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = of_a_plan())]
    pub resume: Option<PathBuf>,
    /// Print an experiment file with every key explained, to be changed at will.
    #[arg(long, exclusive = true)]
    pub template: bool,
    /// List the scenarios.
    #[arg(long)]
    pub list: bool,
    /// List the loads: what each does, its program and the Debian package that has it.
    #[arg(long)]
    pub list_loads: bool,
    /// What an experiment file may be asked.
    #[command(flatten, next_help_heading = "Options of an experiment file")]
    pub options: Experiment,
    /// What is measured by a name.
    #[command(subcommand)]
    pub scenario: Option<Scenario>,
}

impl Bench {
    /// The runs that it names, and the directory in which its own will be.
    pub fn runs(&mut self) -> (Vec<&mut PathBuf>, PathBuf) {
        let run = match &mut self.scenario {
            None => Some(&mut self.options.run),
            Some(Scenario::Experiment(_, options)) => Some(&mut options.run),
            Some(Scenario::Series(_, options)) => Some(&mut options.run),
            Some(Scenario::Supply(options)) => Some(&mut options.enforced.run),
            Some(Scenario::Isolation(options)) => Some(&mut options.enforced.run),
            Some(Scenario::Itself(_)) => None,
        };
        let out = run.as_ref().map(|run| run.measured.out.clone());
        let baseline = run.and_then(|run| run.judge.baseline.as_mut());
        let runs = self.resume.iter_mut().chain(baseline);
        (runs.collect(), out.unwrap_or_default())
    }
}

/// What would change the plan of a run.
fn of_a_plan() -> Vec<Id> {
    let groups = [
        Trials::augment_args,
        TaskSet::augment_args,
        Growth::augment_args,
        Reserved::augment_args,
    ];
    let command = (groups.into_iter()).fold(Command::new("plan"), |command, group| group(command));
    let own = command.get_arguments().map(Arg::get_id).cloned();
    ["file", "out"]
        .map(Id::from)
        .into_iter()
        .chain(own)
        .collect()
}

/// What is measured by a name, with its options.
#[derive(Debug)]
pub enum Scenario {
    /// An experiment that is shipped.
    Experiment(&'static str, Box<Experiment>),
    /// Single measurements, repeated.
    Series(&'static SeriesScenario, Box<Series>),
    /// What enforcers supply.
    Supply(Box<Supply>),
    /// Contests of two cells.
    Isolation(Box<Isolation>),
    /// timecell itself.
    Itself(Itself),
}

/// Whether an experiment that is shipped runs a task set, and whether it has growing numbers of cells.
fn groups(name: &str) -> (bool, bool) {
    // Every one is read by a test.
    scenario::find(name).map_or((false, false), |experiment| {
        (experiment.tasks.is_some(), experiment.scale.is_some())
    })
}

/// The command of a scenario.
fn command(name: &'static str, way: Way) -> Command {
    let command = Command::new(name);
    let command = match way {
        Way::Experiment(_) => {
            let command =
                RealTime::augment_args(Judged::augment_args(Trials::augment_args(command)));
            let (set, growth) = groups(name);
            let command = match set {
                true => TaskSet::augment_args(command),
                false => command,
            };
            let command = match growth {
                true => Growth::augment_args(command),
                false => command,
            };
            match set || growth {
                true => Reserved::augment_args(command),
                false => command,
            }
        }
        Way::Series(of) => match of.own {
            OwnOption::Nothing => Series::augment_args(command),
            OwnOption::Cpus => Cpus::augment_args(Series::augment_args(command)),
            OwnOption::Heartbeat => Heartbeat::augment_args(Series::augment_args(command)),
        },
        Way::Supply => Supply::augment_args(command),
        Way::Isolation => Isolation::augment_args(command),
        Way::Itself => Itself::augment_args(command),
    };
    // Behind the groups of options, which each say what they are.
    command.about(way.question()).long_about(None)
}

impl Subcommand for Scenario {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(scenario::all().map(|(name, way)| self::command(name, way)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Scenario::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        scenario::way(name).is_some()
    }
}

impl FromArgMatches for Scenario {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Scenario, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (given, of) = matches.subcommand().ok_or_else(missing)?;
        let mut all = scenario::all();
        let (name, way) = all.find(|(name, _)| *name == given).ok_or_else(missing)?;
        Ok(match way {
            Way::Experiment(_) => {
                let (set, growth) = groups(name);
                Scenario::Experiment(
                    name,
                    Box::new(Experiment {
                        trials: Trials::from_arg_matches(of)?,
                        set: where_it_is(set, of)?,
                        growth: where_it_is(growth, of)?,
                        reserved: where_it_is(set || growth, of)?,
                        real_time: RealTime::from_arg_matches(of)?,
                        run: Judged::from_arg_matches(of)?,
                    }),
                )
            }
            Way::Series(scenario) => {
                let cpus: Cpus = where_it_is(scenario.own == OwnOption::Cpus, of)?;
                let beat: Heartbeat = where_it_is(scenario.own == OwnOption::Heartbeat, of)?;
                let series = Series {
                    own: Own {
                        cpus: cpus.cpus,
                        heartbeat_timeout: beat.heartbeat_timeout,
                    },
                    ..Series::from_arg_matches(of)?
                };
                Scenario::Series(scenario, Box::new(series))
            }
            Way::Supply => Scenario::Supply(Box::new(Supply::from_arg_matches(of)?)),
            Way::Isolation => Scenario::Isolation(Box::new(Isolation::from_arg_matches(of)?)),
            Way::Itself => Scenario::Itself(Itself::from_arg_matches(of)?),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Scenario::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A group of options, of a scenario that has it.
fn where_it_is<T: FromArgMatches + Default>(is: bool, of: &ArgMatches) -> Result<T, clap::Error> {
    match is {
        true => T::from_arg_matches(of),
        false => Ok(T::default()),
    }
}

/// Whether a command has an option of this name, and whether that takes a value.
fn option(command: &Command, name: &str) -> Option<bool> {
    let mut all = command.get_arguments();
    let option = all.find(|arg| arg.get_long() == Some(name))?;
    Some(option.get_action().takes_values())
}

/// The words of a command line with the scenario of `bench` before its options, which may stand before it.
pub fn scenario_first(all: &Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|verb| verb != "bench") {
        return words;
    }
    let Some(bench) = all.find_subcommand("bench") else {
        return words;
    };
    let takes_value = |word: &str| {
        let name = word.strip_prefix("--").filter(|name| !name.contains('='));
        let of = |command: &Command| option(command, name?);
        let mut commands = [bench].into_iter().chain(bench.get_subcommands());
        commands.find_map(of).unwrap_or_default()
    };
    let mut at = 2;
    while let Some(word) = words
        .get(at)
        .map(|word| word.to_string_lossy().into_owned())
    {
        match word.as_str() {
            "--" => break,
            option if option.starts_with('-') => at += 1 + usize::from(takes_value(option)),
            name => {
                if scenario::way(name).is_some() {
                    let name = words.remove(at);
                    words.insert(2, name);
                }
                break;
            }
        }
    }
    words
}

/// What is wrong with the words of `bench` where a scenario was given what it has no use for: clap knows of one command at a time.
pub fn of_no_use(all: &Command, error: &clap::Error, words: &[OsString]) -> Option<InputError> {
    let given = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(given) if error.kind() == ErrorKind::UnknownArgument => given,
        _ => return None,
    };
    if words.get(1)? != "bench" {
        return None;
    }
    let bench = all.find_subcommand("bench")?;
    let name = words.get(2)?.to_str()?;
    if given.starts_with('-') && !given.starts_with("--") {
        return None;
    }
    let Some(option) = given.strip_prefix("--") else {
        let with_parts: Vec<String> = (bench.get_subcommands())
            .filter(|command| command.get_positionals().any(|arg| !arg.is_last_set()))
            .map(|command| format!("`bench {}`", command.get_name()))
            .collect();
        let what = format!("only {} have parts", with_parts.join(" and "));
        return Some(InputError::new(given, what, "remove the word"));
    };
    let of = |command: &&Command| self::option(command, option).is_some();
    let mut owners: Vec<String> = (bench.get_subcommands().filter(of))
        .map(|command| format!("`{}`", command.get_name()))
        .collect();
    if self::option(bench, option).is_some() {
        owners.push("experiment files".to_owned());
    }
    let own = bench.find_subcommand(name);
    let who = own.map_or("an experiment".to_owned(), |_| format!("scenario `{name}`"));
    let have = match owners.as_slice() {
        [] => return None,
        [of_bench] if !of_bench.starts_with('`') => "it stands without a scenario".to_owned(),
        [one] => format!("only {one} has it"),
        [first @ .., last] if first.len() < 4 => {
            format!("only {} and {last} have it", first.join(", "))
        }
        _ => {
            let allowed = own.unwrap_or(bench).get_arguments();
            let allowed: Vec<&str> = allowed.filter_map(Arg::get_long).collect();
            format!("--{} are allowed", allowed.join(", --"))
        }
    };
    let what = format!("{who} has nothing that this could apply to");
    let fix = format!("remove the option; {have}");
    Some(InputError::new(given, what, fix))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::{Cli, Command as Verb, Measured};

    fn words(line: &str) -> Vec<OsString> {
        let all = ["timecell", "bench"].into_iter().chain(line.split(' '));
        scenario_first(&Cli::command(), all.map(OsString::from).collect())
    }

    fn parsed(line: &str) -> Result<Scenario, clap::Error> {
        let Verb::Bench(options) = Cli::try_parse_from(words(line))?.command else {
            panic!("not bench");
        };
        Ok(options.scenario.expect("a scenario"))
    }

    /// Why a line is refused.
    fn refused(line: &str) -> String {
        let error = parsed(line).expect_err(line);
        let own = of_no_use(&Cli::command(), &error, &words(line));
        own.map_or_else(|| error.to_string(), |own| own.to_string())
    }

    #[test]
    fn commands_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_may_stand_before_the_scenario() {
        for line in [
            "overhead --jobs 5 --load cpu --json --baseline supply",
            "--jobs 5 --load cpu --json --baseline supply overhead",
            "--jobs=5 --json overhead --load cpu --baseline supply",
        ] {
            let Ok(Scenario::Experiment("overhead", options)) = parsed(line) else {
                panic!("{line}");
            };
            assert_eq!(options.trials.jobs, Some(5), "{line}");
            assert_eq!(options.trials.load.len(), 1, "{line}");
            assert!(options.run.measured.json, "{line}");
            assert_eq!(options.run.judge.baseline, Some("supply".into()), "{line}");
        }
        // The value of an option that only another scenario has is no scenario, either.
        assert_eq!(
            words("--enforcer supply x.toml"),
            words("--enforcer supply x.toml")
        );
        let Ok(Scenario::Itself(options)) = parsed("--quick self wakeup loads --priority 70")
        else {
            panic!("self");
        };
        assert_eq!(options.parts, ["wakeup", "loads"]);
        assert!(options.quick);
    }

    #[test]
    fn every_scenario_takes_what_every_measurement_takes() {
        for name in scenario::names() {
            let line = format!("{name} --out there --dry-run --json --beside-missions");
            let scenario = parsed(&line).expect(name);
            let measured: Measured = match scenario {
                Scenario::Experiment(_, options) => options.run.measured,
                Scenario::Series(_, options) => options.run.measured,
                Scenario::Supply(options) => options.enforced.run.measured,
                Scenario::Isolation(options) => options.enforced.run.measured,
                Scenario::Itself(options) => options.measured,
            };
            assert!(measured.dry_run && measured.json && measured.beside_missions);
            assert_eq!(measured.out, std::path::Path::new("there"), "{name}");
        }
    }

    #[test]
    fn an_option_of_other_scenarios_is_refused_with_theirs() {
        for (line, said) in [
            (
                "startup --heartbeat-timeout 5ms",
                "--heartbeat-timeout: scenario `startup` has nothing that this could apply to; remove the option; \
                 only `recovery` has it",
            ),
            (
                "overhead --enforcer deadline",
                "only `supply` and `isolation` have it",
            ),
            (
                "overhead --policy fifo",
                "only `taskset`, `reservations` and experiment files have it",
            ),
            ("supply --jobs 5", "--enforcer, --reservation, --duration, "),
            (
                "mine.toml --threads 3",
                "an experiment has nothing that this could apply to; remove the option; only `supply` has it",
            ),
            ("overhead --resume runs/x", "it stands without a scenario"),
            (
                "footprint memory",
                "memory: only `bench isolation` and `bench self` have parts; remove the word",
            ),
        ] {
            let error = refused(line);
            assert!(error.contains(said), "{line}: {error}");
        }
        assert!(
            refused("overhead --jbos 5").contains("--jobs"),
            "clap's own"
        );
    }
}
