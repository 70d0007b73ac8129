//! The class of a thread, and the cpus it may run on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Duration, InputError};
use serde_json::value::RawValue;

use super::super::excerpt;
use super::json::{Object, Source};
use super::{Thread, join};

/// How a thread is scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sched {
    pub(super) class: Class,
    pub(super) cpus: Cpus,
}

/// Linux's scheduling classes, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// SCHED_OTHER, SCHED_BATCH and SCHED_IDLE.
    Fair,
    /// SCHED_FIFO, or SCHED_RR, in which equals take turns.
    Fixed { priority: i64, turns: bool },
    /// SCHED_DEADLINE.
    Deadline(Reserved),
}

impl Class {
    fn rank(self) -> usize {
        match self {
            Class::Fair => 0,
            Class::Fixed { .. } => 1,
            Class::Deadline(_) => 2,
        }
    }

    /// Its precedence over other threads.
    pub(super) fn precedence(self) -> Precedence {
        let priority = match self {
            Class::Fixed { priority, .. } => priority,
            Class::Fair | Class::Deadline(_) => 0,
        };
        Precedence {
            rank: self.rank(),
            priority,
        }
    }

    /// Its name in notes.
    pub(super) fn words(self) -> String {
        match self {
            Class::Fair => "no real-time class".to_owned(),
            Class::Fixed { priority, turns } => {
                let name = if turns { "SCHED_RR" } else { "SCHED_FIFO" };
                format!("{name} {priority}")
            }
            Class::Deadline(_) => "SCHED_DEADLINE".to_owned(),
        }
    }
}

/// Which of two threads that want the same cpu runs first: the one of the higher class, then the one of the higher fixed
/// priority. If both are equal, either may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Precedence {
    rank: usize,
    priority: i64,
}

impl Precedence {
    const DEADLINE: Precedence = Precedence {
        rank: 2,
        priority: 0,
    };

    /// Whether it is of a real-time class.
    fn is_real_time(self) -> bool {
        self.rank > 0
    }

    /// Its name in faults.
    fn words(self) -> String {
        match self {
            Precedence::DEADLINE => "SCHED_DEADLINE".to_owned(),
            Precedence { priority, .. } => format!("priority {priority}"),
        }
    }
}

/// Where a thread may run, and its precedence; for one that changes both, all its cpus and its highest class and priority.
#[derive(Debug)]
pub(super) struct Place {
    precedence: Precedence,
    cpus: Cpus,
}

impl Place {
    fn extend(&mut self, other: Place) {
        self.precedence = self.precedence.max(other.precedence);
        self.cpus.extend(other.cpus);
    }
}

impl From<Sched> for Place {
    fn from(sched: Sched) -> Place {
        Place {
            precedence: sched.class.precedence(),
            cpus: sched.cpus,
        }
    }
}

/// A thread that has no task in the set: why, and where it runs nevertheless.
#[derive(Debug)]
pub(super) struct Untaken {
    pub(super) why: String,
    pub(super) place: Option<Place>,
}

/// The parameters of SCHED_DEADLINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) runtime: Duration,
    pub(super) period: Duration,
    pub(super) deadline: Duration,
}

/// Where a thread may run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cpus {
    All,
    Listed(BTreeSet<u32>),
}

impl Cpus {
    /// These and those.
    fn extend(&mut self, other: Cpus) {
        match (self, other) {
            (Cpus::Listed(these), Cpus::Listed(those)) => these.extend(those),
            (all, Cpus::All) => *all = Cpus::All,
            (Cpus::All, _) => {}
        }
    }

    /// Whether both have a cpu.
    fn meets(&self, other: &Cpus) -> bool {
        match (self, other) {
            (Cpus::Listed(these), Cpus::Listed(those)) => !these.is_disjoint(those),
            _ => true,
        }
    }
}

/// The name of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Fair,
    Fixed { turns: bool },
    Deadline,
}

const NAMES: [(&str, Name); 6] = [
    ("SCHED_OTHER", Name::Fair),
    ("SCHED_BATCH", Name::Fair),
    ("SCHED_IDLE", Name::Fair),
    ("SCHED_FIFO", Name::Fixed { turns: false }),
    ("SCHED_RR", Name::Fixed { turns: true }),
    ("SCHED_DEADLINE", Name::Deadline),
];

