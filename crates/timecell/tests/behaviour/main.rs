//! The binary from the user's view: run on real cells, with good and with bad input.
//!
//! A test whose requirement is unmet counts as ignored, with the requirement in its name.

#[macro_use]
extern crate case;

mod analyze;
mod analyze_servers;
mod attacks;
mod bad_input;
mod bench;
mod bench_mission;
mod boards;
mod clean_up;
mod contest;
mod control;
mod control_update;
mod counters;
mod demo;
mod doctor_fix;
mod extreme;
mod faults;
mod first_steps;
mod formats;
mod held_file;
mod hostile;
mod hung;
mod isolation;
mod lanes;
mod loads;
mod long_runs;
mod lost;
mod missions;
mod missions_admission;
mod missions_ample;
mod missions_apart;
mod missions_assumptions;
mod missions_beside;
mod missions_choice;
mod missions_deadline;
mod missions_disk;
mod missions_engines;
mod missions_freezer;
mod missions_ground;
mod missions_health;
mod missions_hold;
mod missions_hold_cpus;
mod missions_hold_names;
mod missions_hold_others;
mod missions_killed;
mod missions_limits;
mod missions_mounts;
mod missions_mutexes;
mod missions_reaction;
mod missions_recovery;
mod missions_reserve;
mod missions_run;
mod missions_seen;
mod missions_set_up;
mod missions_threads;
#[path = "../../../host/tests/needs/mod.rs"]
mod needs;
mod nqueens;
mod parquet;
mod part;
mod policies;
mod program;
mod proved;
mod pty;
mod remote;
mod reporter;
mod resumed;
mod salvage;
mod scale;
mod scale_deadline;
mod scale_guards;
mod scale_report;
mod series;
mod strangers;
mod supply;
mod supply_freezer;
mod support;
mod taskset;
mod thresholds;
mod top;
mod turns;
mod unprivileged;
mod users_places;
mod verbs;

use std::collections::HashSet;

use needs::Threads;
use support::{CASES, Case};

fn main() {
    // Some cells run this very binary.
    reporter::run_if_asked();
    hostile::program::run_if_asked();
    attacks::run_if_asked();
    let mut cases: Vec<&'static Case> = CASES.iter().collect();
    cases.sort_by_cached_key(|case| (lanes::place(case), case.name()));
    let names: HashSet<String> = cases.iter().map(|case| case.name()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    let trials = cases
        .into_iter()
        .map(|case| {
            let unmet = case.needs.iter().find_map(|need| need.unmet());
            needs::trial(&case.name(), unmet.as_deref(), move || lanes::run(case))
        })
        .collect();
    needs::run_then(trials, Threads::OneEach, || {
        lanes::print_spent();
        lanes::judge_again();
    });
}
