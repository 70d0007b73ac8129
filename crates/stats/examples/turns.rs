//! Turns on simulated machines, as the tables of the methodology's chapter on turns: how often the interval encloses the truth, and
//! how wide it is; also against whole rounds, and by the number of rounds. Takes some minutes; with the name of a table, less.
//!
//! `cargo run --release -p stats --example turns [machines|rounds]`

#[path = "../tests/suite/simulated.rs"]
mod simulated;

use simulated::{FACTOR, Layout, MACHINES, Machine, Score, simulate};

const REPETITIONS: u64 = 400;
/// Of all experiments: figures of a ratio move with it, so one stands for all.
const TRUTH: f64 = 1.02;

fn main() {
    let only = std::env::args().nth(1);
    let tables: [(&str, fn()); 2] = [("machines", machines), ("rounds", rounds)];
    for (_, table) in tables
        .into_iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        table();
        println!();
    }
}

/// `95.2 %, ±1.99 %`: how often the truth was enclosed, and the median half width.
fn cell(score: &mut Score) -> String {
    if score.halves.is_empty() {
        return String::new();
    }
    format!(
        "{:.1} %, ±{:.2} %",
        100.0 * score.coverage(),
        100.0 * score.median_half()
    )
}

fn found(found: usize) -> String {
    format!("{:.0} %", 100.0 * found as f64 / REPETITIONS as f64)
}

/// Every machine, in turns and in whole rounds.
fn machines() {
    println!(
        "| machine | 3 whole rounds | turns: median | turns: p99 | two states found | within the fast state | within the slow state | share | difference of shares |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let layout = Layout {
        whole_rounds: true,
        ..Layout::default()
    };
    for machine in MACHINES {
        let mut s = simulate(machine, TRUTH, REPETITIONS, &layout);
        println!(
            "| {machine:?} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(&mut s.rounds),
            cell(&mut s.turns),
            cell(&mut s.p99),
            found(s.found),
            cell(&mut s.fast),
            cell(&mut s.slow),
            cell(&mut s.share),
            cell(&mut s.difference),
        );
    }
}

/// As many jobs in more and shorter rounds.
fn rounds() {
    println!(
        "| machine | rounds x jobs | median | p99 | two states found | within the fast state | within the slow state | share | difference of shares |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let jobs = 15_000;
    for machine in [Machine::Quiet, Machine::States(FACTOR)] {
        for rounds in [3, 5, 10, 20, 40] {
            let layout = Layout {
                rounds,
                jobs: jobs / rounds,
                ..Layout::default()
            };
            let mut s = simulate(machine, TRUTH, REPETITIONS, &layout);
            println!(
                "| {machine:?} | {rounds} x {} | {} | {} | {} | {} | {} | {} | {} |",
                layout.jobs,
                cell(&mut s.turns),
                cell(&mut s.p99),
                found(s.found),
                cell(&mut s.fast),
                cell(&mut s.slow),
                cell(&mut s.share),
                cell(&mut s.difference),
            );
        }
    }
}
