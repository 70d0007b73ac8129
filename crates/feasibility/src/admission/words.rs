//! The kernel's answer in words.

use std::fmt::Write;

use super::{Admission, Bound};
use model::Enforcer;
use text::style::Style;
use text::units::exact;
use text::words::{clean, count};

/// The lines on the kernel's answer. Ends with a line break.
pub fn admission_text(admission: &Admission, style: Style) -> String {
    let mut lines = vec![format!("linux   {}", mechanism(admission))];
    for bound in &admission.bounds {
        lines.push(format!("linux   {}", bound_words(bound)));
        lines.extend(bound.refusals.iter().map(|why| format!("refused {why}")));
    }
    for write in &admission.writes {
        lines.push(format!("write   {} {}", write.file, write.value));
    }
    lines.extend(admission.notes.iter().map(|note| format!("note    {note}")));
    lines.push(format!("linux   {}", admission.standing.sentence()));
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", style.wrap(&clean(&line), 8));
    }
    out
}

fn mechanism(admission: &Admission) -> String {
    let (name, fair) = match admission.enforcer {
        Enforcer::RtCgroup => ("rt-cgroups (cgroup v1)", ""),
        Enforcer::Hcbs => (
            "HCBS (cpu.rt.max, cgroup v2)",
            ", of which its fair server has 50 ms every 1 s",
        ),
        Enforcer::Freezer => ("budgets by the clock and the freezer (cgroup v2)", ""),
        Enforcer::Deadline => (
            "SCHED_DEADLINE",
            ", of which its fair server has 50 ms every 1 s",
        ),
        Enforcer::EvlQuota => ("quota groups of EVL", ""),
        Enforcer::EvlTp => ("time partitions of EVL", ""),
        Enforcer::CpusetOnly => ("cpus without budgets", ""),
    };
    let limit = match admission.limit_runtime_ns {
        None => "no limit on real-time work".to_owned(),
        Some(runtime) => format!(
            "at most {} every {} on each cpu{fair}",
            exact(runtime),
            exact(admission.limit_period_ns)
        ),
    };
    let assumed = if admission.cpus_assumed {
        "; the file sets no `cpus`: cells without a `cpu` are assumed to be on cpu 0"
    } else {
        ""
    };
    format!("{name}, {limit}{assumed}")
}

fn bound_words(bound: &Bound) -> String {
    let word = if bound.refusals.is_empty() {
        "admitted"
    } else {
        "refused"
    };
    // Where hundredths of a percent do not tell them apart, the kernel's own numbers do.
    let near = (bound.available).is_some_and(|available| {
        percent(available) == percent(bound.asked) && available != bound.asked
    });
    let said = if near { share } else { percent };
    let available = match bound.available {
        Some(available) => format!("of {} available", said(available)),
        None => "without a limit".to_owned(),
    };
    let request = match bound.cells.as_slice() {
        [_] => "requests",
        _ => "request",
    };
    format!(
        "{}: {word}; {} {request} {} {available}",
        bound.of,
        bound.cells.join(", "),
        said(bound.asked)
    )
}

/// `314,572 (30.00 %)`: the kernel's number in 2^-20, and its share of a cpu.
fn share(ratio: u64) -> String {
    format!("{}/2^20 ({})", count(ratio), percent(ratio))
}

/// The same as a share of a cpu: `30.00 %`.
fn percent(ratio: u64) -> String {
    format!("{:.2} %", ratio as f64 * 100.0 / (1u64 << 20) as f64)
}
