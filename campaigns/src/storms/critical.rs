//! The critical task: released every millisecond, it computes for 0.2 ms and measures how late it starts and how long it is stopped.

use super::turns::{QUIET_NS, TURN_NS, TURNS, at, now_ns, sleep_until};

const PERIOD_NS: u64 = 1_000_000;
const WORK_NS: u64 = 200_000;

/// Runs for as long as so many turns take, then prints the worst delay of a job in each of them, a line for each kind: from its
/// release to its first instruction, or between two instructions of it.
pub fn run(turns: u64) {
    let mut worst: Vec<Vec<u64>> = vec![Vec::new(); TURNS.len()];
    let mut last_turn = None;
    let began = now_ns();
    let mut release = began + PERIOD_NS;
    while release < began + turns * TURN_NS {
        sleep_until(release);
        let mut last = now_ns();
        let mut delay = last.saturating_sub(release);
        let end = last + WORK_NS;
        while last < end {
            let now = now_ns();
            delay = delay.max(now - last);
            last = now;
        }
        let (turn, into) = at(release);
        if (QUIET_NS..TURN_NS - QUIET_NS).contains(&into) {
            if last_turn.replace(turn) != Some(turn) {
                worst[turn].push(0);
            }
            if let Some(here) = worst[turn].last_mut() {
                *here = delay.max(*here);
            }
        }
        // A release that was slept through has been counted by its delay.
        release += PERIOD_NS * (last.saturating_sub(release) / PERIOD_NS + 1);
    }
    for kind in worst {
        let turns: Vec<String> = kind.iter().map(u64::to_string).collect();
        println!("worst {}", turns.join(" "));
    }
}
