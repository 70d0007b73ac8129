//! What if a critical task runs longer than was measured? Tasks of two criticalities: all are guaranteed as long as every job keeps
//! to its low wcet; once a critical one exceeds it, the others are dropped and the critical ones are guaranteed with their high wcet.
//!
//! `cargo run --example mixed_criticality` prints
//!
//! ```text
//! fixed priorities, every high wcet reserved for ever: not in time
//! AMC-rtb:
//!   attitude low   2 ms  high    3 ms  in time
//!   camera   low   6 ms  high dropped  in time
//!   thrust   low  14 ms  high   29 ms  in time
//!   compress low  25 ms  high dropped  in time
//! EDF with virtual deadlines: 7/13 of the periods
//! with 26 ms thrust is not shown to hold: 42 ms of work by 40 ms, which may never come together
//! EDF with virtual deadlines: not shown to hold
//! ```

use std::fmt::{self, Write};

use timecell_analysis::edf::{EdfVd, edf_vd};
use timecell_analysis::fp::{self, amc_rtb, amc_rtb_refusal};
use timecell_analysis::{MixedTask, Task};

/// All times are integers of nanoseconds.
const MS: u64 = 1_000_000;

fn main() -> fmt::Result {
    print!("{}", said()?);
    Ok(())
}

/// The program's output.
pub fn said() -> Result<String, fmt::Error> {
    let mut out = String::new();
    // In order of priority, the highest first. The high wcet is the one that certification assumes, the low one is measured.
    let names = ["attitude", "camera", "thrust", "compress"];
    let mut set = [
        MixedTask::high(Task::new(2 * MS, 10 * MS), 3 * MS),
        MixedTask::low(Task::new(4 * MS, 15 * MS)),
        MixedTask::high(Task::new(6 * MS, 40 * MS), 16 * MS),
        MixedTask::low(Task::new(5 * MS, 60 * MS)),
    ];

    // The alternative to mixed criticality: every critical task reserves its high wcet for ever.
    let reserved: Vec<Task> = set
        .iter()
        .map(|mixed| Task {
            wcet: mixed.wcet_high.unwrap_or(mixed.task.wcet),
            ..mixed.task
        })
        .collect();
    let holds = fp::verdict(&reserved).is_schedulable();
    writeln!(
        out,
        "fixed priorities, every high wcet reserved for ever: {}",
        word(holds)
    )?;

    writeln!(out, "AMC-rtb:")?;
    for (name, responses) in names.iter().zip(amc_rtb(&set)) {
        let low = responses.low.bound().map_or("no bound".to_owned(), ms);
        let high = match &responses.high {
            Some(high) => high.bound().map_or("no bound".to_owned(), ms),
            None => "dropped".to_owned(),
        };
        let meets = word(responses.meets());
        writeln!(out, "  {name:<8} low {low:>6}  high {high:>7}  {meets}")?;
    }
    writeln!(
        out,
        "EDF with virtual deadlines: {}",
        virtual_deadlines(&set)
    )?;

    // A longer wcet of `thrust`: which deadline gives way, and is it proved?
    set[2].wcet_high = Some(26 * MS);
    let refusal = amc_rtb_refusal(&set).expect("refused");
    writeln!(
        out,
        "with 26 ms {} is not shown to hold: {} of work by {}, {}",
        names[refusal.witness.task],
        ms(refusal.witness.demand),
        ms(refusal.witness.instant),
        if refusal.proved {
            "a proof"
        } else {
            "which may never come together"
        }
    )?;
    writeln!(
        out,
        "EDF with virtual deadlines: {}",
        virtual_deadlines(&set)
    )?;
    Ok(out)
}

fn virtual_deadlines(set: &[MixedTask]) -> String {
    match edf_vd(set) {
        EdfVd::Plain => "not needed".to_owned(),
        EdfVd::Scaled(by, of) => format!("{by}/{of} of the periods"),
        EdfVd::Refused => "not shown to hold".to_owned(),
        EdfVd::Undecided(why) => why.to_string(),
    }
}

fn word(holds: bool) -> &'static str {
    if holds { "in time" } else { "not in time" }
}

fn ms(ns: u64) -> String {
    format!("{} ms", ns / MS)
}
