//! The ledger: entries taken, returned and left behind.

use super::*;

fn mission(name: &str) -> Holder {
    Holder::Mission {
        name: name.to_owned(),
        dir: "/nowhere".into(),
    }
}

fn names(ledger: &Ledger) -> Vec<String> {
    let entries = ledger.entries().unwrap();
    entries
        .iter()
        .map(|entry| entry.holder.to_string())
        .collect()
}

#[test]
fn what_is_taken_is_there_until_it_is_given_back() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path().join("new"));
    assert_eq!(names(&ledger), [""; 0]);
    let take = |name: &str| {
        let entry = Entry::own(mission(name)).unwrap();
        ledger.lock().unwrap().take(entry).unwrap()
    };
    let one = take("a");
    let two = take("b");
    assert_eq!(names(&ledger), ["mission `a`", "mission `b`"]);
    // In place of its former holdings.
    let again = Entry::own(mission("a")).unwrap();
    ledger.lock().unwrap().put(again).unwrap();
    assert_eq!(names(&ledger), ["mission `b`", "mission `a`"]);
    let others = ledger.lock().unwrap().others(&mission("a")).unwrap();
    assert_eq!(others.len(), 1);
    drop(one);
    assert_eq!(names(&ledger), ["mission `b`"]);
    drop(two);
    assert_eq!(names(&ledger), [""; 0]);
}

#[test]
fn what_a_process_holds_is_over_with_it() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path());
    let mut entry = Entry::own(mission("a")).unwrap();
    entry.process.start_ticks += 1;
    ledger.lock().unwrap().put(entry).unwrap();
    assert_eq!(names(&ledger), [""; 0]);
    assert_eq!(ledger.read().unwrap().len(), 1);
    // It is in the file until somebody rewrites that, or asks for it.
    let mut entries = ledger.read().unwrap();
    let held = Holder::Held {
        name: "web".to_owned(),
        group: "/nowhere".into(),
        inode: 3,
    };
    let mut ended = Entry::own(held).unwrap();
    ended.process.start_ticks += 1;
    entries.extend([ended, Entry::own(mission("b")).unwrap()]);
    ledger.write(&entries).unwrap();
    assert_eq!(ledger.forget_over().unwrap(), [mission("a")]);
    assert_eq!(ledger.read().unwrap(), entries[1..]);
    assert_eq!(ledger.forget_over().unwrap(), []);
}

#[test]
fn what_was_held_before_a_reboot_is_over() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path());
    // Its process number and start are those of one that runs: only the boot tells.
    let now = Entry::own(mission("a")).unwrap();
    let mut before = Entry::own(mission("b")).unwrap();
    before.process.boot_id = "00000000-0000-4000-8000-000000000000".to_owned();
    before.measured_cpus = vec![0];
    let locked = ledger.lock().unwrap();
    locked.put(before).unwrap();
    assert_eq!(names(&ledger), [""; 0]);
    locked.put(now).unwrap();
    assert_eq!(names(&ledger), ["mission `a`"]);
    let others = locked.others(&mission("c")).unwrap();
    assert_eq!(others.len(), 1, "{others:?}");
}

#[test]
fn a_damaged_ledger_says_how_to_fix_it() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(dir.path());
    std::fs::write(ledger.path(), "{\"schema\": 1, ").unwrap();
    let why = ledger.entries().unwrap_err().to_string();
    assert!(why.contains("ledger.json cannot be understood"), "{why}");
    assert!(why.contains("remove the file"), "{why}");
}
