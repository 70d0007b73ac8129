//! Cells of a trial that have their own task: `cells` holds a table instead of an engine's name.

use std::path::Path;

use super::{Experiment, Keep, Pacing, ProgramJobs, ProgramLoad, TrialPlan, Work, Workload};
use crate::InputError;

impl Experiment {
    /// The task of one cell of a trial: the trial's, with the cell's own settings.
    pub fn task_of(&self, trial: &TrialPlan, place: usize) -> Workload {
        let whole = self.workload_of(trial);
        let Some(own) = trial.own.get(place) else {
            return whole;
        };
        let period = own.period.unwrap_or(whole.period);
        let is_another = own.work.is_some() || own.period.is_some();
        let as_long = || {
            let length = i128::from(whole.period.ns()) * i128::from(whole.jobs);
            let jobs = length / i128::from(period.ns().max(1));
            u32::try_from(jobs.max(1)).unwrap_or(u32::MAX)
        };
        Workload {
            work: own.work.unwrap_or(whole.work),
            program: match own.work {
                Some(_) => own.program.clone(),
                None => whole.program,
            },
            period,
            // That of another task says nothing of this one.
            deadline: own.deadline.or(whole.deadline.filter(|_| !is_another)),
            jobs: match own.work.unwrap_or(whole.work) {
                Work::Endless => 1,
                _ => own.jobs.unwrap_or_else(as_long),
            },
            pacing: whole.pacing,
            stage: whole.stage,
        }
    }

    /// The tasks of a trial: one, unless cells have their own.
    pub fn tasks_of(&self, trial: &TrialPlan) -> Vec<Workload> {
        match trial.own.len() {
            0 => vec![self.workload_of(trial)],
            cells => (0..cells).map(|cell| self.task_of(trial, cell)).collect(),
        }
    }

    /// The programs that its cells run, each once.
    pub fn programs(&self) -> Vec<ProgramLoad> {
        let mut found: Vec<ProgramLoad> = Vec::new();
        let tasks = self.trials.iter().flat_map(|trial| self.tasks_of(trial));
        for program in tasks.filter_map(|task| task.program) {
            if !found.contains(&program) {
                found.push(program);
            }
        }
        found
    }

    /// Calls `change` for every program that the experiment names.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn each_program<E>(
        &mut self,
        mut change: impl FnMut(&mut ProgramLoad) -> Result<(), E>,
    ) -> Result<(), E> {
        let own = self.trials.iter_mut().flat_map(|trial| &mut trial.own);
        let own = own.filter_map(|own| own.program.as_mut());
        self.workload
            .program
            .iter_mut()
            .chain(own)
            .try_for_each(&mut change)
    }

    /// Has the relative paths of its virtual machines begin at a directory.
    pub fn beside(&mut self, dir: &Path) {
        self.machine = self.machine.beside(dir);
        for trial in &mut self.trials {
            trial.machine = trial.machine.beside(dir);
        }
    }
}

