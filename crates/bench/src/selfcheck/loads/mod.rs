//! Whether each load disturbs its target: the probe in class OTHER and in class FIFO, in turns without a load and under
//! each of them. A load that moves no figure is broken, however busy it looks.

mod figures;
mod visit;

use model::{LoadKind, LoadPlan};
use serde_json::json;

use super::section::{Finding, Section, Setup, us};
use crate::BenchError;
use crate::here::allowed_cpus;
use crate::load::{self, Ground, PlannedLoad};
use crate::session::{Elsewhere, Interrupt};
use crate::sweep::new_place;
use figures::{FIGURES, Moved, moved};
use visit::{Around, Visit};

/// A machine that is busier than this without a load, the probes included, is not quiet.
const BUSY_PERCENT: f64 = 40.0;

/// One load at one place, or none, with its visit of every round.
struct Row {
    name: String,
    /// The requested load, for a second try; `None`: nothing runs.
    kind: Option<LoadKind>,
    planned: Option<PlannedLoad>,
    /// Whether counters are read beside the probe.
    counters: bool,
    visits: Vec<Visit>,
}

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let rounds = if setup.quick { 5 } else { 10 };
    let mut section = Section {
        part: "loads",
        method: format!(
            "{rounds} rounds, each of them the probe on cpu {} without a load, under every load on all cpus, without one \
             again, and with counters read beside it; timer every 100 us and mac of 50,000 steps every 1 ms, in class OTHER and FIFO {}; a figure \
             counts as moved when its median over rounds is more than {:.2} times that without a load and a rank-sum test at \
             0.05 over {} figures says that its rounds lie higher. The second look without a load shows how much moves by \
             itself. Loads that move nothing run again on the probe's cpu alone",
            setup.cpu,
            setup.priority,
            figures::LEAST,
            FIGURES.len(),
        ),
        table: vec![header()],
        findings: Vec::new(),
        data: json!({}),
        unmet: Vec::new(),
    };
    let allowed = allowed_cpus();
    let kinds: Vec<LoadKind> = LoadKind::ALL
        .into_iter()
        .filter(|kind| *kind != LoadKind::Custom)
        .filter(|kind| setup.loads.is_empty() || setup.loads.contains(kind))
        .collect();
    let mut rows = vec![Row::idle("idle")];
    for kind in kinds {
        match load::resolve(&LoadPlan::new(kind), &allowed) {
            Ok(planned) => rows.push(Row::of(kind.name().to_owned(), planned)),
            Err(unmet) => section.unmet.push(format!("{kind}: {}", unmet.reason)),
        }
    }
    rows.push(Row::idle("idle, again"));
    rows.push(Row {
        counters: true,
        ..Row::idle("counters read")
    });

    let interrupt = Interrupt::listen()
        .map_err(|error| BenchError::Failed(format!("cannot listen for signals: {error}")))?;
    let mut place = new_place()?;
    let rootfs = place.rootfs()?;
    host::writer::create_dir_all(&setup.out)
        .map_err(crate::error::failed(&setup.out, "create the directory"))?;
    let planned: Vec<&PlannedLoad> = rows.iter().filter_map(|row| row.planned.as_ref()).collect();
    let (ground, remarks) = Ground::make(&planned, &setup.out, &mut place)?;
    section.unmet.extend(remarks);
    let _elsewhere = Elsewhere::than(&[setup.cpu]);
    let _awake = host::latency::DmaLatency::hold().ok();
    let mut around = Around {
        setup: &setup,
        place: &place,
        rootfs: &rootfs,
        ground: &ground,
        interrupt: &interrupt,
        fifo: true,
        trial: 0,
    };
    if let Err(why) = around.try_fifo() {
        section.unmet.push(format!("class FIFO: {why}"));
    }
    around.rounds(&mut rows, rounds, say)?;
    let mut still: Vec<Row> = Vec::new();
    for row in &rows {
        let pinned = (row.kind).filter(|_| row.movement(&without_load(&rows, row)).is_none());
        if let Some(kind) = pinned {
            let mut plan = LoadPlan::new(kind);
            plan.cpus = vec![setup.cpu];
            if let Ok(planned) = load::resolve(&plan, &allowed) {
                still.push(Row::of(format!("{kind} on cpu {}", setup.cpu), planned));
            }
        }
    }
    let mut again = vec![Row::idle("idle")];
    if !still.is_empty() {
        again.extend(still);
        around.rounds(&mut again, rounds, say)?;
    }
    let busy = visit::busy_percent(&rows[0].visits);
    if busy > BUSY_PERCENT {
        section.unmet.push(format!(
            "a quiet machine: without a load, {busy:.0} % of one cpu was already in use, which hides most of what loads do; repeat it \
             when nothing else runs"
        ));
    }
    report(&rows, &mut section);
    section.findings.push(Finding::fact(
        "the probe itself",
        visit::probe_cost(rows.iter().flat_map(|row| &row.visits)),
    ));
    report(&again, &mut section);
    Ok(section)
}

