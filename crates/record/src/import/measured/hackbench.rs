//! hackbench's text: each run ends in `Time: X`, in seconds. Several runs may follow one another in one file.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Source, decimal, fault};

pub(super) const READER: Reader = Reader::new("hackbench", "Text of hackbench", senses, read);

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("Running in ") && line.contains("mode with"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let mut values = Tally::default();
    let mut ended = 0_usize;
    let mut command = Vec::new();
    let mut announced = 0_usize;
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        if line.starts_with("Running in ") || line.starts_with("Each sender ") {
            announced += usize::from(line.starts_with("Running in "));
            if command.len() < 8 && !command.iter().any(|known| known == line) {
                command.push(line.to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("Time:") {
            let value_ns = decimal(rest.trim(), 1_000_000_000)
                .map_err(|what| fault(name, number, what, "hackbench writes seconds"))?;
            values.add(value_ns);
            ended += 1;
        }
    }
    if values.is_empty() {
        return Err(InputError::new(
            name,
            "cut short: there is no line `Time:`",
            "the tool that wrote it may have been stopped early",
        ));
    }
    let mut notes = Vec::new();
    if announced > ended {
        notes.push(format!(
            "{announced} runs begin, but {ended} end with a time"
        ));
    }
    let mut d = Distribution::new("run", "completion time", 1_000_000);
    values.fill(&mut d);
    Ok(Measured {
        command: (!command.is_empty()).then(|| command.join("; ")),
        distributions: vec![d],
        notes,
        ..Measured::by("hackbench")
    })
}
