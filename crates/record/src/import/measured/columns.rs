//! Tables whose header names their columns: the log of one rt-app task, a row per loop with times in us, and the CSV of performance_test of
//! ROS 2, a row per second with the extremes and the mean of its messages.

use super::lines::{Line, Lines, Run, clock, count};
use super::sense::Reader;
use super::{Said, decimal, excerpt};

pub(super) const RT_APP: Reader =
    Reader::text::<RtApp>("rt-app-log", "The log of one task of rt-app", |line| {
        line.starts_with("#idx")
    });
pub(super) const PERFORMANCE_TEST: Reader = Reader::text::<PerformanceTest>(
    "performance-test",
    "CSV of performance_test of ROS 2",
    |line| line.starts_with("T_experiment,") && line.contains("latency_max"),
);

/// The names of the columns, empty before the header.
#[derive(Default)]
struct Columns(Vec<String>);

impl Columns {
    /// Takes the header.
    fn named<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        run: &Run,
    ) -> Result<Line, String> {
        self.0 = names.map(str::to_owned).collect();
        run.header().map(|()| Line::Own)
    }

    /// Checks that a row has a word for each of them.
    fn fit(&self, words: &[&str]) -> Result<(), String> {
        let (held, named) = (words.len(), self.0.len());
        match held == named {
            _ if named == 0 => Err("a row precedes the header".to_owned()),
            true => Ok(()),
            false => Err(format!(
                "cut short: {held} values, but the header names {named} columns"
            )),
        }
    }

    /// The index of the column whose name begins with this word.
    fn find(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|column| column.split(' ').next() == Some(name))
    }
}

/// Columns of rt-app that are read, and their quantities.
const DRAWN: [(&str, &str); 3] = [
    ("run", "execution time"),
    ("wu_lat", "wake-up latency"),
    ("slack", "slack before the deadline"),
];

#[derive(Default)]
pub(super) struct RtApp {
    columns: Columns,
    late: u64,
}

impl Lines for RtApp {
    fn tool(&self) -> &'static str {
        "rt-app"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        if let Some(rest) = line.strip_prefix('#').map(str::trim) {
            if rest.starts_with("idx") {
                return self.columns.named(rest.split_whitespace(), run);
            }
            if let Some(policy) = rest.strip_prefix("Policy :") {
                run.measured.command = Some(format!("task under {}", excerpt(policy.trim())));
            }
            return Ok(Line::Own);
        }
        if !line.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Line::Other);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        self.columns.fit(&words)?;
        for (name, quantity) in DRAWN {
            if let Some(at) = self.columns.find(name) {
                let ns = decimal(words[at], 1_000)?;
                run.series(name, quantity, 1_000)?.values.add(ns);
                self.late += u64::from(name == "wu_lat" && words[at] == "0");
            }
        }
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        if run.series.is_empty() {
            return Err(
                "the log has no row with `run`, `wu_lat` or `slack`: the task ran no loop"
                    .to_owned(),
            );
        }
        run.note("the tool truncated times to whole microseconds");
        if self.late > 0 {
            run.note(format!(
                "wu_lat is 0 in {} rows: rt-app writes 0 if the timer has already passed, so these are missed wake-ups, not early ones, or \
                 rows without a timer",
                self.late
            ));
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct PerformanceTest {
    columns: Columns,
    lost: u64,
    /// The sum of all latencies, ns.
    sum: f64,
}

impl Lines for PerformanceTest {
    fn tool(&self) -> &'static str {
        "performance_test"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        if words[0] == "T_experiment" {
            return self.columns.named(words.into_iter(), run);
        }
        if let Some(version) = line.strip_prefix("Performance Test Version:") {
            run.measured.version = Some(excerpt(version.trim()).into_owned());
        }
        if self.columns.0.is_empty() || words[0].parse::<f64>().is_err() {
            return Ok(Line::Other);
        }
        self.columns.fit(&words)?;
        let column = |name: &str| {
            let at = self.columns.find(name);
            at.ok_or_else(|| format!("the header names no column `{name}`"))
        };
        let ns = |name: &str| {
            let at = column(name)?;
            let units = [("(us)", 1_000), ("(ns)", 1), ("(s)", 1_000_000_000)];
            let unit = units
                .iter()
                .find(|unit| self.columns.0[at].ends_with(unit.0));
            decimal(words[at], unit.map_or(1_000_000, |unit| unit.1))
        };
        run.clock(&clock(&decimal(words[0], 1_000_000_000)?.to_string()))?;
        let received = count(words[column("received")?])?;
        self.lost = self.lost.saturating_add(count(words[column("lost")?])?);
        // Without a message its figures are no times.
        if received > 0 {
            let [min, mean, max] = [ns("latency_min")?, ns("latency_mean")?, ns("latency_max")?];
            let d = &mut run.series("messages", "latency of messages", 1)?.d;
            self.sum += mean as f64 * received as f64;
            let cycles = d.said.cycles.unwrap_or(0).saturating_add(received);
            d.said = Said {
                min_ns: Some(d.said.min_ns.map_or(min, |known| known.min(min))),
                mean_ns: Some(self.sum / cycles as f64),
                max_ns: Some(d.said.max_ns.map_or(max, |known| known.max(max))),
                cycles: Some(cycles),
            };
        }
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        if self.lost > 0 {
            run.note(format!(
                "{} messages were lost and have no latency",
                self.lost
            ));
        }
        Ok(())
    }
}
