//! An experiment as a file that reads back to the same value.

use std::fmt::Write as _;

use super::turns::CATCH_UP;
use super::{
    Class, Counters, ExecutionStage, Experiment, Keep, OwnTask, ProgramJobs, ProgramLoad, SCHEMA,
    Scale, TaskLoad, TrialPlan, Turns, Work,
};
use crate::file::{Writer, quoted};
use crate::taskset::TaskCell;
use crate::{EngineKind, LoadPlan, Machine};

impl Experiment {
    /// Writes the experiment as a file that [`Experiment::parse`] reads back to the same value.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "schema = {SCHEMA}");
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        let _ = writeln!(out, "question = {}", quoted(&self.question));
        let _ = writeln!(out, "rounds = {}", self.rounds);
        let _ = writeln!(out, "baseline = {}", quoted(&self.baseline));
        machine(&mut out, &self.machine);
        if let Some(user) = &self.rootless_user {
            let _ = writeln!(out, "rootless_user = {}", quoted(user));
        }
        if let Keep::Histograms { interval } = self.keep {
            let _ = writeln!(out, "record = \"histogram\"\ninterval = \"{interval}\"");
        }
        if !self.until.is_empty() {
            let conditions: Vec<String> = (self.until.iter())
                .map(|each| quoted(&each.to_string()))
                .collect();
            let _ = writeln!(out, "until = [{}]", conditions.join(", "));
        }
        let _ = match self.counters {
            Counters::None => Ok(()),
            Counters::Windows => writeln!(out, "counters = \"window\""),
            Counters::WhereCheap => writeln!(out, "counters = true"),
            Counters::Activations => writeln!(out, "counters = \"activation\""),
        };
        let workload = &self.workload;
        let _ = writeln!(out, "\n[workload]\nkind = \"{}\"", workload.work.name());
        if let Work::Mac { steps } = workload.work {
            let _ = writeln!(out, "steps = {steps}");
        }
        if let Some(own) = &workload.program {
            program(&mut out, own);
        }
        if let Some(set) = &self.tasks {
            tasks(&mut out, set);
        } else {
            let is_endless = workload.work == Work::Endless;
            if !is_endless {
                let _ = writeln!(out, "jobs = {}", workload.jobs);
            }
            let _ = writeln!(out, "period = \"{}\"", workload.period);
            if !is_endless {
                let _ = writeln!(out, "pacing = \"{}\"", workload.pacing.name());
            }
            if let Some(deadline) = workload.deadline {
                let _ = writeln!(out, "deadline = \"{deadline}\"");
            }
            stage(
                &mut out,
                Some(workload.stage).filter(|stage| *stage != ExecutionStage::InBand),
            );
        }
        let _ = match self.scheduling.class {
            Class::Fifo { priority } => writeln!(
                out,
                "\n[scheduling]\nclass = \"fifo\"\npriority = {priority}"
            ),
            Class::Other => writeln!(out, "\n[scheduling]\nclass = \"other\""),
        };
        let _ = writeln!(out, "cpus = {:?}", self.scheduling.cpus);
        if let Some(study) = &self.scale {
            // The trials follow from it.
            scale(&mut out, study);
            return out;
        }
        if let Some(own) = self.turns {
            turns(&mut out, own);
        }
        for trial in &self.trials {
            let cells = trial.cells.iter().enumerate();
            let cells: Vec<String> = cells
                .map(|(place, engine)| cell(*engine, trial.own.get(place)))
                .collect();
            let _ = writeln!(
                out,
                "\n[[trial]]\nname = {}\ncells = [{}]",
                quoted(&trial.name),
                cells.join(", ")
            );
            if !trial.loads.is_empty() {
                let loads: Vec<String> = trial.loads.iter().map(load).collect();
                let _ = writeln!(out, "loads = [{}]", loads.join(", "));
            }
            if let Some(period) = trial.period {
                let _ = writeln!(out, "period = \"{period}\"");
            }
            if let Some(jobs) = trial.jobs {
                let _ = writeln!(out, "jobs = {jobs}");
            }
            stage(&mut out, trial.stage);
            if trial.isolate {
                let _ = writeln!(out, "isolate = true");
            }
            if trial.competitors > 0 {
                let share = f64::from(trial.competitors) / 1000.0;
                let _ = writeln!(out, "competitors = {share:?}");
            }
            held(&mut out, trial);
            if !trial.cpus.is_empty() {
                let _ = writeln!(out, "cpus = {:?}", trial.cpus);
            }
            if trial.per_cpu {
                let _ = writeln!(out, "per_cpu = true");
            }
            machine(&mut out, &trial.machine);
        }
        out
    }
}

