//! Studies of servers, and their fixes.

use model::taskset::TaskSet;
use proptest::prelude::*;

use super::*;
use crate::{Outcome, Study, explanation, feasibility_table, study};
use text::style::Style;

/// A cell in a server: its name, kind, budget and period in ms, its further keys, and its tasks.
fn cell(
    name: &str,
    kind: &str,
    (budget, period): (u64, u64),
    more: &str,
    tasks: &[(u64, u64)],
) -> String {
    let mut text = format!(
        "[[cell]]\nname = \"{name}\"\norder = \"file\"\nserver = \"{kind}\"\n{more}\n\
         reservation = {{ budget = \"{budget}ms\", period = \"{period}ms\" }}\n"
    );
    for (place, (wcet, period)) in tasks.iter().enumerate() {
        text += &format!(
            "[[cell.task]]\nname = \"t{place}\"\nwcet = \"{wcet}ms\"\nperiod = \"{period}ms\"\n"
        );
    }
    text
}

fn set(top: &str, cells: &[String]) -> TaskSet {
    let text = format!("schema = 1\n{top}\n{}", cells.concat());
    TaskSet::parse("x", &text).expect("a task set")
}

fn bounds(study: &Study, cell: usize) -> Vec<Option<u64>> {
    let tasks = study.cells[cell].tasks.iter();
    tasks.map(|task| task.response_ns).collect()
}

/// The text without the breaks of its lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_cell_says_which_analysis_answered_and_each_server_for_itself() {
    for (policy, test) in [
        ("order = \"file\"", "response-time analysis"),
        ("policy = \"edf\"", "processor demand (QPA)"),
    ] {
        let low = cell(
            "low",
            "sporadic",
            (3, 10),
            "priority = 1",
            &[(2, 25), (4, 50)],
        );
        let low = low.replace("order = \"file\"", policy);
        let high = cell("high", "cbs", (2, 10), "", &[(1, 50)]);
        let set = set("", &[low, high]);
        let study = study(&set, true);
        assert_eq!(study.outcome(), Outcome::Holds);
        let server = study.cells[0].server.as_ref().expect("a server");
        // The other has 2 ms at the end of one period and 2 ms at the beginning of the next.
        assert_eq!(server.response_ns, Some(7_000_000));
        let shown = feasibility_table(&study, Style::default());
        for part in [
            format!("{test} in a sporadic server among the servers above it"),
            "server low: holds; it gets its whole budget within 7 ms of each refill (deadline 10 ms)"
                .to_owned(),
            "gets its budget by the end of its period of 10 ms".to_owned(),
            "in a sporadic server of 3 ms every 10 ms, priority 1 on cpu 0".to_owned(),
        ] {
            assert!(flat(&shown).contains(&part), "`{part}` is not in\n{shown}");
        }
        assert!(study.cells[0].room.is_some());
    }
}

/// Bounds computed independently: 13 and 24 apart, 11 and 22 with one period and common refills, 16 and 36 without
/// knowing the neighbour.
#[test]
fn bounds_of_tasks_are_those_of_the_reference() {
    let cells = |high_ms| {
        [
            cell(
                "high",
                "deferrable",
                (2, high_ms),
                "priority = 9",
                &[(1, 50)],
            ),
            cell(
                "low",
                "deferrable",
                (3, 10),
                "priority = 3",
                &[(2, 25), (4, 50)],
            ),
        ]
    };
    let of = |top: &str, cells: &[String], first: u64, second: u64| {
        let study = study(&set(top, cells), false);
        assert_eq!(
            bounds(&study, 1),
            [first, second].map(|ms| Some(ms * 1_000_000))
        );
        study
    };
    let apart = of("", &cells(7), 13, 24);
    let server = apart.cells[1].server.as_ref().expect("a server");
    assert_eq!(server.response_ns, Some(7_000_000));
    let shown = feasibility_table(&apart, Style::default());
    for part in [
        "in a deferrable server of 3 ms every 10 ms, priority 3 on cpu 0",
        "among the servers above it (Davis & Burns 2005), sufficient",
        "server low: holds; it gets its whole budget within 7 ms of each refill",
        "verdict every deadline holds",
    ] {
        assert!(flat(&shown).contains(part), "`{part}` is not in\n{shown}");
    }
    of("refill = \"together\"", &cells(10), 11, 22);
    let plain = cells(7).map(|cell| {
        cell.replace("server = \"deferrable\"\n", "")
            .replace("priority = 9\n", "")
            .replace("priority = 3\n", "")
    });
    let alone = of("", &plain, 16, 36);
    assert!(alone.cells[1].server.is_none());
}

