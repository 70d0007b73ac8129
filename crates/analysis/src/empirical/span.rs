//! A span of measured time with its gaps.

use crate::{MAX_NS, Ns};

/// Time in which a thread that wanted the cpu did not have it, `begin < end`, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Last instant at which the thread was seen to run.
    pub begin: Ns,
    /// First instant at which it ran again.
    pub end: Ns,
}

impl Gap {
    /// Its length, ns.
    pub const fn length(&self) -> Ns {
        self.end - self.begin
    }
}

/// A stretch of time in which a thread wanted the cpu without a pause, and the gaps in which it did not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    begin: Ns,
    end: Ns,
    gaps: Vec<Gap>,
    /// Lost before each gap, ns.
    lost: Vec<Ns>,
}

/// Why gaps make no span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// It ends before it begins, or lies beyond [`MAX_NS`].
    #[error(
        "a span from {begin} to {end} ns is empty or too long; it must end after its begin, at {MAX_NS} ns at most"
    )]
    NoTime {
        /// Begin, ns.
        begin: Ns,
        /// End, ns.
        end: Ns,
    },
    /// A gap is empty or backwards, begins before the one before it ends, or lies outside of the span.
    #[error(
        "gap {index} from {} to {} ns is misplaced; gaps must be in order, within the span, and must not overlap",
        gap.begin, gap.end
    )]
    OutOfPlace {
        /// Its place among the gaps, from 0.
        index: usize,
        /// The gap.
        gap: Gap,
    },
}

impl Span {
    /// A span from `begin` to `end` with these gaps, in order.
    ///
    /// # Errors
    /// Names the gap that is out of place.
    pub fn new(begin: Ns, end: Ns, gaps: Vec<Gap>) -> Result<Span, SpanError> {
        if begin >= end || end > MAX_NS {
            return Err(SpanError::NoTime { begin, end });
        }
        let mut lost = Vec::with_capacity(gaps.len());
        let (mut sum, mut from) = (0, begin);
        for (index, &gap) in gaps.iter().enumerate() {
            if gap.begin < from || gap.end <= gap.begin || gap.end > end {
                return Err(SpanError::OutOfPlace { index, gap });
            }
            lost.push(sum);
            sum += gap.length();
            from = gap.end;
        }
        Ok(Span {
            begin,
            end,
            gaps,
            lost,
        })
    }

    /// First instant, ns.
    pub const fn begin(&self) -> Ns {
        self.begin
    }

    /// Last instant, ns.
    pub const fn end(&self) -> Ns {
        self.end
    }

    /// Its length, ns.
    pub const fn length(&self) -> Ns {
        self.end - self.begin
    }

    /// The gaps, in order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The longest gap, ns; 0 without one.
    pub fn longest_gap(&self) -> Ns {
        self.gaps.iter().map(Gap::length).max().unwrap_or(0)
    }

    /// Cpu time received in all of it, ns.
    pub fn received(&self) -> Ns {
        self.length() - self.lost_before(self.end)
    }

    /// Cpu time received from one instant to a later one, ns; time outside of the span counts for nothing.
    pub fn received_between(&self, from: Ns, to: Ns) -> Ns {
        let (from, to) = (
            from.clamp(self.begin, self.end),
            to.clamp(self.begin, self.end),
        );
        if from >= to {
            return 0;
        }
        (to - from) - (self.lost_before(to) - self.lost_before(from))
    }

    /// The least cpu time received in any window of this length within the span, ns; `None` if none fits.
    ///
    /// Exact: moving a window changes its received time by the time entering less that leaving, so that a least one begins with
    /// a gap, ends with a gap, or touches an end of the span. Takes time in proportion to the number of gaps.
    pub fn least(&self, window: Ns) -> Option<Ns> {
        let last_start = self.begin + self.length().checked_sub(window)?;
        let mut lost = self
            .lost_before(self.begin + window)
            .max(self.lost_before(self.end) - self.lost_before(last_start));
        let mut to = Cursor::new(self);
        let starting = self.gaps.iter().zip(&self.lost);
        for (gap, before) in starting.take_while(|(gap, _)| gap.begin <= last_start) {
            lost = lost.max(to.lost_before(gap.begin + window) - before);
        }
        let mut from = Cursor::new(self);
        let ending = self.gaps.iter().zip(&self.lost);
        for (gap, before) in ending.skip_while(|(gap, _)| gap.end < self.begin + window) {
            lost = lost.max(before + gap.length() - from.lost_before(gap.end - window));
        }
        Some(window - lost)
    }

    /// The most by which any window, of any length, falls behind the rate `supplied` / `per`: the largest
    /// `supplied * length - per * received`, in ns times `per`.
    ///
    /// With f(t) = supplied t - per S(t), S being the time received until t, that is the largest rise of f from one
    /// instant to a later one, found in one pass.
    pub fn lag(&self, supplied: Ns, per: Ns) -> u128 {
        let (supplied, per) = (i128::from(supplied), i128::from(per));
        let (mut f, mut least, mut most) = (0i128, 0i128, 0i128);
        let mut at = self.begin;
        for gap in &self.gaps {
            // Where the thread runs, f falls or (at a rate above 1) rises; in a gap it rises.
            f += (supplied - per) * i128::from(gap.begin - at);
            most = most.max(f - least);
            least = least.min(f);
            f += supplied * i128::from(gap.length());
            most = most.max(f - least);
            at = gap.end;
        }
        f += (supplied - per) * i128::from(self.end - at);
        most.max(f - least).unsigned_abs()
    }

