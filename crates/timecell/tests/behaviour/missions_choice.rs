//! The enforcer of cells whose file names none: the cheapest, and the same one as long as they run.

use std::path::Path;

use serde_json::Value;

use crate::control::{ask, cell, json_of};
use crate::missions::{RESERVED, Up, mission, nothing_is_left, pid_of, shell};
use crate::support::say;

fn one_task(name: &str) -> String {
    let task = "[[cell.task]]\nname = \"t\"\nwcet = \"1.5ms\"\nperiod = \"20ms\"";
    shell(name, "exec /busybox sleep 1000", task)
}

/// A cell that a cgroup can hold even beside the supervisor, at any tick.
fn small(name: &str) -> String {
    one_task(name).replace("20ms", "200ms")
}

/// The choice in `admit --json`.
fn choice(dir: &Path) -> Value {
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    json["admission"]["choice"].clone()
}

/// The price of each enforcer where no cell runs, in JSON and in words.
#[track_caller]
fn the_cheapest_is_taken_and_the_others_are_told(dir: &Path) {
    // With the supervisor's reservation before it, no cgroup is admitted with a tick of 4 ms.
    let alone = "supervisor = { class = \"other\" }\n";
    mission(dir, &(alone.to_owned() + &one_task("app")));
    let told = choice(dir);
    assert_eq!(
        (&told["chosen"], &told["kept"]),
        (&"deadline".into(), &false.into())
    );
    let mut offers = told["offers"].as_array().unwrap().iter();
    let offer = offers
        .find(|offer| offer["enforcer"] == "deadline")
        .unwrap();
    let reserved = offer["reserved"].as_f64().unwrap();
    assert!((reserved - 0.083_35).abs() < 1e-6, "{told}");
    assert!(offer["why"].is_null(), "{told}");
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0);
    for part in [
        "held by deadline",
        "deadline: 8.3 % of a cpu: chosen, ",
        "rt-cgroup: ",
        " % of a cpu: not chosen, more than needed",
        "cpuset-only: not chosen, enforces no budget",
    ] {
        assert!(said.out.contains(part), "no `{part}` in:\n{}", said.out);
    }
}

#[case(Root, RealTime, Deadline, Program("busybox"), GroupBudget(500))]
fn running_cells_keep_what_holds_them(dir: &Path) {
    let (app, whole) = (
        small("app"),
        shell("whole", "exec /busybox sleep 1000", RESERVED),
    );
    // A reservation is for a whole cell, which SCHED_DEADLINE cannot hold: so both are in cgroups.
    mission(dir, &(app.clone() + &whole));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("app: runs"));
    up.told("whole: runs");
    let held = |name: &str| cell(dir, name)["enforcer"].clone();
    assert_eq!(
        (held("app"), held("whole")),
        ("rt-cgroup".into(), "rt-cgroup".into())
    );
    // Without that cell, SCHED_DEADLINE would be cheaper, and a new mission would get it.
    mission(dir, &app);
    let updated = json_of(dir, &["update", "mission.toml", "--window", "100ms"]);
    assert_eq!(updated["committed"], true, "{updated}");
    assert_eq!(
        (held("app"), cell(dir, "app")["pid"].clone()),
        ("rt-cgroup".into(), pid.into())
    );
    // Nor does a supervisor that adopts the cells choose again.
    up.kill();
    let told = choice(dir);
    assert_eq!(
        (&told["chosen"], &told["kept"]),
        (&"rt-cgroup".into(), &true.into()),
        "{told}"
    );
    let mut again = Up::start(dir);
    again.until("adopted");
    assert_eq!(
        (held("app"), cell(dir, "app")["pid"].clone()),
        ("rt-cgroup".into(), pid.into())
    );
    // A cell that is added later has the same enforcer.
    mission(dir, &(app.clone() + &small("later")));
    ask(dir, &["update", "mission.toml", "--window", "100ms"]).ends_with(0);
    assert_eq!(held("later"), "rt-cgroup");
    again.end();
    nothing_is_left(dir);
    // Once nothing runs, the price decides again.
    mission(dir, &app);
    assert_eq!(choice(dir)["chosen"], "deadline");
    the_cheapest_is_taken_and_the_others_are_told(dir);
}
