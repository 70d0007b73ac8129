//! Text of signaltest, and of the tools of rt-tests that work in pairs (ptsematest, svsematest, pmqtest, sigwaittest):
//! the last smallest, mean and largest value of each, in us, no histogram. The pairs' text does not name the tool.

use model::InputError;

use super::cyclictest_text::{after, said, thread_number};
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Source, excerpt, fault};

pub(super) const SIGNALTEST: Reader = Reader::new(
    "signaltest",
    "Text of signaltest",
    is_signaltest,
    read_signaltest,
);
pub(super) const PAIRS: Reader = Reader::new(
    "rt-tests-pairs",
    "Text of ptsematest, svsematest, pmqtest and sigwaittest",
    is_pairs,
    read_pairs,
);

const NO_QUANTILES: &str =
    "the file has smallest, mean and largest value and no histogram, so there are no quantiles";

/// `T: 0 (23786) P:80 C: 500 Min: 7 Act: 10 Avg: 10 Max: 122`: a status line without the interval that cyclictest has.
fn signal_status(line: &str) -> bool {
    line.starts_with("T:")
        && line.contains(" P:")
        && line.contains("Min:")
        && line.contains("Act:")
        && !line.contains(" I:")
}

fn is_signaltest(head: &Head) -> bool {
    head.line(signal_status)
}

fn read_signaltest(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut measured = Measured::by("signaltest");
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        if !signal_status(line) {
            continue;
        }
        let at = |what: String| fault(&name, number, what, "");
        let thread = format!("thread {}", thread_number(line).map_err(at)?);
        let mut d = Distribution::new(thread, "round of a signal through all threads", 1_000);
        d.said = said(line, 1_000).map_err(at)?;
        measured.latest(d).map_err(at)?;
    }
    measured.notes.push(NO_QUANTILES.to_owned());
    Ok(measured)
}

fn is_pairs(head: &Head) -> bool {
    head.line(|line| line.starts_with('#') && line.contains(" -> #") && line.contains("Min"))
}

fn read_pairs(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut measured = Measured::by("rt-tests, a tool of pairs");
    let mut cycles = Vec::new();
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        if let Some((_, count)) = line.split_once("Cycles ") {
            let count = count.trim().parse::<u64>();
            let what = "`Cycles` is not followed by a number";
            cycles.push(count.map_err(|_| fault(&name, number, what, ""))?);
        }
        let Some((pair, _)) = line.split_once(',').filter(|(pair, _)| {
            let mut ends = pair.split(" -> ");
            ends.all(|end| end.starts_with('#')) && pair.contains(" -> ")
        }) else {
            continue;
        };
        let plain = line.replace("Min", "Min:").replace("Max", "Max:");
        let plain = plain.replace("Avg", "Avg:").replace(',', " ");
        if after(&plain, "Max:").is_none() {
            let what = format!("`{}` ends before its maximum", excerpt(line));
            return Err(fault(&name, number, what, ""));
        }
        let mut d = Distribution::new(
            excerpt(pair).into_owned(),
            "hand-over between a pair of threads",
            1_000,
        );
        d.said = said(&plain, 1_000).map_err(|what| fault(&name, number, what, ""))?;
        measured
            .latest(d)
            .map_err(|what| fault(&name, number, what, ""))?;
    }
    // Cycles stand in the line above each pair's figures.
    let pairs = measured.distributions.len();
    for (d, count) in measured
        .distributions
        .iter_mut()
        .zip(&cycles[cycles.len().saturating_sub(pairs)..])
    {
        d.said.cycles = Some(*count);
    }
    measured.notes.push(
        "ptsematest, svsematest, pmqtest and sigwaittest write the same text: it does not say which of them measured (their --json does)".to_owned(),
    );
    measured.notes.push(NO_QUANTILES.to_owned());
    Ok(measured)
}
