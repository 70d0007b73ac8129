//! Memory: the rest for cells that declare none, and missions beside each other.

use proptest::prelude::*;

use super::beside::beside;
use super::*;

const MIB: u64 = 1 << 20;

fn rights(memory: &str) -> String {
    format!("class = \"other\"\n[cell.rights]\nmemory = \"{memory}\"")
}

/// A mission that declares so much, of so many cells that say nothing besides.
fn wants(declared: Option<u64>, silent: usize) -> Mission {
    let says = declared.map(|mib| cell("says", &rights(&format!("{mib}MiB"))));
    let silent = (0..silent).map(|at| cell(&format!("c{at}"), "class = \"other\""));
    mission(&says.into_iter().chain(silent).collect::<String>())
}

fn holds(name: &str, memory: HeldMemory, taken: u64) -> Neighbour {
    Neighbour {
        who: format!("mission `{name}`"),
        short: name.to_owned(),
        cells: Vec::new(),
        supplies: Vec::new(),
        measured_cpus: Vec::new(),
        partition_cpus: Vec::new(),
        memory,
        memory_taken_bytes: taken,
    }
}

/// The facts with so much available, beside these.
fn with(available: u64, others: &[Neighbour]) -> Facts {
    let machine = facts().memory.unwrap();
    Facts {
        memory: Ok(MachineMemory {
            available_bytes: available,
            ..machine
        }),
        ..beside(others.to_vec())
    }
}

#[test]
fn cells_without_memory_share_what_is_free() {
    let cells = cell("a", "class = \"other\"")
        + &cell("b", "class = \"other\"")
        + &cell("c", &rights("512MiB"));
    let admission = admit(&mission(&cells), &facts(), &[], 0);
    // Half of 2048 MiB less 512 for the machine and 512 declared.
    let memory = admission.memory.as_ref().unwrap();
    assert_eq!(memory.default_bytes, Some(256 << 20));
    assert_eq!(memory.limits_bytes, 1024 << 20);
    let said = admission.notes.join("\n");
    assert!(
        said.contains("`a` and `b` may use at most 256 MiB of memory each"),
        "{said}"
    );
    assert!(admission.is_admitted());

    let admission = admit(&mission(&cell("c", &rights("4GiB"))), &facts(), &[], 0);
    assert!(!admission.is_admitted());
    assert!(
        admission.refusals[0].contains("lower it by 512 MiB"),
        "{:?}",
        admission.refusals
    );

    let admission = admit(&mission(&cell("c", &rights("3GiB"))), &facts(), &[], 0);
    assert!(admission.is_admitted());
    assert!(
        admission.notes.join("\n").contains("is free for them now"),
        "{:?}",
        admission.notes
    );

    let blind = Facts {
        memory: Err("there is no memory controller".to_owned()),
        ..facts()
    };
    let admission = admit(&mission(&cell("a", "class = \"other\"")), &blind, &[], 0);
    assert_eq!(admission.memory, None);
    assert!(
        admission
            .notes
            .join("\n")
            .contains("can use up the machine's memory")
    );
}

#[test]
fn what_other_missions_may_still_take_is_not_free() {
    let held = HeldMemory {
        declared_bytes: 0,
        limits_bytes: 1024 * MIB,
    };
    let said = |taken: u64| {
        let others = [holds("a", held, taken)];
        admit(
            &wants(None, 1),
            &with((2048 << 20) - taken, &others),
            &[],
            0,
        )
    };
    // Half of 2048 MiB less 512 for the machine and 1024 of the other mission.
    let admission = said(0);
    let memory = admission.memory.as_ref().unwrap();
    assert_eq!(memory.default_bytes, Some(256 * MIB));
    let notes = admission.notes.join("\n");
    let told = "1,024 MiB that other missions' cells may still take";
    assert!(notes.contains(told), "{notes}");
    // Memory that they have taken is not available any more, and is not counted twice.
    for taken in [300 * MIB, 1024 * MIB] {
        assert_eq!(said(taken).memory.unwrap().default_bytes, Some(256 * MIB));
    }
}

