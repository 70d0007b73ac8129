//! What jitterdebugger prints while it runs: `T: 0 (30921) A: 1 C: 14 Min: 34673 Avg: 42205.36 Max: 52229`, the last line
//! of each thread. Microseconds, or nanoseconds with -N, which the text does not say.

use model::InputError;

use super::cyclictest_text::{after, said, thread_number};
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Source, Unit, fault};

pub(super) const READER: Reader = Reader {
    unit_is_open: true,
    ..Reader::new(
        "jitterdebugger-text",
        "Text of jitterdebugger",
        senses,
        read,
    )
};

fn is_status(line: &str) -> bool {
    line.starts_with("T:") && line.contains(" A:") && line.contains("Min:") && line.contains("Max:")
}

fn senses(head: &Head) -> bool {
    head.line(is_status)
}

fn read(source: &mut Source, options: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let unit_ns = options.unit.unwrap_or(Unit::Us).ns();
    let mut measured = Measured::by("jitterdebugger");
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        if !is_status(line) {
            continue;
        }
        let at = |what: String| fault(&name, number, what, "");
        let thread = format!("thread {}", thread_number(line).map_err(at)?);
        let mut d = Distribution::new(thread, "wake-up latency", unit_ns);
        d.cpu = after(line, " A:").and_then(|cpu| cpu.parse().ok());
        d.said = said(line, unit_ns).map_err(at)?;
        measured.latest(d).map_err(at)?;
    }
    measured.notes.push(
        "the file has no histogram, so there are no quantiles (use -f or -o to write results.json)"
            .to_owned(),
    );
    if options.unit.is_none() {
        measured
            .notes
            .push("values are read as microseconds; if -N was used, say --unit ns".to_owned());
    }
    Ok(measured)
}
