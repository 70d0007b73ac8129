//! Budgets held by SCHED_DEADLINE.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::sched::{self, Class, bandwidth};
use model::mission::Cell;
use text::units::exact;

use super::partition::ByPartition;
use super::{Enforce, EnforceError, Inside, Mechanism};
use crate::admit::Grant;
use crate::threads::{Wanted, wanted};

/// How long a cell's start waits for bandwidth that threads which have ended still hold.
const PATIENCE: Duration = Duration::from_secs(1);

/// SCHED_DEADLINE: each task's thread has a runtime in every period and no more, regardless of the other threads of the machine.
/// A thread's children start in class OTHER (SCHED_RESET_ON_FORK), so that a cell gets no more than its tasks were granted.
///
/// The kernel takes no thread into this class that may not run on every cpu of its root domain, so the threads are kept to cpus
/// only where these are a cpuset partition, and the cell is in it.
#[derive(Debug)]
pub struct Deadline {
    cpus: Vec<u32>,
    threads: Vec<Wanted>,
    /// Where its cpus are a partition.
    partition: Option<Own>,
}

/// The partition in which a cell is.
#[derive(Debug)]
struct Own {
    cpus: Vec<u32>,
    group: Option<PathBuf>,
    /// The last reason told for keeping nobody to its cpus.
    lost: Option<String>,
}

impl Own {
    /// News of it for the user, a clause.
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

impl Deadline {
    /// For a cell of this grant: one thread for each of its tasks, or for its reservation.
    ///
    /// # Errors
    /// When nothing was granted that SCHED_DEADLINE could hold.
    pub fn new(grant: &Grant, cell: &Cell) -> Result<Deadline, EnforceError> {
        let threads = wanted(grant, cell);
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

    /// Whether this is the cell's first thread, which gets its class before the program begins: it is the only one, and has no name.
    fn begins_with(&self, wanted: &Wanted) -> bool {
        self.threads.len() == 1 && !wanted.is_named && !wanted.begins_late()
    }
}

/// Grants are held by the threads, and nothing is kept beside them but the partitions, which are the mission's.
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
        let own = |wanted: &Wanted| {
            let who = match &wanted.thread {
                Some(name) if !self.begins_with(wanted) => {
                    format!("thread `{name}`, once it exists,")
                }
                _ => "its first thread".to_owned(),
            };
            let class = wanted.class.as_ref().map_or(String::new(), told);
            format!("{who} {class}")
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
        let first = self.threads.iter().find(|wanted| self.begins_with(wanted));
        if let Some(class) = first.and_then(|wanted| wanted.class.as_ref()) {
            bandwidth::set_class_reset_on_fork_when_free(pid, class, PATIENCE)?;
        }
        Ok(())
    }

    fn tend(&mut self, _: &Inside) -> Vec<String> {
        (self.partition.as_mut())
            .and_then(Own::tend)
            .into_iter()
            .collect()
    }

    fn unheld(&self, _: &[(i32, Class)]) -> Vec<String> {
        let lost = (self.partition.as_ref()).and_then(|own| own.lost.as_ref());
        let told = |why: &String| format!("its cpus are no partition any more: {why}");
        lost.map(told).into_iter().collect()
    }

    fn settle_ns(&self) -> i64 {
        let periods = self.threads.iter().map(|wanted| match wanted.class {
            Some(Class::Deadline { period_ns, .. }) => i64::try_from(period_ns).unwrap_or(0),
            _ => 0,
        });
        periods.max().unwrap_or(0)
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
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
    let due = match deadline_ns == period_ns {
        true => String::new(),
        false => format!(" within {}", exact(*deadline_ns)),
    };
    format!(
        "{} of cpu time{due} in every {}",
        exact(*runtime_ns),
        exact(*period_ns)
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
            round_robin: false,
            partition: None,
            basis: Basis::WholeCpu,
            rate: 1.0,
            delay_ns: None,
            postponed_ns: 0,
            tasks: cell.tasks.iter().map(bound).collect(),
        }
    }

    /// Of each thread: its task, its name where that is sought, and its class.
    fn held(cell: &Cell, budget: Option<(u64, u64)>) -> Vec<(String, Option<String>, Class)> {
        let held = Deadline::new(&grant(cell, budget), cell).unwrap();
        let is_first = |wanted: &Wanted| held.begins_with(wanted);
        (held.threads.iter())
            .map(|wanted| {
                let name = wanted.thread.clone().filter(|_| !is_first(wanted));
                (wanted.task.clone(), name, wanted.class.clone().unwrap())
            })
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
        assert_eq!(held(&one, None), [("only".to_owned(), None, own.clone())]);
        let name = |name: &str| Some(name.to_owned());
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
        assert_eq!(all, [("c".to_owned(), None, own)]);
        assert!(Deadline::new(&grant(&plain, None), &plain).is_err());
    }

    #[test]
    fn what_it_guarantees_names_threads_times_and_cpus() {
        let two = cell(&(task("a", "") + &task("b", "")));
        let held = Deadline::new(&grant(&two, None), &two).unwrap();
        assert_eq!(
            held.guarantee(),
            "thread `a`, once it exists, 1.112 ms of cpu time within 8 ms in every 10 ms; thread `b`, once it exists, \
             1.112 ms of cpu time within 8 ms in every 10 ms, and no more, held by SCHED_DEADLINE on any of cpus 0-1 \
             beside all other threads of that class; its other threads are best effort"
        );
        assert_eq!(held.settle_ns(), 10_000_000);
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
