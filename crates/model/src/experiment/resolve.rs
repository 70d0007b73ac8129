//! Applying the options of the command line to an experiment.

use super::work::checked;
use super::{scale_override, turns::ten_thousandths};
use crate::{
    Class, Duration, Enforcer, Experiment, InputError, Keep, Limits, LoadKind, LoadPlan, Overrides,
    ProgramLoad, Scale, Timetable, TrialPlan, Turns, Work,
};

/// Up to this number of trials, a smoke run repeats each at full length; more are shorter, or run once if they take no
/// turns.
const REPEATED: usize = 12;

/// Jobs and rounds of a smoke run: 7 cells x 5 rounds x 200 ms plus their creation stay under 30 s, a matrix of 36
/// trials under 60 s.
pub fn quick(experiment: &mut Experiment) {
    if experiment.scale.is_some() {
        return scale_override::quick(experiment);
    }
    if experiment.workload.work == Work::Endless {
        experiment.workload.period = Duration::from_ns(200_000_000);
        // Fewer give no median an interval.
        experiment.rounds = 6;
        return;
    }
    let turns = experiment.turns;
    let many = experiment.trials.len() > REPEATED;
    let rounds = match (turns, many) {
        // An interval rests on rounds: many short ones tell more than few long ones.
        (_, false) => 5,
        // The fewest that a ratio is told of.
        (Some(_), true) => 3,
        (None, true) => 1,
    };
    let laps_together = experiment.trials.len() as i64 * i64::from(rounds);
    let reports = (experiment.workload.program.as_ref()).is_some_and(ProgramLoad::reports);
    let extra = turns.map_or(0, |turns| if reports { turns.catch_up } else { 0 });
    let jobs = |period: Duration| match turns {
        Some(turns) => {
            let quarter = quarter_of_a_second(period);
            let wanted = (if many { quarter / 2 } else { quarter }).max(2 * turns.jobs(period));
            wanted.min(within(
                QUICK_TURNS_NS / laps_together.max(1),
                turns,
                extra,
                period,
            ))
        }
        None if many => half_a_second(period),
        None => fifth_of_a_second(period),
    };
    let workload = &mut experiment.workload;
    workload.jobs = jobs(workload.period);
    for trial in &mut experiment.trials {
        trial.jobs = trial.period.map(jobs);
        trial.forget_own_jobs();
    }
    experiment.rounds = rounds;
}

/// The jobs of whole turns that take no longer than this, and those of one turn at least.
fn within(ns: i64, turns: Turns, extra: u32, period: Duration) -> u32 {
    let jobs = turns.jobs(period);
    let turn = Timetable {
        jobs,
        extra,
        period_ns: period.ns().max(1),
        arms: 1,
        arm: 0,
        seed: 0,
    };
    let laps = u32::try_from(ns / turn.slot_ns().max(1)).unwrap_or(u32::MAX);
    laps.max(1).saturating_mul(jobs)
}

impl Experiment {
    /// Halves the jobs of trials that take turns, but leaves them two turns. Returns whether that changed anything.
    pub fn halve_turns(&mut self) -> bool {
        let Some(turns) = self.turns else {
            return false;
        };
        let half = |jobs: u32, period: Duration| jobs.min((jobs / 2).max(2 * turns.jobs(period)));
        let period = self.workload.period;
        let before = (self.workload.jobs, self.trials.clone());
        self.workload.jobs = half(self.workload.jobs, period);
        for trial in &mut self.trials {
            let period = trial.period.unwrap_or(period);
            trial.jobs = trial.jobs.map(|jobs| half(jobs, period));
        }
        before != (self.workload.jobs, self.trials.clone())
    }
}

/// Total time of the turns of a smoke run, ns; creating the cells comes on top.
const QUICK_TURNS_NS: i64 = 12_000_000_000;

