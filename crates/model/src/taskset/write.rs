//! A task set as a file that reads back to the same value.

use std::fmt::Write as _;

use super::{CellTask, Order, Policy, Refill, SCHEMA, TaskCell, TaskSet};

impl TaskSet {
    /// Writes the set as a file that [`TaskSet::parse`] reads back to the same value.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "schema = {SCHEMA}");
        if let Some(cpus) = self.cpus {
            let _ = writeln!(out, "cpus = {cpus}");
        }
        if self.refill == Refill::Together {
            out.push_str("refill = \"together\"\n");
        }
        if let Some(enforcer) = self.enforcer {
            let _ = writeln!(out, "enforcer = \"{}\"", enforcer.name());
        }
        for cell in &self.cells {
            write_cell(&mut out, cell);
        }
        out
    }
}

fn write_cell(out: &mut String, cell: &TaskCell) {
    let _ = writeln!(out, "\n[[cell]]\nname = {}", quoted(&cell.name));
    let _ = writeln!(out, "policy = \"{}\"", cell.policy.name());
    if let Some(order) = cell.policy.order() {
        let _ = writeln!(out, "order = \"{}\"", order.name());
    }
    if let (Some(cpus), None) = (cell.policy.cpus(), &cell.reservation) {
        let _ = writeln!(out, "cpus = {cpus}");
    }
    if let Some(reservation) = &cell.reservation {
        let _ = write!(
            out,
            "reservation = {{ budget = \"{}\", period = \"{}\"",
            reservation.budget, reservation.period
        );
        if reservation.deadline != reservation.period {
            let _ = write!(out, ", deadline = \"{}\"", reservation.deadline);
        }
        if let Some(cpus) = cell.policy.cpus() {
            let _ = write!(out, ", cpus = {cpus}");
        }
        out.push_str(" }\n");
    }
    if let Some(server) = &cell.server {
        let _ = writeln!(out, "server = \"{}\"", server.kind.name());
        if let Some(priority) = server.priority {
            let _ = writeln!(out, "priority = {priority}");
        }
        if let Some(cpu) = server.cpu {
            let _ = writeln!(out, "cpu = {cpu}");
        }
    }
    for task in &cell.tasks {
        let by_priority = cell.policy == Policy::EdfOverFixed;
        write_task(
            out,
            task,
            by_priority || cell.policy.order() == Some(Order::Priority),
        );
    }
}

fn write_task(out: &mut String, task: &CellTask, with_priority: bool) {
    let _ = writeln!(out, "\n[[cell.task]]\nname = {}", quoted(&task.name));
    let _ = writeln!(out, "wcet = \"{}\"", task.wcet);
    let _ = writeln!(out, "period = \"{}\"", task.period);
    if task.deadline != task.period {
        let _ = writeln!(out, "deadline = \"{}\"", task.deadline);
    }
    if let Some(high) = task.wcet_high {
        out.push_str("criticality = \"hi\"\n");
        if high != task.wcet {
            let _ = writeln!(out, "wcet_hi = \"{high}\"");
        }
    }
    for (key, time) in [("jitter", task.jitter), ("blocking", task.blocking)] {
        if time.ns() > 0 {
            let _ = writeln!(out, "{key} = \"{time}\"");
        }
    }
    if let Some(priority) = task.priority.filter(|_| with_priority) {
        let _ = writeln!(out, "priority = {priority}");
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
