//! The multiprocessor periodic resource model.

use super::covered::clamp;
use crate::{MAX_NS, Ns};

/// A multiprocessor periodic resource (Π, Θ, m): in every period Π, Θ ns of cpu time in all, on at most m cpus at once.
///
/// Shin, Easwaran & Lee, "Hierarchical scheduling framework for virtual clustering of multiprocessors" (ECRTS 2008).
///
/// ```
/// use timecell_analysis::multi::Mpr;
///
/// let resource = Mpr::new(5, 8, 2).unwrap();
/// assert_eq!(resource.sbf(3), 2);
/// assert_eq!(resource.sbf(15), 22);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mpr {
    period: Ns,
    total: Ns,
    cpus: u32,
}

/// Why the parameters of a multiprocessor periodic resource are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MprError {
    /// Nothing can be supplied.
    #[error("the {0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// The period is larger than [`MAX_NS`].
    #[error("the period of {0} ns is too long; the longest time is {MAX_NS} ns (36 years)")]
    TooLong(Ns),
    /// More cpu time than the cpus have, or more than a [`Ns`] holds.
    #[error("{total} ns of cpu time in every {period} ns is more than {cpus} cpus have")]
    TooMuch {
        /// Cpu time Θ in every period, ns.
        total: Ns,
        /// Period Π, ns.
        period: Ns,
        /// Cpus m.
        cpus: u32,
    },
}

/// The form in which rt-cgroups give an MPR: the same budget on each of the cpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EqualShare {
    /// Budget Q on each cpu in every period, ns.
    pub budget: Ns,
    /// Period P, ns.
    pub period: Ns,
    /// How many cpus have that budget.
    pub cpus: u32,
}

impl Mpr {
    /// The resource that supplies `total` ns (Θ) on at most `cpus` cpus (m) in every `period` ns (Π).
    ///
    /// # Errors
    /// A period, a total or a number of cpus of 0, a period beyond [`MAX_NS`], and Θ > m Π.
    ///
    /// ```
    /// use timecell_analysis::multi::{Mpr, MprError};
    ///
    /// assert!(Mpr::new(10, 20, 2).is_ok());
    /// assert_eq!(Mpr::new(10, 21, 2), Err(MprError::TooMuch { total: 21, period: 10, cpus: 2 }));
    /// ```
    pub fn new(period: Ns, total: Ns, cpus: u32) -> Result<Mpr, MprError> {
        for (name, zero) in [
            ("period", period == 0),
            ("cpu time", total == 0),
            ("number of cpus", cpus == 0),
        ] {
            if zero {
                return Err(MprError::Zero(name));
            }
        }
        if period > MAX_NS {
            return Err(MprError::TooLong(period));
        }
        if u128::from(total) > u128::from(period) * u128::from(cpus) {
            return Err(MprError::TooMuch {
                total,
                period,
                cpus,
            });
        }
        Ok(Mpr {
            period,
            total,
            cpus,
        })
    }

    /// The resource of `cpus` reservations of `budget` in every `period`, as rt-cgroups give them.
    ///
    /// # Errors
    /// As [`Mpr::new`].
    ///
    /// ```
    /// use timecell_analysis::multi::Mpr;
    ///
    /// let resource = Mpr::of_equal_shares(8_750_000, 10_000_000, 2).unwrap();
    /// assert_eq!(resource.total(), 17_500_000);
    /// assert_eq!(resource.equal_share().budget, 8_750_000);
    /// ```
    pub fn of_equal_shares(budget: Ns, period: Ns, cpus: u32) -> Result<Mpr, MprError> {
        Mpr::new(period, budget.saturating_mul(cpus.into()), cpus)
    }

    /// Period Π, ns.
    pub const fn period(&self) -> Ns {
        self.period
    }

    /// Cpu time Θ in every period on all cpus together, ns.
    pub const fn total(&self) -> Ns {
        self.total
    }

    /// The most cpus at once, m.
    pub const fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Supply-bound function: the least cpu time in any interval of `t` ns, on all cpus together.
    ///
    /// Exact when every cpu has the same budget Θ / m (Shin, Easwaran & Lee 2008), and safe otherwise. It is
    /// `m sbf_PRM(Π, Θ / m)(t)`, taken in units of 1/m ns so that nothing is rounded. A result beyond the range reads
    /// as its end.
    ///
    /// The form in the kernel's HCBS document takes m off where Θ is a multiple of m, and so has 0 here instead of 2:
    ///
    /// ```
    /// let resource = timecell_analysis::multi::Mpr::new(5, 8, 2).unwrap();
    /// assert_eq!(resource.sbf(3), 2);
    /// ```
    pub fn sbf(&self, t: Ns) -> Ns {
        clamp(self.supply(t))
    }

    /// Linear lower bound on [`Mpr::sbf`] as a fraction (ns, per): `Θ/Π (t - 2 (Π - Θ/m))`, at least 0.
    ///
    /// Shin, Easwaran & Lee 2008.
    ///
    /// ```
    /// let resource = timecell_analysis::multi::Mpr::new(5, 8, 2).unwrap();
    /// assert_eq!(resource.lsbf(3), (16, 10)); // 8/5
    /// ```
    pub fn lsbf(&self, t: Ns) -> (u128, u128) {
        let cpus = u128::from(self.cpus);
        let after = (cpus * u128::from(t)).saturating_sub(2 * self.gap());
        // Both factors are below 2^97 and 2^64; beyond the range the bound is cut, which is the safe side.
        (
            u128::from(self.total).saturating_mul(after),
            cpus * u128::from(self.period),
        )
    }