impl Experiment {
    /// Sets the program that does the jobs.
    ///
    /// # Errors
    /// When the experiment's work cannot be a program's.
    pub fn set_program(&mut self, program: ProgramLoad) -> Result<(), InputError> {
        if self.tasks.is_some() {
            return Err(InputError::new(
                "--program",
                format!("`{}` runs its own task set", self.name),
                "use scenario overhead, concurrency, latency or scale, or an experiment file",
            ));
        }
        if program.jobs == ProgramJobs::Endless {
            self.turns = None;
        }
        if program.jobs != ProgramJobs::Executions {
            self.workload.pacing = Pacing::Periodic;
        }
        if program.jobs == ProgramJobs::Endless {
            if self.scale.is_some() || self.keep != Keep::Samples {
                return Err(InputError::new(
                    "--program",
                    "a program that neither ends nor reports its jobs is started and stopped in each round, one cell at a time",
                    "use it without [scale] and histograms",
                ));
            }
            self.workload.deadline = None;
            self.workload.jobs = 1;
            for trial in &mut self.trials {
                trial.jobs = None;
                trial.forget_own_jobs();
            }
        }
        self.workload.work = program.work();
        self.workload.program = Some(program);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(workload: &str, cells: &str) -> Result<Experiment, String> {
        let text = format!(
            "schema = 1\nname = \"x\"\n[workload]\n{workload}\n[[trial]]\nname = \"both\"\ncells = [{cells}]\n"
        );
        Experiment::parse("x.toml", &text).map_err(|error| error.to_string())
    }

    const TWO: &str = "{ engine = \"crun\", name = \"control\", program = [\"./c\", \"5\"], reports = true, period = \"1ms\", \
        deadline = \"800us\", priority = 90 }, { engine = \"podman\", program = [\"./v\"], jobs = 7 }, \"bare\"";

    #[test]
    fn cells_have_what_they_say_and_the_rest_of_the_trial() {
        let workload =
            "kind = \"mac\"\nsteps = 9\nperiod = \"100ms\"\ndeadline = \"50ms\"\njobs = 20";
        let read = parse(workload, TWO).unwrap();
        let trial = &read.trials[0];
        let tasks: Vec<Workload> = (0..3).map(|cell| read.task_of(trial, cell)).collect();
        let program = |at: usize| tasks[at].program.as_ref().map(ProgramLoad::line);
        assert_eq!(program(0).as_deref(), Some("./c 5"));
        // As long as the trial: 2 s.
        assert_eq!((tasks[0].jobs, tasks[0].period.ns()), (2_000, 1_000_000));
        assert_eq!(tasks[0].deadline_ns(), Some(800_000));
        assert_eq!((tasks[1].jobs, tasks[1].period.ns()), (7, 100_000_000));
        // The deadline of another task is not this one's.
        assert_eq!(tasks[1].deadline_ns(), Some(100_000_000));
        assert_eq!(tasks[2], read.workload);
        assert_eq!(trial.own[0].priority, Some(90));
        assert_eq!(read.programs().len(), 2);
        assert_eq!(read.jobs(), (7, 2_000));
        let again = Experiment::parse("again", &read.to_toml()).unwrap();
        assert_eq!(again, read);
    }

    #[test]
    fn a_list_of_engines_has_no_tasks_of_its_own() {
        let read = parse("kind = \"timer\"", "\"bare\", { engine = \"bare\" }").unwrap();
        assert!(read.trials[0].own.is_empty());
        assert!(read.to_toml().contains("cells = [\"bare\", \"bare\"]"));
    }

    #[test]
    fn every_cell_may_bring_its_program() {
        let both = "{ engine = \"bare\", program = [\"./a\"] }, { engine = \"bare\", steps = 5 }";
        let read = parse("kind = \"program\"", both).unwrap();
        assert_eq!(
            Experiment::parse("again", &read.to_toml())
                .unwrap()
                .workload
                .program,
            None
        );
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let mac = "kind = \"mac\"";
        for (workload, cells, told) in [
            (
                mac,
                "3",
                "x.toml:7: an item of `cells` is of type integer; it must be an engine",
            ),
            (
                mac,
                "{ engine = \"crum\" }",
                "unknown engine `crum`; did you mean `crun`?",
            ),
            (mac, "{ steps = 3 }", "a cell has no `engine`"),
            (
                mac,
                "{ engine = \"bare\", peroid = \"1ms\" }",
                "did you mean `period`?",
            ),
            (
                mac,
                "{ engine = \"bare\", name = \"a b\" }",
                "cannot be part of a directory name",
            ),
            (
                mac,
                "{ engine = \"bare\", steps = 3, program = [\"a\"] }",
                "a program has no steps",
            ),
            (mac, "{ engine = \"bare\", reports = true }", "`program`"),
            (
                mac,
                "{ engine = \"bare\", name = \"a\" }, { engine = \"bare\", name = \"a\" }",
                "two cells named `a`",
            ),
            (mac, "{ engine = \"bare\", period = \"1us\" }", "10us to 1h"),
            (
                "kind = \"timer\"",
                "{ engine = \"bare\", steps = 3 }",
                "with kind \"timer\"",
            ),
            (
                "kind = \"program\"",
                "\"bare\"",
                "a cell has no `program`, and [workload] names none",
            ),
            (
                "kind = \"mac\"\npacing = \"relative\"",
                "{ engine = \"bare\", program = [\"a\"], reports = true }",
                "set pacing = \"periodic\"",
            ),
        ] {
            let error = parse(workload, cells).unwrap_err();
            assert!(error.contains(told), "{cells}: {error}");
        }
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\n[scheduling]\nclass = \"other\"\n[[trial]]\ncells = [{ engine = \"bare\", priority = 9 }]\n";
        let error = Experiment::parse("x", text).unwrap_err().to_string();
        assert!(error.contains("has no priority"), "{error}");
    }
}
