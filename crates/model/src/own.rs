//! Cells of a trial that have a task of their own: `cells` names a table in place of an engine.

use toml::Spanned;
use toml::de::DeValue;

use crate::parse::{is_name, period_of, quoted};
use crate::reader::Table;
use crate::{
    Class, Duration, EngineKind, Experiment, InputError, Keep, Limits, Pacing, ProgramLoad,
    TrialPlan, Work, Workload, program,
};

const CELL: [&str; 9] = [
    "engine", "name", "program", "reports", "steps", "period", "deadline", "jobs", "priority",
];
const WANTED: &str =
    "an engine such as \"bare\", or a table such as { engine = \"crun\", period = \"10ms\" }";

/// What the task of one cell has in place of the trial's; all `None`: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnTask {
    /// What tables call the cell; unique in the trial.
    pub name: Option<String>,
    /// What a job does: the steps of `mac`, or a program.
    pub work: Option<Work>,
    /// The program, for [`Work::Program`].
    pub program: Option<ProgramLoad>,
    /// Time between releases.
    pub period: Option<Duration>,
    /// When a job must have ended, after its release.
    pub deadline: Option<Duration>,
    /// Activations; `None`: as many as take as long as the trial's.
    pub jobs: Option<u32>,
    /// Priority of SCHED_FIFO.
    pub priority: Option<u8>,
}

impl TrialPlan {
    /// Gives its cells so many jobs again as take as long as the trial.
    pub(crate) fn forget_own_jobs(&mut self) {
        for own in &mut self.own {
            own.jobs = None;
        }
    }
}

impl Experiment {
    /// The task of one cell of a trial: the trial's, with what the cell has of its own.
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

    /// Does something with every program that the experiment names.
    ///
    /// # Errors
    /// Those of what is done.
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
}

/// Engines and own tasks of a trial; the latter empty where no cell has any.
pub(crate) fn cells(
    table: &Table<'_>,
    keep: Keep,
) -> Result<(Vec<EngineKind>, Vec<OwnTask>), InputError> {
    let items = table
        .items("cells", "a list of engines such as [\"bare\"]")?
        .ok_or_else(|| table.missing("cells", "[\"bare\"]"))?;
    let cells: Vec<(EngineKind, OwnTask)> = (items.iter())
        .map(|item| cell(table, item, keep))
        .collect::<Result<_, _>>()?;
    let names: Vec<&String> = cells
        .iter()
        .filter_map(|(_, own)| own.name.as_ref())
        .collect();
    let twice = |(at, name): (usize, &&String)| names[..at].contains(name).then(|| (*name).clone());
    if let Some(name) = names.iter().enumerate().find_map(twice) {
        let what = format!("there are two cells named `{name}` in this trial");
        return Err(table.fault("cells", what, "give each its own name"));
    }
    if table.has("copies") && !names.is_empty() {
        let what = "`copies` would give several cells the same name";
        return Err(table.fault("copies", what, "remove it, or the names"));
    }
    let (engines, own): (Vec<EngineKind>, Vec<OwnTask>) = cells.into_iter().unzip();
    let has_own = own.iter().any(|own| *own != OwnTask::default());
    if has_own && table.has("competitors") {
        let what = "a task set has the tasks of its cells";
        return Err(table.fault("cells", what, "name engines only"));
    }
    Ok((engines, if has_own { own } else { Vec::new() }))
}

fn cell(
    table: &Table<'_>,
    item: &Spanned<DeValue<'_>>,
    keep: Keep,
) -> Result<(EngineKind, OwnTask), InputError> {
    let fault = |what: String| table.fault_at(item, what, "");
    match item.get_ref() {
        DeValue::String(name) => {
            let engine = name.parse().map_err(fault)?;
            Ok((engine, OwnTask::default()))
        }
        DeValue::Table(inner) => full(&table.inner("a cell", item, inner, &CELL)?, keep),
        other => Err(table.fault_at(
            item,
            format!("a cell is of type {}", other.type_str()),
            format!("it must be {WANTED}"),
        )),
    }
}

