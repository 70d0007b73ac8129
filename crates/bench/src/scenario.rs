//! The scenarios that `bench` knows by name: the only list of them.

use std::borrow::Cow;

use model::{Architecture, Experiment, InputError, InputErrors};

use crate::isolation::ISOLATION_QUESTION;
use crate::selfcheck::SELF_QUESTION;
use crate::series::{SERIES_SCENARIOS, SeriesScenario};
use crate::supply::SUPPLY_QUESTION;

/// How a scenario is measured.
#[derive(Clone, Copy)]
pub enum Way {
    /// As an experiment, of which this is the text: trials of cells that run jobs.
    Experiment(&'static str),
    /// As single measurements, repeated.
    Series(&'static SeriesScenario),
    /// As a study of the enforcers' supply.
    Supply,
    /// As contests of two cells.
    Isolation,
    /// As timecell compared with other tools, part by part; no run is made of it.
    Itself,
}

impl Way {
    /// The question it answers, one sentence.
    pub fn question(self) -> String {
        match self {
            Way::Experiment(text) => {
                // A test parses every shipped one.
                let experiment = Experiment::parse("scenario", text);
                experiment.map_or_else(|error| error.to_string(), |of| of.question)
            }
            Way::Series(scenario) => scenario.question.to_owned(),
            Way::Supply => SUPPLY_QUESTION.to_owned(),
            Way::Isolation => ISOLATION_QUESTION.to_owned(),
            Way::Itself => SELF_QUESTION.to_owned(),
        }
    }
}

/// Every scenario: its name on the command line and how it is measured, in the order in which they are listed.
///
/// Adding one: an experiment in `scenarios/` and its line below; a file in `series/` and its line in [`SERIES_SCENARIOS`]; a study
/// in a folder of its own and its line here.
pub fn all() -> impl Iterator<Item = (&'static str, Way)> {
    let experiments = EXPERIMENTS.map(|(name, text)| (name, Way::Experiment(text)));
    let series = SERIES_SCENARIOS.iter().map(|of| (of.name, Way::Series(of)));
    let others = [
        ("supply", Way::Supply),
        ("isolation", Way::Isolation),
        ("self", Way::Itself),
    ];
    experiments.into_iter().chain(series).chain(others)
}

/// How the scenario of this name is measured; `None`: there is none.
pub fn way(name: &str) -> Option<Way> {
    all().find(|(of, _)| *of == name).map(|(_, way)| way)
}

/// Name and text of every scenario that is an experiment.
const EXPERIMENTS: [(&str, &str); 7] = [
    ("overhead", include_str!("../scenarios/overhead.toml")),
    ("concurrency", include_str!("../scenarios/concurrency.toml")),
    ("latency", include_str!("../scenarios/latency.toml")),
    ("taskset", include_str!("../scenarios/taskset.toml")),
    (
        "reservations",
        include_str!("../scenarios/reservations.toml"),
    ),
    ("device", include_str!("../scenarios/device.toml")),
    ("scale", include_str!("../scenarios/scale.toml")),
];

/// What scenarios say of virtual machines of x86_64, and what is the same of 64-bit ARM: a board whose clock keeps time, and a kernel.
const ON_ARM: [(&str, &str); 2] = [
    ("board = \"q35\"", "board = \"virt\""),
    ("\"linux-image-amd64\"", "\"linux-image-arm64\""),
];

/// The text of a scenario on a machine of this architecture.
fn text_on(text: &str, architecture: Option<Architecture>) -> Cow<'_, str> {
    match architecture {
        Some(Architecture::Aarch64) => ON_ARM.iter().fold(text.into(), |text, (x86, arm)| {
            text.replace(x86, arm).into()
        }),
        _ => text.into(),
    }
}

/// Every name that `bench` takes in place of a file.
pub fn names() -> Vec<&'static str> {
    all().map(|(name, _)| name).collect()
}

/// The experiment of this name: a scenario, or the path of an experiment file.
///
/// # Errors
/// When it is neither, cannot be read, or is faulty; the sentence names the place and the fix.
pub fn find(what: &str) -> Result<Experiment, InputErrors> {
    if let Some(Way::Experiment(text)) = way(what) {
        return Experiment::parse(what, &text_on(text, Architecture::own()));
    }
    let is_path =
        what.contains('/') || what.ends_with(".toml") || std::path::Path::new(what).exists();
    if !is_path {
        let names = names();
        let near = model::nearest(what, &names);
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        return Err(InputError::new(
            what,
            "no such scenario or file",
            format!(
                "{near}the scenarios are {}; an experiment file ends in .toml",
                names.join(", ")
            ),
        )
        .into());
    }
    let read = host::given_file::text(what.as_ref(), Experiment::FILE_BYTES as u64);
    let text = read.map_err(|error| {
        InputError::new(
            what,
            format!("cannot read the experiment file: {error}"),
            "",
        )
    })?;
    Experiment::parse(what, &text)
}

