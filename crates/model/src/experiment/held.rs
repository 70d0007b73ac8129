//! Reservations of a task set that is run: `[[workload.reservation]]`, and `reserve` and `parts` of a trial. This file says which are to be held; the
//! mechanism that holds them, and the cpu, depend on the machine.

use super::task_load::{TaskLoad, TaskPolicy};
use super::{Experiment, TrialPlan};
use crate::{Enforcer, EngineKind, InputError};

/// The enforcers that may hold the cells of a trial, by their names in files and options; `none`: only their classes apply.
pub fn reserves() -> Vec<(&'static str, Option<Enforcer>)> {
    let held = Enforcer::OF_BENCH.iter().copied().map(Some);
    let named = |reserve: Option<Enforcer>| (reserve.map_or("none", Enforcer::name), reserve);
    std::iter::once(None).chain(held).map(named).collect()
}

/// The first setting of a trial that the set lacks or that cannot be applied to it, and how to fix it.
pub(super) fn fault(tasks: &TaskLoad, trial: &TrialPlan) -> Option<(String, String)> {
    let name = &trial.name;
    if trial.reserve.is_some() && tasks.policy == TaskPolicy::Deadline {
        return Some((
            format!(
                "trial `{name}` has `reserve`, but its SCHED_DEADLINE threads already have runtimes"
            ),
            "remove `reserve`, or set policy = \"fifo\"".to_owned(),
        ));
    }
    if trial.cells.iter().any(|kind| kind.is_machine()) && trial.competitors > 0 {
        return Some((
            format!("trial `{name}` has `competitors`, which would be in the virtual machine"),
            "remove it, or set cells = [\"bare\"]".to_owned(),
        ));
    }
    if let Some(enforcer) = trial.reserve
        && !trial.cells.iter().all(|kind| holds(enforcer, *kind))
    {
        return Some((
            format!("trial `{name}` has `reserve`, but its cells are not plain processes"),
            "only cells of engine bare can be held, and those of engine qemu by deadline or rt-cgroup, which take single threads; remove `reserve`, or set cells = [\"bare\"]"
                .to_owned(),
        ));
    }
    if tasks.file.is_some() {
        return None;
    }
    let names: Vec<&str> = tasks.cells.iter().map(|cell| cell.name.as_str()).collect();
    let mut parts = trial.parts.iter();
    let part = parts.find(|part| !names.contains(&part.as_str()))?;
    Some((
        format!("trial `{name}` runs cell `{part}`, which is not in the set"),
        format!("its cells are {}", names.join(", ")),
    ))
}

/// Whether an enforcer holds task sets in cells of an engine: processes whole, virtual machines by the threads of their virtual cpus.
fn holds(enforcer: Enforcer, engine: EngineKind) -> bool {
    let by_threads = matches!(enforcer, Enforcer::Deadline | Enforcer::RtCgroup);
    engine == EngineKind::Bare || (engine.is_machine() && by_threads)
}

