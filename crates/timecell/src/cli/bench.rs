//! `timecell bench`: an experiment file, or a scenario. Each scenario in the list is a subcommand that takes only the options that
//! apply to it.

use std::ffi::OsString;
use std::path::PathBuf;

use bench::scenario::{self, Way};
use bench::{OwnOption, SeriesScenario};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Id, Subcommand, ValueHint};
use model::InputError;

use super::bench_options::{
    Cpus, Decided, Experiment, Growth, Heartbeat, Isolation, Itself, Judged, Kept, Loads,
    OfMission, Own, OwnProgram, Pace, RealTime, Reserved, Series, SeriesCells, Supply, Sweep,
    TaskSet, Trials, Until,
};

/// The examples at the beginning of the help of `bench`.
const EXAMPLES: &str = "Examples:
  sudo timecell bench overhead --quick                           all engines, in under 30 s
  timecell bench --template > mine.toml                          an experiment of your own, to edit
  sudo timecell bench mine.toml --load cpu,disk                  your experiment under load
  sudo timecell bench overhead --program ./app -- --rate 100     your own program in every engine
  sudo timecell bench latency --until 'latency.p99.99 < 100us'   run until this is known";

/// Options of `bench`: those for an experiment file, and the scenarios with theirs.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_value_name = "SCENARIO",
    subcommand_help_heading = "Scenarios, each with its own options (timecell bench SCENARIO --help)",
    override_usage = "timecell bench <SCENARIO> [OPTIONS]\n       timecell bench <FILE> [OPTIONS]\n       timecell bench --resume <RUN>",
    before_help = EXAMPLES,
    before_long_help = format!("{EXAMPLES}
  sudo timecell bench latency --histogram --duration 24h         a day, in constant memory
  sudo timecell bench mine.toml --fail-if 'latency.p99 > 100us' --fail-if 'skipped > 0'
  sudo timecell bench mine.toml --baseline runs/... --fail-if 'execution.median > 1.1x'"),
    after_help = "All options: timecell bench --help; those of a scenario: timecell bench SCENARIO --help",
    after_long_help = "Real-time classes need privilege: run with sudo. Without it, the same command runs with SCHED_OTHER, and every \
    result is labelled \"not real-time\".

Exit codes with --fail-if: 3 if a threshold fails, else 1 if a trial failed or a threshold is undecided, else 4 if a threshold is not \
    applicable (no real-time class, too few jobs, not measured), else 0. With --decide: 1 if a ratio is neither known well enough nor shown to \
    differ from 1, or if there is no ratio."
)]
pub struct Bench {
    /// Path of an experiment file, instead of a scenario.
    #[arg(value_name = "SCENARIO|FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["list", "list_loads", "resume", "template"])]
    pub file: Option<String>,
    /// Resume this run of any kind (`latest`: the newest in runs), which ended early: a power cut, an interrupt, a full disk.
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, conflicts_with_all = of_a_plan())]
    pub resume: Option<PathBuf>,
    /// Print an experiment file with the usual keys explained, to edit.
    #[arg(long, exclusive = true)]
    pub template: bool,
    /// List the scenarios.
    #[arg(long)]
    pub list: bool,
    /// List the loads: the work of each, its program and the command that installs it.
    #[arg(long)]
    pub list_loads: bool,
    /// Options of an experiment file.
    #[command(flatten, next_help_heading = "Options for an experiment file")]
    pub options: Experiment,
    /// A scenario, measured by name.
    #[command(subcommand)]
    pub scenario: Option<Scenario>,
}

