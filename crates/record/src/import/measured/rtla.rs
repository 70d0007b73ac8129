//! `rtla timerlat hist` and `rtla osnoise hist`: a column per cpu and part (`IRQ-000`, `Thr-000`, `Usr-000`,
//! `CPU-000`), rows of buckets, then `over:`, `count:`, `min:`, `avg:`, `max:`, and in newer versions a block `ALL:`.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{
    Distribution, MOST_DISTRIBUTIONS, Measured, Options, Overflow, Source, decimal, excerpt, fault,
    scaled,
};

/// osnoise writes a cpu only where it saw noise above its threshold.
pub(super) const READER: Reader = Reader {
    may_be_empty: true,
    ..Reader::new(
        "rtla-hist",
        "Text of `rtla timerlat hist` and `rtla osnoise hist`",
        senses,
        read,
    )
};

const CUT: &str = "the tool that wrote it may have been stopped early";

fn senses(head: &Head) -> bool {
    head.line(|line| line.contains("# RTLA") && line.contains("histogram"))
}

/// One table of a file: the tool may have written several, one after the other.
#[derive(Default)]
struct Run {
    osnoise: bool,
    unit_ns: i64,
    duration: Option<String>,
    table: Option<Table>,
    /// Sums over all cpus follow, which the columns already contain.
    sums: bool,
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let mut runs: Vec<Run> = Vec::new();
    let mut notes = Vec::new();
    while let Some((line, number)) = source.line()? {
        let at = |what: String| fault(name, number, what, "");
        if line.contains("# RTLA") {
            runs.push(Run {
                osnoise: line.contains("osnoise"),
                unit_ns: 1_000,
                ..Run::default()
            });
            continue;
        }
        let Some(run) = runs.last_mut() else {
            continue;
        };
        if let Some(rest) = line.strip_prefix("# ") {
            if rest.starts_with("Time unit is nanoseconds") {
                run.unit_ns = 1;
            } else if let Some(time) = rest.strip_prefix("Duration:") {
                run.duration = Some(excerpt(time.trim()).into_owned());
            }
            continue;
        }
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let known = matches!(first, "over:" | "count:" | "min:" | "avg:" | "max:");
        if run.sums && known {
            continue;
        }
        if first == "ALL:" {
            run.sums = true;
            continue;
        }
        if first == "Index" {
            if run.table.is_some() {
                return Err(at("a second table begins without a title".to_owned()));
            }
            run.table = Some(Table::new(words, run.unit_ns, run.osnoise).map_err(at)?);
            continue;
        }
        let index = first.parse::<i64>().ok();
        let Some(table) = run.table.as_mut() else {
            if known || index.is_some() {
                return Err(at("a row precedes the line `Index ...`".to_owned()));
            }
            continue;
        };
        if !known && index.is_none() {
            if notes.len() < 8 {
                let line = excerpt(line.trim());
                notes.push(format!(
                    "line {number} is not part of the histogram: {line}"
                ));
            }
            continue;
        }
        let values: Vec<&str> = words.collect();
        // Without a column newer versions write one 0 into each line of the summary.
        let nothing = known && table.columns.is_empty() && values.iter().all(|v| *v == "0");
        if values.len() != table.columns.len() && !nothing {
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
    finish(name, runs, notes)
}

/// The tables of all runs; columns are named after the run if there are several.
fn finish(name: &str, runs: Vec<Run>, mut notes: Vec<String>) -> Result<Measured, InputError> {
    let Some(osnoise) = runs.first().map(|run| run.osnoise) else {
        let what = "there is no line `# RTLA ... histogram`";
        return Err(InputError::new(name, what, "was it run with --no-header?"));
    };
    let tool = |osnoise| if osnoise { "osnoise" } else { "timerlat" };
    let mut measured = Measured::by(&format!("rtla {} hist", tool(osnoise)));
    let several = runs.len() > 1;
    for (run, number) in runs.into_iter().zip(1..) {
        if run.osnoise != osnoise {
            let what = "it contains histograms of both timerlat and osnoise";
            return Err(InputError::new(name, what, "put each into its own file"));
        }
        let place = if several {
            format!("run {number}, ")
        } else {
            String::new()
        };
        let table = run.table.ok_or_else(|| {
            let what = format!("cut short: {place}no line `Index ...` follows the title");
            InputError::new(name, what, CUT)
        })?;
        let mut found = table
            .finish(&mut notes)
            .map_err(|what| InputError::new(name, format!("{place}{what}"), CUT))?;
        if found.is_empty() && !osnoise {
            let what = format!("{place}the histogram has no column");
            return Err(InputError::new(name, what, CUT));
        }
        if found.is_empty() {
            let mut none = Distribution::new("all cpus", NOISE, run.unit_ns);
            none.said.cycles = Some(0);
            none.kept_above_ns = Some(THRESHOLD_NS);
            found.push(none);
            notes.push(format!(
                "{place}no noise above the tool's threshold was seen on any cpu; the file does \
                 not state the threshold, so 5 us is assumed, as without -T"
            ));
        }
        if let Some(duration) = run.duration {
            notes.push(format!(
                "{place}measured for {duration} (days hours:minutes:seconds)"
            ));
        }
        for mut d in found {
            d.name.insert_str(0, &place);
            measured.distributions.push(d);
        }
        if measured.distributions.len() > MOST_DISTRIBUTIONS {
            let what = "the file contains more than 65,536 columns";
            return Err(InputError::new(name, what, ""));
        }
    }
    measured.notes = notes;
    Ok(measured)
}

/// What osnoise measures.
const NOISE: &str = "operating-system noise";
/// The threshold of osnoise without `-T`; its files do not state it.
const THRESHOLD_NS: i64 = 5_000;

struct Table {
    unit_ns: i64,
    columns: Vec<Column>,
    indices: Vec<i64>,
    over: bool,
    /// Whether lines of the summary stand below it, and the last of them.
    summary: bool,
    complete: bool,
}

struct Column {
    distribution: Distribution,
    counts: Tally,
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
                    "CPU" if osnoise => ("noise", NOISE),
                    _ => return None,
                };
                Some((word, quantity, cpu.parse::<u32>().ok()?))
            });
            let (word, quantity, cpu) = known.ok_or_else(|| {
                format!(
                    "a column is called `{}`, which is not IRQ-, Thr-, Usr- or CPU-",
                    excerpt(name)
                )
            })?;
            let mut distribution =
                Distribution::new(format!("{word}, cpu {cpu}"), quantity, unit_ns);
            distribution.cpu = Some(cpu);
            distribution.kept_above_ns = osnoise.then_some(THRESHOLD_NS);
            columns.push(Column {
                distribution,
                counts: Tally::default(),
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
            summary: false,
            complete: false,
        })
    }

    fn row(&mut self, index: i64, values: &[&str]) -> Result<(), String> {
        let value = scaled(index, self.unit_ns)?;
        self.indices.push(index);
        for (column, text) in self.columns.iter_mut().zip(values) {
            column.counts.add_times(value, count(text)?);
        }
        Ok(())
    }

    fn footer(&mut self, key: &str, values: &[&str]) -> Result<(), String> {
        for (column, text) in self.columns.iter_mut().zip(values) {
            // A dash means that nothing was measured.
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
        self.summary |= key != "over:";
        self.complete |= key == "max:";
        Ok(())
    }

    fn finish(self, notes: &mut Vec<String>) -> Result<Vec<Distribution>, String> {
        if !self.over {
            return Err("cut short: the line `over:`, which counts the values beyond the histogram, is missing".to_owned());
        }
        // Without --no-summary the tool writes all of them, the maximum last.
        if self.summary && !self.complete {
            return Err("cut short: the summary ends before its line `max:`".to_owned());
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
            .fold(0_u64, |width, index| gcd(width, index.unsigned_abs()));
        let highest = self.indices.iter().max().copied().unwrap_or(0);
        // Rows that leave the width open must reach the largest value that they hold.
        let reach = self.columns.iter().filter(|column| column.over == 0);
        let reach = reach
            .filter_map(|column| column.distribution.said.max_ns)
            .max();
        let reach = reach.map_or(0, |ns| ns / self.unit_ns - highest + 1);
        // Every row stands at a multiple of the width, so it is no more than what all of them have in common.
        if width > 0 && u64::try_from(reach).is_ok_and(|reach| reach > width) {
            return Err(format!(
                "its figures contradict each other: `max:` lies beyond the last row, {highest}, but `over:` counts no value there"
            ));
        }
        let width = width.max(u64::try_from(reach).unwrap_or(0)).max(1);
        let width_ns = scaled(i64::try_from(width).unwrap_or(i64::MAX), self.unit_ns)?;
        let end = scaled(highest, self.unit_ns)?.saturating_add(width_ns);
        let mut distributions = Vec::new();
        for column in self.columns {
            let mut d = column.distribution;
            column.counts.fill(&mut d);
            if column.over > 0 {
                d.overflow = Some(Overflow {
                    count: Some(column.over),
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
            distributions.push(d);
        }
        Ok(distributions)
    }
}

fn count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{}` is not a count", excerpt(text)))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
