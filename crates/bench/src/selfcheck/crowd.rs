//! Many cells: how fast they are created, how much they use while they wait, and how far apart they start.
//!
//! Creation is that of the embedded engine against crun and runc, driven alike; waiting and start are those of embedded cells, against
//! polling cells of the same engine, as many as can be started at all.

use engine::Engine;
use model::EngineKind;
use serde_json::{Value, json};
use stats::{CompareOptions, compare, median_of};

use super::section::{Finding, Section, Setup, us};
use super::skew::{self, How, Round, Seen, Stage};
use crate::BenchError;

/// Cells of one round of creation.
const MADE: usize = 32;
/// Cells made at the same time.
const PARALLEL: [usize; 2] = [1, 8];
/// Numbers of cells that are also released by polling, and how often.
const POLLED: [(usize, usize); 4] = [(2, 10), (10, 10), (32, 10), (64, 10)];
/// Numbers of cells that only our barrier releases, and how often.
const ALONE: [(usize, usize); 3] = [(256, 5), (1024, 3), (2048, 2)];
/// The numbers of a quick run.
const QUICK: [(usize, usize); 2] = [(2, 2), (10, 2)];
/// How long the pollers poll before the release.
const SETTLE_NS: i64 = 300_000_000;
/// How long the largest number of cells waits, and how much of a cpu it may use in all that time.
const WAIT_NS: i64 = 10_000_000_000;
const WAIT_CPU_NS: i64 = 10_000_000;
/// Cells made in a second, at least.
const RATE: f64 = 100.0;
/// Memory of an idle cell, bytes, less than.
const CELL_BYTES: f64 = 1e6;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let (engines, mut unmet) = engines()?;
    let (hows, no_shell) = skew::hows();
    unmet.extend(no_shell);
    let mut stage = Stage::new(setup.priority)?;
    let rounds = if setup.quick { 2 } else { 10 };
    let mut section = Section {
        part: "crowd",
        method: format!(
            "creation: {MADE} cells of each engine by 1 and by 8 threads, {rounds} rounds in turns, from the first \
             request until the last payload speaks; memory: proportional set of the armed payloads and of all processes \
             beside them; skew: embedded cells over cpus {}, futex cells FIFO {}, pollers OTHER as in the thesis's \
             scripts",
            host::cpus::format_list(&stage.cpus),
            setup.priority
        ),
        table: Vec::new(),
        findings: Vec::new(),
        data: json!({}),
        unmet,
    };
    creation(&mut stage, &engines, rounds, say, &mut section)?;
    release(
        &mut stage,
        engines[0].as_ref(),
        &hows,
        setup.quick,
        say,
        &mut section,
    )?;
    Ok(section)
}

type Engines = Vec<Box<dyn Engine>>;

/// The engines that can create cells here, embedded first, and why the others cannot.
fn engines() -> Result<(Engines, Vec<String>), BenchError> {
    let options = engine::Options::default();
    let mut found = Vec::new();
    let mut unmet = Vec::new();
    for kind in EngineKind::runtimes() {
        let engine = engine::by_kind(kind, &options);
        match engine.requirements().into_iter().find(|r| !r.met) {
            None => found.push(engine),
            Some(r) if kind == EngineKind::Embedded => return Err(BenchError::Unmet(r.reason)),
            Some(r) => unmet.push(format!(
                "{kind}: {} ({})",
                r.reason,
                r.fix.unwrap_or_default()
            )),
        }
    }
    Ok((found, unmet))
}

