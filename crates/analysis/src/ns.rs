//! Time in whole nanoseconds.

/// A span of time or an instant in integer nanoseconds.
pub type Ns = u64;

/// The largest time that a task or a reservation may have: 2^60 ns, 36 years.
///
/// Sums of a few such times fit in a [`Ns`]; products and sums over whole sets are taken in `u128` or checked.
pub const MAX_NS: Ns = 1 << 60;
