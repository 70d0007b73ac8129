//! Ample budgets: those that the tasks of a cell cannot use up.

use super::beside::{beside, neighbour};
use super::*;
use crate::admit::neighbour::HeldCell;
use analysis::linux::Reaction;

fn facts() -> Facts {
    Facts {
        freezer: Ok(()),
        ..super::facts()
    }
}

fn under(enforcer: &str, cells: &str) -> Mission {
    mission(&format!("enforcer = \"{enforcer}\"\n{cells}"))
}

/// A control loop of 1.5 ms every 20 ms on cpu 0.
fn control(more: &str) -> String {
    cell(
        "control",
        &format!("cpus = [0]\n{more}{}", task("1500us", "20ms")),
    )
}

/// Its budget by its period, including the cost of holding it.
fn share(grant: &Grant) -> f64 {
    let cost = crate::admit::keeper::cost(grant.enforcer);
    (grant.budget_ns.unwrap() + cost) as f64 / grant.period_ns.unwrap() as f64
}

fn is_ample(grant: &Grant) -> bool {
    matches!(grant.basis, Basis::Ample { .. })
}

#[test]
fn a_control_loop_costs_little_more_than_it_uses() {
    // The supply of a budget has to allow for much more.
    for (enforcer, by_supply) in [("freezer", 0.29), ("rt-cgroup", 0.13)] {
        let reserved = |more: &str| {
            let admission = admit(&under(enforcer, &control(more)), &facts(), &[], 0);
            granted(&admission)["control"].clone()
        };
        let [plain, only] = ["", "only_tasks = true\n"].map(reserved);
        assert!(!is_ample(&plain) && share(&plain) > by_supply, "{plain:?}");
        assert!(is_ample(&only) && share(&only) < 0.075 * 1.3, "{only:?}");
        // A grant is asked for again when a mission is taken over, or becomes another one.
        let (budget, period) = (only.budget_ns.unwrap(), only.period_ns.unwrap());
        let again = format!(
            "only_tasks = true\nreservation = {{ budget = \"{budget}ns\", period = \"{period}ns\" }}\n"
        );
        assert_eq!(reserved(&again), only);
        // As if nothing held it, but for the cost of its keeper.
        let cost = 2 * crate::admit::keeper::cost(only.enforcer);
        assert_eq!(only.tasks[0].response_ns, Some(1_500_000 + cost));
    }
}

#[test]
fn a_longer_period_never_costs_another_cell_its_place() {
    let below = |period: &str| {
        cell(
            "below",
            &format!(
                "cpus = [0]\npriorities = {{ lowest = 70, highest = 70 }}\nreservation = {{ budget = \"2ms\", period = \"{period}\" }}\n"
            ),
        )
    };
    let period = |cells: &str| {
        let admission = admit(&under("freezer", cells), &facts(), &[], 0);
        granted(&admission)["control"].period_ns.unwrap()
    };
    let only = || control("only_tasks = true\npriorities = { lowest = 80, highest = 80 }\n");
    let alone = period(&only());
    let [slow, fast] = ["120ms", "40ms"].map(|each| period(&(only() + &below(each))));
    assert!(alone > slow && slow > fast, "{alone} {slow} {fast}");
    // Where no ample budget leaves the other one its own, its supply counts as ever. The one below has its own here
    // only above the other's short periods, and so has the supply.
    let close = below("9ms");
    let with = admit(&under("freezer", &(only() + &close)), &facts(), &[], 0);
    let without = only().replace("only_tasks = true\n", "");
    let supplied = admit(&under("freezer", &(without + &close)), &facts(), &[], 0);
    assert!(with.is_admitted() && supplied.is_admitted(), "{with:?}");
    assert!(!is_ample(&granted(&with)["control"]), "{with:?}");
}

#[test]
fn a_start_that_uses_its_budget_up_is_silent_for_less_than_a_rule_waits() {
    let rule = "[[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"150ms\"\ndo = \"restart\"\n";
    let watched = control("only_tasks = true\n") + rule;
    let admission = admit(&under("freezer", &watched), &facts(), &[], 0);
    let grant = &granted(&admission)["control"];
    assert!(is_ample(grant), "{grant:?}");
    assert!(grant.period_ns.unwrap() <= 150 * MS, "{grant:?}");
    // A start whose end is waited for has twenty periods.
    let waited = control("only_tasks = true\nready = \"first-job\"\nstart_timeout = \"4s\"\n");
    let admission = admit(&under("freezer", &waited), &facts(), &[], 0);
    let grant = &granted(&admission)["control"];
    assert!(is_ample(grant), "{grant:?}");
    assert!(grant.period_ns.unwrap() <= 200 * MS, "{grant:?}");
}

