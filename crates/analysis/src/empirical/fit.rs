//! Models fitted to the cpu time that a thread was seen to receive.

use super::Span;
use crate::Ns;

/// The least delay Δ, ns, with which the rate `supplied` / `per` lies below the received time in every window of every
/// span: `rate * (window - Δ) <= received`. Rounded up. `None` when the rate is 0 or no delay in range is enough.
///
/// The windows of all lengths count, not those of a grid: see [`Span::lag`].
pub fn least_delay(spans: &[Span], supplied: Ns, per: Ns) -> Option<Ns> {
    let lag = spans.iter().map(|span| span.lag(supplied, per)).max();
    let delay = lag
        .unwrap_or(0)
        .checked_add(u128::from(supplied.checked_sub(1)?))?
        / u128::from(supplied);
    Ns::try_from(delay).ok()
}

/// The rate at which a span received cpu time once it had settled: from the beginning of the first gap of at least
/// `least_gap` ns to the beginning of the last, (received, length). `None` with fewer than two such gaps.
///
/// The whole span would say too much: it begins with a budget that nobody has touched, and ends anywhere in a cycle.
pub fn cyclic_rate(span: &Span, least_gap: Ns) -> Option<(Ns, Ns)> {
    let mut cycles = span.gaps().iter().filter(|gap| gap.length() >= least_gap);
    let first = cycles.next()?.begin;
    let last = cycles.next_back()?.begin;
    Some((span.received_between(first, last), last - first))
}

#[cfg(test)]
mod tests {
    use super::super::span::tests::{counted, span_of};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Brute force over all windows: the delay is enough, and 1 ns less is not.
        #[test]
        fn the_delay_is_the_least(
            first in prop::collection::vec(any::<bool>(), 1..40),
            second in prop::collection::vec(any::<bool>(), 1..40),
            supplied in 1u64..8, more in 0u64..8,
        ) {
            let per = supplied + more;
            let spans = [span_of(&first), span_of(&second)];
            let delay = least_delay(&spans, supplied, per).unwrap();
            let holds = |delay: Ns| [&first, &second].iter().all(|ran| {
                (0..=ran.len()).all(|window| counted(ran, window).all(|got| {
                    supplied * (window as Ns).saturating_sub(delay) <= per * got
                }))
            });
            prop_assert!(holds(delay), "{}", delay);
            prop_assert!(delay == 0 || !holds(delay - 1), "{}", delay);
        }
    }

    #[test]
    fn a_settled_rate_has_no_ends() {
        // A full budget of 5 first, then 3 of 10 for ever.
        let mut ran = vec![true; 5];
        for _ in 0..4 {
            ran.extend([false; 7]);
            ran.extend([true; 3]);
        }
        let span = span_of(&ran);
        assert_eq!(cyclic_rate(&span, 7), Some((9, 30)));
        assert_eq!(cyclic_rate(&span, 8), None);
        assert_eq!(least_delay(&[span], 0, 10), None);
        assert_eq!(least_delay(&[], 1, 2), Some(0));
    }
}
