//! No bound of the server analysis is ever below the simulator's observation, and the bounds known to be attained are.

use crate::simulator::{Job, Policy, Random, Releases, SimServer, Source, set_count, simulate};
use timecell_analysis::Task;
use timecell_analysis::server::{
    Analysis, Cell, Kind, LocalTask, Refill, Server, ServerSupply, analyze,
};

/// From here on every server has been refilled once, so that none starts with less than it could have kept.
const SETTLED: u64 = 16;
const START: u64 = 200;
const UNTIL: u64 = START + 320;

struct System {
    cells: Vec<Cell>,
    refill: Refill,
}

fn system(random: &mut Random) -> System {
    let refill = random.choose(&[Refill::Apart, Refill::Apart, Refill::Together]);
    let common = random.between(4, 16);
    let count = random.between(1, 4);
    let constant_bandwidth = match refill {
        Refill::Apart if random.percent(30) => random.between(1, count),
        _ => 0,
    };
    let kinds = match refill {
        Refill::Apart => &[
            Kind::Deferrable,
            Kind::Polling,
            Kind::Sporadic,
            Kind::Periodic,
        ][..],
        Refill::Together => &[Kind::Deferrable, Kind::Polling, Kind::Periodic][..],
    };
    let cells = (0..count)
        .map(|at| {
            let period = match refill {
                Refill::Together => common,
                Refill::Apart => random.between(4, 16),
            };
            let kind = if at < constant_bandwidth {
                Kind::ConstantBandwidth
            } else {
                random.choose(kinds)
            };
            let budget = random.between(1, (period * 3 / 2 / count).clamp(1, period));
            let tasks = (0..random.between(1, 3)).map(|_| local(random)).collect();
            Cell {
                server: Server::new(kind, budget, period),
                tasks,
            }
        })
        .collect();
    System { cells, refill }
}

fn local(random: &mut Random) -> LocalTask {
    let period = random.between(5, 60);
    let wcet = random.between(1, 6);
    let deadline = match random.between(0, 3) {
        0 => random.between(wcet, period),
        1 => period,
        _ => period * random.between(1, 4),
    };
    let jitter = if random.percent(25) {
        random.between(0, period / 2)
    } else {
        0
    };
    LocalTask {
        task: Task::new(wcet, period)
            .due(deadline.max(wcet))
            .jittered(jitter),
        bound: random.percent(35),
    }
}

/// Everything at its worst for one server, as far as a construction can know: its budget just used up, and those above
/// striking in the period in which the work would end.
fn critical(system: &System, target: usize, random: &mut Random) -> Vec<SimServer> {
    let server = system.cells[target].server;
    let last = START + random.between(0, 4) * server.period;
    let above_above = |at: usize| at < target;
    let cells = system.cells.iter().enumerate();
    cells
        .map(|(at, cell)| {
            let Server {
                kind,
                budget,
                period,
                ..
            } = cell.server;
            let phase = match system.refill {
                Refill::Together => START % period,
                Refill::Apart if at == target => START % period,
                Refill::Apart if kind == Kind::Deferrable => (last + budget) % period,
                Refill::Apart => last % period,
            };
            let lazy = random.percent(50) && at != target;
            let mut tasks: Vec<_> = cell
                .tasks
                .iter()
                .map(|local| {
                    let from = match (at == target, kind) {
                        (true, Kind::Polling) => START - period + 1,
                        (true, _) => START - (period - budget),
                        (false, _) => last,
                    };
                    let releases = if local.bound {
                        Releases::Bound {
                            from: START,
                            phase,
                            every: period,
                        }
                    } else {
                        Releases::DensestFrom(from)
                    };
                    releases.jobs(&local.task, UNTIL, random)
                })
                .collect();
            tasks.push(if at == target {
                if kind == Kind::Polling {
                    Vec::new()
                } else {
                    Releases::once(START - period, budget)
                }
            } else if above_above(at) {
                let early = match kind {
                    Kind::ConstantBandwidth => random.between(0, period),
                    _ => 0,
                };
                Releases::endless(last - early)
            } else {
                Releases::endless(SETTLED)
            });
            sim(cell, phase, lazy, tasks)
        })
        .collect()
}

/// Anything at all.
fn anyhow(system: &System, random: &mut Random) -> Vec<SimServer> {
    let common = random.between(0, 15);
    system
        .cells
        .iter()
        .map(|cell| {
            let period = cell.server.period;
            let phase = match system.refill {
                Refill::Together => common % period,
                Refill::Apart => random.between(0, period - 1),
            };
            let together = random.between(SETTLED, START);
            let mut tasks: Vec<_> = cell
                .tasks
                .iter()
                .map(|local| {
                    let releases = if local.bound && analysed_as_bound(cell, local) {
                        Releases::Bound {
                            from: random.between(SETTLED, START),
                            phase,
                            every: period,
                        }
                    } else if random.percent(60) {
                        Releases::DensestFrom(together)
                    } else {
                        Releases::Random(random.between(SETTLED, 100))
                    };
                    releases.jobs(&local.task, UNTIL, random)
                })
                .collect();
            let at = random.between(SETTLED, together);
            tasks.push(match random.between(0, 3) {
                0 => Vec::new(),
                1 => Releases::endless(at),
                2 => Releases::once(at, random.between(1, cell.server.budget)),
                _ => Releases::Random(SETTLED).jobs(
                    &Task::new(cell.server.budget, random.between(1, 3 * period)).due(10_000),
                    UNTIL,
                    random,
                ),
            });
            sim(cell, phase, random.percent(50), tasks)
        })
        .collect()
}

