//! Windows in which less was received than a model promises.

use super::Span;
use crate::{Ns, Supply};

/// A window in which less was received than a model promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// Length of the window, ns.
    pub window: Ns,
    /// The promise of the model in any window of that length, ns.
    pub promised: Ns,
    /// The least that was received in one, ns.
    pub received: Ns,
}

impl Shortfall {
    /// How much is missing, ns.
    pub const fn missing(&self) -> Ns {
        self.promised.saturating_sub(self.received)
    }
}

/// The least that any of the spans received in a window, by its length: (length, received), ns. Lengths that fit into no
/// span are left out.
pub fn least_of(spans: &[Span], windows: &[Ns]) -> Vec<(Ns, Ns)> {
    let least = |&window: &Ns| {
        let received = spans.iter().filter_map(|span| span.least(window));
        Some((window, received.min()?))
    };
    windows.iter().filter_map(least).collect()
}

/// Of these (length, least received), that in which the most is missing of the promise of `model`, beyond what `spare`
/// says may be missing in a window of that length; `None` where the promise is kept in all of them.
pub fn shortfall(
    least: &[(Ns, Ns)],
    model: &impl Supply,
    spare: impl Fn(Ns) -> Ns,
) -> Option<Shortfall> {
    let falls = least.iter().filter_map(|&(window, received)| {
        let promised = model.sbf(window);
        let short = promised.saturating_sub(received);
        let beyond = short.checked_sub(spare(window)).filter(|ns| *ns > 0)?;
        let fall = Shortfall {
            window,
            promised,
            received,
        };
        Some((beyond, fall))
    });
    falls
        .max_by_key(|(beyond, _)| *beyond)
        .map(|(_, fall)| fall)
}

/// Multiples of the period whose bends are looked at; beyond, lengths grow by a twentieth.
const MULTIPLES: Ns = 24;
/// Periods that are looked at evenly, and the parts of each.
const EVENLY: (Ns, Ns) = (6, 24);

/// Lengths of windows worth looking at, ascending, 1 us to `longest` ns: for the first periods those at which the
/// supply of `budget` ns every `period` ns bends and others evenly between, then lengths that grow by a twentieth.
pub fn windows(budget: Ns, period: Ns, longest: Ns) -> Vec<Ns> {
    let gap = period.saturating_sub(budget);
    let mut all: Vec<Ns> = (0..=MULTIPLES)
        .filter_map(|k| k.checked_mul(period))
        .flat_map(|whole| {
            [0, gap, 2 * gap, 2 * gap + budget, budget].map(|more| whole.saturating_add(more))
        })
        .collect();
    let (periods, parts) = EVENLY;
    all.extend((1..=periods * parts).map(|part| (period / parts).saturating_mul(part)));
    let grown = std::iter::successors(Some(1_000), |w: &Ns| w.checked_add((w / 20).max(1)));
    all.extend(grown.take_while(|w| *w < longest));
    all.push(longest);
    all.retain(|w| (1..=longest).contains(w));
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Gap, Span};
    use super::*;
    use crate::reservation::Periodic;

    const MS: Ns = 1_000_000;

    /// Runs and gaps in turn, ms.
    fn span(lengths: &[Ns]) -> Span {
        let mut at = 0;
        let mut gaps = Vec::new();
        for (place, &length) in lengths.iter().enumerate() {
            let end = at + length * MS;
            if place % 2 == 1 {
                gaps.push(Gap { begin: at, end });
            }
            at = end;
        }
        Span::new(0, at, gaps).unwrap()
    }

    #[test]
    fn a_longer_gap_than_the_textbook_allows_is_found() {
        let textbook = Periodic::new(3 * MS, 10 * MS).unwrap();
        let lengths = windows(3 * MS, 10 * MS, 43 * MS);
        // 14 ms is the longest that the textbook allows.
        let kept = span(&[3, 14, 3, 7, 3, 7, 6]);
        let of =
            |spans: &[Span], spare: Ns| shortfall(&least_of(spans, &lengths), &textbook, |_| spare);
        assert_eq!(of(std::slice::from_ref(&kept), 0), None);
        let spans = [kept, span(&[4, 16, 4, 6, 4, 6, 3])];
        let found = of(&spans, 0).unwrap();
        assert_eq!(found.missing(), 2 * MS, "{found:?}");
        assert_eq!((found.window, found.promised), (17 * MS, 3 * MS));
        assert_eq!(of(&spans, 2 * MS - 1), Some(found));
        assert_eq!(of(&spans, 2 * MS), None);
    }

    #[test]
    fn the_windows_hold_the_bends_and_end_with_the_longest() {
        let lengths = windows(3 * MS, 10 * MS, 500 * MS);
        for bend in [7, 14, 17, 24, 27, 500] {
            assert!(lengths.contains(&(bend * MS)), "{bend}");
        }
        assert!(
            lengths.is_sorted() && lengths.len() < 1_000,
            "{}",
            lengths.len()
        );
        assert_eq!(windows(1, 1, 5), [1, 2, 3, 4, 5]);
        assert!(windows(Ns::MAX, Ns::MAX, 0).is_empty());
    }
}
