//! Tasks by earliest deadline first above tasks of fixed priorities, on one cpu: threads of SCHED_DEADLINE above those of SCHED_FIFO.
//!
//! The former are tested by the processor demand, as if the others were not there. Of the latter, each is delayed by all of the former,
//! in any order among themselves. How much they take of a window that begins when none of them is ready: a sporadic task at most
//! its wcet for each period begun, which is a bound that can be reached. A thread of SCHED_DEADLINE that sleeps may get its runtime anew
//! before its period is over (the kernel's wake-up rule), so that it may take once more its runtime. A deadline that holds with that holds; one that
//! fails without it fails; between the two nothing is said.

use analysis::inside::{self, Inside, fixed_priority, verdict_within};
use analysis::reservation::Dedicated;
use analysis::{MAX_NS, Ns, Task, Undecided, Verdict};
use model::taskset::TaskCell;

use super::judge::renumbered;
use super::study::urgent_first;

/// How many of the tasks, the most urgent first, have no priority.
fn without_priority(cell: &TaskCell) -> usize {
    let none = |task: &&model::taskset::CellTask| task.priority.is_none();
    cell.tasks.iter().filter(none).count()
}

/// All tasks as fixed priorities see them: those above have no deadlines of their own here, and each may run `early` ns before its release.
fn below(tasks: &[Task], above: usize, early: impl Fn(&Task) -> Ns) -> Vec<Task> {
    let as_above = |task: &Task| {
        let late = task.period.saturating_mul(1_000).min(MAX_NS);
        let jitter = task.jitter.saturating_add(early(task));
        Task::new(task.wcet, task.period).due(late).jittered(jitter)
    };
    (tasks[..above].iter().map(as_above))
        .chain(tasks[above..].iter().copied())
        .collect()
}

/// The answer on a cell, tasks numbered as in the file.
pub(super) fn judge(cell: &TaskCell) -> Inside {
    let order = cell.by_urgency();
    let tasks = urgent_first(cell);
    let above = without_priority(cell);
    let mut found = inside::test(&tasks[..above], inside::Policy::Edf, &Dedicated);
    if above < tasks.len() {
        let cautious = fixed_priority(&below(&tasks, above, |task| task.period), &Dedicated);
        let possible = fixed_priority(&below(&tasks, above, |_| 0), &Dedicated);
        found.responses.extend(&cautious.responses[above..]);
        let late = |place: &&usize| **place >= above;
        found.missed.extend(possible.missed.iter().filter(late));
        if found.verdict == Verdict::Schedulable {
            found.verdict = match (cautious.verdict, possible.verdict) {
                (Verdict::Schedulable, _) => Verdict::Schedulable,
                (_, missed @ Verdict::Unschedulable(_)) => missed,
                (Verdict::Undecided(why), _) => Verdict::Undecided(why),
                (Verdict::Unschedulable(_), _) => Verdict::Undecided(Undecided::NotCovered(
                    "its deadlines hold unless a task without a priority, whose thread sleeps, gets its runtime twice in a period"
                        .to_owned(),
                )),
            };
        }
    }
    let mut responses = vec![None; tasks.len()];
    for (&place, bound) in order.iter().zip(&found.responses) {
        responses[place] = *bound;
    }
    let verdict = match found.verdict {
        Verdict::Unschedulable(witness) => Verdict::Unschedulable(renumbered(witness, &order)),
        other => other,
    };
    Inside {
        verdict,
        responses,
        missed: found.missed.iter().map(|&place| order[place]).collect(),
    }
}

/// Whether everything holds with these times of the tasks, the most urgent first.
pub(super) fn verdict(cell: &TaskCell, tasks: &[Task], steps: u64) -> Verdict {
    let above = without_priority(cell);
    let first = verdict_within(&tasks[..above], inside::Policy::Edf, &Dedicated, steps);
    match first {
        Verdict::Schedulable if above < tasks.len() => {
            let all = below(tasks, above, |task| task.period);
            verdict_within(&all, inside::Policy::FixedPriority, &Dedicated, steps)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, study};
    use super::*;
    use model::taskset::TaskSet;

    fn cell(tasks: &[(&str, &str, Option<i64>)]) -> TaskSet {
        let mut text = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf-over-fp\"\n".to_owned();
        for (at, (wcet, period, priority)) in tasks.iter().enumerate() {
            text += &format!(
                "[[cell.task]]\nname = \"t{at}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n"
            );
            if let Some(priority) = priority {
                text += &format!("priority = {priority}\n");
            }
        }
        let set = TaskSet::parse("x", &text).expect("a task set");
        assert_eq!(TaskSet::parse("x", &set.to_toml()), Ok(set.clone()));
        set
    }

    #[test]
    fn what_is_below_gets_what_is_left() {
        let of = |dl: &str| {
            let set = cell(&[("3ms", "20ms", Some(20)), (dl, "10ms", None)]);
            let study = study(&set, true);
            let responses: Vec<Option<Ns>> = study.cells[0]
                .tasks
                .iter()
                .map(|task| task.response_ns)
                .collect();
            (study.outcome(), responses, study)
        };
        const MS: Ns = 1_000_000;
        // Twice 4 ms and once more before 3 ms.
        let (outcome, responses, found) = of("4ms");
        assert_eq!((outcome, &responses[0]), (Outcome::Holds, &Some(15 * MS)));
        assert_eq!(responses[1], Some(4 * MS));
        let room = found.cells[0].room.as_ref().unwrap();
        assert!((1_000..1_600).contains(&room.per_mille), "{room:?}");
        // 105 % of the cpu.
        let (outcome, _, found) = of("9ms");
        assert_eq!(outcome, Outcome::Fails);
        let outcomes: Vec<Outcome> = found.cells[0]
            .tasks
            .iter()
            .map(|task| task.outcome)
            .collect();
        assert_eq!(outcomes, [Outcome::Fails, Outcome::Holds]);
        assert!(!found.cells[0].fixes.is_empty());
        // Twice 7 ms leave 3 ms within 20; three times do not.
        assert_eq!(of("7ms").0, Outcome::Undecided);
    }

    #[test]
    fn those_above_meet_their_deadlines_by_themselves() {
        let two = [
            ("5ms", "10ms", None),
            ("7ms", "15ms", None),
            ("1us", "1s", Some(1)),
        ];
        let found = study(&cell(&two), false);
        let outcomes: Vec<Outcome> = found.cells[0]
            .tasks
            .iter()
            .map(|task| task.outcome)
            .collect();
        assert_eq!(outcomes, [Outcome::Holds; 3], "{found:?}");
        let three = [
            ("5ms", "10ms", None),
            ("8ms", "15ms", None),
            ("1us", "1s", Some(1)),
        ];
        assert_eq!(study(&cell(&three), false).outcome(), Outcome::Fails);
    }
}