fn creation(
    stage: &mut Stage,
    engines: &[Box<dyn Engine>],
    rounds: usize,
    say: &mut dyn FnMut(&str),
    section: &mut Section,
) -> Result<(), BenchError> {
    section.table.push(
        [
            "engine",
            "at once",
            "cells/s",
            "least",
            "most",
            "removed/s",
            "PSS of a cell",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    for parallel in PARALLEL {
        let kind = Round {
            how: How::Futex,
            cells: MADE,
            parallel,
            settle_ns: 0,
            memory: true,
        };
        let mut seen: Vec<Seen> = engines.iter().map(|_| Seen::default()).collect();
        for round in 0..rounds {
            // Each begins in turn: the first move between cgroups after a rest waits for the kernel.
            for turn in 0..engines.len() {
                let at = (turn + round) % engines.len();
                say(&format!(
                    "crowd, {MADE} cells by {parallel}, round {} of {rounds}, {}",
                    round + 1,
                    engines[at].kind()
                ));
                stage.round(engines[at].as_ref(), &kind, &mut seen[at])?;
            }
        }
        for (engine, seen) in engines.iter().zip(&seen) {
            let name = engine.kind().name();
            section.table.push(creation_row(name, &kind, seen));
            section.data[format!("creation-{name}-{parallel}")] = seen.json(&kind);
        }
        creation_goals(engines, &kind, &seen, section);
    }
    Ok(())
}

fn creation_row(name: &str, kind: &Round, seen: &Seen) -> Vec<String> {
    let rate =
        |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.0}", per_second(ns)));
    vec![
        name.to_owned(),
        kind.parallel.to_string(),
        rate(median_of(&seen.creation_ns)),
        rate(seen.creation_ns.iter().copied().max()),
        rate(seen.creation_ns.iter().copied().min()),
        rate(median_of(&seen.removal_ns)),
        cell_bytes(seen).map_or_else(|| "-".to_owned(), megabytes),
    ]
}

fn creation_goals(engines: &[Box<dyn Engine>], kind: &Round, seen: &[Seen], section: &mut Section) {
    let parallel = kind.parallel;
    if parallel > 1
        && let Some(ns) = median_of(&seen[0].creation_ns)
    {
        let rate = per_second(ns);
        section.findings.push(Finding::goal(
            format!("embedded cells created per second, {parallel} at once"),
            format!("{rate:.0}"),
            format!("at least {RATE:.0}"),
            rate >= RATE,
        ));
    }
    if parallel > 1
        && let Some(bytes) = cell_bytes(&seen[0])
    {
        section.findings.push(Finding::goal(
            "memory of an idle armed embedded cell, helpers included",
            megabytes(bytes),
            format!("under {}", megabytes(CELL_BYTES)),
            bytes < CELL_BYTES,
        ));
    }
    let in_rounds = |times: &[i64]| times.iter().map(|ns| vec![*ns]).collect::<Vec<_>>();
    for (engine, theirs) in engines.iter().zip(seen).skip(1) {
        let name = engine.kind().name();
        for (what, of) in [
            (
                "making",
                (|seen| &seen.creation_ns) as fn(&Seen) -> &Vec<i64>,
            ),
            ("removing", |seen| &seen.removal_ns),
        ] {
            let (theirs, ours) = (in_rounds(of(theirs)), in_rounds(of(&seen[0])));
            let Ok(compared) = compare(&theirs, &ours, &CompareOptions::default()) else {
                continue;
            };
            let what =
                format!("time of {what} embedded cells relative to {name}'s, {parallel} at once");
            let ratio = compared.ratio_of_medians;
            section.findings.push(if engine.kind() == EngineKind::Crun {
                Finding::ratio_goal(what, &ratio, 1.0)
            } else {
                Finding::fact(what, super::section::ratio(&ratio))
            });
        }
    }
}

fn per_second(round_ns: i64) -> f64 {
    MADE as f64 * 1e9 / round_ns.max(1) as f64
}

fn cell_bytes(seen: &Seen) -> Option<f64> {
    median_of(&seen.pss_bytes).map(|bytes| bytes as f64 / MADE as f64)
}

fn megabytes(bytes: f64) -> String {
    format!("{:.2} MB", bytes / 1e6)
}

/// Numbers of cells against the skew of every barrier.
fn release(
    stage: &mut Stage,
    engine: &dyn Engine,
    hows: &[How],
    quick: bool,
    say: &mut dyn FnMut(&str),
    section: &mut Section,
) -> Result<(), BenchError> {
    let mut header = vec!["cells".to_owned()];
    header.extend(hows.iter().map(|how| column(*how).to_owned()));
    header.push("first of each cpu us".to_owned());
    section.table.push(Vec::new());
    section.table.push(header);
    let steps: Vec<(usize, usize, &[How])> = if quick {
        QUICK
            .iter()
            .map(|(n, rounds)| (*n, *rounds, hows))
            .collect()
    } else {
        let polled = POLLED.iter().map(|(n, rounds)| (*n, *rounds, hows));
        let alone = ALONE.iter().map(|(n, rounds)| (*n, *rounds, &hows[..1]));
        polled.chain(alone).collect()
    };
    let columns = hows.len();
    let largest = steps.last().map_or(0, |(cells, ..)| *cells);
    let mut medians: Vec<(usize, Vec<Option<i64>>)> = Vec::new();
    let mut data = Vec::new();
    for (cells, rounds, hows) in steps {
        let kind = |how| Round {
            how,
            cells,
            parallel: PARALLEL[1],
            settle_ns: if cells == largest && how == How::Futex {
                WAIT_NS
            } else {
                SETTLE_NS
            },
            memory: false,
        };
        let mut seen: Vec<Seen> = hows.iter().map(|_| Seen::default()).collect();
        for round in 1..=rounds {
            for (how, seen) in hows.iter().zip(&mut seen) {
                say(&format!(
                    "crowd, {cells} cells, round {round} of {rounds}, {}",
                    how.name()
                ));
                stage.round(engine, &kind(*how), seen)?;
            }
        }
        data.extend(
            hows.iter()
                .zip(&seen)
                .map(|(how, seen)| seen.json(&kind(*how))),
        );
        let of = |seen: &Seen| median_of(&seen.skews);
        let all: Vec<Option<i64>> = seen.iter().map(of).collect();
        let first = median_of(&seen[0].firsts);
        section.table.push(skew_row(cells, &all, columns, first));
        if cells == largest {
            section.findings.push(waiting(cells, &seen[0]));
        }
        section.findings.extend(against_shell(cells, hows, &all));
        medians.push((cells, all));
    }
    section.data["release"] = Value::Array(data);
    for (at, how) in hows.iter().enumerate() {
        section
            .findings
            .extend(growth(*how, at, &medians, stage.cpus.len()));
    }
    Ok(())
}

fn column(how: How) -> &'static str {
    match how {
        How::Futex => "skew: futex us",
        How::PollProbe => "probe polls us",
        How::PollShell => "shell polls us",
    }
}

