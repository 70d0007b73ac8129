//! The simulated machine: servers, queues and the choice of the running task.

use super::Job;
use timecell_analysis::server::Kind;

/// The order of tasks inside a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The first task in the list.
    FixedPriority,
    /// The job with the earliest absolute deadline; among equals the first task, or the last.
    Edf { last_wins: bool },
}

/// Where a server's time comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A budget refilled at `phase + k * period`, or by the kind's own rule.
    Budget {
        kind: Kind,
        budget: u64,
        period: u64,
        phase: u64,
        /// A polling server notices only when it would run that it has nothing to do.
        lazy: bool,
    },
    /// It may run in exactly these ticks, repeated for ever.
    Pattern(Vec<bool>),
}

#[derive(Debug, Clone)]
pub struct SimServer {
    pub source: Source,
    pub policy: Policy,
    /// The jobs of each task inside, by release.
    pub tasks: Vec<Vec<Job>>,
}

/// The observations of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Longest time from a refill until the budget was used up, with work waiting all the while; longer than the
    /// period if the next refill came first. Servers with periodic refills only.
    pub server: u64,
    /// Longest time from the arrival to the completion of a job of each task, or to the end of the simulation.
    pub tasks: Vec<u64>,
    /// Whether a job was not complete by a deadline that came before the end.
    pub missed: Vec<bool>,
}

/// Runs the servers, highest priority first, from 0 to `until`. Constant bandwidth servers run above all others.
pub fn simulate(servers: &[SimServer], until: u64) -> Vec<Observed> {
    let mut all: Vec<State> = servers.iter().map(State::new).collect();
    for now in 0..until {
        for state in &mut all {
            state.start_tick(now);
        }
        let running = dispatch(&all, now);
        let running = match running {
            // A lazy polling server finds out now; the tick goes to the next server.
            Some(at) if all[at].polls_in_vain() => {
                all[at].budget = 0;
                dispatch(&all, now)
            }
            other => other,
        };
        for (at, state) in all.iter_mut().enumerate() {
            let at_or_above =
                running.is_some_and(|running| running <= at || all_above(servers, running, at));
            state.run_tick(now, running == Some(at), at_or_above);
        }
    }
    all.into_iter().map(|state| state.finish(until)).collect()
}

fn all_above(servers: &[SimServer], running: usize, at: usize) -> bool {
    is_cbs(&servers[running]) && !is_cbs(&servers[at])
}

fn is_cbs(server: &SimServer) -> bool {
    matches!(
        server.source,
        Source::Budget {
            kind: Kind::ConstantBandwidth,
            ..
        }
    )
}

fn dispatch(all: &[State], now: u64) -> Option<usize> {
    let ready = |at: &usize| all[*at].is_ready(now);
    let by_deadline = (0..all.len())
        .filter(|at| is_cbs(all[*at].server))
        .filter(ready)
        .min_by_key(|at| all[*at].deadline);
    by_deadline.or_else(|| {
        (0..all.len())
            .filter(|at| !is_cbs(all[*at].server))
            .find(ready)
    })
}

struct State<'a> {
    server: &'a SimServer,
    budget: u64,
    /// Of each task: jobs released, jobs completed, work left of the first that is not.
    queues: Vec<Queue>,
    /// Constant bandwidth: the current deadline.
    deadline: u64,
    had_work: bool,
    /// Sporadic: since when each unit left has been usable while this priority or a higher one was running, and when
    /// each unit used comes back.
    usable_since: Vec<u64>,
    comes_back: Vec<u64>,
    /// The last refill, if there has been work ever since.
    backlogged_since: Option<u64>,
    observed: Observed,
}

#[derive(Clone, Copy, Default)]
struct Queue {
    released: usize,
    done: usize,
    left: u64,
}

