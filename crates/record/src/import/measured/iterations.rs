//! Logs with a line `Iteration N - Execution Time: X ms` per job, as the test program of a thesis on real-time
//! containers writes them. A number that does not follow its predecessor is a gap, and counted; one that falls
//! begins another run in the same file.

use model::InputError;

use super::{Distribution, Format, MOST_DISTRIBUTIONS, Measured, Timed, decimal, fault};

pub(super) fn read(name: &str, text: &str) -> Result<Measured, InputError> {
    let mut runs: Vec<Vec<Timed>> = Vec::new();
    let mut last: Option<u64> = None;
    let (mut missing, mut others, mut first_other) = (0_u64, 0_u64, 0);
    let mut decimals = 0;
    for (line, number) in text.lines().zip(1..) {
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
            let mend = "a line reads `Iteration 12 - Execution Time: 0.275 ms`";
            return Err(fault(
                name,
                number,
                "the line is cut short or another one",
                mend,
            ));
        };
        let index: u64 = index.parse().map_err(|_| {
            fault(
                name,
                number,
                format!("`{index}` is no number of an iteration"),
                "",
            )
        })?;
        let unit_ns = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            other => {
                let what = format!("the unit is `{other}`");
                return Err(fault(name, number, what, "it must be ns, us, ms or s"));
            }
        };
        let value_ns = decimal(value, unit_ns).map_err(|what| fault(name, number, what, ""))?;
        let digits = value.split_once('.').map_or(0, |(_, digits)| digits.len());
        decimals = decimals.max(digits);
        match last {
            Some(last) if index > last => missing = missing.saturating_add(index - last - 1),
            Some(_) | None => {
                runs.push(Vec::new());
                missing = missing.saturating_add(index);
            }
        }
        last = Some(index);
        let run = runs.last_mut().expect("a run was begun");
        run.push(Timed {
            at_ns: i64::try_from(run.len()).unwrap_or(i64::MAX),
            value_ns,
        });
        if runs.len() > MOST_DISTRIBUTIONS {
            return Err(fault(
                name,
                number,
                "the file holds more than 65,536 runs",
                "",
            ));
        }
    }
    if runs.is_empty() {
        let mend = "a line reads `Iteration 12 - Execution Time: 0.275 ms`";
        return Err(InputError::new(name, "the log has no iteration", mend));
    }
    let mut notes = Vec::new();
    if missing > 0 {
        notes.push(format!("{missing} iterations are missing by their numbers"));
    }
    if others > 0 {
        notes.push(format!(
            "{others} other lines are not read, the first is line {first_other}"
        ));
    }
    notes.push("the log has no times of day: values are in their order, not on a clock".to_owned());
    let several = runs.len() > 1;
    let distributions = runs.into_iter().zip(1..).map(|(timed, number)| {
        let title = if several {
            format!("run {number}")
        } else {
            "iterations".to_owned()
        };
        // The last digit of milliseconds is what the log resolves.
        let resolution = 10_i64.pow(6 - decimals.min(6) as u32);
        let mut d = Distribution::new(title, "execution time", resolution);
        d.fill_timed(timed);
        d
    });
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::Iterations),
        tool: "iteration log".to_owned(),
        version: None,
        command: None,
        machine: None,
        distributions: distributions.collect(),
        notes,
    })
}
