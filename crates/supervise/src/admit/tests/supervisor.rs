//! The supervisor's own reservation.

use super::*;
use model::mission::SupervisorClass;

const TIGHT: &str = "cpus = [1]\nreservation = { budget = \"2500us\", period = \"5ms\" }\n";

fn facts() -> Facts {
    Facts {
        supervisor: Ok(vec![0, 1]),
        ..super::facts()
    }
}

fn with(key: &str, cells: &str) -> Mission {
    mission(&format!("{key}\n{cells}"))
}

#[test]
fn it_stands_in_the_tables_and_above_every_cell() {
    let text = cell(
        "c",
        &(TIGHT.replace("5ms", "50ms") + &task("100us", "200ms")),
    );
    let admission = admit(&mission(&text), &facts(), &[], 0);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    let own = &admission.supervisor;
    assert_eq!(own.reservation(), Some((MS, 20 * MS)));
    assert_eq!((own.priority, own.cpus.as_slice()), (Some(98), &[0, 1][..]));
    assert_eq!(own.response_ns, Some(MS));
    let load = |cpu: u32| {
        let load = admission.cpus.iter().find(|load| load.cpu == cpu).unwrap();
        (load.cells.clone(), (load.reserved * 1e3).round())
    };
    assert_eq!(load(0), (vec!["supervisor".to_owned()], 50.0));
    assert_eq!(
        load(1),
        (vec!["supervisor".to_owned(), "c".to_owned()], 100.0)
    );
    // No tick is added to it: twice its budget, and not 2 ms more.
    assert_eq!(granted(&admission)["c"].postponed_ns, 2 * MS);
    let held: Vec<_> = (admission.held.iter())
        .map(|held| (held.cell.as_str(), held.supervisor))
        .collect();
    assert_eq!(held, [("c", false), ("supervisor", true)]);
    assert!(admission.held.iter().all(|held| held.check().is_ok()));
}

#[test]
fn where_it_has_no_room_one_sentence_says_so() {
    let text = cell("c", TIGHT);
    let facts = || Facts {
        supervisor: Ok(vec![1]),
        ..facts()
    };
    let admission = admit(&mission(&text), &facts(), &[], 0);
    assert!(!admission.is_admitted());
    assert!(
        admission.refusals[0].contains("but on none of its cpus the supervisor beside them"),
        "{:?}",
        admission.refusals
    );
    // A caller that asks only for the verdict does not have everything decided twice.
    let whether = decision(&mission(&text), &facts(), &[], 0);
    assert!(!whether.is_admitted() && whether.refusals.is_empty());
    let off = with("supervisor = { class = \"other\" }", &text);
    let admission = admit(&off, &facts(), &[], 0);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(admission.supervisor.class, SupervisorClass::Other);
    let small = with("supervisor = { budget = \"200us\" }", &text);
    assert!(admit(&small, &facts(), &[], 0).is_admitted());
    // Where it runs elsewhere, it takes nothing.
    let elsewhere = Facts {
        supervisor: Ok(vec![0]),
        ..facts()
    };
    assert!(admit(&mission(&text), &elsewhere, &[], 0).is_admitted());
}

#[test]
fn it_keeps_off_the_cpus_on_which_cells_leave_it_no_room() {
    for text in [
        cell("c", TIGHT),
        cell("c", &TIGHT.replace("cpus = [1]\n", "")),
    ] {
        let admission = admit(&mission(&text), &facts(), &[], 0);
        assert!(admission.is_admitted(), "{admission:?}");
        let own = &admission.supervisor;
        assert_eq!((&own.cpus, &own.spared), (&vec![0], &vec![1]));
        assert_eq!(granted(&admission)["c"].postponed_ns, 0);
        assert_eq!(granted(&admission)["c"].cpus, [1]);
        // The file's choice of its cpus is kept to.
        let named = with("supervisor = { cpus = [0, 1] }", &text);
        assert!(!admit(&named, &facts(), &[], 0).is_admitted());
        let one = with("supervisor = { cpus = [0] }", &text);
        assert_eq!(admit(&one, &facts(), &[], 0).supervisor, *own);
    }
    // Where there is room beside it, it is on all.
    let loose = cell("c", &TIGHT.replace("5ms", "50ms"));
    let admission = admit(&mission(&loose), &facts(), &[], 0);
    assert_eq!(admission.supervisor.cpus, [0, 1]);
    let nowhere = with("supervisor = { cpus = [7] }", &loose);
    let none = admit(&nowhere, &facts(), &[], 0).supervisor;
    assert!(none.why.unwrap().contains("none of the `cpus`"));
}

