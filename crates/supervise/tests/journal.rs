//! The journal on real file systems: writers that are killed at random moments, a full disk, and a second supervisor.

#[path = "../../host/tests/needs/mod.rs"]
mod needs;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use timecell_supervise::journal::{Journal, JournalError, Loaded};
use timecell_supervise::state::{Entry, Record, Text, replay};
use timecell_supervise::{End, Stamp};

/// Set in a child that appends to the journal in this directory until it is killed.
const APPEND: &str = "TIMECELL_TEST_APPEND";

fn main() {
    if let Some(dir) = std::env::var_os(APPEND) {
        append_for_ever(Path::new(&dir));
    }
    // SAFETY: no memory is involved.
    let root = unsafe { libc::geteuid() } == 0;
    let mounts = (!root).then_some("mounting needs root");
    needs::run(
        vec![
            needs::trial("a_writer_killed_at_random_loses_nothing", None, || {
                a_writer_killed_at_random_loses_nothing();
            }),
            needs::trial(
                "a_second_process_is_kept_out_until_the_first_is_killed",
                None,
                || {
                    a_second_process_is_kept_out_until_the_first_is_killed();
                },
            ),
            needs::trial("root_a_full_disk_costs_no_entry", mounts, || {
                root_a_full_disk_costs_no_entry();
            }),
        ],
        needs::Threads::Cpus,
    );
}

fn open(dir: &Path) -> (Journal<Record>, Loaded<Record>) {
    Journal::open(dir).unwrap()
}

fn record(entry: Entry) -> Record {
    Record {
        at: Stamp::now(),
        entry,
    }
}

fn ended(generation: u64) -> Record {
    record(Entry::CellEnded {
        cell: "control".to_owned(),
        generation,
        end: End::Exited { code: 0 },
        cause: None,
    })
}

/// Appends generation after generation, and says of each when it is acknowledged; each 50th entry is a compaction's.
fn append_for_ever(dir: &Path) -> ! {
    let (mut journal, loaded) = open(dir);
    let mut state = replay(loaded.entries.iter().map(|(_, record)| record));
    let from = state.cells.get("control").map_or(0, |cell| cell.generation);
    for generation in from + 1.. {
        let record = ended(generation);
        journal.append(&record).unwrap();
        state.apply(&record);
        println!("{generation}");
        if generation % 50 == 0 {
            journal.compact(&[state.snapshot(Stamp::now())]).unwrap();
        }
    }
    unreachable!("no end of generations")
}

fn appender(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(APPEND, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn a_writer_killed_at_random_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = 1u64;
    for round in 0..60 {
        let mut child = appender(dir.path());
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_micros(random >> 50));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged: u64 = std::iter::once(line)
            .chain(said.lines().map(Result::unwrap))
            .filter_map(|line| line.trim().parse().ok())
            .last()
            .unwrap();
        let (_journal, loaded) = open(dir.path());
        let state = replay(loaded.entries.iter().map(|(_, record)| record));
        let generation = state.cells["control"].generation;
        // One more may have been written and not yet said.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&generation),
            "round {round}: {generation} of {acknowledged}"
        );
        assert!(
            loaded.dropped.is_empty() || loaded.only_its_tail_is_torn(),
            "{:?}",
            loaded.dropped
        );
    }
}

fn a_second_process_is_kept_out_until_the_first_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = appender(dir.path());
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    match Journal::<Record>::open(dir.path()) {
        Err(JournalError::Locked { pid, .. }) => assert_eq!(pid, Some(child.id())),
        other => panic!("{other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    open(dir.path());
}

fn root_a_full_disk_costs_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "timecell-test"])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(mounted.success());
    let state = dir.path().join("state");
    let filled = std::panic::catch_unwind(|| fill(&state));
    let unmounted = Command::new("umount").arg(dir.path()).status().unwrap();
    assert!(unmounted.success());
    filled.unwrap();
}

fn fill(dir: &Path) {
    let (mut journal, _) = open(dir);
    let text = "x".repeat(9_000);
    let entry = record(Entry::MissionAdmitted {
        name: "rover".to_owned(),
        file: Text::new(text),
        unaccounted: Vec::new(),
        sources: BTreeMap::new(),
    });
    let mut written = 0;
    let error = loop {
        match journal.append(&entry) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
    // An entry that fits is still taken; one that does not leaves no half of itself.
    journal.append(&ended(1)).unwrap();
    assert!(journal.append(&entry).is_err());
    drop(journal);
    let (_, loaded) = open(dir);
    assert_eq!(
        (loaded.entries.len(), loaded.dropped),
        (written + 1, vec![])
    );
}
