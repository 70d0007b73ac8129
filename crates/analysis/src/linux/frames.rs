//! Static cyclic schedules: the windows in which the reservations of one cpu run, again and again.

use crate::utilization::gcd;
use crate::{Ns, Supply};

/// A window of a cpu's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When it begins, ns from the frame's begin.
    pub start: Ns,
    /// Length, ns; more than 0.
    pub length: Ns,
    /// Position of the reservation whose window it is; `None`: nobody's.
    pub of: Option<usize>,
}

/// The frame of one cpu. Each reservation has its whole budget in each of its periods, counted from the frame's begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// The minor frame, ns: every period is a multiple of it.
    pub minor: Ns,
    /// The major frame, ns: all windows are repeated after it.
    pub major: Ns,
    /// The windows without a gap, from 0 to the major frame.
    pub slots: Vec<Slot>,
}

/// Why reservations have no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramesError {
    /// Their periods have a long least common multiple.
    #[error("their periods fit into no common frame of {} s or less", Frames::LONGEST / 1_000_000_000)]
    Long,
    /// They are more than the cpu.
    #[error("their budgets are more than all of the cpu")]
    Over,
    /// A budget, a window or a gap that is too short to switch in.
    #[error("a window of their frame would be {} us long, and the least is {} us", *.0 as f64 / 1e3, Frames::SHORTEST / 1_000)]
    Short(Ns),
    /// The kernel has fewer windows.
    #[error(
        "their frame needs more than the {0} windows that this kernel has; periods that are equal need the fewest"
    )]
    Many(usize),
}

impl Frames {
    /// The longest major frame, ns: a kernel that switches late by more than a window goes on with the next frame only.
    pub const LONGEST: Ns = 10_000_000_000;
    /// The shortest window, ns.
    pub const SHORTEST: Ns = 10_000;

    /// The frame of these reservations (budget, period), all released with it and served by earliest deadline first, with at most so
    /// many windows.
    ///
    /// # Errors
    /// [`FramesError`].
    ///
    /// ```
    /// use timecell_analysis::linux::Frames;
    ///
    /// let frames = Frames::of(&[(10_000_000, 50_000_000), (60_000_000, 100_000_000)], 4)?;
    /// assert_eq!((frames.minor, frames.major), (50_000_000, 100_000_000));
    /// let windows: Vec<_> = frames.slots.iter().map(|slot| (slot.of, slot.length / 1_000_000)).collect();
    /// assert_eq!(windows, [(Some(0), 10), (Some(1), 60), (Some(0), 10), (None, 20)]);
    /// # Ok::<(), timecell_analysis::linux::FramesError>(())
    /// ```
    pub fn of(reservations: &[(Ns, Ns)], most: usize) -> Result<Frames, FramesError> {
        let periods = reservations.iter().map(|&(_, period)| period.max(1));
        let minor = periods.clone().fold(0, gcd);
        let major = periods
            .clone()
            .try_fold(1, |all: Ns, period| {
                (all / gcd(all, period)).checked_mul(period)
            })
            .filter(|major| *major <= Frames::LONGEST)
            .ok_or(FramesError::Long)?;
        // From here on each budget is served, and no period is so short that there is no end to them.
        let demand =
            |&(budget, period): &(Ns, Ns)| u128::from(budget) * u128::from(major / period.max(1));
        if reservations.iter().map(demand).sum::<u128>() > u128::from(major) {
            return Err(FramesError::Over);
        }
        if let Some(&(short, _)) = (reservations.iter()).find(|held| held.0 < Frames::SHORTEST) {
            return Err(FramesError::Short(short));
        }
        let mut left = vec![0; reservations.len()];
        let mut slots: Vec<Slot> = Vec::new();
        let mut now = 0;
        while now < major {
            for (left, &(budget, period)) in left.iter_mut().zip(reservations) {
                if now.is_multiple_of(period.max(1)) {
                    *left = budget;
                }
            }
            let ends =
                |at: usize| now - now % reservations[at].1.max(1) + reservations[at].1.max(1);
            let runs = slots.last().and_then(|slot| slot.of);
            let of = (0..left.len())
                .filter(|&at| left[at] > 0)
                .min_by_key(|&at| (ends(at), Some(at) != runs));
            let next = (0..left.len()).map(ends).min().unwrap_or(major);
            let length = of.map_or(next - now, |at| left[at].min(next - now));
            if let Some(at) = of {
                left[at] -= length;
            }
            let count = slots.len();
            match slots.last_mut().filter(|slot| slot.of == of) {
                Some(slot) => slot.length += length,
                None if count == most => return Err(FramesError::Many(most)),
                None => slots.push(Slot {
                    start: now,
                    length,
                    of,
                }),
            }
            now += length;
        }
        match slots.iter().find(|slot| slot.length < Frames::SHORTEST) {
            Some(slot) => Err(FramesError::Short(slot.length)),
            None => Ok(Frames {
                minor,
                major,
                slots,
            }),
        }
    }

