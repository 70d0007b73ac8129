//! timecell's own CSV of a run that kept histograms, read back: a row per interval and metric. The extremes of the rows are
//! those of the run; medians and 99th percentiles are those of intervals, from which those of a run do not follow, and are
//! kept as such.

use model::InputError;

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::timecell_rows::Table;
use super::{Distribution, MOST_DISTRIBUTIONS, Measured, Options, Source, excerpt};
use crate::Metric;

pub(super) const READER: Reader = Reader::new(
    "timecell-intervals",
    "What `export --csv` writes of a run that kept histograms",
    senses,
    read,
);

/// Columns of a row's figures, in the order in which no figure is smaller than the one before.
const FIGURES: [&str; 4] = ["min_ns", "median_ns", "p99_ns", "max_ns"];

fn senses(head: &Head) -> bool {
    head.line(|line| line.contains("trial_name,") && line.contains(",metric,min_ns,median_ns,"))
}

/// Run, trial, cell and metric.
type Key = (String, String, String, Metric);

/// The intervals of one cell for one metric.
struct Seen {
    key: Key,
    cpu: Option<u32>,
    min_ns: i64,
    max_ns: i64,
    executed: u64,
    medians: Tally,
    p99s: Tally,
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let table = Table::begin(source)?;
    let need = |wanted: &str| table.need(wanted);
    let (run, trial, cell) = (need("run")?, need("trial_name")?, need("cell")?);
    let (cpu, failed, metric) = (need("cpu")?, need("trial_failed")?, need("metric")?);
    let (executed, missed, lost) = (need("executed")?, need("missed")?, need("lost")?);
    let mut figures = [0; FIGURES.len()];
    for (place, wanted) in figures.iter_mut().zip(FIGURES) {
        *place = need(wanted)?;
    }
    // Rows of one interval repeat its counts; these tell it from the next.
    let which = [run, need("trial")?, cell, need("interval")?];
    let mut last = Vec::new();
    let mut left_out = [0_u64; 3];
    let mut seen: Vec<Seen> = Vec::new();
    while let Some(row) = table.next(source)? {
        let [failures, gone, unrecorded] = &mut left_out;
        if row.text(failed) == "true" {
            *failures += 1;
            continue;
        }
        let text = |at: usize| row.text(at).to_owned();
        let interval: Vec<String> = which.iter().map(|&at| text(at)).collect();
        if interval != last {
            *gone = gone.saturating_add(row.whole(missed)?);
            *unrecorded = unrecorded.saturating_add(row.whole(lost)?);
            last = interval;
        }
        // Intervals without jobs have no figures.
        let tag = row.text(metric);
        if tag.is_empty() {
            continue;
        }
        let known = Metric::ALL.into_iter().find(|m| m.tag() == tag);
        let known =
            known.ok_or_else(|| row.fault(format!("`{}` is not a metric", excerpt(tag))))?;
        let mut ns = [0_i64; FIGURES.len()];
        for (figure, &at) in ns.iter_mut().zip(&figures) {
            *figure = row.whole(at)?;
        }
        if !ns.is_sorted() {
            let what = "minimum, median, 99th percentile and maximum are not in ascending order";
            return Err(row.fault(what));
        }
        let [min_ns, median, p99, max_ns] = ns;
        let key = (text(run), text(trial), text(cell), known);
        let at = seen.iter().rposition(|of| of.key == key);
        let at = at.unwrap_or_else(|| {
            seen.push(Seen {
                key,
                cpu: row.text(cpu).parse().ok(),
                min_ns,
                max_ns,
                executed: 0,
                medians: Tally::default(),
                p99s: Tally::default(),
            });
            seen.len() - 1
        });
        if seen.len() > MOST_DISTRIBUTIONS / 3 {
            return Err(row.fault("the table has too many cells"));
        }
        let of = &mut seen[at];
        of.min_ns = of.min_ns.min(min_ns);
        of.max_ns = of.max_ns.max(max_ns);
        of.executed = of.executed.saturating_add(row.whole(executed)?);
        of.medians.add(median);
        of.p99s.add(p99);
    }
    Ok(finish(seen, left_out))
}

/// Three distributions for each cell and metric: its jobs, of which only the extremes are known, and the figures of its
/// intervals.
fn finish(mut seen: Vec<Seen>, [failed, missed, lost]: [u64; 3]) -> Measured {
    let mut measured = Measured::by("timecell");
    let several = seen.windows(2).any(|pair| pair[0].key.0 != pair[1].key.0);
    let order = |of: &Seen| Metric::ALL.iter().position(|metric| *metric == of.key.3);
    seen.sort_by_key(order);
    let mut intervals = Vec::new();
    for of in seen {
        let (run, trial, cell, metric) = of.key;
        let run = if several {
            format!("{run}/")
        } else {
            String::new()
        };
        let place = format!("{run}{trial}/{cell}");
        let mut jobs = Distribution::new(&place, metric.title(), 1);
        jobs.cpu = of.cpu;
        (jobs.said.min_ns, jobs.said.max_ns) = (Some(of.min_ns), Some(of.max_ns));
        jobs.said.cycles = Some(of.executed);
        measured.distributions.push(jobs);
        for (figure, values) in [("median", of.medians), ("99th percentile", of.p99s)] {
            let quantity = format!(
                "{}, {figure} {}",
                metric.title(),
                Measured::OF_EACH_INTERVAL
            );
            let mut d = Distribution::new(&place, &quantity, 1);
            d.cpu = of.cpu;
            values.fill(&mut d);
            intervals.push(d);
        }
    }
    intervals.sort_by(|a, b| a.quantity.cmp(&b.quantity));
    measured.distributions.append(&mut intervals);
    measured.notes.push(
        "each row is an interval: the quantiles of a run do not follow from those of its \
         intervals; `timecell export --hdr` writes histograms, from which they do"
            .to_owned(),
    );
    for (count, what) in [
        (failed, "rows of failed trials are left out"),
        (missed, "missed activations have no value"),
        (lost, "lost jobs have no value"),
    ] {
        if count > 0 {
            measured.notes.push(format!("{count} {what}"));
        }
    }
    measured
}
