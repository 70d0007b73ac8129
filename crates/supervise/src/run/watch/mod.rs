//! The supervisor's view of a running cell: the page in which its application reports its jobs, and the kernel's counts
//! for it; all of it goes to the cell's health monitor. Looking costs time, so each cell is looked at as seldom as its
//! rules allow: when a silence would be over, and otherwise by the shortest period that a rule needs.

mod interval;
mod limits;
mod outside;
mod overrun;
mod paging;
mod skipped;
mod told;

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use model::mission::{Arrivals, Cell, Criticality, Observed, Ready};
use timecell_client::layout::BUCKETS;

use self::interval::{BudgetOf, Interval};
use self::limits::Limits;
use self::outside::Outside;
pub(in crate::run) use self::outside::unseen_ns;
pub(in crate::run) use self::overrun::Overrun;
pub(in crate::run) use self::paging::Paging;
use self::skipped::Grid;
use self::told::Told;
use crate::admit::Grant;
use crate::cause::Cause;
use crate::control::{Responses, TaskStatus};
use crate::end::End;
use crate::health::{CellHealth, Config, Event, Finding, TaskTimes};
use crate::incident::{Evidence, JobSample, OutputTail};
use crate::page::{Job, News, Page, Place, Running, Totals};
use crate::state::Limit;

/// One cell as it is watched, over all its lives.
#[derive(Debug)]
pub(in crate::run) struct CellWatch {
    health: CellHealth,
    /// Of each task, the grid that shows which of its releases are left out; `None`: its jobs come when they come.
    grids: Vec<Option<Grid>>,
    interval: Interval,
    page: Option<Page>,
    told: Told,
    outside: Outside,
    limits: Limits,
    overrun: Option<Overrun>,
    /// The budget of low mode, of a cell without tasks, and since when its periods are counted.
    low: Option<BudgetOf>,
    low_from_ns: Option<i64>,
    /// The last jobs, oldest first.
    jobs: VecDeque<JobSample>,
    /// The longest response time of each task since they were last taken, ns.
    worst_ns: Vec<i64>,
    /// The job of each task that ran at the last look.
    running: Vec<Option<Running>>,
    life: Option<Life>,
}

/// The kernel's counts of a cell. Opened before its program runs: one that ends at once may take its groups, and the
/// counters in them, away before anybody looks.
#[derive(Debug, Default)]
pub(in crate::run) struct Counters {
    outside: Outside,
    limits: Limits,
}