/// Lets the run end once every ratio is known to within this share, with up to four times as many rounds.
fn decide(experiment: &mut Experiment, share: f64) -> Result<(), InputError> {
    let parts =
        ten_thousandths(share).map_err(|(what, fix)| InputError::new("--decide", what, fix))?;
    let Some(turns) = &mut experiment.turns else {
        return Err(InputError::new(
            "--decide",
            format!("the trials of `{}` take no turns", experiment.name),
            match experiment.workload.program {
                // Added, they would be refused.
                Some(_) => "set the number of rounds with --rounds",
                None => {
                    "add [turns] to the experiment, record samples, or set the number of rounds with --rounds"
                }
            },
        ));
    };
    turns.decide = Some(parts);
    experiment.rounds = experiment.rounds.saturating_mul(4).min(10_000);
    Ok(())
}

/// The jobs of this period that take about a quarter of a second.
fn quarter_of_a_second(period: Duration) -> u32 {
    u32::try_from(250_000_000 / period.ns().max(1)).unwrap_or(u32::MAX)
}

/// The jobs of this period that take about a fifth of a second, 2 to 500.
fn fifth_of_a_second(period: Duration) -> u32 {
    let jobs = 200_000_000 / period.ns().max(1);
    u32::try_from(jobs.clamp(2, 500)).unwrap_or(500)
}

/// The jobs of this period that take about half a second, 2 to 500.
fn half_a_second(period: Duration) -> u32 {
    let jobs = 500_000_000 / period.ns().max(1);
    u32::try_from(jobs.clamp(2, 500)).unwrap_or(500)
}

/// Length of a trial of a task set in a smoke run.
const QUICK_SET: Duration = Duration::from_ns(2_000_000_000);

impl Overrides {
    /// The tasks of a set have jobs and periods of their own, and every job is kept.
    fn refuse_for_a_set(&self) -> Result<(), InputError> {
        let ignored = [
            ("--period", self.period.is_some()),
            ("--deadline", self.deadline.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--histogram", self.histogram),
            ("--interval", self.interval.is_some()),
        ];
        match ignored.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(InputError::new(
                *option,
                "the tasks of a set have their own periods and jobs, and every job is recorded",
                "remove the option; --duration sets how long the set runs",
            )),
        }
    }

