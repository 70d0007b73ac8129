//! Reading a cell.

use std::path::PathBuf;

use super::health;
use crate::EngineKind;
use crate::file::{Field, Node};
use crate::mission::{
    Arrivals, Band, Cell, CellClass, Criticality, Image, Ready, Restart, RestartPolicy, Rights,
    Task, WhenShed,
};
use crate::taskset::{CellTask, Reservation};

pub(super) fn cell(node: &Node<'_>) -> Cell {
    let criticality = node
        .choice("criticality", &Criticality::NAMES)
        .unwrap_or(Criticality::Low);
    let engines = EngineKind::ALL.map(|engine| (engine.name(), engine));
    let reservation = node.table("reservation");
    let tasks = node.tables("task");
    Cell {
        name: node.text("name"),
        description: node.text("description"),
        image: image(node.table("image").as_ref()),
        command: node.texts("command"),
        args: node.texts("args"),
        env: node.environment("env"),
        workdir: node.path("workdir"),
        engine: node
            .choice("engine", &engines)
            .unwrap_or(EngineKind::Embedded),
        class: node.choice("class", &CellClass::NAMES),
        criticality,
        when_shed: node
            .choice("when_shed", &WhenShed::NAMES)
            .unwrap_or(WhenShed::Freeze),
        cpus: node.counts("cpus"),
        priorities: node.table("priorities").and_then(|table| band(&table)),
        budget_high: (reservation.as_ref()).and_then(|table| table.time("budget_hi")),
        reservation: reservation.map(|table| self::reservation(&table)),
        only_tasks: node.boolean("only_tasks"),
        tasks: tasks.iter().map(|table| task(table, criticality)).collect(),
        after: node.texts("after"),
        needs: node.texts("needs"),
        ready: node
            .choice("ready", &Ready::NAMES)
            .unwrap_or(Ready::Started),
        start_timeout: node.time_or_zero("start_timeout"),
        stop_timeout: node.time_or_zero("stop_timeout"),
        restart: restart(&node.below("restart")),
        health: node.tables("health").iter().map(health::rule).collect(),
        rights: Rights::read(node, "rights"),
    }
}

fn image(table: Option<&Node<'_>>) -> Image {
    let path = |key: &str| table.and_then(|table| table.path(key));
    if let Some(path) = path("bundle") {
        return Image::Bundle(path);
    }
    if let Some(path) = path("binary") {
        return Image::Binary(path);
    }
    match table.and_then(|table| table.some_text("reference")) {
        Some(name) => Image::Reference(name),
        None => Image::Rootfs(path("rootfs").unwrap_or_else(PathBuf::new)),
    }
}

fn band(table: &Node<'_>) -> Option<Band> {
    let end = |key| table.integer(key).and_then(|n| u8::try_from(n).ok());
    Some(Band {
        lowest: end("lowest")?,
        highest: end("highest")?,
    })
}

fn reservation(table: &Node<'_>) -> Reservation {
    let period = table.time_or_zero("period");
    Reservation {
        budget: table.time_or_zero("budget"),
        period,
        deadline: table.time("deadline").unwrap_or(period),
    }
}

fn task(table: &Node<'_>, criticality: Criticality) -> Task {
    let wcet = table.time_or_zero("wcet");
    let period = table.time_or_zero("period");
    let high = table.time("wcet_hi");
    Task {
        timing: CellTask {
            deadline: table.time("deadline").unwrap_or(period),
            jitter: table.time_or_zero("jitter"),
            blocking: table.time_or_zero("blocking"),
            priority: table.integer("priority"),
            wcet_high: match criticality {
                Criticality::High => Some(high.unwrap_or(wcet)),
                Criticality::Low => None,
            },
            ..CellTask::new(table.text("name"), wcet, period)
        },
        thread: table.some_text("thread"),
        arrivals: (table.choice("arrivals", &Arrivals::NAMES)).unwrap_or_default(),
    }
}

fn restart(table: &Node<'_>) -> Restart {
    Restart {
        policy: (table.choice("policy", &RestartPolicy::NAMES)).unwrap_or(RestartPolicy::OnFailure),
        backoff_min: table.time_or_zero("backoff_min"),
        backoff_max: table.time_or_zero("backoff_max"),
        limit: table.count("limit").unwrap_or(1),
        window: table.time_or_zero("window"),
    }
}
