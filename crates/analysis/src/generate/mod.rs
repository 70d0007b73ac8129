//! Task sets at random, for acceptance curves and tests: utilisations that sum to a given total without bias, periods
//! spread over orders of magnitude, deadlines within them. Floating point is allowed here, since no verdict rests on
//! it; the results are integer nanoseconds.
//!
//! The same seed gives the same set on every machine: the generator is xoshiro256++, and powers and logarithms come
//! from a library of pure integer and IEEE 754 arithmetic instead of the system's.

mod rand_fixed_sum;
mod random;
mod recipe;
mod uunifast;

pub use rand_fixed_sum::{MAX_TASKS, rand_fixed_sum, rand_fixed_sum_of, rand_fixed_sum_within};
pub use random::Random;
pub use recipe::{GenerateError, Periods, Recipe, Utilizations};
pub use uunifast::{uunifast, uunifast_discard, uunifast_of};
