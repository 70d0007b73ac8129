//! Measured values with their counts, and conclusions from them when the tool cut its histogram off.

use super::excerpt;
use super::lines::SECOND;

/// The tool's word on values beyond its histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Their number; `None` if the file only shows that there are some.
    pub count: Option<u64>,
    /// They are at least this, ns.
    pub at_least_ns: i64,
}

/// The tool's own figures, which may know more than its histogram does.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Said {
    /// Smallest value, ns.
    pub min_ns: Option<i64>,
    /// Mean, ns, as precise as the tool printed it.
    pub mean_ns: Option<f64>,
    /// Largest value, ns.
    pub max_ns: Option<i64>,
    /// Values measured.
    pub cycles: Option<u64>,
}

impl Said {
    /// Whether these can be later figures of the same series, in units of `unit_ns`, or a clause that says why not.
    pub(super) fn follows(&self, before: &Said, unit_ns: i64) -> Result<(), String> {
        let falls = |before: Option<i64>, now: Option<i64>| {
            before.zip(now).is_some_and(|(before, now)| now < before)
        };
        let cycles = before.cycles.zip(self.cycles);
        let stand_still = cycles.is_some_and(|(before, now)| now == before);
        let means = before.mean_ns.zip(self.mean_ns);
        let differ = means.is_some_and(|(before, now)| (now - before).abs() > unit_ns as f64);
        Err(if cycles.is_some_and(|(before, now)| now < before) {
            "its cycles fall"
        } else if falls(before.max_ns, self.max_ns) {
            "its maximum falls"
        } else if falls(self.min_ns, before.min_ns) {
            "its minimum rises"
        } else if stand_still
            && (falls(self.max_ns, before.max_ns) || falls(before.min_ns, self.min_ns) || differ)
        {
            "its figures change while its cycles stand still"
        } else {
            return Ok(());
        }
        .to_owned())
    }
}

/// The values of one thread, cpu or task.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Name, unique in its file, such as `thread 0` or `irq, cpu 1`.
    pub name: String,
    /// The quantity, such as `wake-up latency`.
    pub quantity: String,
    /// The cpu, if the file names one.
    pub cpu: Option<u32>,
    /// Each value in ns with its count, ascending, no count 0; a bucket is represented by the largest whole unit in it, or
    /// by the largest value if that is in it and known.
    pub counts: Vec<(i64, u64)>,
    /// Unit in which the tool counted, ns: each value may be larger by less than this.
    pub unit_ns: i64,
    /// Width of a bucket, ns; the unit unless buckets are wider.
    pub resolution_ns: i64,
    /// Values that the tool counted, or shows to exist, beyond its histogram.
    pub overflow: Option<Overflow>,
    /// The tool's own figures.
    pub said: Said,
    /// Quantiles that the tool names: shares and values in ns.
    pub quantiles: Vec<(f64, i64)>,
    /// The tool keeps only values longer than this, ns; `None` if it keeps every value.
    pub kept_above_ns: Option<i64>,
    /// Binary digits after the first that bins keep, if there were too many different values to keep each; `None` if each
    /// is kept.
    pub(super) bits: Option<u32>,
}

/// A quantile of counted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// This bucket, ns.
    At(i64),
    /// Among the overflows: at least this, ns.
    Above(i64),
    /// The file does not contain it.
    Unknown,
}

impl Distribution {
    /// An empty distribution, in units of `unit_ns`.
    pub fn new(name: impl Into<String>, quantity: &str, unit_ns: i64) -> Distribution {
        Distribution {
            name: name.into(),
            quantity: quantity.to_owned(),
            cpu: None,
            counts: Vec::new(),
            unit_ns,
            resolution_ns: unit_ns,
            overflow: None,
            said: Said::default(),
            quantiles: Vec::new(),
            kept_above_ns: None,
            bits: None,
        }
    }

    /// Sets the counts from pairs in any order; equal values are added up and counts of 0 left out.
    pub fn fill(&mut self, pairs: impl IntoIterator<Item = (i64, u64)>) {
        let mut pairs: Vec<(i64, u64)> = pairs.into_iter().filter(|pair| pair.1 > 0).collect();
        pairs.sort_unstable();
        pairs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        self.counts = pairs;
    }

