//! The class of a thread, and the cpus it may run on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{Duration, InputError};

use super::super::excerpt;
use super::json::{Object, Source};
use super::{Thread, join};

/// How a thread is scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sched {
    pub(super) class: Class,
    pub(super) cpus: Cpus,
}

/// Linux' scheduling classes, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// SCHED_OTHER, SCHED_BATCH and SCHED_IDLE.
    Fair,
    /// SCHED_FIFO, or SCHED_RR where equals take turns.
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

    /// As notes call it.
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
        let mend = format!("it is one of {}", names.join(", "));
        let what = format!("`{key}` is {}", excerpt(raw.get()));
        return Err(source.fault(raw, what, &mend));
    };
    Ok(Some(*name))
}

/// A thread's phases, each with its number of rounds; a thread without any is its own phase.
pub(super) type Phases<'a> = Vec<(Object<'a>, i64)>;

/// How a thread is scheduled, in all of its phases alike, and what these are; the inner error says why it cannot be taken.
pub(super) fn of<'a>(
    source: &Source<'a>,
    title: &str,
    thread: &Object<'a>,
    default: Name,
) -> Result<Result<(Sched, Phases<'a>), String>, InputError> {
    let policy = name(source, thread, "policy")?.unwrap_or(default);
    let whole = "it is a whole number";
    let priority: Option<i64> = source.value(thread, "priority", whole)?;
    let cpus = cpus(source, thread)?.unwrap_or(Cpus::All);
    // The names of older versions hold for the thread as a whole only.
    let reserved = reserved(source, thread, &["dl-", ""])?;
    let class = |policy, priority: Option<i64>, reserved| match policy {
        Name::Fair => Some(Class::Fair),
        Name::Fixed { turns } => Some(Class::Fixed {
            priority: priority.unwrap_or(PRIORITY),
            turns,
        }),
        Name::Deadline => Option::map(reserved, Class::Deadline),
    };
    const NOTHING: &str = "they are of SCHED_DEADLINE without dl-runtime";
    let Some(phases) = thread.last("phases") else {
        let again = source.value(thread, "loop", whole)?.unwrap_or(-1);
        return Ok(match class(policy, priority, reserved) {
            Some(class) => Ok((
                Sched { class, cpus },
                vec![(Object(thread.0.clone()), again)],
            )),
            None => Err(NOTHING.to_owned()),
        });
    };
    let mut all = Vec::new();
    let mut found: Option<Sched> = None;
    for (phase, raw) in source.object(phases, "phases")?.0 {
        let object = source.object(raw, &phase)?;
        let policy = name(source, &object, "policy")?.unwrap_or(policy);
        let priority = source.value(&object, "priority", whole)?.or(priority);
        let reserved = self::reserved(source, &object, &["dl-"])?.or(reserved);
        let Some(class) = class(policy, priority, reserved) else {
            return Ok(Err(NOTHING.to_owned()));
        };
        let cpus = self::cpus(source, &object)?.unwrap_or_else(|| cpus.clone());
        let here = Sched { class, cpus };
        if let Some(known) = &found
            && *known != here
        {
            if let (Class::Deadline(_), Class::Deadline(_)) = (known.class, here.class) {
                return Err(source.fault(
                    raw,
                    format!(
                        "phase `{}` of task `{}` asks for another reservation or other cpus than what went before",
                        excerpt(&phase),
                        excerpt(title)
                    ),
                    "timecell analyses tasks whose parameters stay the same",
                ));
            }
            return Ok(Err(
                "they change class, priority or cpus from phase to phase".to_owned(),
            ));
        }
        found = Some(here);
        let again = source.value(&object, "loop", whole)?.unwrap_or(1);
        all.push((object, again));
    }
    Ok(match found {
        Some(sched) => Ok((sched, all)),
        None => Err("they have no phase".to_owned()),
    })
}

/// The parameters of SCHED_DEADLINE, by the first of these beginnings that the runtime is given with.
fn reserved<'a>(
    source: &Source<'a>,
    object: &Object<'a>,
    beginnings: &[&str],
) -> Result<Option<Reserved>, InputError> {
    let read = |what: &str| -> Result<Option<Duration>, InputError> {
        for beginning in beginnings {
            // The event `runtime` may stand several times; as a parameter rt-app takes any one of them.
            let key = format!("{beginning}{what}");
            let given = object.0.iter().filter(|(name, _)| *name == key).count();
            if given > 0 && (given == 1 || !beginning.is_empty()) {
                return source.time(object, &key);
            }
        }
        Ok(None)
    };
    // Of threads of other classes `runtime` is work and `dl-runtime` a slice; neither asks for a period.
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
    let mend = "it is a list of numbers, such as [0, 1]";
    let listed: Option<BTreeSet<u32>> = source.value(object, "cpus", mend)?;
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

/// Cpus in use, by whichever threads: all, or some.
#[derive(Default)]
struct Used<'t, 'a> {
    all: Option<&'t Thread<'a>>,
    some: HashMap<u32, &'t Thread<'a>>,
}

impl<'t, 'a> Used<'t, 'a> {
    fn note(&mut self, thread: &'t Thread<'a>) {
        match &thread.sched.cpus {
            Cpus::All => self.all = self.all.or(Some(thread)),
            Cpus::Listed(cpus) => {
                for cpu in cpus {
                    self.some.entry(*cpu).or_insert(thread);
                }
            }
        }
    }

    /// A thread that may run where this one may, if possible one whose cpus are not the same.
    fn beside(&self, thread: &Thread<'_>) -> Option<&'t Thread<'a>> {
        let differs = |other: &&'t Thread<'a>| other.sched.cpus != thread.sched.cpus;
        match &thread.sched.cpus {
            Cpus::All => self.some.values().next().copied().or(self.all),
            Cpus::Listed(cpus) => {
                let there = || cpus.iter().filter_map(|cpu| self.some.get(cpu).copied());
                self.all
                    .or_else(|| there().find(differs))
                    .or_else(|| there().next())
            }
        }
    }
}

/// Leaves out threads that share cpus with one of a higher class: the classes are not analysed together.
///
/// # Errors
/// When threads of one class may run on cpus of which they share some and not all.
pub(super) fn highest<'a>(
    source: &Source<'_>,
    threads: Vec<Thread<'a>>,
    left: &mut BTreeMap<String, Vec<String>>,
) -> Result<Vec<Thread<'a>>, InputError> {
    let mut used: [Used<'_, 'a>; 3] = Default::default();
    for thread in &threads {
        used[thread.sched.class.rank()].note(thread);
    }
    let mut kept = Vec::new();
    for thread in &threads {
        let rank = thread.sched.class.rank();
        if let Some(above) = used[rank + 1..].iter().find_map(|used| used.beside(thread)) {
            let why = format!(
                "a higher class may run on their cpus ({})",
                above.sched.class.words()
            );
            left.entry(why).or_default().push(thread.task.name.clone());
            continue;
        }
        if let Some(other) = used[rank].beside(thread)
            && other.sched.cpus != thread.sched.cpus
        {
            let both = [other, thread].map(|thread| thread.task.name.clone());
            return Err(source.fault(
                thread.raw,
                format!(
                    "threads {} may run on different cpus, of which they share some",
                    join(&both)
                ),
                "timecell analyses threads that have all cpus in common or none",
            ));
        }
        kept.push(thread.clone());
    }
    Ok(kept)
}
