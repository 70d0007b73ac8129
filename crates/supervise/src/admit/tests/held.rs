//! Running programs that are held without a mission: their own admission, and their cost to later missions.

use analysis::Supply as _;

use super::beside::neighbour;
use super::keeper::measured_by_freezer;
use super::*;
use analysis::linux::Reaction;

/// A machine with the freezer.
fn facts() -> Facts {
    Facts {
        freezer: Ok(()),
        ..super::facts()
    }
}

fn beside(others: Vec<Neighbour>) -> Facts {
    Facts {
        beside: others,
        ..facts()
    }
}

/// So much every 10 ms on cpu 0, of FIFO threads where there is a priority.
fn wanted(budget_ms: u64, priority: Option<u8>) -> HeldCell {
    let budget = (budget_ms * MS, 10 * MS);
    HeldCell {
        cell: "web".to_owned(),
        enforcer: Enforcer::Freezer,
        holds: vec![Hold {
            threads: None,
            cpus: vec![0],
            budget_ns: Some(budget.0),
            period_ns: Some(budget.1),
            reservation_ns: Some(budget),
            class: match priority {
                Some(_) => CellClass::Fifo,
                None => CellClass::Other,
            },
            priorities: priority.map(|own| (own, own)),
        }],
        tasks: Vec::new(),
        supervisor: false,
        only_tasks: false,
    }
}

/// The same with another hold.
fn with(cell: &HeldCell, change: impl FnOnce(&mut Hold)) -> HeldCell {
    let mut cell = cell.clone();
    change(&mut cell.holds[0]);
    cell
}

/// Where its one hold has room.
fn room_for(wanted: &HeldCell, cpus: &[u32], facts: &Facts) -> Result<Room, String> {
    Ok(super::room_for(wanted, cpus, facts)?.remove(0))
}

/// It as the ledger tells of it.
fn held(cell: HeldCell) -> Neighbour {
    Neighbour {
        who: "the hold of `web`".to_owned(),
        short: HELD.to_owned(),
        cells: vec![cell],
        supplies: Vec::new(),
        measured_cpus: Vec::new(),
        partition_cpus: Vec::new(),
        memory: HeldMemory::default(),
        memory_taken_bytes: 0,
    }
}

/// A mission that reserves so much of every 100 ms of cpu 0 with this priority.
fn reserving(budget_ms: u64, priority: u8) -> String {
    let reservation = format!("reservation = {{ budget = \"{budget_ms}ms\", period = \"100ms\" }}");
    cell(
        "own",
        &format!(
            "class = \"fifo\"\ncpus = [0]\npriorities = {{ lowest = {priority}, highest = {priority} }}\n{reservation}\n"
        ),
    )
}

#[test]
fn threads_of_class_fifo_are_sure_of_what_the_freezer_supplies() {
    let room = room_for(&wanted(3, Some(60)), &[], &facts()).unwrap();
    assert_eq!(room.cpu, 0);
    assert!(matches!(room.basis, Basis::Reaction { .. }), "{room:?}");
    let supply = analysis::linux::FreezerSupply::new(3 * MS, 10 * MS, Reaction::MEASURED);
    let behind = supply.unwrap().behind;
    let (part, whole) = behind.rate();
    assert_eq!(
        (room.rate, room.delay_ns),
        (part as f64 / whole as f64, behind.delay())
    );
    // Of ordinary ones nothing is sure, and nothing of it is charged.
    let capped = room_for(&wanted(10, None), &[], &facts()).unwrap();
    assert_eq!((capped.rate, capped.delay_ns), (1.0, None));
    assert!(room_for(&wanted(10, Some(60)), &[], &facts()).is_err());
}

#[test]
fn it_takes_the_first_cpu_on_which_there_is_room() {
    let mission = neighbour("m", &reserving(70, 50), &facts());
    let facts = beside(vec![mission]);
    let why = room_for(&wanted(3, Some(40)), &[], &facts).unwrap_err();
    assert!(why.contains("ms"), "{why}");
    let anywhere = with(&wanted(3, Some(40)), |hold| hold.cpus.clear());
    assert_eq!(room_for(&anywhere, &[0, 1], &facts).unwrap().cpu, 1);
    assert!(room_for(&anywhere, &[0], &facts).is_err());
    let mut measured = facts;
    measured.beside[0].measured_cpus = vec![0, 1];
    let why = room_for(&wanted(3, None), &[], &measured).unwrap_err();
    assert_eq!(why, "mission `m` is measuring on cpu 0");
    assert!(room_for(&anywhere, &[0, 1], &measured).is_err());
}

#[test]
fn it_breaks_no_guarantee_and_takes_nobodys_priority() {
    let tight = cell(
        "own",
        &format!(
            "class = \"fifo\"\ncpus = [0]\npriorities = {{ lowest = 50, highest = 50 }}\n{}",
            task("5ms", "100ms")
        ),
    );
    let facts = beside(vec![neighbour("m", &tight, &facts())]);
    let above = room_for(&wanted(8, Some(60)), &[], &facts).unwrap_err();
    assert!(above.contains("`own` of mission `m`"), "{above}");
    let same = room_for(&wanted(1, Some(50)), &[], &facts).unwrap_err();
    assert!(same.contains("already has the priority 50"), "{same}");
    // Ordinary threads come after it, but not those who hold them.
    assert!(room_for(&wanted(8, None), &[], &facts).is_ok());
}