    /// A program that neither ends nor reports its jobs has a length, but no jobs.
    fn refuse_for_endless(&self) -> Result<(), InputError> {
        let ignored = [
            ("--jobs", self.jobs.is_some()),
            ("--deadline", self.deadline.is_some()),
            ("--histogram", self.histogram),
            ("--interval", self.interval.is_some()),
        ];
        match ignored.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(InputError::new(
                *option,
                "the program neither ends nor reports its jobs",
                "remove the option; --duration sets how long it runs in each round",
            )),
        }
    }

    /// Applies the options to `experiment`.
    ///
    /// # Errors
    /// Names the option whose value is out of range, or an empty selection of trials.
    pub fn apply(&self, experiment: &mut Experiment) -> Result<(), InputError> {
        // How long a smoke run is depends on how many trials are left.
        if !self.engines.is_empty() && experiment.scale.is_none() {
            experiment
                .trials
                .retain(|trial| trial.cells.iter().all(|cell| self.engines.contains(cell)));
            if experiment.trials.is_empty() {
                return Err(InputError::new(
                    "--engine",
                    format!("no trial of `{}` uses only these engines", experiment.name),
                    "name the engines of at least one trial; --dry-run lists them",
                ));
            }
            experiment.keep_known_baseline();
        }
        if let Some(stage) = self.stage {
            experiment.set_stage(stage);
        }
        if let Some(program) = &self.program {
            experiment.set_program(program.clone())?;
        }
        if let (Some(turns), Some(periods)) = (&mut experiment.turns, self.catch_up) {
            turns.catch_up = periods;
        }
        if self.whole_rounds {
            experiment.turns = None;
        }
        if experiment.tasks.is_some() {
            self.refuse_for_a_set()?;
        } else if self.task_policy.is_some() {
            return Err(InputError::new(
                "--policy",
                "only a task set has a policy",
                "remove the option, or set kind = \"taskset\"",
            ));
        }
        if experiment.workload.work == Work::Endless {
            self.refuse_for_endless()?;
        }
        if let Some(period) = self.period {
            if !Limits::PERIOD_NS.contains(&period.ns()) {
                return Err(InputError::new(
                    "--period",
                    format!("the period is {period}"),
                    "it must be 10us to 1h",
                ));
            }
            set_period(experiment, period)?;
        }
        if let Some(deadline) = self.deadline {
            if !Limits::PERIOD_NS.contains(&deadline.ns()) {
                return Err(InputError::new(
                    "--deadline",
                    format!("the deadline is {deadline}"),
                    "it must be 10us to 1h",
                ));
            }
            experiment.workload.deadline = Some(deadline);
        }
        if self.histogram && experiment.keep == Keep::Samples {
            experiment.keep = Keep::MINUTES;
        }
        if let Some(interval) = self.interval {
            if !Limits::INTERVAL_NS.contains(&interval.ns()) {
                return Err(InputError::new(
                    "--interval",
                    format!("the interval is {interval}"),
                    "it must be 1s to 1h",
                ));
            }
            experiment.keep = Keep::Histograms { interval };
        }
        if experiment.keep != Keep::Samples {
            // Turns are compared job by job.
            experiment.turns = None;
        }
        let allowed = experiment.keep.jobs();
        if self.quick {
            quick(experiment);
        }
        let duration = self.duration;
        let is_endless = experiment.workload.work == Work::Endless;
        let policy = self.task_policy;
        if let Some(tasks) = &mut experiment.tasks {
            tasks.duration = duration.unwrap_or(if self.quick {
                QUICK_SET
            } else {
                tasks.duration
            });
            tasks.policy = policy.unwrap_or(tasks.policy);
            experiment.workload = tasks.workload();
        } else if let Some(duration) = duration.filter(|_| is_endless) {
            if !Limits::PERIOD_NS.contains(&duration.ns()) {
                let what = format!("the program would run for {duration}");
                return Err(InputError::new("--duration", what, "it must be 10us to 1h"));
            }
            experiment.workload.period = duration;
        } else if let Some(duration) = duration {
            let jobs = |period: Duration| {
                let jobs = duration.ns() / period.ns().max(1);
                if jobs < 1 {
                    return Err(InputError::new(
                        "--duration",
                        format!("{duration} is shorter than one period of {period}"),
                        "it must be at least one period",
                    ));
                }
                checked("--duration", "number of jobs", jobs, &allowed)
            };
            experiment.workload.jobs = jobs(experiment.workload.period)?;
            for trial in &mut experiment.trials {
                trial.jobs = trial.period.map(jobs).transpose()?;
                trial.forget_own_jobs();
            }
        }
        if let Some(jobs) = self.jobs {
            experiment.workload.jobs = checked("--jobs", "number of jobs", jobs, &allowed)?;
            for trial in &mut experiment.trials {
                trial.jobs = None;
                trial.forget_own_jobs();
            }
        }
        scale_override::refuse(self, experiment)?;
        let by_deadline = |scale: &Scale| scale.reserve == Some(Enforcer::Deadline);
        let holds = self.reserve == Some(Some(Enforcer::Deadline))
            || self.reserve.is_none() && experiment.scale.as_ref().is_some_and(by_deadline);
        if experiment.workload.program.is_some() && holds {
            return Err(InputError::new(
                "--reserve deadline",
                "a thread of SCHED_DEADLINE cannot start a program",
                "use --reserve rt-cgroup, or none",
            ));
        }
        for &kind in &self.loads {
            add_load(experiment, kind)?;
        }
        if let Some(share) = self.decide {
            decide(experiment, share)?;
        }
        if !self.until.is_empty() {
            experiment.go_on_until(self.until.clone())?;
        }
        if let Some(rounds) = self.rounds {
            experiment.rounds = checked("--rounds", "number of rounds", rounds, &Limits::ROUNDS)?;
        }
        if !self.cpus.is_empty() {
            experiment.scheduling.cpus.clone_from(&self.cpus);
        }
        if let Some(priority) = self.priority {
            let priority: u32 = checked("--priority", "priority", priority, &Limits::PRIORITY)?;
            experiment.scheduling.class = Class::Fifo {
                priority: u8::try_from(priority).unwrap_or(1),
            };
        }
        match (self.fifo, experiment.scheduling.class) {
            (Some(false), _) => experiment.scheduling.class = Class::Other,
            (Some(true), Class::Other) => {
                experiment.scheduling.class = Class::Fifo { priority: 80 };
            }
            _ => {}
        }
        if let Some(user) = &self.rootless_user {
            experiment.rootless_user = Some(user.clone());
        }
        scale_override::apply(self, experiment)?;
        if experiment.tasks.is_some() {
            if let Some(reserve) = self.reserve {
                experiment.hold_all(reserve)?;
            }
            experiment
                .check_reservations(self.reserve == Some(None))
                .map_err(|(what, fix)| InputError::new(experiment.name.clone(), what, fix))?;
        }
        experiment.check_stages()
    }
}