/// rt-app's own default for SCHED_FIFO and SCHED_RR.
const PRIORITY: i64 = 10;

/// The policy of threads that name none.
pub(super) fn default<'a>(source: &Source<'a>, top: &Object<'a>) -> Result<Name, InputError> {
    let Some(global) = top.last("global") else {
        return Ok(Name::Fair);
    };
    let global = source.object(global, "global")?;
    Ok(name(source, &global, "default_policy")?.unwrap_or(Name::Fair))
}

fn name<'a>(
    source: &Source<'a>,
    object: &Object<'a>,
    key: &str,
) -> Result<Option<Name>, InputError> {
    let Some(raw) = object.last(key) else {
        return Ok(None);
    };
    let known = NAMES
        .iter()
        .find(|(name, _)| raw.get().trim_matches('"') == *name);
    let Some((_, name)) = known else {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        let fix = format!("it is one of {}", names.join(", "));
        let what = format!("`{key}` is {}", excerpt(raw.get()));
        return Err(source.fault(raw, what, &fix));
    };
    Ok(Some(*name))
}

/// A thread's phases, each with its number of rounds; a thread without any is its own phase.
pub(super) type Phases<'a> = Vec<(Object<'a>, i64)>;

/// How a thread is scheduled, the same in all its phases, and the phases; the inner error says why it cannot be used.
pub(super) fn of<'a>(
    source: &Source<'a>,
    title: &str,
    thread: &Object<'a>,
    default: Name,
) -> Result<Result<(Sched, Phases<'a>), Untaken>, InputError> {
    let policy = name(source, thread, "policy")?.unwrap_or(default);
    let whole = "it must be a whole number";
    let priority: Option<i64> = source.value(thread, "priority", whole)?;
    let cpus = cpus(source, thread)?.unwrap_or(Cpus::All);
    // The names of older versions apply only to the thread as a whole.
    let reserved = reserved(source, thread, &["dl-", ""])?;
    let class = |policy, priority: Option<i64>, reserved| match policy {
        Name::Fair => Some(Class::Fair),
        Name::Fixed { turns } => Some(Class::Fixed {
            priority: priority.unwrap_or(PRIORITY),
            turns,
        }),
        Name::Deadline => Option::map(reserved, Class::Deadline),
    };
    const NOTHING: &str = "they are SCHED_DEADLINE threads without dl-runtime";
    let Some(phases) = thread.last("phases") else {
        let again = source.value(thread, "loop", whole)?.unwrap_or(-1);
        return Ok(match class(policy, priority, reserved) {
            Some(class) => Ok((
                Sched { class, cpus },
                vec![(Object(thread.0.clone()), again)],
            )),
            None => Err(Untaken {
                why: NOTHING.to_owned(),
                place: Some(Place {
                    precedence: Precedence::DEADLINE,
                    cpus,
                }),
            }),
        });
    };
    let mut all = Vec::new();
    let mut found: Option<Sched> = None;
    let mut place: Option<Place> = None;
    let mut why = None;
    for (phase, raw) in source.object(phases, "phases")?.0 {
        let object = source.object(raw, &phase)?;
        let policy = name(source, &object, "policy")?.unwrap_or(policy);
        let priority = source.value(&object, "priority", whole)?.or(priority);
        let reserved = self::reserved(source, &object, &["dl-"])?.or(reserved);
        let class = class(policy, priority, reserved);
        let cpus = self::cpus(source, &object)?.unwrap_or_else(|| cpus.clone());
        let here = Place {
            precedence: class.map_or(Precedence::DEADLINE, Class::precedence),
            cpus: cpus.clone(),
        };
        match &mut place {
            Some(place) => place.extend(here),
            None => place = Some(here),
        }
        let Some(class) = class else {
            why.get_or_insert(NOTHING);
            continue;
        };
        let here = Sched { class, cpus };
        if let Some(known) = &found
            && *known != here
            && why.is_none()
        {
            if let (Class::Deadline(_), Class::Deadline(_)) = (known.class, here.class) {
                return Err(source.fault(
                    raw,
                    format!(
                        "phase `{}` of task `{}` needs a different reservation or different cpus than the phases before",
                        excerpt(&phase),
                        excerpt(title)
                    ),
                    "timecell analyses only tasks whose parameters stay the same",
                ));
            }
            why = Some("they change class, priority or cpus from phase to phase");
        }
        found = Some(here);
        let again = source.value(&object, "loop", whole)?.unwrap_or(1);
        all.push((object, again));
    }
    Ok(match (found, why) {
        (Some(sched), None) => Ok((sched, all)),
        (_, why) => Err(Untaken {
            why: why.unwrap_or("they have no phase").to_owned(),
            place,
        }),
    })
}

