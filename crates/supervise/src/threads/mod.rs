//! The threads of a running cell: which there are, which of them runs which task ([`matching`]), and the class that each gets
//! for that. A class is set by the cell's agent, from inside the cell's pid namespace; where the cell has none, from here.

mod known;
mod matching;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use engine::agent::{Agent, Noted, Standing};
use host::sched::{self, Class};
use model::Enforcer;
use model::mission::{Band, Cell};

pub use self::matching::{Sign, Unmatched};

use self::known::Known;
use self::matching::Candidate;
use self::requests::Requests;
use crate::admit::Grant;
use crate::enforce::Inside;

/// Threads that are met in one look: each takes a few files of `/proc`, and a cell may make new ones all the time. The others are met at
/// the next looks.
const MOST_NEW: usize = 16;

/// How a thread is found for a task that has none.
pub const ADVICE: &str = "name its thread so (pthread_setname_np), give its name as `thread` in the mission, or report its jobs";

/// Cpu time with which a thread can begin, and the time that it has for that, ns.
const ENOUGH: (u128, u128) = (4_000_000, 1_000_000_000);
/// The only thread that a cell is to have is looked for by its name or its jobs so long; then it is the first one, ns.
const BEGINS_NS: i64 = 500_000_000;

/// The kernel keeps this many bytes of a thread's name.
const NAME_BYTES: usize = 15;

/// A thread as the last look saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its id, as the host counts.
    pub tid: i32,
    /// Its process.
    pub process: i32,
    /// The kernel's name for it.
    pub name: String,
    /// Its class; `None`: it has just ended.
    pub class: Option<Class>,
    /// The class that it has asked for last.
    pub asked: Option<Class>,
    /// The task that it runs.
    pub task: Option<usize>,
}

/// The thread that is sought for a task, or for a reservation that one thread has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The task's name, or the cell's.
    pub(crate) task: String,
    /// That of its thread; `None`: it is the first of the cell.
    pub(crate) thread: Option<String>,
    /// Whether the mission names it.
    pub(crate) is_named: bool,
    /// The class that it gets; `None`: nothing was granted to it.
    pub(crate) class: Option<Class>,
}

impl Wanted {
    /// Whether SCHED_DEADLINE gives it too little cpu time to begin with: the engine's last steps before the program is executed take some
    /// milliseconds, and are waited for only so long.
    pub(crate) fn begins_late(&self) -> bool {
        match self.class {
            Some(Class::Deadline {
                runtime_ns,
                period_ns,
                ..
            }) => u128::from(runtime_ns) * ENOUGH.1 < u128::from(period_ns) * ENOUGH.0,
            _ => false,
        }
    }
}

/// The thread of a task, or why there is none.
pub type Match = Result<(i32, Sign), Unmatched>;

/// The threads of one life of a cell.
#[derive(Debug, Default)]
pub struct Threads {
    wanted: Vec<Wanted>,
    /// The priorities of a cell without tasks.
    band: Option<Band>,
    /// The class of real-time threads that run no task; `None`: they are left as they are.
    others: Option<Class>,
    known: BTreeMap<i32, Known>,
    /// How many pid namespaces deep the cell is.
    depth: Option<usize>,
    seen: Vec<Seen>,
    matches: Vec<Match>,
    /// Whether a task's thread was found by its name or its jobs in this life.
    has_named: bool,
    /// When they were looked at first.
    first_ns: Option<i64>,
    requests: Requests,
}

impl Threads {
    /// Of a cell that begins.
    pub fn of(grant: Option<&Grant>, cell: &Cell) -> Threads {
        let Some(grant) = grant else {
            return Threads::default();
        };
        Threads {
            wanted: wanted(grant, cell),
            band: grant.band.filter(|_| cell.tasks.is_empty()),
            others: match grant.band {
                _ if cell.tasks.is_empty() => None,
                Some(band) => Some(grant.class_at(band.lowest)),
                None => (grant.enforcer == Enforcer::Deadline).then_some(Class::Other),
            },
            ..Threads::default()
        }
    }

    /// Whether a task has no thread that is known to run it.
    pub fn lacks_some(&self) -> bool {
        self.matches.len() < self.wanted.len() || self.matches.iter().any(Result::is_err)
    }

