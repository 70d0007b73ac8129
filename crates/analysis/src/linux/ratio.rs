//! Bandwidths as the kernel computes them.

use serde::{Deserialize, Serialize};

use crate::Ns;

/// Bits behind the point of the kernel's bandwidths.
pub const BW_SHIFT: u32 = 20;

/// A whole cpu in the kernel's arithmetic.
pub const BW_UNIT: u64 = 1 << BW_SHIFT;

/// `floor(runtime 2^20 / period)`, as the kernel's `to_ratio` (kernel/sched/core.c); 0 for a period of 0.
///
/// Exact for values that the kernel takes; the shift here does not wrap for longer runtimes as the kernel's would. Times
/// in ns. The result of a runtime beyond the range reads as `u64::MAX`.
///
/// ```
/// use timecell_analysis::linux::to_ratio;
///
/// assert_eq!(to_ratio(1_000_000_000, 950_000_000), 996_147);
/// assert_eq!(to_ratio(100_000_000, 10_000_000), 104_857); // not 104_857.6: the kernel rounds down
/// ```
pub fn to_ratio(period: Ns, runtime: Ns) -> u64 {
    match (u128::from(runtime) << BW_SHIFT).checked_div(u128::from(period)) {
        None => 0,
        Some(ratio) => u64::try_from(ratio).unwrap_or(u64::MAX),
    }
}

/// A budget in every period, of a group or of the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Cpu time in every period, ns; `None` is "no limit" (-1 in the kernel's files).
    pub runtime: Option<Ns>,
    /// Period, ns.
    pub period: Ns,
}

impl Bandwidth {
    /// `runtime` in every `period`, ns.
    ///
    /// ```
    /// use timecell_analysis::linux::Bandwidth;
    ///
    /// assert_eq!(Bandwidth::new(950_000_000, 1_000_000_000), Bandwidth::default());
    /// ```
    pub const fn new(runtime: Ns, period: Ns) -> Bandwidth {
        Bandwidth {
            runtime: Some(runtime),
            period,
        }
    }

    /// The kernel's ratio; a whole cpu where there is no limit.
    ///
    /// ```
    /// use timecell_analysis::linux::Bandwidth;
    ///
    /// assert_eq!(Bandwidth::new(500_000, 1_000_000).ratio(), 1 << 19);
    /// ```
    pub fn ratio(&self) -> u64 {
        self.runtime
            .map_or(BW_UNIT, |runtime| to_ratio(self.period, runtime))
    }
}

impl Default for Bandwidth {
    /// `sched_rt_runtime_us` and `sched_rt_period_us` as the kernel sets them: 0.95 s in every second.
    fn default() -> Bandwidth {
        Bandwidth::new(950_000_000, 1_000_000_000)
    }
}
