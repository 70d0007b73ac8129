//! Cells held by SCHED_DEADLINE servers, `cpu.rt.max` of cgroup v2.

use analysis::linux::TickSupply;

use super::*;

/// A PREEMPT_RT machine with cgroup v2 alone, whose groups have budgets; `taken_us` of every second are somebody's.
fn with_servers(taken_us: u64) -> Facts {
    let taken = RtShare {
        who: "mission `b`".to_owned(),
        us: taken_us,
    };
    Facts {
        rt_cgroup: Err("no cgroup v1".to_owned()),
        hcbs: Ok(ServerRoom {
            room: RtRoom {
                free_us: 950_000 - taken_us,
                taken: [taken].into_iter().filter(|share| share.us > 0).collect(),
                limit_ns: None,
                limit_period_ns: 1_000_000_000,
            },
            reserved_us: taken_us,
        }),
        freezer: Ok(()),
        ..facts()
    }
}

fn reserved(budget: &str, period: &str) -> String {
    format!("reservation = {{ budget = \"{budget}\", period = \"{period}\" }}\n")
}

fn by_servers(cells: &str, facts: &Facts) -> Admission {
    let mission = mission(&format!("enforcer = \"hcbs\"\n{cells}"));
    admit(&mission, facts, &[], 0)
}

#[test]
fn a_cell_gets_the_least_budget_that_a_server_needs() {
    let facts = with_servers(0);
    let admission = by_servers(&cell("a", &task("1500us", "20ms")), &facts);
    let grant = granted(&admission)["a"].clone();
    assert_eq!(grant.enforcer, Enforcer::Hcbs);
    let (budget, period) = (grant.budget_ns.unwrap(), grant.period_ns.unwrap());
    let tasks = [analysis::Task::new(1_500_000 + 50_000, 20 * MS)];
    let holds = |budget| {
        let supply = TickSupply::deadline(budget, period, facts.tick_ns()).unwrap();
        let policy = analysis::inside::Policy::FixedPriority;
        analysis::inside::holds(&tasks, policy, &supply.cautious) == Ok(true)
    };
    assert!(holds(budget));
    assert!(!holds(budget - analysis::linux::BUDGET_GRID_NS));
    assert_eq!(grant.postponed_ns, 0);
}

#[test]
fn it_is_taken_for_whole_cells_before_the_freezer() {
    let several = "class = \"fifo\"\n".to_owned() + &reserved("5ms", "50ms");
    let admission = admit(&mission(&cell("a", &several)), &with_servers(0), &[], 0);
    assert_eq!(granted(&admission)["a"].enforcer, Enforcer::Hcbs);
    let wide = several + "cpus = [0, 1]\n";
    let admission = admit(&mission(&cell("a", &wide)), &with_servers(0), &[], 0);
    let grant = &granted(&admission)["a"];
    assert_eq!(
        (grant.enforcer, grant.budget_ns),
        (Enforcer::Hcbs, Some(2_500_000))
    );
}

#[test]
fn servers_of_one_cpu_share_it_by_earliest_deadline_first() {
    let two = |first: &str, second: &str| {
        let on = |name: &str, budget: &str| {
            let (budget, period) = budget.split_once('/').unwrap();
            cell(name, &format!("cpus = [1]\n{}", reserved(budget, period)))
        };
        by_servers(&(on("a", first) + &on("b", second)), &with_servers(0))
    };
    let both = two("40ms/100ms", "20ms/50ms");
    assert!(both.is_admitted(), "{both:?}");
    // Each may come as late as its period lets it.
    assert_eq!(granted(&both)["a"].postponed_ns, 60 * MS);
    assert_eq!(granted(&both)["b"].postponed_ns, 30 * MS);
    // 9.2 ms in 10 ms, and a tick of 1 ms by which either may overrun.
    assert!(two("4500us/10ms", "4500us/10ms").is_admitted());
    let late = two("4600us/10ms", "4600us/10ms");
    assert!(refused(&late).why.contains("by a tick"), "{late:?}");
}

/// The kernel takes whole microseconds: budgets are rounded up to them, and periods down.
#[test]
fn what_is_written_is_what_is_analysed() {
    let on = |name: &str, budget: &str, period: &str, inside: &str| {
        cell(
            name,
            &format!("cpus = [1]\n{}{inside}", reserved(budget, period)),
        )
    };
    let two = |budget: &str, period: &str| {
        let both = on("a", budget, period, "") + &on("b", budget, period, "");
        by_servers(&both, &with_servers(0))
    };
    // A tick of 1 ms, which either may overrun by, leaves 9 ms of 10 ms.
    assert!(two("4500us", "10ms").is_admitted());
    let late = two("4500001ns", "10000010ns");
    assert!(refused(&late).why.contains("by a tick"), "{late:?}");
    let delay = |budget: &str, period: &str| {
        let own = on("a", budget, period, &task("1ms", "50ms"));
        granted(&by_servers(&own, &with_servers(0)))["a"].delay_ns
    };
    assert_eq!(delay("5ms", "8ms"), delay("4999001ns", "8000999ns"));
}

