//! Whether one group of values is larger than another, by ranks alone.

/// The probability that `after` would stand at least as high among all values as it does if both groups were alike: the
/// exact one-sided rank-sum test of Mann and Whitney (1947), without any assumption on the distribution. An equal pair
/// counts half for each group, rounded against `after`. 1 where a group is empty.
///
/// The least possible value is 1 / C(n + m, m): 1/252 for 5 and 5 values.
pub fn larger(before: &[i64], after: &[i64]) -> f64 {
    let (n, m) = (before.len(), after.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let mut halves = 0;
    for value in after {
        for other in before {
            halves += match value.cmp(other) {
                std::cmp::Ordering::Greater => 2,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 0,
            };
        }
    }
    let wins: usize = halves / 2;
    let ways = ways(n, m);
    let all: f64 = ways.iter().sum();
    ways[wins..].iter().sum::<f64>() / all
}

/// In how many orders of n + m values the m win u of the n m comparisons, for each u: the recurrence of Mann and Whitney
/// over the largest value of all, which is one of the m (and wins n times) or one of the n.
fn ways(n: usize, m: usize) -> Vec<f64> {
    // counts[i][u]: i values of the first group, and as many of the second as rounds have gone by.
    let mut counts = vec![vec![1.0]; n + 1];
    for round in 1..=m {
        let mut next: Vec<Vec<f64>> = Vec::with_capacity(n + 1);
        for i in 0..=n {
            let mut of = vec![0.0; i * round + 1];
            for (u, count) in counts[i].iter().enumerate() {
                of[u + i] += count;
            }
            if i > 0 {
                for (u, count) in next[i - 1].iter().enumerate() {
                    of[u] += count;
                }
            }
            next.push(of);
        }
        counts = next;
    }
    counts.swap_remove(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_groups_are_as_tabled() {
        // C(10, 5) = 252 orders; the highest one, and the two highest.
        assert!((larger(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]) - 1.0 / 252.0).abs() < 1e-12);
        assert!((larger(&[1, 2, 3, 4, 6], &[5, 7, 8, 9, 10]) - 2.0 / 252.0).abs() < 1e-12);
        let all_before: Vec<i64> = (0..10).collect();
        assert!((larger(&all_before, &[20, 21, 22, 23, 24]) - 1.0 / 3003.0).abs() < 1e-12);
        // Mann and Whitney's table: n = m = 4, U <= 2 has 0.057.
        assert!((larger(&[1, 2, 3, 6], &[4, 5, 7, 8]) - 0.057).abs() < 5e-4);
    }

    #[test]
    fn alike_groups_are_not_larger() {
        assert!(larger(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]) > 0.4);
        assert!((larger(&[6, 7, 8], &[1, 2, 3]) - 1.0).abs() < 1e-12);
        assert!((larger(&[], &[1]) - 1.0).abs() < 1e-12);
    }

    proptest::proptest! {
        #[test]
        fn it_is_what_counting_all_orders_gives(
            before in proptest::collection::vec(0i64..1_000_000, 1..5),
            after in proptest::collection::vec(0i64..1_000_000, 1..5),
        ) {
            let mut all: Vec<i64> = before.iter().chain(&after).copied().collect();
            all.sort_unstable();
            all.dedup();
            proptest::prop_assume!(all.len() == before.len() + after.len());
            let wins = |of: &dyn Fn(usize) -> bool| {
                let (mut wins, mut below) = (0, 0);
                for at in 0..all.len() {
                    if of(at) { wins += below } else { below += 1 }
                }
                wins
            };
            let own = wins(&|at| after.contains(&all[at]));
            let choices = (0u32..1 << all.len()).filter(|c| c.count_ones() as usize == after.len());
            let (mut higher, mut count) = (0.0, 0.0);
            for choice in choices {
                count += 1.0;
                if wins(&|at| choice >> at & 1 == 1) >= own {
                    higher += 1.0;
                }
            }
            proptest::prop_assert!((larger(&before, &after) - higher / count).abs() < 1e-12);
        }
    }
}