    /// Looks at all of them, and has those set that do not have the class they should. `begun` has, for each task, the id in the
    /// cell of the thread that begins its jobs, 0 where the application does not say. Returns news for the user, as clauses.
    pub fn look(
        &mut self,
        inside: &Inside,
        agent: Option<&Agent>,
        begun: &[u32],
        now_ns: i64,
    ) -> Vec<String> {
        let noted = agent.map(Agent::noted).unwrap_or_default();
        let mut told = self.requests.of_cell(self.band, &noted, agent);
        // Without tasks there is nothing to match, and every thread has the class given at its call.
        if self.wanted.is_empty() {
            return told;
        }
        let asked = self.meet(inside, agent, noted);
        let before = std::mem::take(&mut self.matches);
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let is_first = now_ns - first_ns >= BEGINS_NS && self.begins_late();
        self.match_tasks(begun, &asked, is_first);
        told.extend(self.tell_matches(&before));
        told.extend(self.requests.of_tasks(&self.wanted, &self.seen));
        told.extend(self.give(inside, agent, &asked, now_ns));
        told
    }

    /// Whether the cell is to have one thread, whose class it gets late.
    fn begins_late(&self) -> bool {
        matches!(&self.wanted[..], [one] if one.begins_late() && !one.is_named)
    }

    /// Brings the list of threads up to date; returns the requests, by the ids in the cell.
    fn meet(
        &mut self,
        inside: &Inside,
        agent: Option<&Agent>,
        noted: Vec<Noted>,
    ) -> BTreeMap<u32, Noted> {
        let listed: BTreeSet<i32> = inside.threads().into_iter().collect();
        self.known.retain(|tid, _| listed.contains(tid));
        let depth = *self.depth.get_or_insert_with(|| known::depth(inside.pid));
        let new = listed.iter().filter(|tid| !self.known.contains_key(tid));
        let new: Vec<Known> = (new.take(MOST_NEW))
            .filter_map(|tid| Known::of(*tid, depth))
            .collect();
        self.known
            .extend(new.into_iter().map(|known| (known.tid, known)));
        // One that has ended has no name any more.
        self.known.retain(|_, known| known.read_name());
        // Only once all are met it is known which of the noted are gone.
        let has_all = self.known.len() >= listed.len();
        let ids: BTreeSet<u32> = self.known.values().map(|known| known.inner).collect();
        if let Some(agent) = agent.filter(|_| has_all)
            && noted.iter().any(|noted| !ids.contains(&noted.thread))
        {
            agent.keep(|thread| ids.contains(&thread));
        }
        (noted.into_iter().map(|noted| (noted.thread, noted))).collect()
    }

    /// Matches tasks with threads; without another sign, the first thread of a process is taken for one of a real-time class where `is_first`.
    fn match_tasks(&mut self, begun: &[u32], noted: &BTreeMap<u32, Noted>, is_first: bool) {
        let all: Vec<&Known> = self.known.values().collect();
        let asked = |known: &Known| {
            noted
                .get(&known.inner)
                .and_then(|noted| noted.asked.clone())
        };
        let classes: Vec<Option<Class>> = (all.iter())
            .map(|known| sched::get_class(known.tid).ok())
            .collect();
        let candidates: Vec<Candidate<'_>> = (all.iter().zip(&classes))
            .map(|(known, class)| {
                let is_real_time =
                    |class: &Option<Class>| (class.as_ref()).is_some_and(requests::is_real_time);
                let has_asked = is_real_time(&asked(known));
                Candidate {
                    process: (known.process_started, known.process),
                    born: (known.started, known.tid),
                    name: &known.name,
                    begins: (begun.iter()).position(|id| *id != 0 && *id == known.inner),
                    is_real_time: has_asked
                        || is_real_time(class)
                        || (is_first && known.tid == known.process),
                    has_asked,
                }
            })
            .collect();
        let names: Vec<Option<&str>> = (self.wanted.iter())
            .map(|wanted| wanted.thread.as_deref())
            .collect();
        let found = matching::matches(&names, &candidates, !self.has_named);
        self.has_named |=
            (found.iter()).any(|found| matches!(found, Ok((_, Sign::Name | Sign::Jobs))));
        self.matches = (found.into_iter())
            .map(|found| found.map(|(place, sign)| (all[place].tid, sign)))
            .collect();
        let task_of = |tid: i32| {
            (self.matches.iter()).position(|found| matches!(found, Ok((own, _)) if *own == tid))
        };
        self.seen = (all.iter().zip(classes))
            .map(|(known, class)| Seen {
                tid: known.tid,
                process: known.process,
                name: known.name.clone(),
                class,
                asked: asked(known),
                task: task_of(known.tid),
            })
            .collect();
    }

