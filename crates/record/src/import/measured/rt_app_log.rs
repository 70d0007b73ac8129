//! The log of one rt-app task: a row per loop, columns named in the line `#idx ...`, times in us.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Source, decimal, excerpt, fault};

pub(super) const READER: Reader =
    Reader::new("rt-app-log", "The log of one task of rt-app", senses, read);

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("#idx"))
}

/// Columns that are read, and their quantities.
const DRAWN: [(&str, &str); 3] = [
    ("run", "execution time"),
    ("wu_lat", "wake-up latency"),
    ("slack", "slack before the deadline"),
];

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let mut policy = None;
    let mut columns: Option<Vec<String>> = None;
    let mut series: [Tally; DRAWN.len()] = Default::default();
    let mut late = 0_u64;
    while let Some((line, number)) = source.line()? {
        if let Some(rest) = line.trim().strip_prefix('#') {
            if rest.starts_with("idx") {
                let names: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
                if columns.as_ref().is_some_and(|known| *known != names) {
                    let what = "a second log begins: put each into its own file";
                    return Err(fault(name, number, what, ""));
                }
                columns = Some(names);
            } else if let Some(rest) = rest.trim().strip_prefix("Policy :") {
                policy = Some(excerpt(rest.trim()).into_owned());
            }
            continue;
        }
        let values: Vec<&str> = line.split_whitespace().collect();
        if values.is_empty() {
            continue;
        }
        let Some(columns) = &columns else {
            return Err(fault(
                name,
                number,
                "a row precedes the line `#idx ...`",
                "",
            ));
        };
        if values.len() != columns.len() {
            let what = format!(
                "{} values, but the header names {} columns",
                values.len(),
                columns.len()
            );
            return Err(fault(name, number, what, "the log may be cut short here"));
        }
        let of = |column: &str| {
            columns
                .iter()
                .position(|c| *c == column)
                .map(|at| values[at])
        };
        let time = |text: &str| {
            decimal(text, 1_000).map_err(|what| fault(name, number, what, "times are in us"))
        };
        for ((column, _), series) in DRAWN.iter().zip(&mut series) {
            if let Some(text) = of(column) {
                series.add(time(text)?);
            }
        }
        late += u64::from(of("wu_lat") == Some("0"));
    }
    let mut distributions = Vec::new();
    for ((column, quantity), values) in DRAWN.iter().zip(series) {
        if !values.is_empty() {
            let mut d = Distribution::new(*column, quantity, 1_000);
            values.fill(&mut d);
            distributions.push(d);
        }
    }
    if distributions.is_empty() {
        return Err(InputError::new(
            name,
            "the log has no row with `run`, `wu_lat` or `slack`",
            "the task ran no loop",
        ));
    }
    let mut notes = vec!["the tool truncated times to whole microseconds".to_owned()];
    if late > 0 {
        notes.push(format!(
            "wu_lat is 0 in {late} rows: rt-app writes 0 if the timer has already passed, so \
             these are missed wake-ups, not early ones, or rows without a timer"
        ));
    }
    Ok(Measured {
        command: policy.map(|policy| format!("task under {policy}")),
        distributions,
        notes,
        ..Measured::by("rt-app")
    })
}