#[test]
fn a_server_without_its_budget_says_who_takes_it() {
    let cells = [
        cell("high", "deferrable", (5, 7), "priority = 9", &[(1, 50)]),
        cell("low", "polling", (3, 10), "priority = 3", &[(2, 60)]),
        cell("last", "polling", (1, 100), "priority = 1", &[(1, 1000)]),
    ];
    let study = study(&set("", &cells), true);
    assert_eq!(study.outcome(), Outcome::Fails);
    let outcomes: Vec<Outcome> = study.cells.iter().map(|cell| cell.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Holds, Outcome::Undecided, Outcome::Undecided]
    );
    let server = study.cells[1].server.as_ref().expect("a server");
    assert_eq!(server.outcome, Outcome::Fails);
    assert_eq!(study.cells[1].tasks[0].outcome, Outcome::Undecided);
    let shown = explanation(&study, Style::default());
    for part in [
        "why     low: its server can lack part of its budget 10 ms after a refill",
        "3 ms short",
        "demand  3 ms: 1 budget of low",
        "demand  10 ms: 2 budgets of high",
        "fix     budget of high -1.5 ms (5 ms -> 3.5 ms)",
    ] {
        assert!(
            flat(&shown).contains(&flat(part)),
            "`{part}` is not in\n{shown}"
        );
    }
    let shown = feasibility_table(&study, Style::default());
    assert!(shown.contains("the server of cell low"), "{shown}");
}

/// A cell on its own with one task: wcet, period and deadline in ms.
fn alone(kind: &str, (budget, period): (u64, u64), (wcet, every, due): (u64, u64, u64)) -> Study {
    let priority = if kind == "cbs" { "" } else { "priority = 1" };
    let text = cell("c", kind, (budget, period), priority, &[(wcet, every)]);
    let text = text + &format!("deadline = \"{due}ms\"\n");
    study(&set("", &[text]), true)
}

#[test]
fn a_sufficient_no_is_not_a_proof() {
    // One job of 1 ms in any 11 ms never waits for a refill of 1 ms every 10 ms.
    for (kind, outcome) in [
        ("deferrable", Outcome::Holds),
        ("sporadic", Outcome::Holds),
        ("cbs", Outcome::Undecided),
        // The budget is gone before the job arrives.
        ("polling", Outcome::Fails),
        ("periodic", Outcome::Fails),
    ] {
        let study = alone(kind, (1, 10), (1, 12, 5));
        assert_eq!(study.outcome(), outcome, "{kind}");
        if outcome == Outcome::Holds {
            assert_eq!(study.cells[0].room, None, "{kind}");
        }
    }
    for kind in ["deferrable", "sporadic", "cbs"] {
        // Two jobs in one period: a miss is likely, but not proved by the worst supply alone.
        let open = alone(kind, (2, 10), (2, 11, 5));
        assert_eq!(open.outcome(), Outcome::Undecided, "{kind}");
        let server = open.cells[0].server.as_ref().expect("a server");
        let witness = server.doubt.as_ref().expect("a witness");
        assert!(witness.demand > witness.supply);
        let shown = explanation(&open, Style::default());
        assert!(
            flat(&shown).contains("why c: task t0 is not shown to meet its deadline"),
            "{shown}"
        );
        assert!(!flat(&shown).contains("can miss its deadline"), "{shown}");
        // Proofs: late on a whole cpu, and more work than the budget in the long run.
        let priority = if kind == "cbs" { "" } else { "priority = 1" };
        let two = cell("c", kind, (9, 10), priority, &[(3, 20), (3, 20)]);
        let two = study(&set("", &[two + "deadline = \"5ms\"\n"]), false);
        assert_eq!(two.outcome(), Outcome::Fails, "{kind}");
        assert_eq!(two.cells[0].tasks[1].outcome, Outcome::Fails, "{kind}");
        assert_eq!(
            alone(kind, (2, 10), (3, 14, 14)).outcome(),
            Outcome::Fails,
            "{kind}"
        );
    }
}

