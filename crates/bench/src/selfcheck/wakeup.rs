//! Our `timer` probe against cyclictest: same cpu, class, priority and period, in turns.

use std::path::Path;
use std::process::{Command, Stdio};

use host::install::install;
use model::Work;
use serde_json::{Value, json};
use stats::{CompareOptions, Sorted, compare};

use super::probe_process::{self, Probe, reap};
use super::section::{Finding, Section, Setup, us};
use crate::BenchError;
use crate::error::failed;
use crate::sweep::new_place;

/// Largest latency in cyclictest's histogram, ns; it counts larger ones as overflows.
const HISTOGRAM_NS: usize = 1_000_000;

pub(super) fn run(setup: Setup, say: &mut dyn FnMut(&str)) -> Result<Section, BenchError> {
    let rounds = if setup.quick { 4 } else { 40 };
    let mut section = Section {
        part: "wakeup",
        method: format!(
            "cyclictest and the timer probe in turns, {rounds} short rounds, FIFO {}, cpu {}, memory locked; \
             latencies from cyclictest's nanosecond histogram; cpu time is that of the measuring thread \
             (schedstat) over the middle of a run of its own, cyclictest's without histogram",
            setup.priority, setup.cpu
        ),
        table: vec![header()],
        findings: Vec::new(),
        data: Value::Null,
        unmet: Vec::new(),
    };
    if Command::new("cyclictest")
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        let unmet = format!("cyclictest is not installed ({})", install("rt-tests"));
        section.unmet.push(unmet);
        return Ok(section);
    }
    let place = new_place()?;
    let mut data = Vec::new();
    // Idle states shallow for both alike: cyclictest asks for that itself.
    let _awake = host::latency::DmaLatency::hold().ok();
    // Many short rounds: a virtual machine falls into fast and slow spells of some seconds, which only rounds shorter
    // than a spell share.
    for (period_ns, jobs) in [(1_000_000i64, 600u32), (100_000, 4_000)] {
        let period = Period {
            setup: &setup,
            dir: place.dir(),
            period_ns,
            jobs,
        };
        data.push(period.compare(rounds, say, &mut section)?);
    }
    section.data = Value::Array(data);
    Ok(section)
}

fn header() -> Vec<String> {
    [
        "period",
        "tool",
        "median us",
        "p99 us",
        "max us",
        "skipped or overflowed",
        "cpu us per activation",
    ]
    .map(str::to_owned)
    .to_vec()
}

struct Period<'a> {
    setup: &'a Setup,
    dir: &'a Path,
    period_ns: i64,
    jobs: u32,
}

#[derive(Default)]
struct Tool {
    rounds: Vec<Vec<i64>>,
    cpu_ns: Vec<i64>,
    skipped: u64,
}

impl Tool {
    fn row(&self, period: &str, name: &str) -> Vec<String> {
        let all = Sorted::new(self.rounds.concat());
        let at = |p| all.nearest_rank(p).map_or_else(String::new, us);
        vec![
            period.to_owned(),
            name.to_owned(),
            at(0.5),
            at(0.99),
            at(1.0),
            self.skipped.to_string(),
            stats::median_of(&self.cpu_ns)
                .map_or("-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e3)),
        ]
    }
}

impl Period<'_> {
    fn compare(
        &self,
        rounds: usize,
        say: &mut dyn FnMut(&str),
        section: &mut Section,
    ) -> Result<Value, BenchError> {
        let name = format!("{} us", self.period_ns / 1000);
        let (mut theirs, mut ours) = (Tool::default(), Tool::default());
        for round in 1..=rounds {
            say(&format!(
                "wake-up latency, period {name}, round {round} of {rounds}"
            ));
            // They take turns to begin: the second finds the state left by the first.
            if round % 2 == 0 {
                self.cyclictest(&mut theirs)?;
                self.probe(&mut ours)?;
            } else {
                self.probe(&mut ours)?;
                self.cyclictest(&mut theirs)?;
            }
        }
        section.table.push(theirs.row(&name, "cyclictest"));
        section.table.push(ours.row(&name, "timecell"));
        let options = CompareOptions::default();
        let compared = compare(&theirs.rounds, &ours.rounds, &options)
            .map_err(|error| BenchError::Failed(format!("cannot compare: {error}")))?;
        let median = &compared.ratio_of_medians;
        section.findings.push(Finding::ratio_goal(
            format!("median wake-up latency relative to cyclictest's, period {name}"),
            median,
            1.10,
        ));
        if let Some(p99) = &compared.ratio_of_p99 {
            section.findings.push(Finding::ratio_goal(
                format!("p99 wake-up latency relative to cyclictest's, period {name}"),
                p99,
                1.10,
            ));
        }
        if theirs.cpu_ns.is_empty() || ours.cpu_ns.is_empty() {
            section.unmet.push(format!(
                "cpu time per activation, period {name}: the kernel gives none (/proc/PID/schedstat)"
            ));
        }
        let cpu_rounds = |tool: &Tool| -> Vec<Vec<i64>> {
            tool.cpu_ns.iter().map(|ns| vec![(*ns).max(1)]).collect()
        };
        if let Ok(cpu) = compare(&cpu_rounds(&theirs), &cpu_rounds(&ours), &options) {
            let cpu = cpu.ratio_of_medians;
            section.findings.push(Finding::ratio_goal(
                format!("cpu time per activation relative to cyclictest's, period {name}"),
                &cpu,
                1.0,
            ));
        }
        Ok(json!({
            "period_ns": self.period_ns,
            "jobs": self.jobs,
            "comparison": compared,
            "cyclictest_round_medians_ns": round_medians(&theirs),
            "timecell_round_medians_ns": round_medians(&ours),
            "cyclictest_cpu_ns_per_activation": theirs.cpu_ns,
            "timecell_cpu_ns_per_activation": ours.cpu_ns,
            "cyclictest_overflows": theirs.skipped,
            "timecell_skipped": ours.skipped,
        }))
    }

