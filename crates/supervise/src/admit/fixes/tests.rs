//! Fixes of refusals: each, once applied, is admitted.

use model::Enforcer;
use model::mission::{CellClass, MissionFile};
use proptest::prelude::*;

use super::super::tests::{cell, facts, mission, task};
use super::super::{Facts, HeldMemory, Neighbour, Outcome, RtShare, admit};
use super::edit::Time;
use super::*;

const MS: Ns = 1_000_000;
/// Leaves no choice of the enforcer.
const FIFO: &str = "class = \"fifo\"\n";

fn kinds(fixes: &Fixes) -> Vec<&'static str> {
    fixes.found.iter().map(|fix| fix.kind).collect()
}

/// Names of the cells that are to be held to a budget, by the rules of the manual.
fn held(mission: &Mission, facts: &Facts) -> Vec<String> {
    let is_held = |class: Option<CellClass>| match (mission.enforcer, class) {
        (Some(enforcer), _) => enforcer != Enforcer::CpusetOnly,
        (None, Some(CellClass::Deadline)) => true,
        (None, Some(_)) => facts.rt_cgroup.is_ok(),
        (None, None) => facts.rt_cgroup.is_ok() || facts.deadline.is_ok(),
    };
    let cells = mission.cells.iter().filter(|cell| cell.is_real_time());
    cells
        .filter(|cell| is_held(cell.class))
        .map(|cell| cell.name.clone())
        .collect()
}

/// Each change, applied, is admitted, and takes a budget away only if it says so.
fn all_work(mission: &Mission, facts: &Facts, latency_ns: Ns) -> Fixes {
    let fixes = find_fixes(mission, facts, &[], latency_ns);
    for fix in &fixes.found {
        let (changed, changed_facts) = fix.apply(mission, facts);
        let admission = admit(&changed, &changed_facts, &[], latency_ns);
        assert!(admission.is_admitted(), "{fix:?}: {admission:?}");
        let loses = (held(mission, facts).iter())
            .filter_map(|name| admission.grant(name))
            .any(|grant| !grant.enforcer.has_budgets());
        assert_eq!(fix.kind == NO_BUDGET, loses, "{fix:?}: {admission:?}");
        let named = fix.edits.iter().any(|edit| edit.kind() == fix.kind);
        assert!(named || loses, "not what it is called: {fix:?}");
        assert_eq!(
            fix.remark.is_some(),
            loses || ["wcet", ORDINARY].contains(&fix.kind)
        );
    }
    fixes
}

fn tick_of_4_ms() -> Facts {
    let mut facts = facts();
    facts.machine.tick_hz = Some(250);
    facts
}

#[test]
fn two_small_tasks_that_an_empty_board_refuses_are_told_of_the_deadline_class() {
    let facts = tick_of_4_ms();
    let mission = mission(&format!(
        "{}{}",
        cell(
            "fast",
            &format!("cpus = [0]\n{FIFO}{}", task("1200us", "10ms"))
        ),
        cell(
            "slow",
            &format!(
                "cpus = [0]\n{FIFO}{}deadline = \"12ms\"\n",
                task("2400us", "50ms")
            )
        )
    ));
    assert!(!admit(&mission, &facts, &[], 0).is_admitted());
    let fixes = all_work(&mission, &facts, 0);
    let kinds = kinds(&fixes);
    for kind in ["enforcer", "budget"] {
        assert!(kinds.contains(&kind), "{fixes:?}");
    }
    let enforcer = fixes.found.iter().find(|fix| fix.kind == "enforcer");
    let first = enforcer.unwrap().edits[0].to_string();
    assert_eq!(first, "class = \"deadline\" in `fast`");
}

#[test]
fn a_class_that_this_kernel_holds_to_no_budget_is_offered_as_what_it_is() {
    let facts = Facts {
        rt_cgroup: Err("no cgroup v1".to_owned()),
        hcbs: Err("no cpu.rt.max".to_owned()),
        deadline_on_one_cpu: Err("the root domain is one".to_owned()),
        ..facts()
    };
    // As SCHED_DEADLINE no thread needs more than 0.9 of its period.
    let mission = mission(&cell("a", &task("9100us", "10ms")));
    assert!(!admit(&mission, &facts, &[], 0).is_admitted());
    let fixes = all_work(&mission, &facts, 0);
    let class = |fix: &&Fix| fix.edits.iter().any(|edit| matches!(edit, Edit::Class(..)));
    let fix = fixes.found.iter().find(class).unwrap();
    assert_eq!(fix.kind, "no-budget");
    assert!(fix.remark.unwrap().contains("keeps to what it declares"));
}