    fn tell_matches(&self, before: &[Match]) -> Vec<String> {
        let found = self.wanted.iter().zip(&self.matches).enumerate();
        let news = found.filter_map(|(at, (wanted, now))| match (before.get(at), now) {
            (Some(Ok((before, _))), Ok((now, _))) if before == now => None,
            (_, Ok((tid, sign))) => {
                let class = wanted.class.as_ref();
                let class = class.map_or(String::new(), |class| format!(", {class}"));
                let (task, sign) = (&wanted.task, sign.words());
                Some(format!("{task} is thread {tid} ({sign}){class}"))
            }
            (Some(Ok(_)), Err(why)) => {
                Some(format!("{} has no thread any more: {why}", wanted.task))
            }
            (_, Err(_)) => None,
        });
        news.collect()
    }

    /// The class that a thread is to have; `None`: whichever it has.
    fn due(&self, seen: &Seen) -> Option<&Class> {
        if let Some(task) = seen.task {
            return self.wanted[task].class.as_ref();
        }
        let others = self.others.as_ref()?;
        let own = seen.class.as_ref()?;
        let is_above = match (own.priority(), others.priority()) {
            (Some(own), Some(others)) => own > others,
            _ => own.is_real_time(),
        };
        is_above.then_some(others)
    }

    /// Has those set that have another class than they are to have.
    fn give(
        &mut self,
        inside: &Inside,
        agent: Option<&Agent>,
        noted: &BTreeMap<u32, Noted>,
        now_ns: i64,
    ) -> Vec<String> {
        let due: Vec<(&Seen, Class, Class)> = (self.seen.iter())
            .filter_map(|seen| Some((seen, seen.class.clone()?, self.due(seen)?.clone())))
            .collect();
        let attached = host::out_of_band::threads();
        let mut told = Vec::new();
        let mut by_agent: Vec<(u32, &Class)> = Vec::new();
        for (seen, own, class) in &due {
            let tid = &seen.tid;
            let Some(known) = self.known.get_mut(tid) else {
                continue;
            };
            let standing = noted.get(&known.inner).map(|noted| noted.standing);
            // A thread that has its task's class from the thread that made it would lose it with its next call, which the agent answers
            // with the grants that it knows.
            let is_lasting =
                agent.is_none() || seen.task.is_none() || standing == Some(Standing::InForce);
            if is_lasting && (own == class || *own == Class::Idle) {
                known.given = Some(class.clone());
                continue;
            }
            // The agent would wait for the cell's budget, and its callers with it.
            if *own == Class::Idle || attached.contains(tid) {
                continue;
            }
            if !known.may_give(class, standing, now_ns) {
                continue;
            }
            if let Some(why) = agent.and_then(|_| known.refusal(class, standing)) {
                told.push(format!(
                    "thread {tid} (`{}`) does not get {class}: {why}",
                    known.name
                ));
            }
            let was_in_force = agent.is_none() || standing == Some(Standing::InForce);
            if was_in_force && known.given.as_ref() == Some(class) && known.was_put_back_at(now_ns)
            {
                let name = &known.name;
                told.push(format!(
                    "thread {tid} (`{name}`) was made {own} by others, and gets {class} again"
                ));
            }
            known.given = Some(class.clone());
            match agent {
                Some(_) => by_agent.push((known.inner, class)),
                None => {
                    if let Err(why) = known::set(*tid, class, inside) {
                        told.extend(known.refused_for(&why).then(|| {
                            format!(
                                "thread {tid} (`{}`) does not get {class}: {why}",
                                known.name
                            )
                        }));
                    }
                }
            }
        }
        if let Some(agent) = agent.filter(|_| !by_agent.is_empty()) {
            // One that is gone is seen at the next look for it.
            let _ = agent.grant(by_agent);
        }
        told
    }