#[test]
fn what_missions_declare_must_fit_into_the_machine_together() {
    let held = HeldMemory {
        declared_bytes: 3072 * MIB,
        limits_bytes: 3072 * MIB,
    };
    let facts = with(2048 * MIB, &[holds("a", held, 0)]);
    assert!(admit(&wants(Some(512), 0), &facts, &[], 0).is_admitted());
    let admission = admit(&wants(Some(513), 0), &facts, &[], 0);
    assert_eq!(
        admission.refusals,
        [
            "the cells' `memory` adds up to 513 MiB, but the machine has 512 MiB for cells: 4,096 MiB less 512 MiB for everything \
             else and 3,072 MiB that mission `a` declares; lower it by 1 MiB"
        ]
    );
    // A derived limit is a share of the rest, and keeps nobody out.
    let derived = HeldMemory {
        declared_bytes: 0,
        ..held
    };
    let facts = with(2048 * MIB, &[holds("a", derived, 0)]);
    let admission = admit(&wants(Some(513), 0), &facts, &[], 0);
    assert!(admission.is_admitted());
    let notes = admission.notes.join("\n");
    assert!(
        notes.contains("beside what other missions' cells may still take"),
        "{notes}"
    );
}

/// Admits missions one after the other; those that are refused hold nothing. The verdicts, and the holdings of all.
fn in_order(wanted: &[(Option<u64>, usize)], order: &[usize]) -> (Vec<bool>, Vec<HeldMemory>) {
    let mut admitted = vec![false; wanted.len()];
    let mut others = Vec::new();
    for at in order {
        let (declared, silent) = wanted[*at];
        let admission = admit(&wants(declared, silent), &with(2048 * MIB, &others), &[], 0);
        admitted[*at] = admission.is_admitted();
        if admitted[*at] {
            others.push(holds(&format!("m{at}"), admission.held_memory(), 0));
        }
    }
    (admitted, others.iter().map(|other| other.memory).collect())
}

fn any_mission() -> impl Strategy<Value = (Option<u64>, usize)> {
    let some = (1u64..4000).prop_map(Some);
    prop_oneof![
        (some.clone(), Just(0)),
        (some, 1usize..4),
        (Just(None), 1usize..4)
    ]
}

proptest! {
    /// All of some missions are admitted in one order where they are in another, and no order lets them declare more than there is.
    #[test]
    fn order_changes_no_verdict_beyond_what_is_free(
        wanted in prop::collection::vec(any_mission(), 1..5),
        keys in prop::collection::vec(any::<u32>(), 5),
    ) {
        let first: Vec<usize> = (0..wanted.len()).collect();
        let mut second = first.clone();
        second.sort_by_key(|at| keys[*at]);
        let (one, held) = in_order(&wanted, &first);
        let (other, _) = in_order(&wanted, &second);
        let all = |admitted: &[bool]| admitted.iter().all(|admitted| *admitted);
        prop_assert_eq!(all(&one), all(&other));
        let declared: u64 = held.iter().map(|memory| memory.declared_bytes).sum();
        prop_assert!(declared <= 3584 * MIB);
        // A mission that declares nothing is never refused for its memory.
        for (mission, admitted) in wanted.iter().zip(&one) {
            prop_assert!(mission.0.is_some() || *admitted);
        }
    }

    /// Limits that were derived never add up to more than is free, but for the least that a cell gets.
    #[test]
    fn derived_limits_fit_into_what_is_free(
        silent in prop::collection::vec(1usize..6, 1..8),
        available in 0u64..4000,
        taken in 0u64..100,
    ) {
        let mut others: Vec<Neighbour> = Vec::new();
        let mut cells = 0;
        for (at, count) in silent.iter().enumerate() {
            let has_taken: u64 = others.iter().map(|other| other.memory_taken_bytes).sum();
            let facts = with((available * MIB).saturating_sub(has_taken), &others);
            let held = admit(&wants(None, *count), &facts, &[], 0).held_memory();
            others.push(holds(&format!("m{at}"), held, held.limits_bytes * taken / 100));
            cells += *count as u64;
        }
        let limits: u64 = others.iter().map(|other| other.memory.limits_bytes).sum();
        prop_assert!(limits <= available.saturating_sub(512) * MIB + cells * (16 * MIB));
    }
}
