//! The supply of one server among others.

use super::{Kind, LocalTask, Refill, Response, Server};
use crate::budget::{Budget, STEPS};
use crate::{MAX_NS, Ns, Part, Supply, Undecided, Verdict, Witness};

/// The guaranteed supply of one server among others to the tasks inside it.
///
/// After the longest wait for a refill ([`Server::gap`]) every period supplies the whole budget, and in the last,
/// partly used period the servers above come first: w = L + (n - 1)(T_S - C_S) + sum over X of
/// ceil((w - (n - 1) T_S + J_X) / T_X) C_X with n = ceil(L / C_S) for the work L (Davis and Burns, RTSS 2005,
/// section 4). Read as a [`Supply`], the inverse is gap + w, so that any analysis on a supply may be used inside a
/// server (its `sbf` is superadditive, since no period after the gap supplies less than the whole budget). Interference
/// is bounded from above, hence the supply from below: sufficient.
///
/// ```
/// use timecell_analysis::Supply;
/// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
/// let servers = [Server::new(Kind::Deferrable, 2, 10), Server::new(Kind::Deferrable, 3, 10)];
/// let supply = ServerSupply::new(&servers, 1, Refill::Together).unwrap();
/// // 7 until the refill, 2 for the server above, then at last the work itself.
/// assert_eq!(supply.inverse(1), Some(7 + 2 + 1));
/// assert_eq!(supply.sbf(9), 0);
/// assert_eq!(supply.rate(), (3, 10));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSupply {
    server: Server,
    delay: Delay,
}

/// The delay before the work within one period of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Delay {
    /// At most this long altogether.
    Constant(Ns),
    /// The servers above, each like a task with jitter.
    Above(Vec<Server>),
}

impl ServerSupply {
    /// The supply of `servers[index]` among all `servers`, highest priority first; first of all it is proved that the
    /// server, and each above it, gets its whole budget in every period.
    ///
    /// A server under fixed priorities: R_S = B + C_S + sum over X above of ceil((R_S + J_X) / T_X) C_X <= D_S, the
    /// deadline, which is at most T_S (Davis and Burns, RTSS 2005, section 3). Servers refilled [`Refill::Together`]: B +
    /// C_S + sum of C_X <= D_S. Constant
    /// bandwidth servers: sum of C/T <= 1 over all of them (Abeni and Buttazzo, RTSS 1998, theorem 1), compared
    /// exactly; the supply then is that of a periodic resource (Shin and Lee, RTSS 2003).
    ///
    /// # Errors
    /// [`Verdict::Unschedulable`] when the budget does not fit before the deadline; the indices in its witness are
    /// those of `servers`. [`Verdict::Undecided`] when a server is out of range, when one above cannot be counted on
    /// (constant bandwidth below fixed priority; unequal periods, sporadic or constant bandwidth servers refilled
    /// together), or when bounds of the arithmetic are reached.
    ///
    /// ```
    /// use timecell_analysis::Verdict;
    /// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
    ///
    /// // 3 + 2 + 2 of 10: after 7 the server above comes again, but the budget is then done.
    /// let above = Server::new(Kind::Periodic, 2, 7);
    /// assert!(ServerSupply::new(&[above, Server::new(Kind::Periodic, 5, 10)], 1, Refill::Apart).is_ok());
    /// let refused = ServerSupply::new(&[above, Server::new(Kind::Periodic, 7, 10)], 1, Refill::Apart);
    /// assert!(matches!(refused, Err(Verdict::Unschedulable(witness)) if witness.demand == 7 + 2 * 2));
    /// ```
    pub fn new(servers: &[Server], index: usize, refill: Refill) -> Result<ServerSupply, Verdict> {
        let mut steps = Budget::new(STEPS);
        for above in 0..index.min(servers.len()) {
            ServerSupply::within(servers, above, refill, &mut steps)?;
        }
        ServerSupply::within(servers, index, refill, &mut steps).map(|(supply, _)| supply)
    }

    /// [`ServerSupply::new`] for a server below others of which [`analyze`](super::analyze) has said that each gets its
    /// budget: that is not proved again, which saves a factor of their number.
    ///
    /// # Errors
    /// As those of [`ServerSupply::new`] that concern the server itself.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
    /// let servers = [Server::new(Kind::Deferrable, 2, 7), Server::new(Kind::Deferrable, 3, 10)];
    /// let supply = ServerSupply::below_proved(&servers, 1, Refill::Apart);
    /// assert_eq!(supply, ServerSupply::new(&servers, 1, Refill::Apart));
    /// ```
    pub fn below_proved(
        servers: &[Server],
        index: usize,
        refill: Refill,
    ) -> Result<ServerSupply, Verdict> {
        ServerSupply::within(servers, index, refill, &mut Budget::new(STEPS))
            .map(|(supply, _)| supply)
    }

