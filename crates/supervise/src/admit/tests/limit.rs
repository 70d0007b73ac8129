//! The kernel's limit for all real-time threads of a cpu, and which cells may share a cpu.

use analysis::linux::Bandwidth;
use proptest::prelude::*;

use super::beside::{beside, neighbour};
use super::*;

const PLAIN: &str = "enforcer = \"cpuset-only\"\n";

fn alone(wcet: &str, facts: &Facts) -> Admission {
    let cells = cell("c", &format!("cpus = [0]\n{}", task(wcet, "100ms")));
    admit(&mission(&format!("{PLAIN}{cells}")), facts, &[], 50_000)
}

/// As on a machine without real-time groups.
fn without_groups(domain: RootDomain) -> Facts {
    Facts {
        rt_cgroup: Err("no cgroup v1".to_owned()),
        hcbs: Err("no cpu.rt.max".to_owned()),
        deadline: Ok(domain),
        ..facts()
    }
}

fn unlimited() -> RootDomain {
    let mut domain = RootDomain::of_cpus(2);
    domain.share = Bandwidth {
        runtime: None,
        ..Bandwidth::default()
    };
    domain
}

#[test]
fn cells_that_nothing_holds_stay_within_what_the_kernel_lets_real_time_threads_have() {
    let stopped = "throttles all real-time threads after 950 ms";
    let cases = [
        (facts(), Some(stopped)),
        (without_groups(RootDomain::of_cpus(2)), Some(stopped)),
        (
            without_groups(unlimited().with_fair_server()),
            Some("fair server runs before"),
        ),
        (without_groups(unlimited()), None),
    ];
    for (facts, expected) in cases {
        assert!(alone("90ms", &facts).is_admitted());
        let admission = alone("99ms", &facts);
        match expected {
            Some(part) => {
                let why = &refused(&admission).why;
                assert!(why.contains(part), "{why}");
            }
            None => assert!(admission.is_admitted(), "{admission:?}"),
        }
    }
}

#[test]
fn threads_of_every_class_count() {
    // 45 ms of 100 ms, and 5 ms more in SCHED_DEADLINE.
    let deadline = cell(
        "d",
        &("class = \"deadline\"\n".to_owned() + &task("45ms", "100ms")),
    );
    let fifo = |wcet: &str| {
        let rest = format!("class = \"fifo\"\ncpus = [0]\n{}", task(wcet, "100ms"));
        admit(
            &mission(&(cell("f", &rest) + &deadline.replace("class", "cpus = [0]\nclass"))),
            &without_groups(RootDomain::of_cpus(2)),
            &[],
            0,
        )
    };
    assert!(fifo("35ms").is_admitted(), "{:?}", fifo("35ms"));
    let admission = fifo("42ms");
    let why = &refused(&admission).why;
    assert!(why.contains("throttles all real-time threads"), "{why}");
}

/// One cell of a mission by itself on cpu 0.
fn one(name: &str, enforcer: &str, priority: u8, (wcet, period): (u64, u64)) -> String {
    let held = match enforcer {
        "rt-cgroup" => format!(
            "reservation = {{ budget = \"{}ms\", period = \"{}ms\" }}\n",
            (wcet / 2 + 2).min(period / 4),
            period / 4
        ),
        _ => String::new(),
    };
    let rest = format!(
        "cpus = [0]\n{held}priorities = {{ lowest = {priority}, highest = {priority} }}\n{}",
        task(&format!("{wcet}ms"), &format!("{period}ms"))
    );
    format!("enforcer = \"{enforcer}\"\n{}", cell(name, &rest))
}

fn second_beside_first(first: &str, second: &str) -> Option<Admission> {
    let alone = admit(&mission(first), &facts(), &[], 50_000);
    let is_assumed = |grant: &Grant| grant.basis.is_assumed();
    let stands = alone.is_admitted() && !granted(&alone).values().any(is_assumed);
    stands.then(|| {
        let facts = beside(vec![neighbour("first", first, &facts())]);
        admit(&mission(second), &facts, &[], 50_000)
    })
}

#[test]
fn a_held_cell_and_one_that_nothing_holds_do_not_meet_on_a_cpu() {
    let held = one("held", "rt-cgroup", 89, (1, 100));
    let free = one("free", "cpuset-only", 10, (5, 500));
    for (first, second, who) in [
        (&held, &free, "`rt-cgroup` holds `held` of mission `first`"),
        (
            &free,
            &held,
            "`free` of mission `first`, on the same cpu, has no enforced budget",
        ),
    ] {
        let admission = second_beside_first(first, second).unwrap();
        let why = &refused(&admission).why;
        assert!(why.contains(who), "{why}");
        let elsewhere = second.replace("cpus = [0]", "cpus = [1]");
        assert!(
            second_beside_first(first, &elsewhere)
                .unwrap()
                .is_admitted()
        );
        // Where none is asked for, the other cpu is found.
        let anywhere = second.replace("cpus = [0]\n", "");
        let admission = second_beside_first(first, &anywhere).unwrap();
        assert_eq!(granted(&admission).values().next().unwrap().cpus, [1]);
        // And the offer is another cpu or another mechanism.
        let beside = beside(vec![neighbour("first", first, &facts())]);
        let found = find_fixes(&mission(second), &beside, &[], 50_000);
        assert!(!found.found.is_empty(), "{found:?}");
    }
    let other = one("other", "cpuset-only", 11, (5, 500));
    assert!(second_beside_first(&free, &other).unwrap().is_admitted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_admission_changes_no_verdict(
        held in prop::array::uniform2(prop::bool::ANY), priorities in (10u8..40, 40u8..80), swap in prop::bool::ANY,
        times in prop::array::uniform2((1u64..40, 50u64..200)),
    ) {
        let enforcer = |held| if held { "rt-cgroup" } else { "cpuset-only" };
        let priorities = if swap { (priorities.1, priorities.0) } else { priorities };
        let a = one("a", enforcer(held[0]), priorities.0, times[0]);
        let b = one("b", enforcer(held[1]), priorities.1, times[1]);
        // The tasks-only assumption is made of a cell when it comes, and not of those that are there already.
        let both = |first, second| second_beside_first(first, second).is_some_and(|admission| {
            admission.is_admitted() && !granted(&admission).values().any(|grant| grant.basis.is_assumed())
        });
        let (ab, ba) = (both(&a, &b), both(&b, &a));
        prop_assert_eq!(ab, ba);
        prop_assert!(!ab || held[0] == held[1]);
    }
}
