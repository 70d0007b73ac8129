//! `cyclictest -v`: a line `thread: cycle: value` for every wake-up, then the summary lines, which the tool may not print.

use std::collections::BTreeMap;

use model::InputError;

use super::cyclictest_text::{is_status, said, thread_number};
use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Said, Source, Unit, fault, scaled};

pub(super) const READER: Reader = Reader {
    unit_is_open: true,
    ..Reader::new(
        "cyclictest-verbose",
        "Text of `cyclictest -v`",
        senses,
        read,
    )
};

fn senses(head: &Head) -> bool {
    head.line(|line| row(line).is_some())
}

/// Thread, cycle and value of a line.
fn row(line: &str) -> Option<(u32, u64, i64)> {
    let mut parts = line.split(':').map(str::trim);
    let row = (
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    );
    parts.next().is_none().then_some(row)
}

#[derive(Default)]
struct Thread {
    values: Tally,
    next: u64,
    skipped: u64,
    said: Option<Said>,
}

fn read(source: &mut Source, options: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let unit_ns = options.unit.unwrap_or(Unit::Us).ns();
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        let at = |what: String| fault(&name, number, what, "");
        if is_status(line) {
            let thread = u32::try_from(thread_number(line).map_err(at)?);
            let what = "the number of the thread is too large";
            let thread = thread.map_err(|_| fault(&name, number, what, ""))?;
            threads.entry(thread).or_default().said = Some(said(line, unit_ns).map_err(at)?);
        } else if let Some((thread, cycle, value)) = row(line) {
            if !threads.contains_key(&thread) && threads.len() >= super::MOST_DISTRIBUTIONS {
                return Err(at("there are more than 65,536 threads".to_owned()));
            }
            let thread = threads.entry(thread).or_default();
            if cycle < thread.next {
                let what = "the cycles start again: put each run into its own file".to_owned();
                return Err(at(what));
            }
            thread.skipped = thread.skipped.saturating_add(cycle - thread.next);
            thread.next = cycle.saturating_add(1);
            thread.values.add(scaled(value, unit_ns).map_err(at)?);
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(':') {
            return Err(at("the line is not `thread: cycle: value`".to_owned()));
        }
    }
    let mut measured = Measured::by("cyclictest");
    for (number, thread) in threads {
        let mut d = Distribution::new(format!("thread {number}"), "wake-up latency", unit_ns);
        thread.values.fill(&mut d);
        let mut missing = thread.skipped;
        if let Some(said) = thread.said {
            let counted = d.counted();
            missing = missing.max(said.cycles.unwrap_or(counted).saturating_sub(counted));
            if missing == 0 {
                d.said = said;
            }
        }
        if missing > 0 {
            measured.notes.push(format!(
                "thread {number}: {missing} values are missing, which the tool dropped or did not print: all figures are of the others"
            ));
        }
        measured.distributions.push(d);
    }
    if options.unit.is_none() {
        measured.notes.push(
            "values are read as microseconds, truncated by the tool; if -N was used, say --unit ns"
                .to_owned(),
        );
    }
    Ok(measured)
}