    /// The supply, and the response time of the server itself, if all above are schedulable.
    pub(super) fn within(
        servers: &[Server],
        index: usize,
        refill: Refill,
        steps: &mut Budget,
    ) -> Result<(ServerSupply, Ns), Verdict> {
        let above = covered(servers, index, refill).map_err(Verdict::Undecided)?;
        let server = servers[index];
        if server.kind == Kind::ConstantBandwidth {
            fits_bandwidth(servers, index)?;
            let delay = Delay::Constant(server.period - server.budget);
            return Ok((ServerSupply { server, delay }, server.period));
        }
        let delay = match refill {
            Refill::Apart => Delay::Above(above.to_vec()),
            Refill::Together => {
                let sum = above.iter().fold(u128::from(server.blocking), |sum, x| {
                    sum + u128::from(x.budget)
                });
                Delay::Constant(u64::try_from(sum).unwrap_or(u64::MAX))
            }
        };
        let supply = ServerSupply { server, delay };
        match supply.finish(server.budget, server.deadline, steps) {
            Ok(Some(response)) => Ok((supply, response)),
            Ok(None) => Err(Verdict::Unschedulable(supply.overrun(above, index, refill))),
            Err(reason) => Err(Verdict::Undecided(reason)),
        }
    }

    /// The server this is the supply of.
    ///
    /// ```
    /// use timecell_analysis::server::{Kind, Refill, Server, ServerSupply};
    ///
    /// let server = Server::new(Kind::Polling, 2, 7);
    /// assert_eq!(ServerSupply::new(&[server], 0, Refill::Apart).unwrap().server(), server);
    /// ```
    pub const fn server(&self) -> Server {
        self.server
    }

    /// Least time after a refill at which `work`, at most one budget, is done though everything above comes first;
    /// `None` if later than `limit`.
    fn finish(&self, work: Ns, limit: Ns, steps: &mut Budget) -> Result<Option<Ns>, Undecided> {
        let fits = |time: u128| (time <= u128::from(limit)).then_some(time as Ns);
        let above = match &self.delay {
            Delay::Constant(delay) => return Ok(fits(u128::from(*delay) + u128::from(work))),
            Delay::Above(above) => above,
        };
        let own = u128::from(work) + u128::from(self.server.blocking);
        let Some(mut time) = fits(own) else {
            return Ok(None);
        };
        loop {
            steps.spend(above.len())?;
            let next = above.iter().fold(own, |sum, x| sum + interference(x, time));
            match fits(next) {
                None => return Ok(None),
                Some(next) if next <= time => return Ok(Some(time)),
                Some(next) => time = next,
            }
        }
    }

    /// Least time after a refill at which `work`, of any length, is done; `None` if later than `limit`.
    pub(super) fn done(
        &self,
        work: u128,
        limit: Ns,
        steps: &mut Budget,
    ) -> Result<Option<Ns>, Undecided> {
        if work == 0 {
            return Ok(Some(0));
        }
        let full = (work - 1) / u128::from(self.server.budget);
        let before = full.saturating_mul(u128::from(self.server.period));
        if before >= u128::from(limit) {
            return Ok(None);
        }
        let rest = (work - full * u128::from(self.server.budget)) as Ns;
        let before = before as Ns;
        Ok(self
            .finish(rest, limit - before, steps)?
            .map(|time| before + time))
    }

    /// The most work that is guaranteed to be done `time` after a refill.
    fn work_by(&self, time: Ns, steps: &mut Budget) -> Result<Ns, Undecided> {
        let full = time / self.server.period * self.server.budget;
        let rest = time % self.server.period;
        let (mut yes, mut no) = (0, self.server.budget.min(rest) + 1);
        while no - yes > 1 {
            let middle = yes + (no - yes) / 2;
            match self.finish(middle, rest, steps)? {
                Some(_) => yes = middle,
                None => no = middle,
            }
        }
        Ok(full + yes)
    }