    /// The least equal budgets that give at least this resource: Q = ceil(Θ / m) on each cpu.
    ///
    /// Abeni, Balsini & Cucinotta, "Container-based real-time scheduling in the Linux kernel" (2019).
    ///
    /// ```
    /// let resource = timecell_analysis::multi::Mpr::new(10_000, 17_457, 2).unwrap();
    /// assert_eq!(resource.equal_share().budget, 8_729); // 17,457 / 2, rounded up
    /// ```
    pub const fn equal_share(&self) -> EqualShare {
        EqualShare {
            budget: self.total.div_ceil(self.cpus as u64),
            period: self.period,
            cpus: self.cpus,
        }
    }

    /// m Π - Θ: the longest time without supply, in units of 1/m ns.
    fn gap(&self) -> u128 {
        u128::from(self.cpus) * u128::from(self.period) - u128::from(self.total)
    }

    pub(super) fn supply(&self, t: Ns) -> u128 {
        let cpus = u128::from(self.cpus);
        let (t, period, gap) = (
            cpus * u128::from(t),
            cpus * u128::from(self.period),
            self.gap(),
        );
        let Some(after) = t.checked_sub(gap) else {
            return 0;
        };
        let whole = after / period;
        // whole * total <= t, since total <= period here.
        whole * u128::from(self.total) + t.saturating_sub(2 * gap + whole * period)
    }

    /// The two integers beside the next instant after `t` at which supply starts again, as far as they are after `t`.
    ///
    /// Between such instants the supply bound is concave, so that a demand that is convex in between exceeds it, if
    /// at all, at an end.
    pub(super) fn next_start(&self, t: Ns) -> u128 {
        let cpus = u128::from(self.cpus);
        let (scaled, period, gap) = (
            cpus * u128::from(t),
            cpus * u128::from(self.period),
            self.gap(),
        );
        if gap == 0 {
            return u128::MAX;
        }
        let mut start = 2 * gap;
        // The start whose rounded-up instant is the first after t.
        if scaled >= start {
            start += (scaled - start) / period * period;
        }
        while start.div_ceil(cpus) <= u128::from(t) {
            start += period;
        }
        let (floor, ceil) = (start / cpus, start.div_ceil(cpus));
        if floor > u128::from(t) { floor } else { ceil }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_none_is_refused() {
        assert_eq!(Mpr::new(0, 1, 1), Err(MprError::Zero("period")));
        assert_eq!(Mpr::new(1, 0, 1), Err(MprError::Zero("cpu time")));
        assert_eq!(Mpr::new(1, 1, 0), Err(MprError::Zero("number of cpus")));
        assert!(Mpr::new(10, 20, 2).is_ok());
        assert!(matches!(Mpr::new(10, 21, 2), Err(MprError::TooMuch { .. })));
        assert!(matches!(
            Mpr::new(u64::MAX, 1, 1),
            Err(MprError::TooLong(_))
        ));
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let wide = Mpr::new(MAX_NS, Ns::MAX, u32::MAX).unwrap();
        wide.sbf(Ns::MAX);
        wide.lsbf(Ns::MAX);
        wide.next_start(Ns::MAX);
        let dedicated = Mpr::new(1, u64::from(u32::MAX), u32::MAX).unwrap();
        assert_eq!(dedicated.sbf(3), 3 * u64::from(u32::MAX));
        assert_eq!(dedicated.sbf(Ns::MAX), Ns::MAX);
    }

    fn resources() -> impl Strategy<Value = Mpr> {
        (1u64..40, 1u32..5)
            .prop_flat_map(|(period, cpus)| {
                (Just(period), 1..=period * u64::from(cpus), Just(cpus))
            })
            .prop_map(|(period, total, cpus)| Mpr::new(period, total, cpus).unwrap())
    }

    proptest! {
        /// Equal budgets, each given as early as possible in one period and as late as possible ever after.
        #[test]
        fn no_interval_of_the_worst_pattern_has_less(
            budget in 1u64..20, idle in 0u64..20, cpus in 1u32..4, t in 0u64..150,
        ) {
            let period = budget + idle;
            let resource = Mpr::of_equal_shares(budget, period, cpus).unwrap();
            let supplied = |x: u64| {
                let x = x % (1000 * period);
                if x < period { x < budget } else { x % period >= idle }
            };
            let least = (0..2 * period)
                .map(|from| (from..from + t).filter(|&x| supplied(x)).count() as u64)
                .min()
                .unwrap();
            prop_assert_eq!(resource.sbf(t), least * u64::from(cpus));
        }

        #[test]
        fn it_grows_with_time_and_budget_and_stays_above_the_line(resource in resources(), t in 0u64..200) {
            prop_assert!(resource.sbf(t) <= resource.sbf(t + 1));
            prop_assert!(resource.sbf(t + 1) <= resource.sbf(t) + u64::from(resource.cpus()));
            let (num, den) = resource.lsbf(t);
            prop_assert!(num <= u128::from(resource.sbf(t)) * den);
            if let Ok(more) = Mpr::new(resource.period(), resource.total() + 1, resource.cpus()) {
                prop_assert!(more.sbf(t) >= resource.sbf(t));
            }
        }

        #[test]
        fn starts_are_where_supply_turns_up(resource in resources(), t in 0u64..200) {
            let next = resource.next_start(t).min(1_000) as u64;
            prop_assert!(next > t);
            // Strictly between t and the next start the supply never speeds up.
            let speed = |x: u64| resource.sbf(x + 1) - resource.sbf(x);
            for x in t + 1..next {
                prop_assert!(speed(x) <= speed(x - 1), "at {x} between {t} and {next}");
            }
        }
    }
}
