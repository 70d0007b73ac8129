//! oslat's text: a column per cpu and a row per bucket, the last of them for everything longer, then smallest, mean
//! and largest value.

use model::InputError;

use super::cyclictest_json::last_bucket_overflows;
use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Source, decimal, excerpt, fault};

pub(super) const READER: Reader = Reader::new("oslat-text", "Text of oslat", senses, read);

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("oslat V ") || line.starts_with("Counter Freq:"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    const CUT: &str = "the tool that wrote it may have been stopped early";
    let name = source.name().to_owned();
    let mut measured = Measured::by("oslat");
    let mut tallies: Vec<Tally> = Vec::new();
    let mut over = false;
    let mut complete = false;
    while let Some((line, number)) = source.line()? {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("oslat V ") {
            measured.version = Some(excerpt(version).into_owned());
        }
        let Some((key, values)) = line.split_once(':') else {
            continue;
        };
        let at = |what: String| fault(&name, number, what, CUT);
        let values = values.replace("(including overflows)", "");
        let values: Vec<&str> = values
            .split_whitespace()
            .filter(|word| !word.starts_with('('))
            .collect();
        let bucket = key
            .strip_suffix(" (us)")
            .and_then(|n| n.trim().parse::<f64>().ok());
        if key == "Core" {
            if !tallies.is_empty() {
                return Err(at(
                    "a second table begins: put each into its own file".to_owned()
                ));
            }
            for cpu in values {
                let cpu: u32 = cpu
                    .parse()
                    .map_err(|_| at(format!("`{}` is not a cpu", excerpt(cpu))))?;
                let mut d = Distribution::new(format!("cpu {cpu}"), "interruption", 1_000);
                d.cpu = Some(cpu);
                measured.distributions.push(d);
                tallies.push(Tally::default());
            }
            continue;
        }
        if bucket.is_none() && !matches!(key, "Minimum" | "Average" | "Maximum") {
            continue;
        }
        if values.len() != tallies.len() {
            let what = format!(
                "{} values in a table for {} cpus",
                values.len(),
                tallies.len()
            );
            return Err(at(what));
        }
        over |= line.contains("(including overflows)");
        complete |= key == "Maximum";
        for ((d, tally), text) in measured
            .distributions
            .iter_mut()
            .zip(&mut tallies)
            .zip(values)
        {
            if bucket.is_some() {
                let upper = key.strip_suffix(" (us)").unwrap_or(key).trim();
                let count = text.parse::<u64>();
                let count = count.map_err(|_| at(format!("`{}` is not a count", excerpt(text))))?;
                tally.add_times(decimal(upper, 1_000).map_err(at)?, count);
                continue;
            }
            let ns = decimal(text, 1_000).map_err(at)?;
            match key {
                "Minimum" => d.said.min_ns = Some(ns),
                "Average" => d.said.mean_ns = Some(ns as f64),
                _ => d.said.max_ns = Some(ns),
            }
        }
    }
    if tallies.is_empty() {
        return Err(InputError::new(&name, "cut short: no line `Core:`", CUT));
    }
    if !complete || !over {
        let what = "cut short: the row `(including overflows)` or the line `Maximum:` is missing";
        return Err(InputError::new(&name, what, CUT));
    }
    for (d, tally) in measured.distributions.iter_mut().zip(tallies) {
        tally.fill(d);
        last_bucket_overflows(d);
    }
    Ok(measured)
}
