//! cyclictest's text: the histogram of `-h`, `-H` and `--histfile`, and the summary lines `T: 0 ...` without one.
//!
//! `-H` with more than one thread adds a column of sums to rows, `# Total:`, `# Max Latencies:` and
//! `# Histogram Overflows:` only, so the number of threads is that of `# Min Latencies:`. Newer versions leave empty
//! rows out, older ones print `# Total:`; both are read. With -N values are nanoseconds, which the text does not say:
//! the caller may.

use model::InputError;

use super::{Distribution, Format, Measured, Options, Overflow, decimal, fault, scaled};

const CUT: &str = "the tool that wrote it may have been stopped before its end";

/// Whether a line is one of the tool's summary: `T: 0 ( 1234) P:80 I:1000 C: 10 Min: 3 Act: 5 Avg: 4 Max: 9`.
pub(super) fn is_status(line: &str) -> bool {
    line.starts_with("T:") && line.contains("Min:") && line.contains("Max:")
}

struct Found {
    unit_ns: i64,
    /// Bucket, counts, line.
    rows: Vec<(i64, Vec<u64>, usize)>,
    histogram: bool,
    footers: Vec<(String, Vec<String>, usize)>,
    status: Vec<(Distribution, u64)>,
    notes: Vec<String>,
}

pub(super) fn read(name: &str, text: &str, options: Options) -> Result<Measured, InputError> {
    let mut found = Found {
        unit_ns: options.unit.map_or(1_000, |unit| unit.ns()),
        rows: Vec::new(),
        histogram: false,
        footers: Vec::new(),
        status: Vec::new(),
        notes: Vec::new(),
    };
    for (line, number) in text.lines().zip(1..) {
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
        notes.push("values are taken as microseconds, cut to whole ones by the tool; with -N they are nanoseconds (--unit ns)".to_owned());
    }
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::CyclictestText),
        tool: "cyclictest".to_owned(),
        version: None,
        command: None,
        machine: None,
        distributions,
        notes,
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
                    "`{line}` is no row of the histogram: the file may be cut short here"
                )),
                _ => Ok(()),
            };
        };
        if !self.histogram {
            // Load averages and such, before the histogram.
            return Ok(());
        }
        let bucket = bucket
            .parse()
            .map_err(|_| format!("`{bucket}` is no bucket of the histogram"))?;
        let counts = counts
            .split_whitespace()
            .map(|n| n.parse().map_err(|_| format!("`{n}` is no count")));
        self.rows
            .push((bucket, counts.collect::<Result<_, _>>()?, number));
        Ok(())
    }

    fn comment(&mut self, rest: &str, number: usize) -> Result<(), String> {
        if rest == "Histogram" {
            if self.histogram {
                return Err("a second histogram begins: give each a file of its own".to_owned());
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
        let of = |key: &str| {
            let at = line.find(key)? + key.len();
            line[at..].split_whitespace().next()
        };
        let number: u64 = of("T:")
            .and_then(|n| n.trim_end_matches('(').parse().ok())
            .ok_or("the line begins with no number of a thread")?;
        let mut d = Distribution::new(format!("thread {number}"), "wake-up latency", self.unit_ns);
        d.said.cycles = of("C:").and_then(|n| n.parse().ok());
        if d.said.cycles != Some(0) {
            let time = |key| of(key).map(|n| decimal(n, self.unit_ns)).transpose();
            d.said.min_ns = time("Min:")?;
            d.said.mean_ns = time("Avg:")?.map(|ns| ns as f64);
            d.said.max_ns = time("Max:")?;
        }
        let known = self.status.iter().position(|known| known.1 == number);
        match known {
            Some(at) => self.status[at].0 = d,
            None if self.status.len() < super::MOST_DISTRIBUTIONS => self.status.push((d, number)),
            None => return Err("there are more than 65,536 threads".to_owned()),
        }
        Ok(())
    }

    fn footer(&self, key: &str) -> Option<(&[String], usize)> {
        let footer = self.footers.iter().rfind(|footer| footer.0 == key)?;
        Some((&footer.1, footer.2))
    }

    fn histogram(
        &self,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Distribution>, InputError> {
        let Some((minima, _)) = self.footer("Min Latencies") else {
            let last = self.rows.last().map_or(1, |row| row.2);
            return Err(fault(
                name,
                last,
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
        let mut pairs: Vec<Vec<(i64, u64)>> = vec![Vec::new(); threads];
        let mut highest = -1;
        for (bucket, counts, line) in &self.rows {
            if counts.len() != threads && counts.len() != threads + 1 {
                let what = format!(
                    "{} counts in a row of a histogram of {threads} threads",
                    counts.len()
                );
                return Err(fault(name, *line, what, CUT));
            }
            highest = highest.max(*bucket);
            let value =
                scaled(*bucket, self.unit_ns).map_err(|what| fault(name, *line, what, ""))?;
            for (pairs, &count) in pairs.iter_mut().zip(counts) {
                pairs.push((value, count));
            }
        }
        let end = scaled(highest.saturating_add(1), self.unit_ns).unwrap_or(i64::MAX);
        if self.footer("Histogram Overflows").is_none() {
            notes.push("the line `# Histogram Overflows:` is missing: only a maximum beyond the rows would show them".to_owned());
        }
        let mut distributions = Vec::new();
        for (number, pairs) in pairs.into_iter().enumerate() {
            let mut d =
                Distribution::new(format!("thread {number}"), "wake-up latency", self.unit_ns);
            d.fill(pairs);
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
                notes.push(format!(
                    "thread {number}: `# Total:` says {total}, the rows hold {}",
                    d.counted()
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
        let measured =
            d.counted() > 0 || self.value(name, "Histogram Overflows", number)? != Some(0);
        if measured {
            d.said.min_ns = of("Min Latencies")?.filter(|min| *min != 1_000_000 * self.unit_ns);
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
        let value = text
            .parse()
            .map_err(|_| fault(name, line, format!("`{text}` is no whole number"), ""))?;
        Ok(Some(value))
    }
}
