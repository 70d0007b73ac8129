//! Text of `rtla timerlat hist` and `rtla osnoise hist`: a column per cpu and part (`IRQ-000`, `Thr-000`, `Usr-000`, `CPU-000`), rows of
//! buckets, then `over:`, `count:`, `min:`, `avg:`, `max:`, and in newer versions a block `ALL:`.

use super::lines::{Line, Lines, Run, SECOND, count};
use super::sense::Reader;
use super::{Overflow, decimal, excerpt, scaled};

/// osnoise writes a cpu only where it saw noise above its threshold.
pub(super) const READER: Reader = Reader::text::<Histogram>(
    "rtla-hist",
    "Text of `rtla timerlat hist` and `rtla osnoise hist`",
    |line| line.contains("# RTLA") && line.contains("histogram"),
)
.maybe_empty();
/// The osnoise quantity.
const NOISE: &str = "operating-system noise";
const LATENCY: &str = "timer latency";
/// The threshold of osnoise without `-T`; its files do not state it.
const THRESHOLD_NS: i64 = 5_000;

#[derive(Default)]
pub(super) struct Histogram {
    /// Its title was seen.
    titled: bool,
    osnoise: bool,
    unit_ns: i64,
    duration: Option<String>,
    /// The line `Index ...` was seen.
    began: bool,
    /// Sums over all cpus follow, which the columns already contain.
    sums: bool,
    indices: Vec<i64>,
    /// Values of each column beyond the rows.
    over: Option<Vec<u64>>,
    /// Whether lines of the summary stand below it, and the last of them.
    summary: bool,
    complete: bool,
}

impl Lines for Histogram {
    fn tool(&self) -> &'static str {
        "rtla timerlat hist"
    }

    fn line(&mut self, line: &str, run: &mut Run) -> Result<Line, String> {
        if line.contains("# RTLA") {
            if self.titled {
                return Ok(Line::Next);
            }
            (self.titled, self.unit_ns) = (true, 1_000);
            self.osnoise = line.contains("osnoise");
            if self.osnoise {
                "rtla osnoise hist".clone_into(&mut run.measured.tool);
            }
            return Ok(Line::Own);
        }
        if let Some(rest) = line.strip_prefix("# ") {
            if rest.starts_with("Time unit is nanoseconds") {
                self.unit_ns = 1;
            } else if let Some(time) = rest.strip_prefix("Duration:") {
                self.duration = Some(excerpt(time.trim()).into_owned());
            }
            return Ok(Line::Own);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&first, words)) = words.split_first() else {
            return Ok(Line::Other);
        };
        let is_footer = matches!(first, "over:" | "count:" | "min:" | "avg:" | "max:");
        let index = first.parse::<i64>().ok().filter(|index| *index >= 0);
        match first {
            "Index" if self.began => {
                return Err(format!(
                    "a second table begins without a title, so {SECOND}"
                ));
            }
            "Index" => return self.columns(words, run).map(|()| Line::Own),
            "ALL:" => self.sums = true,
            _ if self.sums && is_footer => {}
            _ if !is_footer && (index.is_none() || self.over.is_some()) => return Ok(Line::Other),
            _ if !self.began => return Err("a row precedes the line `Index ...`".to_owned()),
            // Without a column newer versions write one 0 into each line of the summary.
            _ if run.series.is_empty() && words.iter().all(|word| *word == "0") => {
                self.footed(first)
            }
            _ => match index {
                Some(index) => {
                    let value = scaled(index, self.unit_ns)?;
                    self.indices.push(index);
                    run.row(words, |series, word| {
                        series.values.add_times(value, count(word)?);
                        Ok(())
                    })?;
                }
                None => self.footer(first, words, run)?,
            },
        }
        Ok(Line::Own)
    }

    fn end(&mut self, run: &mut Run) -> Result<(), String> {
        if !self.titled {
            return Err(
                "there is no line `# RTLA ... histogram` (--no-header leaves it out)".to_owned(),
            );
        }
        if !self.began {
            return Err("cut short: no line `Index ...` follows the title".to_owned());
        }
        // Without --no-summary the tool writes all of them, the maximum last.
        if self.summary && !self.complete {
            return Err("cut short: the summary ends before its line `max:`".to_owned());
        }
        if self.over.is_none() && self.summary {
            return Err("cut short: the line `over:`, which counts the values beyond the histogram, is missing".to_owned());
        }
        if run.series.is_empty() && !self.osnoise {
            return Err("the histogram has no column".to_owned());
        }
        if self.over.is_none() && !run.series.is_empty() {
            let what = "the lines below the histogram are missing (--no-summary, or cut short)";
            run.lacks(format!("{what}, so values beyond the rows do not show"));
        } else if !self.complete && !run.series.is_empty() {
            run.note(
                "the summary lines `count:` to `max:` are missing (--no-summary, or cut short)",
            );
        }
        self.widths(run)?;
        if run.series.is_empty() {
            let d = &mut run.series("all cpus", NOISE, self.unit_ns)?.d;
            d.said.cycles = Some(0);
            d.kept_above_ns = Some(THRESHOLD_NS);
            run.note(
                "no noise above the tool's threshold was seen on any cpu; the file does not state the threshold, so 5 us is assumed, as without -T",
            );
        }
        if let Some(duration) = &self.duration {
            run.note(format!(
                "measured for {duration} (days hours:minutes:seconds)"
            ));
        }
        Ok(())
    }
}

