//! The work of a job.

/// On a cache line of its own: where the stack happens to begin differs with the environment, and must not make one
/// cell look slower than another.
#[repr(align(64))]
struct Line(i32);

/// The thesis's dummy workload: `product += j * j` for j below `steps`, on a volatile 32-bit integer.
///
/// Each step loads and stores `product` in memory, as the C program's `volatile int` does; the wrapping
/// arithmetic is that of its compiled code.
#[inline(never)]
pub(crate) fn mac(steps: u32) -> i32 {
    let mut product = Line(0);
    // The compiler must not know that this is the stack: processors treat accesses relative to the stack pointer
    // in a way of their own, and whether it chose those would change the work by a factor from build to build.
    let at: *mut i32 = std::hint::black_box(&raw mut product.0);
    for j in 0..steps {
        let j = j.cast_signed();
        // SAFETY: `at` points to the local above and nothing else refers to it during the loop.
        unsafe { at.write_volatile(at.read_volatile().wrapping_add(j.wrapping_mul(j))) };
    }
    // SAFETY: as above.
    unsafe { at.read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_sum_of_squares() {
        assert_eq!(mac(0), 0);
        assert_eq!(mac(4), 14);
        let exact: i64 = (0..100_000i64).map(|j| j * j).sum();
        assert_eq!(mac(100_000), exact as i32, "wraps as two's complement");
    }
}
