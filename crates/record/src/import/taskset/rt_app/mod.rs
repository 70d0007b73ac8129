//! rt-app's JSON: threads of SCHED_DEADLINE by their `dl-runtime`, `dl-period` (default: the runtime) and `dl-deadline` (default: the
//! period), threads of the other classes by their work between two waits for their timer; all times in microseconds. The used and the unused
//! parts of each thread are returned as notes.
//!
//! Verdicts must not be better than rt-app's behaviour: threads of SCHED_DEADLINE and of fixed priorities that share cpus are one cell,
//! tested on one of its cpus; threads of no real-time class that share cpus with others are not used; threads of one class that may run on
//! several cpus are scheduled globally; a thread that one without a task may delay is not used. Threads that run and are not used are named
//! as outside all verdicts.

mod jobs;
mod json;
mod sched;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use model::taskset::{CellTask, Limits, Order, Policy, TaskSet};
use model::{Enforcer, InputError, InputErrors};
use serde_json::value::RawValue;

use self::json::{Object, Source, plain};
use self::sched::{Class, Cpus, Place, Sched, Stranger, Untaken};
use super::{Cells, Imported, Names, Options, Reader, Takes, excerpt, faulty};
use crate::export::{EMBEDDED, write_rt_app};

/// Why a thread that rt-app does not start by itself is not a task.
const NOT_STARTED: &str = "only other threads start them (`instance` is 0)";

/// Number of threads that are named one by one; others are only counted.
const NAMED: usize = 20;

pub(super) const READER: Reader = Reader {
    name: "rt-app",
    files: "rt-app's JSON",
    endings: &["json"],
    looks_like: begins,
    whose: " of rt-app",
    takes: Takes {
        unit: false,
        policy: true,
    },
    read,
};

/// Whether a text with this beginning is a task set of rt-app.
fn begins(head: &str) -> bool {
    let head = plain(head);
    head.trim_start().starts_with('{') && head.contains("\"tasks\"")
}

fn read(name: &str, text: &str, options: Options) -> Result<Imported, InputErrors> {
    let text = plain(text);
    let source = Source { name, text: &text };
    let top = source.top()?;
    let threads = threads(&source, &top)?;
    let mut notes = Vec::new();
    if let Some(set) = embedded(&source, &top)? {
        if is_of(&set, &threads) {
            notes.push("the file contains the task set from which it was exported, and the threads agree with it; rt-app itself does not hold them to cells".to_owned());
            return Ok(Imported::of(set, notes));
        }
        notes.push(format!("`{EMBEDDED}` contains the task set from which the file was exported; the threads have been changed since, so they are read instead"));
    }
    let mut imported = analysable(&source, threads, options, &mut notes)?;
    imported.notes = notes;
    Ok(imported)
}

/// The threads of a file.
#[derive(Default)]
struct Threads<'a> {
    taken: Vec<Thread<'a>>,
    /// Threads that have no task in the set, by reason.
    left: BTreeMap<String, Vec<String>>,
    /// Those of them that run nevertheless.
    strangers: Vec<Stranger<'a>>,
}

/// A thread with its task in the set.
#[derive(Clone)]
struct Thread<'a> {
    raw: &'a RawValue,
    sched: Sched,
    task: CellTask,
    copies: usize,
    /// All cpus of the threads with which it shares some, where these are of both real-time classes.
    stack: Option<Cpus>,
}

impl<'a> Threads<'a> {
    fn leave(&mut self, why: &str, title: &str) {
        self.left
            .entry(why.to_owned())
            .or_default()
            .push(title.to_owned());
    }

    /// Leaves out a thread that runs at `place`, if it does anything there.
    fn pass(&mut self, raw: &'a RawValue, title: String, why: String, place: Option<Place>) {
        self.leave(&why, &title);
        if let Some(place) = place.filter(|_| why != jobs::IDLE) {
            self.strangers.push(Stranger {
                raw,
                title,
                why,
                place,
            });
        }
    }
}