/// A line with a median for each of so many ways, where there is one.
fn skew_row(cells: usize, medians: &[Option<i64>], ways: usize, first: Option<i64>) -> Vec<String> {
    let text = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), us);
    let mut row = vec![cells.to_string()];
    row.extend((0..ways).map(|at| text(medians.get(at).copied().flatten())));
    row.push(text(first));
    row
}

fn waiting(cells: usize, seen: &Seen) -> Finding {
    // The worst of the rounds: all wake-ups count against us.
    let worst = seen.waiting_ns.iter().copied().max().unwrap_or(0);
    Finding::goal(
        format!(
            "cpu time of all {cells} armed cells while waiting {} s",
            WAIT_NS / 1_000_000_000
        ),
        format!("{} us", us(worst)),
        format!("under {} ms", WAIT_CPU_NS / 1_000_000),
        worst < WAIT_CPU_NS,
    )
}

fn against_shell(cells: usize, hows: &[How], medians: &[Option<i64>]) -> Option<Finding> {
    let of = |how| {
        hows.iter()
            .position(|h| *h == how)
            .and_then(|at| medians[at])
    };
    let (ours, theirs) = (of(How::Futex)?, of(How::PollShell)?);
    let times = theirs as f64 / ours.max(1) as f64;
    let what = format!("median skew of the shell poller relative to ours, {cells} embedded cells");
    let figure = format!("{times:.0} times");
    Some(if cells == 64 {
        Finding::goal(what, figure, "at least 60 times", times >= 60.0)
    } else {
        Finding::fact(what, figure)
    })
}

/// Skew added by one more cell on a cpu, between the smallest number of at least 10 and the largest.
fn growth(
    how: How,
    at: usize,
    medians: &[(usize, Vec<Option<i64>>)],
    cpus: usize,
) -> Option<Finding> {
    let known: Vec<(usize, i64)> = medians
        .iter()
        .filter_map(|(cells, all)| Some((*cells, (*all.get(at)?)?)))
        .filter(|(cells, _)| *cells >= 10)
        .collect();
    let ((few, low), (many, high)) = (known.first()?, known.last()?);
    if few == many {
        return None;
    }
    let each = (high - low) as f64 / ((many - few) as f64 / cpus as f64);
    Some(Finding::fact(
        format!(
            "growth of the median skew from {few} to {many} cells, {}",
            how.name()
        ),
        format!("{:.1} us for each further cell on a cpu", each / 1e3),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_for_each_further_cell_on_a_cpu() {
        let medians = vec![
            (2, vec![Some(1), Some(9)]),
            (10, vec![Some(50_000), Some(1_000_000)]),
            (64, vec![Some(320_000), None]),
        ];
        let found = growth(How::Futex, 0, &medians, 2).unwrap();
        assert_eq!(found.figure, "10.0 us for each further cell on a cpu");
        assert!(found.what.contains("from 10 to 64"));
        // One number of cells has no growth, and neither has a way that was never seen.
        assert!(growth(How::PollProbe, 1, &medians, 2).is_none());
        assert!(growth(How::PollShell, 2, &medians, 2).is_none());
    }

    #[test]
    fn the_shell_poller_is_held_against_ours() {
        let hows = [How::Futex, How::PollProbe, How::PollShell];
        let found = against_shell(64, &hows, &[Some(1_000), None, Some(59_000)]).unwrap();
        assert_eq!(
            (found.figure.as_str(), found.holds),
            ("59 times", Some(false))
        );
        assert!(against_shell(64, &hows[..1], &[Some(1_000)]).is_none());
    }

    #[test]
    fn cells_that_used_too_much_while_they_waited_fail() {
        let seen = Seen {
            waiting_ns: vec![0, WAIT_CPU_NS],
            ..Seen::default()
        };
        assert_eq!(waiting(2048, &seen).holds, Some(false));
    }

    #[test]
    fn numbers_that_nobody_polled_leave_their_places_empty() {
        let row = skew_row(256, &[Some(2_500)], 3, Some(1_000));
        assert_eq!(row, ["256", "2.5", "-", "-", "1.0"]);
    }
}
