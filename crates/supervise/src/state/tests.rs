//! The states that journals add up to.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::end::End;
use crate::incident::tests::example;
use crate::journal::{Durability, Entry as _};
use crate::process::Process;
use crate::stamp::Stamp;

fn at(monotonic_ns: i64) -> Stamp {
    Stamp {
        monotonic_ns,
        wall_unix_ns: monotonic_ns + 1_000,
    }
}

fn records(entries: impl IntoIterator<Item = Entry>) -> Vec<Record> {
    let numbered = (0..).zip(entries);
    numbered
        .map(|(ns, entry)| Record { at: at(ns), entry })
        .collect()
}

fn started(pid: i32) -> Started {
    Started {
        process: Process {
            pid,
            start_ticks: 10 * pid.unsigned_abs() as u64,
            boot_id: "boot".to_owned(),
        },
        enforcer: Some("rt-cgroup".to_owned()),
        reservation: Some(Enforced {
            budget_ns: 30,
            period_ns: 100,
        }),
        cpus: vec![1],
    }
}

fn admitted(text: &str) -> Entry {
    Entry::MissionAdmitted {
        name: "rover".to_owned(),
        file: Text::new(text),
        unaccounted: Vec::new(),
        sources: BTreeMap::new(),
    }
}

fn starting(cell: &str, generation: u64) -> Entry {
    let cell = cell.to_owned();
    Entry::CellStarting {
        cell,
        generation,
        beside: false,
    }
}

fn runs(cell: &str, generation: u64) -> Entry {
    Entry::CellStarted {
        cell: cell.to_owned(),
        generation,
        started: started(generation as i32),
    }
}

fn ended(cell: &str, generation: u64) -> Entry {
    Entry::CellEnded {
        cell: cell.to_owned(),
        generation,
        end: End::Exited { code: 1 },
        cause: None,
    }
}

#[test]
fn a_killed_supervisor_leaves_what_runs_and_what_was_being_made() {
    let state = replay(&records([
        admitted("a"),
        starting("control", 1),
        runs("control", 1),
        ended("control", 1),
        starting("control", 2),
        runs("control", 2),
        starting("camera", 1),
    ]));
    let left: Vec<_> = (state.instances())
        .map(|(cell, generation, of)| (cell, generation, of.started.is_some()))
        .collect();
    assert_eq!(left, [("camera", 1, false), ("control", 2, true)]);
    assert!(state.should_run("control") && state.should_run("never seen"));
    let control = &state.cells["control"];
    assert_eq!(control.starts, [at(2), at(5)]);
    assert_eq!(control.last_end, Some((1, at(3), End::Exited { code: 1 })));
    assert_eq!(control.instances[&2].since, at(4));
}

#[test]
fn a_cell_is_to_run_when_the_last_reason_against_it_is_gone() {
    let held = |why| Entry::CellHeld {
        cell: "camera".to_owned(),
        why,
    };
    let released = |why| Entry::CellReleased {
        cell: "camera".to_owned(),
        why,
    };
    let mut entries = vec![admitted("a"), held(Hold::Shed), held(Hold::ByHand)];
    entries.push(released(Hold::Shed));
    assert!(!replay(&records(entries.clone())).should_run("camera"));
    entries.push(released(Hold::ByHand));
    assert!(replay(&records(entries)).should_run("camera"));
}

#[test]
fn an_update_replaces_the_mission_when_it_is_committed_and_not_before() {
    let begun = Entry::UpdateBegun {
        update: 1,
        file: Text::new("new"),
        cells: vec!["control".to_owned()],
        sources: BTreeMap::new(),
    };
    let text = |entries: Vec<Entry>| {
        let state = replay(&records(entries));
        (state.file.unwrap().text, state.update.is_some())
    };
    let mut entries = vec![admitted("old"), runs("control", 1), begun];
    entries.push(runs("control", 2));
    assert_eq!(replay(&records(entries.clone())).instances().count(), 2);
    assert_eq!(text(entries.clone()), ("old".to_owned(), true));
    let end = |last| text(entries.iter().cloned().chain([last]).collect());
    assert_eq!(
        end(Entry::UpdateCommitted { update: 1 }),
        ("new".to_owned(), false)
    );
    assert_eq!(
        end(Entry::UpdateCommitted { update: 2 }),
        ("old".to_owned(), true)
    );
    let reason = "late jobs".to_owned();
    let back = Entry::UpdateRolledBack { update: 1, reason };
    assert_eq!(end(back), ("old".to_owned(), false));
}

#[test]
fn what_must_outlive_a_power_cut_is_durable() {
    let durable = |entry: Entry| {
        let record = Record { at: at(0), entry };
        record.durability() == Durability::Durable
    };
    assert!(durable(admitted("a")) && durable(Entry::CleanDown));
    assert!(!durable(starting("control", 1)) && !durable(runs("control", 1)));
}

