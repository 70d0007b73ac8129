//! Thresholds: conditions on one figure of a run, such as `podman.latency.p99 > 100us`. The types and their text form are
//! here, parsing is next to it; whether one holds is not decided here.

mod parse;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Metric;
pub use parse::ThresholdError;

/// A condition that must not hold, such as `podman.latency.p99 > 100us`. Prints in the form that is parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// The cells it applies to; `None`: all of them.
    pub selector: Option<Selector>,
    /// The figure that is judged.
    pub figure: Figure,
    /// How it is compared.
    pub operator: Operator,
    /// The limit with which it is compared.
    pub limit: Limit,
}

impl Threshold {
    /// The condition that occurs exactly if this one does not.
    #[must_use]
    pub fn broken(self) -> Threshold {
        Threshold {
            operator: self.operator.complement(),
            ..self
        }
    }
}

/// Part of a name, in which `*` stands for any characters: of a trial, of `trial/cell`, of a cell or of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(pub String);

impl Selector {
    /// Whether it matches this name.
    pub fn matches(&self, name: &str) -> bool {
        glob(self.0.as_bytes(), name.as_bytes())
    }

    /// Whether it is a pattern, which may match cells without measurements.
    pub fn is_pattern(&self) -> bool {
        self.0.contains('*')
    }
}

/// Matches from the left, and goes back to the last `*` when a character does not fit.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// One number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// A statistic of its jobs' times.
    Job(Metric, Statistic),
    /// A statistic of its trial's start skew, over rounds.
    Skew(Statistic),
    /// The median time of its creation.
    CreationMedian,
    /// A statistic of its memory, in a run of single measurements.
    Memory(Statistic),
    /// A statistic of a time, in a run of single measurements.
    Time(Statistic),
    /// The longest time without supply from a budget.
    LongestGap,
    /// A count.
    Count(Count),
}

impl Figure {
    /// All figures.
    pub fn all() -> Vec<Figure> {
        let mut all = Vec::new();
        for statistic in Statistic::ALL {
            all.extend(Metric::ALL.map(|metric| Figure::Job(metric, statistic)));
            all.push(Figure::Skew(statistic));
            all.push(Figure::Memory(statistic));
            all.push(Figure::Time(statistic));
        }
        all.extend([Figure::CreationMedian, Figure::LongestGap]);
        all.extend(Count::ALL.map(Figure::Count));
        all
    }
}

impl Figure {
    /// The first part of its name: the metric, or the whole name of a count.
    pub fn metric(self) -> String {
        let name = self.to_string();
        name.split('.').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Job(metric, statistic) => {
                write!(f, "{}.{}", metric.word(), statistic.name())
            }
            Figure::Skew(statistic) => write!(f, "skew.{}", statistic.name()),
            Figure::CreationMedian => f.write_str("creation.median"),
            Figure::Memory(statistic) => write!(f, "memory.{}", statistic.name()),
            Figure::Time(statistic) => write!(f, "time.{}", statistic.name()),
            Figure::LongestGap => f.write_str("gap.max"),
            Figure::Count(count) => f.write_str(count.name()),
        }
    }
}

choice! {
    /// One number for many values.
    pub enum Statistic {
        /// The smallest.
        Min = "min",
        /// The median.
        Median = "median",
        /// Arithmetic mean.
        Mean = "mean",
        /// 90 % lie at or below it.
        P90 = "p90",
        /// 95 % lie at or below it.
        P95 = "p95",
        /// 99 % lie at or below it.
        P99 = "p99",
        /// 99.9 % lie at or below it.
        P999 = "p99.9",
        /// 99.99 % lie at or below it.
        P9999 = "p99.99",
        /// The largest.
        Max = "max",
        /// Standard deviation (divisor n - 1).
        Sd = "sd",
    }
}

impl Statistic {
    /// The probability of a quantile; `None` for other statistics.
    pub const fn probability(self) -> Option<f64> {
        match self {
            Statistic::Median => Some(0.5),
            Statistic::P90 => Some(0.9),
            Statistic::P95 => Some(0.95),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
            Statistic::P9999 => Some(0.9999),
            Statistic::Min | Statistic::Mean | Statistic::Max | Statistic::Sd => None,
        }
    }
}

choice! {
    /// Something counted.
    pub enum Count {
        /// Jobs that ended after their deadline.
        Late = "late",
        /// Activations that never began.
        Skipped = "skipped",
        /// Deadlines missed: late jobs and skipped activations together.
        Missed = "missed",
        /// Jobs that ran but are not on record, and activations that nothing explains.
        Lost = "lost",
        /// Page faults in the measuring loop.
        Faults = "faults",
        /// Cells that failed, of many that ran together.
        Failed = "failed",
    }
}

