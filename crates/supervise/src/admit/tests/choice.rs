//! Which enforcer is chosen for cells that leave it to timecell.

use super::*;

/// A tick of 4 ms, on a machine whose cpus cannot be set apart for SCHED_DEADLINE.
fn coarse() -> Facts {
    let mut facts = undivided();
    facts.machine.tick_hz = Some(250);
    facts
}

fn choice(admission: &Admission) -> &Choice {
    admission.choice.as_ref().unwrap()
}

fn offer(admission: &Admission, enforcer: Enforcer) -> &Offer {
    let mut offers = choice(admission).offers.iter();
    offers.find(|offer| offer.enforcer == enforcer).unwrap()
}

#[test]
fn the_cheapest_that_admits_all_cells_is_taken_and_the_others_are_told_with_their_price() {
    let admission = admit(
        &mission(&cell("a", &task("1500us", "20ms"))),
        &coarse(),
        &[],
        0,
    );
    assert!(admission.is_admitted());
    assert_eq!(granted(&admission)["a"].enforcer, Enforcer::Deadline);
    assert_eq!(choice(&admission).chosen, Enforcer::Deadline);
    let reserved = |enforcer| offer(&admission, enforcer).reserved.unwrap();
    // A runtime of ten ninths of 1.5 ms every 20 ms; 3.9 ms every 8 ms.
    assert!((reserved(Enforcer::Deadline) - 1.667 / 20.0).abs() < 1e-4);
    assert!((reserved(Enforcer::RtCgroup) - 3.9 / 8.0).abs() < 1e-9);
    assert_eq!(offer(&admission, Enforcer::Deadline).why, None);
    assert!(offer(&admission, Enforcer::RtCgroup).why.is_some());
    let none = offer(&admission, Enforcer::CpusetOnly);
    assert_eq!(none.reserved, None);
    assert!(none.why.as_ref().unwrap().contains("no budget"));
}

#[test]
fn of_two_at_one_price_the_first_is_taken_and_of_two_prices_the_lower() {
    let mission = mission(&cell("a", &task("1500us", "20ms")));
    // SCHED_DEADLINE takes 1.667 ms for this task; this is the measured need of a real-time group.
    for (budget_ns, cheapest) in [
        (1_667_000, Enforcer::RtCgroup),
        (1_666_000, Enforcer::RtCgroup),
        (1_668_000, Enforcer::Deadline),
    ] {
        let mut supply = measured(2 * MS, coarse().machine);
        supply.held = Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns,
            period_ns: 20 * MS,
        };
        supply.points[0].supplied = 16;
        supply.points[0].per = 100;
        let admission = admit(&mission, &coarse(), &[supply], 0);
        assert_eq!(choice(&admission).chosen, cheapest, "{admission:?}");
        let reserved = offer(&admission, Enforcer::RtCgroup).reserved.unwrap();
        assert!((reserved - budget_ns as f64 / 20e6).abs() < 1e-6);
    }
}

#[test]
fn the_freezer_competes_by_its_price_once_it_was_measured_here() {
    let second = "[[cell.task]]\nname = \"u\"\nwcet = \"1ms\"\nperiod = \"200ms\"\n";
    let whole = mission(&cell("w", &format!("{}{second}", task("1500us", "20ms"))));
    let facts = Facts {
        freezer: Ok(()),
        ..coarse()
    };
    let of = |supplies: &[MeasuredSupply]| admit(&whole, &facts, supplies, 0);
    let before = of(&[]);
    assert_eq!(choice(&before).chosen, Enforcer::RtCgroup);
    let why = offer(&before, Enforcer::Freezer).why.as_ref().unwrap();
    assert!(why.contains("on another machine"), "{why}");
    // Another budget, and no more exact than elsewhere.
    let mut supply = super::keeper::measured_by_freezer(MS, 100_000, 430_000);
    supply.machine = coarse().machine;
    let after = of(&[supply]);
    assert_eq!(choice(&after).chosen, Enforcer::Freezer, "{after:?}");
    assert!(offer(&after, Enforcer::Freezer).reserved < offer(&after, Enforcer::RtCgroup).reserved);
}

