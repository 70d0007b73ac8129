//! Journals that are cut, torn and compacted.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    text: String,
}

impl Entry for Note {
    const KIND: &'static str = "note";
    const VERSION: u32 = 2;

    fn durability(&self) -> Durability {
        Durability::Process
    }
}

fn note(text: &str) -> Note {
    Note {
        text: text.to_owned(),
    }
}

fn notes() -> Vec<Note> {
    ["first", "two\nlines", "", "\u{1f980} and \\ and \"", "last"]
        .map(note)
        .to_vec()
}

/// The bytes of a journal with these entries, and where each line ends.
fn written(notes: &[Note]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let header = serde_json::to_string(&Header::of::<Note>()).unwrap();
    frame::write(&mut bytes, 0, &header);
    let mut ends = vec![bytes.len()];
    for (sequence, note) in (1..).zip(notes) {
        frame::write(&mut bytes, sequence, &serde_json::to_string(note).unwrap());
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn texts(loaded: &Loaded<Note>) -> Vec<Note> {
    loaded
        .entries
        .iter()
        .map(|(_, note)| note.clone())
        .collect()
}

#[test]
fn a_journal_cut_at_every_byte_loads_to_the_last_whole_entry() {
    let notes = notes();
    let (bytes, ends) = written(&notes);
    for cut in 0..=bytes.len() {
        let loaded = load::<Note>(&bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(
            texts(&loaded),
            notes[..whole.saturating_sub(1)],
            "cut at {cut}"
        );
        assert_eq!(loaded.header.is_some(), whole > 0, "cut at {cut}");
        let end = ends[..whole].last().copied().unwrap_or(0);
        assert_eq!(loaded.whole_bytes, end);
        let torn = Dropped {
            at_byte: end,
            bytes: cut - end,
            why: Why::CutOff,
        };
        let dropped = if cut == end { vec![] } else { vec![torn] };
        assert_eq!(loaded.dropped, dropped, "cut at {cut}");
        assert_eq!(loaded.only_its_tail_is_torn(), cut != end);
    }
}

#[test]
fn one_damaged_byte_costs_its_line_and_no_other() {
    let notes = notes();
    let (bytes, ends) = written(&notes);
    for at in 0..bytes.len() {
        for flip in [1u8, 0x20, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let loaded = load::<Note>(&damaged);
            let line = ends.iter().filter(|end| **end <= at).count();
            // A newline that is gone joins its line with the next one.
            let lost = if bytes[at] == b'\n' {
                line..line + 2
            } else {
                line..line + 1
            };
            let expected: Vec<Note> = (1..)
                .zip(&notes)
                .filter(|(line, _)| !lost.contains(line))
                .map(|(_, note)| note.clone())
                .collect();
            assert_eq!(texts(&loaded), expected, "byte {at} changed by {flip:#x}");
            assert!(!loaded.dropped.is_empty(), "byte {at} changed by {flip:#x}");
        }
    }
}

#[test]
fn what_is_missing_repeated_or_not_understood_is_said() {
    let mut bytes = Vec::new();
    let header = serde_json::to_string(&Header::of::<Note>()).unwrap();
    frame::write(&mut bytes, 7, &header);
    for (sequence, json) in [
        (8, r#"{"text":"a"}"#),
        (8, r#"{"text":"again"}"#),
        (12, r#"{"text":"b"}"#),
        (13, r#"{"word":"c"}"#),
        (14, r#"{"text":"d"}"#),
    ] {
        frame::write(&mut bytes, sequence, json);
    }
    let loaded = load::<Note>(&bytes);
    assert_eq!(texts(&loaded), ["a", "b", "d"].map(note));
    assert_eq!(loaded.last_sequence, Some(14));
    let [repeated, missing, unknown] = loaded.dropped.as_slice() else {
        panic!("{:?}", loaded.dropped);
    };
    assert_eq!(repeated.why, Why::Repeated { found: 8, last: 8 });
    assert_eq!(missing.why, Why::Missing { from: 9, to: 11 });
    let said = unknown.to_string();
    assert!(
        said.contains("dropped: entry 13 is not understood: missing field `text`"),
        "{said}"
    );
    assert!(!loaded.only_its_tail_is_torn());
}

fn open(dir: &std::path::Path) -> (Journal<Note>, Loaded<Note>) {
    Journal::open(dir).unwrap()
}

#[test]
fn what_was_appended_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("made");
    let (mut journal, loaded) = open(&dir);
    assert_eq!((texts(&loaded), loaded.dropped), (vec![], vec![]));
    assert_eq!(journal.append(&note("a")).unwrap(), 1);
    assert_eq!(journal.append_all(&[note("b"), note("c")]).unwrap(), 3);
    journal.sync().unwrap();
    drop(journal);
    let (mut journal, loaded) = open(&dir);
    assert_eq!(texts(&loaded), ["a", "b", "c"].map(note));
    assert_eq!(journal.append(&note("d")).unwrap(), 4);
}

#[test]
fn a_file_cut_at_every_byte_is_opened_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let notes = notes();
    let (bytes, ends) = written(&notes);
    for cut in 0..=bytes.len() {
        std::fs::write(dir.path().join("journal"), &bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (mut journal, loaded) = open(dir.path());
        let mut expected = notes[..whole.saturating_sub(1)].to_vec();
        assert_eq!(texts(&loaded), expected, "cut at {cut}");
        journal.append(&note("next")).unwrap();
        drop(journal);
        let (_, loaded) = open(dir.path());
        expected.push(note("next"));
        assert_eq!(texts(&loaded), expected, "cut at {cut}");
        assert_eq!(loaded.dropped, [], "cut at {cut}");
    }
}

#[test]
fn a_damaged_journal_is_kept_and_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (mut bytes, ends) = written(&notes());
    bytes[ends[1] + 3] ^= 1;
    std::fs::write(dir.path().join("journal"), &bytes).unwrap();
    let (mut journal, loaded) = open(dir.path());
    let mut left = notes();
    left.remove(1);
    assert_eq!(texts(&loaded), left);
    assert_eq!(loaded.dropped[0].why, Why::Checksum);
    assert_eq!(
        std::fs::read(dir.path().join("journal.damaged")).unwrap(),
        bytes
    );
    journal.append(&note("next")).unwrap();
    drop(journal);
    let (_, loaded) = open(dir.path());
    left.push(note("next"));
    assert_eq!((texts(&loaded), loaded.dropped), (left, vec![]));
    // Numbers go on.
    assert!(loaded.entries[0].0 > 5);
}

#[test]
fn a_compaction_replaces_all_entries_and_keeps_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(dir.path());
    let long = note(&"x".repeat(100_000));
    for _ in 0..3 {
        assert!(!journal.should_be_compacted());
        journal.append(&long).unwrap();
    }
    assert!(journal.should_be_compacted());
    let before = std::fs::read(journal.path()).unwrap();
    // Files left by a supervisor that was killed while it compacted.
    std::fs::write(dir.path().join("journal.new"), "half").unwrap();
    std::fs::write(dir.path().join("journal.link"), "half").unwrap();
    journal.compact(&[note("all of it")]).unwrap();
    assert!(!journal.should_be_compacted());
    assert_eq!(
        std::fs::read(dir.path().join("journal.old")).unwrap(),
        before
    );
    assert_eq!(journal.append(&note("next")).unwrap(), 6);
    drop(journal);
    let (_, loaded) = open(dir.path());
    assert_eq!(texts(&loaded), [note("all of it"), note("next")]);
    assert_eq!(loaded.dropped, []);
}

#[test]
fn two_supervisors_cannot_have_one_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    let error = Journal::<Note>::open(dir.path()).unwrap_err();
    let expected = format!(
        "{} is in use by another timecell (process {}); end that one first, or name another state directory",
        dir.path().display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    drop(journal);
    open(dir.path());
}

#[test]
fn a_journal_of_another_version_or_kind_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let refused = |form: u32, kind: &str, version: u32| {
        let mut bytes = Vec::new();
        let header = Header {
            timecell_journal: form,
            kind: kind.to_owned(),
            version,
        };
        frame::write(&mut bytes, 0, &serde_json::to_string(&header).unwrap());
        std::fs::write(&path, &bytes).unwrap();
        let opened = Journal::<Note>::open(dir.path());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        opened.err()
    };
    let known = |error: Option<JournalError>| match error {
        Some(JournalError::Newer {
            what, found, known, ..
        }) => Some((what, found, known)),
        _ => None,
    };
    assert_eq!(known(refused(2, "note", 2)), Some(("journal", 2, 1)));
    assert_eq!(known(refused(1, "note", 3)), Some(("entry", 3, 2)));
    assert!(matches!(
        refused(1, "diary", 2),
        Some(JournalError::OtherKind { .. })
    ));
    assert!(refused(1, "note", 1).is_none());
}

proptest! {
    #[test]
    fn no_damage_invents_an_entry(
        texts_in in prop::collection::vec(".{0,12}", 0..8),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        inserted in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let notes: Vec<Note> = texts_in.iter().map(|text| note(text)).collect();
        let (mut bytes, _) = written(&notes);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let at = cut.index(bytes.len());
        bytes.splice(at..at, inserted);
        let loaded = load::<Note>(&bytes);
        // The rest is part of the written entries, in their order.
        let mut left = (1..).zip(&notes);
        for (sequence, note) in &loaded.entries {
            prop_assert!(left.any(|(of, was)| of == *sequence && was == note));
        }
        let lost = loaded.entries.len() < notes.len() || loaded.header.is_none();
        prop_assert!(!lost || !loaded.dropped.is_empty() || loaded.whole_bytes < bytes.len());
    }
}