/// The parameters of SCHED_DEADLINE, with the first of these prefixes with which the runtime is given.
fn reserved<'a>(
    source: &Source<'a>,
    object: &Object<'a>,
    beginnings: &[&str],
) -> Result<Option<Reserved>, InputError> {
    let read = |what: &str| -> Result<Option<Duration>, InputError> {
        for beginning in beginnings {
            // The event `runtime` may occur several times; as a parameter rt-app uses any one of them.
            let key = format!("{beginning}{what}");
            let given = object.0.iter().filter(|(name, _)| *name == key).count();
            if given > 0 && (given == 1 || !beginning.is_empty()) {
                return source.time(object, &key);
            }
        }
        Ok(None)
    };
    // For threads of other classes, `runtime` is work and `dl-runtime` a slice; neither needs a period.
    let Some(runtime) = read("runtime")? else {
        return Ok(None);
    };
    let period = read("period")?.unwrap_or(runtime);
    let deadline = read("deadline")?.unwrap_or(period);
    Ok(Some(Reserved {
        runtime,
        period,
        deadline,
    }))
}

fn cpus<'a>(source: &Source<'a>, object: &Object<'a>) -> Result<Option<Cpus>, InputError> {
    let fix = "it must be a list of numbers, such as [0, 1]";
    let listed: Option<BTreeSet<u32>> = source.value(object, "cpus", fix)?;
    Ok(listed.map(|cpus| match cpus.is_empty() {
        true => Cpus::All,
        false => Cpus::Listed(cpus),
    }))
}

/// The name of the cell on these cpus.
pub(super) fn cell(cpus: &BTreeSet<u32>) -> String {
    let texts: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let noun = if cpus.len() == 1 { "cpu" } else { "cpus" };
    format!("{noun} {}", texts.join(","))
}

/// Items by the cpus that they have: of all, of those that have all cpus, and of those on each cpu the one that is preferred, else the first.
struct OnCpus<T> {
    any: Option<T>,
    anywhere: Option<T>,
    on: HashMap<u32, T>,
}

impl<T: Copy> OnCpus<T> {
    fn new() -> OnCpus<T> {
        OnCpus {
            any: None,
            anywhere: None,
            on: HashMap::new(),
        }
    }

    fn note(&mut self, item: T, cpus: &Cpus, prefer: impl Fn(&T) -> bool) {
        let best = |known: Option<T>| known.filter(|known| !prefer(known)).unwrap_or(item);
        self.any = Some(best(self.any));
        match cpus {
            Cpus::All => self.anywhere = Some(best(self.anywhere)),
            Cpus::Listed(cpus) => {
                for cpu in cpus {
                    let known = self.on.get(cpu).copied();
                    self.on.insert(*cpu, best(known));
                }
            }
        }
    }

    /// Those that may be met on these cpus: of all cpus the preferred one and one that does not have all, if there is one.
    fn beside<'t>(&'t self, cpus: &'t Cpus) -> impl Iterator<Item = T> + 't {
        let (first, some, listed) = match cpus {
            Cpus::All => (self.any, self.on.values().next(), None),
            Cpus::Listed(cpus) => (self.anywhere, None, Some(cpus)),
        };
        let there = listed
            .into_iter()
            .flatten()
            .filter_map(|cpu| self.on.get(cpu));
        first
            .into_iter()
            .chain(some.into_iter().chain(there).copied())
    }
}

