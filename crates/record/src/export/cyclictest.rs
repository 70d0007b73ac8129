//! A run's wake-up latencies as cyclictest 2.x writes them, so that its readers can read them: a thread for every
//! cell, whole microseconds, rounded down as cyclictest does.

use std::fmt::Write as _;

use crate::Metric;
use crate::RecordError;
use crate::export::measured;
use crate::import::measured::{Distribution, Measured};
use crate::run::Run;

/// A text for another tool, and notes on losses, one sentence each without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file's content.
    pub text: String,
    /// Roundings, omissions and moves.
    pub notes: Vec<String>,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As `cyclictest --json`.
    Json,
    /// As `cyclictest -h`.
    Histogram,
}

/// One thread of cyclictest.
struct Thread {
    /// Counts of the buckets of 1 us, ascending; none is 0.
    buckets: Vec<(i64, u64)>,
    over: u64,
    cycles: u64,
    min: i64,
    mean: f64,
    max: i64,
    cpu: u32,
}

/// The fields above the threads in the JSON form.
#[derive(Default)]
struct Head {
    command: String,
    version: String,
    started: String,
    finished: String,
    host: String,
    release: String,
    kernel: String,
    machine: String,
    real_time: bool,
    /// That its times are those of an emulated machine.
    caution: Option<String>,
}

/// Writes the run; values of `buckets` us or more are counted as overflows, as by `cyclictest -h buckets`.
///
/// # Errors
/// When a file of the run cannot be read, or no trial of it is good.
pub fn write_cyclictest(run: &Run, form: Form, buckets: u32) -> Result<Exported, RecordError> {
    let measured = measured(run, &[Metric::WakeupLatency])?;
    if measured.distributions.is_empty() {
        return Err(RecordError::malformed(
            run.dir(),
            "no good trial has samples; there is nothing to export",
        ));
    }
    let (manifest, provenance) = (run.manifest()?, run.provenance()?);
    let version = manifest.timecell_version;
    let head = Head {
        command: format!("timecell bench, run {}, -h {buckets}", run.name()),
        version: format!("timecell {version}"),
        started: manifest.started,
        finished: manifest.finished.unwrap_or_default(),
        host: provenance.hostname.unwrap_or_default(),
        release: provenance.kernel_release.unwrap_or_default(),
        kernel: provenance.kernel_version.unwrap_or_default(),
        machine: provenance.arch,
        real_time: provenance.preempt_rt == Some(true),
        caution: run.caution()?,
    };
    Ok(write(&measured, &head, form, buckets))
}

fn write(measured: &Measured, head: &Head, form: Form, buckets: u32) -> Exported {
    let of = &measured.distributions;
    let names = of.iter().enumerate();
    let names: Vec<String> = names
        .map(|(number, d)| format!("thread {number} is {}", d.name))
        .collect();
    let mut notes = vec![
        format!("cells are threads: {}; rounds are pooled", names.join(", ")),
        "latencies are rounded down to whole microseconds, as cyclictest does".to_owned(),
    ];
    let early: u64 = of.iter().map(early).sum();
    if early > 0 {
        notes.push(format!(
            "{early} early wake-ups, negative here, are counted in bucket 0: cyclictest has no negative ones"
        ));
    }
    notes.extend(measured.notes.iter().cloned());
    let limit = i64::from(buckets);
    let threads: Vec<Thread> = of.iter().map(|d| thread(d, limit)).collect();
    let over: u64 = threads.iter().map(|thread| thread.over).sum();
    if over > 0 {
        notes.push(format!(
            "{over} values of {buckets} us or more are counted as overflows and have no bucket (--buckets)"
        ));
    }
    let text = match form {
        Form::Json => json(head, &threads),
        Form::Histogram => histogram(head, &threads, limit),
    };
    Exported { text, notes }
}

fn early(d: &Distribution) -> u64 {
    let negative = d.counts.iter().filter(|pair| pair.0 < 0);
    negative.map(|pair| pair.1).sum()
}

