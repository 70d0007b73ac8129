//! The recipe by which a random task set is drawn.

use super::{Random, rand_fixed_sum_within, uunifast, uunifast_discard};
use crate::{MAX_NS, Ns, Task};

/// How the utilisations of a set are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Utilizations {
    /// UUniFast; on one cpu the usual choice. See [`uunifast`].
    UUniFast,
    /// UUniFast until no task is above the cap, at most `tries` times. See [`uunifast_discard`].
    UUniFastDiscard {
        /// The most that one task may use.
        cap: f64,
        /// How often to draw.
        tries: u32,
    },
    /// RandFixedSum between bounds. See [`rand_fixed_sum_within`].
    RandFixedSum {
        /// The least that each task uses.
        low: f64,
        /// The most that each task uses.
        high: f64,
    },
}

/// How the periods of a set are drawn, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Periods {
    /// Every order of magnitude between the two is as likely (Emberson, Stafford & Davis, WATERS 2010):
    /// `T = floor(exp(r) / grid) grid` with r uniform in [ln shortest, ln (longest + grid)).
    LogUniform {
        /// The shortest period, ns.
        shortest: Ns,
        /// The longest period, ns.
        longest: Ns,
        /// Periods are multiples of this, ns.
        grid: Ns,
    },
    /// Every multiple of the grid between the two is as likely.
    Uniform {
        /// The shortest period, ns.
        shortest: Ns,
        /// The longest period, ns.
        longest: Ns,
        /// Periods are multiples of this, ns.
        grid: Ns,
    },
}

/// The kind of task sets to make.
///
/// ```
/// use timecell_analysis::generate::{Periods, Recipe, Utilizations};
///
/// let ms = 1_000_000;
/// let recipe = Recipe {
///     tasks: 10,
///     utilization: 0.8,
///     utilizations: Utilizations::UUniFast,
///     periods: Periods::LogUniform { shortest: 10 * ms, longest: 1_000 * ms, grid: ms },
///     deadlines: (1.0, 1.0),
///     seed: 1,
/// };
/// let set = recipe.set(0).unwrap();
/// assert_eq!(set.len(), 10);
/// assert_eq!(set, recipe.set(0).unwrap());
/// assert_ne!(set, recipe.set(1).unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// How many tasks, at least 1.
    pub tasks: usize,
    /// Their utilisation in all.
    pub utilization: f64,
    /// How it is divided.
    pub utilizations: Utilizations,
    /// How periods are drawn.
    pub periods: Periods,
    /// Deadlines are C + x (T - C) with x uniform between these two, both in 0 to 1: (1, 1) makes them implicit.
    pub deadlines: (f64, f64),
    /// The same seed gives the same sets on every machine.
    pub seed: u64,
}

/// Why a recipe makes no set.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// A set needs a task.
    #[error("a set needs at least 1 task")]
    NoTask,
    /// The utilisation cannot be divided so.
    #[error("no {tasks} utilisations within the bounds given sum to {utilization}")]
    NoUtilizations {
        /// How many.
        tasks: usize,
        /// The sum they should have.
        utilization: f64,
    },
    /// Discarding found no vector.
    #[error(
        "none of {tries} vectors was within the cap; draw more often, or use RandFixedSum, which needs one"
    )]
    Discarded {
        /// How often it was tried.
        tries: u32,
    },
    /// There is no multiple of the grid between the shortest and the longest period, or they are out of range.
    #[error("no period is a multiple of {grid} ns from {shortest} ns to {longest} ns")]
    NoPeriod {
        /// The shortest period, ns.
        shortest: Ns,
        /// The longest period, ns.
        longest: Ns,
        /// The grid, ns.
        grid: Ns,
    },
    /// The two parts of the way from C to T are none.
    #[error("deadlines need two shares from 0 to 1 of the way from C to T, the smaller first")]
    NoDeadline,
    /// A wcet would exceed its period.
    #[error("a task has a utilisation of {0}, which is more than 1; set a cap")]
    TooDense(f64),
}

