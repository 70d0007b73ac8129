//! Text of cyclictest.
//!
//! `T: 0 ( 1234) P:80 I:1000 C: 10 Min: 3 Act: 5 Avg: 4 Max: 9` has the figures of a thread until then. `-h`, `-H` and `--histfile` write rows
//! and footers, in which `-H` adds a column of sums; newer versions leave empty rows out, older ones print `# Total:`. `-v` writes `thread:
//! cycle: value`, and with `-o` only the largest of some cycles. With -N values are nanoseconds, which no text says.

use super::grammar::{Table, matches};
use super::lines::{Line, Lines, Run, SECOND, Series, count};
use super::sense::Reader;
use super::tables::CYCLICTEST;
use super::{Overflow, Said, excerpt, scaled};

pub(super) const HISTOGRAM: Reader = Reader::text::<Cyclictest>(
    "cyclictest-hist",
    "Text of `cyclictest -h`, `-H` and `--histfile`, whole, its rows or its footers, and its lines `T: 0 ...`",
    |line| is_footer(line) || line.starts_with('0') && is_padded(line) || matches(CYCLICTEST.signs, line),
)
.without_unit();
pub(super) const VERBOSE: Reader =
    Reader::text::<Cyclictest>("cyclictest-verbose", "Text of `cyclictest -v`", |line| {
        line.contains(": ") && row(line).is_some()
    })
    .without_unit();

const LATENCY: &str = CYCLICTEST.quantity;

/// A row of a histogram: all numbers have leading zeros.
fn is_padded(line: &str) -> bool {
    let padded = |word: &str| word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_digit());
    line.contains([' ', '\t']) && line.split_whitespace().all(padded)
}

/// The footers that are read, with a number for each thread.
const FOOTERS: [&str; 6] = [TOTAL, MINIMA, "Avg Latencies", MAXIMA, OVERFLOWS, "SMIs"];
const TOTAL: &str = "Total";
const MINIMA: &str = "Min Latencies";
const MAXIMA: &str = "Max Latencies";
const OVERFLOWS: &str = "Histogram Overflows";

/// The key of a comment, and the rest after its colon.
fn comment(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix('#')?.trim();
    Some(rest.split_once(':').unwrap_or((rest, "")))
}

fn is_footer(line: &str) -> bool {
    comment(line).is_some_and(|(key, _)| key == "Histogram" || FOOTERS.contains(&key))
}

/// Thread, cycle and value of a line of `-v`.
fn row(line: &str) -> Option<(u32, u64, i64)> {
    let (thread, rest) = line.split_once(':')?;
    let (cycle, value) = rest.split_once(':')?;
    Some((
        thread.trim().parse().ok()?,
        cycle.trim().parse().ok()?,
        value.trim().parse().ok()?,
    ))
}

/// The minimum before the first measurement, in units.
const NO_MINIMUM: i64 = 1_000_000;

#[derive(Default)]
pub(super) struct Cyclictest {
    /// The figures of the threads until now.
    status: Table,
    titled: bool,
    /// The row with the highest bucket, and the number of columns.
    highest: Option<i64>,
    columns: usize,
    /// The footers that were seen; the sums of rows and the values beyond them, of each thread.
    seen: Vec<&'static str>,
    totals: Vec<u64>,
    over: Vec<u64>,
    /// The cycles of each thread of `-v`.
    cycles: Vec<Cycles>,
}

/// The cycles of a thread that were printed.
#[derive(Default)]
struct Cycles {
    first: u64,
    next: u64,
    printed: u64,
    /// The distance of all to their predecessors.
    step: Option<u64>,
    uneven: bool,
}

