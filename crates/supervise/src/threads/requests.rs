//! News of classes that a cell's threads ask for and are not given: each told once in a life of the cell.

use std::collections::BTreeSet;

use engine::agent::{Agent, Excess, Noted};
use host::sched::Class;
use model::mission::Band;

use super::{Seen, Wanted};

/// The news told in this life.
#[derive(Debug, Default)]
pub(super) struct Requests {
    tasks: BTreeSet<usize>,
    order: bool,
    others: bool,
    excess: Excess,
}

impl Requests {
    /// The news of the tasks' threads, as clauses.
    pub(super) fn of_tasks(&mut self, wanted: &[Wanted], seen: &[Seen]) -> Vec<String> {
        let mut told: Vec<String> = (seen.iter())
            .filter_map(|seen| self.of_task(wanted, seen))
            .collect();
        if !self.order
            && let Some(what) = other_order(wanted, seen)
        {
            self.order = true;
            told.push(what);
        }
        told
    }

    fn of_task(&mut self, wanted: &[Wanted], seen: &Seen) -> Option<String> {
        let asked = seen.asked.as_ref().filter(|asked| is_real_time(asked))?;
        let task = seen.task?;
        let granted = (wanted[task].class.as_ref()).filter(|granted| *granted != asked)?;
        let is_new = self.tasks.insert(task);
        let name = &wanted[task].task;
        let key = match (asked, granted) {
            (Class::RoundRobin { .. }, Class::Fifo { .. }) => "; class = \"rr\" grants SCHED_RR",
            _ => "",
        };
        is_new.then(|| format!("{name} asks for {asked} and runs at {granted}, as admitted{key}"))
    }

    /// The news of a cell with these priorities, as clauses.
    pub(super) fn of_cell(
        &mut self,
        band: Option<Band>,
        noted: &[Noted],
        agent: Option<&Agent>,
    ) -> Vec<String> {
        let excess = agent.map(Agent::excess).unwrap_or_default();
        let before = std::mem::replace(&mut self.excess, excess);
        let news = [
            (
                excess.is_real_time() && !before.is_real_time(),
                "asked for a real-time class and was refused (EPERM): class `other` has none; class = \"fifo\" with `reservation` or a \
                 [[cell.task]] grants one",
            ),
            (
                excess.is_deadline() && !before.is_deadline(),
                "asked for SCHED_DEADLINE and runs in the class that it has; class = \"deadline\" grants it",
            ),
            (
                excess.is_of_cpus() && !before.is_of_cpus(),
                "asked for cpus of which none is its own, and stays where it is; `cpus` grants others",
            ),
            (
                excess.is_of_fewer_cpus() && !before.is_of_fewer_cpus(),
                "asked for some of its cpus and runs on all of them, as SCHED_DEADLINE requires; enforcer = \"freezer\" grants some",
            ),
            (
                excess.is_of_inheritance() && !before.is_of_inheritance(),
                "asked for a mutex with priority inheritance and was refused (ENOTSUP), since no budget holds a thread that inherits; \
                 enforcer = \"freezer\" grants it",
            ),
            (
                excess.is_of_calls() && !before.is_of_calls(),
                "asks for classes or cpus more than 1,000 times at once and 4,000 times a second; its answers are slowed down to that",
            ),
        ];
        let news = news.into_iter().filter(|(is_new, _)| *is_new);
        let mut told: Vec<String> = news.map(|(_, what)| what.to_owned()).collect();
        let beyond = |noted: &Noted| {
            let (asked, band) = (noted.asked.as_ref()?, band?);
            let own = asked.priority().filter(|own| !band.holds((*own).into()))?;
            let nearest = own.clamp(band.lowest, band.highest);
            Some(format!(
                "a thread asks for {asked} and gets priority {nearest}: the cell has {band}; `priorities` grants others"
            ))
        };
        if !self.others
            && let Some(what) = noted.iter().find_map(beyond)
        {
            self.others = true;
            told.push(what);
        }
        told
    }
}