/// A loop of 1 kHz and one of 10 kHz, on cpu 1.
#[test]
fn fast_loops_are_admitted_beside_the_default_supervisor() {
    let coarse = Facts {
        machine: Machine {
            tick_hz: Some(250),
            ..machine()
        },
        freezer: Ok(()),
        ..facts()
    };
    for (wcet, period, ns) in [("200us", "1ms", 200_000), ("20us", "100us", 20_000)] {
        for pinned in [true, false] {
            let cells = cell("loop", &format!("class = \"fifo\"\n{}", task(wcet, period)));
            let cells = match pinned {
                true => format!("latency = \"0us\"\ncpus = [1]\n{cells}"),
                false => format!("latency = \"0us\"\n{cells}"),
            };
            let mission = MissionFile::parse("m", &format!("schema = 1\nname = \"m\"\n{cells}"));
            let admission = admit(mission.unwrap().mission(), &coarse, &[], 0);
            let grant = &granted(&admission)["loop"];
            assert_eq!(grant.tasks[0].response_ns, Some(ns), "{grant:?}");
            assert!(grant.basis.is_assumed());
            assert_eq!(admission.supervisor.reservation(), Some((MS, 20 * MS)));
        }
    }
}

#[test]
fn a_mechanism_that_is_too_slow_for_a_deadline_says_so() {
    let of = |top: &str, facts: &Facts| {
        let fast = mission(&format!(
            "cpus = [1]\n{top}\n{}",
            cell("loop", &task("20us", "100us"))
        ));
        let admission = admit(&fast, facts, &[], 0);
        let why = refused(&admission).why.clone();
        (why, find_fixes(&fast, facts, &[], 0))
    };
    let freezer = Facts {
        freezer: Ok(()),
        ..facts()
    };
    let (why, fixes) = of("enforcer = \"freezer\"", &freezer);
    let expected = "the freezer's own thread takes up to 250 us of the cpu in each period in which it holds a cell, too long for a \
                    deadline of 100 us";
    assert!(why.contains(expected), "{why}");
    assert!(
        fixes.found.iter().any(|fix| fix.kind == "enforcer"),
        "{fixes:?}"
    );
    let only_there = Facts {
        supervisor: Ok(vec![1]),
        ..facts()
    };
    let (why, fixes) = of("enforcer = \"rt-cgroup\"", &only_there);
    let expected =
        "the supervisor may run for 1 ms at once before it, too long for a deadline of 100 us";
    assert!(why.contains(expected), "{why}");
    let kinds: Vec<&str> = fixes.found.iter().map(|fix| fix.kind).collect();
    assert!(
        kinds.contains(&"no-reservation") && kinds.contains(&"cpus"),
        "{fixes:?}"
    );
}

#[test]
fn a_smaller_reservation_of_it_is_among_the_changes() {
    let only_there = Facts {
        supervisor: Ok(vec![1]),
        ..facts()
    };
    let tight = mission(&cell("c", TIGHT));
    let fixes = find_fixes(&tight, &only_there, &[], 0).found;
    let of = |kind: &str| {
        let fix = fixes.iter().find(|fix| fix.kind == kind);
        fix.unwrap_or_else(|| panic!("{fixes:?}")).edits[0].to_string()
    };
    assert_eq!(
        of("supervisor"),
        "supervisor = { budget = \"500us\" } in the mission"
    );
    assert_eq!(
        of("no-reservation"),
        "supervisor = { class = \"other\" } in the mission"
    );
}