impl Counters {
    /// Of the cell whose first process this is, and whose cgroups these are.
    pub(in crate::run) fn of(pid: i32, groups: &[PathBuf]) -> Counters {
        Counters {
            outside: Outside::of(pid, groups),
            limits: Limits::of(groups, &[]).of_program(pid),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Life {
    looked_ns: i64,
    ready: bool,
    budget: Option<BudgetLook>,
}

/// Cpu time at the beginning of the budget period that is counted now.
#[derive(Debug, Clone, Copy)]
struct BudgetLook {
    from_ns: i64,
    used_ns: i64,
    /// The use beyond the budget before: the kernel sees it at its tick and takes it off the next period.
    over_ns: i64,
}

/// The results of a look.
#[derive(Debug, Default)]
pub(in crate::run) struct Looked {
    pub(in crate::run) findings: Vec<Finding>,
    /// The cell has become ready by ending its first job.
    pub(in crate::run) ready: bool,
    /// It has used more than its times of low mode.
    pub(in crate::run) overran: bool,
    /// It has come up against a limit.
    pub(in crate::run) limits: bool,
    /// The part of its page that cannot be believed or read, as a sentence; told once a life.
    pub(in crate::run) broken: Option<String>,
}

impl CellWatch {
    /// Of a cell that does not run yet and may use this many cpus. `past_restarts_ns` count towards its restart limit.
    pub(in crate::run) fn new(
        cell: &Cell,
        grant: Option<&Grant>,
        cpus: usize,
        modes: bool,
        past_restarts_ns: &[i64],
    ) -> Result<CellWatch, String> {
        let config = Config {
            tasks: (cell.tasks.iter())
                .map(|task| TaskTimes {
                    name: task.name().to_owned(),
                    deadline_ns: Some(task.timing.deadline.ns()),
                    wcet_ns: Some(task.timing.wcet.ns()),
                })
                .collect(),
            rules: cell.health.clone(),
            restart: cell.restart,
        };
        let health =
            CellHealth::new(config, past_restarts_ns).map_err(|unknown| unknown.to_string())?;
        let switches = modes && cell.criticality == Criticality::High;
        let ruled = (cell.health.iter()).any(|rule| matches!(rule.when, Observed::Overrun { .. }));
        let times_ns =
            |task: &model::mission::Task| (task.timing.wcet.ns(), task.timing.period.ns());
        let unseen_ns = outside::unseen_ns(cpus);
        Ok(CellWatch {
            health,
            grids: grids(cell),
            interval: Interval::of(cell, grant, switches),
            page: None,
            told: Told::default(),
            outside: Outside::default(),
            limits: Limits::default(),
            overrun: match (switches || ruled, low_budget(cell)) {
                (true, _) if !cell.tasks.is_empty() => {
                    Some(Overrun::new(cell.tasks.iter().map(times_ns), unseen_ns))
                }
                // A budget that falls into a window in part at both ends.
                (true, Some(low)) => {
                    let both = [(low.budget_ns, low.period_ns); 2];
                    Some(Overrun::new(both, unseen_ns))
                }
                _ => None,
            },
            low: low_budget(cell).filter(|_| cell.tasks.is_empty()),
            low_from_ns: None,
            jobs: VecDeque::new(),
            worst_ns: vec![0; cell.tasks.len()],
            running: vec![None; cell.tasks.len()],
            life: None,
        })
    }

    /// The definition of the page of the cell's next life.
    pub(in crate::run) fn paging(&self) -> Paging {
        Paging::of(self.tasks())
    }

    /// The cell runs, and reports to this page.
    pub(in crate::run) fn started(
        &mut self,
        page: Option<Page>,
        Counters { outside, limits }: Counters,
        now_ns: i64,
    ) {
        self.page = page;
        self.outside = outside;
        self.limits = limits;
        self.interval.forks = self.limits.forks_are_silent();
        self.begin(now_ns, false);
        self.told.forget();
        self.running.fill(None);
        // A start is no finding.
        self.health.observe(now_ns, Event::Started);
    }

    /// A running cell was adopted; `dir` is where its page would be, `told` the limits that it is known to have
    /// reached.
    pub(in crate::run) fn adopted(
        &mut self,
        dir: &Path,
        pid: i32,
        groups: &[PathBuf],
        told: &[Limit],
        now_ns: i64,
    ) {
        let place = Place::at(dir).page();
        self.page = match place.exists() {
            true => Page::open(&place, self.tasks().len()).ok(),
            false => None,
        };
        self.outside = Outside::of(pid, groups);
        self.limits = Limits::of(groups, told).of_program(pid).outlived();
        self.interval.forks = self.limits.forks_are_silent();
        self.begin(now_ns, true);
        self.health.observe(now_ns, Event::Started);
    }

    fn begin(&mut self, now_ns: i64, ready: bool) {
        for grid in self.grids.iter_mut().flatten() {
            *grid = grid.anew();
        }
        self.outside.has_run();
        self.low_from_ns = None;
        if let Some(overrun) = &mut self.overrun {
            overrun.forget();
        }
        self.life = Some(Life {
            looked_ns: now_ns,
            ready: ready || self.interval.ready == Ready::Started,
            budget: None,
        });
    }

    /// For each task, the id in the cell of the thread that begins its jobs; 0, or nothing, where the application does not say.
    pub(in crate::run) fn threads(&self) -> Vec<u32> {
        let threads = self.page.as_ref().map(Page::threads);
        threads.and_then(Result::ok).unwrap_or_default()
    }

    /// Whether those that wait for it may start.
    pub(in crate::run) fn is_ready(&self) -> bool {
        self.life.is_some_and(|life| life.ready)
    }

    /// When to look at it; `None`: nothing that it does is of interest until it ends.
    pub(in crate::run) fn due_ns(&self) -> Option<i64> {
        let life = self.life?;
        let look = (self.every_ns(life)).map(|every| interval::next_ns(life.looked_ns, every));
        look.into_iter().chain(self.health.due_ns()).min()
    }

    fn every_ns(&self, life: Life) -> Option<i64> {
        let (reports, heartbeats) = (self.told.has_reports(), self.told.has_heartbeats());
        (self.interval).every_ns(life.ready, self.page.is_some(), reports, heartbeats)
    }

    /// Looks at it, now.
    pub(in crate::run) fn look(&mut self, now_ns: i64) -> Looked {
        let mut looked = Looked::default();
        let Some(mut life) = self.life else {
            return looked;
        };
        // Before the jobs: a job's use after this instant is not held against those that have ended.
        let used_ns = self.outside.cell_ns();
        if let Some(overrun) = &mut self.overrun {
            overrun.earn(now_ns);
        }
        let since_ns = life.looked_ns;
        let stalled = (self.every_ns(life)).is_some_and(|every| now_ns - since_ns > 2 * every);
        let mut events = self.read_page(since_ns, now_ns, stalled, &mut looked);
        if !life.ready
            && events.iter().any(|(_, event)| {
                matches!(event, Event::JobEnded { .. } | Event::JobsUnseen { .. })
            })
        {
            life.ready = true;
            looked.ready = true;
        }
        if self.has_overrun(used_ns, now_ns) {
            looked.overran = true;
            let task = (self.tasks().len() == 1).then_some(0);
            events.push((now_ns, Event::Overran { task }));
        }
        self.look_at_budget(&mut life, now_ns, &mut events);
        if self.interval.still && self.outside.has_run() {
            events.push((now_ns, Event::Ran));
        }
        if self.interval.memory && self.outside.memory_hits() > 0 {
            looked.limits = true;
            events.push((now_ns, Event::MemoryLimit));
        }
        looked.limits |= self.interval.forks && self.limits.has_refused_forks();
        for (at_ns, event) in events {
            looked.findings.extend(self.health.observe(at_ns, event));
        }
        looked.findings.extend(self.health.tick(now_ns));
        life.looked_ns = now_ns;
        self.life = Some(life);
        looked
    }

    /// Whether more was used than low mode allows, where that can be told: by jobs that are reported, or by a budget.
    fn has_overrun(&mut self, used_ns: Option<i64>, now_ns: i64) -> bool {
        let (Some(overrun), Some(used_ns)) = (&mut self.overrun, used_ns) else {
            return false;
        };
        match self.low {
            Some(low) => {
                let from_ns = self.low_from_ns.get_or_insert(now_ns);
                let periods = (now_ns - *from_ns) / low.period_ns;
                *from_ns += periods * low.period_ns;
                overrun.ended(0, periods.unsigned_abs());
            }
            None if self.page.is_none() => return false,
            None => {}
        }
        overrun.look(used_ns)
    }

    fn read_page(
        &mut self,
        since_ns: i64,
        now_ns: i64,
        stalled: bool,
        looked: &mut Looked,
    ) -> Vec<(i64, Event)> {
        let Some(page) = &mut self.page else {
            return Vec::new();
        };
        let all = match page.scan() {
            Ok(all) => all,
            Err(error) => {
                looked.broken = Some(error.to_string());
                self.page = None;
                return Vec::new();
            }
        };
        if let Some(what) = all.iter().find_map(|news| news.nonsense) {
            looked.broken = self.told.nonsense_once(what);
        }
        for news in &all {
            self.keep_samples(news);
            self.keep_worst(news);
            if let Some(overrun) = &mut self.overrun {
                overrun.ended(news.slot, news.unseen + news.jobs.len() as u64);
            }
        }
        let mut events = Vec::new();
        for news in &all {
            if let Some(Some(grid)) = self.grids.get_mut(news.slot) {
                // A loop that runs a little slower was not followed through them.
                if stalled && news.unseen > 0 {
                    grid.interrupt();
                }
                let jobs = news.jobs.iter().map(|job| grid.go_on(job)).sum();
                if jobs > 0 {
                    let task = news.slot;
                    events.push((since_ns.min(now_ns), Event::JobsMissed { task, jobs }));
                }
            }
        }
        events.extend(self.told.events(&all, since_ns, now_ns, stalled));
        events
    }

    /// The longest response time of each task since the call before, ns; 0: no job has ended. A job that runs on, by these totals, has taken
    /// the time until now at least.
    pub(in crate::run) fn take_worst_ns(&mut self, totals: &[Totals], now_ns: i64) -> Vec<i64> {
        let none = vec![0; self.worst_ns.len()];
        let mut all = std::mem::replace(&mut self.worst_ns, none);
        for ((worst_ns, running), totals) in all.iter_mut().zip(&self.running).zip(totals) {
            if let Some(running) = running.filter(|running| running.number == totals.ended) {
                *worst_ns = (*worst_ns).max(now_ns.saturating_sub(running.release_ns));
            }
        }
        all
    }

    fn keep_worst(&mut self, news: &News) {
        if let Some(running) = self.running.get_mut(news.slot) {
            *running = news.running;
        }
        let deadline_ns = self
            .tasks()
            .get(news.slot)
            .and_then(|task| task.deadline_ns);
        let unseen_ns = deadline_ns.filter(|_| news.unseen_late > 0);
        let seen_ns = news.jobs.iter().filter_map(Job::response_ns);
        let worst_ns = seen_ns.chain(unseen_ns.map(|ns| ns + 1)).max();
        if let (Some(own), Some(worst_ns)) = (self.worst_ns.get_mut(news.slot), worst_ns) {
            *own = (*own).max(worst_ns);
        }
    }

    fn keep_samples(&mut self, news: &News) {
        let declared = self.tasks().get(news.slot);
        let task =
            declared.map_or_else(|| format!("number {}", news.slot), |task| task.name.clone());
        let deadline_ns = declared.and_then(|task| task.deadline_ns);
        for job in &news.jobs {
            let late = match (job.response_ns(), deadline_ns) {
                (Some(response_ns), Some(deadline_ns)) => response_ns > deadline_ns,
                _ => false,
            };
            self.jobs.push_back(JobSample {
                task: task.clone(),
                number: job.number,
                release_ns: job.release_ns,
                begin_ns: job.begin_ns,
                end_ns: job.end_ns,
                late,
            });
        }
        let surplus = self.jobs.len().saturating_sub(Evidence::MOST_JOBS);
        self.jobs.drain(..surplus);
    }

    /// Counts the budget periods that are over, each used up or not.
    fn look_at_budget(&self, life: &mut Life, now_ns: i64, events: &mut Vec<(i64, Event)>) {
        let (Some(budget), Some(used_ns)) = (self.interval.budget, self.outside.cell_ns()) else {
            return;
        };
        let look = *life.budget.get_or_insert(BudgetLook {
            from_ns: now_ns,
            used_ns,
            over_ns: 0,
        });
        let periods = (now_ns - look.from_ns) / budget.period_ns;
        if periods < 1 {
            return;
        }
        let most = budget.budget_ns.saturating_mul(periods);
        let used_now_ns = used_ns - look.used_ns + look.over_ns;
        let exhausted = budget.is_used_up(used_now_ns, most);
        events.extend((0..periods.min(64)).map(|_| (now_ns, Event::BudgetPeriod { exhausted })));
        life.budget = Some(BudgetLook {
            from_ns: now_ns,
            used_ns,
            over_ns: (used_now_ns - most).clamp(0, budget.budget_ns),
        });
    }

    /// Its program has ended, and its groups are still there: their counts stay known.
    pub(in crate::run) fn keep_counters(&mut self, now_ns: i64) {
        self.outside.keep();
        self.limits.keep(now_ns);
    }

    /// Why the kernel has killed its program, which has ended so, if it has for memory.
    pub(in crate::run) fn memory_kill(&self, end: End) -> Option<Cause> {
        self.limits.memory_kill().filter(|cause| cause.fits(end))
    }

    /// The limits that it has come up against, each once a life.
    pub(in crate::run) fn limits_reached(&mut self, now_ns: i64) -> Vec<Limit> {
        match self.life {
            Some(_) => self.limits.reached(now_ns),
            None => Vec::new(),
        }
    }

    /// Files on which the kernel signals (POLLPRI) that it comes up against one.
    pub(in crate::run) fn alarms(&self) -> impl Iterator<Item = RawFd> {
        self.life.iter().flat_map(|_| self.limits.alarms())
    }

    /// The bound of a task counts no more.
    pub(in crate::run) fn unproved(&mut self, now_ns: i64, task: usize) -> Vec<Finding> {
        self.health.observe(now_ns, Event::Unproved { task })
    }

    /// It was told to end.
    pub(in crate::run) fn stopping(&mut self, now_ns: i64) {
        self.health.observe(now_ns, Event::Stopping);
    }

    /// Its program has ended without having been told to.
    pub(in crate::run) fn ended(&mut self, now_ns: i64, end: End) -> Vec<Finding> {
        let mut findings = self.look(now_ns).findings;
        findings.extend(self.health.observe(now_ns, Event::Ended(end)));
        self.gone();
        findings
    }

    /// It has ended as it was told to.
    pub(in crate::run) fn gone(&mut self) {
        self.life = None;
        // Its place has room for one page only, and the cell's next life gets a new one.
        self.page = None;
    }

    /// It was frozen, or continues.
    pub(in crate::run) fn frozen(&mut self, now_ns: i64, frozen: bool) {
        for grid in self.grids.iter_mut().flatten() {
            grid.interrupt();
        }
        let event = if frozen { Event::Frozen } else { Event::Thawed };
        self.health.observe(now_ns, event);
    }

    /// Cpu time of all its processes, ns, with that out of band.
    pub(in crate::run) fn used_ns(&self) -> Option<i64> {
        let used_ns = self.outside.cell_ns()?;
        Some(used_ns.saturating_add(self.outside.out_of_band_ns))
    }

    /// Its threads that there are now have run out of band so long, ns, which Linux does not see. Those that have ended stay counted as
    /// long as the others have run for less.
    pub(in crate::run) fn ran_out_of_band(&mut self, ns: i64) {
        self.outside.out_of_band_ns = self.outside.out_of_band_ns.max(ns);
    }

    /// Its application's reports of its tasks; empty: it has no page, or one that cannot be believed, or no task is known by
    /// name.
    pub(in crate::run) fn reported(&self) -> Vec<TaskStatus> {
        let responses = self.believed().and_then(|page| page.responses().ok());
        let mut responses = responses.into_iter().flatten();
        let of_page = self.tasks().iter().zip(self.totals());
        (of_page.zip(&self.grids))
            .map(|((task, totals), grid)| {
                let counts = responses.next().filter(|counts| *counts != [0; BUCKETS]);
                let skipped = grid.as_ref().map_or(0, Grid::skipped);
                let missed = totals.abandoned.saturating_add(skipped);
                TaskStatus {
                    task: task.name.clone(),
                    jobs: totals.ended,
                    late: totals.late.saturating_add(missed),
                    skipped,
                    worst_response_ns: Some(totals.worst_response_ns).filter(|_| totals.ended > 0),
                    responses: counts.map_or_else(Responses::default, |counts| Responses {
                        counts: counts.to_vec(),
                        sum_ns: totals.responses_ns,
                    }),
                }
            })
            .collect()
    }

    /// The application's own counts of each task; empty as [`CellWatch::reported`].
    pub(in crate::run) fn totals(&self) -> Vec<Totals> {
        let totals = self.believed().and_then(|page| page.totals().ok());
        totals.unwrap_or_default()
    }

    /// The page of its life, unless it cannot be believed.
    fn believed(&self) -> Option<&Page> {
        let believed = self.life.is_some() && !self.told.is_unbelievable();
        self.page.as_ref().filter(|_| believed)
    }

    /// Its tasks.
    pub(in crate::run) fn tasks(&self) -> &[TaskTimes] {
        self.health.tasks()
    }

    /// The evidence of the time before an incident.
    pub(in crate::run) fn evidence(&self, output_tail: Option<OutputTail>) -> Evidence {
        let mut counters = std::collections::BTreeMap::new();
        if let Some(ns) = self.outside.cell_ns() {
            counters.insert("cpu_ns".to_owned(), ns);
        }
        if let Some(hits) = self.outside.all_memory_hits() {
            let hits = i64::try_from(hits).unwrap_or(i64::MAX);
            counters.insert("memory_limit_hits".to_owned(), hits);
        }
        Evidence {
            jobs: self.jobs.iter().cloned().collect(),
            counters,
            end: None,
            output_tail,
        }
    }
}

/// A grid for each task whose jobs come once in every period.
fn grids(cell: &Cell) -> Vec<Option<Grid>> {
    let periodic = |task: &model::mission::Task| {
        let timing = &task.timing;
        let grid = || Grid::new(timing.period.ns(), timing.jitter.ns());
        (task.arrivals == Arrivals::Periodic).then(grid)
    };
    cell.tasks.iter().map(periodic).collect()
}

/// The budget of low mode on all cpus together; `None`: the cell has no reservation of its own.
fn low_budget(cell: &Cell) -> Option<BudgetOf> {
    let reservation = cell.reservation.as_ref()?;
    Some(BudgetOf {
        budget_ns: reservation.budget.ns(),
        period_ns: reservation.period.ns().max(1),
    })
}
