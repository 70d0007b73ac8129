//! Whether block maxima are independent and share one distribution, all by ranks, which heavy tails do not disturb.

use statrs::function::gamma::gamma_ur;

/// Ranks from 1, equal values sharing the mean of theirs.
pub(super) fn ranks(values: &[i64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|&place| values[place]);
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for ties in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (ties.len() as f64 + 1.0) / 2.0;
        for &place in ties {
            ranks[place] = rank;
        }
        before += ties.len();
    }
    ranks
}

/// P(X > x) of the chi-square distribution.
fn chi_square_tail(x: f64, degrees: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    gamma_ur(degrees / 2.0, x / 2.0)
}

/// The p-value of Ljung and Box's test on the ranks of a series ("On a measure of lack of fit in time series models",
/// Biometrika 65(2), 1978), over at most 10 lags. 1 when all values are equal.
pub(super) fn ljung_box(series: &[i64]) -> f64 {
    let n = series.len() as f64;
    let lags = 10.min(series.len() / 5).max(1);
    let ranks = ranks(series);
    let mean = (n + 1.0) / 2.0;
    let variance: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    let statistic: f64 = (1..=lags)
        .map(|lag| {
            let pairs = ranks.iter().zip(ranks.iter().skip(lag));
            let covariance: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
            (covariance / variance).powi(2) / (n - lag as f64)
        })
        .sum();
    chi_square_tail(n * (n + 2.0) * statistic, lags as f64)
}

/// The p-value of the two-sample Kolmogorov-Smirnov test, by the limit law with Stephens' correction for small samples
/// ("Use of the Kolmogorov-Smirnov, Cramer-von Mises and related statistics without extensive tables", J. Royal
/// Statistical Society B 32(1), 1970). Ties make it larger, never smaller.
pub(super) fn kolmogorov_smirnov(left: &[i64], right: &[i64]) -> f64 {
    if left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let (mut left, mut right) = (left.to_vec(), right.to_vec());
    left.sort_unstable();
    right.sort_unstable();
    let (n, m) = (left.len() as f64, right.len() as f64);
    let share = |sorted: &[i64], value| sorted.partition_point(|&x| x <= value) as f64;
    let distance = left
        .iter()
        .chain(&right)
        .map(|&value| (share(&left, value) / n - share(&right, value) / m).abs())
        .fold(0.0, f64::max);
    let root = (n * m / (n + m)).sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    if lambda < 0.2 {
        return 1.0;
    }
    let terms = (1..=100).map(|k| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 1.0 { 2.0 } else { -2.0 };
        sign * (-2.0 * (k * lambda).powi(2)).exp()
    });
    terms.sum::<f64>().clamp(0.0, 1.0)
}

/// The p-value of Kruskal and Wallis' test that groups share one distribution ("Use of ranks in one-criterion variance
/// analysis", J. American Statistical Association 47, 1952), corrected for ties. Groups of fewer than five are left out;
/// `None` with fewer than two others.
pub(super) fn kruskal_wallis(groups: &[&[i64]]) -> Option<f64> {
    let groups: Vec<&[i64]> = groups.iter().filter(|g| g.len() >= 5).copied().collect();
    (groups.len() >= 2).then_some(())?;
    let pooled = groups.concat();
    let ranks = ranks(&pooled);
    let n = pooled.len() as f64;
    let mean = (n + 1.0) / 2.0;
    let variance = ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>() / (n - 1.0);
    if variance <= 0.0 {
        return Some(1.0);
    }
    let mut from = 0;
    let mut statistic = 0.0;
    for group in &groups {
        let ranks = &ranks[from..from + group.len()];
        let size = group.len() as f64;
        statistic += size * (ranks.iter().sum::<f64>() / size - mean).powi(2);
        from += group.len();
    }
    Some(chi_square_tail(
        statistic / variance,
        groups.len() as f64 - 1.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn ranks_by_hand() {
        assert_eq!(ranks(&[30, 10, 30, 20]), [3.5, 1.0, 3.5, 2.0]);
        assert!(ranks(&[]).is_empty());
    }

    /// 3.841 is the 95 % point of one degree of freedom, 18.307 of ten.
    #[test]
    fn chi_square_by_table() {
        assert!((chi_square_tail(3.841, 1.0) - 0.05).abs() < 1e-4);
        assert!((chi_square_tail(18.307, 10.0) - 0.05).abs() < 1e-4);
    }

    /// Distance 1 between two samples of 10: lambda = 1 · (√5 + 0.12 + 0.11/√5).
    #[test]
    fn separate_samples_differ_and_equal_ones_do_not() {
        let low: Vec<i64> = (0..10).collect();
        let high: Vec<i64> = (100..110).collect();
        let lambda = 5.0_f64.sqrt() + 0.12 + 0.11 / 5.0_f64.sqrt();
        let expected = 2.0 * (-2.0 * lambda * lambda).exp();
        assert!((kolmogorov_smirnov(&low, &high) - expected).abs() < 1e-9);
        assert_eq!(kolmogorov_smirnov(&low, &low), 1.0);
        assert!(kruskal_wallis(&[&low, &high]).unwrap() < 0.001);
        assert!(kruskal_wallis(&[&low, &low]).unwrap() > 0.9);
        assert_eq!(kruskal_wallis(&[&low]), None);
        assert_eq!(kruskal_wallis(&[&[3; 9], &[3; 9]]), Some(1.0));
    }

    /// Independent series are refused about as often as the level says; a slow walk always is.
    #[test]
    fn levels_are_kept() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let (mut dependent, mut drifting, mut different) = (0, 0, 0);
        for _ in 0..400 {
            let series: Vec<i64> = (0..100)
                .map(|_| random.random_range(0..1_000_000))
                .collect();
            dependent += u32::from(ljung_box(&series) < 0.05);
            drifting += u32::from(kolmogorov_smirnov(&series[..50], &series[50..]) < 0.05);
            let groups: Vec<&[i64]> = series.chunks(25).collect();
            different += u32::from(kruskal_wallis(&groups).unwrap() < 0.05);
        }
        for refused in [dependent, drifting, different] {
            assert!(
                (4..=40).contains(&refused),
                "{dependent} {drifting} {different}"
            );
        }
        let mut level = 0;
        let walk: Vec<i64> = (0..100)
            .map(|_| {
                level += random.random_range(-100..=100);
                level
            })
            .collect();
        assert!(ljung_box(&walk) < 1e-6);
    }
}