    fn overrun(&self, above: &[Server], index: usize, refill: Refill) -> Witness {
        let instant = self.server.deadline;
        let mut parts = vec![Part {
            task: index,
            jobs: 1,
            demand: self.server.budget,
        }];
        for (task, x) in above.iter().enumerate() {
            let jobs = match refill {
                Refill::Together => 1,
                Refill::Apart => jobs(instant, x),
            };
            let demand = saturated(u128::from(jobs) * u128::from(x.budget));
            parts.push(Part { task, jobs, demand });
        }
        let demand = parts
            .iter()
            .fold(u128::from(self.server.blocking), |sum, part| {
                sum + u128::from(part.demand)
            });
        Witness {
            task: index,
            instant,
            demand: saturated(demand),
            supply: instant,
            parts,
        }
    }
}

impl Supply for ServerSupply {
    /// A lower bound where the interference cannot be computed within bounds.
    fn sbf(&self, t: Ns) -> Ns {
        let Some(time) = t.min(2 * MAX_NS).checked_sub(self.server.gap()) else {
            return 0;
        };
        self.work_by(time, &mut Budget::new(STEPS)).unwrap_or(0)
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        let gap = self.server.gap();
        let done = self.done(u128::from(work), 2 * MAX_NS - gap, &mut Budget::new(STEPS));
        done.ok().flatten().map(|time| gap + time)
    }

    fn rate(&self) -> (Ns, Ns) {
        (self.server.budget, self.server.period)
    }

    fn cycle(&self) -> Option<Ns> {
        Some(self.server.period)
    }
}

/// Bound on the response time of `tasks[index]` inside a server, tasks in order of priority, highest first.
///
/// With the window w counted from a refill, least w = the time at which the server has done B_i + (q + 1) C_i + sum
/// over higher j of ceil((w + J_j) / T_j) C_j, and R_i = max over q of J_i + w - q T_i. J is the task's own jitter plus
/// the server's gap, or 0 for a task that is bound to the refills (Davis and Burns, RTSS 2005, section 4; several
/// jobs q as Lehoczky, RTSS 1990). Deadlines may be arbitrary. A task bound with release jitter is analysed as
/// unbound: released after the refill, it may find the budget used by others, so jitter alone would promise too much.
/// The paper shows the bound to be exact for D <= T under free phasing; here it is only claimed to be safe.
///
/// ```
/// use timecell_analysis::Task;
/// use timecell_analysis::server::{Kind, LocalTask, Refill, Response, Server, ServerSupply, response_time};
/// let servers = [Server::new(Kind::Deferrable, 2, 10), Server::new(Kind::Deferrable, 3, 10)];
/// let supply = ServerSupply::new(&servers, 1, Refill::Together).unwrap();
/// let tasks = [LocalTask::unbound(Task::new(2, 25)), LocalTask::unbound(Task::new(4, 50))];
/// assert_eq!(response_time(&supply, &tasks, 0), Response::Bounded(11));
/// assert_eq!(response_time(&supply, &tasks, 1), Response::Bounded(22));
/// ```
pub fn response_time(supply: &ServerSupply, tasks: &[LocalTask], index: usize) -> Response {
    response_within(supply, tasks, index, &mut Budget::new(STEPS))
}

pub(super) fn response_within(
    supply: &ServerSupply,
    tasks: &[LocalTask],
    index: usize,
    steps: &mut Budget,
) -> Response {
    let Some((local, higher)) = tasks.get(..=index).and_then(|tasks| tasks.split_last()) else {
        return Response::Undecided(Undecided::NotCovered(format!("there is no task {index}")));
    };
    if let Some(bad) = higher
        .iter()
        .chain([local])
        .find_map(|t| t.task.check().err())
    {
        return Response::Undecided(Undecided::NotCovered(bad.to_string()));
    }
    match longest_response(supply, local, higher, steps) {
        Ok(Ok(response)) => Response::Bounded(response),
        Ok(Err(job)) => match late(supply, local, higher, index, job, steps) {
            Ok(witness) => Response::Exceeded(witness),
            Err(reason) => Response::Undecided(reason),
        },
        Err(reason) => Response::Undecided(reason),
    }
}