#[test]
fn what_the_file_fixes_is_kept() {
    let of = |top: &str, own: &str| {
        let text = format!(
            "{top}{}",
            cell("a", &format!("{own}{}", task("1500us", "20ms")))
        );
        let admission = admit(&mission(&text), &coarse(), &[], 0);
        let enforcer = granted(&admission)["a"].enforcer;
        (enforcer, admission.choice.is_some())
    };
    assert_eq!(of("", ""), (Enforcer::Deadline, true));
    for (top, own) in [
        ("enforcer = \"rt-cgroup\"\n", ""),
        ("", "class = \"fifo\"\n"),
    ] {
        assert_eq!(of(top, own), (Enforcer::RtCgroup, false), "{top}{own}");
    }
    for (top, own) in [
        ("", "priorities = { lowest = 50, highest = 60 }\n"),
        ("", "cpus = [1]\n"),
        ("cpus = [1]\n", ""),
    ] {
        assert_eq!(of(top, own), (Enforcer::RtCgroup, true), "{top}{own}");
    }
}

#[test]
fn cells_that_are_to_be_held_as_a_whole_are_not_held_by_single_threads_unasked() {
    let second = "[[cell.task]]\nname = \"u\"\nwcet = \"1ms\"\nperiod = \"200ms\"\n";
    let one = cell("one", &task("1500us", "20ms"));
    for whole in [
        cell("w", &format!("{}{second}", task("1ms", "200ms"))),
        cell(
            "w",
            "reservation = { budget = \"2ms\", period = \"20ms\" }\n",
        ),
        cell(
            "w",
            &format!("{}thread = \"worker\"\n", task("1ms", "200ms")),
        ),
    ] {
        let mut facts = coarse();
        let admission = admit(&mission(&format!("{one}{whole}")), &facts, &[], 0);
        assert_eq!(choice(&admission).chosen, Enforcer::RtCgroup);
        let why = offer(&admission, Enforcer::Deadline).why.clone().unwrap();
        assert!(why.contains("`w` needs holding as a whole"), "{why}");
        facts.rt_cgroup = Err("no cgroup v1".to_owned());
        facts.freezer = Ok(());
        let admission = admit(&mission(&format!("{one}{whole}")), &facts, &[], 0);
        assert_eq!(choice(&admission).chosen, Enforcer::Freezer);
        // Where there is nothing else, it still is the enforcer.
        facts.freezer = Err("no cgroup v2".to_owned());
        let admission = admit(&mission(&format!("{one}{whole}")), &facts, &[], 0);
        assert_eq!(choice(&admission).chosen, Enforcer::Deadline);
    }
}

#[test]
fn one_that_does_not_admit_all_cells_is_not_taken_however_cheap() {
    // Three threads of more than half a cpu are not shown to fit two cpus, and three groups do not fit them either.
    let three = ["a", "b", "c"].map(|name| cell(name, &task("11ms", "20ms")));
    let admission = admit(&mission(&three.concat()), &coarse(), &[], 0);
    assert!(!admission.is_admitted());
    assert_eq!(choice(&admission).chosen, Enforcer::RtCgroup);
    let why = offer(&admission, Enforcer::Deadline).why.as_ref().unwrap();
    assert!(why.contains("run on any cpu"), "{why}");
    // Nothing with a budget admits it, and no budget at all is no answer.
    assert!(matches!(admission.cells[0], Outcome::Refused(_)));
}

#[test]
fn runtime_of_groups_that_is_taken_leaves_the_other_mechanism() {
    let mut facts = coarse();
    let room = facts.rt_cgroup.as_mut().unwrap();
    room.free_us = 0;
    room.taken = vec![RtShare {
        who: "a bench".to_owned(),
        us: 950_000,
    }];
    let text = cell("a", &task("1500us", "20ms"));
    let admission = admit(&mission(&text), &facts, &[], 0);
    assert_eq!(granted(&admission)["a"].enforcer, Enforcer::Deadline);
    let why = offer(&admission, Enforcer::RtCgroup).why.as_ref().unwrap();
    assert!(why.contains("a bench holds 950 ms"), "{why}");
}

