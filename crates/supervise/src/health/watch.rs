//! The condition that one rule watches for.

use std::collections::BTreeMap;

use super::event::Event;
use super::finding::Sight;
use super::lateness::Lateness;
use super::silence::Silence;
use super::{Config, UnknownTask};
use model::mission::{ExitStatus, Observed};

/// The condition of a rule, and how near it is.
#[derive(Debug, Clone)]
pub(super) enum Watch {
    Exit(ExitStatus),
    Heartbeat {
        task: Option<usize>,
        silence: Silence,
    },
    Misses {
        task: Option<usize>,
        misses: u32,
        jobs: u32,
        of: BTreeMap<usize, Lateness>,
    },
    Budget {
        periods: u32,
        row: u32,
    },
    MemoryLimit,
    NoProgress {
        silence: Silence,
        /// Whether the application reports its jobs: then only their ends are progress.
        reports: bool,
    },
    Overrun {
        task: Option<usize>,
    },
    Unproved {
        task: Option<usize>,
    },
    RestartLimit,
}

impl Watch {
    pub(super) fn new(when: &Observed, config: &Config) -> Result<Watch, UnknownTask> {
        let task = when.task().map(|name| config.task(name)).transpose()?;
        Ok(match when {
            Observed::Exit { status } => Watch::Exit(*status),
            Observed::Heartbeat { timeout, .. } => Watch::Heartbeat {
                task,
                silence: Silence::new(timeout.ns()),
            },
            Observed::DeadlineMisses { misses, jobs, .. } => Watch::Misses {
                task,
                misses: *misses,
                jobs: *jobs,
                of: BTreeMap::new(),
            },
            Observed::BudgetExhausted { periods } => Watch::Budget {
                periods: (*periods).max(1),
                row: 0,
            },
            Observed::MemoryLimit => Watch::MemoryLimit,
            Observed::NoProgress { timeout } => Watch::NoProgress {
                silence: Silence::new(timeout.ns()),
                reports: false,
            },
            Observed::Overrun { .. } => Watch::Overrun { task },
            Observed::Unproved { .. } => Watch::Unproved { task },
            Observed::RestartLimit => Watch::RestartLimit,
        })
    }

    /// The cell has been started.
    pub(super) fn start(&mut self, now_ns: i64) {
        match self {
            Watch::Heartbeat { silence, .. } => silence.begin(now_ns),
            Watch::NoProgress { silence, reports } => {
                silence.begin(now_ns);
                *reports = false;
            }
            Watch::Misses { of, .. } => of.clear(),
            Watch::Budget { row, .. } => *row = 0,
            Watch::Exit(_)
            | Watch::MemoryLimit
            | Watch::Overrun { .. }
            | Watch::Unproved { .. }
            | Watch::RestartLimit => {}
        }
    }

    /// The cell continues after it was frozen.
    pub(super) fn thaw(&mut self, now_ns: i64) {
        if let Watch::Heartbeat { silence, .. } | Watch::NoProgress { silence, .. } = self {
            silence.begin(now_ns);
        }
    }

    /// The cell does not run.
    pub(super) fn rest(&mut self) {
        if let Watch::Heartbeat { silence, .. } | Watch::NoProgress { silence, .. } = self {
            silence.expect_nothing();
        }
    }

    /// When [`Watch::look`] is to be called at the latest.
    pub(super) fn due_ns(&self) -> Option<i64> {
        match self {
            Watch::Heartbeat { silence, .. } | Watch::NoProgress { silence, .. } => {
                silence.due_ns()
            }
            _ => None,
        }
    }

    /// The observation that the passing of time makes.
    pub(super) fn look(&mut self, now_ns: i64) -> Option<Sight> {
        match self {
            Watch::Heartbeat { task, silence } => {
                let timeout_ns = silence.timeout_ns();
                let silent_ns = silence.look(now_ns)?;
                Some(Sight::Silent {
                    task: *task,
                    silent_ns,
                    timeout_ns,
                })
            }
            Watch::NoProgress { silence, .. } => {
                let timeout_ns = silence.timeout_ns();
                let still_ns = silence.look(now_ns)?;
                Some(Sight::Still {
                    still_ns,
                    timeout_ns,
                })
            }
            _ => None,
        }
    }