fn stage(out: &mut String, stage: Option<ExecutionStage>) {
    if let Some(stage) = stage {
        let _ = writeln!(out, "stage = \"{}\"", stage.name());
    }
}

/// A cell as an item of a list.
fn cell(engine: EngineKind, own: Option<&OwnTask>) -> String {
    let engine = quoted(engine.name());
    let Some(own) = own.filter(|own| **own != OwnTask::default()) else {
        return engine;
    };
    let mut parts = vec![format!("engine = {engine}")];
    parts.extend((own.name.as_ref()).map(|name| format!("name = {}", quoted(name))));
    if let Some(Work::Mac { steps }) = own.work {
        parts.push(format!("steps = {steps}"));
    }
    parts.extend((own.program.iter()).flat_map(lines));
    parts.extend(own.period.map(|period| format!("period = \"{period}\"")));
    parts.extend((own.deadline).map(|deadline| format!("deadline = \"{deadline}\"")));
    parts.extend(own.jobs.map(|jobs| format!("jobs = {jobs}")));
    parts.extend((own.priority).map(|priority| format!("priority = {priority}")));
    format!("{{ {} }}", parts.join(", "))
}

/// A load as written in a file.
fn load(load: &LoadPlan) -> String {
    if *load == LoadPlan::new(load.kind) {
        return quoted(&load.name);
    }
    let mut parts = vec![format!("kind = {}", quoted(load.kind.name()))];
    if load.name != load.kind.name() {
        parts.push(format!("name = {}", quoted(&load.name)));
    }
    if let Some(form) = load.form {
        parts.push(format!("form = {}", quoted(form.name())));
    }
    if !load.command.is_empty() {
        let words: Vec<String> = load.command.iter().map(|word| quoted(word)).collect();
        parts.push(format!("command = [{}]", words.join(", ")));
    }
    if !load.cpus.is_empty() {
        parts.push(format!("cpus = {:?}", load.cpus));
    }
    if let Some(engine) = load.cell {
        parts.push(format!("in = \"cell\", engine = {}", quoted(engine.name())));
    }
    if let Some((budget, period)) = load.reservation {
        parts.push(format!("budget = \"{budget}\", period = \"{period}\""));
    }
    format!("{{ {} }}", parts.join(", "))
}

/// The lines of `[workload]` below `kind`, and the tasks.
fn tasks(out: &mut String, load: &TaskLoad) {
    let _ = writeln!(out, "policy = \"{}\"", load.policy.name());
    if let Some(margin) = load.margin {
        let _ = writeln!(out, "margin = \"{margin}\"");
    }
    let _ = writeln!(out, "duration = \"{}\"", load.duration);
    if let Some(file) = &load.file {
        let _ = writeln!(out, "tasks = {}", quoted(file));
    }
    for cell in &load.cells {
        for task in &cell.tasks {
            let _ = writeln!(
                out,
                "\n[[workload.task]]\nname = {}\ncell = {}\nwcet = \"{}\"\nperiod = \"{}\"\ndeadline = \"{}\"",
                quoted(&task.name),
                quoted(&cell.name),
                task.wcet,
                task.period,
                task.deadline
            );
            if let Some(priority) = task.priority {
                let _ = writeln!(out, "priority = {priority}");
            }
        }
    }
    reservations(out, &load.cells);
}

