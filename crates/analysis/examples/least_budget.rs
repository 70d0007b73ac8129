//! What is the least that a container must reserve of a cpu so that the deadlines of the tasks inside hold, and would Linux admit it?
//!
//! `cargo run --example least_budget` prints
//!
//! ```text
//! the tasks use 26.0 % of a cpu
//! fixed priorities inside: 3.500 ms every 10 ms
//! EDF inside: 2.786 ms every 10 ms
//! with 20 us for each switch the cheapest is 1.278 ms every 4.000 ms
//! its first nanosecond may take 5.444 ms to come
//! responses inside it: 26.054 ms, 74.718 ms
//! on a cpu of their own: 7.000 ms, 16.000 ms
//! 2 such containers on one cpu: Linux admits them, every deadline holds
//! 3 such containers on one cpu: Linux refuses them, a deadline can be missed
//! ```

use std::error::Error;
use std::fmt::Write;

use timecell_analysis::inside::{Policy, fixed_priority};
use timecell_analysis::least_budget::{Periods, Search, least_bandwidth, least_budget};
use timecell_analysis::linux::{DeadlineParams, RootDomain};
use timecell_analysis::reservation::{Dedicated, Periodic};
use timecell_analysis::{Supply, Task};

/// All times are integers of nanoseconds.
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", said()?);
    Ok(())
}

/// The program's output.
pub fn said() -> Result<String, Box<dyn Error>> {
    let mut out = String::new();
    // In order of priority, the highest first.
    let tasks = [Task::new(7 * MS, 50 * MS), Task::new(9 * MS, 75 * MS)];
    let used: f64 = tasks
        .iter()
        .map(|task| task.wcet as f64 / task.period as f64)
        .sum();
    writeln!(out, "the tasks use {:.1} % of a cpu", 100.0 * used)?;

    // For a given period, with budgets on a grid of 1 us.
    for (policy, name) in [
        (Policy::FixedPriority, "fixed priorities"),
        (Policy::Edf, "EDF"),
    ] {
        let least = least_budget(&tasks, policy, 10 * MS, US)?.ok_or("no budget is enough")?;
        writeln!(out, "{name} inside: {} every 10 ms", ms(least))?;
    }

    // Or for the best of many periods, where each switch to the container and back costs 20 us.
    let search = Search {
        overhead: 20 * US,
        ..Search::over(Periods::for_tasks(&tasks, MS, MS))
    };
    let best: Periodic = least_bandwidth(&tasks, Policy::FixedPriority, &search)?
        .ok_or("no reservation is enough")?;
    writeln!(
        out,
        "with 20 us for each switch the cheapest is {} every {}",
        ms(best.budget()),
        ms(best.period())
    )?;

    // The supply of that reservation: nothing for twice the gap, at the worst.
    let after = best.inverse(1).ok_or("it supplies nothing")?;
    writeln!(out, "its first nanosecond may take {} to come", ms(after))?;
    writeln!(out, "responses inside it: {}", responses(&tasks, &best))?;
    writeln!(
        out,
        "on a cpu of their own: {}",
        responses(&tasks, &Dedicated)
    )?;

    // Admission by the kernel is another question than feasibility.
    let thread = DeadlineParams::new(best.budget(), best.period());
    let cpu = RootDomain::of_cpus(1).with_fair_server();
    for copies in [2, 3] {
        let standing = cpu.standing(&vec![thread; copies]);
        let linux = if standing.is_admitted() {
            "admits"
        } else {
            "refuses"
        };
        let holds = match standing.is_feasible() {
            Some(true) => "every deadline holds",
            Some(false) => "a deadline can be missed",
            None => "whether deadlines hold is not decided",
        };
        writeln!(
            out,
            "{copies} such containers on one cpu: Linux {linux} them, {holds}"
        )?;
    }
    Ok(out)
}

/// Any [`Supply`] will do, a model of one's own too.
fn responses(tasks: &[Task], supply: &impl Supply) -> String {
    let bounds = fixed_priority(tasks, supply).responses.into_iter();
    let bounds: Vec<String> = bounds
        .map(|bound| bound.map_or("no bound".to_owned(), ms))
        .collect();
    bounds.join(", ")
}

fn ms(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}
