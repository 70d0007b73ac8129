//! From text to threshold: `[selector.]figure OP limit`. Every refusal names the character at which it occurred and how to
//! fix it.

use std::str::FromStr;

use super::{Count, Figure, Limit, Operator, SIZES, Selector, Statistic, Threshold};
use crate::{Duration, DurationError};

/// Why a text is not a threshold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThresholdError {
    /// Position in characters, from 1.
    pub at: usize,
    /// The fault.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}

impl std::fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "character {}: {}; {}", self.at, self.what, self.fix)
    }
}

impl std::error::Error for ThresholdError {}

const METRICS: &str = "latency, execution, response, skew, creation, memory, time and gap";
const COUNTS: &str = "late, skipped, missed, lost, faults and failed";
/// Metrics of which only one figure is recorded.
const ALONE: [(&str, &str); 2] = [
    ("creation", "of creation only the median is recorded"),
    ("gap", "of the gaps only the longest is recorded"),
];
const STATISTICS: &str = "min, median, mean, p90, p95, p99, p99.9, p99.99, max and sd";

/// A text, for locating its parts.
struct Text<'a>(&'a str);

impl Text<'_> {
    /// A fault at this byte.
    fn fault(&self, byte: usize, what: String, fix: impl Into<String>) -> ThresholdError {
        ThresholdError {
            at: self.0[..byte].chars().count() + 1,
            what,
            fix: fix.into(),
        }
    }

    /// Where `part`, a slice of the text, begins.
    fn place(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.0.as_ptr() as usize)
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        let all = Text(text);
        let Some(sign) = text.find(['<', '>', '=', '!']) else {
            return Err(all.fault(
                text.len(),
                "the comparison is missing".to_owned(),
                "write what must not occur, such as `latency.p99 > 100us`",
            ));
        };
        let rest = &text[sign..];
        let operator = Operator::ALL
            .into_iter()
            .find(|operator| rest.starts_with(operator.sign()))
            .filter(|operator| !rest[operator.sign().len()..].starts_with(['<', '>', '=', '!']));
        let Some(operator) = operator else {
            let length = rest
                .find(|c| !matches!(c, '<' | '>' | '=' | '!'))
                .unwrap_or(rest.len());
            return Err(all.fault(
                sign,
                format!("unknown comparison `{}`", &rest[..length]),
                "the comparisons are >, >=, < and <=",
            ));
        };
        let (selector, figure) = left(&all, text[..sign].trim())?;
        let limit = limit(&all, text[sign + operator.sign().len()..].trim(), figure)?;
        Ok(Threshold {
            selector,
            figure,
            operator,
            limit,
        })
    }
}

