//! The interface of every reservation model: how much cpu time is guaranteed, and when.

use crate::Ns;

/// The least cpu time that a reservation is guaranteed to supply.
///
/// `sbf` is non-decreasing, grows by at most 1 ns per ns, and `sbf(0)` is 0. (Supply-bound functions: Mok, Feng and
/// Chen, RTAS 2001; Shin and Lee, RTSS 2003.) Any implementation may hold tasks: see [`inside`](crate::inside).
///
/// ```
/// use timecell_analysis::{Ns, Supply, Task, inside::fixed_priority};
///
/// /// Table-driven: the second half of every 10 ns, so that work may have to wait for 5 ns.
/// struct SecondHalf;
///
/// impl Supply for SecondHalf {
///     fn sbf(&self, t: Ns) -> Ns {
///         t / 10 * 5 + (t % 10).saturating_sub(5)
///     }
///     fn inverse(&self, work: Ns) -> Option<Ns> {
///         work.div_ceil(5).checked_mul(5)?.checked_add(work)
///     }
///     fn rate(&self) -> (Ns, Ns) {
///         (1, 2)
///     }
///     fn cycle(&self) -> Option<Ns> {
///         Some(10)
///     }
/// }
///
/// let responses = fixed_priority(&[Task::new(2, 10), Task::new(4, 30)], &SecondHalf).responses;
/// assert_eq!(responses, [Some(7), Some(18)]);
/// ```
pub trait Supply {
    /// Supply-bound function: the least time supplied in any interval of `t` ns.
    fn sbf(&self, t: Ns) -> Ns;

    /// Exact pseudo-inverse: the least `t` with `sbf(t) >= work`; `None` if there is none or it leaves the range.
    ///
    /// `inverse(0)` is 0.
    fn inverse(&self, work: Ns) -> Option<Ns>;

    /// Long-run rate as a fraction (supplied, per), in lowest or other terms, `per > 0`, supplied <= per.
    fn rate(&self) -> (Ns, Ns);

    /// A length after which the supply repeats, if one is known: `sbf(t + cycle)` exceeds `sbf(t)` by `cycle` times the
    /// rate for every `t >= inverse(1)`. It allows deciding demand at exactly the supplied rate.
    fn cycle(&self) -> Option<Ns> {
        None
    }

    /// A delay Δ in ns with sbf(t) >= (t - Δ) times the rate at every t, if one is known, at most 2^63. It tells how far
    /// demand below the rate must be compared with the supply; the least Δ serves best.
    fn delay(&self) -> Option<Ns> {
        None
    }
}