fn threads<'a>(source: &Source<'a>, top: &Object<'a>) -> Result<Threads<'a>, InputError> {
    let tasks = top.last("tasks").ok_or_else(|| {
        InputError::new(
            source.name,
            "the file has no `tasks`",
            "an rt-app file contains { \"tasks\": { ... } }",
        )
    })?;
    let default = sched::default(source, top)?;
    let mut threads = Threads::default();
    let mut forked = None;
    for (title, raw) in source.object(tasks, "tasks")?.0 {
        let thread = source.object(raw, &title)?;
        let copies = instances(source, &thread)?;
        if copies == 0 {
            let why = NOT_STARTED;
            let forked = match &forked {
                Some(forked) => forked,
                None => forked.insert(self::forked(source, tasks)?),
            };
            let place = match forked.contains(&title) {
                true => sched::of(source, &title, &thread, default)?
                    .map_or_else(|untaken| untaken.place, |(sched, _)| Some(sched.into())),
                false => None,
            };
            threads.pass(raw, title, why.to_owned(), place);
            continue;
        }
        let (sched, phases) = match sched::of(source, &title, &thread, default)? {
            Ok(found) => found,
            Err(Untaken { why, place }) => {
                threads.pass(raw, title, why, place);
                continue;
            }
        };
        let found = match sched.class {
            Class::Deadline(reserved) => {
                let task = CellTask {
                    deadline: reserved.deadline,
                    ..CellTask::new(&title, reserved.runtime, reserved.period)
                };
                match task.fault() {
                    Some(fault) => return Err(faulty(source.line(raw), fault)),
                    None => Ok(task),
                }
            }
            Class::Fixed { .. } | Class::Fair => jobs::job(source, &phases)?.and_then(|job| {
                let mut task = CellTask::new(&title, job.work, job.period);
                if let Class::Fixed { priority, .. } = sched.class {
                    task.priority = Some(priority);
                }
                // A thread that works for longer than its period is reported once it is known whether it counts.
                let whole = CellTask {
                    wcet: task.wcet.min(task.period),
                    ..task.clone()
                };
                match whole.fault() {
                    Some(fault) => Err(fault.what),
                    None => Ok(task),
                }
            }),
        };
        match found {
            Ok(task) => threads.taken.push(Thread {
                raw,
                sched,
                task,
                copies,
                stack: None,
            }),
            Err(why) => threads.pass(raw, title, why, Some(sched.into())),
        }
    }
    Ok(threads)
}

/// The threads that are started by other threads.
fn forked<'a>(source: &Source<'a>, tasks: &'a RawValue) -> Result<HashSet<String>, InputError> {
    let mut forked = HashSet::new();
    for (title, raw) in source.object(tasks, "tasks")?.0 {
        let thread = source.object(raw, &title)?;
        let mut all = Vec::new();
        if let Some(phases) = thread.last("phases") {
            for (phase, raw) in source.object(phases, "phases")?.0 {
                all.push(source.object(raw, &phase)?);
            }
        }
        all.push(thread);
        let events = all.iter().flat_map(|object| &object.0);
        let forks = events.filter(|(key, _)| key.starts_with("fork"));
        forked.extend(forks.filter_map(|(_, raw)| serde_json::from_str::<String>(raw.get()).ok()));
    }
    Ok(forked)
}

/// The number of copies of the thread.
fn instances<'a>(source: &Source<'a>, thread: &Object<'a>) -> Result<usize, InputError> {
    let Some(raw) = thread.last("instance") else {
        return Ok(1);
    };
    let number = raw.get().parse().ok().filter(|n| *n <= Limits::TASKS);
    number.ok_or_else(|| {
        source.fault(
            raw,
            format!("`instance` is {}", excerpt(raw.get())),
            "it must be a whole number of 0 to 100000",
        )
    })
}

/// The task set that the file was exported from.
fn embedded<'a>(source: &Source<'a>, top: &Object<'a>) -> Result<Option<TaskSet>, InputErrors> {
    let Some(global) = top.last("global") else {
        return Ok(None);
    };
    let global = source.object(global, "global")?;
    let what = "it must be the text of a task set";
    let text: Option<String> = source.value(&global, EMBEDDED, what)?;
    let at = format!("{}, `{EMBEDDED}`", source.name);
    text.map(|text| TaskSet::parse(&at, &text)).transpose()
}

/// Whether these threads are those that an export of this set would write.
fn is_of(set: &TaskSet, threads: &Threads<'_>) -> bool {
    let Ok(exported) = write_rt_app(set, "the set", 1) else {
        return false;
    };
    let text = plain(&exported.text);
    let source = Source {
        name: "the set",
        text: &text,
    };
    let again = source.top().and_then(|top| self::threads(&source, &top));
    again.is_ok_and(|again| {
        let same = |(a, b): (&Thread<'_>, &Thread<'_>)| {
            a.sched == b.sched && a.task == b.task && a.copies == b.copies
        };
        again.left == threads.left
            && again.taken.len() == threads.taken.len()
            && again.taken.iter().zip(&threads.taken).all(same)
    })
}

