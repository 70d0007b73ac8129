//! cyclictest's text: the histogram of `-h`, `-H` and `--histfile`, and the summary lines `T: 0 ...` without one.
//!
//! `-H` with more than one thread adds a column of sums to rows, `# Total:`, `# Max Latencies:` and `# Histogram
//! Overflows:` only, so the number of threads is that of `# Min Latencies:`. Newer versions leave empty rows out,
//! older ones print `# Total:`; both are read. With -N values are nanoseconds, which the text does not say; the
//! caller may.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{
    Distribution, MOST_DISTRIBUTIONS, Measured, Options, Overflow, Said, Source, decimal, excerpt,
    fault, scaled,
};

pub(super) const READER: Reader = Reader {
    unit_is_open: true,
    ..Reader::new(
        "cyclictest-hist",
        "Text of `cyclictest -h`, `-H` and `--histfile`, and its lines `T: 0 ...`",
        senses,
        read,
    )
};

const CUT: &str = "the tool that wrote it may have been stopped early";
/// The minimum before the first measurement, in units.
const NO_MINIMUM: i64 = 1_000_000;

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("# Histogram") || is_status(line))
}

/// Whether a line is one of the tool's summary: `T: 0 ( 1234) P:80 I:1000 C: 10 Min: 3 Act: 5 Avg: 4 Max: 9`. Other tools
/// write lines that lack the interval.
pub(super) fn is_status(line: &str) -> bool {
    ["T:", " I:", "Min:", "Max:"]
        .iter()
        .all(|part| line.contains(part))
        && line.starts_with("T:")
}

/// The word after a key.
pub(super) fn after<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let at = line.find(key)? + key.len();
    line[at..].split_whitespace().next()
}

/// The number of the thread of a status line, or a clause that says why not.
pub(super) fn thread_number(line: &str) -> Result<u64, String> {
    let number = after(line, "T:").and_then(|n| n.trim_end_matches('(').parse().ok());
    number.ok_or_else(|| "the line does not begin with the number of a thread".to_owned())
}

/// The figures of a status line, or a clause that says why not.
pub(super) fn said(line: &str, unit_ns: i64) -> Result<Said, String> {
    let cycles = after(line, " C:")
        .map(|n| {
            n.parse::<u64>()
                .map_err(|_| format!("`{}` is not a number of cycles", excerpt(n)))
        })
        .transpose()?;
    let mut said = Said {
        cycles,
        ..Said::default()
    };
    if cycles != Some(0) {
        let time = |key| after(line, key).map(|n| decimal(n, unit_ns)).transpose();
        said.min_ns = time("Min:")?;
        said.mean_ns = time("Avg:")?.map(|ns| ns as f64);
        said.max_ns = time("Max:")?;
        if said.max_ns.is_none() {
            return Err("cut short: the line has no number after `Max:`".to_owned());
        }
    }
    Ok(said)
}

struct Found {
    unit_ns: i64,
    /// Pairs of bucket in ns and count for each column, including the column of sums of `-H`.
    columns: Vec<Tally>,
    last_row: usize,
    highest: i64,
    histogram: bool,
    footers: Vec<(String, Vec<String>, usize)>,
    status: Vec<(Distribution, u64)>,
    notes: Vec<String>,
}

fn read(source: &mut Source, options: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let mut found = Found {
        unit_ns: options.unit.map_or(1_000, |unit| unit.ns()),
        columns: Vec::new(),
        last_row: 1,
        highest: -1,
        histogram: false,
        footers: Vec::new(),
        status: Vec::new(),
        notes: Vec::new(),
    };
    while let Some((line, number)) = source.line()? {
        found
            .line(line, number)
            .map_err(|what| fault(name, number, what, ""))?;
    }
    let mut notes = std::mem::take(&mut found.notes);
    let distributions = if found.histogram {
        found.histogram(name, &mut notes)?
    } else {
        notes.push(
            "the file has no histogram, so there are no quantiles (-h or -H makes one)".to_owned(),
        );
        found.status.into_iter().map(|(d, _)| d).collect()
    };
    if options.unit.is_none() {
        notes.push(
            "values are read as microseconds, truncated by the tool; if -N was used, say --unit ns"
                .to_owned(),
        );
    }
    Ok(Measured {
        distributions,
        notes,
        ..Measured::by("cyclictest")
    })
}