impl Count {
    /// Whether it is also known as a share of all activations.
    pub const fn has_share(self) -> bool {
        matches!(self, Count::Late | Count::Skipped | Count::Missed)
    }
}

/// How a figure is compared with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

impl Operator {
    /// All of them, the longer ones first.
    pub const ALL: [Operator; 4] = [
        Operator::AtLeast,
        Operator::AtMost,
        Operator::Above,
        Operator::Below,
    ];

    /// How it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Operator::Above => ">",
            Operator::AtLeast => ">=",
            Operator::Below => "<",
            Operator::AtMost => "<=",
        }
    }

    /// The opposite comparison.
    pub const fn complement(self) -> Operator {
        match self {
            Operator::Above => Operator::AtMost,
            Operator::AtLeast => Operator::Below,
            Operator::Below => Operator::AtLeast,
            Operator::AtMost => Operator::Above,
        }
    }

    /// Whether the comparison of `value` with `limit` is true.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Above => value > limit,
            Operator::AtLeast => value >= limit,
            Operator::Below => value < limit,
            Operator::AtMost => value <= limit,
        }
    }
}

/// The limit with which a figure is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A time in ns.
    Time(crate::Duration),
    /// A number of things.
    Number(u64),
    /// Percent of all activations, 0 to 100.
    Percent(f64),
    /// A size in bytes.
    Bytes(u64),
    /// Ratio to the baseline's, positive.
    Ratio(f64),
}

/// Units of sizes, the largest first, powers of 1,000 before powers of 1,024.
const SIZES: [(&str, u64); 7] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Time(time) => write!(f, "{time}"),
            Limit::Number(number) => write!(f, "{number}"),
            Limit::Percent(percent) => write!(f, "{percent}%"),
            Limit::Bytes(bytes) => {
                let exact = SIZES
                    .iter()
                    .find(|(_, size)| *bytes > 0 && bytes % size == 0);
                let (unit, size) = exact.unwrap_or(&("B", 1));
                write!(f, "{}{unit}", bytes / size)
            }
            Limit::Ratio(ratio) => write!(f, "{ratio}x"),
        }
    }
}

impl Limit {
    /// The unit of the figures that it limits, and its value in that unit.
    pub fn of(self) -> (Unit, f64) {
        match self {
            Limit::Time(time) => (Unit::Ns, time.ns() as f64),
            Limit::Number(number) => (Unit::Count, number as f64),
            Limit::Percent(percent) => (Unit::Share, percent / 100.0),
            Limit::Bytes(bytes) => (Unit::Bytes, bytes as f64),
            Limit::Ratio(ratio) => (Unit::Ratio, ratio),
        }
    }
}

choice! {
    /// Unit of a figure.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Unit {
        /// Nanoseconds.
        Ns = "ns",
        /// Bytes.
        Bytes = "bytes",
        /// A number of things.
        Count = "count",
        /// A share of all activations, 0 to 1.
        Share = "share",
        /// A ratio to the baseline's.
        Ratio = "ratio",
    }
}

/// As text, in files.
impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Threshold, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = text.parse();
        read.map_err(|error| serde::de::Error::custom(format!("`{text}`: {error}")))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(selector) = &self.selector {
            write!(f, "{}.", selector.0)?;
        }
        write!(f, "{} {} {}", self.figure, self.operator.sign(), self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, matches) in [
            ("podman", "podman", true),
            ("podman", "podman-rootless", false),
            ("podman*", "podman-rootless", true),
            ("*", "", true),
            ("*-ipc-*", "crun-ipc-100us", true),
            ("*a*b", "xaxbxb", true),
            ("a*b*c", "abbd", false),
            ("", "bare", false),
        ] {
            assert_eq!(
                Selector(pattern.to_owned()).matches(name),
                matches,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn in_files_it_is_text() {
        let read: Vec<Threshold> =
            serde_json::from_str("[\"podman.latency.p99 > 100us\"]").unwrap();
        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            "[\"podman.latency.p99 > 100us\"]"
        );
        let error = serde_json::from_str::<Threshold>("\"latency\"").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`latency`: character 8: the comparison is missing"),
            "{error}"
        );
    }

    #[test]
    fn sizes_print_in_the_largest_exact_unit() {
        for (bytes, text) in [
            (0, "0B"),
            (1_500, "1500B"),
            (2_000, "2kB"),
            (1 << 20, "1MiB"),
            (18_000_000, "18MB"),
        ] {
            assert_eq!(Limit::Bytes(bytes).to_string(), text);
        }
    }
}
