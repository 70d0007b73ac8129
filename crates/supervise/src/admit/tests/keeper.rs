//! The cost of holding cells with the freezer for the others on their cpu.

use super::beside::{beside, neighbour};
use super::*;
use analysis::Supply;
use analysis::linux::Reaction;
use record::supply::{MeasuredReaction, Spread};

fn facts() -> Facts {
    Facts {
        freezer: Ok(()),
        ..super::facts()
    }
}

/// A mission of which the freezer holds so many cells of cpu 0, as the ledger would have them.
fn held(count: usize) -> Facts {
    let cells: Vec<String> = (0..count)
        .map(|at| {
            let reservation = "reservation = { budget = \"1ms\", period = \"50ms\" }\n";
            cell(&format!("c{at}"), &format!("cpus = [0]\n{reservation}"))
        })
        .collect();
    let text = format!("enforcer = \"freezer\"\n{}", cells.concat());
    beside(vec![neighbour("f", &text, &facts())])
}

#[test]
fn each_cell_of_the_cpu_costs_those_below_it_something_in_every_period() {
    let own = mission(&cell(
        "below",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"10ms\", period = \"100ms\" }\n",
    ));
    let postponed = |facts: &Facts| {
        let admission = admit(&own, facts, &[], 0);
        assert!(admission.is_admitted(), "{admission:?}");
        granted(&admission)["below"].postponed_ns
    };
    let by_groups = |count: usize| {
        let mut facts = held(count);
        for cell in &mut facts.beside[0].cells {
            cell.enforcer = Enforcer::RtCgroup;
        }
        facts
    };
    // Held in a window of the budget and the time before it: at the beginning of a period, and at the next. And it lets a cell run on
    // for less than the tick of a ms does.
    for count in [1, 4] {
        let by_tick = postponed(&by_groups(count)) - count as u64 * MS;
        let each = 2 * Reaction::COST + Reaction::MEASURED.overrun;
        assert_eq!(
            postponed(&held(count)),
            by_tick + count as u64 * each,
            "{count}"
        );
    }
}

#[test]
fn what_it_costs_counts_within_the_kernels_limit() {
    let own = mission(&cell(
        "below",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"10ms\", period = \"100ms\" }\n",
    ));
    let with = |limit_ns: u64| {
        let mut facts = held(8);
        facts.rt_cgroup.as_mut().unwrap().limit_ns = Some(limit_ns);
        admit(&own, &facts, &[], 0).is_admitted()
    };
    // 21 charges of 8 cells and an overrun of each, 11 charges and a tick of its own, and 42 ms of the thread.
    let limit = (100..500).find(|ms| with(ms * MS)).unwrap();
    let cells = 8 * (21 * MS + Reaction::MEASURED.overrun);
    let all = cells + (11 * 10 + 1) * MS + 8 * 21 * Reaction::COST;
    assert_eq!(limit, all.div_ceil(MS));
}

fn by_freezer(cells: &str) -> Admission {
    let mission = mission(&format!("enforcer = \"freezer\"\n{cells}"));
    admit(&mission, &facts(), &[], 0)
}

#[test]
fn a_cell_gets_the_least_budget_with_what_it_costs_to_hold_it() {
    let admission = by_freezer(&cell("control", &task("1500us", "20ms")));
    let grant = granted(&admission)["control"].clone();
    assert_eq!(grant.enforcer, Enforcer::Freezer);
    assert!(matches!(grant.basis, Basis::Reaction { .. }), "{grant:?}");
    assert!(grant.tasks[0].response_ns.unwrap() <= 20 * MS);
    // One grain less of any period that is tried would not do, or cost no less.
    let own = (
        grant.budget_ns.unwrap() + Reaction::COST,
        grant.period_ns.unwrap(),
    );
    let tasks = [analysis::Task::new(1_500_000 + 50_000, 20 * MS)];
    for period in analysis::linux::reservation_periods(&tasks) {
        let most = (own.0 * period / own.1).saturating_sub(Reaction::COST);
        let less = most.saturating_sub(analysis::linux::BUDGET_GRID_NS);
        let supply = analysis::linux::FreezerSupply::new(less.max(1), period, Reaction::MEASURED);
        let holds = supply.is_ok_and(|supply| {
            let policy = analysis::inside::Policy::FixedPriority;
            analysis::inside::holds(&tasks, policy, &supply.behind) == Ok(true)
        });
        assert!(!holds, "{less} every {period}");
    }
}

