//! The log of one rt-app task: a row per loop, columns named in the line `#idx ...`, times in us.

use model::InputError;

use super::{Distribution, Format, Measured, Timed, decimal, fault};

/// Columns that are drawn, and what they are.
const DRAWN: [(&str, &str); 3] = [
    ("run", "execution time"),
    ("wu_lat", "wake-up latency"),
    ("slack", "slack before the deadline"),
];

pub(super) fn read(name: &str, text: &str) -> Result<Measured, InputError> {
    let mut policy = None;
    let mut columns: Option<Vec<&str>> = None;
    let mut series: Vec<Vec<Timed>> = vec![Vec::new(); DRAWN.len()];
    let mut origin = None;
    let mut late = 0_u64;
    for (line, number) in text.lines().zip(1..) {
        if let Some(rest) = line.trim().strip_prefix('#') {
            if rest.starts_with("idx") {
                columns = Some(rest.split_whitespace().collect());
            } else if let Some(rest) = rest.trim().strip_prefix("Policy :") {
                policy = Some(rest.trim().to_owned());
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
                "a row stands before the line `#idx ...`",
                "",
            ));
        };
        if values.len() != columns.len() {
            let what = format!(
                "{} values where the head names {} columns",
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
        let start = of("start").map(time).transpose()?.unwrap_or(0);
        let at_ns = start - *origin.get_or_insert(start);
        for ((column, _), series) in DRAWN.iter().zip(&mut series) {
            if let Some(text) = of(column) {
                series.push(Timed {
                    at_ns,
                    value_ns: time(text)?,
                });
            }
        }
        late += u64::from(of("wu_lat") == Some("0"));
    }
    let mut distributions = Vec::new();
    for ((column, quantity), timed) in DRAWN.iter().zip(series) {
        if !timed.is_empty() {
            let mut d = Distribution::new(*column, quantity, 1_000);
            d.fill_timed(timed);
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
    let mut notes = vec!["times were cut to whole microseconds by the tool".to_owned()];
    if late > 0 {
        notes.push(format!(
            "wu_lat is 0 in {late} rows: rt-app writes 0 where the timer had passed already, so these are no early \
             wake-ups but missed ones, or rows without a timer"
        ));
    }
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::RtAppLog),
        tool: "rt-app".to_owned(),
        version: None,
        command: policy.map(|policy| format!("task under {policy}")),
        machine: None,
        distributions,
        notes,
    })
}