#[test]
fn what_holds_running_cells_is_not_chosen_anew() {
    let text = cell("a", &task("1500us", "20ms"));
    let of = |runs_under| {
        let facts = Facts {
            runs_under,
            ..coarse()
        };
        let admission = admit(&mission(&text), &facts, &[], 0);
        (choice(&admission).chosen, choice(&admission).kept)
    };
    assert_eq!(of(None), (Enforcer::Deadline, false));
    for enforcer in [Enforcer::RtCgroup, Enforcer::Deadline] {
        assert_eq!(of(Some(enforcer)), (enforcer, true));
    }
    // The running enforcer is told from the grants to cells of the same name that leave it open.
    let mission =
        mission(&(text + &cell("b", &format!("class = \"fifo\"\n{}", task("1ms", "50ms")))));
    let held = |name| [(name, Enforcer::RtCgroup)];
    assert_eq!(mechanism_of(&mission, held("a")), Some(Enforcer::RtCgroup));
    assert_eq!(mechanism_of(&mission, held("b")), None);
    assert_eq!(mechanism_of(&mission, held("gone")), None);
}

#[test]
fn a_cell_that_is_watched_more_often_than_its_task_comes_is_not_held_by_single_threads_unasked() {
    let with = |timeout: &str| {
        let rule = format!(
            "[[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"{timeout}\"\ndo = \"restart\"\n"
        );
        let text = cell("a", &format!("{}{rule}", task("1500us", "20ms")));
        admit(&mission(&text), &coarse(), &[], 0)
    };
    assert_eq!(choice(&with("20ms")).chosen, Enforcer::Deadline);
    let often = with("19ms");
    assert_eq!(choice(&often).chosen, Enforcer::RtCgroup);
    let why = offer(&often, Enforcer::Deadline).why.as_ref().unwrap();
    assert!(why.contains("signs of life from `a`"), "{why}");
}

#[test]
fn what_rests_on_another_machine_is_taken_only_where_nothing_else_admits_the_mission() {
    let mut facts = coarse();
    facts.freezer = Ok(());
    let ranked = "cpus = [1]\npriorities = { lowest = 50, highest = 50 }\n";
    let of = |wcet: &str, period: &str| {
        let text = cell("a", &format!("{ranked}{}", task(wcet, period)));
        admit(&mission(&text), &facts, &[], 0)
    };
    let admission = of("1500us", "20ms");
    assert_eq!(choice(&admission).chosen, Enforcer::RtCgroup);
    let reserved = |enforcer| offer(&admission, enforcer).reserved.unwrap();
    assert!(reserved(Enforcer::Freezer) < reserved(Enforcer::RtCgroup));
    let why = offer(&admission, Enforcer::Freezer).why.clone().unwrap();
    assert!(why.contains("another machine"), "{why}");
    // No group is sure to give that by the deadline.
    let admission = of("1ms", "10ms");
    assert!(admission.is_admitted(), "{admission:?}");
    assert_eq!(choice(&admission).chosen, Enforcer::Freezer);
    let assuming = offer(&admission, Enforcer::RtCgroup);
    assert_eq!(
        assuming.why.as_deref(),
        Some("admits `a` for its tasks only")
    );
}

#[test]
fn a_cell_of_class_fifo_is_held_by_the_freezer_where_there_are_no_groups() {
    let facts = Facts {
        rt_cgroup: Err("no cgroup v1".to_owned()),
        hcbs: Err("no cpu.rt.max".to_owned()),
        freezer: Ok(()),
        ..facts()
    };
    let reserved = "class = \"fifo\"\nreservation = { budget = \"5ms\", period = \"50ms\" }\n";
    let held_by = |more: &str, facts: &Facts| {
        let admission = admit(
            &mission(&cell("a", &format!("{reserved}{more}"))),
            facts,
            &[],
            0,
        );
        granted(&admission)["a"].enforcer
    };
    assert_eq!(held_by("", &facts), Enforcer::Freezer);
    assert_eq!(
        held_by("priorities = { lowest = 96, highest = 96 }\n", &facts),
        Enforcer::Freezer
    );
    // A cell that it cannot hold is held by nothing, as where there is none.
    assert_eq!(
        held_by("priorities = { lowest = 97, highest = 97 }\n", &facts),
        Enforcer::CpusetOnly
    );
    assert_eq!(held_by("cpus = [0, 1]\n", &facts), Enforcer::CpusetOnly);
    let without = Facts {
        freezer: Err("no cgroup v2".to_owned()),
        ..facts
    };
    assert_eq!(held_by("", &without), Enforcer::CpusetOnly);
}
