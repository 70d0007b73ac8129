//! The design of a machine: cells onto cpus, each with the least reservation that its deadlines need. First-fit
//! decreasing, unless asked otherwise; the heuristics live in [`multi`].

use crate::inside::{Policy, test};
use crate::least_budget::{DEFAULT_GRID, Periods, Search, least_bandwidth};
use crate::multi::{self, Order, Ovh, partition, partition_ovh};
use crate::reservation::{Dedicated, Periodic};
use crate::utilization::compare_fractions_with_one;
use crate::{Ns, Task, Undecided, Verdict};

/// A cell to be placed: its tasks, how they are scheduled inside, and, if they are not free, the periods its
/// reservation may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The tasks; with [`Policy::FixedPriority`] in order of priority, highest first.
    pub tasks: Vec<Task>,
    /// Scheduling inside the cell.
    pub policy: Policy,
    /// Periods to choose from; `None` for those of [`Options`].
    pub periods: Option<Periods>,
}

/// The options of all cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The shortest period of cells that have no periods of their own, ns; the longest is twice that of their slowest
    /// task.
    pub shortest_period: Ns,
    /// The step of their periods, ns.
    pub period_step: Ns,
    /// Budgets are multiples of this, ns.
    pub grid: Ns,
    /// Cpu time that each period of a reservation costs besides its budget, ns.
    pub overhead: Ns,
    /// The share of each cpu that reservations may take together, as a fraction: (95, 100) is Linux's limit.
    pub share: (Ns, Ns),
    /// How a cpu is chosen.
    pub fit: Fit,
}

/// Which of the cpus with room for a cell gets it; ties go to the lowest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// The first; cells by falling bandwidth.
    #[default]
    First,
    /// The fullest; cells by falling bandwidth.
    Best,
    /// The emptiest; cells by falling bandwidth.
    Worst,
    /// The one that got the last cell, or the next one after it; cells by falling bandwidth.
    Next,
    /// The one that wastes least by the reconstructed heuristic "Ovh" ([`partition_ovh`], made for tasks on vCPUs, here
    /// with each reservation as a task); cells by growing period.
    Ovh,
}

impl Default for Options {
    /// Periods from 10 ms in steps of 1 ms, budgets in steps of 1 us, no overhead, the whole of each cpu.
    fn default() -> Options {
        Options {
            shortest_period: 10_000_000,
            period_step: 1_000_000,
            grid: DEFAULT_GRID,
            overhead: 0,
            share: (1, 1),
            fit: Fit::First,
        }
    }
}

/// Where the cells go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// The placement of each cell, in the order given.
    pub cells: Vec<Placement>,
    /// The load of each cpu.
    pub cpus: Vec<Load>,
}

impl Design {
    /// Whether every cell has its reservation.
    ///
    /// ```
    /// use timecell_analysis::design::{Options, design};
    ///
    /// assert!(design(&[], 2, &Options::default()).is_complete());
    /// ```
    pub fn is_complete(&self) -> bool {
        self.cells
            .iter()
            .all(|cell| matches!(cell, Placement::Placed { .. }))
    }
}

/// The placement of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// It has a reservation on a cpu; all its deadlines hold there.
    Placed {
        /// The cpu, from 0.
        cpu: usize,
        /// Its reservation.
        reservation: Periodic,
    },
    /// Its least reservation fits on no cpu besides the cells placed before.
    NoRoom {
        /// The reservation it would need.
        reservation: Periodic,
    },
    /// No reservation of the periods and budgets allowed suffices.
    NoReservation {
        /// The verdict on a whole cpu: if even that is refused, with the witness.
        on_whole_cpu: Verdict,
    },
    /// The search gave up.
    Undecided(Undecided),
}

/// The load of a cpu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Its cells, as indices, ascending.
    pub cells: Vec<usize>,
    /// The sum of (Q + overhead)/P of its cells, in 10^-9 of a cpu, rounded up.
    pub used_ppb: u64,
    /// The rest of the share that reservations may take, in 10^-9 of a cpu, rounded down.
    pub left_ppb: u64,
}

