//! Reservations as groups of the cpu controller.

use std::collections::HashSet;

use analysis::Ns;
use analysis::linux::{BW_SHIFT, Bandwidth, HcbsTree, Refusal, RootDomain, RtTree, RtWrite};
use model::taskset::TaskCell;

use super::super::judge::ns;
use super::ask::Asked;
use super::{Bound, Write};

type Answer = (Vec<Bound>, Vec<Write>, Vec<String>);

/// Groups directly below the root of the cpu controller of cgroup v1, in the order of the file.
pub(super) fn rt_cgroup(asked: &Asked) -> Answer {
    let mut tree = RtTree::new(asked.limit, asked.limit);
    let (mut writes, mut refusals) = (Vec::new(), Vec::new());
    for (cell, directory) in asked.cells.iter().zip(directories(&asked.cells)) {
        let Some(wanted) = bandwidth(cell) else {
            continue;
        };
        let planned = tree.add(0).and_then(|group| {
            let plan = tree.plan(group, wanted)?;
            plan.iter()
                .try_for_each(|&write| tree.write(group, write))?;
            Ok(plan)
        });
        match planned {
            Ok(plan) => writes.extend(plan.into_iter().map(|write| {
                let (file, time) = match write {
                    RtWrite::Period(period) => ("cpu.rt_period_us", Some(period)),
                    RtWrite::Runtime(runtime) => ("cpu.rt_runtime_us", runtime),
                };
                Write {
                    file: format!("/sys/fs/cgroup/cpu/{directory}/{file}"),
                    value: time.map_or("-1".to_owned(), |ns| (ns / 1_000).to_string()),
                }
            })),
            Err(refusal) => refusals.push(refused(cell, &refusal)),
        }
    }
    let available = asked.limit.runtime.map(|_| asked.limit.ratio());
    let mut notes = notes(asked);
    if asked.limit != Bandwidth::default() {
        notes.push(
            "sched_rt_runtime_us, sched_rt_period_us and the root group must have this limit first"
                .to_owned(),
        );
    }
    (vec![bound(asked, available, refusals)], writes, notes)
}

/// Groups directly below the root of cgroup v2 under HCBS; the root group has the rest beside the fair servers.
pub(super) fn hcbs(asked: &Asked) -> Answer {
    let domain = RootDomain {
        share: asked.limit,
        ..RootDomain::of_cpus(asked.cpus).with_fair_server()
    };
    let root = root_bandwidth(&domain, asked.limit);
    let mut writes = vec![max("/sys/fs/cgroup/cpu.rt.max".to_owned(), root)];
    let mut refusals = Vec::new();
    match HcbsTree::new(vec![domain], root) {
        Ok(mut tree) => {
            for (cell, directory) in asked.cells.iter().zip(directories(&asked.cells)) {
                let Some(wanted) = bandwidth(cell) else {
                    continue;
                };
                let file = format!("/sys/fs/cgroup/{directory}/cpu.rt.max");
                match whole_microseconds(wanted).and_then(|()| tree.add(0, wanted)) {
                    Ok(_) => writes.push(max(file, wanted)),
                    Err(refusal) => refusals.push(refused(cell, &refusal)),
                }
            }
        }
        Err(refusal) => {
            writes.clear();
            refusals.push(format!("the root group: {refusal} ({})", refusal.errno()));
        }
    }
    let mut notes = notes(asked);
    notes.push("no released kernel has HCBS; the arithmetic is that of its patches".to_owned());
    (
        vec![bound(asked, Some(root.ratio()), refusals)],
        writes,
        notes,
    )
}

/// The most that the root group can have besides the fair servers, in whole us.
fn root_bandwidth(domain: &RootDomain, limit: Bandwidth) -> Bandwidth {
    let cpus = domain.capacities.len().max(1) as u64;
    let left = limit.ratio().saturating_sub(domain.given() / cpus);
    let runtime = (u128::from(left) * u128::from(limit.period)) >> BW_SHIFT;
    // At most the period, as the ratio is at most a whole cpu.
    let runtime = runtime as Ns / 1_000 * 1_000;
    Bandwidth::new(runtime, limit.period)
}

fn max(file: String, bandwidth: Bandwidth) -> Write {
    let runtime = bandwidth
        .runtime
        .map_or("max".to_owned(), |ns| (ns / 1_000).to_string());
    Write {
        file,
        value: format!("{runtime} {}", bandwidth.period / 1_000),
    }
}

fn whole_microseconds(bandwidth: Bandwidth) -> Result<(), Refusal> {
    let mut times = bandwidth.runtime.into_iter().chain([bandwidth.period]);
    match times.find(|time| time % 1_000 != 0) {
        Some(time) => Err(Refusal::NotMicroseconds { group: 0, time }),
        None => Ok(()),
    }
}

fn bandwidth(cell: &TaskCell) -> Option<Bandwidth> {
    let reservation = cell.reservation?;
    Some(Bandwidth::new(
        ns(reservation.budget),
        ns(reservation.period),
    ))
}

fn bound(asked: &Asked, available: Option<u64>, refusals: Vec<String>) -> Bound {
    let ratios = asked.cells.iter().filter_map(bandwidth);
    Bound {
        of: "every cpu".to_owned(),
        cells: asked.cells.iter().map(|cell| cell.name.clone()).collect(),
        asked: ratios.fold(0, |sum: u64, each| sum.saturating_add(each.ratio())),
        available,
        refusals,
    }
}

/// A refusal with the names of cells for those of groups.
fn refused(cell: &TaskCell, refusal: &Refusal) -> String {
    let name = &cell.name;
    let errno = refusal.errno();
    match refusal {
        Refusal::ChildrenAboveParent { children, own, .. } => format!(
            "cell {name}: with it the cells would have {children} of 2^20, but the root group has {own} ({errno})"
        ),
        other => {
            let why = other.to_string();
            let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
            format!("cell {name}: {why} ({errno})")
        }
    }
}

fn notes(asked: &Asked) -> Vec<String> {
    let mut notes = Vec::new();
    let on = asked.on.iter().flatten().collect::<HashSet<&Vec<usize>>>();
    if on.len() > 1 {
        notes.push(
            "a group has its budget on every cpu, so cells on different cpus count as if they were on one".to_owned(),
        );
    }
    let early = asked
        .cells
        .iter()
        .filter(|cell| cell.reservation.is_some_and(|r| r.deadline != r.period));
    let early: Vec<&str> = early.map(|cell| cell.name.as_str()).collect();
    if !early.is_empty() {
        notes.push(format!(
            "a group has no deadline, so the deadlines of the reservations of {} are ignored",
            early.join(", ")
        ));
    }
    notes
}

/// A directory for each cell, named after it.
fn directories(cells: &[TaskCell]) -> Vec<String> {
    let mut taken = HashSet::new();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let directory = |(place, cell): (usize, &TaskCell)| {
        let mut name: String = cell.name.chars().map(plain).collect();
        if name.starts_with('.') || !taken.insert(name.clone()) {
            name = format!("cell-{place}-{name}");
            taken.insert(name.clone());
        }
        name
    };
    cells.iter().enumerate().map(directory).collect()
}
