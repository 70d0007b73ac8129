//! Fixed priorities with sections that cannot be preempted.

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, STEPS};
use crate::{Ns, Task, Undecided};

use super::Response;
use super::level::Level;
use super::response::{legal, once};

/// Where jobs of a task cannot be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Section {
    /// The longest section, ns, 1 to the wcet: how long the task may delay those above it, but for 1 ns.
    pub longest: Ns,
    /// The last section, ns, 1 to `longest`: a job that has begun it is no longer preempted. 1 if the job's end may be
    /// preempted, or if it is not known where the sections lie.
    pub last: Ns,
}

impl Section {
    /// A task that can be preempted anywhere.
    pub const PREEMPTIVE: Section = Section {
        longest: 1,
        last: 1,
    };

    /// A task whose jobs run to completion once started.
    ///
    /// ```
    /// use timecell_analysis::{Task, fp::Section};
    ///
    /// assert_eq!(Section::whole(&Task::new(20, 70)), Section { longest: 20, last: 20 });
    /// ```
    pub const fn whole(task: &Task) -> Section {
        Section {
            longest: task.wcet,
            last: task.wcet,
        }
    }

    /// Sections of at most this length in ns at unknown places ("floating").
    ///
    /// ```
    /// use timecell_analysis::{Task, fp::{Section, response_times_with_sections}};
    ///
    /// // The first task waits for a section of the second that began 1 ns before.
    /// let tasks = [Task::new(2, 10), Task::new(8, 20)];
    /// let sections = [Section::PREEMPTIVE, Section::floating(5)];
    /// assert_eq!(response_times_with_sections(&tasks, &sections)[0].bound(), Some(2 + 4));
    /// ```
    pub const fn floating(longest: Ns) -> Section {
        Section { longest, last: 1 }
    }
}

/// Worst-case response times of a set in priority order with sections that cannot be preempted: non-preemptive, limited
/// preemptive or floating, any mixture. `sections[i]` belongs to `tasks[i]`.
///
/// George, Rivierre & Spuri (1996), Davis, Burns, Bril & Lukkien (2007), Bozhko & Brandenburg (ECRTS 2020): a job is
/// delayed at first by the longest section of one task below, which began 1 ns before; it finishes `last - 1` after the
/// least `w = B + (q + 1) C - (last - 1) + sum over higher of ceil((w + J_j) / T_j) C_j`; every job of the busy period
/// counts, also with constrained deadlines. Exact for whole sections under sporadic arrivals in integer time; for
/// others sufficient, since not every placement of sections can bring about the bound. The tasks' own `blocking` is added.
///
/// Times in ns. If a section is 0, longer than the wcet, or `last` exceeds `longest`, or the slices differ in length, the
/// tasks concerned are [`Response::Undecided`].
///
/// ```
/// use timecell_analysis::{Task, fp::{Response, Section, response_times_with_sections}};
///
/// let tasks = [Task::new(20, 70), Task::new(20, 80), Task::new(35, 200)];
/// let whole = tasks.map(|task| Section::whole(&task));
/// let bounds: Vec<_> = response_times_with_sections(&tasks, &whole).iter().map(Response::bound).collect();
/// assert_eq!(bounds, [Some(54), Some(74), Some(75)]);
/// ```
pub fn response_times_with_sections(tasks: &[Task], sections: &[Section]) -> Vec<Response> {
    let mut budget = Budget::new(STEPS);
    let mut illegal = None;
    // The longest delay by a task below, for each task.
    let mut below = vec![0; tasks.len()];
    for index in (1..tasks.len()).rev() {
        let longest = sections.get(index).map_or(0, |section| section.longest);
        below[index - 1] = below[index].max(longest.saturating_sub(1));
    }
    // A bad section delays the tasks above it by an unknown time, so that no task can be decided.
    for (index, task) in tasks.iter().enumerate() {
        let fits = sections.get(index).is_some_and(|section| {
            1 <= section.last && section.last <= section.longest && section.longest <= task.wcet
        });
        if let Err(why) = legal(task) {
            illegal.get_or_insert(why);
        } else if !fits {
            illegal.get_or_insert(Undecided::NotCovered(format!(
                "the section of task {index} is missing or not within 1 ns <= last <= longest <= wcet"
            )));
        }
    }
    tasks
        .iter()
        .enumerate()
        .map(|(index, task)| {
            if let Some(why) = &illegal {
                return Response::Undecided(why.clone());
            }
            // Cannot overflow: both are at most MAX_NS.
            let blocking = below[index] + task.blocking;
            let tail = sections[index].last - 1;
            let level = Level {
                task,
                higher: &tasks[..index],
                blocking,
                tail,
            };
            let start = once(blocking, level.higher, task.wcet - tail);
            level
                .analyse(level.load(), start, false, &mut budget)
                .response
        })
        .collect()
}