/// The response time, or the job of the busy interval, counted from 0, that is late.
fn longest_response(
    supply: &ServerSupply,
    local: &LocalTask,
    higher: &[LocalTask],
    steps: &mut Budget,
) -> Result<Result<Ns, u64>, Undecided> {
    let task = &local.task;
    let jitter = effective_jitter(supply, local);
    let repeats = repetition(supply, local, higher);
    let mut longest = 0;
    let mut window: Ns = 1;
    for job in 0.. {
        let arrival = u128::from(job) * u128::from(task.period);
        let due = u128::from(task.deadline) + arrival;
        let Some(limit) = due
            .checked_sub(u128::from(jitter))
            .filter(|limit| *limit > 0)
        else {
            return Ok(Err(job));
        };
        let limit = u64::try_from(limit).map_err(|_| Undecided::Overflow)?;
        let own = u128::from(task.blocking) + (u128::from(job) + 1) * u128::from(task.wcet);
        loop {
            steps.spend(higher.len())?;
            let work = higher.iter().fold(own, |sum, other| {
                let jobs = arrivals(window, effective_jitter(supply, other), other.task.period);
                sum.saturating_add(jobs.saturating_mul(u128::from(other.task.wcet)))
            });
            match supply.done(work, limit, steps)? {
                None => return Ok(Err(job)),
                Some(next) if next <= window => break,
                Some(next) => window = next,
            }
        }
        let finish = u128::from(window) + u128::from(jitter);
        // finish <= due: the excess over the arrival fits the deadline.
        longest = longest.max(finish.saturating_sub(arrival) as Ns);
        if finish <= arrival + u128::from(task.period) || repeats.is_some_and(|h| arrival >= h) {
            break;
        }
    }
    Ok(Ok(longest))
}

/// Where tasks demand exactly the rate of the server, the busy interval may never end; but each common multiple of all
/// periods is then like the first, and this is the least.
fn repetition(supply: &ServerSupply, local: &LocalTask, higher: &[LocalTask]) -> Option<u128> {
    let server = supply.server;
    let tasks = || higher.iter().chain([local]).map(|local| &local.task);
    let mut common = u128::from(server.period);
    for task in tasks() {
        let period = u128::from(task.period);
        common = common.checked_mul(period / gcd(common, period))?;
    }
    let mut demand = 0u128;
    for task in tasks() {
        let jobs = common / u128::from(task.period);
        demand = demand.checked_add(jobs.checked_mul(u128::from(task.wcet))?)?;
    }
    let supplied = (common / u128::from(server.period)).checked_mul(u128::from(server.budget))?;
    (demand == supplied).then_some(common)
}

fn late(
    supply: &ServerSupply,
    local: &LocalTask,
    higher: &[LocalTask],
    index: usize,
    job: u64,
    steps: &mut Budget,
) -> Result<Witness, Undecided> {
    let task = &local.task;
    // The interval starts just after the budget ran out, or at the refill for a bound task; the job in question is
    // released there, so its deadline comes earlier by its own jitter.
    let gap = effective_jitter(supply, local).saturating_sub(task.jitter);
    let due = u128::from(job) * u128::from(task.period) + u128::from(task.deadline);
    let instant = saturated(due.saturating_sub(u128::from(task.jitter)));
    let mut parts = vec![Part {
        task: index,
        jobs: job + 1,
        demand: saturated((u128::from(job) + 1) * u128::from(task.wcet)),
    }];
    for (task, other) in higher.iter().enumerate() {
        let jitter = effective_jitter(supply, other);
        let window = (u128::from(instant) + u128::from(jitter)).saturating_sub(u128::from(gap));
        let jobs = window.div_ceil(u128::from(other.task.period));
        if jobs > 0 {
            parts.push(Part {
                task,
                jobs: saturated(jobs),
                demand: saturated(jobs.saturating_mul(u128::from(other.task.wcet))),
            });
        }
    }
    let demand = parts.iter().fold(u128::from(task.blocking), |sum, part| {
        sum + u128::from(part.demand)
    });
    Ok(Witness {
        task: index,
        instant,
        demand: saturated(demand),
        supply: supply.work_by(instant.saturating_sub(gap), steps)?,
        parts,
    })
}

fn effective_jitter(supply: &ServerSupply, local: &LocalTask) -> Ns {
    let bound = local.bound && local.task.jitter == 0 && supply.server.is_refilled_periodically();
    if bound {
        0
    } else {
        local.task.jitter + supply.server.gap()
    }
}

fn arrivals(window: Ns, jitter: Ns, period: Ns) -> u128 {
    (u128::from(window) + u128::from(jitter)).div_ceil(u128::from(period))
}

fn jobs(window: Ns, x: &Server) -> u64 {
    saturated(arrivals(window, x.jitter(), x.period))
}