    /// The observation that an event of a running cell makes.
    pub(super) fn see(&mut self, event: Event, now_ns: i64, config: &Config) -> Option<Sight> {
        match self {
            Watch::Exit(status) => match event {
                Event::Ended(end) if *status == ExitStatus::Any || end.is_failure() => {
                    Some(Sight::Ended(end))
                }
                _ => None,
            },
            Watch::Heartbeat { task, silence } => {
                let from = reporting(event)?;
                if task.is_none_or(|task| task == from) {
                    silence.sign(now_ns);
                }
                None
            }
            Watch::Misses {
                task,
                misses,
                jobs,
                of,
            } => {
                let (from, jobs_over) = lateness(event, config)?;
                if task.is_some_and(|task| task != from) {
                    return None;
                }
                let new = || Lateness::new(*misses, *jobs);
                let lateness = of.entry(from).or_insert_with(new);
                let broken = match jobs_over {
                    Over::LateLast { jobs, late } => lateness.go_on(jobs, late),
                    Over::Spread { jobs, late } => lateness.go_on_spread(jobs, late),
                };
                broken.then_some(Sight::Late {
                    task: from,
                    misses: *misses,
                    jobs: *jobs,
                })
            }
            Watch::Budget { periods, row } => {
                let Event::BudgetPeriod { exhausted } = event else {
                    return None;
                };
                *row = if exhausted { *row + 1 } else { 0 };
                if *row < *periods {
                    return None;
                }
                *row = 0;
                Some(Sight::Exhausted { periods: *periods })
            }
            Watch::MemoryLimit => (event == Event::MemoryLimit).then_some(Sight::MemoryLimit),
            Watch::NoProgress { silence, reports } => {
                let progress = match event {
                    Event::JobEnded { .. } | Event::JobsUnseen { .. } => {
                        *reports = true;
                        true
                    }
                    Event::JobBegun { .. } => {
                        *reports = true;
                        false
                    }
                    Event::Ran => !*reports,
                    _ => false,
                };
                if progress {
                    silence.sign(now_ns);
                }
                None
            }
            Watch::Overrun { task } => {
                let (from, ran_ns) = overrun(event, config)?;
                let ours = task.is_none() || from.is_none() || *task == from;
                ours.then_some(Sight::Overran { task: from, ran_ns })
            }
            Watch::Unproved { task } => match event {
                Event::Unproved { task: from } if task.is_none_or(|task| task == from) => {
                    Some(Sight::Unproved { task: from })
                }
                _ => None,
            },
            Watch::RestartLimit => None,
        }
    }
}

/// The task that has reported by this event.
fn reporting(event: Event) -> Option<usize> {
    match event {
        Event::Heartbeat { task }
        | Event::JobBegun { task }
        | Event::JobEnded { task, .. }
        | Event::JobsUnseen { task, .. } => Some(task),
        _ => None,
    }
}

/// Jobs that are over, and how many of them were late: the last ones, or some here and there.
enum Over {
    LateLast { jobs: u64, late: u64 },
    Spread { jobs: u64, late: u64 },
}

/// Jobs that this event says are over, and their task.
fn lateness(event: Event, config: &Config) -> Option<(usize, Over)> {
    match event {
        Event::JobEnded {
            task, response_ns, ..
        } => {
            let times = config.tasks.get(task);
            let deadline_ns = times.and_then(|times| times.deadline_ns);
            let late = deadline_ns.is_some_and(|deadline_ns| response_ns > deadline_ns);
            let late = u64::from(late);
            Some((task, Over::LateLast { jobs: 1, late }))
        }
        Event::JobsUnseen {
            task,
            jobs,
            late,
            stalled,
        } => Some(match stalled {
            false => (task, Over::LateLast { jobs, late }),
            true => (task, Over::Spread { jobs, late }),
        }),
        Event::JobsMissed { task, jobs } => {
            let late = jobs;
            Some((task, Over::LateLast { jobs, late }))
        }
        _ => None,
    }
}

/// A job that ran for longer than its wcet by this event: its task, and how long it ran.
fn overrun(event: Event, config: &Config) -> Option<(Option<usize>, Option<i64>)> {
    match event {
        Event::Overran { task } => Some((task, None)),
        Event::JobEnded {
            task,
            ran_ns: Some(ran_ns),
            ..
        } => {
            let wcet_ns = config.tasks.get(task)?.wcet_ns?;
            (ran_ns > wcet_ns).then_some((Some(task), Some(ran_ns)))
        }
        _ => None,
    }
}
