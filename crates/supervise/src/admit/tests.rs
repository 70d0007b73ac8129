//! Admission on made-up machines.

use std::collections::BTreeMap;

use analysis::linux::RootDomain;
use model::Enforcer;
use model::mission::MissionFile;
use record::supply::{Between, Budget, Kept, Machine, MeasuredSupply, Promise, Share, SupplyPoint};

use super::*;

mod ample;
mod beside;
mod choice;
mod frames;
mod held;
mod keeper;
mod limit;
mod memory;
mod partition;
mod quotas;
mod servers;
mod supervisor;

const MS: Ns = 1_000_000;

fn machine() -> Machine {
    Machine {
        cpu_model: Some("test".to_owned()),
        cpus: 2,
        virtual_machine: Some(false),
        kernel_release: Some("6.18.0".to_owned()),
        kernel_version: None,
        tick_hz: Some(1_000),
        deadline_by_timer: Some(false),
    }
}

pub(super) fn facts() -> Facts {
    Facts {
        cpus: vec![0, 1],
        machine: machine(),
        rt_cgroup: Ok(RtRoom {
            free_us: 950_000,
            taken: Vec::new(),
            limit_ns: Some(950_000_000),
            limit_period_ns: 1_000_000_000,
        }),
        hcbs: Err("no cpu.rt.max".to_owned()),
        deadline: Ok(RootDomain::of_cpus(2)),
        deadline_on_one_cpu: Ok(()),
        kept_cpus: Vec::new(),
        freezer: Err("no cgroup v2".to_owned()),
        evl_quota: Err("no EVL".to_owned()),
        evl_tp: Err("no EVL".to_owned()),
        memory: Ok(MachineMemory {
            total_bytes: 4 << 30,
            available_bytes: 2 << 30,
        }),
        real_time: Ok(()),
        // The tables with it are in tests/supervisor.rs.
        supervisor: Err("not asked".to_owned()),
        beside: Vec::new(),
        outside: Vec::new(),
        kernel: Vec::new(),
        unlimited: Vec::new(),
        measured_reaction: None,
        runs_under: None,
    }
}

pub(super) fn mission(cells: &str) -> Mission {
    let text = format!("schema = 1\nname = \"m\"\nlatency = \"50us\"\n{cells}");
    match MissionFile::parse("m.toml", &text) {
        Ok(file) => file.into_mission(),
        Err(faults) => panic!("{faults}"),
    }
}

pub(super) fn cell(name: &str, rest: &str) -> String {
    format!("[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"bin/{name}\" }}\n{rest}\n")
}

pub(super) fn task(wcet: &str, period: &str) -> String {
    format!("[[cell.task]]\nname = \"t\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n")
}

