//! Exact fractions and their sums.

use std::cmp::Ordering;

/// An exact non-negative fraction; `den` is never 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fraction {
    pub num: u128,
    pub den: u128,
}

impl Fraction {
    pub const ZERO: Fraction = Fraction { num: 0, den: 1 };

    /// `den` must not be 0.
    pub fn new(num: u128, den: u128) -> Fraction {
        let common = gcd(num, den).max(1);
        Fraction {
            num: num / common,
            den: den / common,
        }
    }

    /// `None` when the sum leaves the range.
    pub fn plus(self, other: Fraction) -> Option<Fraction> {
        let common = gcd(self.den, other.den);
        let scale = other.den / common;
        let left = self.num.checked_mul(scale)?;
        let right = other.num.checked_mul(self.den / common)?;
        Some(Fraction::new(
            left.checked_add(right)?,
            self.den.checked_mul(scale)?,
        ))
    }

    /// `None` when the difference is negative or leaves the range.
    pub fn minus(self, other: Fraction) -> Option<Fraction> {
        let common = gcd(self.den, other.den);
        let scale = other.den / common;
        let left = self.num.checked_mul(scale)?;
        let right = other.num.checked_mul(self.den / common)?;
        Some(Fraction::new(
            left.checked_sub(right)?,
            self.den.checked_mul(scale)?,
        ))
    }

    /// Exact for every pair: by continued fractions, so that no product can overflow.
    pub fn compare(self, other: Fraction) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.num, self.den, other.num, other.den);
        loop {
            let whole = (a / b).cmp(&(c / d));
            if whole != Ordering::Equal {
                return whole;
            }
            let (left, right) = (a % b, c % d);
            match (left == 0, right == 0) {
                (true, true) => return Ordering::Equal,
                (true, false) => return Ordering::Less,
                (false, true) => return Ordering::Greater,
                // left/b against right/d is d/right against b/left.
                (false, false) => (a, b, c, d) = (d, right, b, left),
            }
        }
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// One in the fixed point of [`RatioSum`].
pub(crate) const ONE: u128 = 1 << 64;

/// A sum of ratios, bounded from both sides in units of 2^-64 and exact on demand.
///
/// The bounds decide almost every comparison; the exact sum is taken only when they cannot, because its
/// denominator soon leaves 128 bits.
#[derive(Debug, Clone, Default)]
pub(crate) struct RatioSum {
    low: u128,
    high: u128,
    terms: Vec<(u64, u64)>,
}

impl RatioSum {
    pub fn of(terms: impl IntoIterator<Item = (u64, u64)>) -> RatioSum {
        let mut sum = RatioSum::default();
        for (num, den) in terms {
            sum.add(num, den);
        }
        sum
    }

    pub fn add(&mut self, num: u64, den: u64) {
        let den = den.max(1);
        let scaled = u128::from(num) << 64;
        self.low = self.low.saturating_add(scaled / u128::from(den));
        self.high = self.high.saturating_add(scaled.div_ceil(u128::from(den)));
        self.terms.push((num, den));
    }

    /// An upper bound in units of 2^-64; `u128::MAX` stands for more than that.
    pub fn high(&self) -> u128 {
        self.high
    }

    /// A lower bound in units of 2^-64.
    pub fn low(&self) -> u128 {
        self.low
    }

    pub fn exact(&self) -> Option<Fraction> {
        self.terms
            .iter()
            .try_fold(Fraction::ZERO, |sum, &(num, den)| {
                sum.plus(Fraction::new(num.into(), den.into()))
            })
    }

    /// `None` when the two are too close for the bounds and the exact sum leaves the range.
    pub fn compare_to(&self, other: Fraction) -> Option<Ordering> {
        let bound = |fixed| Fraction {
            num: fixed,
            den: ONE,
        };
        if self.high < u128::MAX && bound(self.high).compare(other) == Ordering::Less {
            return Some(Ordering::Less);
        }
        if bound(self.low).compare(other) == Ordering::Greater {
            return Some(Ordering::Greater);
        }
        Some(self.exact()?.compare(other))
    }

    /// `None` when the two are too close for the bounds and an exact sum leaves the range.
    pub fn compare(&self, other: &RatioSum) -> Option<Ordering> {
        if self.high < other.low {
            return Some(Ordering::Less);
        }
        if self.low > other.high {
            return Some(Ordering::Greater);
        }
        Some(self.exact()?.compare(other.exact()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_sums_of_different_terms_are_equal() {
        let halves = RatioSum::of([(1, 2)]);
        let thirds = RatioSum::of([(1, 3), (1, 6)]);
        assert_eq!(halves.compare(&thirds), Some(Ordering::Equal));
        assert_eq!(
            thirds.compare_to(Fraction::new(1, 2)),
            Some(Ordering::Equal)
        );
    }

    #[test]
    fn sums_too_close_for_exact_arithmetic_have_no_order() {
        // Denominators are primes near 2^60 by turns, so that the exact sum leaves 128 bits at the third.
        let near = [
            1_152_921_504_606_846_883,
            1_152_921_504_606_846_869,
            1_152_921_504_606_846_803,
        ];
        let sum = RatioSum::of(near.map(|den| (den / 3, den)));
        assert_eq!(sum.exact().map(|_| ()), None);
        let between = Fraction {
            num: sum.low() + 1,
            den: ONE,
        };
        assert_eq!(sum.compare_to(between), None);
        assert_eq!(
            sum.compare_to(Fraction::new(2, 1)),
            Some(Ordering::Less),
            "the bounds suffice"
        );
    }

    proptest! {
        #[test]
        fn fractions_order_like_products(a in 0u64.., b in 1u64.., c in 0u64.., d in 1u64..) {
            let left = Fraction { num: a.into(), den: b.into() };
            let right = Fraction { num: c.into(), den: d.into() };
            let products = (u128::from(a) * u128::from(d)).cmp(&(u128::from(c) * u128::from(b)));
            prop_assert_eq!(left.compare(right), products);
        }

        #[test]
        fn adding_and_taking_away_is_nothing(a in 0u32.., b in 1u32.., c in 0u32.., d in 1u32..) {
            let left = Fraction::new(a.into(), b.into());
            let right = Fraction::new(c.into(), d.into());
            let back = left.plus(right).unwrap().minus(right).unwrap();
            prop_assert_eq!(back.compare(left), Ordering::Equal);
        }

        #[test]
        fn the_bounds_hold_the_exact_sum(terms in proptest::collection::vec((0u64..1000, 1u64..1000), 0..6)) {
            let sum = RatioSum::of(terms);
            let exact = sum.exact().unwrap();
            let low = Fraction { num: sum.low(), den: ONE };
            let high = Fraction { num: sum.high(), den: ONE };
            prop_assert_ne!(low.compare(exact), Ordering::Greater);
            prop_assert_ne!(high.compare(exact), Ordering::Less);
        }
    }
}
