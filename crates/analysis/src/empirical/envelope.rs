//! Several bounded delays as one supply.

use crate::reservation::BoundedDelay;
use crate::{Ns, Supply};

/// The highest of several bounded delays at every window: the promise of each is certain, so is the greatest.
///
/// One line is the long-run rate after a long delay, another a lower rate after a shorter one. The maximum of lines
/// that begin at 0 is convex, so that it splits no window in its favour.
///
/// ```
/// use timecell_analysis::{Supply, empirical::Envelope};
///
/// let measured = Envelope::of(&[(3, 10, 20), (1, 10, 10)]).unwrap();
/// assert_eq!([20, 30, 120].map(|t| measured.sbf(t)), [1, 3, 30]);
/// assert_eq!((measured.inverse(1), measured.inverse(3)), (Some(20), Some(30)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The one of the highest rate first.
    lines: Vec<BoundedDelay>,
}

impl Envelope {
    /// Of lines (supplied, per, delay in ns). `None` without a line, or when one is out of the range of
    /// [`BoundedDelay::new`].
    pub fn of(lines: &[(Ns, Ns, Ns)]) -> Option<Envelope> {
        let line = |&(supplied, per, delay)| BoundedDelay::new(supplied, per, delay).ok();
        let mut lines: Vec<BoundedDelay> = lines.iter().map(line).collect::<Option<_>>()?;
        lines.sort_by(|a, b| {
            let ((qa, pa), (qb, pb)) = (a.rate(), b.rate());
            (u128::from(qb) * u128::from(pa)).cmp(&(u128::from(qa) * u128::from(pb)))
        });
        (!lines.is_empty()).then_some(Envelope { lines })
    }
}

impl Supply for Envelope {
    fn sbf(&self, t: Ns) -> Ns {
        let promised = self.lines.iter().map(|line| line.sbf(t));
        promised.max().unwrap_or(0)
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        let waits = self.lines.iter().filter_map(|line| line.inverse(work));
        waits.min()
    }

    fn rate(&self) -> (Ns, Ns) {
        self.lines[0].rate()
    }

    fn cycle(&self) -> Option<Ns> {
        match self.lines.as_slice() {
            [line] => line.cycle(),
            // The lines of lower rates bend it at first.
            _ => None,
        }
    }

    fn delay(&self) -> Option<Ns> {
        self.lines[0].delay()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_envelope_is_a_supply(lines in prop::collection::vec((1u64..9, 0u64..9, 0u64..40), 1..5)) {
            let lines: Vec<_> = lines.iter().map(|&(q, more, delay)| (q, q + more, delay)).collect();
            let envelope = Envelope::of(&lines).unwrap();
            prop_assert_eq!((envelope.sbf(0), envelope.inverse(0)), (0, Some(0)));
            let (supplied, per) = envelope.rate();
            let delay = envelope.delay().unwrap();
            for t in 0..120 {
                let got = envelope.sbf(t);
                prop_assert!(envelope.sbf(t + 1) - got <= 1);
                prop_assert!(got * per >= supplied * t.saturating_sub(delay));
                for &(q, p, delay) in &lines {
                    prop_assert!(got >= BoundedDelay::new(q, p, delay).unwrap().sbf(t));
                    prop_assert!(q * per <= supplied * p, "the rate is the highest");
                }
                for work in 0..=got + 2 {
                    let wait = envelope.inverse(work).unwrap();
                    prop_assert_eq!(wait <= t, work <= got, "work {}, t {}", work, t);
                }
                for part in 0..=t {
                    prop_assert!(got >= envelope.sbf(part) + envelope.sbf(t - part));
                }
            }
        }
    }

    #[test]
    fn no_line_is_no_envelope() {
        assert_eq!(Envelope::of(&[]), None);
        assert_eq!(Envelope::of(&[(2, 1, 0)]), None);
    }
}