impl<'a> State<'a> {
    fn new(server: &'a SimServer) -> State<'a> {
        // 0 lies within a period; only these kinds can have kept a whole budget since it began. The others may have less
        // than they could: work should come after the first refill.
        let budget = match server.source {
            Source::Budget {
                kind: Kind::Deferrable | Kind::Sporadic,
                budget,
                ..
            } => budget,
            _ => 0,
        };
        State {
            server,
            budget,
            queues: vec![Queue::default(); server.tasks.len()],
            deadline: 0,
            had_work: false,
            usable_since: vec![0; budget as usize],
            comes_back: Vec::new(),
            backlogged_since: None,
            observed: Observed {
                server: 0,
                tasks: vec![0; server.tasks.len()],
                missed: vec![false; server.tasks.len()],
            },
        }
    }

    fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| queue.done < queue.released)
    }

    fn start_tick(&mut self, now: u64) {
        for (queue, jobs) in self.queues.iter_mut().zip(&self.server.tasks) {
            while jobs
                .get(queue.released)
                .is_some_and(|job| job.release <= now)
            {
                if queue.done == queue.released {
                    queue.left = jobs[queue.released].work;
                }
                queue.released += 1;
            }
        }
        let Source::Budget {
            kind,
            budget,
            period,
            phase,
            lazy,
        } = self.server.source
        else {
            return;
        };
        let work = self.has_work();
        match kind {
            Kind::Deferrable | Kind::Polling | Kind::Periodic => {
                if now % period == phase % period {
                    if self.backlogged_since.is_some() && self.budget > 0 {
                        self.observed.server = self.observed.server.max(period + 1);
                    }
                    self.budget = budget;
                    self.backlogged_since = Some(now);
                }
                if !work && kind != Kind::Periodic {
                    self.backlogged_since = None;
                }
                if kind == Kind::Polling && !work && !lazy {
                    self.budget = 0;
                }
            }
            Kind::Sporadic => {
                while self.comes_back.first().is_some_and(|when| *when <= now) {
                    self.comes_back.remove(0);
                    self.usable_since.push(now);
                    self.budget += 1;
                }
                assert!(
                    self.budget <= budget,
                    "a sporadic server has more than its budget"
                );
            }
            Kind::ConstantBandwidth => {
                if self.budget == 0 && self.deadline == now && now > 0 {
                    self.budget = budget;
                    self.deadline += period;
                }
                let woken = work && !self.had_work;
                if woken
                    && (self.deadline <= now
                        || self.budget * period > (self.deadline - now) * budget)
                {
                    self.budget = budget;
                    self.deadline = now + period;
                }
            }
        }
        self.had_work = work;
    }

    fn is_ready(&self, now: u64) -> bool {
        match &self.server.source {
            Source::Pattern(pattern) => pattern[now as usize % pattern.len()],
            Source::Budget { kind, lazy, .. } => {
                let burns = *kind == Kind::Periodic || (*kind == Kind::Polling && *lazy);
                self.budget > 0 && (burns || self.has_work())
            }
        }
    }

    fn polls_in_vain(&self) -> bool {
        let polling = matches!(
            self.server.source,
            Source::Budget {
                kind: Kind::Polling,
                ..
            }
        );
        polling && !self.has_work()
    }

    fn run_tick(&mut self, now: u64, runs: bool, at_or_above: bool) {
        let sporadic_period = match self.server.source {
            Source::Budget {
                kind: Kind::Sporadic,
                period,
                ..
            } => Some(period),
            _ => None,
        };
        if sporadic_period.is_some() && !at_or_above {
            // Budget kept through an idle time becomes usable anew after it.
            self.usable_since.fill(now + 1);
        }
        if !runs {
            return;
        }
        if matches!(self.server.source, Source::Budget { .. }) {
            self.budget -= 1;
            if let Some(period) = sporadic_period {
                let since = self.usable_since.remove(0);
                self.comes_back.push(since + period);
            }
            if self.budget == 0
                && let Some(since) = self.backlogged_since.take()
            {
                self.observed.server = self.observed.server.max(now + 1 - since);
            }
        }
        self.serve(now);
    }

    /// One tick for the first job inside.
    fn serve(&mut self, now: u64) {
        let waiting = (0..self.queues.len())
            .filter(|task| self.queues[*task].done < self.queues[*task].released);
        let deadline = |task: &usize| self.server.tasks[*task][self.queues[*task].done].deadline;
        let first = match self.server.policy {
            Policy::FixedPriority => waiting.min(),
            Policy::Edf { last_wins: false } => waiting.min_by_key(deadline),
            Policy::Edf { last_wins: true } => waiting.rev().min_by_key(deadline),
        };
        let Some(task) = first else {
            return;
        };
        let queue = &mut self.queues[task];
        queue.left -= 1;
        if queue.left == 0 {
            let job = self.server.tasks[task][queue.done];
            queue.done += 1;
            if queue.done < queue.released {
                queue.left = self.server.tasks[task][queue.done].work;
            }
            self.see(task, job, now + 1);
        }
    }

    fn see(&mut self, task: usize, job: Job, end: u64) {
        let longest = &mut self.observed.tasks[task];
        *longest = (*longest).max(end - job.arrival);
        self.observed.missed[task] |= end > job.deadline;
    }

    fn finish(mut self, until: u64) -> Observed {
        for task in 0..self.queues.len() {
            let Queue { released, done, .. } = self.queues[task];
            for job in done..released {
                let job = self.server.tasks[task][job];
                self.see(task, job, until);
            }
        }
        self.observed
    }
}