fn granted(admission: &Admission) -> BTreeMap<String, Grant> {
    (admission.cells.iter())
        .map(|cell| match cell {
            Outcome::Granted(grant) => (grant.cell.clone(), grant.clone()),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn refused(admission: &Admission) -> &Refused {
    let refused = |cell: &&Outcome| matches!(cell, Outcome::Refused(_));
    match admission.cells.iter().find(refused) {
        Some(Outcome::Refused(refused)) => refused,
        _ => panic!("{admission:?}"),
    }
}

#[test]
fn a_declared_priority_is_the_one_that_is_given() {
    let task = |name: &str, priority: &str| {
        format!(
            "[[cell.task]]\nname = \"{name}\"\nwcet = \"1ms\"\nperiod = \"400ms\"\n{priority}\n"
        )
    };
    let band = "priorities = { lowest = 70, highest = 79 }\n";
    let of = |tasks: String| {
        let mission = mission(&cell("c", &format!("{band}{tasks}")));
        let admission = admit(&mission, &facts(), &[], 0);
        let grant = &granted(&admission)["c"];
        let priorities = grant.tasks.iter().map(|task| task.priority);
        (priorities.collect::<Vec<_>>(), grant.band.unwrap().highest)
    };
    let declared = task("slow", "priority = 70") + &task("fast", "priority = 75");
    assert_eq!(of(declared), (vec![Some(70), Some(75)], 79));
    // Those that declare none have them from the top.
    let open = task("slow", "") + &task("fast", "");
    assert_eq!(of(open), (vec![Some(79), Some(78)], 79));
}

#[test]
fn a_task_gets_the_least_budget_that_holds() {
    let fifo = "class = \"fifo\"\n".to_owned() + &task("5ms", "100ms");
    let mission = mission(&cell("control", &fifo));
    let admission = admit(&mission, &facts(), &[], 0);
    assert!(admission.is_admitted());
    let grant = granted(&admission)["control"].clone();
    assert_eq!(grant.enforcer, Enforcer::RtCgroup);
    let (budget, period) = (grant.budget_ns.unwrap(), grant.period_ns.unwrap());
    // One grain less of the same period does not do.
    let tasks = [analysis::Task::new(5 * MS, 100 * MS)];
    let holds = |budget| {
        let supply = analysis::linux::TickSupply::rt_cgroup(budget, period, MS).unwrap();
        analysis::inside::holds(
            &tasks,
            analysis::inside::Policy::FixedPriority,
            &supply.cautious,
        )
    };
    assert_eq!(
        (
            holds(budget),
            holds(budget - analysis::linux::BUDGET_GRID_NS)
        ),
        (Ok(true), Ok(false))
    );
    assert!(grant.tasks[0].response_ns.unwrap() <= 100 * MS);
    assert!(matches!(grant.basis, Basis::Tick { .. }));
}

#[test]
fn a_cell_that_is_too_small_is_refused_with_the_least_budget_that_would_do() {
    let text = |budget: &str| {
        let reservation = format!("reservation = {{ budget = \"{budget}\", period = \"20ms\" }}\n");
        mission(&cell("control", &(reservation + &task("5ms", "100ms"))))
    };
    let admission = admit(&text("1ms"), &facts(), &[], 0);
    assert!(!admission.is_admitted());
    let refusal = refused(&admission);
    assert_eq!(refusal.witness.as_ref().unwrap().task, "t");
    let late = refusal.witness.as_ref().unwrap().to_string();
    assert!(
        late.starts_with("t: needs ") && late.contains("is guaranteed"),
        "{late}"
    );
    let fixes = find_fixes(&text("1ms"), &facts(), &[], 0).found;
    let budget = fixes.iter().find(|fix| fix.kind == "budget").unwrap();
    let [Edit::Reservation(_, Some((least, _)))] = budget.edits.as_slice() else {
        panic!("{budget:?}");
    };
    let enough = admit(&text(&format!("{least}ns")), &facts(), &[], 0);
    assert!(enough.is_admitted(), "{least}: {enough:?}");
    let less = format!("{}us", least / 1_000 - 100);
    assert!(!admit(&text(&less), &facts(), &[], 0).is_admitted());
}

fn measured(delay_ns: Ns, machine: Machine) -> MeasuredSupply {
    let share = Share {
        cpu_ns: 29,
        of_ns: 100,
    };
    let one = Between::of(vec![delay_ns]).unwrap();
    MeasuredSupply {
        held: Budget {
            enforcer: model::Enforcer::RtCgroup,
            budget_ns: 3 * MS,
            period_ns: 10 * MS,
        },
        machine,
        rounds: 1,
        starts: 9,
        points: vec![SupplyPoint {
            supplied: 29,
            per: 100,
            delay_ns,
        }],
        measured_to_ns: 1_000 * MS,
        delay_ns: one,
        longest_gap_ns: one,
        billed: None,
        received: share,
        periods: None,
        textbook: Promise {
            supplied: 3,
            per: 10,
            delay_ns: 14 * MS,
            kept: Kept::Held,
        },
        by_tick: None,
        by_reaction: None,
        reaction: None,
        cautious: None,
        least: Vec::new(),
    }
}

#[test]
fn a_measured_supply_decides_where_it_is_of_this_machine() {
    let rest =
        "reservation = { budget = \"3ms\", period = \"10ms\" }\n".to_owned() + &task("5ms", "40ms");
    let mission = mission(&cell("control", &rest));
    // 5 ms at 29 % take 17.25 ms behind the delay.
    let good = admit(&mission, &facts(), &[measured(20 * MS, machine())], 0);
    assert!(good.is_admitted(), "{good:?}");
    let grant = granted(&good)["control"].clone();
    assert_eq!(
        grant.basis,
        Basis::Measured {
            to_ns: 1_000 * MS,
            reaction: None
        }
    );
    assert_eq!(
        grant.tasks[0].response_ns,
        Some(20 * MS + (5 * MS * 100).div_ceil(29))
    );
    let bad = admit(&mission, &facts(), &[measured(30 * MS, machine())], 0);
    assert!(!bad.is_admitted());
    // In any measurement, the worst phase of the tick may not have come.
    let mut lucky = measured(MS, machine());
    lucky.by_tick = Some(Promise {
        delay_ns: 21 * MS,
        ..lucky.textbook
    });
    let careful = admit(&mission, &facts(), &[lucky], 0);
    assert_eq!(
        granted(&careful)["control"].tasks[0].response_ns,
        Some(21 * MS + (5 * MS * 100).div_ceil(29))
    );
    let elsewhere = Machine {
        kernel_release: Some("5.10.0".to_owned()),
        ..machine()
    };
    let other = admit(&mission, &facts(), &[measured(1, elsewhere)], 0);
    for cell in &other.cells {
        if let Outcome::Granted(grant) = cell {
            assert!(matches!(grant.basis, Basis::Tick { .. }), "{grant:?}");
        }
    }
}

#[test]
fn cells_go_where_their_deadlines_hold() {
    let reserve =
        |budget: &str| format!("reservation = {{ budget = \"{budget}\", period = \"100ms\" }}");
    let text = cell("a", &reserve("40ms")) + &cell("b", &reserve("40ms"));
    let admission = admit(&mission(&text), &facts(), &[], 0);
    let grants = granted(&admission);
    // Two budgets of 40 ms in the saved and the next period, overdrawn: too much below another on one cpu.
    assert_eq!((&grants["a"].cpus, &grants["b"].cpus), (&vec![0], &vec![1]));
    assert_ne!(grants["a"].band, grants["b"].band);
    let three = text + &cell("c", &reserve("40ms"));
    let admission = admit(&mission(&three), &facts(), &[], 0);
    assert!(!admission.is_admitted());
    assert!(
        refused(&admission).why.contains("no cpu has room"),
        "{admission:?}"
    );
    // The kernel counts budgets on all cpus alike: 3 times 40 % is more than 95 % in any case.
    assert_eq!(admission.refusals.len(), 1);
}

#[test]
fn what_stands_above_postpones() {
    let text = cell("fast", "cpus = [1]\nreservation = { budget = \"1ms\", period = \"10ms\" }\npriorities = { lowest = 60, highest = 60 }\n")
        + &cell("slow", &("cpus = [1]\nreservation = { budget = \"20ms\", period = \"100ms\" }\npriorities = { lowest = 50, highest = 50 }\n".to_owned() + &task("5ms", "400ms")));
    let admission = admit(&mission(&text), &facts(), &[], 0);
    let grants = granted(&admission);
    assert_eq!(grants["fast"].postponed_ns, 0);
    assert_eq!(
        grants["slow"].postponed_ns,
        analysis::linux::postponement(
            analysis::linux::Held {
                budget: 20 * MS,
                period: 100 * MS,
                overdraw: MS,
            },
            &[analysis::linux::Held {
                budget: MS,
                period: 10 * MS,
                overdraw: MS,
            }],
        )
        .unwrap()
    );
    assert_eq!(
        admission
            .cpus
            .iter()
            .find(|cpu| cpu.cpu == 1)
            .unwrap()
            .cells,
        ["fast", "slow"]
    );
}

#[test]
fn without_an_enforcer_it_says_so() {
    let facts = Facts {
        rt_cgroup: Err("no cgroup v1".to_owned()),
        hcbs: Err("no cpu.rt.max".to_owned()),
        deadline: Err("no bandwidth".to_owned()),
        ..facts()
    };
    let text = cell("a", &task("5ms", "20ms"));
    let admission = admit(&mission(&text), &facts, &[], 0);
    let grant = granted(&admission)["a"].clone();
    assert_eq!(
        (grant.enforcer, grant.budget_ns),
        (Enforcer::CpusetOnly, None)
    );
    assert!(
        admission
            .notes
            .iter()
            .any(|note| note.contains("cells under cpuset-only have no enforced budget"))
    );
    let asked = mission(&("enforcer = \"rt-cgroup\"\n".to_owned() + &text));
    let refused = admit(&asked, &facts, &[], 0);
    assert!(!refused.is_admitted());
}

#[test]
fn threads_of_the_deadline_class_are_tested_together() {
    let text = "enforcer = \"deadline\"\n".to_owned()
        + &cell("a", &("cpus = [0]\n".to_owned() + &task("8ms", "20ms")))
        + &cell("b", &("cpus = [0]\n".to_owned() + &task("7ms", "20ms")));
    let admission = admit(&mission(&text), &facts(), &[], 0);
    let grants = granted(&admission);
    assert_eq!(grants["a"].tasks[0].runtime_ns, Some(8_889_000));
    assert_eq!(grants["a"].band, None);
    let more = text + &cell("c", &("cpus = [0]\n".to_owned() + &task("6ms", "20ms")));
    assert!(!admit(&mission(&more), &facts(), &[], 0).is_admitted());
}

/// As on a machine whose cpus cannot be set apart for SCHED_DEADLINE.
fn undivided() -> Facts {
    Facts {
        deadline_on_one_cpu: Err("the root domain is one".to_owned()),
        ..facts()
    }
}

#[test]
fn threads_that_cannot_be_kept_to_a_cpu_are_tested_on_all_of_them() {
    let three = |wcet: &str| {
        let cells = ["a", "b", "c"].map(|name| cell(name, &task(wcet, "20ms")));
        mission(&("enforcer = \"deadline\"\n".to_owned() + &cells.concat()))
    };
    let admission = admit(&three("3ms"), &undivided(), &[], 0);
    let grants = granted(&admission);
    assert!(grants.values().all(|grant| grant.cpus == [0, 1]));
    let reserved: f64 = admission.cpus.iter().map(|cpu| cpu.reserved).sum();
    assert!((reserved - 3.0 * 3.334 / 20.0).abs() < 1e-9, "{reserved}");
    // Three threads of more than half a cpu meet on two; by first fit, two of them would have one cpu each.
    let crowded = admit(&three("11ms"), &undivided(), &[], 0);
    assert!(
        refused(&crowded).why.contains("run on any cpu"),
        "{crowded:?}"
    );
}

#[test]
fn cpus_are_refused_to_threads_that_cannot_be_kept_to_them() {
    let of = |top: &str, own: &str| {
        let cells = cell("a", &(own.to_owned() + &task("3ms", "20ms")));
        admit(&mission(&(top.to_owned() + &cells)), &undivided(), &[], 0)
    };
    let class = "class = \"deadline\"\n";
    for (top, own) in [
        ("", format!("cpus = [1]\n{class}")),
        ("cpus = [0]\n", class.to_owned()),
    ] {
        let admission = of(top, &own);
        let refusal = refused(&admission);
        assert!(
            refusal.why.contains("the root domain is one"),
            "{refusal:?}"
        );
        assert_eq!(refusal.fix, None);
    }
    assert!(of("cpus = [0, 1]\n", class).is_admitted());
}

#[test]
fn threads_on_any_cpu_stand_above_the_cells_of_each() {
    let text = cell(
        "anywhere",
        &("class = \"deadline\"\n".to_owned() + &task("2ms", "20ms")),
    ) + &cell(
        "below",
        "cpus = [1]\nreservation = { budget = \"10ms\", period = \"100ms\" }\n",
    );
    let admission = admit(&mission(&text), &undivided(), &[], 0);
    let grants = granted(&admission);
    assert_eq!(grants["anywhere"].enforcer, Enforcer::Deadline);
    assert_eq!(grants["below"].enforcer, Enforcer::RtCgroup);
    assert!(grants["below"].postponed_ns > 2 * MS);
}

#[test]
fn best_effort_cells_keep_off_the_cpus_of_the_mission() {
    let of = |top: &str, rest: &str| {
        let cells = cell(
            "rt",
            &format!("reservation = {{ budget = \"1ms\", period = \"10ms\" }}\n{rest}"),
        ) + &cell("plain", "class = \"other\"");
        let admission = admit(&mission(&format!("{top}\n{cells}")), &facts(), &[], 0);
        admission.best_effort("plain").unwrap().to_vec()
    };
    assert_eq!(of("cpus = [1]", ""), [0]);
    assert_eq!(of("cpus = [0, 1]", ""), [0, 1], "there are no others");
    assert_eq!(of("", ""), [0, 1]);
    let own = cell("plain", "class = \"other\"\ncpus = [1]");
    let admission = admit(&mission(&own), &facts(), &[], 0);
    assert_eq!(admission.best_effort("plain"), Some(&[1][..]));
    assert_eq!(admission.best_effort("nobody"), None);
}