/// The threads grouped into cells, one per class and set of cpus, or per set of cpus that both real-time classes share.
fn analysable(
    source: &Source<'_>,
    threads: Threads<'_>,
    options: Options,
    notes: &mut Vec<String>,
) -> Result<Imported, InputError> {
    let Threads {
        mut taken,
        mut left,
        strangers,
    } = threads;
    sched::stack(&mut taken);
    let mut cells = Cells::default();
    let mut names = Names::default();
    let mut fair = None;
    let mut unguaranteed: Vec<String> = Vec::new();
    let mut on_one_cpu: BTreeSet<String> = BTreeSet::new();
    let mut all = left
        .iter()
        .filter(|(why, _)| runs(why))
        .map(|(_, titles)| titles.len())
        .sum::<usize>();
    let mut told = Vec::new();
    let mut all_cpus = None;
    let mut turns = false;
    let mut works = false;
    all += taken.iter().map(|thread| thread.copies).sum::<usize>();
    let kept = sched::highest(source, taken, &mut left)?;
    let used = kept.iter().map(|thread| thread.copies).sum::<usize>();
    let by_deadline = (kept.iter()).any(|thread| matches!(thread.sched.class, Class::Deadline(_)));
    sched::undelayed(source, &kept, &strangers)?;
    for thread in kept {
        let sched = &thread.sched;
        if thread.task.wcet > thread.task.period {
            return Err(source.fault(
                thread.raw,
                format!(
                    "thread `{}` works for up to {} between two waits for a timer of {}: it misses deadlines even alone",
                    excerpt(&thread.task.name),
                    thread.task.wcet,
                    thread.task.period
                ),
                "a set with it cannot be analysed; shorten its work, or take it out and give it its own cpus",
            ));
        }
        let (cell, cpus) = match thread.stack.as_ref().unwrap_or(&sched.cpus) {
            Cpus::Listed(cpus) => (sched::cell(cpus), cpus.len()),
            Cpus::All => {
                let count = options.cpus.ok_or_else(|| {
                    source.fault(
                        thread.raw,
                        format!(
                            "thread `{}` may run on all cpus, but the file does not say how many there are",
                            excerpt(&thread.task.name)
                        ),
                        "give their number with --cpus",
                    )
                })?;
                all_cpus = Some(count);
                ("all".to_owned(), count as usize)
            }
        };
        let policy = match sched.class {
            Class::Deadline(_) => Policy::Edf,
            Class::Fixed { .. } => Policy::Fixed(Order::Priority),
            Class::Fair => *fair.get_or_insert_with(|| super::policy(options, notes)),
        };
        if sched.class == Class::Fair && !unguaranteed.contains(&cell) {
            unguaranteed.push(cell.clone());
        }
        let policy = match thread.stack {
            Some(_) => Policy::EdfOverFixed,
            None => global(policy, cpus),
        };
        if thread.stack.is_some() && cpus > 1 {
            on_one_cpu.insert(cell.clone());
        }
        told.push(taken_as(&thread));
        works |= !matches!(sched.class, Class::Deadline(_));
        for _ in 0..thread.copies {
            cells.count(source.line(thread.raw))?;
            let task = CellTask {
                name: names.unique(&thread.task.name),
                ..thread.task.clone()
            };
            let tasks = &mut cells.of(&cell, &cell, policy).tasks;
            tasks.push(task);
        }
        turns |= matches!(sched.class, Class::Fixed { turns: true, .. });
    }
    let mut fix = vec!["timecell reads SCHED_DEADLINE threads with dl-runtime, and others that `run` and wait for a `timer`".to_owned()];
    fix.extend(reasons(&left));
    let mut set = cells.finish(&fix.join("; "))?;
    for cell in &mut set.cells {
        if cell.policy.order() == Some(Order::Priority) || cell.policy == Policy::EdfOverFixed {
            let one_cpu = cell.policy.cpus().is_none() && !on_one_cpu.contains(&cell.name);
            equals(source.name, cell, turns, one_cpu, notes)?;
        }
    }
    if let Some(count) = all_cpus {
        let cpus = if count == 1 { "cpu" } else { "cpus" };
        notes.push(format!(
            "threads that name no cpus may run on all, assumed to be {count} {cpus} (--cpus)"
        ));
    }
    if fair.is_none() && options.policy.is_some() {
        notes.push(
            "--policy has no effect: it is for threads of no real-time class, and none is analysed"
                .to_owned(),
        );
    }
    if fair.is_some() {
        notes.push("SCHED_OTHER, SCHED_BATCH and SCHED_IDLE threads have no guarantee; times and bounds are those under the policy above".to_owned());
    }
    if works {
        notes.push(
            "rt-app calibrates its work for a cpu at full speed; its times are used unchanged"
                .to_owned(),
        );
    }
    listed(told, notes);
    notes.extend(reasons(&left));
    if by_deadline {
        set.enforcer = Some(Enforcer::Deadline);
    }
    let mut uncovered = Vec::new();
    if used < all {
        let running = left.iter().filter(|(why, _)| runs(why));
        let titles: Vec<String> = running.flat_map(|(_, titles)| titles.clone()).collect();
        uncovered.push(format!(
            "{} of {all} threads {} left out: {}",
            all - used,
            if all - used == 1 { "is" } else { "are" },
            join(&titles)
        ));
    }
    Ok(Imported {
        unguaranteed,
        uncovered,
        on_one_cpu: on_one_cpu.into_iter().collect(),
        ..Imported::of(set, Vec::new())
    })
}

