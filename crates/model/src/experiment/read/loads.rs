//! Reading loads, each a name or a table.

use crate::experiment::keys::PLACES;
use crate::file::{Faults, Node, Value};
use crate::load::IDLE;
use crate::{EngineKind, LoadForm, LoadKind, LoadPlan};

/// `load` or `loads` of a `[[trial]]`; empty when it has neither, or `idle`.
pub(super) fn of_trial(table: &Node<'_>, faults: &mut Faults<'_>) -> Vec<LoadPlan> {
    if table.says("load") && table.says("loads") {
        let what = "this trial has both `load` and `loads`";
        faults.report(
            &table.place,
            &["loads"],
            what,
            "write all of them in `loads`",
        );
    }
    let loads = table.any("loads").or_else(|| table.any("load"));
    loads.map_or_else(Vec::new, |value| point(&value, faults))
}

/// A load, or a list of loads that run together.
pub(super) fn point(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<LoadPlan> {
    let Some(items) = value.items() else {
        return match value.text() {
            Some(IDLE) => Vec::new(),
            _ => one(value, faults).into_iter().collect(),
        };
    };
    if let [only] = items.as_slice()
        && only.text() == Some(IDLE)
    {
        return Vec::new();
    }
    let mut loads: Vec<LoadPlan> = Vec::with_capacity(items.len());
    for item in &items {
        if item.text() == Some(IDLE) {
            let what = "`idle` is the absence of load and cannot be combined with loads";
            faults.report_at(&item.place, what, "remove it or the others");
            continue;
        }
        let Some(load) = one(item, faults) else {
            continue;
        };
        if loads.iter().any(|other| other.name == load.name) {
            let what = format!("this trial has two loads named `{}`", load.name);
            faults.report_at(&item.place, what, "give one a different `name`");
        }
        loads.push(load);
    }
    loads
}

fn one(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<LoadPlan> {
    if let Some(table) = value.table() {
        return full(&table, faults);
    }
    let kind: LoadKind = value.text()?.parse().ok()?;
    if kind == LoadKind::Custom {
        let what = "the load `custom` needs a command";
        let fix = "write { kind = \"custom\", command = [\"stress\", \"-c\", \"1\"] }";
        faults.report_at(&value.place, what, fix);
        faults.doubt(&value.place);
    }
    Some(LoadPlan::new(kind))
}

fn full(table: &Node<'_>, faults: &mut Faults<'_>) -> Option<LoadPlan> {
    let kind: LoadKind = table.some_text("kind")?.parse().ok()?;
    let mut load = LoadPlan::new(kind);
    if let Some(name) = table.some_text("name") {
        if name == IDLE {
            let what = format!("`{name}` cannot be the name of a load");
            faults.report(
                &table.place,
                &["name"],
                what,
                "`idle` is the absence of load",
            );
        }
        load.name = name;
    }
    load.form = table.choice("form", &LoadForm::NAMES);
    load.command = table.texts("command");
    load.cpus = table.counts("cpus");
    let in_cell = table.choice("in", &PLACES) == Some(true);
    let engine: Option<EngineKind> = table.some_text("engine").and_then(|name| name.parse().ok());
    load.cell = in_cell.then(|| engine.unwrap_or(EngineKind::Embedded));
    let mut fault = |keys: &[&str], what: String, fix: &str| {
        faults.report(&table.place, keys, what, fix);
    };
    if engine.is_some() && !in_cell {
        fault(
            &["engine", "in"],
            "a load on the host has no engine".to_owned(),
            "set in = \"cell\" or remove the line",
        );
    }
    load.reservation = table.time("budget").zip(table.time("period"));
    let is_held = table.says("budget") || table.says("period");
    if is_held && (kind != LoadKind::Cpu || !in_cell) {
        fault(
            &["budget", "period"],
            "only the load `cpu` in a cell can be held to a budget".to_owned(),
            "set kind = \"cpu\" and in = \"cell\", or remove the lines",
        );
    } else if table.says("budget") != table.says("period") {
        fault(
            &["budget", "period"],
            "a load that is held has both `budget` and `period`".to_owned(),
            "add the other, or remove both",
        );
    } else if let Some((budget, period)) = load.reservation.filter(|(own, of)| own > of) {
        fault(
            &["budget"],
            format!("the budget of {budget} exceeds its period of {period}"),
            "give at most the period",
        );
    }
    let is_custom = kind == LoadKind::Custom;
    if is_custom && load.command.first().is_none_or(String::is_empty) {
        let (what, fix) = table.lacks("command", "[\"stress\", \"-c\", \"1\"]");
        fault(&["command"], what, &fix);
    } else if !is_custom && table.says("command") {
        fault(
            &["command"],
            format!("the load `{kind}` takes no command"),
            "remove the line or set kind = \"custom\"",
        );
    }
    if is_custom && load.form == Some(LoadForm::BuiltIn) {
        fault(
            &["form"],
            "a custom load is always a program".to_owned(),
            "remove the line",
        );
    }
    let is_program = is_custom || load.form == Some(LoadForm::Program);
    if is_program && in_cell {
        fault(
            &["in", "form"],
            "a cell contains nothing but timecell, so only built-in loads can run in it".to_owned(),
            "set form = \"built-in\" or in = \"host\"",
        );
    }
    Some(load)
}
