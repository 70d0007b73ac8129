//! The sign test: of pairs in which one of two things was larger, how often was it the first?

use statrs::distribution::{Binomial, DiscreteCDF};

/// The probability of `more` or more successes in `more + fewer` tosses of a fair coin: the exact one-sided sign test
/// (Conover, "Practical Nonparametric Statistics", section 3.4) of "the first is not larger than the second" where `more`
/// pairs say it is and `fewer` that it is smaller; ties are left out. 1 without any pair.
///
/// ```
/// assert!((timecell_stats::sign_test(5, 0) - 0.03125).abs() < 1e-12);
/// assert_eq!(timecell_stats::sign_test(0, 5), 1.0);
/// ```
pub fn sign_test(more: u64, fewer: u64) -> f64 {
    let below = more.checked_sub(1);
    let coin = Binomial::new(0.5, more + fewer).ok();
    (coin.zip(below)).map_or(1.0, |(coin, below)| coin.sf(below).clamp(0.0, 1.0))
}

/// The largest share of trials with an event that is compatible, with `confidence`, with none in `trials` independent ones:
/// 1 - (1 - confidence)^(1 / trials) (Clopper and Pearson, Biometrika 26(4), 1934). 1 of no trials.
///
/// ```
/// assert!((timecell_stats::share_at_most(59, 0.95) - 0.0495).abs() < 1e-4);
/// ```
pub fn share_at_most(trials: u64, confidence: f64) -> f64 {
    match trials {
        0 => 1.0,
        n => 1.0 - (1.0 - confidence).powf(1.0 / n as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        for (more, fewer, expected) in
            [(0, 0, 1.0), (1, 0, 0.5), (8, 2, 0.0546875), (3, 3, 0.65625)]
        {
            assert!(
                (sign_test(more, fewer) - expected).abs() < 1e-12,
                "{more} {fewer}"
            );
        }
        assert!(
            sign_test(2_000, 1_000) < 1e-9,
            "large numbers do not vanish or overflow"
        );
        assert!(sign_test(1_500, 1_500) > 0.5);
    }

    proptest! {
        #[test]
        fn both_sides_make_one(more in 1u64..200, fewer in 0u64..200) {
            // Either there are so many or more, or fewer than so many: which is as likely as more than the others.
            let both = sign_test(more, fewer) + sign_test(fewer + 1, more - 1);
            prop_assert!((both - 1.0).abs() < 1e-9, "{both}");
        }

        #[test]
        fn more_trials_allow_less(trials in 1u64..10_000) {
            prop_assert!(share_at_most(trials + 1, 0.95) < share_at_most(trials, 0.95));
            // The bound is where none at all has the probability of 5 %.
            let none = (1.0 - share_at_most(trials, 0.95)).powf(trials as f64);
            prop_assert!((none - 0.05).abs() < 1e-6);
        }
    }
}
