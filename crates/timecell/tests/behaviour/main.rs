//! The binary from the user's view: run on real cells, with good and with bad input.
//!
//! A test whose requirement is unmet counts as ignored, with the requirement in its name.

mod analyze;
mod analyze_drawn;
mod analyze_random;
mod analyze_servers;
mod bad_input;
mod bench;
mod clean_up;
mod contest;
mod control;
mod control_orphans;
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
mod reporter;
mod resumed;
mod salvage;
mod scale;
mod scale_deadline;
mod scale_guards;
mod scale_report;
mod series;
mod suite;
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

use needs::Threads;
use support::Case;

fn main() {
    // Some cells run this very binary.
    reporter::run_if_asked();
    hostile::program::run_if_asked();
    suite::run_if_asked();
    let groups: &[&'static [Case]] = &[
        analyze::CASES,
        analyze_drawn::CASES,
        analyze_random::CASES,
        analyze_servers::CASES,
        bad_input::CASES,
        bench::CASES,
        clean_up::CASES,
        contest::CASES,
        counters::CASES,
        demo::CASES,
        doctor_fix::CASES,
        control::CASES,
        control_orphans::CASES,
        control_update::CASES,
        faults::CASES,
        first_steps::CASES,
        formats::CASES,
        hostile::CASES,
        isolation::CASES,
        extreme::CASES,
        long_runs::CASES,
        loads::CASES,
        lost::CASES,
        missions::CASES,
        missions_disk::CASES,
        missions_engines::CASES,
        missions_freezer::CASES,
        missions_ground::CASES,
        missions_health::CASES,
        missions_hold::CASES,
        missions_hold_cpus::CASES,
        missions_hold_names::CASES,
        missions_hold_others::CASES,
        missions_killed::CASES,
        missions_limits::CASES,
        missions_mounts::CASES,
        missions_mutexes::CASES,
        missions_reaction::CASES,
        missions_reserve::CASES,
        missions_run::CASES,
        missions_seen::CASES,
        missions_set_up::CASES,
        missions_threads::CASES,
        missions_recovery::CASES,
        missions_admission::CASES,
        missions_ample::CASES,
        missions_apart::CASES,
        missions_assumptions::CASES,
        missions_beside::CASES,
        missions_choice::CASES,
        missions_deadline::CASES,
        parquet::CASES,
        policies::CASES,
        salvage::CASES,
        resumed::CASES,
        scale::CASES,
        scale_deadline::CASES,
        scale_guards::CASES,
        scale_report::CASES,
        series::CASES,
        suite::CASES,
        nqueens::CASES,
        supply::CASES,
        supply_freezer::CASES,
        taskset::CASES,
        thresholds::CASES,
        top::CASES,
        program::CASES,
        proved::CASES,
        turns::CASES,
        unprivileged::CASES,
        users_places::CASES,
        verbs::CASES,
    ];
    let mut cases: Vec<&'static Case> = groups.iter().copied().flatten().collect();
    cases.sort_by_key(|case| lanes::place(case));
    let trials = cases
        .into_iter()
        .map(|case| {
            let unmet = case.needs.iter().find_map(|need| need.unmet());
            needs::trial(case.name, unmet.as_deref(), move || lanes::run(case))
        })
        .collect();
    needs::run_then(trials, Threads::OneEach, || {
        lanes::print_spent();
        lanes::judge_again();
    });
}