#[test]
fn what_a_mission_beside_it_has_measured_here_counts_for_it_and_for_them() {
    let measured = |late: Ns, overrun: Ns| {
        let supply = measured_by_freezer(2 * MS, late, overrun);
        Neighbour {
            supplies: vec![supply],
            ..neighbour("m", &reserving(60, 50), &facts())
        }
    };
    let with = |late, overrun| beside(vec![measured(late, overrun)]);
    let wanted = self::with(&wanted(5, Some(60)), |hold| {
        hold.budget_ns = Some(5 * MS);
        hold.period_ns = Some(50 * MS);
        hold.reservation_ns = Some((5 * MS, 50 * MS));
    });
    let better = room_for(&wanted, &[], &with(20_000, 30_000)).unwrap();
    let basis = |late_ns, overrun_ns| Basis::Reaction {
        reaction: Exactness {
            late_ns,
            overrun_ns,
        },
        unmeasured: None,
    };
    assert_eq!(better.basis, basis(20_000, 30_000));
    // A look that came later than its budget is long leaves nothing certain of it.
    let late = room_for(&wanted, &[], &with(6 * MS, 6 * MS)).unwrap_err();
    assert!(late.contains("up to 6 ms late"), "{late}");
    // Its overrun takes from those below it.
    let long = room_for(&wanted, &[], &with(20_000, 30 * MS)).unwrap_err();
    assert!(
        long.contains("it would break the guarantee of `own` of mission `m`"),
        "{long}"
    );
}

#[test]
fn missions_that_come_later_count_it() {
    let own = mission(&reserving(60, 50));
    let admitted = |held: HeldCell| {
        let facts = beside(vec![self::held(held)]);
        admit(&own, &facts, &[], 0)
    };
    assert!(!admitted(wanted(4, Some(60))).is_admitted());
    let beside_fifo = admitted(wanted(1, Some(60)));
    assert!(beside_fifo.is_admitted(), "{beside_fifo:?}");
    let alone = admit(&own, &facts(), &[], 0);
    let behind = |admission: &Admission| granted(admission)["own"].postponed_ns;
    assert!(behind(&beside_fifo) > behind(&alone) + MS);
    // A cap costs the holding of it, and nothing else.
    let beside_cap = admitted(wanted(10, None));
    assert!(beside_cap.is_admitted(), "{beside_cap:?}");
    assert!(behind(&beside_cap) >= behind(&alone) + Reaction::COST);
    let whole: Vec<&str> = beside_cap.cpus[0]
        .cells
        .iter()
        .map(String::as_str)
        .collect();
    assert_eq!(whole, ["own", "(held)/web"]);
}

#[test]
fn an_entry_of_ordinary_threads_is_believed_only_with_a_budget() {
    assert_eq!(wanted(3, None).check(), Ok(()));
    let unheld = with(&wanted(3, None), |hold| {
        hold.budget_ns = None;
        hold.period_ns = None;
    });
    assert!(unheld.check().is_err());
    let by_group = HeldCell {
        enforcer: Enforcer::RtCgroup,
        ..wanted(3, None)
    };
    assert!(by_group.check().is_err());
}

#[test]
fn nothing_is_held_on_a_cpu_that_is_anothers_partition() {
    let kept = |is_partition: bool| Facts {
        cpus: vec![0, 1],
        kept_cpus: vec![KeptCpu {
            cpu: 0,
            by: "the cgroup `x` has it".to_owned(),
            is_partition,
        }],
        ..facts()
    };
    let named = wanted(3, Some(60));
    let anywhere = with(&named, |hold| hold.cpus.clear());
    let why = room_for(&named, &[], &kept(true)).unwrap_err();
    assert!(why.contains("the cgroup `x` has it"), "{why}");
    assert_eq!(room_for(&anywhere, &[0, 1], &kept(true)).unwrap().cpu, 1);
    assert_eq!(room_for(&named, &[], &kept(false)).unwrap().cpu, 0);
}

#[test]
fn several_cpus_are_several_holds_and_each_has_to_fit() {
    let mut both = wanted(3, Some(60));
    let second = Hold {
        cpus: vec![1],
        ..both.holds[0].clone()
    };
    both.holds.push(second);
    assert_eq!(both.cpus(), [0, 1]);
    let rooms = super::room_for(&both, &[], &facts()).unwrap();
    let cpus: Vec<u32> = rooms.iter().map(|room| room.cpu).collect();
    assert_eq!(cpus, [0, 1]);
    assert_eq!(rooms[0].rate, rooms[1].rate);
    // No room on the second is none at all.
    let full = held(with(&wanted(9, Some(70)), |hold| hold.cpus = vec![1]));
    assert!(super::room_for(&both, &[], &beside(vec![full])).is_err());
    // Once it is there, others count it on each of its cpus.
    let facts = beside(vec![held(both)]);
    for cpu in [0, 1] {
        let large = with(&wanted(8, Some(50)), |hold| hold.cpus = vec![cpu]);
        assert!(room_for(&large, &[], &facts).is_err(), "{cpu}");
    }
}
