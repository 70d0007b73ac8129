//! A mission as a file that reads back to the same value.

use std::fmt::Write as _;
use std::path::Path;

use super::{Arrivals, Cell, Latency, Mission, Restart, Rule, SCHEMA, Task, Uids};
use crate::Enforcer;
use crate::file::{Field, quoted};
use crate::mission::{Observed, RestartPolicy};
use crate::taskset::Reservation;

impl Mission {
    /// Writes the mission as a file that [`super::MissionFile::parse`] reads back to the same value. Defaults that depend on
    /// nothing are written out, so that the file says what is in force.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "schema = {SCHEMA}\nname = {}", quoted(&self.name));
        if !self.description.is_empty() {
            let _ = writeln!(out, "description = {}", quoted(&self.description));
        }
        let enforcer = self.enforcer.map_or("auto", Enforcer::name);
        let _ = writeln!(out, "enforcer = \"{enforcer}\"");
        if !self.cpus.is_empty() {
            let _ = writeln!(out, "cpus = {:?}", self.cpus);
        }
        match &self.latency {
            None => {}
            Some(Latency::Allowance(time)) => {
                let _ = writeln!(out, "latency = \"{time}\"");
            }
            Some(Latency::Run(run)) => {
                let _ = writeln!(out, "latency_run = {}", path(run));
            }
        }
        if let Some(run) = &self.supply_run {
            let _ = writeln!(out, "supply_run = {}", path(run));
        }
        texts(&mut out, "notify", &self.notify);
        texts(&mut out, "shed", &self.shed);
        let Uids { lowest, highest } = self.uids;
        let _ = writeln!(out, "uids = {{ lowest = {lowest}, highest = {highest} }}");
        let own = &self.supervisor;
        let _ = writeln!(
            out,
            "supervisor = {{ class = \"{}\", budget = \"{}\", period = \"{}\"{} }}",
            own.class.name(),
            own.budget,
            own.period,
            match own.cpus.as_slice() {
                [] => String::new(),
                cpus => format!(", cpus = {cpus:?}"),
            }
        );
        if let Some(modes) = &self.modes {
            let _ = writeln!(
                out,
                "\n[modes]\npolicy = \"{}\"\nreturn_after = \"{}\"",
                modes.policy.name(),
                modes.return_after
            );
        }
        for cell in &self.cells {
            write_cell(&mut out, cell);
        }
        out
    }
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn texts(out: &mut String, key: &str, texts: &[String]) {
    if !texts.is_empty() {
        let _ = writeln!(out, "{key} = {}", list(texts));
    }
}

fn write_cell(out: &mut String, cell: &Cell) {
    let _ = writeln!(out, "\n[[cell]]\nname = {}", quoted(&cell.name));
    if !cell.description.is_empty() {
        let _ = writeln!(out, "description = {}", quoted(&cell.description));
    }
    let image = match &cell.image {
        super::Image::Reference(name) => quoted(name),
        other => path(other.path().unwrap_or(Path::new(""))),
    };
    let _ = writeln!(out, "image = {{ {} = {image} }}", cell.image.key());
    texts(out, "command", &cell.command);
    texts(out, "args", &cell.args);
    if !cell.env.is_empty() {
        let env: Vec<String> = (cell.env.iter())
            .map(|(name, value)| format!("{} = {}", key(name), quoted(value)))
            .collect();
        let _ = writeln!(out, "env = {{ {} }}", env.join(", "));
    }
    if let Some(workdir) = &cell.workdir {
        let _ = writeln!(out, "workdir = {}", path(workdir));
    }
    let _ = writeln!(out, "engine = \"{}\"", cell.engine);
    if let Some(class) = cell.class {
        let _ = writeln!(out, "class = \"{}\"", class.name());
    }
    let _ = writeln!(out, "criticality = \"{}\"", cell.criticality.name());
    if !cell.is_high() {
        let _ = writeln!(out, "when_shed = \"{}\"", cell.when_shed.name());
    }
    if !cell.cpus.is_empty() {
        let _ = writeln!(out, "cpus = {:?}", cell.cpus);
    }
    if let Some(band) = cell.priorities {
        let _ = writeln!(
            out,
            "priorities = {{ lowest = {}, highest = {} }}",
            band.lowest, band.highest
        );
    }
    if let Some(reservation) = &cell.reservation {
        write_reservation(out, reservation, cell);
    }
    if cell.only_tasks {
        out.push_str("only_tasks = true\n");
    }
    texts(out, "after", &cell.after);
    texts(out, "needs", &cell.needs);
    let _ = writeln!(
        out,
        "ready = \"{}\"\nstart_timeout = \"{}\"\nstop_timeout = \"{}\"",
        cell.ready.name(),
        cell.start_timeout,
        cell.stop_timeout
    );
    write_restart(out, &cell.restart);
    let mut writer = crate::file::Writer::at("cell");
    cell.rights.write("rights", &mut writer);
    out.push_str(&writer.text());
    for task in &cell.tasks {
        write_task(out, task);
    }
    for rule in &cell.health {
        write_rule(out, rule);
    }
}

