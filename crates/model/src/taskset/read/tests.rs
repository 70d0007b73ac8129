//! Task-set files: their defaults, and each fault with its line and fix.

use super::super::{
    CellServer, CellTask, Enforcer, Limits, Order, Policy, Refill, Reservation, ServerKind,
    TaskCell, TaskSet,
};
use crate::Duration;
use proptest::prelude::*;

const GOOD: &str = r#"schema = 1
cpus = 2

[[cell]]
name = "control"
reservation = { budget = "5ms", period = "10ms", deadline = "8ms" }

[[cell.task]]
name = "loop"
wcet = "1ms"
period = "10ms"
deadline = "9ms"
jitter = "100us"

[[cell.task]]
name = "log"
wcet = "2.5ms"
period = "40ms"

[[cell]]
name = "vision"
policy = "edf"

[[cell.task]]
name = "frame"
wcet = "8ms"
period = "33ms"
"#;

fn error(text: &str) -> String {
    TaskSet::parse("set.toml", text)
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn defaults_are_filled_in() {
    let set = TaskSet::parse("set.toml", GOOD).expect("good");
    assert_eq!(set.cpus, Some(2));
    let [control, vision] = set.cells.as_slice() else {
        panic!("two cells");
    };
    assert_eq!(control.policy, Policy::Fixed(Order::Deadline));
    assert_eq!(vision.policy, Policy::Edf);
    assert_eq!(vision.reservation, None);
    assert_eq!(control.tasks[0].deadline.ns(), 9_000_000);
    assert_eq!(control.tasks[1].deadline.ns(), 40_000_000);
    assert_eq!(control.tasks[1].jitter.ns(), 0);
    assert_eq!(set.tasks(), 3);
}

#[test]
fn each_fault_has_its_line_and_fix() {
    for (from, to, parts) in [
        ("schema = 1\n", "", ["set.toml:1:", "schema = 1"]),
        ("schema = 1", "schema = 2", ["set.toml:1:", "newer"]),
        ("cpus = 2", "cpus = 0", ["set.toml:2:", "1 to 4096"]),
        (
            "cpus = 2",
            "cpu = 2",
            ["set.toml:2:", "did you mean `cpus`?"],
        ),
        (
            "jitter =",
            "jiter =",
            ["set.toml:13:", "did you mean `jitter`?"],
        ),
        ("jitter =", "foo =", ["set.toml:13:", "in [[cell.task]]"]),
        (
            "wcet = \"1ms\"",
            "wcet = 1",
            ["set.toml:10:", "has no unit"],
        ),
        (
            "wcet = \"1ms\"",
            "wcet = \"-1ms\"",
            ["set.toml:10:", "negative"],
        ),
        (
            "wcet = \"1ms\"",
            "wcet = \"0ms\"",
            ["set.toml:10:", "at least 1ns"],
        ),
        (
            "wcet = \"1ms\"",
            "wcet = \"11ms\"",
            ["set.toml:10:", "at most the deadline"],
        ),
        ("wcet = \"1ms\"\n", "", ["set.toml:8:", "wcet = \"1ms\""]),
        ("\"9ms\"", "\"0ns\"", ["set.toml:12:", "`deadline` is 0ns"]),
        (
            "\"100us\"",
            "\"-1ns\"",
            ["set.toml:13:", "`-1ns` is negative"],
        ),
        ("\"100us\"", "\"1e30ns\"", ["set.toml:13:", "`jitter`"]),
        (
            "jitter = \"100us\"",
            "blocking = \"-1ns\"",
            ["set.toml:13:", "`blocking`: `-1ns` is negative"],
        ),
        (
            "period = \"40ms\"",
            "period = \"1152921504606846977ns\"",
            ["set.toml:18:", "36 years"],
        ),
        (
            "period = \"40ms\"",
            "period = \"40y\"",
            ["set.toml:18:", "unknown unit `y`"],
        ),
        (
            "period = \"40ms\"",
            "period = \"900000h\"",
            ["set.toml:18:", "36 years"],
        ),
        (
            "period = \"40ms\"",
            "period = \"99999999999999999999ms\"",
            ["set.toml:18:", "36 years"],
        ),
        (
            "name = \"log\"",
            "name = \"loop\"",
            ["set.toml:16:", "two tasks named `loop`"],
        ),
        (
            "name = \"vision\"",
            "name = \"control\"",
            ["set.toml:21:", "two cells named"],
        ),
        (
            "\"edf\"",
            "\"efd\"",
            ["set.toml:22:", "did you mean `edf`?"],
        ),
        (
            "policy = \"edf\"",
            "policy = \"edf\"\norder = \"rm\"",
            ["set.toml:23:", "takes no `order`"],
        ),
        (
            "budget = \"5ms\"",
            "budget = \"9ms\"",
            ["set.toml:6:", "at most the deadline"],
        ),
        ("budget = \"5ms\", ", "", ["set.toml:6:", "has no `budget`"]),
        (
            "deadline = \"8ms\"",
            "deadline = \"11ms\"",
            ["set.toml:6:", "at most the period"],
        ),
        (
            "deadline = \"9ms\"",
            "priority = 5",
            ["set.toml:15:", "has no priority"],
        ),
        (
            "name = \"frame\"",
            "name = \"frame\"\npriority = 3",
            ["set.toml:26:", "policy = \"edf\""],
        ),
        (
            "[[cell.task]]\nname = \"frame\"",
            "[cell.more]",
            ["set.toml:24:", "unknown key `more`"],
        ),
    ] {
        let error = error(&GOOD.replacen(from, to, 1));
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }
    assert!(error("schema = 1\n").contains("[[cell]]"));
    assert!(error("schema = 1\n[[cell]]\nname = \"x\"\n").contains("there is no [[cell.task]]"));
    assert!(error("schema = ").contains("not TOML"));
}

#[test]
fn policies_have_keys_of_their_own() {
    let with = |cell: &str, task: &str| {
        let text = format!(
            "schema = 1\n[[cell]]\nname = \"c\"\n{cell}\n[[cell.task]]\nname = \"t\"\nwcet = \"2ms\"\n\
             period = \"10ms\"\n{task}\n"
        );
        TaskSet::parse("x", &text).map_err(|error| error.to_string())
    };
    let cell = |cell: &str, task: &str| with(cell, task).expect("good").cells.remove(0);
    assert_eq!(
        cell("order = \"audsley\"", "").policy,
        Policy::Fixed(Order::Audsley)
    );
    let global = cell("policy = \"global-fp\"\ncpus = 3\norder = \"rm\"", "");
    assert_eq!(global.policy, Policy::GlobalFixed(Order::Rate, 3));
    let mpr = cell(
        "policy = \"global-edf\"\nreservation = { budget = \"15ms\", period = \"10ms\", cpus = 2 }",
        "",
    );
    assert_eq!(mpr.policy, Policy::GlobalEdf(2));
    assert_eq!(mpr.reservation.map(|r| r.budget.ns()), Some(15_000_000));
    let mixed = |task: &str| cell("policy = \"amc-rtb\"", task).tasks[0].wcet_high;
    assert_eq!(mixed("criticality = \"lo\""), None);
    assert_eq!(
        mixed("criticality = \"hi\"").map(Duration::ns),
        Some(2_000_000)
    );
    assert_eq!(
        mixed("criticality = \"hi\"\nwcet_hi = \"3ms\"").map(Duration::ns),
        Some(3_000_000)
    );
    let reserved = |policy: &str, rest: &str| {
        format!(
            "policy = \"{policy}\"\nreservation = {{ budget = \"5ms\", period = \"10ms\"{rest} }}"
        )
    };
    let mixed = "policy = \"edf-vd\"";
    for (cell, task, part) in [
        ("policy = \"global-edf\"", "", "cpus = 2"),
        ("policy = \"global-edf\"\ncpus = 0", "", "1 to 4096"),
        ("cpus = 2", "", "schedules on one cpu"),
        (&reserved("edf", ", cpus = 2"), "", "schedules on one cpu"),
        (&reserved("global-fp", ""), "", "cpus = 2"),
        (
            &reserved("global-fp", ", cpus = 2, deadline = \"9ms\""),
            "",
            "cannot have a deadline",
        ),
        (
            &reserved("global-fp", ", cpus = 2").replace("5ms", "21ms"),
            "",
            "at most 20ms",
        ),
        (
            &format!("cpus = 2\n{}", reserved("global-fp", "")),
            "",
            "belongs in it",
        ),
        (&reserved("amc-rtb", ""), "", "on a whole cpu"),
        (
            "policy = \"global-fp\"\ncpus = 2\norder = \"audsley\"",
            "",
            "cannot be combined with",
        ),
        (
            "policy = \"amc-rtb\"\norder = \"audsley\"",
            "",
            "cannot be combined with",
        ),
        (
            "policy = \"edf-vd\"\norder = \"rm\"",
            "",
            "takes no `order`",
        ),
        (
            "order = \"audsley\"",
            "priority = 3",
            "no meaning with order = \"audsley\"",
        ),
        ("", "criticality = \"hi\"", "no meaning with policy \"fp\""),
        (mixed, "wcet_hi = \"3ms\"", "add criticality = \"hi\""),
        (
            mixed,
            "criticality = \"hi\"\nwcet_hi = \"1ms\"",
            "at least the wcet",
        ),
        (
            mixed,
            "criticality = \"hi\"\nwcet_hi = \"11ms\"",
            "at most the deadline",
        ),
        (mixed, "criticality = \"medium\"", "one of lo, hi"),
        ("policy = \"global\"", "", "global-fp"),
        (
            &format!(
                "{}\nserver = \"polling\"",
                reserved("global-edf", ", cpus = 2")
            ),
            "",
            "not analysed inside a server",
        ),
        (
            &format!(
                "{}\norder = \"audsley\"\nserver = \"polling\"",
                reserved("fp", "")
            ),
            "",
            "searched for inside a server",
        ),
    ] {
        let error = with(cell, task).expect_err(cell);
        assert!(error.contains(part), "`{part}` is not in: {error}");
        assert!(error.starts_with("x:"), "{error}");
    }
}

#[test]
fn equal_priorities_are_refused() {
    let text = GOOD
        .replace("deadline = \"9ms\"", "priority = 5")
        .replace("period = \"40ms\"", "period = \"40ms\"\npriority = 5");
    assert!(error(&text).contains("both have priority 5"));
    let set = TaskSet::parse("x", &text.replacen("priority = 5", "priority = 6", 1));
    assert_eq!(
        set.expect("good").cells[0].policy,
        Policy::Fixed(Order::Priority)
    );
}

/// Two servers on cpu 1 and one on cpu 0.
const SERVED: &str = r#"schema = 1
cpus = 2
refill = "apart"
enforcer = "rt-cgroup"

[[cell]]
name = "high"
reservation = { budget = "2ms", period = "7ms" }
server = "deferrable"
priority = 9
cpu = 1
[[cell.task]]
name = "t"
wcet = "1ms"
period = "20ms"

[[cell]]
name = "low"
reservation = { budget = "3ms", period = "10ms" }
server = "sporadic"
priority = 3
cpu = 1
[[cell.task]]
name = "t"
wcet = "1ms"
period = "20ms"

[[cell]]
name = "other"
reservation = { budget = "3ms", period = "10ms" }
server = "cbs"
cpu = 0
[[cell.task]]
name = "t"
wcet = "1ms"
period = "20ms"
"#;

#[test]
fn servers_are_read() {
    let set = TaskSet::parse("set.toml", SERVED).expect("good");
    assert_eq!(set.refill, Refill::Apart);
    assert_eq!(set.enforcer, Some(Enforcer::RtCgroup));
    let servers: Vec<_> = set.cells.iter().filter_map(|cell| cell.server).collect();
    let [high, low, other] = servers.as_slice() else {
        panic!("three servers");
    };
    assert_eq!(
        (high.kind, high.priority, high.on_cpu()),
        (ServerKind::Deferrable, Some(9), 1)
    );
    assert_eq!(low.kind, ServerKind::Sporadic);
    assert_eq!(
        (other.kind, other.priority),
        (ServerKind::ConstantBandwidth, None)
    );
}

#[test]
fn each_fault_of_servers_has_its_line_and_fix() {
    for (from, to, parts) in [
        (
            "\"deferrable\"",
            "\"defferable\"",
            ["set.toml:9:", "did you mean `deferrable`?"],
        ),
        (
            "reservation = { budget = \"2ms\", period = \"7ms\" }\n",
            "",
            ["set.toml:8:", "no reservation"],
        ),
        (
            "server = \"deferrable\"\n",
            "",
            ["set.toml:9:", "no meaning without `server`"],
        ),
        ("priority = 9\n", "", ["set.toml:6:", "has no priority"]),
        (
            "priority = 3",
            "priority = 9",
            ["set.toml:21:", "both have priority 9"],
        ),
        (
            "cpu = 0",
            "priority = 1",
            ["set.toml:32:", "`cbs` has no priority"],
        ),
        ("cpu = 0\n", "", ["set.toml:28:", "does not say on which"]),
        ("cpu = 0", "cpu = 2", ["set.toml:32:", "from 0 to 1"]),
        ("cpu = 0", "cpu = -1", ["set.toml:32:", "0 to 4095"]),
        (
            "\"apart\"",
            "\"apat\"",
            ["set.toml:3:", "did you mean `apart`?"],
        ),
        (
            "\"apart\"",
            "\"together\"",
            ["set.toml:20:", "is not refilled together"],
        ),
        (
            "refill = \"apart\"\nenforcer = \"rt-cgroup\"",
            "enforcer = \"rtcgroup\"",
            ["set.toml:3:", "did you mean `rt-cgroup`?"],
        ),
        (
            "period = \"10ms\" }\nserver = \"cbs\"",
            "period = \"10ms\", deadline = \"9ms\" }\nserver = \"cbs\"",
            ["set.toml:31:", "does not cover"],
        ),
    ] {
        assert!(SERVED.contains(from), "{from}");
        let error = error(&SERVED.replacen(from, to, 1));
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }
    let together = SERVED.replace("\"apart\"", "\"together\"");
    let mixed = error(&together.replace("\"sporadic\"", "\"polling\""));
    assert!(
        mixed.contains("set.toml:19:") && mixed.contains("different periods"),
        "{mixed}"
    );
    let none = GOOD.replace("cpus = 2", "refill = \"together\"");
    assert!(error(&none).contains("no meaning without servers"));
    // One server of fixed priority on a cpu needs no priority.
    let alone = SERVED.replace("priority = 3\ncpu = 1", "cpu = 0");
    assert!(TaskSet::parse("set.toml", &alone).is_ok());
}

fn sets() -> impl Strategy<Value = TaskSet> {
    let time = 1i64..=Limits::LONGEST_NS / 4;
    let task = (time.clone(), time.clone(), time.clone(), 0i64..1000).prop_map(
        |(wcet, period, slack, jitter)| CellTask {
            deadline: Duration::from_ns(wcet + slack),
            jitter: Duration::from_ns(jitter),
            ..CellTask::new("", Duration::from_ns(wcet), Duration::from_ns(period))
        },
    );
    let reservation = (time.clone(), time.clone(), time).prop_map(|(a, b, c)| Reservation {
        budget: Duration::from_ns(a),
        deadline: Duration::from_ns(a + b),
        period: Duration::from_ns(a + b + c),
    });
    let policy = prop::sample::select(vec![
        Policy::Edf,
        Policy::Fixed(Order::Rate),
        Policy::Fixed(Order::Deadline),
        Policy::Fixed(Order::Priority),
        Policy::Fixed(Order::Listed),
        Policy::Fixed(Order::Audsley),
        Policy::AmcRtb(Order::Rate),
        Policy::EdfVd,
        Policy::GlobalFixed(Order::Priority, 3),
        Policy::GlobalEdf(1),
        Policy::GlobalEdf(4096),
    ]);
    let cell = (
        policy,
        prop::option::of(reservation),
        prop::option::of((prop::sample::select(ServerKind::NAMES.to_vec()), 0u32..3)),
        prop::collection::vec(task, 1..5),
    )
        .prop_map(|(policy, reservation, server, tasks)| {
            let server = server.map(|((_, kind), cpu)| CellServer {
                kind,
                priority: None,
                cpu: Some(cpu),
            });
            TaskCell {
                name: String::new(),
                policy,
                reservation,
                server: server.filter(|_| reservation.is_some()),
                tasks,
            }
        });
    (
        prop::option::of(3u32..=4096),
        any::<bool>(),
        prop::option::of(prop::sample::select(Enforcer::OF_ANALYSIS.to_vec())),
        prop::collection::vec(cell, 1..5),
    )
        .prop_map(|(cpus, together, enforcer, mut cells)| {
            for (i, cell) in cells.iter_mut().enumerate() {
                cell.name = format!("cell \"{i}\" \\");
                let by_priority = cell.policy.order() == Some(Order::Priority);
                if cell.policy.is_mixed() {
                    cell.reservation = None;
                }
                if !matches!(cell.policy, Policy::Edf | Policy::Fixed(_))
                    || cell.policy.order() == Some(Order::Audsley)
                {
                    cell.server = None;
                }
                if let (Some(_), Some(reserved)) = (cell.policy.cpus(), &mut cell.reservation) {
                    reserved.deadline = reserved.period;
                }
                if let (Some(server), Some(reservation)) = (&mut cell.server, &mut cell.reservation)
                {
                    if server.kind == ServerKind::ConstantBandwidth {
                        reservation.deadline = reservation.period;
                    } else {
                        server.priority = Some(i as i64 - 1);
                    }
                }
                for (i, task) in cell.tasks.iter_mut().enumerate() {
                    task.name = format!("t{i}");
                    task.priority = by_priority.then_some(i as i64 - 2);
                }
            }
            let mut set = TaskSet {
                cpus,
                refill: Refill::Apart,
                enforcer,
                cells,
            };
            set.refill = Refill::Together;
            let served = set.cells.iter().any(|cell| cell.server.is_some());
            if !(together && served && set.servers_fault().is_none()) {
                set.refill = Refill::Apart;
            }
            set
        })
}

proptest! {
    #[test]
    fn writing_and_reading_give_the_same(set in sets()) {
        let text = set.to_toml();
        prop_assert_eq!(TaskSet::parse("x", &text).map_err(|e| e.to_string()), Ok(set));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = TaskSet::parse("x", &text);
    }

    #[test]
    fn no_mutilated_file_panics(at in 0usize..420, with in "\\PC{0,8}") {
        let mut text = GOOD.to_owned();
        let at = at.min(text.len());
        text.replace_range(at..(at + 3).min(GOOD.len()), &with);
        if let Err(error) = TaskSet::parse("x", &text) {
            for fault in &error {
                prop_assert!(!fault.what.is_empty());
                prop_assert!(fault.line.is_some_and(|l| l >= 1 && l <= text.lines().count() + 1));
            }
        }
    }
}
