//! `analyze` with a file of ten thousand tasks, and with times of 36 years. Crate `feasibility` tests more sets like these.

use std::path::Path;

use crate::analyze::{file, json};
use crate::support::say;

#[case]
fn ten_thousand_tasks(dir: &Path) {
    for (policy, tasks, code) in [("fp", 10_000, 0), ("edf", 10_001, 3)] {
        let mut text = format!("schema = 1\n[[cell]]\nname = \"cell\"\npolicy = \"{policy}\"\n");
        for task in 0..tasks {
            text += &format!(
                "[[cell.task]]\nname = \"{task}\"\nwcet = \"1ns\"\nperiod = \"10000ns\"\n"
            );
        }
        say(dir, &["analyze", &file(dir, "set.toml", &text)]).ends_with(code);
    }
}

#[case]
fn half_of_36_years_is_too_little_for_all_of_them(dir: &Path) {
    let longest = 1u64 << 60;
    for policy in ["fp", "edf"] {
        let text = format!(
            "schema = 1\n[[cell]]\nname = \"cell\"\npolicy = \"{policy}\"\n\
             reservation = {{ budget = \"500ns\", period = \"1000ns\" }}\n\
             [[cell.task]]\nname = \"0\"\nwcet = \"{longest}ns\"\nperiod = \"{longest}ns\"\n"
        );
        let set = file(dir, "set.toml", &text);
        say(dir, &["analyze", &set]).ends_with(3);
        let found = json(dir, &["analyze", &set, "--json"], 3);
        let witness = &found["cells"][0]["verdict"]["unschedulable"];
        let [demand, supply] = ["demand", "supply"].map(|key| witness[key].as_u64());
        assert!(demand > supply && supply.is_some(), "{policy}: {witness}");
    }
}