fn interference(x: &Server, window: Ns) -> u128 {
    arrivals(window, x.jitter(), x.period) * u128::from(x.budget)
}

fn saturated(time: u128) -> Ns {
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// The servers above `index` if the analysis covers them and the server itself.
fn covered(servers: &[Server], index: usize, refill: Refill) -> Result<&[Server], Undecided> {
    let not = |reason: String| Err(Undecided::NotCovered(reason));
    let Some(concerned) = servers.get(..=index) else {
        return not(format!("there is no server {index}"));
    };
    for (at, server) in concerned.iter().enumerate() {
        if let Err(error) = server.check() {
            return not(error.to_string());
        }
        if server.kind == Kind::ConstantBandwidth {
            if concerned[..at]
                .iter()
                .any(|x| x.kind != Kind::ConstantBandwidth)
            {
                return not(
                    "constant bandwidth servers run above all others and must come first".into(),
                );
            }
            if server.blocking > 0 {
                return not("blocking of constant bandwidth servers".into());
            }
            if server.deadline < server.period {
                return not(
                    "constant bandwidth servers with deadlines before their periods end".into(),
                );
            }
        }
        if refill == Refill::Together {
            if !server.is_refilled_periodically() {
                return not("sporadic and constant bandwidth servers have no common refill".into());
            }
            if server.period != concerned[0].period {
                return not("servers refilled together must have one period".into());
            }
        }
    }
    Ok(&concerned[..index])
}

/// Whether all constant bandwidth servers together use at most one cpu.
fn fits_bandwidth(servers: &[Server], index: usize) -> Result<(), Verdict> {
    let group = servers
        .iter()
        .take_while(|server| server.kind == Kind::ConstantBandwidth);
    // In units of 2^-64 cpus, once rounded down and once up; the exact sum lies between.
    let (mut low, mut high) = (0u128, 0u128);
    for server in group.clone() {
        if let Err(error) = server.check() {
            return Err(Verdict::Undecided(Undecided::NotCovered(error.to_string())));
        }
        let bandwidth = u128::from(server.budget) << 64;
        low += bandwidth / u128::from(server.period);
        high += bandwidth.div_ceil(u128::from(server.period));
    }
    let one = 1u128 << 64;
    if high <= one {
        return Ok(());
    }
    let all: Vec<Server> = group.copied().collect();
    if low <= one {
        match exact_excess(&all) {
            Some(false) => return Ok(()),
            Some(true) => {}
            None => return Err(Verdict::Undecided(Undecided::Overflow)),
        }
    }
    Err(Verdict::Unschedulable(overload(&all, index)))
}

/// Whether the sum of C/T exceeds 1, by fractions; `None` if the common denominator is too large.
fn exact_excess(servers: &[Server]) -> Option<bool> {
    let (mut numerator, mut denominator) = (0u128, 1u128);
    for server in servers {
        let period = u128::from(server.period);
        let step = period / gcd(denominator, period);
        let common = denominator.checked_mul(step)?;
        numerator = numerator
            .checked_mul(step)?
            .checked_add(u128::from(server.budget).checked_mul(common / period)?)?;
        denominator = common;
    }
    Some(numerator > denominator)
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The demand of more than one cpu over the longest period's span in which it shows, else over one period.
fn overload(servers: &[Server], index: usize) -> Witness {
    let demand_by = |t: u128| {
        servers.iter().fold(0u128, |sum, s| {
            sum + t / u128::from(s.period) * u128::from(s.budget)
        })
    };
    let mut instant = servers
        .iter()
        .map(|s| u128::from(s.period))
        .max()
        .unwrap_or(1);
    let mut common = 1u128;
    for server in servers {
        let period = u128::from(server.period);
        common = common.saturating_mul(period / gcd(common, period));
    }
    // At the common multiple of the periods the whole overload is due; before, perhaps nothing is late yet.
    while demand_by(instant) <= instant && instant < common.min(1 << 64) {
        instant = (instant * 2).min(common);
    }
    let instant = instant.min(u128::from(u64::MAX));
    let parts: Vec<Part> = servers
        .iter()
        .enumerate()
        .map(|(task, s)| {
            let jobs = instant / u128::from(s.period);
            Part {
                task,
                jobs: saturated(jobs),
                demand: saturated(jobs * u128::from(s.budget)),
            }
        })
        .collect();
    Witness {
        task: index,
        instant: saturated(instant),
        demand: saturated(demand_by(instant)),
        supply: saturated(instant),
        parts,
    }
}
