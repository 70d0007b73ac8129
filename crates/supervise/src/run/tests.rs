//! Decisions of the loop for a mission of which nothing runs yet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::mission::{MissionFile, SupervisorClass};

use super::assume::Assuming;
use super::ballast::Ballast;
use super::carried::Decided;
use super::desk::{Desk, Wanted};
use super::health::Incidents;
use super::keeper::Keeper;
use super::modes::Return;
use super::output::Output;
use super::phase::{Next, Phase};
use super::update::Updating;
use super::version::when_shed;
use super::waker::Waker;
use super::watch::Counters;
use super::work::Work;
use super::{Event, Notify, OutputTo};
use crate::admit::{Admission, SupervisorGrant};
use crate::control::{CellUpdate, Change};
use crate::enforce::Mechanisms;
use crate::journal::{Journal, Writer};
use crate::reserve::Reserve;
use crate::stamp::Stamp;
use crate::state::{Entry, Hold, Record, State, Text, Update};

/// Cells `high` and `low`, and between them `lower`, which goes first.
fn file(top: &str) -> MissionFile {
    let cell = |name: &str, more: &str| {
        format!(
            "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"/bin/true\" }}\nclass = \"other\"\n{more}"
        )
    };
    let cells = [
        cell("high", "criticality = \"hi\"\n"),
        cell("lower", ""),
        cell("low", "when_shed = \"stop\"\n"),
    ];
    let text = format!("schema = 1\nname = \"m\"\n{top}\n{}", cells.concat());
    MissionFile::parse("m.toml", &text).unwrap()
}

const MODES: &str = "[modes]\nreturn_after = \"300ms\"";

fn admission() -> Admission {
    Admission {
        mission: "m".to_owned(),
        cells: Vec::new(),
        partition_cpus: Vec::new(),
        supervisor: SupervisorGrant {
            class: SupervisorClass::Other,
            budget_ns: None,
            period_ns: None,
            priority: None,
            cpus: Vec::new(),
            spared: Vec::new(),
            response_ns: None,
            why: None,
        },
        cpus: Vec::new(),
        partitions: Vec::new(),
        frames: Vec::new(),
        memory: None,
        choice: None,
        refusals: Vec::new(),
        notes: Vec::new(),
        beside: Vec::new(),
        unaccounted: Vec::new(),
        kernel: Vec::new(),
        latency_ns: 0,
        held: Vec::new(),
    }
}

fn keeper<'a>(
    dir: &Path,
    file: &'a MissionFile,
    admission: &'a Admission,
    tell: &'a mut dyn FnMut(&Event),
) -> Keeper<'a> {
    let waker = Waker::new().unwrap();
    let output = Output::start(waker.clone()).unwrap();
    let reserve = Reserve::default();
    let (journal, _) = Journal::<Record>::open(dir).unwrap();
    let journal = Writer::start(journal, reserve.clone(), || ()).unwrap();
    let mut work = Work::new(waker, output, Ballast::take(dir), reserve);
    work.output_to = OutputTo::Log;
    let (desk, _) = Desk::open(dir, Notify::of_environment());
    let mut keeper = Keeper {
        file,
        admission,
        dir: dir.to_owned(),
        desk,
        journal,
        state: State {
            mission: Some("m".to_owned()),
            ..State::default()
        },
        last_sequence: 0,
        mechanisms: Mechanisms::of("m"),
        cells: Vec::new(),
        earlier: BTreeMap::new(),
        work,
        incidents: Incidents::default(),
        limits_looked_ns: 0,
        assuming: Assuming::of(admission, file.mission()),
        back: None,
        shed_by_mode: BTreeSet::new(),
        tell,
    };
    keeper.watch_all(false).unwrap();
    keeper
}

fn waiting(keeper: &Keeper) -> Vec<usize> {
    (0..3)
        .filter(|at| keeper.cells[*at].phase.waits())
        .collect()
}

fn shed(keeper: &Keeper) -> Vec<usize> {
    (0..3).filter(|at| keeper.is_shed(*at)).collect()
}

#[test]
fn what_an_update_brings_back_in_high_mode_is_shed_until_the_low_one() {
    let dir = tempfile::tempdir().unwrap();
    let (file, admission, mut tell) = (file(MODES), admission(), |_: &Event| ());
    let mut keeper = keeper(dir.path(), &file, &admission, &mut tell);
    keeper.fit_to_mode().unwrap();
    assert!(shed(&keeper).is_empty());
    keeper.back = Some(Return::every(1));
    keeper.follow(1, Next::Due(0));
    keeper.fit_to_mode().unwrap();
    assert_eq!(shed(&keeper), [1, 2]);
    assert!(!keeper.state.should_run("low") && keeper.state.should_run("high"));
    let follows = keeper.cells.iter().map(|cell| cell.phase.next());
    assert_eq!(follows.collect::<Vec<Next>>(), [Next::Stays; 3]);
    // Taken back with the new version of a cell.
    let (cell, why) = ("low".to_owned(), Hold::Shed);
    keeper.note(Entry::CellReleased { cell, why });
    keeper.shed_by_mode.remove("low");
    keeper.fit_to_mode().unwrap();
    assert_eq!(shed(&keeper), [1, 2]);
    keeper.back = None;
    keeper.fit_to_mode().unwrap();
    assert!(shed(&keeper).is_empty());
    assert_eq!(waiting(&keeper), [1, 2]);
}

