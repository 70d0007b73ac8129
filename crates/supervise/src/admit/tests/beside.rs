//! A mission beside grants of others.

use model::mission::Band;

use super::*;

const PLAIN: &str = "enforcer = \"cpuset-only\"\n";

/// The grants of a mission `name` that was admitted on these facts.
pub(super) fn neighbour(name: &str, cells: &str, facts: &Facts) -> Neighbour {
    let admission = admit(&mission(cells), facts, &[], 50_000);
    assert!(admission.is_admitted(), "{admission:?}");
    Neighbour {
        who: format!("mission `{name}`"),
        short: name.to_owned(),
        memory: admission.held_memory(),
        cells: admission.held,
        supplies: Vec::new(),
        measured_cpus: Vec::new(),
        partition_cpus: Vec::new(),
        memory_taken_bytes: 0,
    }
}

pub(super) fn beside(others: Vec<Neighbour>) -> Facts {
    Facts {
        beside: others,
        ..facts()
    }
}

/// 40 ms of every 100 ms, on cpu 0.
fn spin() -> Neighbour {
    let cells = cell("spin", &format!("cpus = [0]\n{}", task("40ms", "100ms")));
    neighbour("a", &format!("{PLAIN}{cells}"), &facts())
}

#[test]
fn a_second_mission_goes_where_there_is_room_at_another_priority() {
    let facts = beside(vec![spin()]);
    let cells = format!("{PLAIN}{}", cell("control", &task("10ms", "30ms")));
    let admission = admit(&mission(&cells), &facts, &[], 50_000);
    let control = &granted(&admission)["control"];
    assert_eq!(control.cpus, [1]);
    assert_ne!(
        control.band,
        Some(Band {
            lowest: 89,
            highest: 89
        })
    );
    assert_eq!(admission.beside, ["mission `a`"]);
    // Alone it has cpu 0 and the highest priority.
    let alone = granted(&admit(&mission(&cells), &super::facts(), &[], 50_000));
    assert_eq!(alone["control"].cpus, [0]);
}

#[test]
fn a_bound_counts_what_others_run_and_a_refusal_names_them() {
    let facts = beside(vec![spin()]);
    let with = |wcet: &str, period: &str| {
        let cells = cell("control", &format!("cpus = [0]\n{}", task(wcet, period)));
        admit(&mission(&format!("{PLAIN}{cells}")), &facts, &[], 50_000)
    };
    let admitted = with("10ms", "100ms");
    let response = granted(&admitted)["control"].tasks[0].response_ns.unwrap();
    assert!(response >= 50 * MS, "{response}");
    let admission = with("10ms", "30ms");
    let why = &refused(&admission).why;
    assert!(
        why.contains("`spin` of mission `a` runs there already"),
        "{why}"
    );
}

#[test]
fn an_earlier_guarantee_is_never_broken() {
    let facts = beside(vec![spin()]);
    let cells = cell(
        "greedy",
        &format!(
            "cpus = [0]\npriorities = {{ lowest = 95, highest = 95 }}\n{}",
            task("70ms", "100ms")
        ),
    );
    let admission = admit(&mission(&format!("{PLAIN}{cells}")), &facts, &[], 50_000);
    let why = &refused(&admission).why;
    assert!(
        why.contains("`spin` of mission `a` would be late beside it"),
        "{why}"
    );
}

#[test]
fn two_cells_of_one_priority_do_not_meet_on_a_cpu() {
    let facts = beside(vec![spin()]);
    let cells = |cpu: u32| {
        cell(
            "same",
            &format!(
                "cpus = [{cpu}]\npriorities = {{ lowest = 89, highest = 89 }}\n{}",
                task("1ms", "100ms")
            ),
        )
    };
    let on = |cpu| {
        admit(
            &mission(&format!("{PLAIN}{}", cells(cpu))),
            &facts,
            &[],
            50_000,
        )
    };
    assert!(on(1).is_admitted());
    let admission = on(0);
    let why = &refused(&admission).why;
    assert!(
        why.contains("`spin` of mission `a` already has the priority 88 to 89"),
        "{why}"
    );
}

#[test]
fn threads_of_deadline_are_counted_together() {
    let cells = |name: &str| {
        format!(
            "enforcer = \"deadline\"\n{}",
            cell(name, &task("50ms", "100ms"))
        )
    };
    let beside = |others| Facts {
        beside: others,
        ..undivided()
    };
    let first = neighbour("a", &cells("x"), &undivided());
    let second = neighbour("b", &cells("y"), &beside(vec![first.clone()]));
    let third = beside(vec![first, second]);
    let admission = admit(&mission(&cells("z")), &third, &[], 50_000);
    assert!(!admission.is_admitted(), "{admission:?}");
}

#[test]
fn nobody_is_put_where_is_measured() {
    let bench = Neighbour {
        who: "`timecell bench overhead` (process 7)".to_owned(),
        short: "overhead".to_owned(),
        cells: Vec::new(),
        supplies: Vec::new(),
        measured_cpus: vec![0],
        partition_cpus: Vec::new(),
        memory: HeldMemory::default(),
        memory_taken_bytes: 0,
    };
    let facts = beside(vec![bench]);
    let free = mission(&format!("{PLAIN}{}", cell("c", &task("1ms", "10ms"))));
    assert_eq!(granted(&admit(&free, &facts, &[], 50_000))["c"].cpus, [1]);
    let cells = cell("c", &format!("cpus = [0]\n{}", task("1ms", "10ms")));
    let admission = admit(&mission(&format!("{PLAIN}{cells}")), &facts, &[], 50_000);
    let why = &refused(&admission).why;
    assert!(why.contains("(process 7) is measuring on cpu 0"), "{why}");
}

