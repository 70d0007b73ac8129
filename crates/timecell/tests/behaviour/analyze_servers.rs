//! Servers among servers, and the verdict of Linux on reservations, from the view of `analyze`'s user.

use std::path::Path;

use crate::analyze::{file, json};
use crate::support::say;

const SERVERS: &str = r#"schema = 1

[[cell]]
name = "high"
reservation = { budget = "2ms", period = "7ms" }
server = "deferrable"
priority = 9
[[cell.task]]
name = "h"
wcet = "1ms"
period = "50ms"

[[cell]]
name = "low"
order = "file"
reservation = { budget = "3ms", period = "10ms" }
server = "deferrable"
priority = 3
[[cell.task]]
name = "a"
wcet = "2ms"
period = "25ms"
[[cell.task]]
name = "b"
wcet = "4ms"
period = "50ms"
"#;

/// The text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[case]
fn a_server_without_its_budget_is_explained_and_fixed(dir: &Path) {
    let text = SERVERS.replace("\"2ms\", period = \"7ms\"", "\"5ms\", period = \"7ms\"");
    let late = file(dir, "late.toml", &text);
    let said = say(dir, &["analyze", &late, "--explain"]).ends_with(3);
    for part in [
        "server low: fails; within 10 ms of a refill, up to 13 ms of budgets may be due",
        "why low: its server can lack part of its budget 10 ms after a refill",
        "demand 10 ms: 2 budgets of high",
        "fix budget of high -1.5 ms (5 ms -> 3.5 ms)",
        "verdict a server may not get its budget",
    ] {
        assert!(
            flat(&said.out).contains(part),
            "`{part}` is not in\n{}",
            said.out
        );
    }
    let found = json(dir, &["analyze", &late, "--explain", "--json"], 3);
    let server = &found["cells"][1]["server"];
    assert_eq!(server["kind"], "deferrable");
    assert_eq!(server["shortage"]["demand_ns"], 13_000_000);
    assert_eq!(server["shortage"]["parts"][1]["cell"], "high");
    let fix = &server["fixes"][0];
    assert_eq!(
        (&fix["change"], &fix["cell"]),
        (&"budget".into(), &"high".into())
    );
}

const RESERVED: &str = r#"schema = 1
[[cell]]
name = "wide load"
reservation = { budget = "45ms", period = "100ms" }
[[cell.task]]
name = "t"
wcet = "1ms"
period = "1s"
[[cell]]
name = "other"
reservation = { budget = "46ms", period = "100ms" }
[[cell.task]]
name = "t"
wcet = "1ms"
period = "1s"
"#;

#[case]
fn what_linux_says(dir: &Path) {
    let shown = |text: &str, more: &[&str], code: i32, parts: &[&str]| {
        let name = file(dir, "a.toml", text);
        let mut words = vec!["analyze", &name];
        words.extend(more);
        let out = say(dir, &words).ends_with(code).out;
        for part in parts {
            assert!(flat(&out).contains(part), "`{part}` is not in\n{out}");
        }
    };
    // 91 % is feasible, but too much with the fair server.
    shown(
        RESERVED,
        &[],
        0,
        &[
            "the file sets no `cpus`",
            "cpu 0: refused; wide load, other request 91.00 % of 90.00 %",
            "refused cell other: the root domain would have to give 1006631 of 2^20 and may give 996147 (EBUSY)",
            "linux feasible, but refused by the kernel",
            "verdict every deadline holds",
        ],
    );
    shown(
        RESERVED,
        &["--rt-limit", "980ms/1s"],
        0,
        &["linux admitted by the kernel, and every deadline holds"],
    );
    // The option comes before the key of the file.
    let named = RESERVED.replace("schema = 1", "schema = 1\nenforcer = \"hcbs\"");
    shown(
        &named,
        &["--enforcer", "rt-cgroup"],
        0,
        &[
            "write /sys/fs/cgroup/cpu/wide_load/cpu.rt_period_us 100000 \
             write /sys/fs/cgroup/cpu/wide_load/cpu.rt_runtime_us 45000",
            "every cpu: admitted",
        ],
    );
    let name = file(dir, "a.toml", &named);
    let found = json(dir, &["analyze", &name, "--json"], 0);
    assert_eq!(found["linux"]["enforcer"], "hcbs");
    assert_eq!(found["linux"]["standing"], "refused_though_feasible");
}
