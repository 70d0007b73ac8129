//! Cpus that a mission has to itself.

use analysis::linux::Bandwidth;

use super::beside::neighbour;
use super::*;

const DEADLINE: &str = "class = \"deadline\"\n";

/// A machine of so many cpus, where nobody has one for himself.
fn of_cpus(count: u32) -> Facts {
    Facts {
        cpus: (0..count).collect(),
        deadline: Ok(RootDomain::of_cpus(count as usize)),
        rt_cgroup: Err("there are no real-time groups".to_owned()),
        hcbs: Err("no cpu.rt.max".to_owned()),
        freezer: Ok(()),
        ..facts()
    }
}

/// A cell of class SCHED_DEADLINE.
fn timed(name: &str, cpus: &str, wcet: &str) -> String {
    cell(name, &format!("{DEADLINE}{cpus}\n{}", task(wcet, "20ms")))
}

/// One of class FIFO.
fn urgent(name: &str, cpus: &str, enforcer: &str) -> String {
    let reserved = "reservation = { budget = \"1ms\", period = \"50ms\" }\n";
    let text = cell(name, &format!("class = \"fifo\"\n{cpus}\n{reserved}"));
    format!("{enforcer}{text}")
}

fn asked(text: &str, facts: &Facts) -> Admission {
    admit(&mission(text), facts, &[], 0)
}

#[test]
fn cells_on_one_cpu_are_tested_on_it_alone_and_have_it_for_themselves() {
    let text = timed("a", "cpus = [1]", "8ms") + &timed("b", "cpus = [1]", "7ms");
    let admission = asked(&text, &of_cpus(2));
    let grants = granted(&admission);
    assert!(grants.values().all(|grant| grant.cpus == [1]));
    assert!(
        grants
            .values()
            .all(|grant| grant.partition == Some(vec![1]))
    );
    assert_eq!(admission.partitions, [[1]]);
    let note = "cpu 1 is a cpuset partition";
    assert!(admission.notes.iter().any(|said| said.contains(note)));
    // Runtimes of 18.9 ms and a tick of 1 ms are within 20 ms, those of 19.1 ms are not: by the demand of earliest deadline first, which is exact on one cpu.
    let more = |wcet: &str| {
        let text = timed("a", "cpus = [1]", "8ms") + &timed("b", "cpus = [1]", wcet);
        asked(&text, &of_cpus(2)).is_admitted()
    };
    assert!(more("9ms") && !more("9200us"));
    // Without partitions, such cells cannot be kept there.
    let undivided = Facts {
        deadline_on_one_cpu: Err("cgroup v1".to_owned()),
        ..of_cpus(2)
    };
    assert!(refused(&asked(&text, &undivided)).why.contains("cgroup v1"));
    // And where nothing must be kept anywhere, they run on any.
    let anywhere = asked(&timed("a", "", "8ms"), &undivided);
    let grant = &granted(&anywhere)["a"];
    assert_eq!(
        (grant.cpus.as_slice(), &grant.partition),
        (&[0, 1][..], &None)
    );
}

#[test]
fn the_only_cpu_of_a_machine_is_no_partition() {
    let admission = asked(&timed("a", "cpus = [0]", "8ms"), &of_cpus(1));
    assert_eq!(granted(&admission)["a"].partition, None);
    assert_eq!(admission.partitions, Vec::<Vec<u32>>::new());
}

#[test]
fn one_cpu_is_left_for_all_else_of_the_machine() {
    let two = |cpus: [&str; 2]| timed("a", cpus[0], "11ms") + &timed("b", cpus[1], "11ms");
    // Placed from the last cpu on.
    let four = asked(&two(["", ""]), &of_cpus(4));
    assert_eq!(four.partitions, [[2], [3]]);
    let named = asked(&two(["cpus = [0]", "cpus = [1]"]), &of_cpus(2));
    let why = &refused(&named).why;
    assert!(why.contains("leave no cpu for the rest"), "{why}");
    assert!(asked(&two(["cpus = [0]", "cpus = [1]"]), &of_cpus(3)).is_admitted());
    // Where there is no room for partitions, threads that name no cpus run on all of them.
    let anywhere = asked(&two(["", ""]), &of_cpus(2));
    assert!(
        granted(&anywhere)
            .values()
            .all(|grant| grant.cpus == [0, 1])
    );
    assert_eq!(anywhere.partitions, Vec::<Vec<u32>>::new());
}