/// A partition on this cpu.
fn partition(cpu: u32) -> String {
    format!(
        "jailhouse.system = \"s\"\n[[cell]]\nname = \"p\"\nengine = \"jailhouse\"\nimage = {{ inmate = \"p.bin\" }}\nclass = \"other\"\n\
         partition = {{ cpus = [{cpu}], memory = [{{ at = 0x1000, size = \"4KiB\" }}] }}\n"
    )
}

#[test]
fn cpus_of_a_partition_are_nobody_elses() {
    let both = mission(&format!(
        "{PLAIN}{}{}",
        partition(0),
        cell("c", &task("1ms", "10ms"))
    ));
    let admission = admit(&both, &facts(), &[], 50_000);
    assert_eq!(admission.grant("c").unwrap().cpus, [1]);
    assert_eq!(admission.best_effort("p"), Some(&[1][..]));
    assert_eq!(admission.partition_cpus, [0]);
    let mut other = neighbour("a", &partition(0), &facts());
    other.partition_cpus = vec![0];
    let cells = mission(&format!("{PLAIN}{}", cell("c", &task("1ms", "10ms"))));
    let admission = admit(&cells, &beside(vec![other.clone()]), &[], 50_000);
    assert_eq!(granted(&admission)["c"].cpus, [1]);
    for (other, who) in [
        (other, "mission `a` has it"),
        (spin(), "mission `a` has it"),
    ] {
        let admission = admit(&mission(&partition(0)), &beside(vec![other]), &[], 50_000);
        let why = &refused(&admission).why;
        assert_eq!(*why, format!("cpu 0 cannot leave Linux: {who}"));
    }
}

#[test]
fn threads_that_nobody_accounts_for_are_named() {
    let thread = |cpus: &[u32], pid| Unaccounted {
        pid,
        tid: pid,
        name: "x".to_owned(),
        class: "FIFO 90".to_owned(),
        cpus: cpus.to_vec(),
    };
    let facts = Facts {
        outside: vec![thread(&[0], 7), thread(&[1], 8)],
        ..facts()
    };
    let cells = cell("c", &format!("cpus = [0]\n{}", task("1ms", "10ms")));
    let admission = admit(&mission(&format!("{PLAIN}{cells}")), &facts, &[], 50_000);
    assert!(admission.is_admitted());
    assert_eq!(admission.unaccounted.len(), 1);
    let says = "FIFO 90 thread of process 7 (x) on cpu 0 is not accounted for";
    assert!(
        admission.notes.iter().any(|note| note.starts_with(says)),
        "{:?}",
        admission.notes
    );
}

/// A measurement, with its share of the runtime of groups, us in every second.
fn bench(us: u64) -> (Neighbour, RtShare) {
    let who = "`timecell bench latency` (process 12)";
    let neighbour = Neighbour {
        who: who.to_owned(),
        short: "latency".to_owned(),
        cells: Vec::new(),
        supplies: Vec::new(),
        measured_cpus: Vec::new(),
        partition_cpus: Vec::new(),
        memory: HeldMemory::default(),
        memory_taken_bytes: 0,
    };
    let who = who.to_owned();
    (neighbour, RtShare { who, us })
}

fn with_groups_taken(us: u64) -> Facts {
    let (neighbour, share) = bench(us);
    let mut facts = beside(vec![neighbour]);
    let room = facts.rt_cgroup.as_mut().unwrap();
    room.free_us -= us;
    room.taken = vec![share];
    facts
}

#[test]
fn what_is_taken_at_this_moment_is_no_reason_to_go_without_a_budget() {
    let facts = with_groups_taken(950_000);
    for (own, rest) in [
        (
            "",
            "reservation = { budget = \"2ms\", period = \"40ms\" }\n",
        ),
        ("class = \"fifo\"\n", &task("1ms", "100ms")),
    ] {
        let mission = mission(&cell("a", &format!("{own}{rest}")));
        let admission = admit(&mission, &facts, &[], 0);
        let why = &refused(&admission).why;
        assert!(
            why.contains("`timecell bench latency` (process 12) holds 950 ms"),
            "{why}"
        );
        assert!(admit(&mission, &super::facts(), &[], 0).is_admitted());
        // Once that has ended, its share is there.
        let fixes = find_fixes(&mission, &facts, &[], 0).found;
        let end = [Edit::End(
            "`timecell bench latency` (process 12)".to_owned(),
        )];
        assert!(fixes.iter().any(|fix| fix.edits == end), "{fixes:?}");
    }
    // A request for SCHED_DEADLINE does not need them.
    let threads = cell(
        "a",
        &format!("class = \"deadline\"\n{}", task("1ms", "100ms")),
    );
    assert!(admit(&mission(&threads), &facts, &[], 0).is_admitted());
}

#[test]
fn too_little_left_of_the_runtime_of_groups_names_who_has_it() {
    let facts = with_groups_taken(900_000);
    let named = "(process 12) holds 900 ms";
    let fifo = format!("class = \"fifo\"\n{}", task("8ms", "100ms"));
    let sought = mission(&cell("a", &fifo));
    let admission = admit(&sought, &facts, &[], 0);
    let why = &refused(&admission).why;
    assert!(
        why.contains("up to 5.0 % of one") && why.contains(named),
        "{why}"
    );
    let reserved = cell(
        "a",
        "reservation = { budget = \"20ms\", period = \"100ms\" }\n",
    );
    let admission = admit(&mission(&reserved), &facts, &[], 0);
    let [refusal] = admission.refusals.as_slice() else {
        panic!("{admission:?}");
    };
    assert!(refusal.contains(named), "{refusal}");
    for (mission, facts) in [
        (&sought, &super::facts()),
        (&mission(&reserved), &super::facts()),
    ] {
        assert!(admit(mission, facts, &[], 0).is_admitted());
    }
}