impl Experiment {
    /// Leaves out trials with virtual machines, which take seconds to boot, if there are others.
    pub fn without_machines(&mut self) {
        let is_other = |trial: &TrialPlan| !trial.engines().any(|engine| engine.is_machine());
        if self.trials.iter().any(is_other) {
            self.trials.retain(is_other);
            self.keep_known_baseline();
        }
    }

    /// The first remaining trial becomes the baseline if the baseline was removed.
    pub(crate) fn keep_known_baseline(&mut self) {
        if let (None, Some(first)) = (self.trial(&self.baseline), self.trials.first()) {
            self.baseline = first.name.clone();
        }
    }
}

/// Trials with their own period are kept only if it is this one; all others get it.
fn set_period(experiment: &mut Experiment, period: Duration) -> Result<(), InputError> {
    let own: Vec<Duration> = experiment.trials.iter().filter_map(|t| t.period).collect();
    (experiment.trials).retain(|trial| trial.period.is_none_or(|own| own == period));
    if experiment.trials.is_empty() {
        let mut periods: Vec<String> = own.iter().map(Duration::to_string).collect();
        periods.dedup();
        return Err(InputError::new(
            "--period",
            format!("no trial of `{}` has a period of {period}", experiment.name),
            format!("its periods are {}", periods.join(", ")),
        ));
    }
    experiment.keep_known_baseline();
    experiment.workload.period = period;
    Ok(())
}

