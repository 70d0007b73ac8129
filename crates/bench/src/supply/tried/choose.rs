//! Which sets are tried: for a budget the most urgent pair of tasks that the textbook's supply accepts and the measured one
//! refuses, and the most urgent that the measured one accepts. Pure.

use analysis::empirical::Envelope;
use analysis::inside::{Policy, holds, test};
use analysis::reservation::Periodic;
use analysis::{Ns, Supply, Task, Verdict};
use record::NotMeasured;
use record::supply::{ChosenBy, Foretold, MeasuredSupply, TriedSet, TriedTask, TriedWitness};

use crate::supply::subject::name_of;

/// Period of the background task, ns: about a second, and a prime number of milliseconds, so that its jobs begin at every
/// phase of the budget's period.
pub(super) const BACKGROUND_NS: Ns = 997_000_000;
/// The work of a background task's job, in hundredths of the grant in its period; the first with which there are sets.
/// Longer than a budget by far: it overdraws the budget until the tick before an urgent job comes.
const BACKGROUND_SHARES: [Ns; 4] = [40, 35, 30, 20];
/// An urgent job's work, in hundredths of the budget.
const URGENT_SHARE: Ns = 90;
/// Coarsest grid of the urgent task's period, ns; a tenth of the budget's period where that is shorter.
const GRID_NS: Ns = 1_000_000;
/// Longest period of the urgent task, in periods of the budget, and never above half of the background's.
const LONGEST: Ns = 200;
/// Execution times are in whole microseconds.
const MICROSECOND: Ns = 1_000;

/// Names of the two tasks, the most urgent first.
const NAMES: [&str; 2] = ["urgent", "background"];

/// The sets for a budget, numbered from `first` on: the textbook's and the measured supply's. The urgent task has this
/// priority, 2 at least, the other one less.
///
/// # Errors
/// Why there are none to try.
pub(super) fn choose(
    supply: &MeasuredSupply,
    priority: u8,
    first: u32,
) -> Result<Vec<TriedSet>, NotMeasured> {
    let none = |reason: String, fix: &str| NotMeasured {
        trial: name_of(&supply.held),
        reason,
        fix: fix.to_owned(),
    };
    let (held, priority) = (supply.held, priority.max(2));
    if supply.measured_to_ns < BACKGROUND_NS {
        return Err(none(
            format!(
                "windows were measured only up to {} ms, the background task needs {} ms",
                supply.measured_to_ns / 1_000_000,
                BACKGROUND_NS / 1_000_000
            ),
            "request stretches of 1s or more with --duration",
        ));
    }
    let textbook = Periodic::new(held.budget_ns, held.period_ns)
        .map_err(|error| none(error.to_string(), ""))?;
    let Some(measured) = Envelope::of(&supply.counted_on()) else {
        return Err(none(
            "its measurement has no usable line".to_owned(),
            "measure again",
        ));
    };
    let chosen = BACKGROUND_SHARES.iter().find_map(|&share| {
        let pair = |period| tasks(&supply.held, share, period);
        let shortest = |supply: &dyn Fn(&[Task]) -> bool| {
            periods(held.budget_ns, held.period_ns).find(|&period| supply(&pair(period)))
        };
        let by_textbook = shortest(&|tasks| accepts(tasks, &textbook))?;
        let by_measured = shortest(&|tasks| accepts(tasks, &measured))?;
        Some((pair(by_textbook), pair(by_measured)))
    });
    let Some((by_textbook, by_measured)) = chosen else {
        return Err(none(
            "no urgent task with a period below half of the background task's is accepted"
                .to_owned(),
            "",
        ));
    };
    if accepts(&by_textbook, &measured) {
        return Err(none(
            "the measured supply accepts the most urgent set that the textbook accepts: nothing distinguishes the two"
                .to_owned(),
            "",
        ));
    }
    let set = |number, chosen_by, tasks: &[Task; 2]| TriedSet {
        number,
        held,
        chosen_by,
        tasks: (NAMES.iter().zip(tasks).zip([priority, priority - 1]))
            .map(|((name, task), priority)| TriedTask {
                name: (*name).to_owned(),
                wcet_ns: task.wcet,
                period_ns: task.period,
                priority,
            })
            .collect(),
        textbook: foretold(tasks, &textbook),
        measured: foretold(tasks, &measured),
    };
    Ok(vec![
        set(first, ChosenBy::Textbook, &by_textbook),
        set(first + 1, ChosenBy::Measured, &by_measured),
    ])
}

