//! Looking more than once: a run that goes on until its comparisons are decided looks at them several times, and would
//! find a difference by chance more often than it says if each look used the interval of a single one.

/// The confidence of the interval of each look so that all looks together keep 95 % (Pocock, "Group sequential methods in
/// the design and analysis of clinical trials", Biometrika 64(2), 1977, table 1; as repeated confidence intervals: Jennison
/// and Turnbull, "Interim analyses: the repeated confidence interval approach", Journal of the Royal Statistical Society B
/// 51(3), 1989). `None` for no look and for more than 5.
pub fn confidence_of_each_look(looks: usize) -> Option<f64> {
    const NOMINAL: [f64; 5] = [0.05, 0.0294, 0.0221, 0.0182, 0.0158];
    let nominal = NOMINAL.get(looks.checked_sub(1)?)?;
    Some(1.0 - nominal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// 20,000 walks without drift: the part that is ever outside its interval is 5 %, with a standard deviation of 0.15 %.
    #[test]
    fn all_looks_together_keep_their_promise() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        // The normal quantiles of the five levels, from the same table.
        for (looks, bound) in [(1, 1.960), (2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413)] {
            assert!(confidence_of_each_look(looks).is_some());
            let walks = 20_000;
            let outside = (0..walks).filter(|_| {
                let mut sum = 0.0;
                let steps = (1..=looks).map(|step| {
                    // Twelve uniform numbers make a normal one to well within the tested precision.
                    sum += (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                    (sum / (step as f64).sqrt()).abs() > bound
                });
                // All steps are walked, so that each walk takes as many numbers.
                steps.fold(false, |any, outside| any | outside)
            });
            let share = outside.count() as f64 / f64::from(walks);
            assert!((0.044..=0.056).contains(&share), "{looks}: {share}");
        }
        assert_eq!(confidence_of_each_look(0), None);
        assert_eq!(confidence_of_each_look(6), None);
    }
}
