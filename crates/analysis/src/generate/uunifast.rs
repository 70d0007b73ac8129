//! Utilisations with a fixed sum.

use super::Random;

/// Utilisations that sum to `total`, uniform over all such vectors (UUniFast).
///
/// Bini & Buttazzo, "Measuring the performance of schedulability tests" (Real-Time Systems 2005). A single
/// utilisation may exceed 1 when `total` does: see [`uunifast_discard`]. The sum is met up to the rounding of
/// floating-point additions, n 2^-52 total at most. A total that is no positive number gives zeros.
///
/// ```
/// use timecell_analysis::generate::{Random, uunifast};
///
/// let utilizations = uunifast(5, 0.8, &mut Random::new(1));
/// assert!((utilizations.iter().sum::<f64>() - 0.8).abs() < 1e-12);
/// ```
pub fn uunifast(tasks: usize, total: f64, random: &mut Random) -> Vec<f64> {
    uunifast_of(tasks, total, || random.unit())
}

/// [`uunifast`] (Bini & Buttazzo 2005) with the caller's draws from [0, 1), of which it takes one less than there are tasks.
///
/// ```
/// let mut draws = [0.25, 0.5].into_iter();
/// let utilizations = timecell_analysis::generate::uunifast_of(3, 1.0, || draws.next().unwrap());
/// assert_eq!(utilizations, [0.5, 0.25, 0.25]);
/// ```
pub fn uunifast_of(tasks: usize, total: f64, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    let mut left = if total.is_finite() {
        total.max(0.0)
    } else {
        0.0
    };
    let mut utilizations = Vec::with_capacity(tasks);
    for after in (1..tasks).rev() {
        let next = left * libm::pow(draw(), 1.0 / after as f64);
        utilizations.push(left - next);
        left = next;
    }
    if tasks > 0 {
        utilizations.push(left);
    }
    utilizations
}

/// [`uunifast`] drawn again until no utilisation exceeds `cap`; `None` after `tries` vectors.
///
/// Davis & Burns, "Priority assignment for global fixed priority pre-emptive scheduling in multiprocessor real-time
/// systems" (RTSS 2009). Uniform over the vectors within the cap. Hopeless where these are few (a total near
/// `tasks * cap`): [`super::rand_fixed_sum`] needs no second try.
///
/// ```
/// use timecell_analysis::generate::{Random, uunifast_discard};
///
/// let utilizations = uunifast_discard(8, 2.0, 1.0, 1_000, &mut Random::new(1)).unwrap();
/// assert!(utilizations.iter().all(|&utilization| utilization <= 1.0));
/// assert_eq!(uunifast_discard(2, 2.1, 1.0, 1_000, &mut Random::new(1)), None);
/// ```
pub fn uunifast_discard(
    tasks: usize,
    total: f64,
    cap: f64,
    tries: u32,
    random: &mut Random,
) -> Option<Vec<f64>> {
    (0..tries)
        .map(|_| uunifast(tasks, total, random))
        .find(|utilizations| utilizations.iter().all(|&utilization| utilization <= cap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_the_same_mean() {
        let mut random = Random::new(11);
        let mut sums = [0.0; 4];
        for _ in 0..4_000 {
            for (sum, utilization) in sums.iter_mut().zip(uunifast(4, 0.8, &mut random)) {
                *sum += utilization / 4_000.0;
            }
        }
        // The mean is 0.2, its standard error 0.155 / sqrt(4000) = 0.0025.
        assert!(
            sums.iter().all(|mean| (mean - 0.2).abs() < 0.0125),
            "{sums:?}"
        );
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let mut random = Random::new(1);
        assert!(uunifast(0, 1.0, &mut random).is_empty());
        assert_eq!(uunifast(1, 0.5, &mut random), [0.5]);
        for total in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(uunifast(2, total, &mut random), [0.0, 0.0]);
        }
    }
}
