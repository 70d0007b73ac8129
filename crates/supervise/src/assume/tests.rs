//! Each assumption that is looked at is planted otherwise once, and found by its own rule and by no other.

use super::*;
use crate::threads::{Sign, Unmatched};

/// Of a task at FIFO 80 on cpu 1 of a cell with a budget.
fn proof() -> Proof {
    Proof {
        task: "control".to_owned(),
        bound_ns: 3_000_000,
        thread: Some("control".to_owned()),
        class: Some(Class::Fifo { priority: 80 }),
        lowest: Some(70),
        cpus: vec![1],
        enforcer: Enforcer::RtCgroup,
        budget: Some((3_000_000, 10_000_000)),
        spare_ns: Some(1_000_000),
        wcet_ns: 1_000_000,
        period_ns: 10_000_000,
        blocking_ns: 0,
        latency_ns: 50_000,
        kernel: Vec::new(),
        reserved: Some((1_000_000, 20_000_000)),
    }
}

fn seen(priority: u8) -> Seen {
    Seen {
        tid: 7,
        process: 7,
        name: "control".to_owned(),
        class: Some(Class::Fifo { priority }),
        asked: None,
        task: Some(0),
    }
}

fn outside(class: &str, cpu: u32) -> Vec<Unaccounted> {
    vec![Unaccounted {
        pid: 9,
        tid: 9,
        name: "x".to_owned(),
        class: class.to_owned(),
        cpus: vec![cpu],
    }]
}

/// All is as it was proved.
fn well<'a>(thread: &'a Match, seen: &'a Seen) -> Look<'a> {
    Look {
        thread,
        seen: Some(seen),
        class: seen.class.as_ref(),
        cpus: &[1],
        moved: None,
        answered: Answered::ByAgent,
        unheld: &[],
        stray: None,
        others_ns: 1_000_000,
        overran: Some(false),
        worst_ns: Some(3_000_000),
        locked: Locked::Yes,
        is_stopped: false,
        used_up: false,
        outside: &[],
        settings: &[],
        away_ns: 10_000_000,
        is_reserved: true,
    }
}

#[test]
fn every_deviation_is_found_by_its_rule_and_by_no_other() {
    let (proof, found, own) = (proof(), Ok((7, Sign::Name)), seen(80));
    let none = Err(Unmatched::Several {
        name: "control".to_owned(),
        threads: 2,
    });
    let (lower, clause) = (seen(79), ["it is otherwise".to_owned()]);
    let (above, equal) = (outside("FIFO 95", 1), outside("FIFO 80", 1));
    let deadline = outside("DEADLINE", 1);
    let well = well(&found, &own);
    assert_eq!(proof.deviation(&well), None);
    let planted = [
        (
            "supervisor",
            Look {
                away_ns: 1_500_000_000,
                ..well
            },
        ),
        (
            "supervisor",
            Look {
                is_reserved: false,
                ..well
            },
        ),
        (
            "machine",
            Look {
                settings: &clause,
                ..well
            },
        ),
        (
            "thread",
            Look {
                thread: &none,
                ..well
            },
        ),
        (
            "class",
            Look {
                class: lower.class.as_ref(),
                ..well
            },
        ),
        (
            "cpus",
            Look {
                cpus: &[0, 1],
                ..well
            },
        ),
        (
            "group",
            Look {
                moved: Some("moved"),
                ..well
            },
        ),
        (
            "calls",
            Look {
                answered: Answered::ByNobody,
                ..well
            },
        ),
        (
            "budget",
            Look {
                unheld: &clause,
                ..well
            },
        ),
        (
            "siblings",
            Look {
                stray: Some("another"),
                ..well
            },
        ),
        (
            "thread",
            Look {
                is_stopped: true,
                ..well
            },
        ),
        (
            "others",
            Look {
                used_up: true,
                ..well
            },
        ),
        (
            "others",
            Look {
                others_ns: 1_000_001,
                ..well
            },
        ),
        (
            "above",
            Look {
                outside: &above,
                ..well
            },
        ),
        (
            "above",
            Look {
                outside: &equal,
                ..well
            },
        ),
        (
            "above",
            Look {
                outside: &deadline,
                ..well
            },
        ),
        (
            "times",
            Look {
                overran: Some(true),
                ..well
            },
        ),
        (
            "responses",
            Look {
                worst_ns: Some(3_000_001),
                ..well
            },
        ),
        (
            "memory",
            Look {
                locked: Locked::NoMore,
                ..well
            },
        ),
    ];
    for (rule, look) in &planted {
        let found = proof.deviation(look).map(|deviation| deviation.rule);
        assert_eq!(found, Some(*rule), "{look:?}");
        // Nothing else would find it, were the rule left out.
        let others = RULES.iter().filter(|other| other.name != *rule);
        for other in others {
            let standing = other.check.standing(&proof, look);
            assert!(
                !matches!(standing, Standing::Deviates { .. }),
                "{}: {look:?}",
                other.name
            );
        }
    }
    for rule in RULES {
        let is_looked = matches!(rule.check, Check::Looked(_));
        let is_planted = planted.iter().any(|(name, _)| *name == rule.name);
        assert_eq!(is_looked, is_planted, "{}", rule.name);
    }
}