/// A measurement on one cpu of two, on a machine whose cpus cannot be set apart for SCHED_DEADLINE.
fn measured_on(cpu: u32) -> (String, Facts) {
    let who = "`timecell bench latency` (process 12)".to_owned();
    let neighbour = Neighbour {
        who: who.clone(),
        short: "latency".to_owned(),
        cells: Vec::new(),
        supplies: Vec::new(),
        measured_cpus: vec![cpu],
        partition_cpus: Vec::new(),
        memory: HeldMemory::default(),
        memory_taken_bytes: 0,
    };
    let facts = Facts {
        deadline_on_one_cpu: Err("the root domain is one".to_owned()),
        beside: vec![neighbour],
        ..facts()
    };
    (who, facts)
}

/// The advice to the only cell of a refused mission, and the fixes found.
fn advised(rest: &str, facts: &Facts) -> (Option<String>, Fixes) {
    let mission = mission(&cell("a", rest));
    let fixes = all_work(&mission, facts, 0);
    let mut admission = admit(&mission, facts, &[], 0);
    admission.advise(&fixes);
    match admission.cells.swap_remove(0) {
        Outcome::Refused(refused) => (refused.fix, fixes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cell_is_advised_only_what_was_found_to_suffice() {
    let (who, facts) = measured_on(1);
    let wait = format!("wait until {who} has ended");
    let threads = format!("class = \"deadline\"\n{}", task("1ms", "10ms"));
    let kept = format!("cpus = [1]\n{}", task("1ms", "100ms"));
    let both = format!("{wait}, or choose other cpus");
    for (rest, advice) in [(&threads, Some(wait)), (&kept, Some(both))] {
        assert_eq!(advised(rest, &facts).0, advice);
    }
    // Neither of the two that stand in its way can be changed alone.
    let (advice, _) = advised(&format!("cpus = [0]\n{threads}"), &facts);
    assert_eq!(advice, None);
}

#[test]
fn where_two_causes_refuse_both_are_changed() {
    let (who, mut facts) = measured_on(1);
    let room = facts.rt_cgroup.as_mut().unwrap();
    room.taken = vec![RtShare {
        who: who.clone(),
        us: std::mem::take(&mut room.free_us),
    }];
    let end = Edit::End(who);
    let changes = |rest: &str, parts: [(&str, &[Edit]); 2]| {
        let (advice, fixes) = advised(rest, &facts);
        assert_eq!(advice, None, "{fixes:?}");
        assert_eq!(kinds(&fixes), parts.each_ref().map(|(kind, _)| *kind));
        for (fix, (_, with)) in fixes.found.iter().zip(parts) {
            let all = with.iter().all(|edit| fix.edits.contains(edit));
            assert!(all && fix.edits.len() > with.len(), "{fix:?}");
        }
        fixes.found
    };
    let none = Edit::Enforcer(Some(Enforcer::CpusetOnly));
    let parts = [
        ("fewer", std::slice::from_ref(&end)),
        ("no-budget", std::slice::from_ref(&none)),
    ];
    let threads = |wcet: &str| format!("class = \"deadline\"\n{}", task(wcet, "10ms"));
    let kept = changes(&format!("cpus = [0]\n{}", threads("1ms")), parts);
    let cpus = |edit: &Edit| matches!(edit, Edit::Cpus(..));
    assert!(kept[0].edits.iter().any(cpus), "{kept:?}");
    // Too long for a thread of SCHED_DEADLINE, and for the kernel's limit on all threads of FIFO.
    let time = |edit: &Edit| matches!(edit, Edit::Time(..));
    for fix in changes(&threads("9900us"), parts) {
        assert!(fix.edits.iter().any(time), "{fix:?}");
    }
}

#[test]
fn where_deadline_threads_cannot_keep_to_a_cpu_their_cpus_are_left_out() {
    let mut facts = tick_of_4_ms();
    facts.deadline_on_one_cpu = Err("cpusets are version 1".to_owned());
    facts.rt_cgroup.as_mut().unwrap().free_us = 100_000;
    let mission = mission(&cell(
        "fast",
        &format!("cpus = [0]\n{FIFO}{}", task("1200us", "10ms")),
    ));
    assert!(!admit(&mission, &facts, &[], 0).is_admitted());
    let fixes = all_work(&mission, &facts, 0);
    let enforcer = fixes.found.iter().find(|fix| fix.kind == "enforcer");
    let edits: Vec<String> = enforcer
        .unwrap()
        .edits
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        edits,
        ["class = \"deadline\" in `fast`", "remove `cpus` in `fast`"]
    );
}

/// One stays for all else of the machine when cells have two for themselves.
fn of_three_cpus() -> Facts {
    Facts {
        cpus: vec![0, 1, 2],
        deadline: Ok(analysis::linux::RootDomain::of_cpus(3)),
        ..facts()
    }
}

#[test]
fn a_full_cpu_is_left_for_a_free_one_that_is_named() {
    let own = |name: &str| {
        cell(
            name,
            &format!("cpus = [0]\nclass = \"deadline\"\n{}", task("11ms", "20ms")),
        )
    };
    let mission = mission(&(own("a") + &own("b")));
    let fixes = all_work(&mission, &of_three_cpus(), 0);
    let cpus = &fixes.found[0];
    assert_eq!((cpus.kind, cpus.edits.len()), ("cpus", 1));
    let edit = serde_json::to_value(&cpus.edits[0]).unwrap();
    assert_eq!(edit["key"], "cpus");
    assert_eq!(edit["value"], "[2]");
}

#[test]
fn a_mission_kept_to_one_cpu_is_told_of_another() {
    let each = |name: &str| {
        cell(
            name,
            &format!("class = \"deadline\"\n{}", task("11ms", "20ms")),
        )
    };
    let text = format!("cpus = [0]\n{}{}", each("a"), each("b"));
    let mission = mission(&text);
    assert!(!admit(&mission, &of_three_cpus(), &[], 0).is_admitted());
    let fixes = all_work(&mission, &of_three_cpus(), 0);
    assert_eq!(fixes.found[0].edits, [Edit::MissionCpus(vec![0, 1])]);
}

#[test]
fn a_late_task_is_told_of_the_least_deadline_that_holds() {
    let with = |deadline: &str| {
        let late = format!("deadline = \"{deadline}\"\n");
        mission(&format!(
            "enforcer = \"deadline\"\n{}",
            cell("a", &format!("{}{late}", task("20ms", "100ms")))
        ))
    };
    let mission = with("21ms");
    assert!(!admit(&mission, &facts(), &[], 0).is_admitted());
    let fixes = all_work(&mission, &facts(), 0);
    let fix = fixes
        .found
        .iter()
        .find(|fix| fix.kind == "deadline")
        .unwrap();
    let [Edit::Time(_, _, _, ns)] = fix.edits.as_slice() else {
        panic!("{fix:?}");
    };
    assert!((21 * MS..100 * MS).contains(ns), "{fix:?}");
    let less = with(&format!("{}us", (ns - MS) / 1_000));
    assert!(!admit(&less, &facts(), &[], 0).is_admitted());
}

#[test]
fn what_suffices_when_more_is_left_to_timecell_is_called_what_it_is() {
    // Neither of the two suffices alone, and with both nothing else is to be changed.
    let rest = "cpus = [0, 1]\nreservation = { budget = \"1ms\", period = \"100ms\" }\n";
    let mission = mission(&cell("a", &format!("{rest}{}", task("20ms", "100ms"))));
    assert!(!admit(&mission, &facts(), &[], 0).is_admitted());
    let fixes = all_work(&mission, &facts(), 0);
    let budget = fixes.found.iter().find(|fix| fix.kind == "budget");
    assert_eq!(budget.map(|fix| fix.edits.len()), Some(2), "{fixes:?}");
    assert!(
        fixes.found.iter().all(|fix| fix.remark.is_none()),
        "{fixes:?}"
    );
}

#[test]
fn every_edit_is_of_a_kind_that_is_listed() {
    let (cell, task) = (|| "a".to_owned(), || "t".to_owned());
    for (edits, kind) in [
        (vec![Edit::Cpus(cell(), vec![])], "cpus"),
        (
            vec![Edit::Reservation(cell(), None), Edit::MissionCpus(vec![])],
            "budget",
        ),
        (
            vec![
                Edit::Class(cell(), CellClass::Deadline),
                Edit::Cpus(cell(), vec![]),
            ],
            "enforcer",
        ),
        (
            vec![Edit::Time(cell(), task(), Time::Deadline, 1)],
            "deadline",
        ),
        (
            vec![
                Edit::Time(cell(), task(), Time::Period, 1),
                Edit::Time(cell(), task(), Time::Deadline, 1),
            ],
            "period",
        ),
        (vec![Edit::Time(cell(), task(), Time::WcetHigh, 1)], "wcet"),
        (vec![Edit::End("mission `b`".to_owned())], "fewer"),
    ] {
        assert!(KINDS.iter().any(|known| known.name == kind));
        assert_eq!(Fix::of(edits.clone(), false).kind, kind);
        assert_eq!(Fix::of(edits, true).kind, "no-budget");
    }
}

#[test]
fn what_no_change_of_the_file_can_help_says_what_was_tried() {
    let mut facts = facts();
    facts.real_time = Err("no real-time class can be given".to_owned());
    let mission = mission(&cell("a", &task("1ms", "100ms")));
    let fixes = all_work(&mission, &facts, 0);
    assert!(fixes.found.is_empty(), "{fixes:?}");
    assert!(fixes.tried.len() == KINDS.len() && fixes.missions > 0);
}

/// A mission of a few cells that do not ask for little.
fn crowded() -> impl Strategy<Value = String> {
    let times = (1..2_000u64, 1..40u64, 0..3usize, 1..3usize);
    let cell_of = (times, 0..4usize, 0..4usize);
    (prop::collection::vec(cell_of, 1..5), 0..3usize).prop_map(|(cells, kept)| {
        let mut text = ["", "cpus = [0]\n", "enforcer = \"rt-cgroup\"\n"][kept].to_owned();
        for (at, ((wcet, period, held, tasks), cpu, class)) in cells.into_iter().enumerate() {
            let mut rest = ["", "", "cpus = [0]\n", "cpus = [1]\n"][cpu].to_owned();
            if class == 0 && kept != 2 {
                rest.push_str("class = \"deadline\"\n");
            } else if held == 0 {
                let budget = (wcet * 11).min(period * 1_000);
                rest.push_str(&format!(
                    "reservation = {{ budget = \"{budget}us\", period = \"{period}ms\" }}\n"
                ));
            }
            for number in 0..tasks {
                let wcet = (wcet * 10).min(period * 900);
                let named = task(&format!("{wcet}us"), &format!("{period}ms"));
                rest.push_str(&named.replace("\"t\"", &format!("\"t{number}\"")));
            }
            text.push_str(&cell(&format!("c{at}"), &rest));
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_change_that_is_offered_is_admitted_and_says_what_it_costs(
        text in crowded(),
        hz in 0..3usize,
        groups in any::<bool>(),
        divided in any::<bool>(),
    ) {
        let mut facts = facts();
        facts.machine.tick_hz = Some([100, 250, 1_000][hz]);
        if !groups {
            facts.rt_cgroup = Err("no cgroup v1".to_owned());
        }
        if !divided {
            facts.deadline_on_one_cpu = Err("the root domain is one".to_owned());
        }
        let Ok(file) = MissionFile::parse("m.toml", &format!("schema = 1\nname = \"m\"\n{text}")) else {
            return Ok(());
        };
        let mission = file.into_mission();
        if admit(&mission, &facts, &[], 0).is_admitted() {
            return Ok(());
        }
        let fixes = all_work(&mission, &facts, 0);
        prop_assert!(fixes.cut_short || !fixes.found.is_empty(), "{:?}", fixes);
    }
}

/// A mission of tasks with times of every length that a file may have, most of which are refused.
fn of_any_length() -> impl Strategy<Value = String> {
    // Lengths in powers of ten of ns; 36 years are 1.1e18 ns.
    let time = |from: f64| (from..18.05f64).prop_map(|power| 10f64.powf(power) as u64);
    let timing = (time(4.0), 1..=100u64, 1..=100u64);
    let cell_of = (
        prop::collection::vec(timing, 1..4),
        0..3usize,
        any::<bool>(),
    );
    prop::collection::vec(cell_of, 1..3).prop_map(|cells| {
        let mut text = "cpus = [0]\n".to_owned();
        for (at, (tasks, class, held)) in cells.into_iter().enumerate() {
            let mut rest = ["", "", "class = \"deadline\"\n"][class].to_owned();
            if held && class < 2 {
                let period = tasks[0].0 / 1_000;
                let budget = (period / 2).max(1);
                rest.push_str(&format!(
                    "reservation = {{ budget = \"{budget}us\", period = \"{period}us\" }}\n"
                ));
            }
            for (number, (period, deadline, wcet)) in tasks.into_iter().enumerate() {
                let deadline = (period / 100 * deadline).max(1_000);
                let wcet = (deadline / 100 * wcet).max(1_000);
                let named = task(&format!("{wcet}ns"), &format!("{period}ns"));
                let named = named.replace("\"t\"", &format!("\"t{number}\""));
                rest.push_str(&format!("{named}deadline = \"{deadline}ns\"\n"));
            }
            text.push_str(&cell(&format!("c{at}"), &rest));
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn times_of_any_length_are_answered(text in of_any_length()) {
        let Ok(file) = MissionFile::parse("m.toml", &format!("schema = 1\nname = \"m\"\n{text}")) else {
            return Ok(());
        };
        let mission = file.into_mission();
        if !admit(&mission, &facts(), &[], 0).is_admitted() {
            all_work(&mission, &facts(), 0);
        }
    }
}

#[test]
fn a_refused_mission_with_a_period_of_36_years_is_answered() {
    let second = task("100us", "315000h").replace("\"t\"", "\"other\"");
    let mission = mission(&format!(
        "cpus = [0]\nenforcer = \"rt-cgroup\"\n{}",
        cell("a", &format!("{}{second}", task("20ms", "20ms")))
    ));
    assert!(!admit(&mission, &facts(), &[], 0).is_admitted());
    all_work(&mission, &facts(), 0);
}