#[test]
fn what_others_keep_is_refused_with_their_name_and_passed_over_where_nobody_names_it() {
    let kept = |is_partition: bool| Facts {
        kept_cpus: vec![KeptCpu {
            cpu: 3,
            by: "the cgroup `x` has it".to_owned(),
            is_partition,
        }],
        ..of_cpus(4)
    };
    for is_partition in [false, true] {
        let facts = kept(is_partition);
        let named = asked(&timed("a", "cpus = [3]", "1ms"), &facts);
        assert!(refused(&named).why.contains("the cgroup `x` has it"));
        let free = asked(&timed("a", "", "1ms"), &facts);
        assert_eq!(granted(&free)["a"].cpus, [2]);
        let fifo = asked(
            &urgent("u", "cpus = [3]", "enforcer = \"cpuset-only\"\n"),
            &facts,
        );
        assert_eq!(fifo.is_admitted(), !is_partition);
        let plain = cell("plain", "class = \"other\"\ncpus = [3]\n");
        assert_eq!(asked(&plain, &facts).is_admitted(), !is_partition);
    }
    // A cpu of others does not count as left to the machine.
    let all = asked(&timed("a", "cpus = [0, 1, 2]", "1ms"), &kept(true));
    assert!(!all.is_admitted());
}

#[test]
fn a_partition_has_one_mission() {
    let three = of_cpus(3);
    let cases = [
        (
            timed("other", "cpus = [1]", "1ms"),
            timed("own", "cpus = [1]", "1ms"),
        ),
        (
            timed("other", "cpus = [1]", "1ms"),
            urgent("own", "cpus = [1]", "enforcer = \"cpuset-only\"\n"),
        ),
        (
            urgent("other", "cpus = [1]", "enforcer = \"cpuset-only\"\n"),
            timed("own", "cpus = [1]", "1ms"),
        ),
        (
            urgent("other", "cpus = [1]", "enforcer = \"freezer\"\n"),
            timed("own", "cpus = [1]", "1ms"),
        ),
    ];
    for (other, own) in cases {
        let facts = Facts {
            beside: vec![neighbour("b", &other, &three)],
            ..three.clone()
        };
        let admission = asked(&own, &facts);
        let why = &refused(&admission).why;
        assert!(
            why.contains("mission `b`") && why.contains("partition"),
            "{why}"
        );
        let elsewhere = own.replace("cpus = [1]", "cpus = [2]");
        assert!(asked(&elsewhere, &facts).is_admitted());
        let free = own.replace("cpus = [1]", "");
        let admission = asked(&free, &facts);
        assert_ne!(granted(&admission)["own"].cpus, [1]);
    }
}

#[test]
fn threads_of_another_mission_that_run_on_any_cpu_rule_partitions_out() {
    let undivided = Facts {
        deadline_on_one_cpu: Err("an earlier timecell".to_owned()),
        ..of_cpus(3)
    };
    let facts = Facts {
        beside: vec![neighbour("b", &timed("other", "", "1ms"), &undivided)],
        ..of_cpus(3)
    };
    let named = asked(&timed("own", "cpus = [1]", "1ms"), &facts);
    let why = &refused(&named).why;
    assert!(why.contains("`other` of mission `b` runs there"), "{why}");
}

#[test]
fn other_cells_of_the_mission_run_inside_and_those_of_the_freezer_are_refused() {
    let with = |enforcer: &str| {
        let text = urgent("u", "cpus = [1]", enforcer) + &timed("a", "cpus = [1]", "1ms");
        asked(&text, &of_cpus(2))
    };
    let none = Facts {
        freezer: Err("there is none".to_owned()),
        ..of_cpus(2)
    };
    let text = urgent("u", "cpus = [1]", "") + &timed("a", "cpus = [1]", "1ms");
    let grants = granted(&asked(&text, &none));
    assert_eq!(grants["u"].enforcer, Enforcer::CpusetOnly);
    assert_eq!(grants["u"].partition, Some(vec![1]));
    let admission = with("");
    let why = &refused(&admission).why;
    assert!(why.contains("the freezer's threads for `u`"), "{why}");
    // On another cpu they are no trouble to each other.
    let text = urgent("u", "cpus = [0]", "") + &timed("a", "cpus = [1]", "1ms");
    let grants = granted(&asked(&text, &of_cpus(2)));
    assert_eq!(
        (grants["u"].enforcer, &grants["u"].partition),
        (Enforcer::Freezer, &None)
    );
}

#[test]
fn best_effort_cells_stay_outside_unless_they_name_nothing_else() {
    let plain = |cpus: &str| {
        let text = timed("a", "cpus = [1]", "1ms")
            + &cell("plain", &format!("class = \"other\"\n{cpus}\n"));
        let admission = asked(&text, &of_cpus(3));
        let cpus = admission.best_effort("plain").unwrap().to_vec();
        (cpus.clone(), admission.partition_of(&cpus).is_some())
    };
    assert_eq!(plain(""), (vec![0, 2], false));
    assert_eq!(plain("cpus = [0, 1]"), (vec![0], false));
    assert_eq!(plain("cpus = [1]"), (vec![1], true));
}

