//! Fixes against the whole test: each is the least of its kind.

use super::super::judge::judge;
use super::super::sample::{small_cell, us};
use super::*;
use analysis::Verdict;
use model::taskset::{CellTask, Reservation, TaskSet};
use proptest::prelude::*;

/// The whole test, which the search for fixes does not use.
fn holds(cell: &TaskCell) -> Option<bool> {
    match judge(cell)?.verdict {
        Verdict::Schedulable => Some(true),
        Verdict::Unschedulable(_) => Some(false),
        Verdict::Undecided(_) => None,
    }
}

fn cell(text: &str) -> TaskCell {
    let set = TaskSet::parse("x", text).expect("a task set");
    set.cells.into_iter().next().expect("one cell")
}

#[test]
fn each_fix_is_the_least_of_its_kind() {
    let cell = cell(
        "schema = 1\n[[cell]]\nname = \"c\"\nreservation = { budget = \"2ms\", period = \"10ms\" }\n\
         [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
         [[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"24ms\"\n",
    );
    assert_eq!(holds(&cell), Some(false));
    let found = fixes(&cell, 1, &[0, 1]);
    let kinds: Vec<Change> = found.iter().map(|fix| fix.change).collect();
    for kind in [
        Change::Budget,
        Change::ReservationPeriod,
        Change::Deadline,
        Change::Wcet,
        Change::Move,
    ] {
        assert!(kinds.contains(&kind), "{kind:?} is not in {kinds:?}");
    }
    for fix in found.iter().filter(|fix| fix.change != Change::Move) {
        assert_eq!(holds(&fix.applied(&cell)), Some(true), "{fix:?}");
        let step = if fix.to_ns > fix.from_ns {
            GRID_NS
        } else {
            -GRID_NS
        };
        let less = Fix {
            to_ns: fix.to_ns - step,
            ..fix.clone()
        };
        assert_eq!(
            holds(&less.applied(&cell)),
            Some(false),
            "{less:?} would do"
        );
    }
}

#[test]
fn a_cell_beyond_help_has_no_fix_of_its_reservation() {
    let cell = cell(
        "schema = 1\n[[cell]]\nname = \"c\"\n\
         [[cell.task]]\nname = \"a\"\nwcet = \"9ms\"\nperiod = \"10ms\"\n\
         [[cell.task]]\nname = \"b\"\nwcet = \"9ms\"\nperiod = \"10ms\"\n",
    );
    let found = fixes(&cell, 1, &[0, 1]);
    assert!(
        found
            .iter()
            .all(|m| matches!(m.change, Change::Wcet | Change::Move)),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|m| m.change == Change::Wcet && m.to_ns == 1_000_000)
    );
}

/// The cell with the change of a fix made by another amount of steps.
fn changed(fix: &Fix, cell: &TaskCell, steps: i64) -> TaskCell {
    let sign = (fix.to_ns - fix.from_ns).signum();
    Fix {
        to_ns: fix.from_ns + sign * steps * GRID_NS,
        ..fix.clone()
    }
    .applied(cell)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Under every policy, dedicated and reserved: the printed change fixes, and nothing less on the grid does.
    #[test]
    fn fixes_fix_and_nothing_less_does(cell in small_cell()) {
        let late = judge(&cell).map(|judged| judged.verdict);
        if let Some(Verdict::Unschedulable(witness)) = late {
            let parts: Vec<usize> = witness.parts.iter().map(|part| part.task).collect();
            for fix in fixes(&cell, witness.task, &parts) {
                prop_assert_eq!(holds(&fix.applied(&cell)), Some(true), "{:?} of {:?}", fix, cell);
                let steps = (fix.to_ns - fix.from_ns).abs() / GRID_NS;
                for fewer in 1..steps {
                    let less = holds(&changed(&fix, &cell, fewer));
                    prop_assert_ne!(less, Some(true), "{} steps of {:?} do for {:?}", fewer, fix, cell);
                }
            }
        }
    }

    /// Times as they are in practice, EDF: the reservation so near the load that the horizon is long.
    #[test]
    fn fixes_of_edf_near_the_rate(
        raw in prop::collection::vec((100i64..3_000, 5_000i64..100_000, 60i64..=100), 2..8),
        period in 1_000i64..20_000, below in 0i64..20, reserved in any::<bool>(),
    ) {
        let tasks: Vec<CellTask> = raw
            .iter()
            .enumerate()
            .map(|(place, &(wcet, period, due))| CellTask {
                deadline: us((period * due / 100).max(wcet)),
                ..CellTask::new(format!("t{place}"), us(wcet), us(period))
            })
            .collect();
        let load: i64 = raw.iter().map(|&(wcet, every, _)| (wcet * period).div_euclid(every) + 1).sum();
        let budget = us((load - below).clamp(1, period));
        let reservation = Reservation { budget, period: us(period), deadline: us(period) };
        let cell = TaskCell {
            policy: Policy::Edf,
            reservation: reserved.then_some(reservation),
            server: None,
            name: "c".to_owned(),
            tasks,
        };
        let late = judge(&cell).map(|judged| judged.verdict);
        if let Some(Verdict::Unschedulable(witness)) = late {
            let parts: Vec<usize> = witness.parts.iter().map(|part| part.task).collect();
            let found = fixes(&cell, witness.task, &parts);
            // Tasks that miss on a whole cpu too may need two changes.
            let whole = TaskCell { reservation: None, ..cell.clone() };
            if cell.reservation.is_some() && super::holds(&whole, analysis::STEPS) == Some(true) {
                prop_assert!(!found.is_empty(), "{:?}", cell);
            }
            for fix in found.iter().filter(|fix| fix.change != Change::Move) {
                prop_assert_eq!(super::holds(&fix.applied(&cell), analysis::STEPS), Some(true), "{:?}", fix);
                let steps = (fix.to_ns - fix.from_ns).abs() / GRID_NS;
                if steps > 1 {
                    let less = super::holds(&changed(fix, &cell, steps - 1), analysis::STEPS);
                    prop_assert_eq!(less, Some(false), "{:?} of {:?}", fix, cell);
                }
            }
        }
    }
}