#[test]
fn the_digest_of_a_mission_is_the_one_that_sha256sum_prints() {
    let file = Text::new("abc");
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(file.sha256, known);
    assert!(file.is_intact());
    let changed = Text {
        text: "abd".to_owned(),
        ..file
    };
    assert!(!changed.is_intact());
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let cell = || prop_oneof![Just("control".to_owned()), Just("camera".to_owned())];
    let why = || {
        prop_oneof![
            Just(Hold::ByHand),
            Just(Hold::Shed),
            Just(Hold::RestartLimit)
        ]
    };
    prop_oneof![
        2 => "[a-c]{0,3}".prop_map(|text| admitted(&text)),
        4 => (cell(), 1u64..6).prop_map(|(cell, generation)| starting(&cell, generation)),
        4 => (cell(), 1u64..6).prop_map(|(cell, generation)| runs(&cell, generation)),
        4 => (cell(), 1u64..6).prop_map(|(cell, generation)| ended(&cell, generation)),
        2 => (cell(), why()).prop_map(|(cell, why)| Entry::CellHeld { cell, why }),
        2 => (cell(), why()).prop_map(|(cell, why)| Entry::CellReleased { cell, why }),
        2 => (1u64..1000).prop_map(|number| Entry::Incident(Box::new(example(number)))),
        1 => any::<bool>().prop_map(|high| Entry::ModeSwitched { to: if high { Mode::High } else { Mode::Low } }),
        2 => (1u64..4).prop_map(|update| Entry::UpdateBegun { update, file: Text::new("u"), cells: vec![], sources: BTreeMap::new() }),
        2 => (1u64..4).prop_map(|update| Entry::UpdateCommitted { update }),
        1 => (1u64..4).prop_map(|update| Entry::UpdateRolledBack { update, reason: String::new() }),
        1 => Just(Entry::CleanDown),
        1 => Just(Entry::SupervisorStarted(Supervisor {
            pid: 1,
            version: "0".to_owned(),
            boot_id: "boot".to_owned(),
        })),
    ]
}

fn any_records() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(any_entry(), 0..60).prop_map(records)
}

proptest! {
    #[test]
    fn a_snapshot_stands_for_all_before_it(before in any_records(), after in any_records()) {
        let whole = replay(before.iter().chain(&after));
        let snapshot = replay(&before).snapshot(at(0));
        // As it comes back from the journal.
        let json = serde_json::to_string(&snapshot).unwrap();
        let snapshot: Record = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(replay(std::iter::once(&snapshot).chain(&after)), whole);
    }

    #[test]
    fn an_instance_is_there_from_its_start_to_its_end(records in any_records()) {
        let state = replay(&records);
        for name in ["control", "camera"] {
            for generation in 1..6u64 {
                // The last word on it.
                let last = records.iter().rev().find_map(|record| match &record.entry {
                    Entry::CellStarting { cell, generation: of, .. } if cell == name && *of == generation => Some((true, false)),
                    Entry::CellStarted { cell, generation: of, .. } if cell == name && *of == generation => Some((true, true)),
                    Entry::CellEnded { cell, generation: of, .. } if cell == name && *of == generation => Some((false, false)),
                    Entry::CleanDown => Some((false, false)),
                    _ => None,
                });
                let (there, process) = last.unwrap_or((false, false));
                let instance = state.cells.get(name).and_then(|cell| cell.instances.get(&generation));
                prop_assert_eq!(instance.is_some(), there);
                prop_assert_eq!(instance.is_some_and(|of| of.started.is_some()), process);
            }
        }
    }

    #[test]
    fn generations_and_numbers_never_go_back_and_nothing_grows_for_ever(records in any_records()) {
        let mut state = State::default();
        for record in records.iter().cycle().take(records.len() * 5) {
            let before = state.clone();
            state.apply(record);
            for (name, cell) in &before.cells {
                prop_assert!(state.cells[name].generation >= cell.generation);
            }
            prop_assert!(state.incident_number >= before.incident_number && state.updates >= before.updates);
            prop_assert!(state.incidents.len() <= State::MOST_INCIDENTS);
            prop_assert!(state.cells.values().all(|cell| cell.starts.len() <= State::MOST_STARTS));
        }
    }

    #[test]
    fn nothing_should_run_after_a_clean_end(mut before in any_records(), cell in "[a-z]{1,9}") {
        before.push(Record { at: at(0), entry: Entry::CleanDown });
        let state = replay(&before);
        prop_assert!(!state.should_run(&cell) && !state.should_run("control"));
        prop_assert_eq!(state.instances().count(), 0);
    }
}

#[test]
fn where_mounts_lead_is_kept_until_the_mission_has_ended() {
    let leads = |to: &str| BTreeMap::from([("/data".to_owned(), to.to_owned())]);
    let begun = Entry::UpdateBegun {
        update: 1,
        file: Text::new("new"),
        cells: Vec::new(),
        sources: leads("/new"),
    };
    let mut admitted = admitted("old");
    if let Entry::MissionAdmitted { sources, .. } = &mut admitted {
        *sources = leads("/old");
    }
    let state = |entries: &[Entry]| replay(&records(entries.to_vec()));
    assert_eq!(
        state(&[admitted.clone(), runs("control", 1)]).sources,
        leads("/old")
    );
    let taken_back = Entry::UpdateRolledBack {
        update: 1,
        reason: String::new(),
    };
    let updated = state(&[admitted.clone(), begun, taken_back]);
    assert_eq!(updated.sources, leads("/new"));
    let snapshot = updated.snapshot(Stamp::now());
    assert_eq!(replay([&snapshot]).sources, leads("/new"));
    assert!(state(&[admitted, Entry::CleanDown]).sources.is_empty());
}