#[test]
fn the_kernel_counts_every_budget_on_all_cpus_alike() {
    let apart = |budget: &str| {
        let on = |name: &str, cpu: u32| {
            cell(
                name,
                &format!("cpus = [{cpu}]\n{}", reserved(budget, "100ms")),
            )
        };
        on("a", 0) + &on("b", 1)
    };
    assert!(by_servers(&apart("47ms"), &with_servers(0)).is_admitted());
    let admission = by_servers(&apart("48ms"), &with_servers(0));
    let why = admission.refusals.join("\n");
    assert!(
        why.contains("need 960 ms") && why.contains("950 ms are free"),
        "{why}"
    );
    // Half of it is somebody's.
    let admission = by_servers(&apart("30ms"), &with_servers(500_000));
    let why = admission.refusals.join("\n");
    assert!(why.contains("mission `b` holds 500 ms"), "{why}");
    let none = by_servers(
        &cell("a", &reserved("1ms", "100ms")),
        &with_servers(950_000),
    );
    assert!(
        refused(&none).why.contains("hcbs has no runtime left"),
        "{none:?}"
    );
}

#[test]
fn what_is_reserved_is_lost_to_threads_of_sched_deadline() {
    // Those of one cpu do not hinder servers of the other one, and the kernel reserves for these on both.
    let deadline = |budget: &str| {
        let own = format!(
            "class = \"deadline\"\ncpus = [1]\n{}",
            reserved(budget, "100ms")
        );
        admit(&mission(&cell("a", &own)), &with_servers(500_000), &[], 0)
    };
    assert!(deadline("44ms").is_admitted(), "{:?}", deadline("44ms"));
    let why = deadline("46ms").refusals.join("\n");
    assert!(why.contains("cpu.rt.max of the top group"), "{why}");
}

#[test]
fn others_on_its_cpu_are_refused() {
    let server = |holder: &str| HeldCell {
        cell: "spin".to_owned(),
        enforcer: Enforcer::Hcbs,
        holds: vec![Hold {
            threads: None,
            cpus: vec![1],
            budget_ns: Some(10 * MS),
            period_ns: Some(100 * MS),
            reservation_ns: Some((10 * MS, 100 * MS)),
            class: CellClass::Fifo,
            priorities: Some((40, 40)),
        }],
        tasks: Vec::new(),
        supervisor: holder.is_empty(),
        only_tasks: false,
    };
    let beside = |own: &str| {
        let neighbour = Neighbour {
            who: "mission `b`".to_owned(),
            short: "b".to_owned(),
            cells: vec![server("b")],
            supplies: Vec::new(),
            measured_cpus: Vec::new(),
            partition_cpus: Vec::new(),
            memory: HeldMemory::default(),
            memory_taken_bytes: 0,
        };
        let facts = Facts {
            beside: vec![neighbour],
            ..with_servers(100_000)
        };
        admit(&mission(own), &facts, &[], 0)
    };
    let own = cell("a", &format!("cpus = [1]\n{}", reserved("10ms", "100ms")));
    for (enforcer, fix) in [
        ("freezer", "or both the enforcer `hcbs`"),
        ("cpuset-only", "or both the enforcer `hcbs`"),
        ("deadline", "give them different cpus"),
    ] {
        let admission = beside(&format!("enforcer = \"{enforcer}\"\n{own}"));
        let why = &refused(&admission).why;
        assert!(
            why.contains("`spin` of mission `b`") && why.contains(fix),
            "{why}"
        );
    }
    assert!(beside(&format!("enforcer = \"hcbs\"\n{own}")).is_admitted());
    let elsewhere = own.replace("[1]", "[0]");
    assert!(beside(&format!("enforcer = \"freezer\"\n{elsewhere}")).is_admitted());
}

#[test]
fn a_kernel_without_it_is_told() {
    let admission = by_servers(&cell("a", &reserved("1ms", "100ms")), &facts());
    let why = &refused(&admission).why;
    assert!(
        why.contains("hcbs cannot hold it here: no cpu.rt.max"),
        "{why}"
    );
}