/// Adds a load to every trial that has no load of its name.
fn add_load(experiment: &mut Experiment, kind: LoadKind) -> Result<(), InputError> {
    if kind == LoadKind::Custom {
        return Err(InputError::new(
            "--load",
            "the load `custom` needs a command",
            "write it into an experiment file",
        ));
    }
    for trial in &mut experiment.trials {
        if trial.loads.iter().all(|load| load.name != kind.name()) {
            trial.loads.push(LoadPlan::new(kind));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineKind;

    fn experiment() -> Experiment {
        Experiment::parse(
            "x",
            "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"crun\"]\n",
        )
        .unwrap()
    }

    #[test]
    fn the_later_option_wins_over_quick() {
        let mut e = experiment();
        let overrides = Overrides {
            quick: true,
            jobs: Some(7),
            ..Overrides::default()
        };
        overrides.apply(&mut e).unwrap();
        assert_eq!((e.workload.jobs, e.rounds), (7, 5));
    }

    #[test]
    fn a_smoke_run_counts_the_trials_that_are_left() {
        let text = |turns: &str| {
            format!(
                "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n{turns}\n[matrix]\n\
                 cells = [[\"bare\"], [\"crun\"], [\"runc\"], [\"podman\"]]\nloads = [\"idle\", \"cpu\", \"disk\", \"net-dev\"]\n"
            )
        };
        let rounds = |turns: &str, engines: &[EngineKind]| {
            let mut e = Experiment::parse("x", &text(turns)).unwrap();
            let overrides = Overrides {
                quick: true,
                engines: engines.to_vec(),
                ..Overrides::default()
            };
            overrides.apply(&mut e).unwrap();
            (e.trials.len(), e.rounds, e.workload.jobs)
        };
        let two = [EngineKind::Bare, EngineKind::Crun];
        assert_eq!(rounds("", &[]), (16, 1, 500));
        assert_eq!(rounds("", &two), (8, 5, 200));
        assert_eq!(rounds("[turns]", &[]), (16, 3, 125));
        assert_eq!(rounds("[turns]", &two), (8, 5, 250));
    }

    /// Of jobs every 100 ms, eight trials would take 72 s for two turns in each of five rounds.
    #[test]
    fn turns_of_slow_jobs_are_fewer_in_a_smoke_run() {
        let jobs = |period: &str| {
            let text = format!(
                "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\nperiod = \"{period}\"\n[turns]\n[matrix]\n\
                 cells = [[\"bare\"], [\"crun\"], [\"runc\"], [\"podman\"]]\nloads = [\"idle\", \"cpu\"]\n"
            );
            let mut e = Experiment::parse("x", &text).unwrap();
            quick(&mut e);
            assert_eq!(e.rounds, 5);
            let jobs = e.workload.jobs;
            assert_eq!(e.halve_turns(), e.workload.jobs < jobs);
            assert!(e.workload.jobs == jobs || e.workload.jobs >= 14);
            jobs
        };
        assert_eq!(jobs("1ms"), 250);
        // Turns of seven jobs, and two periods between them: 90 ms, of which 300 ms hold three.
        assert_eq!(jobs("10ms"), 21);
        assert_eq!(jobs("100ms"), 7);
    }

    #[test]
    fn a_priority_of_0_or_100_is_refused() {
        for priority in [0, 100, -3, i64::MAX] {
            let overrides = Overrides {
                priority: Some(priority),
                ..Overrides::default()
            };
            let error = overrides.apply(&mut experiment()).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("--priority: the priority is {priority}; it must be 1 to 99")
            );
        }
    }

    #[test]
    fn machines_are_left_out_where_something_else_is_there() {
        let with = |cells: &[&str]| {
            let trials: String = (cells.iter().enumerate())
                .map(|(at, cells)| format!("[[trial]]\nname = \"t{at}\"\ncells = [{cells}]\n"))
                .collect();
            let text = format!("schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n{trials}");
            let mut e = Experiment::parse("x", &text).unwrap();
            e.without_machines();
            let names: Vec<String> = e.trials.into_iter().map(|trial| trial.name).collect();
            (e.baseline, names.join(" "))
        };
        let said = |baseline: &str, names: &str| (baseline.to_owned(), names.to_owned());
        let machine = "\"qemu\"";
        assert_eq!(
            with(&[machine, "\"bare\"", "\"crun\""]),
            said("t1", "t1 t2")
        );
        assert_eq!(with(&[machine, machine]), said("t0", "t0 t1"));
    }

    #[test]
    fn selecting_engines_moves_the_baseline() {
        let mut e = experiment();
        let overrides = Overrides {
            engines: vec![EngineKind::Crun],
            ..Overrides::default()
        };
        overrides.apply(&mut e).unwrap();
        assert_eq!(e.baseline, "crun");
        let none = Overrides {
            engines: vec![EngineKind::Docker],
            ..Overrides::default()
        };
        assert!(none.apply(&mut e).is_err());
    }
}
