//! Which hardware and kernel counters a run records with its jobs.

/// How cells are counted while they are measured; the events are in `host::counters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counters {
    /// Not at all.
    #[default]
    None,
    /// From outside, in windows of 10 ms; nothing is added to the measuring loop.
    Windows,
    /// By the measuring thread itself at each activation if one reading takes at most [`Counters::CHEAP_SHARE`] of the
    /// period; else in windows.
    WhereCheap,
    /// By the measuring thread itself at each activation, at any cost.
    Activations,
}

impl Counters {
    /// A reading is cheap if it takes at most 1/100 of the period.
    pub const CHEAP_SHARE: u64 = 100;

    /// Whether anything is counted.
    pub fn any(self) -> bool {
        self != Counters::None
    }
}