    /// Whether nothing is known of any value.
    pub fn is_empty(&self) -> bool {
        let figures = self.said.min_ns.is_some() || self.said.max_ns.is_some();
        self.counts.is_empty() && self.overflow.is_none() && !figures
    }

    /// Number of values in the histogram.
    pub fn counted(&self) -> u64 {
        let counts = self.counts.iter().map(|pair| pair.1);
        counts.fold(0, u64::saturating_add)
    }

    /// Number of values in the histogram and beyond it; `None` if the file does not say.
    pub fn total(&self) -> Option<u64> {
        match self.overflow {
            Some(Overflow { count: None, .. }) => None,
            Some(Overflow { count: Some(n), .. }) => Some(self.counted().saturating_add(n)),
            None => Some(self.counted()),
        }
    }

    /// The smallest value, ns: the tool's figure, else the lowest bucket.
    pub fn min_ns(&self) -> Option<i64> {
        let lowest = self.counts.first().map(|pair| pair.0);
        self.said.min_ns.or(lowest)
    }

    /// The largest value, ns: the tool's figure, else the highest bucket if nothing lies beyond.
    pub fn max_ns(&self) -> Option<i64> {
        let highest = self.counts.last().map(|pair| pair.0);
        self.said
            .max_ns
            .or(highest.filter(|_| self.overflow.is_none()))
    }

    /// The smallest figure of the file that this quantile cannot exceed, ns.
    pub fn quantile_at_most_ns(&self, probability: f64) -> Option<i64> {
        let above = self
            .quantiles
            .iter()
            .filter(|(share, _)| *share >= probability - 1e-9);
        above.map(|&(_, ns)| ns).chain(self.max_ns()).min()
    }

    /// The mean, ns: the tool's figure, else that of the buckets if nothing lies beyond.
    pub fn mean_ns(&self) -> Option<f64> {
        let complete = self.overflow.is_none() && !self.counts.is_empty();
        let own = || {
            let sum: f64 = self.counts.iter().map(|&(v, n)| v as f64 * n as f64).sum();
            sum / self.counted() as f64
        };
        self.said.mean_ns.or_else(|| complete.then(own))
    }

    /// The value of rank ⌈n·p⌉ among all values, including overflows.
    ///
    /// `probability` is a share strictly between 0 and 1. [`Reach::Above`] if the rank lies among the overflows,
    /// [`Reach::Unknown`] if the file has no histogram or does not say how many values it left out. Without a histogram it is the tool's own
    /// figure.
    pub fn quantile(&self, probability: f64) -> Reach {
        if self.counts.is_empty() && self.overflow.is_none() {
            let named = |(share, _): &&(f64, i64)| (share - probability).abs() < 1e-9;
            let own = self.quantiles.iter().find(named);
            return own.map_or(Reach::Unknown, |&(_, ns)| Reach::At(ns));
        }
        let Some(total) = self.total().filter(|&total| total > 0) else {
            return Reach::Unknown;
        };
        // The product of a count below 2^53 and a decimal share may be slightly above a whole number.
        let rank = ((total as f64 * probability) - 1e-9).ceil().max(1.0) as u64;
        let mut passed = 0_u64;
        for &(value, count) in &self.counts {
            passed = passed.saturating_add(count);
            if passed >= rank {
                return Reach::At(value);
            }
        }
        let beyond = self.overflow.map(|o| Reach::Above(o.at_least_ns));
        beyond.unwrap_or(Reach::Unknown)
    }

