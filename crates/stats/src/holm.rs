//! Several comparisons at once: one of twenty things that are alike looks different at 95 %.

/// Which of several differences are shown when all of them together shall be wrong with at most this probability, from the
/// p-value of each (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
/// 6(2), 1979).
pub fn holm(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_unstable_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut shown = vec![false; p_values.len()];
    for (passed, &index) in order.iter().enumerate() {
        if p_values[index] * (p_values.len() - passed) as f64 > level {
            break;
        }
        shown[index] = true;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.01 · 4, 0.0133 · 3 and 0.02 · 2 are below 0.05; without the second step the third would have to be below 0.0125.
    #[test]
    fn each_step_is_less_strict_than_the_one_before() {
        assert_eq!(
            holm(&[0.02, 0.01, 0.6, 0.0133], 0.05),
            [true, true, false, true]
        );
        assert_eq!(holm(&[0.02, 0.013, 0.6, 0.0133], 0.05), [false; 4]);
        assert_eq!(holm(&[0.04], 0.05), [true]);
        assert!(holm(&[], 0.05).is_empty());
    }
}