impl Recipe {
    /// The set with this index, in the order drawn; every index has a random stream of its own.
    ///
    /// C is rounded down to whole ns, so that a sum of 1 stays a set that a cpu can bear, but it is at least 1 ns: a
    /// task's utilisation is met within 1 / T, and the sum within `sum 1 / T + n 2^-50`, T in ns. With periods of 1 ms
    /// and more that is n millionths at most.
    ///
    /// # Errors
    /// A recipe that no set can follow says why.
    ///
    /// ```
    /// use timecell_analysis::generate::{Periods, Recipe, Utilizations};
    ///
    /// let recipe = Recipe {
    ///     tasks: 4,
    ///     utilization: 3.2,
    ///     utilizations: Utilizations::RandFixedSum { low: 0.1, high: 1.0 },
    ///     periods: Periods::Uniform { shortest: 1_000_000, longest: 9_000_000, grid: 1_000 },
    ///     deadlines: (0.5, 1.0),
    ///     seed: 7,
    /// };
    /// for task in recipe.set(0).unwrap() {
    ///     assert!(task.check().is_ok() && task.is_constrained());
    /// }
    /// ```
    pub fn set(&self, index: u64) -> Result<Vec<Task>, GenerateError> {
        if self.tasks == 0 {
            return Err(GenerateError::NoTask);
        }
        let (nearest, farthest) = self.deadlines;
        if !(0.0 <= nearest && nearest <= farthest && farthest <= 1.0) {
            return Err(GenerateError::NoDeadline);
        }
        let grid = self.periods.check()?;
        let mut random = Random::of_set(self.seed, index);
        let utilizations = self.divide(&mut random)?;
        utilizations
            .into_iter()
            .map(|utilization| {
                // A rounding above 1 is no denser task.
                if utilization > 1.0 + 1e-9 {
                    return Err(GenerateError::TooDense(utilization));
                }
                let period = self.periods.draw(grid, &mut random);
                let wcet = ((utilization * period as f64) as Ns).clamp(1, period);
                let part = random.between(nearest, farthest);
                let room = nearest_ns(part * (period - wcet) as f64).min(period - wcet);
                Ok(Task::new(wcet, period).due(wcet + room))
            })
            .collect()
    }

    fn divide(&self, random: &mut Random) -> Result<Vec<f64>, GenerateError> {
        let impossible = GenerateError::NoUtilizations {
            tasks: self.tasks,
            utilization: self.utilization,
        };
        if !(self.utilization.is_finite() && self.utilization > 0.0) {
            return Err(impossible);
        }
        match self.utilizations {
            Utilizations::UUniFast => Ok(uunifast(self.tasks, self.utilization, random)),
            Utilizations::UUniFastDiscard { cap, tries } => {
                uunifast_discard(self.tasks, self.utilization, cap, tries, random)
                    .ok_or(GenerateError::Discarded { tries })
            }
            Utilizations::RandFixedSum { low, high } => {
                rand_fixed_sum_within(self.tasks, self.utilization, low, high, random)
                    .ok_or(impossible)
            }
        }
    }
}

/// The multiples of a grid that a period may be: first and last, in grid steps.
#[derive(Clone, Copy)]
struct Steps {
    first: Ns,
    last: Ns,
    grid: Ns,
}

impl Periods {
    fn check(&self) -> Result<Steps, GenerateError> {
        let (Periods::LogUniform {
            shortest,
            longest,
            grid,
        }
        | Periods::Uniform {
            shortest,
            longest,
            grid,
        }) = *self;
        let none = GenerateError::NoPeriod {
            shortest,
            longest,
            grid,
        };
        if grid == 0 || longest > MAX_NS {
            return Err(none);
        }
        let steps = Steps {
            first: shortest.div_ceil(grid).max(1),
            last: longest / grid,
            grid,
        };
        if steps.first > steps.last {
            return Err(none);
        }
        Ok(steps)
    }

    fn draw(&self, steps: Steps, random: &mut Random) -> Ns {
        let Steps { first, last, grid } = steps;
        let step = match self {
            Periods::LogUniform { .. } => {
                let (low, high) = (libm::log(first as f64), libm::log((last + 1) as f64));
                libm::exp(random.between(low, high)) as Ns
            }
            Periods::Uniform { .. } => first + (random.unit() * (last - first + 1) as f64) as Ns,
        };
        step.clamp(first, last) * grid
    }
}