    /// Lost from the begin until `t` within the span, ns.
    fn lost_before(&self, t: Ns) -> Ns {
        let later = self.gaps.partition_point(|gap| gap.begin < t);
        match later.checked_sub(1) {
            None => 0,
            Some(at) => {
                let gap = self.gaps[at];
                self.lost[at] + gap.end.min(t) - gap.begin
            }
        }
    }
}

/// [`Span::lost_before`] for instants that only grow.
struct Cursor<'a> {
    span: &'a Span,
    /// The first gap that does not end by the instant asked for last.
    at: usize,
    /// Lost in all gaps before that, ns.
    lost: Ns,
}

impl<'a> Cursor<'a> {
    const fn new(span: &'a Span) -> Cursor<'a> {
        Cursor {
            span,
            at: 0,
            lost: 0,
        }
    }

    fn lost_before(&mut self, t: Ns) -> Ns {
        while let Some(gap) = self.span.gaps.get(self.at).filter(|gap| gap.end <= t) {
            self.lost += gap.length();
            self.at += 1;
        }
        let open = self.span.gaps.get(self.at);
        self.lost + open.map_or(0, |gap| t.saturating_sub(gap.begin))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A span of whether it ran in each ns.
    pub fn span_of(ran: &[bool]) -> Span {
        let mut gaps: Vec<Gap> = Vec::new();
        for (at, _) in ran.iter().enumerate().filter(|(_, ran)| !**ran) {
            let at = at as Ns + 100;
            match gaps.last_mut() {
                Some(gap) if gap.end == at => gap.end += 1,
                _ => gaps.push(Gap {
                    begin: at,
                    end: at + 1,
                }),
            }
        }
        Span::new(100, 100 + ran.len() as Ns, gaps).unwrap()
    }

    /// The time each window of this length received, by counting.
    pub fn counted(ran: &[bool], window: usize) -> impl Iterator<Item = Ns> {
        let last = ran.len() - window;
        (0..=last)
            .map(move |from| ran[from..from + window].iter().filter(|ran| **ran).count() as Ns)
    }

    proptest! {
        #[test]
        fn the_least_of_every_length_is_that_of_counting(ran in prop::collection::vec(any::<bool>(), 1..60)) {
            let span = span_of(&ran);
            for window in 0..=ran.len() {
                let least = counted(&ran, window).min();
                prop_assert_eq!(span.least(window as Ns), least, "window {}", window);
            }
            prop_assert_eq!(span.least(ran.len() as Ns + 1), None);
            prop_assert_eq!(span.received(), counted(&ran, ran.len()).sum::<Ns>());
        }

        #[test]
        fn the_lag_is_that_of_all_windows(
            ran in prop::collection::vec(any::<bool>(), 1..40), supplied in 0u64..8, per in 1u64..8,
        ) {
            let lag = (0..=ran.len())
                .flat_map(|window| counted(&ran, window).map(move |got| (window, got)))
                .map(|(window, got)| (supplied * window as Ns).saturating_sub(per * got))
                .max();
            prop_assert_eq!(Some(span_of(&ran).lag(supplied, per)), lag.map(u128::from));
        }

        #[test]
        fn parts_of_a_span_are_counted(
            ran in prop::collection::vec(any::<bool>(), 1..40), from in 90u64..150, to in 90u64..150,
        ) {
            let within = |at: usize| (from..to).contains(&(at as Ns + 100));
            let counted = ran.iter().enumerate().filter(|(at, ran)| **ran && within(*at)).count();
            prop_assert_eq!(span_of(&ran).received_between(from, to), counted as Ns);
        }

        #[test]
        fn no_times_panic(begin in any::<u64>(), length in any::<u64>(), gaps in prop::collection::vec((any::<u64>(), any::<u64>()), 0..4)) {
            let gaps: Vec<Gap> = gaps.into_iter().map(|(begin, end)| Gap { begin, end }).collect();
            if let Ok(span) = Span::new(begin, begin.saturating_add(length), gaps) {
                prop_assert!(span.received() <= span.length());
                prop_assert!(span.least(length / 2).unwrap_or(0) <= span.received());
                span.lag(MAX_NS, MAX_NS);
            }
        }
    }

    #[test]
    fn what_is_no_span_is_named() {
        let of = |gaps: &[(Ns, Ns)]| {
            let gaps = gaps.iter().map(|&(begin, end)| Gap { begin, end });
            Span::new(10, 20, gaps.collect())
        };
        assert!(of(&[(10, 12), (12, 20)]).is_ok());
        for (gaps, index) in [
            (&[(9, 12)][..], 0),
            (&[(12, 12)], 0),
            (&[(12, 15), (14, 16)], 1),
            (&[(12, 21)], 0),
        ] {
            assert!(
                matches!(of(gaps), Err(SpanError::OutOfPlace { index: at, .. }) if at == index),
                "{gaps:?}"
            );
        }
        assert!(Span::new(5, 5, Vec::new()).is_err());
        assert!(Span::new(0, MAX_NS + 1, Vec::new()).is_err());
    }
}
