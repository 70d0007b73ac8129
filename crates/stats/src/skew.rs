//! How far apart the starts of jobs that should start together are.

/// The largest minus the smallest start in nanoseconds; `None` when there is no start, 0 for one.
pub fn skew_ns(starts_ns: &[i64]) -> Option<u64> {
    Some(starts_ns.iter().max()?.abs_diff(*starts_ns.iter().min()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_the_range() {
        assert_eq!(skew_ns(&[30, -10, 20]), Some(40));
        assert_eq!(skew_ns(&[5]), Some(0));
        assert_eq!(skew_ns(&[]), None);
        assert_eq!(skew_ns(&[i64::MAX, i64::MIN]), Some(u64::MAX));
    }
}