fn full(table: &Table<'_>, keep: Keep) -> Result<(EngineKind, OwnTask), InputError> {
    let engine = table
        .text("engine")?
        .ok_or_else(|| table.missing("engine", "\"crun\""))?;
    let engine = engine
        .parse()
        .map_err(|what: String| table.fault("engine", what, ""))?;
    let name = table.text("name")?.map(str::to_owned);
    if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
        return Err(table.fault(
            "name",
            format!("`{name}` is no name for a cell"),
            "use 1 to 64 letters, digits, `-` and `_`",
        ));
    }
    let steps = table.integer("steps", &Limits::STEPS)?;
    let is_program = program::KEYS.iter().any(|key| table.has(key));
    if is_program && steps.is_some() {
        return Err(table.fault("steps", "a program has no steps", "remove one of the two"));
    }
    let program = is_program.then(|| program::program(table)).transpose()?;
    let small = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
    let work = match small(steps) {
        Some(steps) => Some(Work::Mac { steps }),
        None => program.as_ref().map(ProgramLoad::work),
    };
    let priority = table.integer("priority", &Limits::PRIORITY)?;
    let own = OwnTask {
        name,
        work,
        program,
        period: period_of(table, "period")?,
        deadline: period_of(table, "deadline")?,
        jobs: small(table.integer("jobs", &keep.jobs())?),
        priority: priority.and_then(|priority| u8::try_from(priority).ok()),
    };
    Ok((engine, own))
}

/// Refuses own tasks that do not go with the rest of the experiment.
pub(crate) fn check(
    top: &Table<'_>,
    workload: &Workload,
    class: Class,
    trials: &[TrialPlan],
) -> Result<(), InputError> {
    for trial in trials {
        let refuse = |what: String, mend: &str| {
            let what = format!("trial `{}`: {what}", trial.name);
            Err(top.fault("trial", what, mend))
        };
        let own = &trial.own;
        if workload.work == Work::Busy && !own.is_empty() {
            let what = "a task set has the tasks of its cells";
            return refuse(what.to_owned(), "name engines only");
        }
        if workload.work == Work::Timer && own.iter().any(|own| own.work.is_some()) {
            let what = "beside a `timer`, whose jobs take no time, no cell has work of its own";
            let mend = "set `kind` of [workload] to \"mac\" or \"program\"";
            return refuse(what.to_owned(), mend);
        }
        let is_endless = |work: Work| work == Work::Endless;
        if (own.iter())
            .any(|own| is_endless(own.work.unwrap_or(workload.work)) != is_endless(workload.work))
        {
            let what = "programs that end or tell their jobs stand beside one that is endless, and not the same is measured of both";
            return refuse(what.to_owned(), "make all of them endless, or none");
        }
        if workload.work == Work::Endless
            && own
                .iter()
                .any(|own| own.jobs.or(own.deadline.map(|_| 1)).is_some())
        {
            let what = "an endless program has neither jobs nor a deadline";
            return refuse(
                what.to_owned(),
                "say with `period` how long it runs in each round",
            );
        }
        if class == Class::Other && own.iter().any(|own| own.priority.is_some()) {
            let what = "class \"other\" has no priority";
            return refuse(
                what.to_owned(),
                "remove `priority`, or set class = \"fifo\"",
            );
        }
        let reports = |own: &OwnTask| (own.program.as_ref()).is_some_and(ProgramLoad::reports);
        if workload.pacing == Pacing::Relative && own.iter().any(reports) {
            let what = "the jobs that a program reports are periodic";
            return refuse(what.to_owned(), "set pacing = \"periodic\"");
        }
        let without = match own.as_slice() {
            [] => true,
            own => own.iter().any(|own| own.work.is_none()),
        };
        if workload.work == Work::Program && workload.program.is_none() && without {
            let what = "a cell has no `program`, and [workload] names none";
            let mend = "add a line such as `program = [\"./app\"]` to [workload], or to each cell";
            return refuse(what.to_owned(), mend);
        }
    }
    Ok(())
}

/// Writes a cell as [`cells`] reads it.
pub(crate) fn to_toml(engine: EngineKind, own: Option<&OwnTask>) -> String {
    let engine = quoted(engine.name());
    let Some(own) = own.filter(|own| **own != OwnTask::default()) else {
        return engine;
    };
    let mut parts = vec![format!("engine = {engine}")];
    parts.extend((own.name.as_ref()).map(|name| format!("name = {}", quoted(name))));
    if let Some(Work::Mac { steps }) = own.work {
        parts.push(format!("steps = {steps}"));
    }
    parts.extend((own.program.iter()).flat_map(program::lines));
    parts.extend(own.period.map(|period| format!("period = \"{period}\"")));
    parts.extend((own.deadline).map(|deadline| format!("deadline = \"{deadline}\"")));
    parts.extend(own.jobs.map(|jobs| format!("jobs = {jobs}")));
    parts.extend((own.priority).map(|priority| format!("priority = {priority}")));
    format!("{{ {} }}", parts.join(", "))
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
                "x.toml:7: a cell is of type integer; it must be an engine",
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
                "is no name for a cell",
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
                "beside a `timer`",
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
