//! Servers among servers, and the verdict of Linux on reservations, from the view of `analyze`'s user.

use std::fs;
use std::path::Path;

use serde_json::Value;

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

fn bounds(found: &Value, cell: usize) -> Vec<u64> {
    let tasks = found["cells"][cell]["tasks"].as_array().unwrap();
    let bound = |task: &Value| task["response_ns"].as_u64().unwrap();
    tasks.iter().map(bound).collect()
}

/// Bounds computed independently: 13 and 24 apart, 11 and 22 with one period and common refills, 16 and 36 without
/// knowing the neighbour.
#[case]
fn reference_bounds(dir: &Path) {
    let apart = file(dir, "apart.toml", SERVERS);
    let found = json(dir, &["analyze", &apart, "--json"], 0);
    assert_eq!(bounds(&found, 1), [13_000_000, 24_000_000]);
    assert_eq!(found["cells"][1]["server"]["response_ns"], 7_000_000);
    assert_eq!(found["cells"][1]["server"]["kind"], "deferrable");
    let shown = say(dir, &["analyze", &apart]).ends_with(0).out;
    for part in [
        "in a deferrable server of 3 ms every 10 ms, priority 3 on cpu 0",
        "among the servers above it (Davis & Burns 2005), sufficient",
        "server low: holds; it gets its whole budget within 7 ms of each refill",
        "verdict every deadline holds",
    ] {
        assert!(flat(&shown).contains(part), "`{part}` is not in\n{shown}");
    }

    let text = SERVERS
        .replace("schema = 1", "schema = 1\nrefill = \"together\"")
        .replace("\"7ms\"", "\"10ms\"");
    let together = file(dir, "together.toml", &text);
    let words = ["analyze", &together, "--json", "--plot", "low.svg"];
    let found = json(dir, &words, 0);
    assert_eq!(bounds(&found, 1), [11_000_000, 22_000_000]);
    assert!(
        fs::read_to_string(dir.join("low.svg"))
            .unwrap()
            .contains("<svg")
    );

    let plain = SERVERS
        .replace("server = \"deferrable\"\n", "")
        .replace("priority = 9\n", "")
        .replace("priority = 3\n", "");
    let plain = file(dir, "plain.toml", &plain);
    let found = json(dir, &["analyze", &plain, "--json"], 0);
    assert_eq!(bounds(&found, 1), [16_000_000, 36_000_000]);
    assert!(found["cells"][1]["server"].is_null());
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
    shown(
        RESERVED,
        &["--enforcer", "rt-cgroup"],
        0,
        &[
            "write /sys/fs/cgroup/cpu/wide_load/cpu.rt_period_us 100000 \
             write /sys/fs/cgroup/cpu/wide_load/cpu.rt_runtime_us 45000",
            "every cpu: admitted",
        ],
    );
    let named = RESERVED.replace("schema = 1", "schema = 1\nenforcer = \"hcbs\"");
    shown(
        &named,
        &[],
        0,
        &[
            "write /sys/fs/cgroup/cpu.rt.max 900000 1000000 write /sys/fs/cgroup/wide_load/cpu.rt.max 45000 100000",
            "refused cell other",
        ],
    );
    let name = file(dir, "a.toml", &named);
    let found = json(dir, &["analyze", &name, "--json"], 0);
    assert_eq!(found["linux"]["enforcer"], "hcbs");
    assert_eq!(found["linux"]["standing"], "refused_though_feasible");
    let found = json(
        dir,
        &["analyze", &name, "--json", "--enforcer", "deadline"],
        0,
    );
    assert_eq!(found["linux"]["enforcer"], "deadline");
    assert_eq!(found["linux"]["bounds"][0]["available"], 943_719);
}

#[case]
fn a_design_is_shown_to_linux(dir: &Path) {
    let cell = |name: &str, wcet: u64| {
        format!(
            "[[cell]]\nname = \"{name}\"\n[[cell.task]]\nname = \"t\"\nwcet = \"{wcet}ms\"\nperiod = \"100ms\"\n"
        )
    };
    let text = format!(
        "schema = 1\n{}{}{}",
        cell("a", 50),
        cell("b", 35),
        cell("c", 5)
    );
    let name = file(dir, "a.toml", &text);
    let cpus = |fit: &str| {
        let found = json(
            dir,
            &[
                "analyze", "design", &name, "--cpus", "2", "--fit", fit, "--json",
            ],
            0,
        );
        assert_eq!(found["linux"]["enforcer"], "deadline");
        let cells = found["cells"].as_array().unwrap().clone();
        cells
            .iter()
            .map(|cell| cell["cpu"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    // By decreasing bandwidth a, b, c; all of them fit on one cpu.
    assert_eq!(cpus("first"), cpus("best"));
    let worst = cpus("worst");
    assert_eq!(worst, [0, 1, 1]);
    assert_ne!(cpus("first"), worst);
    cpus("next");
    cpus("ovh");
    say(dir, &["analyze", "design", &name, "--fit", "last"]).ends_with(2);
    let shown = say(dir, &["analyze", "design", &name, "--enforcer", "hcbs"])
        .ends_with(0)
        .out;
    assert!(shown.contains("cpu.rt.max"), "{shown}");
    let help = say(dir, &["analyze", "design", "--help"]).ends_with(0).out;
    assert!(flat(&help).contains("reconstructed"), "{help}");
}