/// That the program orders two tasks otherwise than the mission, a clause.
fn other_order(wanted: &[Wanted], seen: &[Seen]) -> Option<String> {
    let of_task = |seen: &Seen| {
        let wanted = &wanted[seen.task?];
        let asked = seen.asked.as_ref().and_then(Class::priority)?;
        Some((
            wanted.class.as_ref().and_then(Class::priority)?,
            asked,
            wanted.task.clone(),
        ))
    };
    let mut tasks: Vec<(u8, u8, String)> = seen.iter().filter_map(of_task).collect();
    tasks.sort_by_key(|(granted, ..)| std::cmp::Reverse(*granted));
    let words = |order: &[(u8, u8, String)]| {
        let names: Vec<&str> = order.iter().map(|(.., name)| name.as_str()).collect();
        names.join(", ")
    };
    let declared = words(&tasks);
    // Stable, so that equals stay as they are declared.
    tasks.sort_by_key(|(_, asked, _)| std::cmp::Reverse(*asked));
    let asked = words(&tasks);
    (asked != declared).then(|| {
        format!(
            "the program asks for another order of priorities than is analysed, the most urgent first: {asked}; analysed, and in force: \
             {declared}; set `priority` of the tasks to what the program uses"
        )
    })
}

/// A class that is asked for, without the times that only SCHED_DEADLINE has.
pub(super) fn is_real_time(asked: &Class) -> bool {
    asked.is_real_time() || *asked == Class::Unknown(host::sched::SCHED_DEADLINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(task: &str, priority: u8) -> Wanted {
        Wanted {
            task: task.to_owned(),
            thread: Some(task.to_owned()),
            is_named: false,
            class: Some(Class::Fifo { priority }),
        }
    }

    fn seen(task: Option<usize>, runs: u8, asks: u8) -> Seen {
        Seen {
            tid: 1,
            process: 1,
            name: "t".to_owned(),
            class: Some(Class::Fifo { priority: runs }),
            asked: Some(Class::Fifo { priority: asks }),
            task,
        }
    }

    #[test]
    fn another_order_is_a_finding_and_another_number_is_none() {
        let wanted = [wanted("a", 89), wanted("b", 88)];
        let order =
            |a: u8, b: u8| other_order(&wanted, &[seen(Some(0), 89, a), seen(Some(1), 88, b)]);
        assert_eq!(order(80, 70), None);
        assert_eq!(order(50, 50), None);
        let found = order(70, 80).unwrap();
        assert!(
            found.contains("first: b, a; analysed, and in force: a, b;"),
            "{found}"
        );
    }

    #[test]
    fn each_is_told_once() {
        let wanted = [wanted("a", 89)];
        let mut requests = Requests::default();
        let all = [seen(Some(0), 89, 80), seen(None, 85, 70)];
        let told = requests.of_tasks(&wanted, &all);
        assert_eq!(
            told,
            ["a asks for FIFO 80 and runs at FIFO 89, as admitted"]
        );
        assert!(requests.of_tasks(&wanted, &all).is_empty());
        // The class asked for is the one given.
        let same = [seen(Some(0), 89, 89)];
        assert!(Requests::default().of_tasks(&wanted, &same).is_empty());
    }

    #[test]
    fn what_the_cell_does_not_have_is_told_once() {
        let noted = |priority| Noted {
            thread: 3,
            standing: engine::agent::Standing::Open,
            asked: Some(Class::Fifo { priority }),
        };
        let band = Some(Band {
            lowest: 20,
            highest: 29,
        });
        let mut requests = Requests::default();
        assert!(requests.of_cell(band, &[noted(25)], None).is_empty());
        let told = requests.of_cell(band, &[noted(25), noted(90)], None);
        assert_eq!(
            told,
            [
                "a thread asks for FIFO 90 and gets priority 29: the cell has 20 to 29; `priorities` grants others"
            ]
        );
        assert!(requests.of_cell(band, &[noted(1)], None).is_empty());
    }
}
