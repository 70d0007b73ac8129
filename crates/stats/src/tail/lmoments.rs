//! Sample L-moments: location, scale and asymmetry from order statistics, which one extreme value moves little.

/// The first L-moments of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LMoments {
    /// The mean.
    pub l1: f64,
    /// Half the mean difference of two.
    pub l2: f64,
    /// L-skewness l3 / l2.
    pub skewness: f64,
}

/// The unbiased estimates (Hosking, "L-moments", J. Royal Statistical Society B 52(1), 1990). `None` with fewer than
/// four values or when all are equal.
pub(super) fn lmoments(ascending: &[f64]) -> Option<LMoments> {
    let n = ascending.len() as f64;
    (ascending.len() >= 4).then_some(())?;
    let (mut b0, mut b1, mut b2) = (0.0, 0.0, 0.0);
    for (i, &x) in ascending.iter().enumerate() {
        let i = i as f64;
        b0 += x;
        b1 += x * i;
        b2 += x * i * (i - 1.0);
    }
    b0 /= n;
    b1 /= n * (n - 1.0);
    b2 /= n * (n - 1.0) * (n - 2.0);
    let l2 = 2.0 * b1 - b0;
    (l2 > 0.0 && l2.is_finite()).then(|| LMoments {
        l1: b0,
        l2,
        skewness: (6.0 * b2 - 6.0 * b1 + b0) / l2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 3, 4: mean 2.5; the mean difference of two is (3·1 + 2·2 + 1·3) / 6 = 5/3; symmetric.
    #[test]
    fn by_hand() {
        let found = lmoments(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((found.l1 - 2.5).abs() < 1e-12);
        assert!((found.l2 - 5.0 / 6.0).abs() < 1e-12);
        assert!(found.skewness.abs() < 1e-12);
        assert_eq!(lmoments(&[1.0, 2.0, 3.0]), None);
        assert_eq!(lmoments(&[5.0; 9]), None);
    }
}
