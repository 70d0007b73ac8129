//! The reservations of Abeni, "Real-time workloads in containers and virtual machines" (2024), section 4.3: the task
//! set of its table 4, partitioned as there on two and on four virtual cpus, gives all six (Q, P), to the digit.
//!
//! The paper does not say how it searched. Its figures are the least bandwidths over periods from 10 ms in steps of
//! 1 ms, with budgets in steps of 0.5 ms, rate-monotonic priorities, and ties given to the longer period.

use timecell_analysis::Task;
use timecell_analysis::design::{Cell, Options, Placement, design};
use timecell_analysis::inside::Policy;

/// Table 4: C and T in us, by rising period.
const TABLE_4: [(u64, u64); 10] = [
    (10_321, 34_000),
    (1_570, 40_000),
    (6_300, 65_000),
    (1_720, 90_000),
    (14_712, 98_000),
    (19_691, 123_000),
    (3_440, 128_000),
    (23_266, 164_000),
    (89_843, 236_000),
    (20_937, 257_000),
];

/// Section 4.3: which tasks share a virtual cpu, and its budget and period in us.
const TWO: [(&[usize], u64, u64); 2] = [
    (&[0, 3, 4, 7], 7_500, 11_000),
    (&[1, 2, 5, 6, 8, 9], 27_500, 33_000),
];
const FOUR: [(&[usize], u64, u64); 4] = [
    (&[0, 8], 8_500, 12_000),
    (&[1, 4], 2_500, 11_000),
    (&[2, 5, 6, 9], 5_500, 14_000),
    (&[3, 7], 2_000, 11_000),
];

fn cell(tasks: &[usize]) -> Cell {
    Cell {
        tasks: tasks
            .iter()
            .map(|&task| Task::new(TABLE_4[task].0 * 1_000, TABLE_4[task].1 * 1_000))
            .collect(),
        policy: Policy::FixedPriority,
        periods: None,
    }
}

fn reservations(vcpus: &[(&[usize], u64, u64)], cpus: usize) -> (Vec<(u64, u64)>, Vec<u64>) {
    let cells: Vec<Cell> = vcpus.iter().map(|(tasks, ..)| cell(tasks)).collect();
    let options = Options {
        grid: 500_000,
        ..Options::default()
    };
    assert_eq!(options.shortest_period, 10_000_000);
    let plan = design(&cells, cpus, &options);
    let found = plan
        .cells
        .iter()
        .map(|placement| match placement {
            Placement::Placed { reservation, .. } => {
                (reservation.budget() / 1_000, reservation.period() / 1_000)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    (found, plan.cpus.iter().map(|cpu| cpu.used_ppb).collect())
}

#[test]
fn two_virtual_cpus() {
    let (found, used) = reservations(&TWO, 2);
    assert_eq!(found, TWO.map(|(_, budget, period)| (budget, period)));
    // 83.33% and 68.18%, about 151% together.
    assert_eq!(used, [833_333_334, 681_818_182]);
}

#[test]
fn four_virtual_cpus() {
    let (found, used) = reservations(&FOUR, 2);
    assert_eq!(found, FOUR.map(|(_, budget, period)| (budget, period)));
    // 70.83% and 22.73% share the first cpu; 39.29% and 18.18% go to the second.
    assert_eq!(used, [935_606_061, 574_675_325]);
}
