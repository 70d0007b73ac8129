//! Budgets held by SCHED_DEADLINE.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::sched::{self, Class, SchedError, bandwidth};
use model::mission::Cell;

use super::partition::ByPartition;
use super::{Enforce, EnforceError, Inside, Mechanism};
use crate::admit::Grant;

/// How long a cell's start waits for bandwidth that threads which have ended still hold.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often threads are looked for that are not there yet, ns.
const SOUGHT_NS: i64 = 20_000_000;
/// How often it is seen whether the threads still are what they were made, ns.
const WATCHED_NS: i64 = 1_000_000_000;
/// How often changes of one thread are reported: a cell that keeps creating and ending threads must not fill a journal.
const TOLD: u32 = 20;
/// The kernel keeps this many bytes of a thread's name.
const NAME_BYTES: usize = 15;

/// SCHED_DEADLINE: each task's thread has a runtime in every period and no more, whatever the other threads of the machine do.
/// A thread's children start in class OTHER (SCHED_RESET_ON_FORK), so that a cell gets no more than its tasks were granted.
///
/// The kernel takes no thread into this class that may not run on every cpu of its root domain, so the threads are kept to cpus
/// only where these are a cpuset partition, and the cell is in it.
#[derive(Debug)]
pub struct Deadline {
    cpus: Vec<u32>,
    threads: Vec<Thread>,
    /// Where its cpus are a partition.
    partition: Option<Own>,
}

/// The partition in which a cell is.
#[derive(Debug)]
struct Own {
    cpus: Vec<u32>,
    group: Option<PathBuf>,
    /// What was told last of why it keeps nobody to its cpus.
    lost: Option<String>,
}

impl Own {
    /// What the user should know of it, a clause.
    fn tend(&mut self) -> Option<String> {
        let lost = self.group.as_deref().and_then(host::isolate::invalid);
        let told = match &lost {
            Some(why) if self.lost.is_none() => Some(format!(
                "is no longer confined to cpu {}, which is not a cpuset partition: {why}",
                host::cpus::format_list(&self.cpus)
            )),
            None if self.lost.is_some() => Some("is confined to its cpus again".to_owned()),
            _ => None,
        };
        self.lost = lost;
        told
    }
}

/// A thread that is to be in the class.
#[derive(Debug)]
struct Thread {
    task: String,
    which: Which,
    class: Class,
    period_ns: u64,
    /// Its id, while it is in the class.
    held: Option<i32>,
    /// Whether its absence, or the kernel's refusal, was told since it was last held.
    complained: bool,
    /// When another thread may be held in its place, CLOCK_MONOTONIC ns.
    free_ns: i64,
    /// How often something of it was told.
    told: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Which {
    /// The first thread of the cell's first process.
    First,
    /// The one of this name.
    Named(String),
}

impl Deadline {
    /// For a cell of this grant: one thread for each of its tasks, or for its reservation.
    ///
    /// # Errors
    /// When nothing was granted that SCHED_DEADLINE could hold.
    pub fn new(grant: &Grant, cell: &Cell) -> Result<Deadline, EnforceError> {
        let ns = |time: model::Duration| time.ns().unsigned_abs();
        let threads: Vec<Thread> = match (grant.budget_ns, grant.period_ns) {
            (Some(runtime), Some(period)) if cell.tasks.len() <= 1 => {
                let task = cell.tasks.first();
                let name = task.map_or(&cell.name, |task| &task.timing.name);
                let which = named(task.and_then(|task| task.thread.as_deref()));
                vec![Thread::new(name, which, [runtime, period, period])]
            }
            _ => {
                let alone = cell.tasks.len() == 1;
                (cell.tasks.iter().zip(&grant.tasks))
                    .filter_map(|(task, bound)| {
                        let own = (!alone).then(|| task.name());
                        let which = named(task.thread.as_deref().or(own));
                        let (period, deadline) = (ns(task.timing.period), ns(task.timing.deadline));
                        let times = [bound.runtime_ns?, deadline.min(period), period];
                        Some(Thread::new(task.name(), which, times))
                    })
                    .collect()
            }
        };
        if threads.is_empty() {
            return Err(EnforceError::NotGranted {
                cell: grant.cell.clone(),
                what: "runtime of SCHED_DEADLINE",
            });
        }
        Ok(Deadline {
            cpus: grant.cpus.clone(),
            threads,
            partition: None,
        })
    }
}

fn named(name: Option<&str>) -> Which {
    match name {
        Some(name) => Which::Named(name[..name.floor_char_boundary(NAME_BYTES)].to_owned()),
        None => Which::First,
    }
}

impl Thread {
    fn new(task: &str, which: Which, [runtime_ns, deadline_ns, period_ns]: [u64; 3]) -> Thread {
        Thread {
            task: task.to_owned(),
            which,
            class: Class::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            },
            period_ns,
            held: None,
            complained: false,
            free_ns: 0,
            told: 0,
        }
    }