impl Bench {
    /// The runs that it names, and the directory that its own run will be in.
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

/// The options that would change the plan of a run.
fn of_a_plan() -> Vec<Id> {
    let groups = [
        Trials::augment_args,
        OwnProgram::augment_args,
        Pace::augment_args,
        Loads::augment_args,
        Kept::augment_args,
        Decided::augment_args,
        Until::augment_args,
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

/// A scenario with its options.
#[derive(Debug)]
pub enum Scenario {
    /// A shipped experiment.
    Experiment(&'static str, Box<Experiment>),
    /// Single measurements, repeated.
    Series(&'static SeriesScenario, Box<Series>),
    /// The supply of enforcers.
    Supply(Box<Supply>),
    /// Contests between two cells.
    Isolation(Box<Isolation>),
    /// timecell itself.
    Itself(Itself),
}

/// The features of a shipped experiment; they select the groups of options that apply to it.
#[derive(Clone, Copy, Default)]
struct Has {
    /// A task set, which brings its own jobs and program.
    set: bool,
    /// Growing numbers of cells and nothing else on the machine.
    growth: bool,
    /// Trials that take turns.
    turns: bool,
}

impl Has {
    fn of(name: &str) -> Has {
        // A test parses every one.
        scenario::find(name).map_or(Has::default(), |experiment| Has {
            set: experiment.tasks.is_some(),
            growth: experiment.scale.is_some(),
            turns: experiment.turns.is_some(),
        })
    }

    /// Adds the options that apply to a command.
    fn options(self, command: Command) -> Command {
        type Group = fn(Command) -> Command;
        let groups: [(bool, Group); 12] = [
            (!self.set, OwnProgram::augment_args),
            (true, Trials::augment_args),
            (!self.set, Pace::augment_args),
            (!self.growth, Loads::augment_args),
            (!self.set && !self.growth, Kept::augment_args),
            (self.turns, Decided::augment_args),
            (!self.growth, Until::augment_args),
            (true, Judged::augment_args),
            (true, RealTime::augment_args),
            (self.set, TaskSet::augment_args),
            (self.growth, Growth::augment_args),
            (self.set || self.growth, Reserved::augment_args),
        ];
        let is_there = groups.into_iter().filter(|(is_there, _)| *is_there);
        is_there.fold(command, |command, (_, group)| group(command))
    }

    /// Reads the options that apply from those given.
    fn given(self, of: &ArgMatches) -> Result<Experiment, clap::Error> {
        Ok(Experiment {
            trials: Trials::from_arg_matches(of)?,
            program: where_it_is(!self.set, of)?,
            pace: where_it_is(!self.set, of)?,
            loads: where_it_is(!self.growth, of)?,
            kept: where_it_is(!self.set && !self.growth, of)?,
            decided: where_it_is(self.turns, of)?,
            until: where_it_is(!self.growth, of)?,
            set: where_it_is(self.set, of)?,
            growth: where_it_is(self.growth, of)?,
            reserved: where_it_is(self.set || self.growth, of)?,
            real_time: RealTime::from_arg_matches(of)?,
            run: Judged::from_arg_matches(of)?,
        })
    }
}

/// The command of a scenario.
fn command(name: &'static str, way: Way) -> Command {
    let command = Command::new(name);
    let command = match way {
        Way::Experiment(_) => Has::of(name).options(command),
        Way::Series(of) => {
            let command = match of.own {
                OwnOption::Mission => OfMission::augment_args(command),
                _ => SeriesCells::augment_args(command),
            };
            let command = Series::augment_args(command);
            match of.own {
                OwnOption::Nothing | OwnOption::Mission => command,
                OwnOption::Cpus => Cpus::augment_args(command),
                OwnOption::Heartbeat => Heartbeat::augment_args(command),
                OwnOption::Sweep => Sweep::augment_args(command),
            }
        }
        Way::Supply => Supply::augment_args(command),
        Way::Isolation => Isolation::augment_args(command),
        Way::Itself => Itself::augment_args(command),
    };
    let line = match scenario::way(name) {
        Some(Way::Series(of)) if of.own == OwnOption::Mission => format!("{name} plane.toml"),
        _ => name.to_owned(),
    };
    let examples = format!(
        "Examples:\n  timecell bench {line} --dry-run        what would be measured here\n  sudo timecell bench {line} --quick     \
        a smoke run\n  sudo timecell bench {line}"
    );
    // After the groups of options, whose own help texts would replace it.
    (command.about(way.question()).long_about(None)).after_help(examples)
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
            Way::Experiment(_) => Scenario::Experiment(name, Box::new(Has::of(name).given(of)?)),
            Way::Series(scenario) => {
                let cpus: Cpus = where_it_is(scenario.own == OwnOption::Cpus, of)?;
                let beat: Heartbeat = where_it_is(scenario.own == OwnOption::Heartbeat, of)?;
                let sweep: Sweep = where_it_is(scenario.own == OwnOption::Sweep, of)?;
                let of_mission = scenario.own == OwnOption::Mission;
                let mission: OfMission = where_it_is(of_mission, of)?;
                let series = Series {
                    cells: where_it_is(!of_mission, of)?,
                    own: Own {
                        cpus: cpus.cpus,
                        heartbeat_timeout: beat.heartbeat_timeout,
                        sweep: sweep.sweep,
                        mission: mission.mission,
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

/// A group of options, or its default for a scenario that does not take it.
fn where_it_is<T: FromArgMatches + Default>(is: bool, of: &ArgMatches) -> Result<T, clap::Error> {
    match is {
        true => T::from_arg_matches(of),
        false => Ok(T::default()),
    }
}

/// Whether the option of this name takes a value; `None` if the command has no such option.
fn option(command: &Command, name: &str) -> Option<bool> {
    let mut all = command.get_arguments();
    let option = all.find(|arg| arg.get_long() == Some(name))?;
    Some(option.get_action().takes_values())
}

/// The words of a command line, with the scenario of `bench` moved before its options: the user may write it after them.
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

/// The error for `bench` when a scenario is given an argument that only others take: clap knows one command at a time.
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
            .filter(|command| command.get_positionals().any(|arg| arg.get_id() == "parts"))
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
        [of_bench] if !of_bench.starts_with('`') => "it is given without a scenario".to_owned(),
        [one] => format!("only {one} does"),
        [first @ .., last] if first.len() < 4 => {
            format!("only {} and {last} do", first.join(", "))
        }
        _ => {
            let allowed = own.unwrap_or(bench).get_arguments();
            let allowed: Vec<&str> = allowed.filter_map(Arg::get_long).collect();
            format!("--{} are allowed", allowed.join(", --"))
        }
    };
    let what = format!("{who} does not take this option");
    let fix = format!("remove it; {have}");
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
            assert_eq!(options.pace.jobs, Some(5), "{line}");
            assert_eq!(options.loads.load.len(), 1, "{line}");
            assert!(options.run.measured.json, "{line}");
            assert_eq!(options.run.judge.baseline, Some("supply".into()), "{line}");
        }
        // Nor is the value of an option that only another scenario takes a scenario.
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
            let file = if name == "mission" { " plane.toml" } else { "" };
            let line = format!("{name}{file} --out there --dry-run --json --beside-missions");
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
                "--heartbeat-timeout: scenario `startup` does not take this option; remove it; \
                 only `recovery` does",
            ),
            (
                "startup --engine jailhouse",
                "cells of `jailhouse` run no program that is measured; measure a mission with them: `timecell bench mission MISSION`",
            ),
            (
                "overhead --enforcer deadline",
                "only `supply` and `isolation` do",
            ),
            (
                "overhead --policy fifo",
                "only `taskset`, `reservations` and experiment files do",
            ),
            (
                "scale --load cpu",
                "--load: scenario `scale` does not take this option",
            ),
            ("scale --until latency.p99<1ms", "--until"),
            ("device --decide 2%", "and experiment files do"),
            (
                "taskset --jobs 5",
                "--jobs: scenario `taskset` does not take",
            ),
            ("reservations --program ./app", "--program: scenario"),
            ("taskset --histogram", "--histogram: scenario"),
            ("reservations --stage oob", "--stage: scenario"),
            ("supply --jobs 5", "--enforcer, --reservation, --duration, "),
            (
                "mine.toml --threads 3",
                "an experiment does not take this option; remove it; only `supply` does",
            ),
            ("overhead --resume runs/x", "it is given without a scenario"),
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
        // Of the enforcers of EVL everywhere else, too.
        let why = "it holds threads out of band, which are in cells with `rights.evl` of a mission's file";
        for verb in [
            "run --enforcer evl-quota -- /bin/true",
            "analyze --enforcer evl-tp set.toml",
        ] {
            let words = ["timecell"].into_iter().chain(verb.split(' '));
            let error = Cli::try_parse_from(words).expect_err(verb);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
