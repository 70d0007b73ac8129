//! Every key of the task-set file is read, described, and known to the schema.

use super::FORMAT;
use crate::file::agree::assert_agree;
use crate::file::reference::{assert_has_every_key, block, page};
use crate::taskset::TaskSet;

fn read(text: &str) -> Result<(), String> {
    let set = TaskSet::parse("set.toml", text);
    set.map(|_| ()).map_err(|faults| faults.to_string())
}

/// Between them these say every key.
const FULL: [&str; 2] = [
    r#"schema = 1
cpus = 4
refill = "together"
enforcer = "hcbs"
[[cell]]
name = "a"
policy = "fp"
order = "priority"
reservation = { budget = "2ms", period = "7ms", deadline = "6ms" }
server = "polling"
priority = 9
cpu = 1
[[cell.task]]
name = "t"
wcet = "1ms"
period = "50ms"
deadline = "40ms"
jitter = "1ms"
blocking = "10us"
priority = 3
[[cell]]
name = "b"
policy = "global-edf"
reservation = { budget = "15ms", period = "10ms", cpus = 2 }
[[cell.task]]
name = "t"
wcet = "1ms"
period = "50ms"
"#,
    r#"schema = 1
[[cell]]
name = "a"
policy = "global-fp"
cpus = 2
[[cell.task]]
name = "t"
wcet = "1ms"
period = "50ms"
[[cell]]
name = "b"
policy = "amc-rtb"
[[cell.task]]
name = "t"
wcet = "1ms"
wcet_hi = "2ms"
criticality = "hi"
period = "50ms"
"#,
];

#[test]
fn the_reader_and_the_schema_agree_on_what_is_spoilt() {
    let text = page("task-sets.md");
    let shipped = include_str!("../../../../../tests/guest/tasks.toml");
    let texts = [FULL[0], FULL[1], block(&text, "toml"), shipped];
    assert_agree(&FORMAT, &texts, read);
}

#[test]
fn the_documentation_has_every_key() {
    assert_has_every_key(&page("task-sets.md"), FORMAT.top);
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    let text = "schema = 1\ncpus = 0\n[[cell]]\nname = \"a\"\npolice = \"fp\"\nreservation = { budget = \"9ms\", period = \"7ms\" }\n\
        [[cell.task]]\nname = \"t\"\nwcet = \"1\"\nperiod = \"50ms\"\n[[cell.task]]\nname = \"t\"\nwcet = \"9ms\"\nperiod = \"5ms\"\nwcet_hi = \"3ms\"\n";
    let faults = read(text).unwrap_err();
    let told: Vec<&str> = faults.lines().collect();
    assert_eq!(
        told,
        [
            "set.toml:2: `cpus` is 0; it must be a whole number of 1 to 4096",
            "set.toml:5: unknown key `police` in [[cell]]; did you mean `policy`?",
            "set.toml:6: the budget of 9ms exceeds the reservation's period of 7ms; the budget must be at most the period",
            "set.toml:9: `wcet`: `1` has no unit; write `1us`, `1ms` or `1s`",
            "set.toml:12: there are two tasks named `t`; give each a different name",
            "set.toml:13: the wcet of task `t` is 9ms, longer than its deadline of 5ms; the wcet must be at most the deadline: otherwise a job misses it even alone",
            "set.toml:15: only tasks of high criticality run in high mode; add criticality = \"hi\" or remove `wcet_hi`",
        ]
    );
}
