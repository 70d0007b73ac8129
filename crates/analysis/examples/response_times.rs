//! Do the deadlines of a task set hold on a cpu of its own, and if not: which one is missed, by how much, and what would help?
//!
//! `cargo run --example response_times` prints
//!
//! ```text
//! motor above log above camera:
//!   motor      1.200 ms  in time
//!   log        8.000 ms  in time
//!   camera    12.300 ms  misses its deadline
//! camera is late: 12.300 ms of work by 12.000 ms
//! motor above camera above log:
//!   motor      1.200 ms  in time
//!   camera     4.300 ms  in time
//!   log       12.000 ms  in time
//! every wcet may be 1.950 times as long; then camera is late first
//! a wake-up may be late by 3.800 ms
//! under EDF every deadline holds: true
//! ```

use std::fmt::{self, Write};

use timecell_analysis::fp::{self, Assignment, Response};
use timecell_analysis::sensitivity::{critical_latency, critical_scaling};
use timecell_analysis::{Task, Verdict, edf};

/// All times are integers of nanoseconds.
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

fn main() -> fmt::Result {
    print!("{}", said()?);
    Ok(())
}

/// The program's output.
pub fn said() -> Result<String, fmt::Error> {
    let mut out = String::new();
    // In order of priority, the highest first. A bus interrupt releases `motor` up to 200 us late, and `camera` waits up to
    // 300 us for a lock that a task below it holds.
    let names = ["motor", "log", "camera"];
    let tasks = [
        Task::new(MS, 5 * MS).jittered(200 * US),
        Task::new(6 * MS, 40 * MS),
        Task::new(3 * MS, 20 * MS).due(12 * MS).blocked(300 * US),
    ];
    // The range of every time; the analyses never say yes to a task that fails this.
    tasks
        .iter()
        .for_each(|task| task.check().expect("times in range"));

    writeln!(out, "motor above log above camera:")?;
    table(&mut out, &names, &fp::response_times(&tasks))?;
    if let Verdict::Unschedulable(witness) = fp::verdict(&tasks) {
        writeln!(
            out,
            "{} is late: {} of work by {}",
            names[witness.task],
            ms(witness.demand),
            ms(witness.instant)
        )?;
    }

    let Assignment::Order(order) = fp::optimal_order(&tasks) else {
        return writeln!(out, "no order of priorities meets all deadlines").map(|()| out);
    };
    let names: Vec<&str> = order.iter().map(|&index| names[index]).collect();
    let tasks: Vec<Task> = order.iter().map(|&index| tasks[index]).collect();
    writeln!(out, "{}:", names.join(" above "))?;
    table(&mut out, &names, &fp::response_times(&tasks))?;

    let scaling = critical_scaling(&tasks, fp::verdict);
    let first = scaling.bottleneck().map_or("none", |index| names[index]);
    writeln!(
        out,
        "every wcet may be {:.3} times as long; then {first} is late first",
        scaling.per_mille as f64 / 1e3
    )?;
    if let Some(latency) = critical_latency(&tasks, fp::verdict) {
        writeln!(out, "a wake-up may be late by {}", ms(latency))?;
    }
    let edf = edf::verdict(&tasks).is_schedulable();
    writeln!(out, "under EDF every deadline holds: {edf}")?;
    Ok(out)
}

fn table(out: &mut String, names: &[&str], responses: &[Response]) -> fmt::Result {
    for (name, response) in names.iter().zip(responses) {
        let bound = response.bound().map_or("no bound".to_owned(), ms);
        let meets = match response {
            Response::Meets(_) => "in time",
            Response::Misses(_) => "misses its deadline",
            // Never to be read as yes.
            Response::Undecided(_) => "undecided",
        };
        writeln!(out, "  {name:<8} {bound:>10}  {meets}")?;
    }
    Ok(())
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}
