//! One slot of the keeper.

use super::*;
use crate::counter::Senses;
use crate::lower::Table;
use crate::lower::testing::Idle;
use crate::rule::State;

const MS: i64 = 1_000_000;

/// A directory with the files of a group, which has used so much.
fn group(used_ms: i64) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let stat = format!("usage_usec {}\n", used_ms * 1_000);
    for (name, text) in [
        ("cgroup.freeze", "1"),
        ("cgroup.events", ""),
        ("cpu.stat", &stat),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn reservation() -> Reservation {
    Reservation::new(10 * MS, 1_000 * MS).unwrap()
}

/// Its slot at the first place of a page, of a keeper that came at once.
fn slot(dir: &tempfile::TempDir, is_fresh: bool) -> (Arc<Page>, Slot) {
    let page = Arc::new(Page::open_or_make(dir.path()).unwrap());
    let table = Table::Page(Arc::clone(&page), 0);
    let group = Group::open_with(dir.path(), 0, &Senses::clock(""), table).unwrap();
    let place = Place {
        page: Arc::clone(&page),
        place: 0,
        came: Came::AtOnce,
    };
    let id = Id::numbered(1);
    let held = (Box::new(group), Stop::Lower);
    let slot = Slot::new(id, held, reservation(), 0, Some(place), is_fresh);
    (page, slot)
}

/// How far it is after somebody goes on with a group that had used 5 ms beyond its budget of 10 ms, and `used_ms` in all, and that nobody could take up
/// before for that reason.
fn resumed(used_ms: i64, is_another: bool, not_held: Option<i32>) -> Progress {
    let dir = group(used_ms);
    let (page, mut slot) = slot(&dir, false);
    let now_ns = sys::now_ns();
    page.group(0).note(Progress {
        id: 1,
        reservation: reservation(),
        state: State {
            left_ns: -5 * MS,
            began_with_ns: 10 * MS,
            end_ns: Some(now_ns + 1_000_000 * MS),
            spent_ns: 15 * MS,
            looked_ns: now_ns,
            used_ns: 70 * MS,
        },
        lowered_at_ns: None,
        best_effort_ns: 30 * MS,
        totals: Totals::default(),
    });
    let inode = slot.group.inode() + u64::from(is_another);
    page.group(0)
        .appoint(1, (0, Stop::Lower), dir.path(), inode);
    page.group(0).set_not_held(not_held);
    assert!(slot.resume(0, &GroupStats::default()));
    assert_eq!(page.group(0).inode(), slot.group.inode());
    assert_eq!(page.group(0).not_held(), None);
    page.group(0).progress().unwrap()
}

#[test]
fn a_group_that_was_made_again_begins_and_any_other_goes_on() {
    let left_ns = |used_ms, is_another| resumed(used_ms, is_another, None).state.left_ns;
    assert_eq!(left_ns(100, false), -5 * MS);
    assert_eq!(left_ns(101, false), -6 * MS);
    assert_eq!(left_ns(101, true), 10 * MS, "by its number");
    assert_eq!(left_ns(99, false), 10 * MS, "by its time");
}

#[test]
fn whoever_came_at_once_waives_what_was_used_of_a_group_that_it_could_not_take_up() {
    let owed_and_waived = |not_held| {
        let found = resumed(200, false, not_held);
        (-found.state.left_ns / MS, found.totals.waived_ns / MS)
    };
    assert_eq!(owed_and_waived(None), (105, 0));
    assert_eq!(owed_and_waived(Some(libc::EINVAL)), (40, 65));
    // Another group owes nothing.
    assert_eq!(resumed(200, true, Some(1)).state.left_ns, 10 * MS);
}

#[test]
fn a_group_that_begins_gets_no_classes_of_one_that_was_there_before() {
    let (dir, idle) = (group(0), Idle::start());
    let threads = format!("{}\n", idle.tid());
    std::fs::write(dir.path().join("cgroup.threads"), threads).unwrap();
    let (page, mut slot) = slot(&dir, true);
    // As of a group whose threads were lowered when it was removed.
    idle.pass_for_lowered(&page.group(0).lowered);
    slot.begin(0, &GroupStats::default());
    assert_eq!(idle.class(), libc::SCHED_IDLE);
    assert!(!slot.group.is_lowered());
}