impl Found {
    fn line(&mut self, line: &str, number: usize) -> Result<(), String> {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('#') {
            return self.comment(rest.trim(), number);
        }
        if is_status(line) {
            return self.status_line(line);
        }
        let Some((bucket, counts)) = line.split_once([' ', '\t']) else {
            return match line {
                "" => Ok(()),
                _ if self.histogram => Err(format!(
                    "`{}` is not a row of the histogram: the file may be cut short here",
                    excerpt(line)
                )),
                _ => Ok(()),
            };
        };
        if !self.histogram {
            // Load averages and the like, before the histogram.
            return Ok(());
        }
        let bucket: i64 = bucket
            .parse()
            .map_err(|_| format!("`{}` is not a bucket of the histogram", excerpt(bucket)))?;
        let value = scaled(bucket, self.unit_ns)?;
        let mut columns = 0;
        for text in counts.split_whitespace() {
            let count: u64 = text
                .parse()
                .map_err(|_| format!("`{}` is not a count", excerpt(text)))?;
            if self.last_row == 1 && columns == self.columns.len() {
                self.columns.push(Tally::default());
            }
            let column = self.columns.get_mut(columns);
            if let Some(column) = column.filter(|_| count > 0) {
                column.add_times(value, count);
            }
            columns += 1;
        }
        if columns != self.columns.len() {
            return Err(format!(
                "{columns} counts in a row of a histogram of {} columns",
                self.columns.len()
            ));
        }
        self.last_row = number;
        self.highest = self.highest.max(bucket);
        Ok(())
    }

    fn comment(&mut self, rest: &str, number: usize) -> Result<(), String> {
        if rest.starts_with("/dev/cpu_dma_latency")
            && !(self.status.is_empty() && self.columns.is_empty())
        {
            return Err("a second run begins: put each into its own file".to_owned());
        }
        if rest == "Histogram" {
            if self.histogram {
                return Err("a second histogram begins: put each into its own file".to_owned());
            }
            self.histogram = true;
            return Ok(());
        }
        let Some((key, values)) = rest.split_once(':') else {
            return Ok(());
        };
        let key = key.trim();
        if key.starts_with("Histogram Overflow at cycle") {
            // What follows are the cycles, one line for each thread.
        } else if key.starts_with("Thread ") {
            // The cycles at which values overflowed; their number is in `Histogram Overflows`.
        } else if matches!(
            key,
            "Total"
                | "Min Latencies"
                | "Avg Latencies"
                | "Max Latencies"
                | "Histogram Overflows"
                | "SMIs"
        ) {
            let values = values.split_whitespace().map(str::to_owned).collect();
            self.footers.push((key.to_owned(), values, number));
        } else if matches!(key, "Break thread" | "Break value") {
            self.notes.push(format!(
                "the tool stopped at a limit: {} {}",
                key.to_lowercase(),
                values.trim()
            ));
        }
        Ok(())
    }

    /// A thread's line; the tool repeats it while it runs, so the last one counts.
    fn status_line(&mut self, line: &str) -> Result<(), String> {
        let number = thread_number(line)?;
        let mut d = Distribution::new(format!("thread {number}"), "wake-up latency", self.unit_ns);
        d.said = said(line, self.unit_ns)?;
        let known = self.status.iter().position(|known| known.1 == number);
        match known {
            Some(at) => {
                d.said.follows(&self.status[at].0.said)?;
                self.status[at].0 = d;
            }
            None if self.status.len() < MOST_DISTRIBUTIONS => self.status.push((d, number)),
            None => return Err("there are more than 65,536 threads".to_owned()),
        }
        Ok(())
    }