impl Histogram {
    fn columns(&mut self, names: &[&str], run: &mut Run) -> Result<(), String> {
        self.began = true;
        for name in names {
            let known = name.split_once('-').and_then(|(part, cpu)| {
                let (word, quantity) = match part {
                    "IRQ" => ("irq", LATENCY),
                    "Thr" => ("thread", LATENCY),
                    "Usr" => ("return to user", LATENCY),
                    "CPU" if self.osnoise => ("noise", NOISE),
                    _ => return None,
                };
                Some((word, quantity, cpu.parse::<u32>().ok()?))
            });
            let Some((word, quantity, cpu)) = known else {
                let name = excerpt(name);
                return Err(format!(
                    "a column is called `{name}`, which is not IRQ-, Thr-, Usr- or CPU-"
                ));
            };
            let d = &mut run
                .series(&format!("{word}, cpu {cpu}"), quantity, self.unit_ns)?
                .d;
            d.cpu = Some(cpu);
            d.kept_above_ns = self.osnoise.then_some(THRESHOLD_NS);
        }
        Ok(())
    }

    fn footed(&mut self, key: &str) {
        if key == "over:" {
            self.over.get_or_insert_default();
        }
        self.summary |= key != "over:";
        self.complete |= key == "max:";
    }

    fn footer(&mut self, key: &str, words: &[&str], run: &mut Run) -> Result<(), String> {
        self.footed(key);
        let unit_ns = self.unit_ns;
        let mut over = Vec::new();
        run.row(words, |series, word| {
            let said = &mut series.d.said;
            match key {
                // A dash means that nothing was measured.
                _ if word == "-" => over.push(0),
                "over:" => over.push(count(word)?),
                "count:" => said.cycles = Some(count(word)?),
                "min:" => said.min_ns = Some(decimal(word, unit_ns)?),
                "avg:" => said.mean_ns = Some(decimal(word, unit_ns)? as f64),
                _ => said.max_ns = Some(decimal(word, unit_ns)?),
            }
            Ok(())
        })?;
        if key == "over:" {
            self.over = Some(over);
        }
        Ok(())
    }

    /// Places counts at the upper ends of buckets, whose width the file does not state.
    fn widths(&self, run: &mut Run) -> Result<(), String> {
        let over = self.over.clone().unwrap_or_default();
        let over = |at: usize| over.get(at).copied().unwrap_or(0);
        let mut width = 0;
        for index in &self.indices {
            width = gcd(width, index.unsigned_abs());
        }
        let highest = self.indices.iter().max().copied().unwrap_or(0);
        // Rows that leave the width open must reach the largest value that they hold.
        let within = run
            .series
            .iter()
            .enumerate()
            .filter(|(at, _)| over(*at) == 0);
        let reach = within.filter_map(|(_, series)| series.d.said.max_ns).max();
        let reach = reach.map_or(0, |ns| ns / self.unit_ns - highest + 1);
        let reach = u64::try_from(reach).unwrap_or(0);
        // Every row stands at a multiple of the width, so it is no more than the common divisor of all.
        if width > 0 && reach > width {
            return Err(format!(
                "its figures contradict each other: `max:` lies beyond the last row, {highest}, but `over:` counts no value there"
            ));
        }
        let width = i64::try_from(width.max(reach).max(1)).unwrap_or(i64::MAX);
        let width_ns = scaled(width, self.unit_ns)?;
        let end = scaled(highest, self.unit_ns)?.saturating_add(width_ns);
        for (at, series) in run.series.iter_mut().enumerate() {
            let d = &mut series.d;
            if over(at) > 0 {
                d.overflow = Some(Overflow {
                    count: Some(over(at)),
                    at_least_ns: end,
                });
            }
            d.widen(width_ns);
            if d.total() == Some(0) {
                d.said.mean_ns = None;
                if d.said.cycles.is_none_or(|cycles| cycles == 0) {
                    (d.said.min_ns, d.said.max_ns) = (None, None);
                }
            }
        }
        Ok(())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