    /// A thread that was held no longer is. The kernel counts it until its period is over; a cell that creates and ends
    /// threads must not be counted more than once.
    fn lose(&mut self, now_ns: i64) {
        self.held = None;
        self.free_ns = now_ns.saturating_add_unsigned(self.period_ns);
    }

    /// What is reported of it, a limited number of times.
    fn tell(&mut self, what: &str) -> Option<String> {
        self.told += 1;
        let task = &self.task;
        match self.told {
            ..TOLD => Some(format!("{task} {what}")),
            TOLD => Some(format!("{task} {what}; further cases are not reported")),
            _ => None,
        }
    }

    fn is(&self, thread: i32, first: i32) -> bool {
        match &self.which {
            Which::First => thread == first,
            Which::Named(name) => host::process::name(thread).as_ref() == Some(name),
        }
    }

    fn has_its_class(&self, thread: i32) -> bool {
        sched::get_class(thread).is_ok_and(|class| class == self.class)
    }
}

/// What is held is held by the threads, and nothing is kept beside them but the partitions, which are the mission's.
#[derive(Debug)]
pub(super) struct ByThread {
    partitions: Arc<ByPartition>,
}

impl ByThread {
    pub(super) fn with(partitions: Arc<ByPartition>) -> ByThread {
        ByThread { partitions }
    }
}

impl Mechanism for ByThread {
    fn make(&self, grant: &Grant, cell: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        let mut held = Deadline::new(grant, cell)?;
        held.partition = grant.partition.clone().map(|cpus| Own {
            group: self.partitions.group(&cpus),
            cpus,
            lost: None,
        });
        Ok(Box::new(held))
    }
}

