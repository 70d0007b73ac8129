//! Text of hackbench, and logs of iterations.

use super::lines::{Line, Lines, Run, count};
use super::sense::Reader;
use super::{decimal, excerpt, time};

pub(super) const HACKBENCH: Reader =
    Reader::text::<Hackbench>("hackbench", "Text of hackbench", |line| {
        line.starts_with("Running in ") && line.contains("mode with")
    });
pub(super) const ITERATIONS: Reader = Reader::text::<Iterations>(
    "iterations",
    "Logs of lines `Iteration N - Execution Time: X ms`",
    |line| line.starts_with("Iteration ") && line.contains("Execution Time"),
);

/// Each run ends in `Time: X`, in seconds.
#[derive(Default)]
pub(super) struct Hackbench {
    announced: usize,
    ended: usize,
    described: Vec<String>,
}

impl Lines for Hackbench {
    fn tool(&self) -> &'static str {
        "hackbench"
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        if line.starts_with("Running in ") || line.starts_with("Each sender ") {
            self.announced += usize::from(line.starts_with("Running in "));
            if self.described.len() < 8 && !self.described.iter().any(|known| known == line) {
                self.described.push(line.to_owned());
            }
            return Ok(Line::Own);
        }
        let Some(rest) = line.strip_prefix("Time:") else {
            return Ok(Line::Other);
        };
        let ns = time(rest.trim(), 1_000_000_000)?;
        run.series("run", "completion time", 1_000_000)?
            .values
            .add(ns);
        self.ended += 1;
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        if self.ended == 0 {
            return Err("cut short: there is no line `Time:`".to_owned());
        }
        if self.announced > self.ended {
            let (began, ended) = (self.announced, self.ended);
            run.lacks(format!("{began} runs begin, but {ended} end with a time"));
        }
        let described = self.described.join("; ");
        run.measured.command = (!described.is_empty()).then_some(described);
        Ok(())
    }
}

/// As the test program of a thesis on real-time containers writes them. A number that does not follow its predecessor counts as a gap; one
/// that is not larger begins another run in the same file.
#[derive(Default)]
pub(super) struct Iterations {
    last: Option<u64>,
    missing: u64,
    /// Step of its last digits, ns.
    step_ns: Option<i64>,
}

impl Lines for Iterations {
    fn tool(&self) -> &'static str {
        "iteration log"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        let Some(rest) = line.strip_prefix("Iteration ") else {
            return Ok(Line::Other);
        };
        let parts = rest.split_once(" - Execution Time:");
        let parts =
            parts.and_then(|(index, value)| Some((index.trim(), value.trim().split_once(' ')?)));
        let Some((index, (value, unit))) = parts else {
            return Err(
                "the line is cut short or not like `Iteration 12 - Execution Time: 0.275 ms`"
                    .to_owned(),
            );
        };
        let index = count(index)?;
        if self.last.is_some_and(|last| index <= last) {
            return Ok(Line::Next);
        }
        let known = super::Unit::NAMES
            .into_iter()
            .find(|(name, _)| *name == unit.trim());
        let Some((_, unit)) = known else {
            return Err(format!(
                "the unit is `{}`: it must be ns, us, ms or s",
                excerpt(unit)
            ));
        };
        let ns = decimal(value, unit.ns())?;
        if ns < 0 {
            return Err(format!(
                "the execution time `{}` is negative",
                excerpt(value)
            ));
        }
        // Programs count from 0 or from 1.
        let next = self.last.map_or(1, |last| last + 1);
        self.missing = self.missing.saturating_add(index.saturating_sub(next));
        self.last = Some(index);
        let digits = value.split_once('.').map_or(0, |(_, digits)| digits.len());
        let step_ns = (unit.ns() / 10_i64.pow(digits.min(9) as u32)).max(1);
        self.step_ns = Some(self.step_ns.map_or(step_ns, |known| known.min(step_ns)));
        run.series("iterations", "execution time", 1)?
            .values
            .add(ns);
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        let Some(series) = run.series.first_mut() else {
            return Err(
                "the log has no line like `Iteration 12 - Execution Time: 0.275 ms`".to_owned(),
            );
        };
        series.d.unit_ns = self.step_ns.unwrap_or(1);
        series.d.resolution_ns += series.d.unit_ns - 1;
        if self.missing > 0 {
            let missing = self.missing;
            run.lacks(format!(
                "{missing} iterations are missing, as their numbers show"
            ));
        }
        Ok(())
    }
}