#[test]
fn the_same_budgets_are_not_decided_about_twice() {
    let tasks = |count: u64, wcet: &str| -> String {
        (0..count)
            .map(|at| {
                let period = 1_000 + 7 * at;
                format!(
                    "[[cell.task]]\nname = \"t{at}\"\nwcet = \"{wcet}\"\nperiod = \"{period}ms\"\n"
                )
            })
            .collect()
    };
    let with = |count: u64, wcet: &str| {
        let cells = cell(
            "many",
            &format!("cpus = [0]\nonly_tasks = true\n{}", tasks(count, wcet)),
        );
        under("rt-cgroup", &cells)
    };
    let decisions = |mission: &Mission| {
        let count = std::cell::Cell::new(0);
        let (admission, _) = crate::admit::ample::cheapest(mission, false, &|searched| {
            count.set(count.get() + 1);
            let none = SupervisorGrant::none(None);
            decide(
                mission,
                &facts(),
                &[],
                0,
                none,
                Enforcer::RtCgroup,
                searched,
            )
        });
        (admission.is_admitted(), count.get())
    };
    assert_eq!(decisions(&with(3, "1ms")), (true, 1));
    assert_eq!(decisions(&with(3, "900ms")), (false, 1));
}

#[test]
fn a_cell_has_a_priority_for_each_task() {
    let of = |count: u64| {
        let tasks = (0..count).map(|at| {
            format!("[[cell.task]]\nname = \"t{at}\"\nwcet = \"10us\"\nperiod = \"100ms\"\n")
        });
        let tasks: String = tasks.collect();
        let head = "cpus = [0]\nonly_tasks = true\npriorities = { lowest = 87, highest = 90 }\n";
        admit(
            &under("rt-cgroup", &cell("many", &(head.to_owned() + &tasks))),
            &facts(),
            &[],
            0,
        )
    };
    assert!(is_ample(&granted(&of(4))["many"]));
    let why = refused(&of(5)).why.clone();
    assert!(why.contains("5 tasks for the 4 priorities"), "{why}");
}

#[test]
fn what_is_said_of_a_cell_and_not_made_use_of_is_told() {
    let notes = |cells: &str| {
        admit(
            &mission(cells),
            &Facts {
                freezer: Err("no".to_owned()),
                rt_cgroup: Err("no".to_owned()),
                ..facts()
            },
            &[],
            0,
        )
        .notes
    };
    let named = control("only_tasks = true\n")
        .replace("name = \"t\"\n", "name = \"t\"\nthread = \"loop\"\n");
    let found = notes(&named);
    let is_told = |note: &String| {
        note.contains("`only_tasks` of cell `control` has no effect: deadline has no ample budgets")
    };
    assert!(found.iter().any(is_told), "{found:?}");
    assert!(
        !notes(&named.replace("only_tasks = true\n", ""))
            .iter()
            .any(is_told)
    );
}

#[test]
fn a_reservation_of_the_file_may_be_ample() {
    let with = |budget: &str, more: &str| {
        let reservation =
            format!("reservation = {{ budget = \"{budget}\", period = \"96ms\" }}\n{more}");
        admit(
            &under("rt-cgroup", &control(&reservation)),
            &facts(),
            &[],
            0,
        )
    };
    let only = "only_tasks = true\n";
    // Five jobs touch any 97 ms, a period and a tick.
    assert!(is_ample(&granted(&with("7500us", only))["control"]));
    let found = with("7400us", only);
    let why = &refused(&found).why;
    assert!(why.contains("not proven to be ample"), "{why}");
    // The kernel gets whole microseconds: five jobs of 1500.1 us take more than 7500.
    let longer = |budget: &str| {
        let cells = control(&format!(
            "{only}reservation = {{ budget = \"{budget}\", period = \"96ms\" }}\n"
        ));
        let cells = cells.replace("1500us", "1500100ns");
        let machine = Facts {
            machine: Machine {
                tick_hz: Some(250),
                ..machine()
            },
            ..facts()
        };
        admit(&under("rt-cgroup", &cells), &machine, &[], 0)
    };
    assert!(!longer("7500500ns").is_admitted());
    assert!(is_ample(&granted(&longer("7501us"))["control"]));
    // Where the file does not say that nothing else may run, that is assumed, and said.
    let unsaid = &granted(&with("7500us", ""))["control"];
    assert!(unsaid.basis.is_assumed(), "{unsaid:?}");
    let said = &granted(&with("7500us", only))["control"];
    assert!(is_ample(said) && !said.basis.is_assumed());
    // As ever where so much is supplied.
    let often = "reservation = { budget = \"6ms\", period = \"10ms\" }\n";
    let supplied = admit(&under("rt-cgroup", &control(often)), &facts(), &[], 0);
    let supplied = &granted(&supplied)["control"];
    assert!(matches!(supplied.basis, Basis::Tick { .. }), "{supplied:?}");
}