impl Enforce for Deadline {
    fn guarantee(&self) -> String {
        let own = |thread: &Thread| {
            let who = match (&thread.which, self.threads.len()) {
                (Which::First, _) => "its first thread".to_owned(),
                (Which::Named(name), _) => format!("thread `{name}`, once it exists,"),
            };
            format!("{who} {}", told(&thread.class))
        };
        let threads: Vec<String> = self.threads.iter().map(own).collect();
        let cpus = host::cpus::format_list(&self.cpus);
        let place = match &self.partition {
            Some(_) => format!("cpu {cpus}, a cpuset partition of its mission"),
            None => format!("any of cpus {cpus} beside all other threads of that class"),
        };
        format!(
            "{}, and no more, held by SCHED_DEADLINE on {place}; its other threads are best effort",
            threads.join("; ")
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        sched::set_affinity(pid, &self.cpus)?;
        for thread in &self.threads {
            if thread.which == Which::First {
                bandwidth::set_class_reset_on_fork_when_free(pid, &thread.class, PATIENCE)?;
            }
        }
        Ok(())
    }

    fn tend(&mut self, inside: &Inside) -> Vec<String> {
        let mut told: Vec<String> = (self.partition.as_mut())
            .and_then(Own::tend)
            .into_iter()
            .collect();
        let all = inside.threads();
        let now_ns = timecell_client::now_ns();
        for at in 0..self.threads.len() {
            let thread = &mut self.threads[at];
            let before = thread.held;
            if before.is_some_and(|id| all.contains(&id) && thread.has_its_class(id)) {
                continue;
            }
            if before.is_some() {
                thread.lose(now_ns);
            }
            let taken: Vec<i32> = self.threads.iter().filter_map(|one| one.held).collect();
            let thread = &mut self.threads[at];
            let found =
                (all.iter().copied()).find(|id| !taken.contains(id) && thread.is(*id, inside.pid));
            let free = now_ns >= thread.free_ns;
            let what = match found {
                None if before.is_some() && !thread.complained => {
                    thread.complained = true;
                    "is no longer held: its thread has ended".to_owned()
                }
                Some(id) if free || thread.has_its_class(id) => match thread.take(id, inside) {
                    Ok(new) => {
                        thread.held = Some(id);
                        thread.complained = false;
                        // The start has already reported that the first thread is in its class.
                        if !new {
                            continue;
                        }
                        format!("(thread {id}) has {}", self::told(&thread.class))
                    }
                    // It has ended since.
                    Err(SchedError::NoSuchProcess { .. }) => continue,
                    Err(_) if thread.complained => continue,
                    Err(error) => {
                        thread.complained = true;
                        format!("is not held: {error}")
                    }
                },
                None | Some(_) => continue,
            };
            told.extend(thread.tell(&what));
        }
        told
    }

    fn tend_again_ns(&self) -> Option<i64> {
        let sought = self.threads.iter().any(|thread| thread.held.is_none());
        Some(if sought { SOUGHT_NS } else { WATCHED_NS })
    }

    fn unheld(&self, _: &Inside) -> Vec<String> {
        (self.threads.iter())
            .filter(|thread| thread.held.is_none())
            .map(|thread| match &thread.which {
                Which::First => format!("{} is not held: its first thread is in another class", thread.task),
                Which::Named(name) => format!(
                    "{} is not held: it has no thread `{name}` yet, so the task is best effort; give its thread that name \
                     (prctl PR_SET_NAME), or set `thread` in the mission",
                    thread.task
                ),
            })
            .collect()
    }

    fn settle_ns(&self) -> i64 {
        let longest = self.threads.iter().map(|thread| thread.period_ns).max();
        longest.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0)
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}

impl Thread {
    /// Puts a thread into the class; whether it was in another one.
    fn take(&self, thread: i32, inside: &Inside) -> Result<bool, SchedError> {
        if self.has_its_class(thread) {
            return Ok(false);
        }
        sched::set_class_reset_on_fork(thread, &self.class)?;
        if inside.threads().contains(&thread) {
            return Ok(true);
        }
        // It ended, and its number may be a stranger's by now.
        if self.has_its_class(thread) {
            let _ = bandwidth::leave(thread);
        }
        Err(SchedError::NoSuchProcess { pid: thread })
    }
}

fn told(class: &Class) -> String {
    let Class::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    } = class
    else {
        return class.to_string();
    };
    let ms = |ns: &u64| *ns as f64 / 1e6;
    let due = match deadline_ns == period_ns {
        true => String::new(),
        false => format!(" within {:.3} ms", ms(deadline_ns)),
    };
    format!(
        "{:.3} ms of cpu time{due} in every {:.3} ms",
        ms(runtime_ns),
        ms(period_ns)
    )
}

#[cfg(test)]
mod tests {
    use model::Enforcer;
    use model::mission::MissionFile;

    use super::*;
    use crate::admit::{Basis, TaskBound};

    fn cell(rest: &str) -> Cell {
        let text = format!(
            "schema = 1\nname = \"m\"\n[[cell]]\nname = \"c\"\nclass = \"deadline\"\nimage = {{ binary = \"b\" }}\n{rest}"
        );
        match MissionFile::parse("m.toml", &text) {
            Ok(file) => file.into_mission().cells.remove(0),
            Err(faults) => panic!("{faults}"),
        }
    }