    /// Points (value in ns, share of values that reach it), overflows counted among those that do, so that the curve ends
    /// above 0 where the histogram was cut off. Empty without a histogram or a total. An iterator, since there may be
    /// millions.
    pub fn ccdf(&self) -> impl Iterator<Item = (i64, f64)> + Clone + '_ {
        let total = self.total().unwrap_or(0);
        let counts = if total > 0 { &self.counts[..] } else { &[] };
        let beyond = total
            - counts
                .iter()
                .map(|pair| pair.1)
                .fold(0, u64::saturating_add);
        let share = move |reached: u64| reached as f64 / total as f64;
        let mut reached = total;
        let within = counts.iter().map(move |&(value, count)| {
            let point = (value, share(reached));
            reached -= count;
            point
        });
        let overflow = self.overflow.filter(|_| beyond > 0);
        within.chain(overflow.map(|overflow| (overflow.at_least_ns, share(beyond))))
    }

    /// Takes values that were counted as cycles and are not in the histogram for overflows, which begin at this limit or above the last bucket.
    pub(super) fn overflow_of_cycles(&mut self, limit_ns: i64) {
        let end = self
            .counts
            .last()
            .map_or(0, |&(highest, _)| highest.saturating_add(self.unit_ns));
        let over = self
            .said
            .cycles
            .map_or(0, |cycles| cycles.saturating_sub(self.counted()));
        self.overflow = (over > 0).then_some(Overflow {
            count: Some(over),
            at_least_ns: limit_ns.max(end),
        });
    }

    /// Takes a percentile that the tool names.
    pub(super) fn named(&mut self, percent: &str, ns: i64) -> Result<(), String> {
        let share = percent
            .trim()
            .parse::<f64>()
            .ok()
            .map(|percent| percent / 100.0);
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        let share = share.ok_or_else(|| format!("`{}` is not a percentile", excerpt(percent)))?;
        if self.quantiles.iter().any(|known| known.0 == share) || self.quantiles.len() == 1_000 {
            return Err(format!(
                "the percentile `{}` occurs twice, so {SECOND}",
                excerpt(percent)
            ));
        }
        self.quantiles.push((share, ns));
        Ok(())
    }

    /// Moves counts from the lower ends of buckets that are `width_ns` wide to the largest whole unit in them, so that
    /// no quantile is too small; the largest value, where it is known and nothing lies beyond, bounds the highest.
    pub(super) fn widen(&mut self, width_ns: i64) {
        self.resolution_ns += width_ns - self.unit_ns;
        let most = self.said.max_ns.filter(|_| self.overflow.is_none());
        for (value, _) in &mut self.counts {
            let lower = *value;
            let upper = lower.saturating_add(width_ns - self.unit_ns);
            let within = most.filter(|most| (lower..=upper).contains(most));
            *value = within.unwrap_or(upper);
        }
    }

    /// Marks that values lie beyond the histogram if the tool's largest value does but its counts do not say so.
    pub(super) fn notice_hidden_overflow(&mut self) {
        let Some(&(highest, _)) = self.counts.last() else {
            return;
        };
        let end = highest.saturating_add(self.unit_ns.max(1));
        if self.overflow.is_none() && self.said.max_ns.is_some_and(|max| max >= end) {
            self.overflow = Some(Overflow {
                count: None,
                at_least_ns: end,
            });
        }
    }

    /// Checks that its figures are consistent: min <= mean <= max, the histogram between them, and as many values in it as
    /// were counted. A clause says which are not.
    pub(super) fn consistent(&self) -> Result<(), String> {
        let Said {
            min_ns,
            mean_ns,
            max_ns,
            cycles,
        } = self.said;
        let [min, max] = [min_ns.unwrap_or(i64::MIN), max_ns.unwrap_or(i64::MAX)];
        let unless = |is_false: bool, what: String| if is_false { Err(what) } else { Ok(()) };
        unless(
            min_ns.is_some() && min > max,
            format!("the minimum of {min} ns exceeds the maximum of {max} ns"),
        )?;
        if let Some(mean) = mean_ns {
            // Means are those of values before they were truncated to whole units.
            let slack = self.resolution_ns.max(1);
            let (low, high) = (min.saturating_sub(slack), max.saturating_add(slack));
            unless(
                !(low as f64..=high as f64).contains(&mean),
                format!("the mean of {mean:.0} ns is not between minimum and maximum"),
            )?;
        }
        if let (Some(&(first, _)), Some(&(last, _))) = (self.counts.first(), self.counts.last()) {
            let lower = |value: i64| value.saturating_sub(self.resolution_ns - self.unit_ns);
            let (begin, end) = (lower(first), first.saturating_add(self.unit_ns.max(1)));
            unless(
                min >= end || (0..begin).contains(&min),
                format!("the minimum is {min} ns, but the histogram begins at {begin} ns"),
            )?;
            let held = lower(last);
            unless(
                max < held,
                format!("the maximum is {max} ns, but the histogram holds values of {held} ns"),
            )?;
        }
        if let Some(Overflow {
            count: Some(1..),
            at_least_ns,
        }) = self.overflow
        {
            unless(
                max < at_least_ns,
                format!(
                    "the maximum is {max} ns, but values of {at_least_ns} ns or more are counted beyond the histogram"
                ),
            )?;
        }
        let sum: u128 = self.counts.iter().map(|pair| u128::from(pair.1)).sum();
        unless(
            sum > u128::from(u64::MAX),
            "the histogram has higher counts than any tool can reach".to_owned(),
        )?;
        let has_histogram = !self.counts.is_empty() || self.overflow.is_some();
        let Some(cycles) = cycles.filter(|_| has_histogram) else {
            return Ok(());
        };
        // Values that are known to exist although they were not counted cannot be below counted ones.
        match self.total() {
            Some(total) => unless(
                total != cycles,
                format!(
                    "the histogram and its overflows hold {total} values, but {cycles} were counted"
                ),
            ),
            None => unless(
                self.counted() > cycles,
                format!(
                    "the histogram holds {} values, but {cycles} were counted",
                    self.counted()
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(pairs: &[(i64, u64)], over: Option<u64>) -> Distribution {
        let mut d = Distribution::new("t", "latency", 1);
        d.fill(pairs.iter().copied());
        d.overflow = Some(Overflow {
            count: over,
            at_least_ns: 100,
        });
        d
    }

    #[test]
    fn a_quantile_among_the_overflowed_is_above_the_limit_and_never_the_last_bucket() {
        let d = cut(&[(10, 98), (20, 1)], Some(1));
        assert_eq!(d.quantile(0.5), Reach::At(10));
        assert_eq!(d.quantile(0.99), Reach::At(20));
        assert_eq!(d.quantile(0.999), Reach::Above(100));
        assert_eq!((d.max_ns(), d.mean_ns()), (None, None));
        assert_eq!(
            d.ccdf().collect::<Vec<_>>(),
            [(10, 1.0), (20, 0.02), (100, 0.01)]
        );
    }

    #[test]
    fn an_unknown_number_of_overflows_leaves_no_quantile() {
        let d = cut(&[(10, 98)], None);
        assert_eq!(d.quantile(0.5), Reach::Unknown);
        assert_eq!(d.total(), None);
        assert_eq!(d.ccdf().next(), None);
        let mut hidden = Distribution::new("t", "latency", 1_000);
        hidden.fill([(5_000, 10)]);
        hidden.said.max_ns = Some(5_900);
        hidden.notice_hidden_overflow();
        assert_eq!(hidden.overflow, None);
        hidden.said.max_ns = Some(6_000);
        hidden.notice_hidden_overflow();
        assert_eq!(
            hidden.overflow,
            Some(Overflow {
                count: None,
                at_least_ns: 6_000
            })
        );
    }

    proptest! {
        /// Cutting a histogram off anywhere never lowers a quantile: it stays the same or becomes "above".
        #[test]
        fn cutting_off_never_flatters(
            values in prop::collection::vec(0i64..200, 1..80),
            limit in 1i64..200,
            percent in 1u32..100,
        ) {
            let p = f64::from(percent) / 100.0;
            let mut whole = Distribution::new("t", "latency", 1);
            whole.fill(values.iter().map(|&v| (v, 1)));
            let mut part = Distribution::new("t", "latency", 1);
            part.fill(values.iter().filter(|v| **v < limit).map(|&v| (v, 1)));
            let over = values.iter().filter(|v| **v >= limit).count() as u64;
            if over > 0 {
                part.overflow = Some(Overflow { count: Some(over), at_least_ns: limit });
            }
            let Reach::At(truth) = whole.quantile(p) else { panic!("a whole histogram has every quantile") };
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = (sorted.len() * percent as usize).div_ceil(100).max(1);
            prop_assert_eq!(truth, sorted[rank - 1]);
            match part.quantile(p) {
                Reach::At(value) => prop_assert_eq!(value, truth),
                Reach::Above(least) => prop_assert!(least <= truth),
                Reach::Unknown => prop_assert!(false, "the count of overflows is known"),
            }
        }
    }
}