fn thread(d: &Distribution, limit: i64) -> Thread {
    let us = |ns: i64| ns.max(0) / 1_000;
    let mut buckets: Vec<(i64, u64)> = Vec::new();
    let mut over = 0;
    let mut sum = 0_i128;
    for &(ns, count) in &d.counts {
        sum += i128::from(us(ns)) * i128::from(count);
        if us(ns) >= limit {
            over += count;
        } else {
            match buckets.last_mut() {
                Some(last) if last.0 == us(ns) => last.1 += count,
                _ => buckets.push((us(ns), count)),
            }
        }
    }
    let cycles = d.counted();
    Thread {
        buckets,
        over,
        cycles,
        min: d.counts.first().map_or(0, |pair| us(pair.0)),
        mean: sum as f64 / cycles.max(1) as f64,
        max: d.counts.last().map_or(0, |pair| us(pair.0)),
        cpu: d.cpu.unwrap_or(0),
    }
}

fn json(head: &Head, threads: &[Thread]) -> String {
    let text = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let mut out = String::from("{\n  \"file_version\": 1,\n");
    // The keys with a colon inside are cyclictest's own.
    for (key, value) in [
        ("cmdline:", &head.command),
        ("rt_test_version:", &head.version),
        ("start_time", &head.started),
        ("end_time", &head.finished),
    ] {
        let _ = writeln!(out, "  \"{key}\": {},", text(value));
    }
    if let Some(caution) = &head.caution {
        let _ = writeln!(out, "  \"emulated\": {},", text(caution));
    }
    out.push_str("  \"return_code\": 0,\n  \"sysinfo\": {\n    \"sysname\": \"Linux\",\n");
    for (key, value) in [
        ("nodename", &head.host),
        ("release", &head.release),
        ("version", &head.kernel),
        ("machine", &head.machine),
    ] {
        let _ = writeln!(out, "    \"{key}\": {},", text(value));
    }
    let _ = writeln!(out, "    \"realtime\": {}\n  }},", u8::from(head.real_time));
    let _ = writeln!(
        out,
        "  \"num_threads\": {},\n  \"resolution_in_ns\": 0,\n  \"thread\": {{",
        threads.len()
    );
    for (number, t) in threads.iter().enumerate() {
        let rows: Vec<String> = t
            .buckets
            .iter()
            .map(|(us, n)| format!("        \"{us}\": {n}"))
            .collect();
        let _ = writeln!(
            out,
            "    \"{number}\": {{\n      \"histogram\": {{\n{}\n      }},",
            rows.join(",\n")
        );
        let _ = writeln!(
            out,
            "      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \"avg\": {:.2},\n      \"cpu\": {},\n      \"node\": 0",
            t.cycles, t.min, t.max, t.mean, t.cpu
        );
        let _ = writeln!(
            out,
            "    }}{}",
            if number + 1 < threads.len() { "," } else { "" }
        );
    }
    out.push_str("  }\n}\n");
    out
}