    /// The supply of the reservation at this position; `None`: it has no window.
    pub fn supply(&self, of: usize) -> Option<Cyclic> {
        let own = self.slots.iter().filter(|slot| slot.of == Some(of));
        let windows: Vec<(Ns, Ns)> = own.map(|slot| (slot.start, slot.length)).collect();
        Cyclic::new(windows, self.major)
    }
}

/// The supply of windows that repeat, wherever in their frame an interval begins: exact.
///
/// The worst interval begins where a window ends. (Mok and Feng, "Real-time virtual resource: a timely abstraction for embedded
/// systems", EMSOFT 2002: static resource partitions.)
///
/// ```
/// use timecell_analysis::{Supply, linux::Frames};
///
/// let ms = 1_000_000;
/// let supply = Frames::of(&[(10 * ms, 50 * ms), (60 * ms, 100 * ms)], 4)?.supply(0).unwrap();
/// // Windows from 0 and 70: the longest time without one is 60, less than the 80 of a periodic reservation.
/// assert_eq!((supply.sbf(60 * ms), supply.sbf(61 * ms)), (0, ms));
/// assert_eq!(supply.inverse(ms), Some(61 * ms));
/// # Ok::<(), timecell_analysis::linux::FramesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cyclic {
    /// Begin and length of each window, with all that the windows before it supply.
    windows: Vec<(Ns, Ns, Ns)>,
    major: Ns,
    supplied: Ns,
}

impl Cyclic {
    fn new(windows: Vec<(Ns, Ns)>, major: Ns) -> Option<Cyclic> {
        let mut supplied = 0;
        let windows: Vec<(Ns, Ns, Ns)> = (windows.into_iter())
            .map(|(start, length)| {
                let before = supplied;
                supplied += length;
                (start, length, before)
            })
            .collect();
        (supplied > 0).then_some(Cyclic {
            windows,
            major,
            supplied,
        })
    }

    /// Supplied from a frame's begin to `t` later.
    fn until(&self, t: Ns) -> Ns {
        let within = t % self.major;
        let begun = self.windows.partition_point(|&(start, ..)| start <= within);
        let part = begun.checked_sub(1).map_or(0, |last| {
            let (start, length, before) = self.windows[last];
            before + (within - start).min(length)
        });
        (t / self.major)
            .saturating_mul(self.supplied)
            .saturating_add(part)
    }

    /// When so much is supplied, from a frame's begin; more than 0.
    fn when(&self, work: Ns) -> Option<Ns> {
        let (frames, part) = ((work - 1) / self.supplied, (work - 1) % self.supplied + 1);
        let last = self
            .windows
            .partition_point(|&(_, _, before)| before < part)
            - 1;
        let (start, _, before) = self.windows[last];
        frames
            .checked_mul(self.major)?
            .checked_add(start + part - before)
    }

    /// Where windows end, with all that is supplied until then.
    fn ends(&self) -> impl Iterator<Item = (Ns, Ns)> {
        (self.windows.iter()).map(|&(start, length, before)| (start + length, before + length))
    }
}

impl Supply for Cyclic {
    fn sbf(&self, t: Ns) -> Ns {
        let rest = t % self.major;
        let least = self
            .ends()
            .map(|(end, so_far)| self.until(end + rest) - so_far);
        let whole = (t / self.major).saturating_mul(self.supplied);
        whole.saturating_add(least.min().unwrap_or(0))
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        if work == 0 {
            return Some(0);
        }
        (self.ends())
            .map(|(end, so_far)| Some(self.when(so_far.checked_add(work)?)? - end))
            .try_fold(0, |most, one| Some(one?.max(most)))
    }