impl Lines for Cyclictest {
    fn tool(&self) -> &'static str {
        self.status.tool()
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        if let Some((key, values)) = comment(line) {
            return self.comment(key.trim(), values.trim(), run);
        }
        if let Line::Own = self.status.line(line, run)? {
            let is_over = self.highest.is_some() || !self.seen.is_empty();
            return if is_over {
                Err(SECOND.to_owned())
            } else {
                Ok(Line::Own)
            };
        }
        if let Some((thread, cycle, value)) = row(line) {
            let unit_ns = run.unit_ns();
            let at = run.place(&format!("thread {thread}"), LATENCY, unit_ns)?;
            run.series[at].values.add(scaled(value, unit_ns)?);
            self.cycles.resize_with(run.series.len(), Cycles::default);
            return self.cycles[at].take(cycle).map(|()| Line::Own);
        }
        let is_row = line.starts_with(|c: char| c.is_ascii_digit());
        let is_histogram = self.titled || self.highest.is_some() || is_padded(line);
        match line.starts_with("affinity:") {
            true => run.header().map(|()| Line::Own),
            false if line.starts_with("policy:") => Ok(Line::Own),
            false if is_row && !self.cycles.is_empty() && line.contains(':') => {
                Err("cut short: the line is not `thread: cycle: value`".to_owned())
            }
            false if is_row && self.seen.is_empty() && is_histogram => {
                self.bucket(line, run).map(|()| Line::Own)
            }
            false if is_padded(line) && is_histogram => Err(SECOND.to_owned()),
            false => Ok(Line::Other),
        }
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        self.status.end(run)?;
        if self.titled || self.highest.is_some() || !self.seen.is_empty() {
            return self.histogram(run);
        }
        let cycles = std::mem::take(&mut self.cycles);
        for (at, cycles) in cycles.iter().enumerate().filter(|(_, c)| c.printed > 0) {
            cycles.end(at, run);
        }
        Ok(())
    }
}

impl Cyclictest {
    fn comment(&mut self, key: &str, values: &str, run: &mut Run) -> Result<Line, String> {
        if let Some(key) = FOOTERS.into_iter().find(|known| *known == key) {
            return self.footer(key, values, run).map(|()| Line::Own);
        }
        match key {
            "Histogram" if std::mem::replace(&mut self.titled, true) => {
                return Err(format!("a second histogram begins, so {SECOND}"));
            }
            "Break thread" | "Break value" => {
                let (key, value) = (key.to_lowercase(), excerpt(values));
                run.note(format!("the tool stopped at a limit: {key} {value}"));
            }
            key if key.starts_with("/dev/cpu_dma_latency") => run.header()?,
            key if key == "Histogram"
                || key.starts_with("Thread ")
                || key.starts_with("Histogram Overflow at") => {}
            // A footer that was cut.
            key if !key.is_empty() && FOOTERS.iter().any(|known| known.starts_with(key)) => {}
            _ => return Ok(Line::Other),
        }
        Ok(Line::Own)
    }

    /// A line with a number for each thread.
    fn footer(&mut self, key: &'static str, values: &str, run: &mut Run) -> Result<(), String> {
        if self.seen.contains(&key) {
            return Err(SECOND.to_owned());
        }
        let mut words: Vec<&str> = values.split_whitespace().collect();
        if self.columns == 0 && self.seen.is_empty() {
            run.restart(words.len(), LATENCY)?;
        } else if self.columns == words.len() + 1 {
            run.series.truncate(words.len());
        }
        // The maximum of the sums.
        if self.columns == words.len() && run.series.len() + 1 == self.columns {
            words.pop();
        }
        self.seen.push(key);
        let unit_ns = run.unit_ns();
        let (totals, over) = (&mut self.totals, &mut self.over);
        let mut smis = Vec::new();
        run.row(&words, |series, word| {
            let value: i64 = word
                .parse()
                .map_err(|_| format!("`{}` is not a whole number", excerpt(word)))?;
            let counted = u64::try_from(value).unwrap_or(0);
            let said = &mut series.d.said;
            let ns = || scaled(value, unit_ns).ok();
            match key {
                TOTAL => totals.push(counted),
                MINIMA => said.min_ns = ns(),
                MAXIMA => said.max_ns = ns(),
                OVERFLOWS => over.push(counted),
                "SMIs" if counted > 0 => smis.push(format!(
                    "{}: {counted} system-management interrupts",
                    series.d.name
                )),
                "SMIs" => {}
                _ => said.mean_ns = ns().map(|ns| ns as f64),
            }
            Ok(())
        })
        .map_err(|what| format!("`# {key}:`: {what}"))?;
        smis.into_iter().for_each(|note| run.note(note));
        Ok(())
    }

