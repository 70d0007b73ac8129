//! Mean and deviations of integer samples, without the cancellation that floating point would bring.

/// The mean in nanoseconds; `None` when there is no sample. The sum is exact, and whole nanoseconds are divided apart
/// from the rest, so that the mean never leaves the range of the samples by rounding.
pub(crate) fn mean(samples: &[i64]) -> Option<f64> {
    let (count, sum) = (samples.len() as i128, sum(samples));
    let (whole, rest) = (
        sum.checked_div_euclid(count)?,
        sum.checked_rem_euclid(count)?,
    );
    Some(whole as f64 + rest as f64 / count as f64)
}

/// The standard deviation in nanoseconds with the divisor n - 1; `None` with fewer than two samples.
pub(crate) fn standard_deviation(samples: &[i64]) -> Option<f64> {
    (samples.len() >= 2).then(|| {
        let squares: f64 = deviations(samples)
            .map(|deviation| deviation * deviation)
            .sum();
        (squares / (samples.len() - 1) as f64).sqrt()
    })
}

/// Each sample minus the mean, in nanoseconds. The difference is taken in integers (n·x - Σx), so that samples far
/// from zero, such as clock readings, lose nothing.
pub(crate) fn deviations(samples: &[i64]) -> impl Iterator<Item = f64> + Clone {
    let (count, sum) = (samples.len() as i128, sum(samples));
    samples
        .iter()
        .map(move |&sample| (count * i128::from(sample) - sum) as f64 / count as f64)
}

fn sum(samples: &[i64]) -> i128 {
    samples.iter().map(|&sample| i128::from(sample)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook sample 2 4 4 4 5 5 7 9: mean 5, squared deviations 32.
    #[test]
    fn mean_and_deviation_by_hand() {
        let samples = [2, 4, 4, 4, 5, 5, 7, 9];
        assert_eq!(mean(&samples), Some(5.0));
        assert!((standard_deviation(&samples).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    /// NIST StRD NumAcc3 and NumAcc4 in spirit: a large offset and a small deviation.
    #[test]
    fn an_offset_changes_no_deviation() {
        let offset = i64::MAX - 9;
        let samples: Vec<i64> = [2, 4, 4, 4, 5, 5, 7, 9]
            .iter()
            .map(|x| x + offset)
            .collect();
        assert!((standard_deviation(&samples).unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(mean(&[i64::MIN, i64::MAX]), Some(-0.5));
        let deviation = standard_deviation(&[i64::MIN, i64::MAX]).unwrap();
        assert!((deviation / (2.0_f64.powi(63) * 2.0_f64.sqrt()) - 1.0).abs() < 1e-12);
        assert_eq!(standard_deviation(&[7]), None);
        assert_eq!(mean(&[i64::MAX - 600; 3]), Some((i64::MAX - 600) as f64));
        assert_eq!(mean(&[]), None);
    }
}