#[test]
fn nothing_is_assumed_of_a_cell_that_is_admitted_without() {
    let loose = cell("loose", &format!("cpus = [0]\n{}", task("5ms", "400ms")));
    let tight = cell("tight", &format!("cpus = [1]\n{}", task("1ms", "9ms")));
    let of = |cells: &str| admit(&mission(cells), &coarse(), &[], 0);
    let coarse_alone = granted(&of(
        &loose.replace("[[cell.task", "class = \"fifo\"\n[[cell.task")
    ))["loose"]
        .clone();
    assert!(!is_ample(&coarse_alone), "{coarse_alone:?}");
    let threaded = |cells: &str| cells.replace("name = \"t\"\n", "name = \"t\"\nthread = \"t\"\n");
    let both = granted(&of(&threaded(&(loose.clone() + &tight))));
    assert!(both["tight"].basis.is_assumed(), "{both:?}");
    assert!(!both["loose"].basis.is_assumed(), "{both:?}");
    // Another mechanism that need not assume it comes first, even at a higher cost.
    let admission = of(&tight);
    assert_eq!(admission.usual(), Some(Enforcer::Deadline));
    let offers = &admission.choice.as_ref().unwrap().offers;
    let groups = offers
        .iter()
        .find(|offer| offer.enforcer == Enforcer::RtCgroup);
    assert_eq!(
        groups.unwrap().why.as_deref(),
        Some("admits `tight` for its tasks only")
    );
}

/// With a tick of 250 Hz.
fn coarse() -> Facts {
    Facts {
        machine: Machine {
            tick_hz: Some(250),
            ..machine()
        },
        freezer: Err("no".to_owned()),
        ..facts()
    }
}

#[test]
fn a_job_longer_than_the_bound_allows_is_not_ample() {
    let tasks =
        "[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"10ms\"\ndeadline = \"30ms\"\n";
    let only = cell("late", &format!("cpus = [0]\nonly_tasks = true\n{tasks}"));
    let admission = admit(&under("freezer", &only), &facts(), &[], 0);
    // A deadline beyond the period is none that the claim is about.
    assert!(!is_ample(&granted(&admission)["late"]));
}

#[test]
fn what_rests_on_an_ample_budget_stands_beside_later_missions() {
    let first = neighbour(
        "a",
        &format!("enforcer = \"freezer\"\n{}", control("only_tasks = true\n")),
        &facts(),
    );
    assert!(first.cells[0].only_tasks);
    let json = serde_json::to_string(&first.cells[0]).unwrap();
    assert_eq!(
        serde_json::from_str::<HeldCell>(&json).unwrap(),
        first.cells[0]
    );
    let later = |wcet: &str| {
        let cells = cell(
            "b",
            &format!(
                "cpus = [0]\npriorities = {{ lowest = 95, highest = 95 }}\nreservation = {{ budget = \"{wcet}\", period = \"40ms\" }}\n"
            ),
        );
        let facts = Facts {
            freezer: Ok(()),
            ..beside(vec![first.clone()])
        };
        admit(&under("freezer", &cells), &facts, &[], 0)
    };
    let admitted = later("3ms");
    assert!(admitted.is_admitted(), "{admitted:?}");
    // Twice back to back they take all that the loop has until its deadline.
    let found = later("9ms");
    let why = &refused(&found).why;
    assert!(
        why.contains("`control` of mission `a` would be late beside it"),
        "{why}"
    );
}

#[test]
fn what_an_ample_budget_rests_on_is_told() {
    let basis = |facts: &Facts| {
        let admission = admit(
            &under("freezer", &control("only_tasks = true\n")),
            facts,
            &[],
            0,
        );
        granted(&admission)["control"].basis.clone()
    };
    let borrowed = basis(&facts());
    assert!(
        matches!(&borrowed, Basis::Ample { late_ns: Some(late), unmeasured: Some(_), assumed: false, .. } if *late == Reaction::MEASURED.late)
    );
    let measured = Facts {
        measured_reaction: Some(Reaction {
            late: 4 * MS,
            overrun: 5 * MS,
            noticed: true,
        }),
        ..facts()
    };
    let basis = basis(&measured);
    let Basis::Ample {
        late_ns: Some(late),
        unmeasured: None,
        spare_ns,
        assumed: false,
    } = basis
    else {
        panic!("{basis:?}");
    };
    // The search lets each job end at its deadline, so that one more falls into a period than response times let.
    assert!(late == 4 * MS && spare_ns < 2 * MS, "{spare_ns}");
    let json = serde_json::to_value(borrowed).unwrap();
    assert_eq!(json["kind"], "ample");
}

#[test]
fn by_price_an_ample_budget_is_taken() {
    let mission = mission(&control("only_tasks = true\n"));
    let admission = admit(&mission, &facts(), &[], 0);
    assert_eq!(
        admission.choice.as_ref().unwrap().chosen,
        Enforcer::RtCgroup
    );
    assert!(is_ample(&granted(&admission)["control"]));
}