impl Row {
    fn idle(name: &str) -> Row {
        Row {
            name: name.to_owned(),
            kind: None,
            planned: None,
            counters: false,
            visits: Vec::new(),
        }
    }

    fn of(name: String, planned: PlannedLoad) -> Row {
        Row {
            name,
            kind: Some(planned.plan.kind),
            planned: Some(planned),
            counters: false,
            visits: Vec::new(),
        }
    }

    /// The figures that it moved against the rows without load, the one that is surest first; `None`: none.
    fn movement(&self, idle: &[&Row]) -> Option<Vec<Moved>> {
        let values = |row: &Row| -> Vec<_> { row.visits.iter().map(|v| v.values).collect() };
        let before: Vec<_> = idle.iter().flat_map(|row| values(row)).collect();
        let moved = moved(&before, &values(self));
        (!moved.is_empty()).then_some(moved)
    }
}

impl Around<'_> {
    /// Visits every row once a round, each round beginning with another row.
    fn rounds(
        &mut self,
        rows: &mut [Row],
        rounds: usize,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), BenchError> {
        for round in 0..rounds {
            for turn in 0..rows.len() {
                let at = (turn + round) % rows.len();
                let name = &rows[at].name;
                say(&format!("loads, round {} of {rounds}, {name}", round + 1));
                let visit = self
                    .visit(rows[at].planned.as_ref(), rows[at].counters)
                    .map_err(|error| match error {
                        BenchError::Interrupted => error,
                        other => BenchError::Failed(format!("{name}: {other}")),
                    })?;
                rows[at].visits.push(visit);
            }
        }
        Ok(())
    }
}

/// A row's references: everything without a load except itself; the controls only with the first.
fn without_load<'a>(rows: &'a [Row], row: &Row) -> Vec<&'a Row> {
    let controls = |other: &&Row| other.kind.is_none() && !other.counters;
    let most = if row.kind.is_some() { usize::MAX } else { 1 };
    rows.iter().filter(controls).take(most).collect()
}

fn header() -> Vec<String> {
    let mut header = vec!["median over rounds, us".to_owned()];
    header.extend(FIGURES.iter().map(|figure| figure.short.to_owned()));
    header
}

/// Table, findings and data of rows, the first of which is the one without load.
fn report(rows: &[Row], section: &mut Section) {
    let Some((_, others)) = rows.split_first().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    for row in rows {
        let mut line = vec![row.name.clone()];
        for at in 0..FIGURES.len() {
            let values: Vec<i64> = row.visits.iter().filter_map(|v| v.values[at]).collect();
            line.push(stats::median_of(&values).map_or_else(|| "-".to_owned(), us));
        }
        section.table.push(line);
    }
    section.table.push(Vec::new());
    section.table.push(visit::activity_header());
    for row in rows {
        section
            .table
            .push(visit::activity_row(&row.name, &row.visits));
    }
    section.table.push(Vec::new());
    for row in others {
        section
            .findings
            .push(finding(row, &without_load(rows, row)));
        if let Some(planned) = &row.planned {
            section.findings.push(Finding::fact(
                format!("{} achieved ({})", row.name, planned.form),
                visit::achieved(&row.visits),
            ));
        }
    }
    for row in rows {
        section.data[&row.name] = json!({
            "form": row.planned.as_ref().map(|planned| &planned.form),
            "cpus": row.planned.as_ref().map(|planned| &planned.cpus),
            "figures": FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>(),
            "rounds": row.visits,
            "moved": row.movement(&without_load(rows, row)),
        });
    }
}

fn finding(row: &Row, idle: &[&Row]) -> Finding {
    let moved = row.movement(idle);
    let said = |moved: &Moved| {
        format!(
            "{} {:.1} times (p = {:.4})",
            FIGURES[moved.figure].name, moved.times, moved.p
        )
    };
    let figure = match &moved {
        None => format!(
            "no figure moves significantly in {} rounds",
            row.visits.len()
        ),
        Some(moved) => {
            let more = match moved.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more of {} figures", FIGURES.len()),
            };
            format!("moves the {}{more}", said(&moved[0]))
        }
    };
    match row.kind {
        Some(_) => Finding::goal(&row.name, figure, "moves a figure", moved.is_some()),
        None => Finding::goal(&row.name, figure, "moves nothing", moved.is_none()),
    }
}
