//! `rtla timerlat hist` and `rtla osnoise hist`: a column per cpu and part (`IRQ-000`, `Thr-000`, `Usr-000`,
//! `CPU-000`), rows of buckets, then `over:`, `count:`, `min:`, `avg:`, `max:`, and in newer versions a block `ALL:`.

use model::InputError;

use super::{Distribution, Format, MOST_DISTRIBUTIONS, Measured, Overflow, decimal, fault, scaled};

const CUT: &str = "the tool that wrote it may have been stopped before its end";

pub(super) fn read(name: &str, text: &str) -> Result<Measured, InputError> {
    let mut lines = text
        .lines()
        .zip(1..)
        .skip_while(|(line, _)| !line.contains("# RTLA"));
    let Some((title, _)) = lines.next() else {
        return Err(InputError::new(
            name,
            "no line says `# RTLA ... histogram`",
            "was it run with --no-header?",
        ));
    };
    let osnoise = title.contains("osnoise");
    let mut unit_ns = 1_000;
    let mut duration = None;
    let mut table: Option<Table> = None;
    let mut notes = Vec::new();
    for (line, number) in lines {
        let at = |what: String| fault(name, number, what, "");
        if let Some(rest) = line.strip_prefix("# ") {
            if rest.starts_with("Time unit is nanoseconds") {
                unit_ns = 1;
            } else if let Some(time) = rest.strip_prefix("Duration:") {
                duration = Some(time.trim().to_owned());
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "ALL:" {
            // Sums over all cpus, which the columns hold already.
            break;
        }
        if first == "Index" {
            table = Some(Table::new(words, unit_ns, osnoise).map_err(at)?);
            continue;
        }
        let known = matches!(first, "over:" | "count:" | "min:" | "avg:" | "max:");
        let index = first.parse::<i64>().ok();
        let Some(table) = table.as_mut() else {
            if known || index.is_some() {
                return Err(at("a row stands before the line `Index ...`".to_owned()));
            }
            continue;
        };
        if !known && index.is_none() {
            notes.push(format!("line {number} is no part of the histogram: {line}"));
            continue;
        }
        let values: Vec<&str> = words.collect();
        if values.len() != table.columns.len() {
            let what = format!(
                "{} values in a table of {} columns",
                values.len(),
                table.columns.len()
            );
            return Err(fault(name, number, what, CUT));
        }
        match index {
            Some(index) => table.row(index, &values).map_err(at)?,
            None => table.footer(first, &values).map_err(at)?,
        }
    }
    let table = table.ok_or_else(|| {
        InputError::new(
            name,
            "cut short: no line `Index ...` follows the title",
            CUT,
        )
    })?;
    let distributions = table
        .finish(&mut notes)
        .map_err(|what| InputError::new(name, what, CUT))?;
    if distributions.is_empty() {
        return Err(InputError::new(name, "the histogram has no column", CUT));
    }
    if let Some(duration) = duration {
        notes.push(format!(
            "measured for {duration} (days hours:minutes:seconds)"
        ));
    }
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::RtlaHist),
        tool: if osnoise {
            "rtla osnoise hist"
        } else {
            "rtla timerlat hist"
        }
        .to_owned(),
        version: None,
        command: None,
        machine: None,
        distributions,
        notes,
    })
}

struct Table {
    unit_ns: i64,
    columns: Vec<Column>,
    indices: Vec<i64>,
    over: bool,
    complete: bool,
}

struct Column {
    distribution: Distribution,
    pairs: Vec<(i64, u64)>,
    over: u64,
}

impl Table {
    fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        unit_ns: i64,
        osnoise: bool,
    ) -> Result<Table, String> {
        let mut columns = Vec::new();
        for name in names {
            let known = name.split_once('-').and_then(|(part, cpu)| {
                let (word, quantity) = match part {
                    "IRQ" => ("irq", "timer latency"),
                    "Thr" => ("thread", "timer latency"),
                    "Usr" => ("return to user", "timer latency"),
                    "CPU" if osnoise => ("noise", "operating-system noise"),
                    _ => return None,
                };
                Some((word, quantity, cpu.parse::<u32>().ok()?))
            });
            let (word, quantity, cpu) = known.ok_or_else(|| {
                format!("a column is called `{name}`, not IRQ-, Thr-, Usr- or CPU-")
            })?;
            let mut distribution =
                Distribution::new(format!("{word}, cpu {cpu}"), quantity, unit_ns);
            distribution.cpu = Some(cpu);
            columns.push(Column {
                distribution,
                pairs: Vec::new(),
                over: 0,
            });
        }
        if columns.len() > MOST_DISTRIBUTIONS {
            return Err(format!("the table has {} columns", columns.len()));
        }
        Ok(Table {
            unit_ns,
            columns,
            indices: Vec::new(),
            over: false,
            complete: false,
        })
    }

    fn row(&mut self, index: i64, values: &[&str]) -> Result<(), String> {
        let value = scaled(index, self.unit_ns)?;
        self.indices.push(index);
        for (column, text) in self.columns.iter_mut().zip(values) {
            column.pairs.push((value, count(text)?));
        }
        Ok(())
    }

    fn footer(&mut self, key: &str, values: &[&str]) -> Result<(), String> {
        for (column, text) in self.columns.iter_mut().zip(values) {
            // A dash stands where nothing was measured.
            if *text == "-" {
                continue;
            }
            let said = &mut column.distribution.said;
            match key {
                "over:" => column.over = count(text)?,
                "count:" => said.cycles = Some(count(text)?),
                "min:" => said.min_ns = Some(decimal(text, self.unit_ns)?),
                "avg:" => said.mean_ns = Some(decimal(text, self.unit_ns)? as f64),
                _ => said.max_ns = Some(decimal(text, self.unit_ns)?),
            }
        }
        self.over |= key == "over:";
        self.complete |= key == "max:";
        Ok(())
    }

    fn finish(self, notes: &mut Vec<String>) -> Result<Vec<Distribution>, String> {
        if !self.over {
            return Err("cut short: the line `over:` is missing, which counts the values beyond the histogram".to_owned());
        }
        if !self.complete {
            notes.push(
                "the summary lines `count:` to `max:` are missing (--no-summary, or cut short)"
                    .to_owned(),
            );
        }
        let width = self
            .indices
            .iter()
            .fold(0_u64, |width, index| gcd(width, index.unsigned_abs()))
            .max(1);
        if width > 1 {
            notes.push(format!(
                "buckets are taken to be {width} wide, the largest width that fits the rows: the file does not say it"
            ));
        }
        let width_ns = scaled(i64::try_from(width).unwrap_or(i64::MAX), self.unit_ns)?;
        let highest = self.indices.iter().max().copied().unwrap_or(0);
        let end = scaled(highest, self.unit_ns)?.saturating_add(width_ns);
        let mut distributions = Vec::new();
        for column in self.columns {
            let mut d = column.distribution;
            d.resolution_ns = width_ns;
            d.fill(column.pairs);
            if column.over > 0 {
                d.overflow = Some(Overflow {
                    count: Some(column.over),
                    at_least_ns: end,
                });
            }
            if d.total() == Some(0) {
                d.said.mean_ns = None;
            } else if let (Some(cycles), Some(total)) = (d.said.cycles, d.total())
                && cycles != total
            {
                notes.push(format!(
                    "{}: `count:` says {cycles}, the rows and `over:` hold {total}",
                    d.name
                ));
            }
            distributions.push(d);
        }
        Ok(distributions)
    }
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no count"))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