#[test]
fn what_is_no_deviation_is_none() {
    let (proof, found, own) = (proof(), Ok((7, Sign::Order)), seen(80));
    let well = well(&found, &own);
    let (lower, elsewhere) = (outside("FIFO 79", 1), outside("FIFO 99", 0));
    for look in [
        well,
        Look {
            answered: Answered::ByKernel,
            ..well
        },
        Look {
            outside: &lower,
            ..well
        },
        Look {
            outside: &elsewhere,
            ..well
        },
        Look {
            overran: None,
            worst_ns: None,
            ..well
        },
        Look {
            locked: Locked::Never,
            answered: Answered::ByFilter,
            ..well
        },
        // The kernel does not tell at this instant.
        Look {
            cpus: &[],
            seen: None,
            ..well
        },
    ] {
        assert_eq!(proof.deviation(&look), None, "{look:?}");
    }
}

#[test]
fn a_thread_of_sched_deadline_comes_after_no_priority() {
    let reserved = Proof {
        class: Some(Class::Deadline {
            runtime_ns: 1_000_000,
            deadline_ns: 10_000_000,
            period_ns: 10_000_000,
        }),
        lowest: None,
        ..proof()
    };
    let own = Seen {
        class: reserved.class.clone(),
        ..seen(80)
    };
    let (found, fifo, deadline) = (
        Ok((7, Sign::Name)),
        outside("FIFO 99", 1),
        outside("DEADLINE", 1),
    );
    let well = well(&found, &own);
    assert_eq!(
        reserved.deviation(&Look {
            outside: &fifo,
            ..well
        }),
        None
    );
    let beside = reserved.deviation(&Look {
        outside: &deadline,
        ..well
    });
    assert_eq!(beside.map(|found| found.rule), Some("above"));
}

#[test]
fn each_says_what_it_found_and_whether_it_is_checked() {
    let (proof, found, lower) = (proof(), Ok((7, Sign::Name)), seen(60));
    let look = Look {
        answered: Answered::ByNobody,
        ..well(&found, &lower)
    };
    // A deviation for good comes first.
    let deviation = proof.deviation(&look).unwrap();
    assert!(deviation.for_good && deviation.rule == "calls");
    let all = proof.seen(&look);
    let of = |name: &str| all.iter().find(|one| one.assumption == name).unwrap();
    assert_eq!(
        of("class").standing,
        Some(Standing::found(
            "thread `control` runs at FIFO 60, admitted at FIFO 80"
        ))
    );
    assert_eq!(of("class").says, "its thread runs at FIFO 80");
    assert!(matches!(
        of("blocking").standing,
        Some(Standing::NotChecked { .. })
    ));
    let made = proof.assumptions();
    assert_eq!(made.len(), all.len());
    let open = made.iter().filter(|one| one.standing.is_none()).count();
    let looked = RULES
        .iter()
        .filter(|rule| matches!(rule.check, Check::Looked(_)));
    assert_eq!(open, looked.count());
    // No kernel thread comes before it, so that nothing is assumed of one.
    assert!(made.iter().all(|one| one.assumption != "kernel"));
}