/// Whether a thread that is left out for this reason runs nevertheless.
fn runs(why: &str) -> bool {
    ![jobs::IDLE, NOT_STARTED].contains(&why)
}

/// The used part of a thread.
fn taken_as(thread: &Thread<'_>) -> String {
    let task = &thread.task;
    let who = format!("`{}` ({})", excerpt(&task.name), thread.sched.class.words());
    let (wcet, period) = (task.wcet, task.period);
    match thread.sched.class {
        Class::Deadline(_) if task.deadline != period => {
            format!(
                "{who}: dl-runtime {wcet} in {period}, due after {}",
                task.deadline
            )
        }
        Class::Deadline(_) => format!("{who}: dl-runtime {wcet} in {period}"),
        _ => format!("{who}: {wcet} in {period}, the longest work between two waits for its timer"),
    }
}

/// Why threads were left out, one clause each.
fn reasons(left: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut all: Vec<String> = (left.iter().take(NAMED))
        .map(|(why, titles)| format!("left out because {why}: {}", join(titles)))
        .collect();
    let others: usize = left.values().skip(NAMED).map(Vec::len).sum();
    if others > 0 {
        all.push(format!("left out for other reasons: {others} more"));
    }
    all
}

/// Adds the first of them to the notes, and the number of the others.
fn listed(told: Vec<String>, notes: &mut Vec<String>) {
    let more = told.len().saturating_sub(NAMED);
    notes.extend(told.into_iter().take(NAMED));
    if more > 0 {
        notes.push(format!("and {more} more threads likewise"));
    }
}

fn join(titles: &[String]) -> String {
    let named: Vec<_> = (titles.iter().take(NAMED))
        .map(|title| excerpt(title))
        .collect();
    let mut text = named.join(", ");
    if titles.len() > NAMED {
        text.push_str(&format!(" and {} more", titles.len() - NAMED));
    }
    text
}

/// The policy on this number of cpus.
fn global(policy: Policy, cpus: usize) -> Policy {
    let many = u32::try_from(cpus).unwrap_or(u32::MAX);
    match policy {
        _ if cpus < 2 => policy,
        Policy::Fixed(order) => Policy::GlobalFixed(order, many),
        _ => Policy::GlobalEdf(many),
    }
}

/// Gives threads of equal priority different priorities, one below the other.
///
/// SCHED_FIFO lets the first of them finish its job. One that is more urgent in the new order may therefore wait for a job
/// of each of the others, which is counted as blocking; while their deadlines hold, each has only one job at a time.
fn equals(
    name: &str,
    cell: &mut model::taskset::TaskCell,
    turns: bool,
    one_cpu: bool,
    notes: &mut Vec<String>,
) -> Result<(), InputError> {
    let mut by_priority: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (place, task) in cell.tasks.iter().enumerate() {
        if let Some(priority) = task.priority {
            by_priority.entry(priority).or_default().push(place);
        }
    }
    if by_priority.values().all(|places| places.len() == 1) {
        return Ok(());
    }
    if turns || !one_cpu {
        let shared = by_priority.values().find(|places| places.len() > 1);
        let titles: Vec<String> = (shared.into_iter().flatten())
            .map(|&place| cell.tasks[place].name.clone())
            .collect();
        let where_ = if one_cpu {
            "under SCHED_RR"
        } else {
            "on several cpus"
        };
        return Err(InputError::new(
            name,
            format!("threads of equal priority: {}", join(&titles)),
            format!(
                "the order among equals {where_} is not analysed; give each a different priority"
            ),
        ));
    }
    let mut next = i64::try_from(cell.tasks.len()).unwrap_or(i64::MAX);
    for places in by_priority.values().rev() {
        let mut below = places.iter().fold(0i64, |sum, &place| {
            sum.saturating_add(cell.tasks[place].wcet.ns())
        });
        for &place in places {
            let task = &mut cell.tasks[place];
            below = below.saturating_sub(task.wcet.ns());
            task.blocking = model::Duration::from_ns(below.min(Limits::LONGEST_NS));
            task.priority = Some(next);
            next -= 1;
        }
    }
    notes.push(format!(
        "cell {}: threads of equal priority wait for each other's jobs, which is counted as blocking; the priorities are renumbered",
        cell.name
    ));
    Ok(())
}