#[test]
fn a_server_below_two_deferrable_ones_is_not_proved_to_be_short() {
    let cells = |kind| {
        [
            cell("a", "deferrable", (1, 10), "priority = 9", &[(1, 50)]),
            cell("b", kind, (1, 10), "priority = 8", &[(1, 50)]),
            cell("c", "polling", (2, 5), "priority = 7", &[(1, 50)]),
        ]
    };
    let server = |kind| {
        let study = study(&set("", &cells(kind)), false);
        study.cells[2].server.as_ref().map(|server| server.outcome)
    };
    assert_eq!(server("polling"), Some(Outcome::Holds));
    assert_eq!(server("deferrable"), Some(Outcome::Undecided));
}

#[test]
fn cbs_servers_share_a_cpu_up_to_the_last_ns() {
    let cbs = |name: &str, budget| cell(name, "cbs", (budget, 30), "", &[(1, 1000)]);
    let full = set("", &[cbs("a", 10), cbs("b", 10), cbs("c", 10)]);
    assert_eq!(study(&full, false).outcome(), Outcome::Holds);
    let over = set("", &[cbs("a", 10), cbs("b", 10), cbs("c", 11)]);
    let study = study(&over, true);
    assert_eq!(study.outcome(), Outcome::Fails);
    let server = study.cells[0].server.as_ref().expect("a server");
    assert!(
        server.shortage.is_some() && !server.fixes.is_empty(),
        "{server:?}"
    );
}

#[test]
fn servers_on_different_cpus_do_not_meet() {
    let on = |name: &str, cpu| {
        cell(
            name,
            "deferrable",
            (6, 10),
            &format!("cpu = {cpu}\npriority = {cpu}"),
            &[(1, 50)],
        )
    };
    let apart = study(&set("cpus = 3", &[on("a", 0), on("b", 1)]), false);
    assert_eq!(apart.outcome(), Outcome::Holds);
    assert_eq!(
        apart.together.expect("there are cpus").placement,
        Some(vec![vec![0], vec![1]])
    );
    let plain = cell("c", "cbs", (1, 2), "", &[(1, 50)]).replace("server = \"cbs\"\n", "");
    let two = study(
        &set("cpus = 2", &[on("a", 0), on("b", 1), plain.clone()]),
        false,
    );
    assert_eq!(
        two.outcome(),
        Outcome::Fails,
        "no cpu is left for the third"
    );
    let three = study(&set("cpus = 3", &[on("a", 0), on("b", 1), plain]), false);
    assert_eq!(
        three.together.expect("there are cpus").placement,
        Some(vec![vec![0], vec![1], vec![2]])
    );
}