    fn cyclictest(&self, tool: &mut Tool) -> Result<(), BenchError> {
        let (_, cost) = self.run_cyclictest(false)?;
        tool.cpu_ns.extend(cost);
        let (text, _) = self.run_cyclictest(true)?;
        let (values, overflows) = histogram(&text)?;
        tool.skipped += overflows;
        tool.rounds.push(values);
        Ok(())
    }

    /// Two runs, as for cyclictest, so that neither tool finds a warmer machine than the other.
    fn probe(&self, tool: &mut Tool) -> Result<(), BenchError> {
        let &Setup { cpu, priority, .. } = self.setup;
        let probe = Probe {
            dir: self.dir,
            cpu,
            fifo: Some(priority),
            work: Work::Timer,
            period_ns: self.period_ns,
            jobs: self.jobs,
            counters: false,
        };
        let (_, cost) = probe.run()?;
        tool.cpu_ns.extend(cost);
        let (samples, _) = probe.run()?;
        tool.skipped += samples.header.skipped;
        let latencies = samples.samples.iter().map(|s| s.wakeup_latency_ns());
        tool.rounds.push(latencies.collect());
        Ok(())
    }

    fn run_cyclictest(&self, histogram: bool) -> Result<(String, Option<i64>), BenchError> {
        let out = self.dir.join("cyclictest.out");
        let file = std::fs::File::create(&out).map_err(failed(&out, "create"))?;
        let mut command = Command::new("cyclictest");
        command
            .args(["-q", "-m", "-N", "-t", "1"])
            .args(["-p", &self.setup.priority.to_string()])
            .args(["-a", &self.setup.cpu.to_string()])
            .args(["-i", &(self.period_ns / 1000).to_string()])
            .args(["-l", &self.jobs.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(file);
        if histogram {
            command.args(["-h", &HISTOGRAM_NS.to_string()]);
        }
        let child = command
            .spawn()
            .map_err(failed(Path::new("cyclictest"), "start"))?;
        let span_ns = self.period_ns * i64::from(self.jobs);
        let cost = probe_process::cost_per_activation(child.id(), self.period_ns, span_ns);
        if !reap(&child).ok {
            return Err(BenchError::Failed(
                "cyclictest failed; it needs root".to_owned(),
            ));
        }
        let text = std::fs::read_to_string(&out).map_err(failed(&out, "read"))?;
        Ok((text, cost))
    }
}

fn round_medians(tool: &Tool) -> Vec<Option<i64>> {
    tool.rounds
        .iter()
        .map(|round| stats::median_of(round))
        .collect()
}

/// The samples behind cyclictest's `-h` text, in order of size, and its count of overflows.
///
/// An overflow is a latency beyond the histogram: left out, it would flatter the tail. Each counts as the largest
/// latency that the tool saw, which is exact for one overflow and too large for the others.
fn histogram(text: &str) -> Result<(Vec<i64>, u64), BenchError> {
    let mut values = Vec::new();
    let mut overflows = 0;
    let mut largest = HISTOGRAM_NS as i64;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# Histogram Overflows:") {
            overflows = rest.trim().parse().unwrap_or(0);
        }
        if let Some(rest) = line.strip_prefix("# Max Latencies:") {
            largest = rest.trim().parse().unwrap_or(largest);
        }
        if line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        if let (Some(Ok(value)), Some(Ok(count))) = (
            words.next().map(str::parse::<i64>),
            words.next().map(str::parse::<usize>),
        ) {
            values.extend(std::iter::repeat_n(value, count));
        }
    }
    if values.is_empty() {
        return Err(BenchError::Failed(
            "cyclictest printed no histogram".to_owned(),
        ));
    }
    values.extend((0..overflows).map(|_| largest));
    Ok((values, overflows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cyclictest_histograms() {
        let text = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000004 000002\n000009 \t000001\n\
                    # Total: 000000003\n# Max Latencies: 2500000\n# Histogram Overflows: 00002\n";
        let expected = vec![4, 4, 9, 2_500_000, 2_500_000];
        assert_eq!(histogram(text).unwrap(), (expected, 2));
        assert!(histogram("# Histogram\n").is_err());
    }
}
