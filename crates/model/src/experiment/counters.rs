//! Which counters of the machine a run keeps beside its jobs.

/// How cells are counted while they are measured; what is counted is in `host::counters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counters {
    /// Not at all.
    #[default]
    None,
    /// From outside, in windows of 10 ms; nothing is added to the measuring loop.
    Windows,
    /// By the measuring thread itself once for each activation, where one reading takes at most
    /// [`Counters::CHEAP_SHARE`] of the period; else in windows.
    WhereCheap,
    /// By the measuring thread itself once for each activation, whatever it costs.
    Activations,
}

impl Counters {
    /// A reading is cheap that takes at most one part in so many of the period: one in a hundred.
    pub const CHEAP_SHARE: u64 = 100;

    /// Whether anything is counted.
    pub fn any(self) -> bool {
        self != Counters::None
    }
}