    /// Requests of the cell since the last look that were not granted, as clauses: the last news of a life.
    pub fn refused(&mut self, agent: Option<&Agent>) -> Vec<String> {
        let noted = agent.map(Agent::noted).unwrap_or_default();
        self.requests.of_cell(self.band, &noted, agent)
    }

    /// The thread of each task.
    pub fn matches(&self) -> &[Match] {
        &self.matches
    }

    /// The thread of a task, as the last look saw it.
    pub fn of_task(&self, task: usize) -> Option<&Seen> {
        self.seen.iter().find(|seen| seen.task == Some(task))
    }

    /// Those that the last look saw, with their classes.
    pub fn classes(&self) -> Vec<(i32, Class)> {
        let seen = self.seen.iter();
        seen.filter_map(|seen| Some((seen.tid, seen.class.clone()?)))
            .collect()
    }

    /// Those that run no task, each with whether it has a real-time class.
    pub fn others(&self) -> impl Iterator<Item = (i32, bool)> {
        let others = self.seen.iter().filter(|seen| seen.task.is_none());
        others.map(|seen| {
            let is_real_time = seen.class.as_ref().is_some_and(requests::is_real_time);
            (seen.tid, is_real_time)
        })
    }

    /// A thread that runs no task and has a higher class than it may have, a clause.
    pub fn stray(&self) -> Option<String> {
        let mut strays = self.seen.iter().filter(|seen| seen.task.is_none());
        strays.find_map(|seen| {
            let (_, class) = (self.due(seen)?, seen.class.as_ref()?);
            let name = seen.name.escape_debug();
            Some(format!(
                "thread {} (`{name}`), which runs no task, runs at {class}",
                seen.tid
            ))
        })
    }

    /// The tasks that no thread is known to run, as clauses.
    pub fn unheld(&self) -> Vec<String> {
        let lacking = self.wanted.iter().zip(&self.matches);
        let clauses = lacking.filter_map(|(wanted, found)| {
            let why = found.as_ref().err()?;
            Some(format!("{} is not held: {why}; {ADVICE}", wanted.task))
        });
        clauses.collect()
    }
}

/// The threads that are sought in a cell with this grant: one for each task, in the order of the mission; without tasks, the first, where
/// SCHED_DEADLINE gives it the cell's reservation.
pub(crate) fn wanted(grant: &Grant, cell: &Cell) -> Vec<Wanted> {
    let reserved = match (grant.budget_ns, grant.period_ns) {
        (Some(runtime_ns), Some(period_ns)) if cell.tasks.len() <= 1 => Some(Class::Deadline {
            runtime_ns,
            deadline_ns: period_ns,
            period_ns,
        }),
        _ => None,
    };
    let is_deadline = grant.enforcer == Enforcer::Deadline;
    if cell.tasks.is_empty() {
        let first = |class| Wanted {
            task: cell.name.clone(),
            thread: None,
            is_named: false,
            class: Some(class),
        };
        return (reserved.filter(|_| is_deadline).map(first))
            .into_iter()
            .collect();
    }
    let ns = |time: model::Duration| time.ns().unsigned_abs();
    (cell.tasks.iter().zip(&grant.tasks).enumerate())
        .map(|(place, (task, bound))| {
            let thread = cell.thread_of(place);
            let (period_ns, deadline_ns) = (ns(task.timing.period), ns(task.timing.deadline));
            let own = bound.runtime_ns.map(|runtime_ns| Class::Deadline {
                runtime_ns,
                deadline_ns: deadline_ns.min(period_ns),
                period_ns,
            });
            Wanted {
                task: task.name().to_owned(),
                thread: Some(thread[..thread.floor_char_boundary(NAME_BYTES)].to_owned()),
                is_named: task.thread.is_some() || cell.engine.is_machine(),
                class: match (bound.priority, is_deadline) {
                    (Some(priority), _) => Some(grant.class_at(priority)),
                    (None, true) => reserved.clone().or(own),
                    (None, false) => None,
                },
            }
        })
        .collect()
}
