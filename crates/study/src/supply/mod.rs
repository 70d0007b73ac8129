//! Supply studies: evaluates the gaps of spinning threads. Crate `analysis` computes the least received in windows, and the lines below
//! it.

mod reaction;
mod readings;
mod study;
mod tried;

pub use reaction::supply_reaction;
pub(crate) use readings::supply_readings;
pub(crate) use study::span;
pub use study::supply_study;

use record::supply::Budget;
use text::units::exact;

/// A budget's name in tables: `30 ms / 100 ms`.
pub fn reservation(held: &Budget) -> String {
    format!("{} / {}", exact(held.budget_ns), exact(held.period_ns))
}
