//! Turns against whole rounds on simulated machines, as the table of the methodology's chapter on turns: how often the interval
//! encloses the true ratio, and how wide it is. Takes some minutes.
//!
//! `cargo run --release -p stats --example turns`

#[path = "../tests/suite/simulated.rs"]
mod simulated;

use simulated::{MACHINES, Score, simulate};

fn main() {
    println!(
        "| machine | true ratio | 3 whole rounds | 10 rounds of turns | p99 | fast state | slow state |"
    );
    println!("|---|---|---|---|---|---|---|");
    for machine in MACHINES {
        for truth in [1.0, 1.02] {
            let mut s = simulate(machine, truth, 400, true);
            let cell = |score: &mut Score| {
                if score.halves.is_empty() {
                    return "-".to_owned();
                }
                format!(
                    "{:.1} %, ±{:.2} %",
                    100.0 * score.coverage(),
                    100.0 * score.median_half()
                )
            };
            println!(
                "| {machine:?} | {truth:.2} | {} | {} | {} | {} | {} |",
                cell(&mut s.rounds),
                cell(&mut s.turns),
                cell(&mut s.p99),
                cell(&mut s.fast),
                cell(&mut s.slow)
            );
        }
    }
}
