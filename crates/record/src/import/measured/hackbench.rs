//! hackbench's text: each run ends in `Time: X`, in seconds. Several runs may follow one another in one file.

use model::InputError;

use super::{Distribution, Format, Measured, Timed, decimal, fault};

pub(super) fn read(name: &str, text: &str) -> Result<Measured, InputError> {
    let mut timed: Vec<Timed> = Vec::new();
    let mut command = Vec::new();
    let mut announced = 0_usize;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.starts_with("Running in ") || line.starts_with("Each sender ") {
            announced += usize::from(line.starts_with("Running in "));
            if !command.iter().any(|known| known == line) {
                command.push(line.to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("Time:") {
            let value_ns = decimal(rest.trim(), 1_000_000_000)
                .map_err(|what| fault(name, number, what, "hackbench writes seconds"))?;
            timed.push(Timed {
                at_ns: i64::try_from(timed.len()).unwrap_or(i64::MAX),
                value_ns,
            });
        }
    }
    if timed.is_empty() {
        return Err(InputError::new(
            name,
            "cut short: no line says `Time:`",
            "the tool that wrote it may have been stopped before its end",
        ));
    }
    let mut notes = Vec::new();
    if announced > timed.len() {
        notes.push(format!(
            "{announced} runs begin and {} end with a time",
            timed.len()
        ));
    }
    let mut d = Distribution::new("run", "completion time", 1_000_000);
    d.fill_timed(timed);
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::Hackbench),
        tool: "hackbench".to_owned(),
        version: None,
        command: (!command.is_empty()).then(|| command.join("; ")),
        machine: None,
        distributions: vec![d],
        notes,
    })
}
