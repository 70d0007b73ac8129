//! What a job does.

/// The thesis's dummy workload: `product += j * j` for j below `steps`, on a volatile 32-bit integer.
///
/// Each step loads and stores `product` in memory, as the C program's `volatile int` does; the wrapping
/// arithmetic is what its compiled code computes.
#[inline(never)]
pub(crate) fn mac(steps: u32) -> i32 {
    let mut product = 0i32;
    let at = &raw mut product;
    for j in 0..steps {
        let j = j.cast_signed();
        // SAFETY: `at` points to the local above and nothing else refers to it during the loop.
        unsafe { at.write_volatile(at.read_volatile().wrapping_add(j.wrapping_mul(j))) };
    }
    product
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