/// The selector and the figure. Names are matched from the right, as a selector may hold dots and statistics do.
fn left(all: &Text<'_>, text: &str) -> Result<(Option<Selector>, Figure), ThresholdError> {
    let found = Figure::all()
        .into_iter()
        .map(|figure| (figure, figure.to_string()))
        .filter(|(_, name)| {
            text.strip_suffix(name.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
        .max_by_key(|(_, name)| name.len());
    let Some((figure, name)) = found else {
        return Err(no_figure(all, text));
    };
    let before = text[..text.len() - name.len()].strip_suffix('.');
    let Some(before) = before else {
        return Ok((None, figure));
    };
    let start = all.place(text);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./*+".contains(c);
    if let Some((at, wrong)) = before.char_indices().find(|(_, c)| !allowed(*c)) {
        return Err(all.fault(
            start + at,
            format!("`{wrong}` cannot be part of a trial's or cell's name"),
            "names consist of letters, digits, -, _, ., + and /; * matches any text",
        ));
    }
    if before.is_empty() {
        return Err(all.fault(
            start,
            "the name before the dot is missing".to_owned(),
            format!("write a trial or cell, as in `podman.{figure}`, or remove the dot"),
        ));
    }
    Ok((Some(Selector(before.to_owned())), figure))
}

/// Finds the part of the left side that is not understood.
fn no_figure(all: &Text<'_>, text: &str) -> ThresholdError {
    let start = all.place(text);
    if text.is_empty() {
        let fix = format!("the metrics are {METRICS}, the counts {COUNTS}");
        return all.fault(start, "the figure is missing".to_owned(), fix);
    }
    let known = [
        "latency",
        "execution",
        "response",
        "start",
        "exit",
        "skew",
        "memory",
        "time",
    ];
    // The last metric that is a whole word: its statistic follows.
    let mut at = 0;
    let words: Vec<(usize, &str)> = text
        .split('.')
        .map(|word| {
            let place = at;
            at += word.len() + 1;
            (place, word)
        })
        .collect();
    let metric = words
        .iter()
        .rfind(|(_, word)| known.contains(word) || ALONE.iter().any(|(alone, _)| alone == word));
    if let Some(&(place, metric)) = metric {
        let statistic = text[place + metric.len()..].trim_start_matches('.');
        let at = start + text.len() - statistic.len();
        if let Some((_, what)) = ALONE.iter().find(|(alone, _)| *alone == metric) {
            let figures = Figure::all().into_iter();
            let whole = figures.map(|figure| figure.to_string());
            let whole = whole.filter(|name| name.split('.').next() == Some(metric));
            let fix = format!("write `{}`", whole.collect::<String>());
            return all.fault(at, (*what).to_owned(), fix);
        }
        let what = if statistic.is_empty() {
            format!("`{metric}` has no statistic")
        } else {
            format!("unknown statistic `{statistic}`")
        };
        return all.fault(at, what, format!("the statistics are {STATISTICS}"));
    }
    if let Some(count) = Count::ALL
        .iter()
        .find(|count| words.iter().any(|(_, word)| *word == count.name()))
    {
        let name = count.name();
        let what = format!("`{name}` is a count and has no statistic");
        return all.fault(start, what, format!("write `{name} > 0`"));
    }
    let (place, word) = before_statistic(&words)
        .or(words.last().copied())
        .unwrap_or((0, text));
    all.fault(
        start + place,
        format!("unknown metric `{word}`"),
        format!("the metrics are {METRICS}, the counts {COUNTS}"),
    )
}

/// The word before a statistic, which should have been a metric.
fn before_statistic<'a>(words: &[(usize, &'a str)]) -> Option<(usize, &'a str)> {
    let is_statistic = |word: &str| Statistic::ALL.iter().any(|s| s.name() == word);
    let at = words.iter().rposition(|(_, word)| is_statistic(word))?;
    words.get(at.checked_sub(1)?).copied()
}

fn limit(all: &Text<'_>, text: &str, figure: Figure) -> Result<Limit, ThresholdError> {
    let start = if text.is_empty() {
        all.0.len()
    } else {
        all.place(text)
    };
    let fault = |what: String, fix: String| all.fault(start, what, fix);
    if text.is_empty() {
        let fix = format!("write {}", example(figure));
        return Err(fault("the limit is missing".to_owned(), fix));
    }
    if let Some(number) = text.strip_suffix('x') {
        return ratio(number.trim_end(), figure)
            .map_err(|(what, fix)| fault(what.replace("{}", text), fix));
    }
    match figure {
        Figure::Count(count) => match text.strip_suffix('%').filter(|_| count.has_share()) {
            Some(number) => percent(number.trim_end()).ok_or_else(|| {
                let fix = "write a number from 0 to 100 and %, such as `0.1%`".to_owned();
                fault(format!("`{text}` is not a share"), fix)
            }),
            None => text.parse().map(Limit::Number).map_err(|_| {
                let fix = match count.has_share() {
                    true => {
                        "write a whole number without a unit, 0 or more, or a share such as `0.1%`"
                    }
                    false => "write a whole number without a unit, 0 or more",
                };
                fault(format!("`{text}` is not a count"), fix.to_owned())
            }),
        },
        Figure::Memory(_) => bytes(text).ok_or_else(|| {
            let what = format!("`{text}` is not a size");
            let fix = "write a whole number and a unit: B, kB, MB, GB, KiB, MiB or GiB".to_owned();
            fault(what, fix)
        }),
        _ => text.parse::<Duration>().map(Limit::Time).map_err(|error| {
            let error_text = error.to_string();
            let (what, fix) = error_text.split_once("; ").unwrap_or((&error_text, ""));
            let fix = match error {
                // A bare number may have been meant as a ratio as well.
                DurationError::NoUnit(_) if comparable(figure) => {
                    format!("{fix}; `{text}x` is a ratio to the baseline")
                }
                _ => fix.to_owned(),
            };
            fault(what.to_owned(), fix)
        }),
    }
}

/// An example of a limit of this figure.
fn example(figure: Figure) -> &'static str {
    match figure {
        Figure::Count(count) if count.has_share() => {
            "a count, such as `0`, or a share such as `0.1%`"
        }
        Figure::Count(_) => "a count, such as `0`",
        Figure::Memory(_) => "a size with its unit, such as `18MB`",
        _ if comparable(figure) => {
            "a time with its unit, such as `100us`, or a ratio such as `1.1x`"
        }
        _ => "a time with its unit, such as `100us`",
    }
}

/// Whether ratios of this figure have an interval.
fn comparable(figure: Figure) -> bool {
    matches!(figure, Figure::Job(_, Statistic::Median | Statistic::P99))
}

/// `{}` in the words stands for the whole limit.
fn ratio(number: &str, figure: Figure) -> Result<Limit, (String, String)> {
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok();
    let Some(value) = value.filter(|value| plain && value.is_finite() && *value > 0.0) else {
        let fix = "write a positive number and x, such as `1.1x`".to_owned();
        return Err(("`{}` is not a ratio".to_owned(), fix));
    };
    if comparable(figure) {
        return Ok(Limit::Ratio(value));
    }
    let what = format!(
        "`{figure}` cannot be compared with a baseline: only ratios of medians and of p99 have an interval"
    );
    let fix = match figure {
        Figure::Job(metric, _) => {
            let name = metric.word();
            format!(
                "write `{name}.median` or `{name}.p99`, or {}",
                example(figure)
            )
        }
        _ => format!("write {}", example(figure)),
    };
    Err((what, fix))
}

fn percent(number: &str) -> Option<Limit> {
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain)?;
    (value <= 100.0).then_some(Limit::Percent(value))
}

fn bytes(text: &str) -> Option<Limit> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let (_, size) = SIZES.iter().find(|(name, _)| *name == unit.trim())?;
    let bytes = number.parse::<u64>().ok()?.checked_mul(*size)?;
    Some(Limit::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use proptest::prelude::*;

    fn parse(text: &str) -> Threshold {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_part_is_understood() {
        let threshold = parse(" podman.latency.p99.9>=100 us ");
        assert_eq!(threshold.selector, Some(Selector("podman".to_owned())));
        assert_eq!(
            threshold.figure,
            Figure::Job(Metric::WakeupLatency, Statistic::P999)
        );
        assert_eq!(threshold.operator, Operator::AtLeast);
        assert_eq!(threshold.limit, Limit::Time(Duration::from_ns(100_000)));
        for (text, printed) in [
            ("latency.p99 > 100us", "latency.p99 > 100us"),
            ("*.execution.median<0.5ms", "*.execution.median < 500us"),
            (
                "pair/1-podman.response.max > 1s",
                "pair/1-podman.response.max > 1s",
            ),
            ("crun-ipc-1.5ms.skipped > 0", "crun-ipc-1.5ms.skipped > 0"),
            ("lost>0", "lost > 0"),
            ("late > 0.10 %", "late > 0.1%"),
            ("podman.skipped>=1%", "podman.skipped >= 1%"),
            ("latency.p99 > 1.10x", "latency.p99 > 1.1x"),
            ("memory.max > 18 MB", "memory.max > 18MB"),
            ("creation.median > 1s", "creation.median > 1s"),
            ("*kill*.time.p99 > 1.5ms", "*kill*.time.p99 > 1500us"),
            ("rt-cgroup.gap.max > 7ms", "rt-cgroup.gap.max > 7ms"),
            ("podman-*.failed>0", "podman-*.failed > 0"),
            ("skew.p99.99 <= 1ns", "skew.p99.99 <= 1ns"),
            ("latency.latency.max > 1us", "latency.latency.max > 1us"),
        ] {
            assert_eq!(parse(text).to_string(), printed);
        }
    }

    #[test]
    fn refusals_name_the_place_and_the_fix() {
        for (text, at, what, fix) in [
            ("", 1, "comparison is missing", "latency.p99 > 100us"),
            (
                "latency.p99 100us",
                18,
                "comparison is missing",
                "write what must not occur",
            ),
            (
                "latency.p99 == 1us",
                13,
                "unknown comparison `==`",
                ">, >=, < and <=",
            ),
            ("latency.p99 => 1us", 13, "unknown comparison `=>`", ">, >="),
            ("latency.p98 > 1us", 9, "unknown statistic `p98`", "p99.99"),
            (
                "a.latency > 1us",
                10,
                "`latency` has no statistic",
                "median",
            ),
            (
                "lateness.p99 > 1us",
                1,
                "unknown metric `lateness`",
                "latency, execution",
            ),
            (
                "bare.lateness.p99.9 > 1us",
                6,
                "unknown metric `lateness`",
                "latency",
            ),
            ("missed.p99 > 1", 1, "`missed` is a count", "missed > 0"),
            (
                "creation.p99 > 1ms",
                10,
                "only the median",
                "creation.median",
            ),
            ("gap.p99 > 1ms", 5, "only the longest", "write `gap.max`"),
            ("latency.p99 > 100", 15, "no unit", "`100us`"),
            ("latency.p99 > 100", 15, "no unit", "`100x` is a ratio"),
            ("latency.p99 > 1 parsec", 15, "unknown unit", "ns, us"),
            ("latency.p99 >", 14, "limit is missing", "`100us`"),
            (
                "latency.max > 1.1x",
                15,
                "cannot be compared",
                "latency.p99",
            ),
            ("missed > 2x", 10, "cannot be compared", "a count"),
            ("latency.p99 > -1x", 15, "`-1x` is not a ratio", "positive"),
            ("latency.p99 > 0x", 15, "`0x` is not a ratio", "positive"),
            ("missed > 1us", 10, "not a count", "such as `0.1%`"),
            ("late > 101%", 8, "`101%` is not a share", "0 to 100"),
            ("late > -1%", 8, "`-1%` is not a share", "0 to 100"),
            ("lost > 1%", 8, "`1%` is not a count", "whole number"),
            ("memory.max > 18", 14, "not a size", "MiB"),
            (
                ".latency.p99 > 1us",
                1,
                "name before the dot",
                "or remove the dot",
            ),
            ("a b.latency.p99 > 1us", 2, "` ` cannot be part", "letters"),
            ("> 1us", 1, "figure is missing", "latency"),
            (
                "\u{e4}\u{e4}.latency.p9 > 1us",
                12,
                "unknown statistic",
                "p90",
            ),
        ] {
            let error = text.parse::<Threshold>().expect_err(text);
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
            assert!(error.fix.contains(fix), "{text}: {error}");
        }
    }

    fn any_threshold() -> impl Strategy<Value = Threshold> {
        let figures = Figure::all();
        let figure = (0..figures.len()).prop_map(move |at| figures[at]);
        let selector = proptest::option::of("[a-z*][a-z0-9._/*+-]{0,8}".prop_map(Selector));
        (selector, figure, 0..4usize, any::<u64>(), any::<bool>()).prop_map(
            |(selector, figure, operator, number, relative)| Threshold {
                selector,
                figure,
                operator: Operator::ALL[operator],
                limit: match figure {
                    _ if relative && comparable(figure) => {
                        Limit::Ratio((number >> 12) as f64 / 1_000.0 + 0.001)
                    }
                    Figure::Count(count) if relative && count.has_share() => {
                        Limit::Percent((number % 100_001) as f64 / 1_000.0)
                    }
                    Figure::Count(_) => Limit::Number(number),
                    Figure::Memory(_) => Limit::Bytes(number),
                    _ => Limit::Time(Duration::from_ns((number >> 1) as i64)),
                },
            },
        )
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(threshold in any_threshold()) {
            prop_assert_eq!(threshold.to_string().parse(), Ok(threshold));
        }

        #[test]
        fn no_text_panics_and_every_refusal_is_inside(text in "\\PC{0,40}") {
            if let Err(error) = text.parse::<Threshold>() {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.at));
                prop_assert!(!error.fix.is_empty(), "{}", error);
            }
        }

        #[test]
        fn nearly_right_texts_do_not_panic(text in "[a-z.*]{0,6}(latency|missed|memory|skew)?[.]?(p99|p99.9|max)? ?[<>=!]{0,3} ?[0-9.]{0,4}(us|x|MB| )?") {
            if let Ok(threshold) = text.parse::<Threshold>() {
                prop_assert_eq!(threshold.to_string().parse(), Ok(threshold));
            }
        }
    }
}