/// The urgent task of this period and the background task with this share of its grant.
fn tasks(held: &record::Budget, share: Ns, period: Ns) -> [Task; 2] {
    let urgent = held.budget_ns * URGENT_SHARE / 100;
    let granted =
        u128::from(BACKGROUND_NS) * u128::from(held.budget_ns) / u128::from(held.period_ns.max(1));
    let background = Ns::try_from(granted * u128::from(share) / 100).unwrap_or(BACKGROUND_NS);
    let whole = |ns: Ns| (ns / MICROSECOND * MICROSECOND).max(MICROSECOND);
    [
        Task::new(whole(urgent), period),
        Task::new(whole(background), BACKGROUND_NS),
    ]
}

/// Periods of the urgent task from the shortest up: on a grid, and without a common factor with the budget's period, as jobs
/// that always begin at the same few phases of it may never meet the worst.
fn periods(budget: Ns, period: Ns) -> impl Iterator<Item = Ns> {
    let grid = (period / 10).clamp(1, GRID_NS);
    let whole = period / grid;
    let longest = (BACKGROUND_NS / 2).min(period.saturating_mul(LONGEST));
    (budget / grid + 1..=longest / grid)
        .filter(move |steps| gcd(*steps, whole) == 1)
        .map(move |steps| steps * grid)
}

