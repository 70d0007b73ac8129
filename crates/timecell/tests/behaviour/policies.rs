//! `analyze` and `analyze design` with a reservation over several cpus: exit codes, and a design that is read back. Crate
//! `feasibility` tests the words and numbers, also of the other policies.

use std::path::Path;

use crate::analyze::{file, json};
use crate::support::say;

/// The ten tasks of Abeni (2024), table 4: wcet and period in us.
const TEN: [(u64, u64); 10] = [
    (10_321, 34_000),
    (1_570, 40_000),
    (6_300, 65_000),
    (1_720, 90_000),
    (14_712, 98_000),
    (19_691, 123_000),
    (3_440, 128_000),
    (23_266, 164_000),
    (89_843, 236_000),
    (20_937, 257_000),
];

#[case]
fn a_reservation_over_several_cpus(dir: &Path) {
    let set = |cell: &str| {
        let mut text = format!("schema = 1\n[[cell]]\nname = \"c\"\n{cell}\n");
        for (place, (wcet, period)) in TEN.iter().enumerate() {
            text += &format!(
                "[[cell.task]]\nname = \"t{place}\"\nwcet = \"{wcet}us\"\nperiod = \"{period}us\"\n"
            );
        }
        file(dir, "set.toml", &text)
    };
    for (budget, code) in [("17.5ms", 0), ("17ms", 1), ("13ms", 3)] {
        let reservation = format!("{{ budget = \"{budget}\", period = \"10ms\", cpus = 2 }}");
        let set = set(&format!(
            "policy = \"global-edf\"\nreservation = {reservation}"
        ));
        say(dir, &["analyze", &set]).ends_with(code);
    }

    let design = |set: &str, options: &[&str], code: i32| {
        let words = ["analyze", "design", set, "--cpus", "2"];
        say(dir, &[words.as_slice(), options].concat())
            .ends_with(code)
            .out
    };
    let edf = set("policy = \"global-edf\"\ncpus = 2");
    let shown = design(&edf, &["--grid", "500us"], 0);
    assert!(shown.contains("17.5 ms over 2 cpus"), "{shown}");
    let found = json(
        dir,
        &["analyze", "design", &edf, "--grid", "1us", "--json"],
        0,
    );
    assert_eq!(found["cells"][0]["budget_ns"], 17_457_000);
    let written = file(dir, "designed.toml", &design(&edf, &["--toml"], 0));
    let said = say(dir, &["analyze", &written]).ends_with(0).out;
    assert!(
        said.contains("the cells fit (cpu 0: c; cpu 1: c)"),
        "{said}"
    );
    let fixed = set("policy = \"global-fp\"\ncpus = 2");
    let shown = design(&fixed, &[], 1);
    assert!(shown.contains("not even all of 2 cpus"), "{shown}");
}