#[test]
fn time_out_of_band_counts_also_when_its_thread_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (file, admission, mut tell) = (file(MODES), admission(), |_: &Event| ());
    let mut keeper = keeper(dir.path(), &file, &admission, &mut tell);
    let watch = &mut keeper.cells[0].watch;
    let own = || Counters::of(std::process::id().cast_signed(), &[]);
    const HOUR_NS: i64 = 3_600_000_000_000;
    watch.started(None, own(), 0);
    for ns in [HOUR_NS, 1] {
        watch.ran_out_of_band(ns);
        assert!(watch.used_ns().unwrap() >= HOUR_NS);
    }
    watch.started(None, own(), 0);
    assert!(watch.used_ns().unwrap() < HOUR_NS, "it is another life");
}

#[test]
fn one_that_has_ended_while_it_is_shed_is_not_started_before_low_mode() {
    let dir = tempfile::tempdir().unwrap();
    let (file, admission, mut tell) = (file(MODES), admission(), |_: &Event| ());
    let mut keeper = keeper(dir.path(), &file, &admission, &mut tell);
    keeper.switch_to_high(0).unwrap();
    // By its restart policy.
    keeper.follow(1, Next::Due(0));
    keeper.restart_due().unwrap();
    let phase = &keeper.cells[1].phase;
    assert!(matches!(phase, Phase::Down(Next::Stays)));
    keeper.back = None;
    keeper.fit_to_mode().unwrap();
    assert_eq!(waiting(&keeper), [1, 2]);
}

/// Killed anywhere in its journal, a supervisor leaves nothing shed that the one after it does not bring back.
#[test]
fn what_a_supervisor_killed_on_its_way_to_high_mode_has_shed_comes_back() {
    let (file, admission) = (file(MODES), admission());
    let (dir, mut tell) = (tempfile::tempdir().unwrap(), |_: &Event| ());
    let mut killed = keeper(dir.path(), &file, &admission, &mut tell);
    killed.switch_to_high(0).unwrap();
    assert_eq!(shed(&killed), [1, 2]);
    drop(killed);
    let (_, loaded) = Journal::<Record>::open(dir.path()).unwrap();
    let entries = loaded.entries;
    assert_eq!(entries.len(), 3, "the mode and two cells: {entries:?}");
    for written in 0..=entries.len() {
        let (dir, mut tell) = (tempfile::tempdir().unwrap(), |_: &Event| ());
        let mut next = keeper(dir.path(), &file, &admission, &mut tell);
        for (_, record) in &entries[..written] {
            next.state.apply(record);
        }
        next.take_over_mode().unwrap();
        let is_high = next.back.is_some();
        let expected: &[usize] = if is_high { &[1, 2] } else { &[] };
        assert_eq!(shed(&next), expected, "{written} entries");
        assert_eq!(is_high, written > 0, "{written} entries");
        next.back = None;
        next.fit_to_mode().unwrap();
        assert!(shed(&next).is_empty(), "{written} entries");
    }
}

#[test]
fn cells_of_one_mode_and_those_of_high_criticality_are_not_shed() {
    let (two, one) = (file(MODES), file(""));
    let of = |file: &MissionFile| {
        ["high", "low", "nobody"].map(|name| when_shed(file.mission(), name).is_some())
    };
    assert_eq!(of(&two), [false, true, false]);
    assert_eq!(of(&one), [false; 3]);
}

#[test]
fn an_update_keeps_back_what_it_makes_anew_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (file, admission, mut tell) = (file(""), admission(), |_: &Event| ());
    let mut keeper = keeper(dir.path(), &file, &admission, &mut tell);
    assert!(keeper.await_room().is_empty());
    let changes = [
        ("high", Change::Unchanged),
        ("low", Change::Changed),
        ("lower", Change::Added),
        ("no-more", Change::Removed),
    ];
    let cells = changes.map(|(cell, change)| CellUpdate {
        cell: cell.to_owned(),
        change,
        beside: false,
        pid: None,
    });
    let decided = Decided {
        wanted: Wanted {
            client: 1,
            file: PathBuf::new(),
            anew: Vec::new(),
            window_ns: 0,
        },
        stay: Vec::new(),
        no_room: BTreeMap::new(),
        changes: BTreeMap::new(),
        admission_ns: 0,
    };
    let (text, holds) = ((Text::new(""), BTreeMap::new()), BTreeMap::new());
    let updating = Updating::new(1, &decided, text, cells.into(), BTreeSet::new(), holds);
    keeper.desk.updating = Some(updating);
    keeper.begin_update().unwrap();
    let mut kept_back = keeper.await_room();
    kept_back.sort_unstable();
    assert_eq!(kept_back, [1, 2]);
    // They wait for as long, even if others may start.
    for at in kept_back {
        keeper.follow(at, Next::Waits);
    }
    keeper.start_pending().unwrap();
    assert_eq!(waiting(&keeper), [1, 2]);
    assert!(keeper.is_idle());
}

#[test]
fn what_an_unfinished_update_had_added_is_not_shed_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let (file, admission, mut tell) = (file(MODES), admission(), |_: &Event| ());
    let mut keeper = keeper(dir.path(), &file, &admission, &mut tell);
    for cell in ["added", "low"] {
        let (cell, why) = (cell.to_owned(), Hold::Shed);
        keeper.note(Entry::CellHeld { cell, why });
    }
    keeper.state.update = Some(Update {
        number: 1,
        file: Text::new(""),
        cells: vec!["added".to_owned(), "low".to_owned()],
        begun: Stamp::now(),
    });
    keeper.take_back_unfinished();
    assert!(keeper.state.cells["added"].holds.is_empty());
    assert!(keeper.state.cells["low"].holds.contains(&Hold::Shed));
}