    /// A row with a column for each thread; the first row makes the series.
    fn bucket(&mut self, line: &str, run: &mut Run) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bucket = words[0]
            .parse::<i64>()
            .ok()
            .filter(|_| words.len() > 1)
            .ok_or_else(|| {
                let row = excerpt(line);
                format!("`{row}` is not a row of the histogram: the file may be cut short here")
            })?;
        if self.highest.is_none() {
            self.columns = words.len() - 1;
            run.restart(self.columns, LATENCY)?;
        }
        if self.highest.is_some_and(|highest| bucket <= highest) {
            return Err(format!("the rows begin again, so {SECOND}"));
        }
        let value = scaled(bucket, run.unit_ns())?;
        run.row(&words[1..], |series, word| {
            series.values.add_times(value, count(word)?);
            Ok(())
        })?;
        self.highest = Some(bucket);
        Ok(())
    }

    fn histogram(&mut self, run: &mut Run) -> Result<(), String> {
        let has = |key: &str| self.seen.contains(&key);
        // The rows end where the largest value may lie beyond them.
        match (has(MINIMA), has(MAXIMA)) {
            (true, true) => {}
            (true, false) => return Err("cut short: `# Max Latencies:` does not follow".to_owned()),
            _ if self.titled || !self.seen.is_empty() => {
                return Err("cut short: `# Min Latencies:` does not follow the histogram".to_owned());
            }
            _ => run.lacks(
                "it has only the rows of the histogram, without its footers, so values beyond the rows do not show",
            ),
        }
        if !self.seen.is_empty() && !has(OVERFLOWS) {
            run.note("the line `# Histogram Overflows:` is missing: only a maximum beyond the rows would show them");
        }
        let unit_ns = run.unit_ns();
        let at_least_ns =
            scaled(self.highest.unwrap_or(-1).saturating_add(1), unit_ns).unwrap_or(i64::MAX);
        for (thread, Series { d, .. }) in run.series.iter_mut().enumerate() {
            let [total, over] = [&self.totals, &self.over].map(|all| all.get(thread).copied());
            // Values may all lie beyond the histogram, and newer versions leave empty rows out.
            if d.said.min_ns == scaled(NO_MINIMUM, unit_ns).ok() && d.said.max_ns == Some(0) {
                d.said = Said::default();
            }
            let held = d.counted();
            match total {
                Some(total) if self.columns == 0 && total > 0 => {
                    d.said.cycles = Some(total.saturating_add(over.unwrap_or(0)));
                    continue;
                }
                Some(total) if total != held => {
                    return Err(format!(
                        "{}: `# Total:` says {total}, but the rows hold {held}",
                        d.name
                    ));
                }
                _ => {}
            }
            d.overflow = over.filter(|over| *over > 0).map(|over| Overflow {
                count: Some(over),
                at_least_ns,
            });
        }
        Ok(())
    }
}

impl Cycles {
    fn take(&mut self, cycle: u64) -> Result<(), String> {
        if cycle < self.next {
            return Err(format!("the cycles start again, so {SECOND}"));
        }
        if self.printed == 0 {
            self.first = cycle;
        } else {
            let step = cycle - self.next + 1;
            self.uneven |= *self.step.get_or_insert(step) != step;
        }
        self.printed += 1;
        self.next = cycle.saturating_add(1);
        Ok(())
    }

    /// Of a series; says which values were not printed.
    fn end(&self, at: usize, run: &mut Run) {
        let d = &mut run.series[at].d;
        let place = d.name.clone();
        // The first of some cycles is not the first of all.
        let step = self
            .step
            .filter(|step| *step > 1 && !self.uneven && self.first + 1 >= *step);
        if let Some(step) = step {
            d.said.max_ns = d.said.max_ns.or(d.max_ns());
            d.counts.clear();
            run.note(format!("{place}: the tool printed the largest of every {step} cycles (-o), so only the maximum is read"));
            return;
        }
        let counted = d.counted();
        let skipped = self.next - counted.min(self.next);
        let missing = skipped.max(d.said.cycles.unwrap_or(0).saturating_sub(counted));
        if missing > 0 {
            d.said = Said::default();
            run.lacks(format!(
                "{place}: {missing} values are missing, which the tool dropped or did not print: all figures are of the others"
            ));
        }
    }
}