#[test]
fn the_supervisor_is_where_no_partition_is() {
    let with = |cpus: Vec<u32>| Facts {
        supervisor: Ok(cpus),
        ..of_cpus(3)
    };
    // So much that it would have nothing beside it.
    let text = timed("a", "cpus = [1]", "16ms");
    let admission = asked(&text, &with(vec![0, 1, 2]));
    assert!(admission.is_admitted(), "{:?}", admission.refusals);
    assert_eq!(admission.supervisor.cpus, [0, 2]);
    let mut held = admission.held.iter();
    assert_eq!(held.find(|held| held.supervisor).unwrap().cpus(), [0, 2]);
    assert!(
        admission
            .cpus
            .iter()
            .all(|load| load.cpu != 1 || load.cells == ["a"])
    );
    assert!(!asked(&text, &with(vec![1])).is_admitted());
}

#[test]
fn a_cell_of_several_tasks_has_a_set_of_cpus_for_itself() {
    let tasks = |count: usize, wcet: &str| -> String {
        (0..count)
            .map(|at| task(wcet, "20ms").replace("\"t\"", &format!("\"t{at}\"")))
            .collect()
    };
    let three = |wcet: &str| cell("a", &format!("{DEADLINE}cpus = [1, 2]\n{}", tasks(3, wcet)));
    let admission = asked(&three("3ms"), &of_cpus(4));
    assert_eq!(granted(&admission)["a"].partition, Some(vec![1, 2]));
    let basis = &granted(&admission)["a"].basis;
    assert!(
        matches!(basis, Basis::Tick { unmeasured } if unmeasured.contains("global")),
        "{basis:?}"
    );
    let load: f64 = admission.cpus.iter().map(|cpu| cpu.reserved).sum();
    assert!((load - 3.0 * 3.334 / 20.0).abs() < 1e-9, "{load}");
    let crowded = asked(&three("11ms"), &of_cpus(4));
    assert!(refused(&crowded).why.contains("in its cpuset partition"));
    // Two cells have the same cpus, or none in common.
    let beside = |cpus: &str| asked(&(three("3ms") + &timed("b", cpus, "1ms")), &of_cpus(4));
    assert!(refused(&beside("cpus = [1]")).why.contains("overlap"));
    assert_eq!(beside("cpus = [3]").partitions, [vec![1, 2], vec![3]]);
    let more = cell(
        "b",
        &format!("{DEADLINE}cpus = [1, 2]\n{}", tasks(2, "1ms")),
    );
    assert_eq!(
        asked(&(three("3ms") + &more), &of_cpus(4)).partitions,
        [[1, 2]]
    );
    let one = asked(&timed("a", "cpus = [1, 2]", "1ms"), &of_cpus(4));
    assert!(refused(&one).why.contains("needs one cpu only"));
}

#[test]
fn the_kernel_admits_the_threads_of_each_partition_by_themselves() {
    let mut facts = of_cpus(4);
    if let Ok(domain) = &mut facts.deadline {
        domain.share = Bandwidth::new(30_000_000, 100_000_000);
    }
    // 33 % of a cpu is not much of four, but more than one may have.
    let admission = asked(&timed("a", "cpus = [1]", "6ms"), &facts);
    assert!(
        admission.refusals[0].contains("the kernel would refuse"),
        "{:?}",
        admission.refusals
    );
    assert!(asked(&timed("a", "cpus = [1]", "5ms"), &facts).is_admitted());
    let anywhere = Facts {
        deadline_on_one_cpu: Err("it is not divided".to_owned()),
        ..facts
    };
    assert!(asked(&timed("a", "", "6ms"), &anywhere).is_admitted());
}

#[test]
fn a_strangers_thread_that_is_bound_there_is_in_the_way() {
    let thread = |cpus: &[u32]| Facts {
        outside: vec![Unaccounted {
            pid: 7,
            tid: 7,
            name: "x".to_owned(),
            class: "FIFO 50".to_owned(),
            cpus: cpus.to_vec(),
        }],
        ..of_cpus(3)
    };
    let text = timed("a", "cpus = [1]", "1ms");
    let admission = asked(&text, &thread(&[1]));
    assert!(admission.refusals[0].contains("FIFO 50 thread of process 7"));
    // One that may run elsewhere goes there, and is nothing to count with.
    let admission = asked(&text, &thread(&[0, 1]));
    assert!(admission.is_admitted());
    assert_eq!(admission.unaccounted, []);
}

#[test]
fn nobody_loses_a_cpu_to_a_mission_that_does_not_ask_for_it() {
    let open = |top: &str| {
        let text = format!("{top}{}", cell("a", &task("1500us", "20ms")));
        asked(&text, &of_cpus(2))
    };
    let admission = open("");
    assert_eq!(granted(&admission)["a"].enforcer, Enforcer::Deadline);
    assert_eq!(admission.partitions, Vec::<Vec<u32>>::new());
    assert_eq!(open("cpus = [1]\n").partitions, [[1]]);
    assert_eq!(open("enforcer = \"deadline\"\n").partitions, [[1]]);
}