    fn rate(&self) -> (Ns, Ns) {
        (self.supplied, self.major)
    }

    fn cycle(&self) -> Option<Ns> {
        Some(self.major)
    }

    fn delay(&self) -> Option<Ns> {
        // Furthest behind where a window begins.
        let behind = |(end, so_far): (Ns, Ns)| {
            (self.windows.iter()).map(move |&(start, ..)| {
                let start = if start < end {
                    start + self.major
                } else {
                    start
                };
                let supplied = u128::from(self.until(start) - so_far);
                let at_rate = supplied * u128::from(self.major) / u128::from(self.supplied);
                (start - end).saturating_sub(at_rate as Ns)
            })
        };
        self.ends().flat_map(behind).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Ns = 10_000;

    #[test]
    fn reservations_without_a_frame_are_refused_for_their_reason() {
        let of = |all: &[(Ns, Ns)], most| Frames::of(all, most).unwrap_err();
        assert_eq!(
            of(&[(US, 7_000_000_001), (US, 7_000_000_000)], 4),
            FramesError::Long
        );
        assert_eq!(
            of(&[(6 * US, 10 * US), (5 * US, 10 * US)], 4),
            FramesError::Over
        );
        assert_eq!(of(&[(11 * US, 10 * US)], 4), FramesError::Over);
        assert_eq!(of(&[(US, 10 * US), (US, 20 * US)], 4), FramesError::Many(4));
        assert_eq!(of(&[(US - 1, 10 * US)], 4), FramesError::Short(US - 1));
        // Without going through ten seconds by the nanosecond.
        assert_eq!(
            of(&[(1, 2), (US, 10_000_000_000)], 4),
            FramesError::Short(1)
        );
        assert_eq!(of(&[(1, 1), (US, 10_000_000_000)], 4), FramesError::Over);
        assert_eq!(
            FramesError::Short(US - 1).to_string(),
            "a window of their frame would be 9.999 us long, and the least is 10 us"
        );
        assert_eq!(Frames::of(&[(US, US)], 1).unwrap().slots.len(), 1);
    }

    proptest! {
        #[test]
        fn each_has_its_budget_in_each_period_and_the_supply_is_that_of_the_worst_interval(
            asked in prop::collection::vec((1u64..6, prop::sample::select(vec![4u64, 6, 8, 12])), 1..4),
        ) {
            let all: Vec<(Ns, Ns)> = asked.iter().map(|&(q, p)| (q.min(p) * US, p * US)).collect();
            let share: f64 = all.iter().map(|&(q, p)| q as f64 / p as f64).sum();
            let frames = Frames::of(&all, 1_024);
            prop_assert_eq!(frames.is_err(), share > 1.0 + 1e-9);
            let Ok(frames) = frames else { return Ok(()) };
            // In units: every budget and period is a multiple of one.
            let mut owners = Vec::new();
            for slot in &frames.slots {
                prop_assert_eq!(slot.start, owners.len() as Ns * US);
                owners.extend(vec![slot.of; (slot.length / US) as usize]);
            }
            prop_assert_eq!(owners.len() as Ns * US, frames.major);
            for (at, &(budget, period)) in all.iter().enumerate() {
                for whole in owners.chunks((period / US) as usize) {
                    let got = whole.iter().filter(|of| **of == Some(at)).count() as Ns;
                    prop_assert_eq!(got * US, budget);
                }
                let supply = frames.supply(at).unwrap();
                let (supplied, per) = supply.rate();
                let delay = supply.delay().unwrap();
                let twice: Vec<_> = owners.iter().chain(&owners).chain(&owners).collect();
                for length in 0..=2 * owners.len() {
                    let of_window = |window: &[&Option<usize>]| {
                        window.iter().filter(|of| ***of == Some(at)).count() as Ns * US
                    };
                    let least = match length {
                        0 => 0,
                        _ => twice.windows(length).map(of_window).min().unwrap(),
                    };
                    let t = length as Ns * US;
                    prop_assert_eq!(supply.sbf(t), least);
                    prop_assert!(u128::from(least) * u128::from(per)
                        >= u128::from(supplied) * u128::from(t.saturating_sub(delay)));
                    if least > 0 {
                        let t = supply.inverse(least).unwrap();
                        prop_assert!(supply.sbf(t) == least && supply.sbf(t - 1) < least);
                    }
                }
            }
        }
    }
}