/// Kinds with fixed priorities that are refilled periodically.
const KINDS: [&str; 3] = ["deferrable", "polling", "periodic"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Davis and Burns with one period and common refills is the explicit-deadline model with the budgets above and the
    /// server's own as its deadline.
    #[test]
    fn refilled_together_is_the_explicit_deadline_model(
        budgets in prop::collection::vec(1u64..5, 1..4),
        spare in 0u64..10,
        tasks in prop::collection::vec((1u64..4, 10u64..60), 1..4),
    ) {
        let period = budgets.iter().sum::<u64>() + spare;
        let cells: Vec<String> = budgets.iter().enumerate().map(|(place, &budget)| {
            let priority = format!("priority = {}", 10 - place);
            cell(&format!("c{place}"), "deferrable", (budget, period), &priority, &tasks)
        }).collect();
        let together = study(&set("refill = \"together\"", &cells), false);
        let mut above = 0;
        for (place, &budget) in budgets.iter().enumerate() {
            above += budget;
            let plain = cells[place]
                .replace("server = \"deferrable\"\n", "")
                .replace(&format!("priority = {}\n", 10 - place), "")
                .replace(&format!("period = \"{period}ms\" }}"), &format!("period = \"{period}ms\", deadline = \"{above}ms\" }}"));
            let model = study(&set("", &[plain]), false);
            let server = together.cells[place].server.as_ref().expect("a server");
            prop_assert_eq!(server.response_ns, Some(above * 1_000_000));
            if place > 0 || together.cells[place].outcome == model.cells[0].outcome {
                prop_assert_eq!(bounds(&together, place), bounds(&model, 0));
            }
            // The tasks of a cell may never use up its budget, so that a no is no proof here, and a yes can be better.
            if model.cells[0].outcome == Outcome::Holds {
                prop_assert_eq!(together.cells[place].outcome, Outcome::Holds);
            }
        }
    }

    /// Every fix of a server or of a task inside is applied, and then the cell holds and no other fails that held.
    #[test]
    fn what_fixes_a_server_fixes_it(
        servers in prop::collection::vec((1u64..9, 0u64..20, 0usize..3), 2..4),
        task in (1u64..5, 20u64..200),
    ) {
        let cells: Vec<String> = servers.iter().enumerate().map(|(place, &(budget, spare, kind))| {
            let more = format!("priority = {}", 10 * (servers.len() - place));
            cell(&format!("c{place}"), KINDS[kind], (budget, budget + spare), &more, &[task])
        }).collect();
        let before_set = set("cpus = 2", &cells);
        let before = study(&before_set, true);
        for (place, found) in before.cells.iter().enumerate() {
            let fixes = found.server.iter().flat_map(|server| &server.fixes);
            let sets = fixes.map(|fix| applied(&before_set, fix));
            let inside = found.fixes.iter().map(|fix| {
                let mut set = before_set.clone();
                set.cells[place] = fix.applied(&set.cells[place]);
                set
            });
            for changed in sets.chain(inside) {
                let after = study(&changed, false);
                prop_assert_eq!(after.cells[place].outcome, Outcome::Holds, "{:?}", found);
                for (old, new) in before.cells.iter().zip(&after.cells) {
                    prop_assert!(old.outcome != Outcome::Holds || new.outcome == Outcome::Holds);
                }
            }
        }
    }
}

fn applied(set: &TaskSet, fix: &ServerFix) -> TaskSet {
    let mut set = set.clone();
    let (ServerFix::Budget { cell, .. }
    | ServerFix::Period { cell, .. }
    | ServerFix::Deadline { cell, .. }
    | ServerFix::Priority { cell, .. }
    | ServerFix::Cpu { cell, .. }) = fix;
    let changed = set
        .cells
        .iter_mut()
        .find(|other| other.name == *cell)
        .expect("the cell is there");
    let reservation = changed.reservation.as_mut().expect("a reservation");
    let server = changed.server.as_mut().expect("a server");
    let time = |ns: &i64| model::Duration::from_ns(*ns);
    match fix {
        ServerFix::Budget { to_ns, .. } => reservation.budget = time(to_ns),
        ServerFix::Deadline { to_ns, .. } => reservation.deadline = time(to_ns),
        ServerFix::Period { to_ns, .. } => {
            reservation.period = time(to_ns);
            reservation.deadline = time(to_ns);
        }
        ServerFix::Priority { to, .. } => server.priority = Some(*to),
        ServerFix::Cpu { to, .. } => server.cpu = Some(*to),
    }
    // Where the file says no cpu, the first is meant; with several it has to.
    for cell in &mut set.cells {
        if let Some(server) = &mut cell.server {
            server.cpu = Some(server.on_cpu());
        }
    }
    set
}