/// Places cells on `cpus` whole cpus, each with the reservation of least bandwidth.
///
/// Reservations are independent of the placement ([`least_bandwidth`]). They are placed in the order of falling
/// bandwidth, ties in the order given, each on the first cpu, or the one that [`Fit`] says, where the sum of (Q +
/// overhead)/P stays within the share, compared exactly (Johnson et al., "Worst-case performance bounds for simple one-dimensional packing algorithms",
/// 1974). With a share of 1 that sum is the exact test for reservations that are scheduled by EDF with deadlines at
/// their periods (Liu and Layland, JACM 1973), as Linux's SCHED_DEADLINE does. The placement itself is a heuristic:
/// [`Placement::NoRoom`] does not prove that no placement exists.
///
/// ```
/// use timecell_analysis::{Task, design::{Cell, Options, Placement, design}, inside::Policy};
///
/// let ms = 1_000_000;
/// let cell = Cell {
///     tasks: vec![Task::new(1_720_000, 90 * ms), Task::new(23_266_000, 164 * ms)],
///     policy: Policy::FixedPriority,
///     periods: None,
/// };
/// let options = Options { grid: ms / 2, ..Options::default() };
/// let plan = design(&[cell.clone(), cell], 1, &options);
/// let Placement::Placed { cpu: 0, reservation } = &plan.cells[1] else { panic!() };
/// assert_eq!((reservation.budget(), reservation.period()), (2 * ms, 11 * ms));
/// assert_eq!((plan.cpus[0].used_ppb, plan.cpus[0].left_ppb), (363_636_364, 636_363_636));
/// ```
pub fn design(cells: &[Cell], cpus: usize, options: &Options) -> Design {
    let mut placements: Vec<Placement> = cells.iter().map(|cell| reserve(cell, options)).collect();
    let cost = |reservation: &Periodic| {
        let used = reservation.budget().saturating_add(options.overhead);
        (used, reservation.period())
    };
    let (found, reservations): (Vec<usize>, Vec<Periodic>) = placements
        .iter()
        .enumerate()
        .filter_map(|(index, placement)| match placement {
            Placement::NoRoom { reservation } => Some((index, *reservation)),
            _ => None,
        })
        .unzip();
    let costs: Vec<Task> = reservations
        .iter()
        .map(cost)
        .map(|(used, period)| Task::new(used, period))
        .collect();
    let mut bins: Vec<Vec<(usize, Periodic)>> = Vec::new();
    for (cpu, bin) in placed(&costs, cpus, options).into_iter().enumerate() {
        let members = bin
            .into_iter()
            .map(|place| (found[place], reservations[place]));
        let members: Vec<(usize, Periodic)> = members.collect();
        for &(index, reservation) in &members {
            placements[index] = Placement::Placed { cpu, reservation };
        }
        bins.push(members);
    }
    let cpus = bins
        .into_iter()
        .map(|bin| load(&bin, cost, options.share))
        .collect();
    Design {
        cells: placements,
        cpus,
    }
}

/// The reservations, as tasks, that each cpu gets.
fn placed(costs: &[Task], cpus: usize, options: &Options) -> Vec<Vec<usize>> {
    let (part, whole) = options.share;
    let kept = (whole.saturating_sub(part), whole);
    let fits = |bin: &[Task]| {
        let costs = bin.iter().map(|task| (task.wcet, task.period));
        compare_fractions_with_one(costs.chain([kept])).is_le()
    };
    let by = |fit| partition(costs, cpus, fit, Order::Decreasing, &fits);
    let found = match options.fit {
        Fit::First => by(multi::Fit::First),
        Fit::Best => by(multi::Fit::Best),
        Fit::Worst => by(multi::Fit::Worst),
        Fit::Next => by(multi::Fit::Next),
        Fit::Ovh => partition_ovh(costs, cpus, Ovh::default(), &fits),
    };
    found.bins
}

/// The least reservation of a cell, not placed yet, or why there is none.
fn reserve(cell: &Cell, options: &Options) -> Placement {
    let periods = cell.periods.unwrap_or_else(|| {
        Periods::for_tasks(&cell.tasks, options.shortest_period, options.period_step)
    });
    let search = Search {
        periods,
        grid: options.grid,
        overhead: options.overhead,
    };
    match least_bandwidth(&cell.tasks, cell.policy, &search) {
        Ok(Some(reservation)) => Placement::NoRoom { reservation },
        Ok(None) => Placement::NoReservation {
            on_whole_cpu: test(&cell.tasks, cell.policy, &Dedicated).verdict,
        },
        Err(reason) => Placement::Undecided(reason),
    }
}

const PPB: u128 = 1_000_000_000;