fn nearest_ns(time: f64) -> Ns {
    libm::round(time) as Ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Ns = 1_000_000;

    #[test]
    fn a_full_cpu_is_not_overloaded() {
        let full = Recipe {
            tasks: 10,
            utilization: 1.0,
            utilizations: Utilizations::UUniFast,
            periods: Periods::LogUniform {
                shortest: 10 * MS,
                longest: 1_000 * MS,
                grid: 1,
            },
            deadlines: (1.0, 1.0),
            seed: 1,
        };
        for index in 0..200 {
            assert!(crate::edf::verdict(&full.set(index).unwrap()).is_schedulable());
        }
    }

    fn recipe(tasks: usize, utilization: f64) -> Recipe {
        Recipe {
            tasks,
            utilization,
            utilizations: Utilizations::UUniFast,
            periods: Periods::LogUniform {
                shortest: 10 * MS,
                longest: 1_000 * MS,
                grid: 1,
            },
            deadlines: (1.0, 1.0),
            seed: 42,
        }
    }

    #[test]
    fn a_seed_gives_this_set_on_every_machine() {
        let drawn: Vec<(Ns, Ns)> = recipe(3, 0.8)
            .set(5)
            .unwrap()
            .iter()
            .map(|task| (task.wcet, task.period))
            .collect();
        // Computed elsewhere, with another library's powers and logarithms.
        assert_eq!(
            drawn,
            [
                (74_273_421, 233_896_940),
                (73_066_580, 459_598_812),
                (321_465_466, 993_792_854)
            ]
        );
    }

    #[test]
    fn orders_of_magnitude_are_as_likely() {
        let short = (0..2_000)
            .flat_map(|index| recipe(1, 0.5).set(index).unwrap())
            .filter(|task| task.period < 100 * MS)
            .count();
        assert!((900..1100).contains(&short), "{short} of 2000 below 100 ms");
    }

    #[test]
    fn uniform_periods_have_the_middle_in_the_middle() {
        let periods = Periods::Uniform {
            shortest: 10 * MS,
            longest: 20 * MS,
            grid: MS,
        };
        let mut counts = [0; 11];
        for index in 0..2_200 {
            let set = Recipe {
                periods,
                ..recipe(1, 0.5)
            }
            .set(index)
            .unwrap();
            assert_eq!(set[0].period % MS, 0);
            counts[(set[0].period / MS - 10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (130..270).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn what_no_set_can_follow_says_why() {
        let good = recipe(3, 0.8);
        let error = |recipe: Recipe| recipe.set(0).unwrap_err();
        assert_eq!(error(Recipe { tasks: 0, ..good }), GenerateError::NoTask);
        assert_eq!(
            error(Recipe {
                deadlines: (0.9, 0.1),
                ..good
            }),
            GenerateError::NoDeadline
        );
        for utilization in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                error(Recipe {
                    utilization,
                    ..good
                }),
                GenerateError::NoUtilizations { .. }
            ));
        }
        for (shortest, longest, grid) in [(5, 4, 1), (1, 9, 10), (1, 5, 0), (1, u64::MAX, 1)] {
            let periods = Periods::LogUniform {
                shortest,
                longest,
                grid,
            };
            assert!(matches!(
                error(Recipe { periods, ..good }),
                GenerateError::NoPeriod { .. }
            ));
        }
        assert!(matches!(
            error(Recipe {
                tasks: 1,
                utilization: 1.5,
                ..good
            }),
            GenerateError::TooDense(_)
        ));
        let utilizations = Utilizations::UUniFastDiscard { cap: 0.1, tries: 9 };
        assert_eq!(
            error(Recipe {
                utilizations,
                ..good
            }),
            GenerateError::Discarded { tries: 9 }
        );
        let utilizations = Utilizations::RandFixedSum {
            low: 0.5,
            high: 1.0,
        };
        assert!(matches!(
            error(Recipe {
                utilizations,
                ..good
            }),
            GenerateError::NoUtilizations { .. }
        ));
    }

    proptest! {
        #[test]
        fn sums_are_met_within_the_bounds_stated_and_tasks_are_tasks(
            tasks in 1usize..12,
            part in 0.05f64..1.0,
            shortest in 1u64..10_000_000,
            times in 1u64..1_000,
            nearest in 0.0f64..1.0,
            seed in 0u64..,
            log in any::<bool>(),
        ) {
            let (longest, grid) = (shortest * times, 1);
            let periods = if log {
                Periods::LogUniform { shortest, longest, grid }
            } else {
                Periods::Uniform { shortest, longest, grid }
            };
            let recipe = Recipe {
                tasks,
                utilization: part * tasks as f64,
                utilizations: Utilizations::RandFixedSum { low: 0.0, high: 1.0 },
                periods,
                deadlines: (nearest, 1.0),
                seed,
            };
            let set = recipe.set(0).unwrap();
            let sum: f64 = set.iter().map(|task| task.wcet as f64 / task.period as f64).sum();
            let bound: f64 = set.iter().map(|task| 1.0 / task.period as f64).sum();
            let error = (sum - recipe.utilization).abs();
            prop_assert!(error <= bound + tasks as f64 / (1u64 << 50) as f64, "off by {error}, bound {bound}");
            for task in &set {
                prop_assert_eq!(task.check(), Ok(()));
                prop_assert!(task.is_constrained());
                prop_assert!((shortest..=longest).contains(&task.period));
            }
        }
    }
}
