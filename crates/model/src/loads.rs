//! Loads in an experiment file: a name, or a table.

use toml::Spanned;
use toml::de::DeValue;

use crate::load::IDLE;
use crate::parse::{choice, is_name, quoted};
use crate::reader::Table;
use crate::{EngineKind, InputError, LoadForm, LoadKind, LoadPlan};

const LOAD: [&str; 7] = ["kind", "name", "form", "command", "cpus", "in", "engine"];
pub(crate) const LOADS_WANTED: &str = "a list of loads such as [\"idle\", \"ipc\"]";
const ONE_WANTED: &str =
    "a load such as \"cpu\" or { kind = \"custom\", command = [\"stress\", \"-c\", \"1\"] }";

/// `load` or `loads` of a `[[trial]]`; empty when it has neither, or `idle`.
pub(crate) fn of_trial(table: &Table<'_>) -> Result<Vec<LoadPlan>, InputError> {
    let one = table.item("load");
    let many = table.items("loads", LOADS_WANTED)?;
    match (one, many) {
        (Some(_), Some(_)) => Err(table.fault(
            "loads",
            "this trial has both `load` and `loads`",
            "write all of them in `loads`",
        )),
        (Some(item), None) => point(table, item),
        (None, Some(items)) => several(table, items),
        (None, None) => Ok(Vec::new()),
    }
}

/// One entry of the matrix: a load, or a list of loads that run together.
pub(crate) fn point(
    table: &Table<'_>,
    item: &Spanned<DeValue<'_>>,
) -> Result<Vec<LoadPlan>, InputError> {
    match item.get_ref() {
        DeValue::String(name) if name == IDLE => Ok(Vec::new()),
        DeValue::Array(items) => several(table, items),
        _ => one(table, item).map(|load| vec![load]),
    }
}

fn several(table: &Table<'_>, items: &[Spanned<DeValue<'_>>]) -> Result<Vec<LoadPlan>, InputError> {
    let idle = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str() == Some(IDLE);
    match items {
        [only] if idle(only) => return Ok(Vec::new()),
        _ => {}
    }
    let mut loads: Vec<LoadPlan> = Vec::with_capacity(items.len());
    for item in items {
        if idle(item) {
            return Err(table.fault_at(
                item,
                "`idle` is the absence of load and cannot stand beside others",
                "remove it or the others",
            ));
        }
        let load = one(table, item)?;
        if loads.iter().any(|other| other.name == load.name) {
            return Err(table.fault_at(
                item,
                format!("there are two loads named `{}` in one trial", load.name),
                "give one a `name` of its own",
            ));
        }
        loads.push(load);
    }
    Ok(loads)
}

fn one(table: &Table<'_>, item: &Spanned<DeValue<'_>>) -> Result<LoadPlan, InputError> {
    match item.get_ref() {
        DeValue::String(name) => match name.parse() {
            Ok(LoadKind::Custom) => Err(table.fault_at(
                item,
                "the load `custom` needs a command",
                "write { kind = \"custom\", command = [\"stress\", \"-c\", \"1\"] }",
            )),
            Ok(kind) => Ok(LoadPlan::new(kind)),
            Err(what) => Err(table.fault_at(item, what, "")),
        },
        DeValue::Table(inner) => full(&table.inner("a load", item, inner, &LOAD)?),
        other => Err(table.fault_at(
            item,
            format!("a load is of type {}", other.type_str()),
            format!("it must be {ONE_WANTED}"),
        )),
    }
}

fn full(table: &Table<'_>) -> Result<LoadPlan, InputError> {
    let kind = table
        .text("kind")?
        .ok_or_else(|| table.missing("kind", "\"cpu\""))?;
    let kind: LoadKind = kind.parse().map_err(|what| table.fault("kind", what, ""))?;
    let mut load = LoadPlan::new(kind);
    if let Some(name) = table.text("name")? {
        if !is_name(name) || name == IDLE {
            return Err(table.fault(
                "name",
                format!("`{name}` is no name for a load"),
                "use 1 to 64 letters, digits, `-` and `_`",
            ));
        }
        name.clone_into(&mut load.name);
    }
    load.form = choice(
        table,
        "form",
        &[
            ("built-in", LoadForm::BuiltIn),
            ("program", LoadForm::Program),
        ],
    )?;
    load.command = command(table, kind)?;
    load.cpus = table.cpus("cpus")?.unwrap_or_default();
    load.cell = place(table)?;
    if kind == LoadKind::Custom && load.form == Some(LoadForm::BuiltIn) {
        return Err(table.fault("form", "a custom load is a program", "remove the line"));
    }
    let program = kind == LoadKind::Custom || load.form == Some(LoadForm::Program);
    if program && load.cell.is_some() {
        return Err(table.fault(
            "in",
            "a cell holds nothing but timecell, so only built-in loads run in one",
            "set form = \"built-in\" or in = \"host\"",
        ));
    }
    Ok(load)
}

fn command(table: &Table<'_>, kind: LoadKind) -> Result<Vec<String>, InputError> {
    let command = table
        .array(
            "command",
            "a program and its arguments such as [\"sleep\", \"9\"]",
            |item| {
                item.as_str().map(str::to_owned).ok_or_else(|| {
                    format!("a word of a command is a text, not {}", item.type_str())
                })
            },
        )?
        .unwrap_or_default();
    match (
        kind,
        command.first().is_some_and(|program| !program.is_empty()),
    ) {
        (LoadKind::Custom, false) => Err(table.missing("command", "[\"stress\", \"-c\", \"1\"]")),
        (LoadKind::Custom, true) => Ok(command),
        (_, _) if table.item("command").is_none() => Ok(command),
        _ => Err(table.fault(
            "command",
            format!("the load `{kind}` has no command"),
            "remove the line or set kind = \"custom\"",
        )),
    }
}

fn place(table: &Table<'_>) -> Result<Option<EngineKind>, InputError> {
    let in_cell = choice(table, "in", &[("host", false), ("cell", true)])?.unwrap_or(false);
    let runtimes: Vec<(&str, EngineKind)> = EngineKind::runtimes()
        .map(|engine| (engine.name(), engine))
        .collect();
    let engine = choice(table, "engine", &runtimes)?;
    match (in_cell, engine) {
        (false, Some(_)) => Err(table.fault(
            "engine",
            "a load on the host has no engine",
            "set in = \"cell\" or remove the line",
        )),
        (false, None) => Ok(None),
        (true, engine) => Ok(Some(engine.unwrap_or(EngineKind::Embedded))),
    }
}

/// A load as it stands in a file.
pub(crate) fn to_toml(load: &LoadPlan) -> String {
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
    format!("{{ {} }}", parts.join(", "))
}
