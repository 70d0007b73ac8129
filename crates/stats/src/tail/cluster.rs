//! Exceedances that belong together count once: declustering.

/// A job that exceeded a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceedance {
    /// Place of its round in the list of rounds.
    pub round: u32,
    /// Activation number within the round.
    pub activation: u32,
    /// Its value in ns.
    pub value_ns: i64,
}

/// The largest value of each cluster, in the order of time, and the extremal index.
///
/// Runs declustering with the run length that the data ask for (Ferro and Segers, "Inference for clusters of extreme
/// values", J. Royal Statistical Society B 65(2), 2003): the intervals estimator gives the share of exceedances that
/// begin a cluster (the extremal index, between 0 and 1), and the longest gaps separate as many clusters. An index
/// within 2/√n of 1 counts as 1. A round always begins a new cluster.
pub(super) fn decluster(in_order: &[Exceedance]) -> (Vec<i64>, f64) {
    let gap = |pair: &[Exceedance]| {
        (pair[0].round == pair[1].round)
            .then(|| pair[1].activation.saturating_sub(pair[0].activation).max(1))
    };
    let mut gaps: Vec<u32> = in_order.windows(2).filter_map(gap).collect();
    if gaps.is_empty() {
        return (in_order.iter().map(|one| one.value_ns).collect(), 1.0);
    }
    let index = extremal_index(&gaps);
    // Within the estimate's own noise of 1, jobs come one by one; merging neighbours would only bias the fit.
    if index > 1.0 - 2.0 / (gaps.len() as f64).sqrt() {
        return (in_order.iter().map(|one| one.value_ns).collect(), 1.0);
    }
    let begun = in_order.len() - gaps.len();
    let wanted = (index * in_order.len() as f64).ceil() as usize;
    gaps.sort_unstable_by_key(|&gap| std::cmp::Reverse(gap));
    // Gaps longer than this separate clusters; among equal gaps none does.
    let run = gaps.get(wanted.saturating_sub(begun)).copied().unwrap_or(0);
    let mut largest = vec![in_order[0].value_ns];
    for pair in in_order.windows(2) {
        match (gap(pair), largest.last_mut()) {
            (Some(gap), Some(last)) if gap <= run => *last = (*last).max(pair[1].value_ns),
            _ => largest.push(pair[1].value_ns),
        }
    }
    (largest, index)
}

/// Ferro and Segers' intervals estimator from the gaps between exceedances, in jobs.
fn extremal_index(gaps: &[u32]) -> f64 {
    let n = gaps.len() as f64;
    let longest = gaps.iter().max().copied().unwrap_or(1);
    let shift = if longest <= 2 { 0.0 } else { 1.0 };
    let (mut sum, mut squares) = (0.0, 0.0);
    for &gap in gaps {
        let gap = f64::from(gap);
        sum += gap - shift;
        squares += (gap - shift) * (gap - 2.0 * shift);
    }
    if squares <= 0.0 {
        return 1.0;
    }
    (2.0 * sum * sum / (n * squares)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(activation: u32, value_ns: i64) -> Exceedance {
        Exceedance {
            round: 0,
            activation,
            value_ns,
        }
    }

    /// Bursts of three jobs, 1,000 apart give or take: each counts once, by its largest.
    #[test]
    fn bursts_count_once() {
        let mut random = 12_345_u64;
        let mut time = 0;
        let mut all = Vec::new();
        for burst in 0..100_i64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            time += 300 + ((random >> 33) % 1_400) as u32;
            all.extend([
                at(time, burst),
                at(time + 1, 1_000 + burst),
                at(time + 2, 5),
            ]);
        }
        let (largest, index) = decluster(&all);
        assert!((0.25..0.6).contains(&index), "{index}");
        let expected: Vec<i64> = (1_000..1_100).collect();
        let found = largest.iter().filter(|value| expected.contains(value));
        assert_eq!(found.count(), 100);
    }

    #[test]
    fn what_stands_alone_stays() {
        assert!(decluster(&[]).0.is_empty());
        assert_eq!(decluster(&[at(3, 9)]).0, [9]);
        let two_rounds = [
            at(1, 4),
            Exceedance {
                round: 1,
                ..at(1, 5)
            },
        ];
        assert_eq!(decluster(&two_rounds).0, [4, 5]);
    }
}
