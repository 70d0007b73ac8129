use crate::Ns;

/// The least cpu time that a reservation is certain to supply.
///
/// `sbf` is non-decreasing, grows by at most 1 ns per ns, and `sbf(0)` is 0.
pub trait Supply {
    /// Supply-bound function: the least time supplied in any interval of `t` ns.
    fn sbf(&self, t: Ns) -> Ns;

    /// Exact pseudo-inverse: the least `t` with `sbf(t) >= work`; `None` if there is none or it leaves the range.
    ///
    /// `inverse(0)` is 0.
    fn inverse(&self, work: Ns) -> Option<Ns>;

    /// Long-run rate as a fraction (supplied, per), in lowest or other terms, `per > 0`, supplied <= per.
    fn rate(&self) -> (Ns, Ns);

    /// A length after which the supply repeats, if one is known: `sbf(t + cycle)` exceeds `sbf(t)` by `cycle` times
    /// the rate for every `t >= inverse(1)`. It lets demand at exactly the supplied rate be decided.
    fn cycle(&self) -> Option<Ns> {
        None
    }
}