    fn footer(&self, key: &str) -> Option<(&[String], usize)> {
        let footer = self.footers.iter().rfind(|footer| footer.0 == key)?;
        Some((&footer.1, footer.2))
    }

    fn histogram(
        &mut self,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Distribution>, InputError> {
        let Some((minima, _)) = self.footer("Min Latencies") else {
            return Err(fault(
                name,
                self.last_row,
                "cut short: `# Min Latencies:` does not follow the histogram",
                CUT,
            ));
        };
        let threads = minima.len();
        if threads == 0 {
            return Err(InputError::new(
                name,
                "`# Min Latencies:` names no thread",
                CUT,
            ));
        }
        let mut columns = std::mem::take(&mut self.columns);
        if ![0, threads, threads + 1].contains(&columns.len()) {
            let what = format!(
                "{} counts in a row of a histogram of {threads} threads",
                columns.len()
            );
            return Err(fault(name, self.last_row, what, CUT));
        }
        columns.resize_with(threads, Tally::default);
        let end = scaled(self.highest.saturating_add(1), self.unit_ns).unwrap_or(i64::MAX);
        if self.footer("Histogram Overflows").is_none() {
            notes.push("the line `# Histogram Overflows:` is missing: only a maximum beyond the rows would show them".to_owned());
        }
        let mut distributions = Vec::new();
        for (number, counts) in columns.into_iter().enumerate() {
            let mut d =
                Distribution::new(format!("thread {number}"), "wake-up latency", self.unit_ns);
            counts.fill(&mut d);
            self.figures(name, number, &mut d)?;
            let over = self.value(name, "Histogram Overflows", number)?;
            if let Some(over) = over
                .filter(|over| *over > 0)
                .and_then(|over| u64::try_from(over).ok())
            {
                d.overflow = Some(Overflow {
                    count: Some(over),
                    at_least_ns: end,
                });
            }
            let total = self.value(name, "Total", number)?;
            if let Some(total) = total.filter(|total| u64::try_from(*total) != Ok(d.counted())) {
                let what = format!(
                    "thread {number}: `# Total:` says {total}, but the rows hold {}",
                    d.counted()
                );
                return Err(InputError::new(
                    name,
                    what,
                    "the file may be cut short, edited or damaged",
                ));
            }
            if let Some(smis) = self.value(name, "SMIs", number)?.filter(|n| *n > 0) {
                notes.push(format!(
                    "thread {number}: {smis} system-management interrupts"
                ));
            }
            distributions.push(d);
        }
        Ok(distributions)
    }

    fn figures(&self, name: &str, number: usize, d: &mut Distribution) -> Result<(), InputError> {
        let of = |key| -> Result<Option<i64>, InputError> {
            let value = self.value(name, key, number)?;
            Ok(value.and_then(|value| scaled(value, self.unit_ns).ok()))
        };
        // Values may all lie beyond the histogram, and newer versions leave empty rows out.
        let untouched = of("Min Latencies")? == scaled(NO_MINIMUM, self.unit_ns).ok()
            && of("Max Latencies")? == Some(0);
        if !untouched {
            d.said.min_ns = of("Min Latencies")?;
            d.said.mean_ns = of("Avg Latencies")?.map(|ns| ns as f64);
            d.said.max_ns = of("Max Latencies")?;
        }
        Ok(())
    }

    /// A thread's number in a footer, `None` where there is no such footer.
    fn value(&self, name: &str, key: &str, thread: usize) -> Result<Option<i64>, InputError> {
        let Some((values, line)) = self.footer(key) else {
            return Ok(None);
        };
        let Some(text) = values.get(thread) else {
            let what = format!("`# {key}:` has no number for thread {thread}");
            return Err(fault(name, line, what, CUT));
        };
        let value = text.parse().map_err(|_| {
            fault(
                name,
                line,
                format!("`{}` is not a whole number", excerpt(text)),
                "",
            )
        })?;
        Ok(Some(value))
    }
}