#[test]
fn groups_that_have_nothing_left_are_no_matter_to_it() {
    let mut facts = facts();
    facts.rt_cgroup.as_mut().unwrap().free_us = 0;
    let mission = mission(&format!(
        "enforcer = \"freezer\"\n{}",
        cell("c", &task("1500us", "20ms"))
    ));
    let admission = admit(&mission, &facts, &[], 0);
    assert!(admission.is_admitted(), "{admission:?}");
}

#[test]
fn what_less_urgent_cells_count_on_is_told() {
    let says = |admission: &Admission| {
        let mut notes = admission.notes.iter();
        notes.any(|note| note.contains("run on for up to 430 us"))
    };
    let own = mission(&cell(
        "c",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"5ms\", period = \"50ms\" }\n",
    ));
    assert!(says(&admit(&own, &held(1), &[], 0)));
    assert!(!says(&admit(&own, &facts(), &[], 0)));
}

#[test]
fn what_the_freezer_cannot_hold_is_refused() {
    let reserved = "reservation = { budget = \"5ms\", period = \"50ms\" }\n";
    let why = |more: &str| {
        refused(&by_freezer(&cell("c", &format!("{more}{reserved}"))))
            .why
            .clone()
    };
    assert!(why("cpus = [0, 1]\n").contains("on one cpu only"));
    let above = why("priorities = { lowest = 97, highest = 97 }\n");
    assert!(above.starts_with("it has the priority 97"), "{above}");
    assert!(above.contains("at most 96 is allowed"), "{above}");
    assert!(
        by_freezer(&cell(
            "c",
            &format!("priorities = {{ lowest = 96, highest = 96 }}\n{reserved}")
        ))
        .is_admitted()
    );
    let long = "reservation = { budget = \"5ms\", period = \"2000s\" }\n";
    let admission = by_freezer(&cell("c", long));
    assert!(refused(&admission).why.contains("period"), "{admission:?}");
    // On a kernel without it.
    let mission = mission(&format!("enforcer = \"freezer\"\n{}", cell("c", reserved)));
    let none = Facts {
        freezer: Err("cgroup v2 is not mounted".to_owned()),
        ..facts()
    };
    let admission = admit(&mission, &none, &[], 0);
    assert!(
        refused(&admission)
            .why
            .contains("freezer cannot hold it here: cgroup v2")
    );
}

#[test]
fn nobody_who_is_held_shares_a_cpu_with_one_who_is_not() {
    let text =
        format!("enforcer = \"cpuset-only\"\n{}", cell("free", "cpus = [0]\n").replace(
        "cpus = [0]\n",
        "cpus = [0]\npriorities = { lowest = 10, highest = 10 }\nreservation = { budget = \"1ms\", period = \"50ms\" }\n",
    ));
    let own = mission(&text);
    let admission = admit(&own, &held(1), &[], 0);
    let why = &refused(&admission).why;
    assert!(
        why.contains("`freezer` holds") && why.contains("this cell has no enforced budget"),
        "{why}"
    );
}

/// A budget of `budget_ns` every 10 ms that was measured here, with the freezer as exact as this at the worst.
pub(super) fn measured_by_freezer(budget_ns: Ns, late_ns: Ns, overrun_ns: Ns) -> MeasuredSupply {
    let spread = |most_ns| Spread {
        count: 1,
        most_ns,
        ..Spread::default()
    };
    let mut supply = measured(8 * MS, machine());
    supply.held.enforcer = Enforcer::Freezer;
    supply.held.budget_ns = budget_ns;
    supply.points[0] = SupplyPoint {
        supplied: budget_ns,
        per: 10 * MS,
        delay_ns: 8 * MS,
    };
    supply.by_reaction = Some(Promise {
        supplied: budget_ns,
        per: 10 * MS,
        delay_ns: 8 * MS,
        kept: Kept::Held,
    });
    supply.reaction = Some(MeasuredReaction {
        late: spread(late_ns),
        overruns: spread(overrun_ns),
        noticed: true,
        cost: None,
        textbook_gap_ns: 0,
        longest_gap_ns: None,
    });
    supply
}