fn gcd(a: Ns, b: Ns) -> Ns {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn accepts(tasks: &[Task], supply: &impl Supply) -> bool {
    holds(tasks, Policy::FixedPriority, supply) == Ok(true)
}

fn foretold(tasks: &[Task], supply: &impl Supply) -> Foretold {
    let inside = test(tasks, Policy::FixedPriority, supply);
    Foretold {
        accepted: inside.verdict.is_schedulable(),
        responses_ns: inside.responses,
        witness: match inside.verdict {
            Verdict::Unschedulable(witness) => Some(TriedWitness {
                task: NAMES
                    .get(witness.task)
                    .map_or_else(String::new, |name| (*name).to_owned()),
                instant_ns: witness.instant,
                demand_ns: witness.demand,
                supply_ns: witness.supply,
            }),
            Verdict::Schedulable | Verdict::Undecided(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::linux::TickSupply;
    use model::Enforcer;
    use proptest::prelude::*;
    use record::supply::{Between, Kept, Promise, SupplyPoint};
    use record::{Budget, Machine, Share};

    const MS: Ns = 1_000_000;

    fn supply(budget_ns: Ns, period_ns: Ns, lines: &[(Ns, Ns, Ns)]) -> MeasuredSupply {
        let share = Share {
            cpu_ns: budget_ns,
            of_ns: period_ns,
        };
        let one = Between::of(vec![1]).unwrap();
        MeasuredSupply {
            held: Budget {
                enforcer: Enforcer::RtCgroup,
                budget_ns,
                period_ns,
            },
            machine: Machine {
                cpu_model: None,
                cpus: 1,
                virtual_machine: None,
                kernel_release: None,
                kernel_version: None,
                tick_hz: Some(250),
                deadline_by_timer: None,
            },
            rounds: 1,
            starts: 1,
            points: (lines.iter())
                .map(|&(supplied, per, delay_ns)| SupplyPoint {
                    supplied,
                    per,
                    delay_ns,
                })
                .collect(),
            measured_to_ns: 5_000 * MS,
            delay_ns: one,
            longest_gap_ns: one,
            billed: Some(share),
            received: share,
            periods: None,
            textbook: Promise {
                supplied: budget_ns,
                per: period_ns,
                delay_ns: 2 * (period_ns - budget_ns),
                kept: Kept::Held,
            },
            by_tick: None,
            by_reaction: None,
            reaction: None,
            cautious: None,
            least: Vec::new(),
        }
    }

    fn analysed(set: &TriedSet) -> Vec<Task> {
        let task = |task: &TriedTask| Task::new(task.wcet_ns, task.period_ns);
        set.tasks.iter().map(task).collect()
    }

    #[test]
    fn the_urgent_period_is_the_shortest_and_shares_no_factor_with_the_budgets() {
        let measured = supply(3 * MS, 10 * MS, &[(295, 1_000, 33 * MS)]);
        let sets = choose(&measured, 80, 5).unwrap();
        let [textbook, lines] = sets.as_slice() else {
            panic!("{sets:?}");
        };
        assert_eq!((textbook.number, lines.number), (5, 6));
        // 14 ms of gaps and 2.7 of work: 17 is the first period from there on, and prime to 10.
        assert_eq!(textbook.tasks[0].period_ns, 17 * MS);
        assert_eq!(textbook.tasks[0].wcet_ns, 2_700_000);
        assert_eq!(textbook.tasks[1].period_ns, BACKGROUND_NS);
        assert_eq!(
            (textbook.tasks[0].priority, textbook.tasks[1].priority),
            (80, 79)
        );
        let witness = textbook.measured.witness.as_ref().unwrap();
        assert_eq!(
            (witness.task.as_str(), witness.instant_ns),
            ("urgent", 17 * MS)
        );
        assert!(witness.supply_ns < witness.demand_ns);
        assert_eq!(
            lines.tasks[0].period_ns,
            43 * MS,
            "33 ms and 2.7 at that rate"
        );
    }

    #[test]
    fn what_cannot_be_told_apart_or_was_measured_too_shortly_is_said() {
        let reason = |supply: &MeasuredSupply| choose(supply, 80, 1).unwrap_err().reason;
        // The textbook's promise, and more.
        let good = supply(3 * MS, 10 * MS, &[(3, 10, 7 * MS)]);
        assert!(
            reason(&good).contains("nothing distinguishes the two"),
            "{}",
            reason(&good)
        );
        let mut short = supply(3 * MS, 10 * MS, &[(3, 10, 20 * MS)]);
        short.measured_to_ns = 500 * MS;
        assert!(reason(&short).contains("only up to 500 ms"));
        let slow = supply(1_000 * MS, 4_000 * MS, &[(1, 4, 4_000 * MS)]);
        assert!(
            reason(&slow).contains("no urgent task"),
            "{}",
            reason(&slow)
        );
        assert!(reason(&supply(3 * MS, 10 * MS, &[])).contains("no usable line"));
        assert_eq!(
            choose(&good, 80, 1).unwrap_err().trial,
            "rt-cgroup 3ms/10ms"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// For any tick and budget.
        #[test]
        fn one_set_is_accepted_by_the_textbook_alone_and_one_by_what_was_measured(
            budget in 1u64..40, more in 1u64..60, tick in 1u64..11,
        ) {
            let (budget, period) = (budget * MS, (budget + more) * MS);
            let line = TickSupply::rt_cgroup(budget, period, tick * MS).unwrap().cautious;
            let (supplied, per) = line.rate();
            let delay = line.delay().unwrap();
            let measured = supply(budget, period, &[(supplied, per, delay)]);
            let textbook = Periodic::new(budget, period).unwrap();
            let Ok(sets) = choose(&measured, 80, 1) else { return Ok(()) };
            let [one, two] = sets.as_slice() else { panic!("{sets:?}") };
            prop_assert_eq!((one.chosen_by, two.chosen_by), (ChosenBy::Textbook, ChosenBy::Measured));
            prop_assert!(accepts(&analysed(one), &textbook) && !accepts(&analysed(one), &line));
            prop_assert!(accepts(&analysed(two), &line));
            prop_assert_eq!([&one.textbook, &one.measured, &two.measured].map(|says| says.accepted), [true, false, true]);
            prop_assert!(one.tasks[0].period_ns < two.tasks[0].period_ns);
            for set in &sets {
                prop_assert!(set.tasks.iter().all(|task| task.wcet_ns > 0 && task.wcet_ns <= task.period_ns));
                prop_assert!(set.tasks[0].priority > set.tasks[1].priority);
            }
        }
    }
}