/// Finds threads of fixed priorities that share cpus with threads of SCHED_DEADLINE, directly or by others: all of these are analysed
/// together.
pub(super) fn stack(threads: &mut [Thread<'_>]) {
    let is_real_time = |thread: &Thread<'_>| thread.sched.class.rank() > 0;
    let mut groups: Vec<(Cpus, BTreeSet<usize>)> = Vec::new();
    for thread in threads.iter().filter(|thread| is_real_time(thread)) {
        let mut own = (
            thread.sched.cpus.clone(),
            BTreeSet::from([thread.sched.class.rank()]),
        );
        groups.retain(|(cpus, ranks)| {
            let met = cpus.meets(&own.0);
            if met {
                own.0.extend(cpus.clone());
                own.1.extend(ranks);
            }
            !met
        });
        groups.push(own);
    }
    groups.retain(|(_, ranks)| ranks.len() > 1);
    for thread in threads.iter_mut().filter(|thread| is_real_time(thread)) {
        let group = groups
            .iter()
            .find(|(cpus, _)| cpus.meets(&thread.sched.cpus));
        thread.stack = group.map(|(cpus, _)| cpus.clone());
    }
}

/// Leaves out threads of no real-time class that share cpus with one of a higher class, which may leave them nothing.
///
/// # Errors
/// When threads of one class may run on overlapping but different sets of cpus.
pub(super) fn highest<'a>(
    source: &Source<'_>,
    threads: Vec<Thread<'a>>,
    left: &mut BTreeMap<String, Vec<String>>,
) -> Result<Vec<Thread<'a>>, InputError> {
    let mut used = [const { Vec::new() }; 3].map(|_: Vec<()>| OnCpus::new());
    for thread in &threads {
        used[thread.sched.class.rank()].note(thread, &thread.sched.cpus, |_| false);
    }
    let mut kept = Vec::new();
    for thread in &threads {
        let rank = thread.sched.class.rank();
        let above = used[rank + 1..]
            .iter()
            .find_map(|used| used.beside(&thread.sched.cpus).next());
        if let Some(above) = above.filter(|_| rank == 0) {
            let why = format!(
                "a higher class may run on their cpus ({})",
                above.sched.class.words()
            );
            left.entry(why).or_default().push(thread.task.name.clone());
            continue;
        }
        let differs = |other: &&Thread<'_>| other.sched.cpus != thread.sched.cpus;
        if let Some(other) = used[rank].beside(&thread.sched.cpus).find(differs)
            && thread.stack.is_none()
        {
            let both = [other, thread].map(|thread| thread.task.name.clone());
            return Err(source.fault(
                thread.raw,
                format!(
                    "threads {} may run on different but overlapping sets of cpus",
                    join(&both)
                ),
                "timecell analyses only threads that share all their cpus or none",
            ));
        }
        kept.push(thread.clone());
    }
    Ok(kept)
}

/// A thread that runs although it has no task in the set.
#[derive(Debug)]
pub(super) struct Stranger<'a> {
    pub(super) raw: &'a RawValue,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) place: Place,
}

/// Checks that none of these threads waits for one about which nothing is known.
///
/// # Errors
/// When one is not more urgent than a real-time thread that was left out and may run on its cpus: no bound computed without
/// that one holds.
pub(super) fn undelayed(
    source: &Source<'_>,
    kept: &[Thread<'_>],
    strangers: &[Stranger<'_>],
) -> Result<(), InputError> {
    let mut noted = OnCpus::new();
    for stranger in strangers {
        let precedence = stranger.place.precedence;
        if precedence.is_real_time() {
            let is_lower = |known: &&Stranger<'_>| known.place.precedence < precedence;
            noted.note(stranger, &stranger.place.cpus, is_lower);
        }
    }
    for thread in kept {
        let beside = noted.beside(&thread.sched.cpus);
        if let Some(stranger) = beside.max_by_key(|stranger| stranger.place.precedence)
            && stranger.place.precedence >= thread.sched.class.precedence()
        {
            let title = excerpt(&stranger.title);
            return Err(source.fault(
                stranger.raw,
                format!(
                    "thread `{}` may wait while `{title}` ({}) runs on the same cpus, and that one cannot be analysed",
                    excerpt(&thread.task.name),
                    stranger.place.precedence.words(),
                ),
                &format!(
                    "threads like `{title}` are left out because {}; give it a lower priority or its own cpus, or take one of the two out",
                    stranger.why
                ),
            ));
        }
    }
    Ok(())
}