impl Experiment {
    /// Checks the trials against the task set, once it is known; `is_free`: the user asked for no enforcer, so its reservations
    /// need no trial that enforces them.
    ///
    /// # Errors
    /// A reservation that does not fit, and the remedy.
    pub(crate) fn check_reservations(&self, is_free: bool) -> Result<(), (String, String)> {
        let Some(tasks) = &self.tasks else {
            return Ok(());
        };
        if let Some(fault) = self.trials.iter().find_map(|trial| fault(tasks, trial)) {
            return Err(fault);
        }
        if is_free {
            return Ok(());
        }
        let reserved = tasks.cells.iter().find(|cell| cell.reservation.is_some());
        match reserved {
            Some(cell) if self.trials.iter().all(|trial| trial.reserve.is_none()) => Err((
                format!(
                    "cell `{}` has a reservation, which no trial enforces",
                    cell.name
                ),
                "choose an enforcer: --reserve, or `reserve` in a [[trial]]".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Makes every trial hold its cells by this enforcer. Trials that name another one are left out, unless all do, and so are
    /// those that would repeat another. Only trials remain whose cells can be held by it.
    ///
    /// # Errors
    /// When no trial is left, or its threads already have runtimes.
    pub(crate) fn hold_all(&mut self, reserve: Option<Enforcer>) -> Result<(), InputError> {
        if let Some(enforcer) = reserve {
            let fits = |trial: &TrialPlan| trial.cells.iter().all(|kind| holds(enforcer, *kind));
            self.trials.retain(fits);
            if self.trials.is_empty() {
                return Err(InputError::new(
                    "--reserve",
                    format!(
                        "no trial of `{}` has plain processes only, and {} holds nothing else here",
                        self.name,
                        enforcer.name()
                    ),
                    "remove the option, or add a trial with cells = [\"bare\"]",
                ));
            }
        }
        let named = |trial: &TrialPlan| trial.reserve.is_some() && trial.reserve != reserve;
        if !self.trials.iter().all(named) {
            self.trials.retain(|trial| !named(trial));
        }
        // A trial that names the enforcer itself keeps the name.
        let by_itself: Vec<bool> = (self.trials.iter())
            .map(|trial| trial.reserve.is_some() && trial.reserve == reserve)
            .collect();
        for trial in &mut self.trials {
            trial.reserve = reserve;
        }
        let alike = |a: &TrialPlan, b: &TrialPlan| {
            let renamed = TrialPlan {
                name: b.name.clone(),
                ..a.clone()
            };
            renamed == *b
        };
        let twin = |at: usize| {
            let first = |one: usize| (by_itself[one], std::cmp::Reverse(one));
            (0..self.trials.len())
                .filter(|&other| first(other) > first(at))
                .filter(|&other| alike(&self.trials[at], &self.trials[other]))
                .max_by_key(|&other| first(other))
        };
        let twins: Vec<Option<usize>> = (0..self.trials.len()).map(twin).collect();
        let baseline = self.trials.iter().position(|one| one.name == self.baseline);
        if let Some(twin) = baseline.and_then(|at| twins[at]) {
            self.baseline = self.trials[twin].name.clone();
        }
        let mut twins = twins.iter();
        self.trials
            .retain(|_| twins.next().is_none_or(Option::is_none));
        self.keep_known_baseline();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taskset::TaskCell;
    use crate::{Duration, Overrides};

    const TASKS: &str = "schema = 1\nname = \"x\"\n[workload]\nkind = \"taskset\"\n\
        [[workload.task]]\nname = \"a\"\ncell = \"one\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
        [[workload.task]]\nname = \"b\"\ncell = \"two\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n";
    const HELD: &str = "[[workload.reservation]]\ncell = \"one\"\nbudget = \"2500us\"\nperiod = \"8ms\"\ncpu = 1\n\
        [[workload.reservation]]\ncell = \"two\"\ncpu = 1\npriority = 4\n";
    const TRIAL: &str = "[[trial]]\ncells = [\"bare\"]\n[[trial]]\nname = \"held\"\ncells = [\"bare\"]\nreserve = \"freezer\"\nparts = [\"two\"]\n";

    fn parse(held: &str, trial: &str) -> Result<Experiment, String> {
        let text = format!("{TASKS}{held}{trial}");
        Experiment::parse("x", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn reservations_are_read_and_written() {
        let read = parse(HELD, TRIAL).unwrap();
        let cells = &read.tasks.as_ref().unwrap().cells;
        let own = cells[0].reservation.unwrap();
        assert_eq!(
            (own.budget, own.period),
            (Duration::from_ns(2_500_000), Duration::from_ns(8_000_000))
        );
        let place = |cell: &TaskCell| cell.server.map(|server| (server.cpu, server.priority));
        assert_eq!(place(&cells[0]), Some((Some(1), None)));
        assert_eq!(place(&cells[1]), Some((Some(1), Some(4))));
        assert_eq!(cells[1].reservation, None);
        assert_eq!(read.trials[0].reserve, None);
        assert_eq!(read.trials[1].reserve, Some(Enforcer::Freezer));
        assert_eq!(read.trials[1].parts, ["two"]);
        assert_eq!(Experiment::parse("x", &read.to_toml()), Ok(read));
    }

    #[test]
    fn what_no_enforcer_can_do_has_its_line_and_fix() {
        for (held, trial, wanted) in [
            (
                HELD.replace("\"one\"", "\"three\""),
                TRIAL.to_owned(),
                "cell `three` has no task",
            ),
            (
                HELD.replace("\"two\"", "\"one\""),
                TRIAL.to_owned(),
                "x:21: cell `one` has two reservations",
            ),
            (
                HELD.replace("\"2500us\"", "\"9ms\""),
                TRIAL.to_owned(),
                "x:17: ",
            ),
            (
                HELD.replace("cpu = 1\npriority = 4\n", ""),
                TRIAL.to_owned(),
                "give budget and period, or cpu, or priority",
            ),
            (
                HELD.replacen("period = \"8ms\"\n", "", 1),
                TRIAL.to_owned(),
                "`period`",
            ),
            (
                HELD.to_owned(),
                TRIAL.replace("[\"two\"]", "[\"zwei\"]"),
                "its cells are one, two",
            ),
            (
                HELD.to_owned(),
                TRIAL.replace("[\"bare\"]\nreserve", "[\"crun\"]\nreserve"),
                "not plain processes",
            ),
            (
                HELD.to_owned(),
                TRIAL.replace("\"freezer\"", "\"cpuset-only\""),
                "it is one of none, rt-cgroup, deadline, hcbs, freezer",
            ),
        ] {
            let error = parse(&held, &trial).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        let in_a_file =
            "schema = 1\nname = \"x\"\n[workload]\nkind = \"taskset\"\ntasks = \"set.toml\"\n";
        let error = Experiment::parse("x", &format!("{in_a_file}{HELD}{TRIAL}")).unwrap_err();
        let told = error.to_string();
        assert!(told.starts_with("x:6: the tasks are in set.toml"), "{told}");
        assert!(told.contains("[[workload.task]]"), "{told}");
        let deadline = TASKS.replace("\"taskset\"\n", "\"taskset\"\npolicy = \"deadline\"\n");
        let error = Experiment::parse("x", &format!("{deadline}{TRIAL}")).unwrap_err();
        assert!(
            error.to_string().contains("already have runtimes"),
            "{error}"
        );
        let mac = "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\n[[trial]]\ncells = [\"bare\"]\nreserve = \"freezer\"\n";
        let error = Experiment::parse("x", mac).unwrap_err();
        assert!(error.to_string().contains("only a task set"), "{error}");
    }

    #[test]
    fn the_command_line_says_what_holds_them() {
        let alone = &TRIAL[..TRIAL.find("[[trial]]\nname").unwrap()];
        let with = |reserve, trial: &str| {
            let mut read = parse(HELD, trial).unwrap();
            let changes = Overrides {
                reserve,
                ..Overrides::default()
            };
            changes.apply(&mut read).map(|()| read)
        };
        let error = with(None, alone).unwrap_err().to_string();
        assert!(error.contains("which no trial enforces"), "{error}");
        let held = with(Some(Some(Enforcer::RtCgroup)), TRIAL).unwrap();
        assert!(
            held.trials
                .iter()
                .all(|trial| trial.reserve == Some(Enforcer::RtCgroup))
        );
        // A user who chooses that nothing holds them is told of nothing.
        let free = with(Some(None), alone).unwrap();
        assert_eq!(free.trials[0].reserve, None);
        let both = alone.to_owned() + "[[trial]]\ncells = [\"crun\"]\n";
        assert_eq!(
            with(Some(Some(Enforcer::Freezer)), &both)
                .unwrap()
                .trials
                .len(),
            1
        );
        // One of plain processes that another enforcer holds is better than one that nothing can hold.
        let other = alone.to_owned()
            + "reserve = \"rt-cgroup\"\n[[trial]]\nname = \"contained\"\ncells = [\"crun\"]\n";
        let held = with(Some(Some(Enforcer::Freezer)), &other).unwrap();
        assert_eq!(held.trials.len(), 1);
        assert_eq!(held.trials[0].reserve, Some(Enforcer::Freezer));
        let none = alone.replace("bare", "crun");
        let error = with(Some(Some(Enforcer::Freezer)), &none).unwrap_err();
        assert!(error.to_string().contains("plain processes"), "{error}");
    }

    #[test]
    fn what_names_another_or_repeats_one_is_left_out() {
        let trial = |name: &str, more: &str| {
            format!("[[trial]]\nname = \"{name}\"\ncells = [\"bare\"]\n{more}")
        };
        let all = [
            trial("free", ""),
            trial("free-rival", "competitors = 0.1\n"),
            trial("by-freezer", "reserve = \"freezer\"\n"),
            trial("by-group", "reserve = \"rt-cgroup\"\nparts = [\"one\"]\n"),
        ];
        let with = |trials: &[String], reserve| {
            let mut read = parse(HELD, &trials.concat()).unwrap();
            let changes = Overrides {
                reserve: Some(reserve),
                ..Overrides::default()
            };
            changes.apply(&mut read).unwrap();
            assert!(read.trials.iter().all(|trial| trial.reserve == reserve));
            let names: Vec<String> = read.trials.into_iter().map(|trial| trial.name).collect();
            (read.baseline, names.join(" "))
        };
        let said = |baseline: &str, names: &str| (baseline.to_owned(), names.to_owned());
        assert_eq!(
            with(&all, Some(Enforcer::RtCgroup)),
            said("free", "free free-rival by-group")
        );
        // Held by the freezer, the first is the third.
        assert_eq!(
            with(&all, Some(Enforcer::Freezer)),
            said("by-freezer", "free-rival by-freezer")
        );
        assert_eq!(with(&all, None), said("free", "free free-rival"));
        // Where each names something else, the option decides.
        assert_eq!(
            with(&all[2..], Some(Enforcer::Deadline)),
            said("by-freezer", "by-freezer by-group")
        );
    }
}