/// The file that the task set of an experiment is yet to be read from: beside the experiment's own, unless its path is
/// absolute.
pub fn tasks_file(what: &str, experiment: &Experiment) -> Option<std::path::PathBuf> {
    let file = experiment.tasks.as_ref()?.file.as_ref()?;
    let beside = std::path::Path::new(what).parent();
    Some(beside.map_or_else(|| file.into(), |dir| dir.join(file)))
}

/// Gives an experiment the task set that was read from `name`.
///
/// # Errors
/// When the experiment runs none, or this one cannot be run.
pub fn set_tasks(
    experiment: &mut Experiment,
    name: &str,
    set: &model::taskset::TaskSet,
) -> Result<(), InputError> {
    let Some(tasks) = &mut experiment.tasks else {
        return Err(InputError::new(
            "--tasks",
            format!("experiment `{}` runs no task set", experiment.name),
            "use scenario taskset, or kind = \"taskset\" in [workload]",
        ));
    };
    tasks.cells = model::TaskLoad::cells_of(set, tasks.policy)
        .map_err(|(what, fix)| InputError::new(name, what, fix))?;
    tasks.file = None;
    experiment.workload = tasks.workload();
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::Enforcer;

    use super::*;

    #[test]
    fn every_scenario_is_a_good_experiment_of_its_own_name() {
        for (name, _) in EXPERIMENTS {
            assert_eq!(find(name).unwrap().name, name);
        }
    }

    #[test]
    fn names_are_different_and_each_answers_a_question() {
        let names = names();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            let question = way(name).unwrap().question();
            assert!(question.ends_with('?'), "{name}: {question}");
        }
        assert!(matches!(way("supply"), Some(Way::Supply)));
        assert!(way("nonsense").is_none());
    }

    #[test]
    fn virtual_machines_of_scenarios_are_of_the_hosts_processor() {
        let machines = |architecture| {
            let of = |name: &str| {
                let (_, text) = EXPERIMENTS.iter().find(|(of, _)| *of == name).unwrap();
                Experiment::parse(name, &text_on(text, architecture)).unwrap()
            };
            let latency = of("latency");
            let kernel = latency
                .trial("qemu-linux-idle")
                .unwrap()
                .machine
                .kernel
                .clone();
            (
                of("reservations").machine.board,
                latency.machine.board,
                kernel,
            )
        };
        let are = |board: &str, kernel: &str| {
            (Some(board.into()), Some(board.into()), Some(kernel.into()))
        };
        let arm = are("virt", "linux-image-arm64");
        assert_eq!(machines(Some(Architecture::Aarch64)), arm);
        let x86 = are("q35", "linux-image-amd64");
        assert_eq!(machines(Some(Architecture::X86_64)), x86);
        for (name, text) in EXPERIMENTS {
            let on_arm = text_on(text, Some(Architecture::Aarch64));
            assert!(
                !on_arm.contains("amd64") && !on_arm.contains("\"q35\""),
                "{name}"
            );
        }
    }

    /// The kernel's limit for the groups of a trial, us of every second: 95 % of a cpu, of which its fair server has 5 where servers of
    /// SCHED_DEADLINE hold them.
    #[test]
    fn trials_of_groups_ask_for_no_more_than_the_kernel_leaves() {
        let experiment = find("reservations").unwrap();
        let cells = &experiment.tasks.as_ref().unwrap().cells;
        let ns = |time: model::Duration| time.ns().unsigned_abs();
        let mut held: Vec<&str> = Vec::new();
        for trial in &experiment.trials {
            let left_us = match trial.reserve {
                Some(Enforcer::RtCgroup) => 950_000,
                Some(Enforcer::Hcbs) => 900_000,
                _ => continue,
            };
            let parts = cells.iter().filter(|cell| trial.parts.contains(&cell.name));
            let own = parts.filter_map(|cell| cell.reservation);
            let asked_us: u64 = own
                .map(|own| crate::held::per_second_us(ns(own.budget), ns(own.period)))
                .sum();
            assert!(asked_us > 0, "{}", trial.name);
            assert!(asked_us <= left_us, "{}: {asked_us}", trial.name);
            if trial.reserve == Some(Enforcer::Hcbs) {
                held.extend(trial.parts.iter().map(String::as_str));
            }
        }
        assert!(cells.iter().all(|cell| held.contains(&cell.name.as_str())));
    }

    /// By default the table shows the difference between equals.
    #[test]
    fn scenarios_whose_trials_take_turns_repeat_their_baseline() {
        for name in ["overhead", "concurrency", "latency"] {
            let experiment = find(name).unwrap();
            assert!(experiment.turns.is_some(), "{name}");
            let baseline = experiment.trial(&experiment.baseline).unwrap();
            let again = experiment.trials.iter().filter(|trial| {
                trial.name == format!("{}-again", baseline.name)
                    && trial.cells == baseline.cells
                    && trial.loads == baseline.loads
                    && trial.period == baseline.period
            });
            assert_eq!(again.count(), 1, "{name}");
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_the_names() {
        let error = find("overhaed").unwrap_err().to_string();
        assert!(
            error.contains("the scenarios are overhead, concurrency, latency"),
            "{error}"
        );
        assert!(
            find("/nonexistent.toml")
                .unwrap_err()
                .to_string()
                .contains("cannot read")
        );
    }
}