/// The grant to a cell of 3 ms every 10 ms with these measured, or why it is refused.
fn with(supplies: &[MeasuredSupply], facts: &Facts) -> Result<Grant, String> {
    let cells = cell(
        "c",
        &("reservation = { budget = \"3ms\", period = \"10ms\" }\n".to_owned()
            + &task("2ms", "60ms")),
    );
    let mission = mission(&format!("enforcer = \"freezer\"\n{cells}"));
    let admission = admit(&mission, facts, supplies, 0);
    match &admission.cells[0] {
        Outcome::Granted(grant) => Ok(grant.clone()),
        Outcome::Refused(refused) => Err(refused.why.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_measured_of_the_reaction_takes_the_place_of_what_was_published() {
    let us = |us: Ns| us * 1_000;
    let bound = |late, overrun| {
        let reaction = Reaction {
            late,
            overrun,
            noticed: true,
        };
        let supply = analysis::linux::FreezerSupply::new(3 * MS, 10 * MS, reaction).unwrap();
        (supply.behind.rate(), supply.behind.delay())
    };
    let published = with(&[], &facts()).unwrap();
    assert!(
        matches!(&published.basis, Basis::Reaction { unmeasured: Some(why), .. } if why.contains("bench supply")),
        "{published:?}"
    );
    // Another budget tells how exact the freezer is here.
    let exact = |late_ns, overrun_ns| Exactness {
        late_ns,
        overrun_ns,
    };
    let other = with(&[measured_by_freezer(MS, us(50), us(200))], &facts()).unwrap();
    let basis = Basis::Reaction {
        reaction: exact(us(50), us(200)),
        unmeasured: None,
    };
    assert_eq!(other.basis, basis);
    let (rate, delay) = bound(us(50), us(200));
    assert_eq!(
        (other.rate, other.delay_ns),
        (rate.0 as f64 / rate.1 as f64, delay)
    );
    assert!(other.delay_ns < published.delay_ns);
    // The worst of all that was measured counts, for the very budget too, and the proof for one beside others.
    let both = [
        measured_by_freezer(3 * MS, us(40), us(90)),
        measured_by_freezer(MS, us(300), us(20)),
    ];
    let own = with(&both, &facts()).unwrap();
    let basis = Basis::Measured {
        to_ns: 1_000 * MS,
        reaction: Some(exact(us(300), us(300))),
    };
    assert_eq!(own.basis, basis);
    let (rate, delay) = bound(us(300), us(300));
    assert!(own.rate <= rate.0 as f64 / rate.1 as f64);
    // Rounded up where the lines are put together.
    let beyond = own.delay_ns.unwrap() - delay.unwrap();
    assert!(beyond < 10, "{own:?}");
    // Where it was worse than the rule says, that counts.
    let mut slow = measured_by_freezer(3 * MS, us(40), us(90));
    slow.points[0].delay_ns = 40 * MS;
    let slow = with(&[slow], &facts()).unwrap();
    let beyond = slow.delay_ns.unwrap() - (40 * MS + slow.postponed_ns);
    assert!(beyond < 10, "{slow:?}");
    // Of another machine it tells nothing.
    let mut elsewhere = measured_by_freezer(MS, us(50), us(200));
    elsewhere.machine.kernel_release = Some("5.10.0".to_owned());
    assert_eq!(with(&[elsewhere], &facts()).unwrap(), published);
}

#[test]
fn nothing_is_certain_of_a_budget_that_the_measured_lateness_takes() {
    let why = with(&[measured_by_freezer(MS, 3 * MS, 3 * MS)], &facts()).unwrap_err();
    assert!(
        why.contains("none of 3 ms every 10 ms is guaranteed") && why.contains("3 ms late"),
        "{why}"
    );
}

#[test]
fn what_was_measured_beside_this_mission_counts_too() {
    let mut facts = held(1);
    facts.freezer = Ok(());
    facts.beside[0].supplies = vec![measured_by_freezer(MS, 70_000, 80_000)];
    let grant = with(&[], &facts).unwrap();
    assert!(
        matches!(grant.basis, Basis::Reaction { reaction, .. } if reaction.overrun_ns == 80_000)
    );
}

#[test]
fn a_budget_that_is_held_only_roughly_is_told() {
    let says = |budget: &str, period: &str| {
        let cell = cell(
            "c",
            &format!(
                "cpus = [0]\nclass = \"fifo\"\nreservation = {{ budget = \"{budget}\", period = \"{period}\" }}\n"
            ),
        );
        let mission = mission(&format!("enforcer = \"rt-cgroup\"\n{cell}"));
        let admission = admit(&mission, &facts(), &[], 0);
        assert!(admission.is_admitted(), "{admission:?}");
        (admission.notes.iter()).any(|note| note.contains("1.7 times as much"))
    };
    assert!(says("1us", "10us"));
    assert!(!says("5ms", "50ms"));
}