const SECOND_NS: i64 = 1_000_000_000;

fn deviation(rule: &'static str, for_good: bool) -> Option<Deviation> {
    Some(Deviation {
        rule,
        found: rule.to_owned(),
        for_good,
    })
}

fn changed(withdrawn: Option<&str>) -> Vec<Changed> {
    vec![Changed {
        task: 0,
        withdrawn: withdrawn.map(str::to_owned),
    }]
}

#[test]
fn a_bound_counts_once_everything_has_held_for_a_whole_second() {
    let mut bounds = Bounds::new(1);
    let state = |bounds: &Bounds| bounds.states().next().unwrap().clone();
    // It begins: its thread is not there yet.
    assert_eq!(bounds.look([deviation("thread", false)], true, 0), []);
    assert_eq!(bounds.look([None], true, SECOND_NS / 2), []);
    assert_eq!(bounds.look([None], true, SECOND_NS), []);
    assert_eq!(state(&bounds), State::Pending);
    assert_eq!(bounds.look([None], true, 3 * SECOND_NS / 2), []);
    assert_eq!(state(&bounds), State::InForce);
    // From the first deviation on it does not.
    let withdrawn = bounds.look([deviation("class", false)], true, 2 * SECOND_NS);
    assert_eq!(withdrawn, changed(Some("class")));
    assert_eq!(
        bounds.look([deviation("cpus", false)], false, 3 * SECOND_NS),
        []
    );
    assert_eq!(bounds.look([None], false, 4 * SECOND_NS), []);
    assert!(matches!(state(&bounds), State::Withdrawn { .. }));
    // Not a whole second.
    assert_eq!(
        bounds.look([deviation("class", false)], false, 4 * SECOND_NS + 1),
        []
    );
    assert_eq!(bounds.look([None], false, 5 * SECOND_NS), []);
    assert_eq!(bounds.look([None], false, 6 * SECOND_NS), changed(None));
    assert_eq!(state(&bounds), State::InForce);
}

#[test]
fn one_that_begins_waits_for_its_threads_alone() {
    let mut bounds = Bounds::new(3);
    let first = [deviation("thread", false), deviation("above", false), None];
    let told: Vec<usize> = bounds
        .look(first, true, 0)
        .iter()
        .map(|one| one.task)
        .collect();
    assert_eq!(told, [1]);
    let late = [deviation("thread", false), deviation("above", false), None];
    let told: Vec<usize> = bounds
        .look(late, false, 1)
        .iter()
        .map(|one| one.task)
        .collect();
    assert_eq!(told, [0]);
}

#[test]
fn jobs_that_are_late_for_the_beginning_of_their_cell_withdraw_nothing() {
    let mut bounds = Bounds::new(1);
    let late = || [deviation("responses", false)];
    assert_eq!(bounds.look([deviation("others", false)], true, 0), []);
    assert_eq!(bounds.look(late(), true, SECOND_NS / 2), []);
    // Everything has held since the look before.
    assert_eq!(bounds.look([None], true, SECOND_NS), []);
    let told = bounds.look(late(), true, 3 * SECOND_NS / 2);
    assert_eq!(told, changed(Some("responses")));
}

#[test]
fn what_cannot_be_undone_withdraws_a_bound_for_good() {
    let mut bounds = Bounds::new(1);
    assert_eq!(
        bounds.look([deviation("above", false)], false, 0),
        changed(Some("above"))
    );
    assert_eq!(
        bounds.look([deviation("calls", true)], false, 1),
        changed(Some("calls"))
    );
    for second in 1..5 {
        assert_eq!(bounds.look([None], false, second * SECOND_NS), []);
    }
    let last = bounds.states().next().unwrap();
    assert!(matches!(last, State::Withdrawn { for_good: true, .. }));
}