/// Bound tasks of servers without periodic refills, and jittered ones, are promised nothing for being bound.
fn analysed_as_bound(cell: &Cell, local: &LocalTask) -> bool {
    local.task.jitter == 0
        && matches!(
            cell.server.kind,
            Kind::Deferrable | Kind::Polling | Kind::Periodic
        )
}

fn sim(cell: &Cell, phase: u64, lazy: bool, tasks: Vec<Vec<Job>>) -> SimServer {
    SimServer {
        source: Source::Budget {
            kind: cell.server.kind,
            budget: cell.server.budget,
            period: cell.server.period,
            phase,
            lazy,
        },
        policy: Policy::FixedPriority,
        tasks,
    }
}

/// How many bounds were tried, and how many were attained.
#[derive(Default, Debug)]
struct Tally {
    bounds: u64,
    attained: u64,
}

impl Tally {
    fn compare(&mut self, analysis: &Analysis, servers: &[SimServer], seed: u64, system: &System) {
        for (cell, (bounds, seen)) in analysis
            .cells
            .iter()
            .zip(simulate(servers, UNTIL))
            .enumerate()
        {
            let about = || {
                format!(
                    "seed {seed}, cell {cell}\n{:#?}\n{servers:#?}",
                    system.cells
                )
            };
            if let Some(bound) = bounds.server.bound() {
                assert!(
                    seen.server <= bound,
                    "server {} > {bound}: {}",
                    seen.server,
                    about()
                );
            }
            for (task, (bound, seen)) in bounds.tasks.iter().zip(seen.tasks).enumerate() {
                if let Some(bound) = bound.bound() {
                    assert!(seen <= bound, "task {task} {seen} > {bound}: {}", about());
                    self.bounds += 1;
                    self.attained += u64::from(seen == bound);
                }
            }
        }
    }
}

#[test]
fn no_bound_is_below_what_was_simulated() {
    let mut tally = Tally::default();
    let sets = set_count(3_000);
    for seed in 0..sets {
        let random = &mut Random::new(seed);
        let system = system(random);
        let analysis = analyze(&system.cells, system.refill);
        for target in 0..system.cells.len() {
            let servers = critical(&system, target, random);
            tally.compare(&analysis, &servers, seed, &system);
        }
        for _ in 0..2 {
            let servers = anyhow(&system, random);
            tally.compare(&analysis, &servers, seed, &system);
        }
    }
    println!("{sets} sets: {tally:?}");
    // No bounds at all would pass too; and where critical instants attain none, the simulator is too kind.
    assert!(tally.bounds > sets, "{tally:?}");
    assert!(tally.attained > sets / 10, "{tally:?}");
}

/// The two published examples are attained to the nanosecond.
#[test]
fn the_examples_are_attained() {
    for (refill, above, expected) in [
        (
            Refill::Together,
            Server::new(Kind::Deferrable, 2, 10),
            [11, 22],
        ),
        (Refill::Apart, Server::new(Kind::Deferrable, 2, 7), [13, 24]),
    ] {
        let cells = vec![
            Cell {
                server: above,
                tasks: Vec::new(),
            },
            Cell {
                server: Server::new(Kind::Deferrable, 3, 10),
                tasks: vec![
                    LocalTask::unbound(Task::new(2, 25)),
                    LocalTask::unbound(Task::new(4, 50)),
                ],
            },
        ];
        let system = System { cells, refill };
        let mut longest = [0; 2];
        for seed in 0..40 {
            let servers = critical(&system, 1, &mut Random::new(seed));
            let seen = &simulate(&servers, UNTIL)[1].tasks;
            longest = [longest[0].max(seen[0]), longest[1].max(seen[1])];
        }
        assert_eq!(longest, expected);
    }
}
/// EDF inside a server: the analysis of any supply, on the supply of a server among servers.
#[test]
fn edf_inside_a_server_among_servers() {
    let (mut schedulable, mut missed) = (0u64, 0u64);
    let sets = set_count(2_000);
    for seed in 0..sets {
        let random = &mut Random::new(seed ^ 0xEDF);
        let mut system = system(random);
        for local in system.cells.iter_mut().flat_map(|cell| &mut cell.tasks) {
            local.bound = false;
        }
        let servers: Vec<Server> = system.cells.iter().map(|cell| cell.server).collect();
        let bounds: Vec<_> = system
            .cells
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let supply = ServerSupply::new(&servers, at, system.refill).ok()?;
                let tasks: Vec<Task> = cell.tasks.iter().map(|local| local.task).collect();
                Some(timecell_analysis::inside::edf(&tasks, &supply))
            })
            .collect();
        for target in 0..=system.cells.len() {
            let mut servers = match target < system.cells.len() {
                true => critical(&system, target, random),
                false => anyhow(&system, random),
            };
            for server in &mut servers {
                server.policy = Policy::Edf {
                    last_wins: random.percent(50),
                };
            }
            for (cell, seen) in simulate(&servers, UNTIL).iter().enumerate() {
                let Some(bound) = &bounds[cell] else {
                    continue;
                };
                let tasks = system.cells[cell].tasks.len();
                let late = seen.missed[..tasks].contains(&true);
                missed += u64::from(late);
                let about = || {
                    format!(
                        "seed {seed}, cell {cell}: {:#?}\n{servers:#?}",
                        system.cells
                    )
                };
                if bound.verdict.is_schedulable() {
                    schedulable += 1;
                    assert!(!late, "{}", about());
                }
                for (bound, seen) in bound.responses.iter().zip(&seen.tasks) {
                    let Some(bound) = bound else { continue };
                    assert!(seen <= bound, "{seen} > {bound}: {}", about());
                }
            }
        }
    }
    println!("{sets} sets: {schedulable} schedulable cells simulated, {missed} misses elsewhere");
    assert!(schedulable > sets / 4 && missed > sets / 10);
}
