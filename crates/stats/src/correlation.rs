//! How two series go together.

/// Pearson's product-moment correlation, -1 to 1; `None` for fewer than 3 pairs, for lists of unequal length, or where
/// one of the two never changes.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    if x.len() != y.len() || x.len() < 3 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    let product = xx * yy;
    (product > 0.0 && product.is_finite()).then(|| (xy / product.sqrt()).clamp(-1.0, 1.0))
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values sharing the mean of their ranks (Kendall and
/// Gibbons, "Rank Correlation Methods", 1990, chapter 3). `None` as for [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    pearson(&ranks(x), &ranks(y))
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = first as f64 + (same.len() as f64 + 1.0) / 2.0;
        for &place in same {
            ranks[place] = shared;
        }
        first += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Anscombe's first set (The American Statistician 27(1), 1973): 0.816 by Pearson; by ranks 0.818.
    const X: [f64; 11] = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    const Y: [f64; 11] = [
        8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68,
    ];

    #[test]
    fn published_values_come_out() {
        assert!((pearson(&X, &Y).unwrap() - 0.81642).abs() < 1e-5);
        assert!((spearman(&X, &Y).unwrap() - 0.81818).abs() < 1e-5);
    }

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }

    #[test]
    fn what_never_changes_goes_with_nothing() {
        assert_eq!(pearson(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(pearson(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[1.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn ranks_do_not_care_for_a_growing_scale(x in proptest::collection::vec(-50i32..50, 3..30)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let cubed: Vec<f64> = x.iter().map(|v| v * v * v).collect();
            if let Some(rho) = spearman(&x, &cubed) {
                prop_assert!((rho - 1.0).abs() < 1e-9);
            }
        }
    }
}
