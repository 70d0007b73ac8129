//! Logs with a line `Iteration N - Execution Time: X ms` per job, as the test program of a thesis on real-time
//! containers writes them. A number that does not follow its predecessor counts as a gap; one that is smaller
//! begins another run in the same file.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, MOST_DISTRIBUTIONS, Measured, Options, Source, decimal, excerpt, fault};

pub(super) const READER: Reader = Reader::new(
    "iterations",
    "Logs of lines `Iteration N - Execution Time: X ms`",
    senses,
    read,
);

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("Iteration ") && line.contains("Execution Time"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let mut runs: Vec<Tally> = Vec::new();
    let mut last: Option<u64> = None;
    let (mut missing, mut others, mut first_other) = (0_u64, 0_u64, 0);
    let mut decimals = 0;
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        let Some(rest) = line.strip_prefix("Iteration ") else {
            if !line.is_empty() {
                others += 1;
                first_other = if others == 1 { number } else { first_other };
            }
            continue;
        };
        let parts = rest
            .split_once(" - Execution Time:")
            .and_then(|(index, rest)| {
                let (value, unit) = rest.trim().split_once(' ')?;
                Some((index.trim(), value, unit.trim()))
            });
        let Some((index, value, unit)) = parts else {
            let fix = "a line looks like `Iteration 12 - Execution Time: 0.275 ms`";
            return Err(fault(
                name,
                number,
                "the line is cut short or of another format",
                fix,
            ));
        };
        let index: u64 = index.parse().map_err(|_| {
            fault(
                name,
                number,
                format!("`{}` is not the number of an iteration", excerpt(index)),
                "",
            )
        })?;
        let unit_ns = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            other => {
                let what = format!("the unit is `{}`", excerpt(other));
                return Err(fault(name, number, what, "it must be ns, us, ms or s"));
            }
        };
        let value_ns = decimal(value, unit_ns).map_err(|what| fault(name, number, what, ""))?;
        if value_ns < 0 {
            let what = format!("the execution time `{}` is negative", excerpt(value));
            return Err(fault(
                name,
                number,
                what,
                "the file may be edited or damaged",
            ));
        }
        let digits = value.split_once('.').map_or(0, |(_, digits)| digits.len());
        decimals = decimals.max(digits);
        match last {
            Some(last) if index > last => missing = missing.saturating_add(index - last - 1),
            Some(_) | None => {
                runs.push(Tally::default());
                // Programs count from 0 or from 1.
                missing = missing.saturating_add(index.saturating_sub(1));
            }
        }
        last = Some(index);
        let run = runs.last_mut().expect("a run has begun");
        run.add(value_ns);
        if runs.len() > MOST_DISTRIBUTIONS {
            return Err(fault(
                name,
                number,
                "the file contains more than 65,536 runs",
                "",
            ));
        }
    }
    if runs.is_empty() {
        let fix = "a line looks like `Iteration 12 - Execution Time: 0.275 ms`";
        return Err(InputError::new(name, "the log has no iteration", fix));
    }
    let mut notes = Vec::new();
    if missing > 0 {
        notes.push(format!(
            "{missing} iterations are missing, as their numbers show"
        ));
    }
    if others > 0 {
        notes.push(format!(
            "{others} other lines are ignored, the first is line {first_other}"
        ));
    }
    let several = runs.len() > 1;
    let distributions = runs.into_iter().zip(1..).map(|(values, number)| {
        let title = if several {
            format!("run {number}")
        } else {
            "iterations".to_owned()
        };
        // The last digit of milliseconds is what the log resolves.
        let resolution = 10_i64.pow(6 - decimals.min(6) as u32);
        let mut d = Distribution::new(title, "execution time", resolution);
        values.fill(&mut d);
        d
    });
    Ok(Measured {
        distributions: distributions.collect(),
        notes,
        ..Measured::by("iteration log")
    })
}