    fn task(name: &str, more: &str) -> String {
        format!(
            "[[cell.task]]\nname = \"{name}\"\nwcet = \"1ms\"\nperiod = \"10ms\"\ndeadline = \"8ms\"\n{more}\n"
        )
    }

    fn grant(cell: &Cell, budget: Option<(u64, u64)>) -> Grant {
        let bound = |task: &model::mission::Task| TaskBound {
            task: task.name().to_owned(),
            response_ns: None,
            deadline_ns: 8_000_000,
            priority: None,
            runtime_ns: budget.is_none().then_some(1_112_000),
        };
        Grant {
            cell: "c".to_owned(),
            enforcer: Enforcer::Deadline,
            cpus: vec![0, 1],
            budget_ns: budget.map(|(budget, _)| budget),
            period_ns: budget.map(|(_, period)| period),
            band: None,
            partition: None,
            basis: Basis::WholeCpu,
            rate: 1.0,
            delay_ns: None,
            postponed_ns: 0,
            tasks: cell.tasks.iter().map(bound).collect(),
        }
    }

    fn held(cell: &Cell, budget: Option<(u64, u64)>) -> Vec<(String, Which, Class)> {
        let held = Deadline::new(&grant(cell, budget), cell).unwrap();
        (held.threads.into_iter())
            .map(|thread| (thread.task, thread.which, thread.class))
            .collect()
    }

    fn times(runtime_ns: u64, deadline_ns: u64, period_ns: u64) -> Class {
        Class::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        }
    }

    #[test]
    fn one_task_is_the_first_thread_and_several_are_found_by_name() {
        let own = times(1_112_000, 8_000_000, 10_000_000);
        let one = cell(&task("only", ""));
        assert_eq!(
            held(&one, None),
            [("only".to_owned(), Which::First, own.clone())]
        );
        let name = |name: &str| Which::Named(name.to_owned());
        let two = cell(&(task("a task with a long name", "") + &task("b", "thread = \"worker\"")));
        let all = held(&two, None);
        assert_eq!(all[0].1, name("a task with a l"));
        assert_eq!((&all[1].1, &all[1].2), (&name("worker"), &own));
        let one = cell(&task("only", "thread = \"worker\""));
        assert_eq!(held(&one, None)[0].1, name("worker"));
    }

    #[test]
    fn a_reservation_is_one_thread_with_its_budget() {
        let plain = cell("reservation = { budget = \"2ms\", period = \"10ms\" }\n");
        let own = times(2_000_000, 10_000_000, 10_000_000);
        let all = held(&plain, Some((2_000_000, 10_000_000)));
        assert_eq!(all, [("c".to_owned(), Which::First, own)]);
        assert!(Deadline::new(&grant(&plain, None), &plain).is_err());
    }

    #[test]
    fn what_it_guarantees_names_threads_times_and_cpus() {
        let two = cell(&(task("a", "") + &task("b", "")));
        let held = Deadline::new(&grant(&two, None), &two).unwrap();
        assert_eq!(
            held.guarantee(),
            "thread `a`, once it exists, 1.112 ms of cpu time within 8.000 ms in every 10.000 ms; thread `b`, once it exists, \
             1.112 ms of cpu time within 8.000 ms in every 10.000 ms, and no more, held by SCHED_DEADLINE on any of cpus 0-1 \
             beside all other threads of that class; its other threads are best effort"
        );
        assert_eq!(
            (
                held.unheld(&Inside {
                    pid: 1,
                    groups: Vec::new()
                })
                .len(),
                held.settle_ns()
            ),
            (2, 10_000_000)
        );
        let apart = Grant {
            cpus: vec![1],
            partition: Some(vec![1]),
            ..grant(&two, None)
        };
        let mechanism = ByThread::with(Arc::new(ByPartition::of("m")));
        let guarantee = mechanism.make(&apart, &two).unwrap().guarantee();
        let place = "held by SCHED_DEADLINE on cpu 1, a cpuset partition of its mission;";
        assert!(guarantee.contains(place), "{guarantee}");
    }
}