/// The reservations as `[[workload.reservation]]`, after the tasks.
fn reservations(out: &mut String, cells: &[TaskCell]) {
    for cell in cells {
        if cell.reservation.is_none() && cell.server.is_none() {
            continue;
        }
        let _ = writeln!(
            out,
            "\n[[workload.reservation]]\ncell = {}",
            quoted(&cell.name)
        );
        if let Some(own) = cell.reservation {
            let _ = writeln!(
                out,
                "budget = \"{}\"\nperiod = \"{}\"",
                own.budget, own.period
            );
        }
        if let Some(cpu) = cell.server.and_then(|server| server.cpu) {
            let _ = writeln!(out, "cpu = {cpu}");
        }
        if let Some(priority) = cell.server.and_then(|server| server.priority) {
            let _ = writeln!(out, "priority = {priority}");
        }
    }
}

/// The line of a virtual machine, if anything is said of it.
fn machine(out: &mut String, machine: &Machine) {
    if *machine != Machine::default() {
        let _ = writeln!(out, "machine = {}", Writer::inline(machine));
    }
}

/// The lines of a trial about reservations.
fn held(out: &mut String, trial: &TrialPlan) {
    if let Some(enforcer) = trial.reserve {
        let _ = writeln!(out, "reserve = \"{}\"", enforcer.name());
    }
    if !trial.parts.is_empty() {
        let parts: Vec<String> = trial.parts.iter().map(|part| quoted(part)).collect();
        let _ = writeln!(out, "parts = [{}]", parts.join(", "));
    }
}

/// `[scale]`.
fn scale(out: &mut String, scale: &Scale) {
    let engines: Vec<String> = scale.engines.iter().map(|e| quoted(e.name())).collect();
    let _ = writeln!(
        out,
        "\n[scale]\nengines = [{}]\ncounts = {:?}\nfailure_limit = {:?}\nparallel = {}\ntotal_jobs = {}\nreserve = \"{}\"\nstarvation_limit = \"{}\"",
        engines.join(", "),
        scale.counts,
        f64::from(scale.failure_limit) / 1000.0,
        scale.parallel,
        scale.total_jobs,
        Scale::reserve_name(scale.reserve),
        scale.starvation_limit,
    );
    if let Some(bytes) = scale.memory_reserve {
        let _ = writeln!(out, "memory_reserve = \"{bytes}\"");
    }
}

/// `[turns]`.
fn turns(out: &mut String, turns: Turns) {
    let _ = writeln!(
        out,
        "\n[turns]\nlength = \"{}\"\nsettle = {}",
        turns.length, turns.settle
    );
    if turns.catch_up != CATCH_UP {
        let _ = writeln!(out, "catch_up = {}", turns.catch_up);
    }
    if let Some(share) = turns.decides_within() {
        let _ = writeln!(out, "decide = {share:?}");
    }
}

/// The lines of a program.
fn program(out: &mut String, program: &ProgramLoad) {
    for line in lines(program) {
        let _ = writeln!(out, "{line}");
    }
}

/// The keys of the program and their values.
fn lines(program: &ProgramLoad) -> Vec<String> {
    let words: Vec<String> = program.words.iter().map(|word| quoted(word)).collect();
    let jobs = match program.jobs {
        ProgramJobs::Endless => "endless = true".to_owned(),
        _ => format!("reports = {}", program.reports()),
    };
    let tasks: Vec<String> = (program.tasks.iter())
        .map(|task| {
            let name = quoted(&task.name);
            format!("{{ name = {name}, period = \"{}\" }}", task.period)
        })
        .collect();
    let mut lines = vec![format!("program = [{}]", words.join(", ")), jobs];
    if !tasks.is_empty() {
        lines.push(format!("reported = [{}]", tasks.join(", ")));
    }
    lines
}