fn histogram(head: &Head, threads: &[Thread], limit: i64) -> String {
    let mut out = String::from("# Histogram\n");
    let mut next: Vec<_> = threads
        .iter()
        .map(|t| t.buckets.iter().peekable())
        .collect();
    for bucket in 0..limit {
        let counts: Vec<String> = next
            .iter_mut()
            .map(|rows| {
                format!(
                    "{:06}",
                    rows.next_if(|row| row.0 == bucket).map_or(0, |row| row.1)
                )
            })
            .collect();
        let _ = writeln!(out, "{bucket:06} {}", counts.join("\t"));
    }
    let mut footer = |key: &str, width: usize, of: &dyn Fn(&Thread) -> String| {
        let values: Vec<String> = threads
            .iter()
            .map(|t| format!("{:0>width$}", of(t)))
            .collect();
        let _ = writeln!(out, "# {key}: {}", values.join(" "));
    };
    footer("Total", 9, &|t| (t.cycles - t.over).to_string());
    footer("Min Latencies", 5, &|t| t.min.to_string());
    footer("Avg Latencies", 5, &|t| format!("{:.0}", t.mean.floor()));
    footer("Max Latencies", 5, &|t| t.max.to_string());
    footer("Histogram Overflows", 5, &|t| t.over.to_string());
    out.push_str("# Histogram Overflow at cycle number:\n");
    for (number, thread) in threads.iter().enumerate() {
        // The run says which activations they were; rounds are pooled here.
        let others = match thread.over {
            0 => String::new(),
            over => format!(" # {over:05} others"),
        };
        let _ = writeln!(out, "# Thread {number}:{others}");
    }
    if let Some(caution) = &head.caution {
        let _ = writeln!(out, "# {caution}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::measured::{Options, Overflow, import};
    use proptest::prelude::*;

    fn measured_of(cells: &[Vec<i64>]) -> Measured {
        let distribution = |(number, values): (usize, &Vec<i64>)| {
            let mut d = Distribution::new(format!("cell {number}"), "wake-up latency", 1);
            d.cpu = Some(number as u32);
            d.fill(values.iter().map(|&ns| (ns, 1)));
            d
        };
        Measured {
            file: "run".to_owned(),
            format: None,
            tool: "timecell".to_owned(),
            version: None,
            command: None,
            machine: None,
            distributions: cells.iter().enumerate().map(distribution).collect(),
            incomplete: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn early_and_late_values_are_said() {
        let measured = measured_of(&[vec![-5, 1_999, 2_000, 10_000]]);
        let out = write(&measured, &Head::default(), Form::Histogram, 10);
        assert!(out.text.starts_with(
            "# Histogram\n000000 000001\n000001 000001\n000002 000001\n000003 000000\n"
        ));
        assert!(out.text.contains("# Total: 000000003\n# Min Latencies: 00000\n# Avg Latencies: 00003\n# Max Latencies: 00010\n"));
        assert!(out.text.contains("# Histogram Overflows: 00001\n"));
        assert!(
            out.notes
                .iter()
                .any(|note| note.starts_with("1 early wake-ups"))
        );
        assert!(
            out.notes
                .iter()
                .any(|note| note.starts_with("1 values of 10 us or more"))
        );
    }

    proptest! {
        /// Both forms are read back to the same counts, overflows and extremes.
        #[test]
        fn what_is_written_is_read_back(
            cells in prop::collection::vec(prop::collection::vec(-2_000i64..90_000, 1..60), 1..5),
            buckets in 1u32..100,
            json: bool,
            emulated: bool,
        ) {
            let form = if json { Form::Json } else { Form::Histogram };
            let measured = measured_of(&cells);
            let caution = emulated.then(|| host::virt::NOT_REPRESENTATIVE.to_owned());
            let head = Head { command: format!("timecell \"x\" -h {buckets}"), caution, ..Head::default() };
            let out = write(&measured, &head, form, buckets);
            prop_assert_eq!(out.text.contains(host::virt::NOT_REPRESENTATIVE), emulated);
            let back = import(None, "f", out.text.as_bytes(), Options::default());
            let back = back.map_err(|error| error.to_string()).expect("our own output");
            prop_assert_eq!(back.distributions.len(), cells.len());
            let limit = i64::from(buckets) * 1_000;
            for (d, values) in back.distributions.iter().zip(&cells) {
                let floored = |v: i64| v.max(0) / 1_000 * 1_000;
                let mut expected = Distribution::new("e", "q", 1_000);
                expected.fill(values.iter().map(|&v| (floored(v), 1)).filter(|pair| pair.0 < limit));
                let over = values.iter().filter(|v| floored(**v) >= limit).count() as u64;
                prop_assert_eq!(&d.counts, &expected.counts);
                let overflow = (over > 0).then_some(Overflow { count: Some(over), at_least_ns: limit });
                prop_assert_eq!(d.overflow, overflow);
                prop_assert_eq!(d.max_ns(), values.iter().map(|&v| floored(v)).max());
                prop_assert_eq!(d.min_ns(), values.iter().map(|&v| floored(v)).min());
            }
        }
    }
}