/// Sums of fractions have no common denominator of use; each is rounded to the safe side by less than 10^-18.
fn load(
    bin: &[(usize, Periodic)],
    cost: impl Fn(&Periodic) -> (Ns, Ns),
    (part, whole): (Ns, Ns),
) -> Load {
    let used: u128 = bin
        .iter()
        .map(|(_, reservation)| {
            let (used, period) = cost(reservation);
            (u128::from(used) * PPB * PPB).div_ceil(u128::from(period))
        })
        .sum();
    let allowed = (u128::from(part.min(whole)) * PPB * PPB)
        .checked_div(u128::from(whole))
        .unwrap_or(0);
    // Both are at most a little more than one cpu.
    Load {
        cells: bin.iter().map(|(index, _)| *index).collect(),
        used_ppb: used.div_ceil(PPB) as u64,
        left_ppb: (allowed.saturating_sub(used) / PPB) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    /// A cell that needs `percent` of a cpu: one task, reserved at its own period so that nothing is left over.
    fn cell(percent: Ns) -> Cell {
        Cell {
            tasks: vec![Task::new(percent * MS, 100 * MS).due(100 * MS)],
            policy: Policy::Edf,
            periods: Some(Periods {
                from: 1_000,
                to: 1_000,
                step: 1,
            }),
        }
    }

    fn placed(plan: &Design) -> Vec<Option<usize>> {
        plan.cells
            .iter()
            .map(|cell| match cell {
                Placement::Placed { cpu, .. } => Some(*cpu),
                _ => None,
            })
            .collect()
    }

    /// A period of 1 us with budgets of 1 ns: the wait costs each cell 1 per mille.
    fn fine() -> Options {
        Options {
            grid: 1,
            ..Options::default()
        }
    }

    #[test]
    fn first_fit_in_falling_order() {
        let cells = [20, 50, 60, 30].map(cell);
        let plan = design(&cells, 2, &fine());
        // 60 on 0, 50 on 1, 30 on 0, 20 on 1.
        assert_eq!(placed(&plan), [Some(1), Some(1), Some(0), Some(0)]);
        assert_eq!(plan.cpus[0].cells, [2, 3]);
        assert!(plan.is_complete());
        for cpu in &plan.cpus {
            assert!((999_999_999..=1_000_000_000).contains(&(cpu.used_ppb + cpu.left_ppb)));
        }
        let one = design(&cells, 1, &fine());
        assert!(!one.is_complete());
        assert!(matches!(one.cells[1], Placement::NoRoom { .. }));
        assert_eq!(design(&cells, 0, &fine()).cpus, []);
    }

    #[test]
    fn each_heuristic_chooses_its_cpu() {
        // By falling bandwidth 50, 40, 30, 20 on three cpus.
        let cells = [20, 50, 40, 30].map(cell);
        let by = |fit| placed(&design(&cells, 3, &Options { fit, ..fine() }));
        assert_eq!(by(Fit::First), [Some(1), Some(0), Some(0), Some(1)]);
        assert_eq!(by(Fit::Best), [Some(1), Some(0), Some(0), Some(1)]);
        assert_eq!(by(Fit::Worst), [Some(2), Some(0), Some(1), Some(2)]);
        assert_eq!(by(Fit::Next), [Some(1), Some(0), Some(0), Some(1)]);
        assert!(by(Fit::Ovh).iter().all(Option::is_some));
        // 60 and 45 are on cpus of their own, and 10 has room beside either.
        let cells = [60, 45, 10].map(cell);
        let by = |fit| placed(&design(&cells, 2, &Options { fit, ..fine() }));
        assert_eq!(by(Fit::Best)[2], Some(0));
        assert_eq!(by(Fit::Worst)[2], Some(1));
        assert_eq!(by(Fit::Next)[2], Some(1));
    }

    #[test]
    fn the_share_is_kept_exactly() {
        let half = Cell {
            tasks: vec![Task::new(MS, 10 * MS)],
            policy: Policy::FixedPriority,
            periods: Some(Periods::only(10 * MS)),
        };
        // Q = 5.5 ms: the wait of 2(P - Q) and the work take the 10 ms.
        let two = [half.clone(), half];
        let exactly = Options {
            share: (11, 10),
            ..Options::default()
        };
        assert!(
            !design(&two, 1, &exactly).is_complete(),
            "more than a cpu there is not"
        );
        let quarter = Cell {
            tasks: vec![Task::new(MS, 40 * MS)],
            policy: Policy::FixedPriority,
            periods: Some(Periods {
                from: 4 * MS,
                to: 4 * MS,
                step: 1,
            }),
        };
        let options = Options {
            grid: MS,
            share: (1, 2),
            ..Options::default()
        };
        // 1 ms every 4 ms: two fill a share of a half exactly.
        let plan = design(&[quarter.clone(), quarter.clone()], 1, &options);
        assert!(plan.is_complete());
        assert_eq!(
            (plan.cpus[0].used_ppb, plan.cpus[0].left_ppb),
            (500_000_000, 0)
        );
        let less = Options {
            share: (499_999_999, 1_000_000_000),
            ..options
        };
        assert_eq!(
            placed(&design(&[quarter.clone(), quarter], 1, &less)),
            [Some(0), None]
        );
    }

    #[test]
    fn what_cannot_be_is_explained() {
        let late = Cell {
            tasks: vec![
                Task::new(6 * MS, 10 * MS).due(7 * MS),
                Task::new(6 * MS, 10 * MS),
            ],
            policy: Policy::FixedPriority,
            periods: None,
        };
        let broken = Cell {
            tasks: vec![Task::new(0, 10)],
            ..late.clone()
        };
        let plan = design(&[late, broken], 1, &Options::default());
        let Placement::NoReservation {
            on_whole_cpu: Verdict::Unschedulable(witness),
        } = &plan.cells[0]
        else {
            panic!("{:?}", plan.cells[0]);
        };
        assert_eq!(
            (witness.task, witness.demand, witness.supply),
            (1, 12 * MS, 10 * MS)
        );
        assert!(matches!(plan.cells[1], Placement::Undecided(_)));
        let unusable = Options {
            share: (0, 0),
            ..Options::default()
        };
        assert_eq!(placed(&design(&[cell(10)], 1, &unusable)), [None]);
    }
}