#[test]
fn what_the_kernel_lets_all_have_includes_it() {
    let text = "cpus = [1]\nreservation = { budget = \"450ms\", period = \"500ms\" }\n";
    let text = "supervisor = { cpus = [0, 1] }\n".to_owned()
        + &cell("c", text)
        + &cell(
            "d",
            "cpus = [0]\nreservation = { budget = \"1ms\", period = \"100ms\" }\n",
        );
    let limited = |us: u64| Facts {
        rt_cgroup: Ok(RtRoom {
            free_us: 990_000,
            taken: Vec::new(),
            limit_ns: Some(us * 1_000),
            limit_period_ns: 10_000_000_000,
        }),
        hcbs: Err("no cpu.rt.max".to_owned()),
        ..facts()
    };
    // 21 times 450 ms and a tick, and 501 times 1 ms of the supervisor.
    assert!(admit(&mission(&text), &limited(9_952_000), &[], 0).is_admitted());
    assert!(!admit(&mission(&text), &limited(9_951_000), &[], 0).is_admitted());
}

#[test]
fn a_priority_of_its_own_is_not_given_twice() {
    let text = cell(
        "c",
        "cpus = [0, 1]\nreservation = { budget = \"2ms\", period = \"50ms\" }\npriorities = { lowest = 98, highest = 98 }\n",
    );
    let admission = admit(&mission(&text), &facts(), &[], 0);
    let why = &refused(&admission).why;
    assert!(
        why.contains("the supervisor already has the priority 98"),
        "{why}"
    );
}

#[test]
fn threads_of_sched_deadline_go_before_it_and_lose_nothing() {
    let text = cell(
        "c",
        &("class = \"deadline\"\n".to_owned() + &task("9ms", "20ms")),
    );
    // Where they are kept to cpus, it is on the others.
    let both = Facts {
        supervisor: Ok(vec![0, 1]),
        ..undivided()
    };
    let admission = admit(&mission(&text), &both, &[], 0);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    let with = granted(&admission)["c"].clone();
    let without = admit(&mission(&text), &undivided(), &[], 0);
    assert_eq!(granted(&without)["c"].tasks, with.tasks);
    assert!(admission.supervisor.response_ns.unwrap() > 9 * MS);
}

#[test]
fn supervisors_of_other_missions_count_as_well() {
    let other = Neighbour {
        who: "mission `a`".to_owned(),
        short: "a".to_owned(),
        cells: admit(
            &mission(&cell(
                "x",
                "cpus = [0]\nreservation = { budget = \"1ms\", period = \"50ms\" }\n",
            )),
            &facts(),
            &[],
            0,
        )
        .held,
        supplies: Vec::new(),
        measured_cpus: Vec::new(),
        partition_cpus: Vec::new(),
        memory: HeldMemory::default(),
        memory_taken_bytes: 0,
    };
    let facts = Facts {
        beside: vec![other],
        ..facts()
    };
    let text = cell(
        "c",
        &(TIGHT.replace("5ms", "50ms") + &task("100us", "200ms")),
    );
    let admission = admit(&mission(&text), &facts, &[], 0);
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(granted(&admission)["c"].postponed_ns, 4 * MS);
}

#[test]
fn without_the_class_it_says_so_and_counts_nothing() {
    let text = cell("c", TIGHT);
    let admission = admit(&mission(&text), &super::facts(), &[], 0);
    assert!(admission.is_admitted());
    let said = |note: &String| note.contains("the supervisor is an ordinary process");
    assert_eq!(admission.notes.iter().filter(|note| said(note)).count(), 1);
    // No guarantee, nothing to react for.
    let text = cell("c", "class = \"other\"\n");
    let admission = admit(&mission(&text), &facts(), &[], 0);
    assert_eq!(admission.supervisor.reservation(), None);
}

#[test]
fn a_budget_is_sought_that_comes_in_time_behind_it() {
    let text = cell("c", &format!("class = \"fifo\"\n{}", task("5ms", "200ms")));
    let coarse = Facts {
        machine: Machine {
            tick_hz: Some(250),
            ..machine()
        },
        ..facts()
    };
    let admission = admit(&mission(&text), &coarse, &[], 0);
    assert!(admission.is_admitted(), "{:?}", admission.cells);
    assert_eq!(granted(&admission)["c"].postponed_ns, 2 * MS);
}
