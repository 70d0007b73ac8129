//! `rtla timerlat top` and `rtla osnoise top`: a row per cpu with smallest, mean and largest value, no histogram. The
//! table is printed again and again while the tool runs; the last one counts.

use model::InputError;

use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Said, Source, decimal, fault};

pub(super) const READER: Reader = Reader::new(
    "rtla-top",
    "Text of `rtla timerlat top` and `rtla osnoise top`",
    senses,
    read,
);

/// The parts of timerlat's row, in the order of its columns.
const PARTS: [&str; 3] = ["irq", "thread", "return to user"];

fn is_timerlat(line: &str) -> bool {
    line.contains("IRQ Timer Latency (")
}

fn is_osnoise(line: &str) -> bool {
    line.contains("Max Noise") && line.contains("Max Single")
}

fn senses(head: &Head) -> bool {
    head.line(|line| is_timerlat(line) || is_osnoise(line))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut measured = Measured::by("rtla timerlat top");
    let mut unit_ns = 1_000;
    let mut osnoise = false;
    while let Some((line, number)) = source.line()? {
        if is_timerlat(line) {
            unit_ns = if line.contains("(ns)") { 1 } else { 1_000 };
        }
        if is_osnoise(line) {
            osnoise = true;
            "rtla osnoise top".clone_into(&mut measured.tool);
        }
        // A row begins with a cpu and the number of its activations: `0 #12634 | 1 0 1 10 | 10 1 1 59`.
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|cpu| cpu.parse::<u32>().ok()) else {
            continue;
        };
        let Some(cycles) = words.next().and_then(|n| n.strip_prefix('#')) else {
            continue;
        };
        let at = |what: String| fault(&name, number, what, "");
        let cycles = cycles.parse::<u64>();
        let cycles = cycles.map_err(|_| at("`#` is not followed by a number".to_owned()))?;
        if osnoise {
            // Runtime, noise, % available, max noise, max single, ...
            let single = words.nth(4);
            let single = single.ok_or_else(|| at("the row ends before `Max Single`".to_owned()))?;
            let place = format!("noise, cpu {cpu}");
            let mut d = Distribution::new(place, "operating-system noise", 1_000);
            d.cpu = Some(cpu);
            d.said.max_ns = Some(decimal(single, 1_000).map_err(at)?);
            measured.latest(d).map_err(at)?;
            continue;
        }
        let (_, parts) = line
            .split_once('|')
            .ok_or_else(|| at("the row has no column of latencies".to_owned()))?;
        for (part, figures) in PARTS.iter().zip(parts.split('|')) {
            let figures: Vec<&str> = figures.split_whitespace().collect();
            let [_, min, mean, max] = figures[..] else {
                return Err(at(format!(
                    "{} figures for `{part}` instead of 4 (cur, min, avg, max)",
                    figures.len()
                )));
            };
            // A dash means that nothing was measured.
            if max == "-" {
                continue;
            }
            let time = |text: &str| decimal(text, unit_ns).map_err(at);
            let mut d = Distribution::new(format!("{part}, cpu {cpu}"), "timer latency", unit_ns);
            d.cpu = Some(cpu);
            d.said = Said {
                min_ns: Some(time(min)?),
                mean_ns: Some(time(mean)? as f64),
                max_ns: Some(time(max)?),
                cycles: Some(cycles),
            };
            measured.latest(d).map_err(at)?;
        }
    }
    let what = if osnoise {
        "only the largest single noise of each cpu is read; the table has no histogram, so there are no quantiles"
    } else {
        "the table has no histogram, so there are no quantiles (rtla timerlat hist writes one)"
    };
    measured.notes.push(what.to_owned());
    Ok(measured)
}