/// A key that may need quotation marks.
fn key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.bytes().all(bare) {
        name.to_owned()
    } else {
        // A basic string, since a key is never one of several lines.
        let mut text = String::from("\"");
        for c in name.chars() {
            match c {
                '"' | '\\' => {
                    text.push('\\');
                    text.push(c);
                }
                c if c.is_control() => {
                    let _ = write!(text, "\\U{:08X}", u32::from(c));
                }
                c => text.push(c),
            }
        }
        text.push('"');
        text
    }
}

fn write_reservation(out: &mut String, reservation: &Reservation, cell: &Cell) {
    let _ = write!(
        out,
        "reservation = {{ budget = \"{}\", period = \"{}\"",
        reservation.budget, reservation.period
    );
    if reservation.deadline != reservation.period {
        let _ = write!(out, ", deadline = \"{}\"", reservation.deadline);
    }
    if let Some(budget) = cell.budget_high {
        let _ = write!(out, ", budget_hi = \"{budget}\"");
    }
    out.push_str(" }\n");
}

fn write_restart(out: &mut String, restart: &Restart) {
    let policy: RestartPolicy = restart.policy;
    let _ = writeln!(
        out,
        "\n[cell.restart]\npolicy = \"{}\"\nbackoff_min = \"{}\"\nbackoff_max = \"{}\"\nlimit = {}\nwindow = \"{}\"",
        policy.name(),
        restart.backoff_min,
        restart.backoff_max,
        restart.limit,
        restart.window
    );
}

fn write_task(out: &mut String, task: &Task) {
    let timing = &task.timing;
    let _ = writeln!(
        out,
        "\n[[cell.task]]\nname = {}\nwcet = \"{}\"\nperiod = \"{}\"\njitter = \"{}\"\nblocking = \"{}\"",
        quoted(&timing.name),
        timing.wcet,
        timing.period,
        timing.jitter,
        timing.blocking
    );
    if timing.deadline != timing.period {
        let _ = writeln!(out, "deadline = \"{}\"", timing.deadline);
    }
    if let Some(high) = timing.wcet_high.filter(|high| *high != timing.wcet) {
        let _ = writeln!(out, "wcet_hi = \"{high}\"");
    }
    if let Some(priority) = timing.priority {
        let _ = writeln!(out, "priority = {priority}");
    }
    if let Some(thread) = &task.thread {
        let _ = writeln!(out, "thread = {}", quoted(thread));
    }
    if task.arrivals != Arrivals::Periodic {
        let _ = writeln!(out, "arrivals = \"{}\"", task.arrivals.name());
    }
}

fn write_rule(out: &mut String, rule: &Rule) {
    let _ = writeln!(
        out,
        "\n[[cell.health]]\nwhen = \"{}\"\ndo = \"{}\"\ntimes = {}\ncooldown = \"{}\"",
        rule.when.name(),
        rule.action.name(),
        rule.times,
        rule.cooldown
    );
    if let Some(task) = rule.when.task() {
        let _ = writeln!(out, "task = {}", quoted(task));
    }
    let _ = match &rule.when {
        Observed::Exit { status } => writeln!(out, "status = \"{}\"", status.name()),
        Observed::Heartbeat { timeout, .. } | Observed::NoProgress { timeout } => {
            writeln!(out, "timeout = \"{timeout}\"")
        }
        Observed::DeadlineMisses { misses, jobs, .. } => {
            writeln!(out, "misses = {misses}\njobs = {jobs}")
        }
        Observed::BudgetExhausted { periods } => writeln!(out, "periods = {periods}"),
        Observed::MemoryLimit
        | Observed::Overrun { .. }
        | Observed::Unproved { .. }
        | Observed::RestartLimit => Ok(()),
    };
    if let Some(window) = rule.window {
        let _ = writeln!(out, "window = \"{window}\"");
    }
    if !rule.escalate.is_empty() {
        let steps: Vec<String> = (rule.escalate.iter())
            .map(|step| {
                format!(
                    "{{ after = {}, do = \"{}\" }}",
                    step.after,
                    step.action.name()
                )
            })
            .collect();
        let _ = writeln!(out, "escalate = [{}]", steps.join(", "));
    }
}
