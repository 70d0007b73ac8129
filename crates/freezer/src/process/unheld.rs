//! The commander's own operations on a group that is on the page but that no thread could take up. Its record has no
//! other writer then, and the thread that takes the group up later finds the result.

use std::sync::Arc;

use crate::group::{Group, GroupError};
use crate::keeper::grid_ns;
use crate::lower::Table;
use crate::page::{Page, Progress};
use crate::rule::{Notice, Reservation, Server};
use crate::sys;

/// Releases the group at a place of the page: thaws it, gives its threads their classes back, and removes it from the
/// page.
///
/// # Errors
/// If it could not be thawed. The page still lists it: a frozen group that nobody knows of would stay frozen.
pub(super) fn release(page: &Arc<Page>, place: usize) -> Result<(), GroupError> {
    let record = page.group(place);
    if let Some(which) = record.which() {
        let table = Table::Page(Arc::clone(page), place);
        Group::thaw_unheld(&which.path, which.inode, table)?;
        record.set_not_held(None);
        record.dismiss();
    }
    Ok(())
}

/// Records another budget for the group at a place of the page, like [`Server::change`]. The thread that takes it up
/// charges its use since the last look.
pub(super) fn change(page: &Page, place: usize, reservation: Reservation) {
    let record = page.group(place);
    let Some((which, mut progress)) = record.which().zip(record.progress()) else {
        return;
    };
    let (now_ns, used_ns) = (sys::now_ns(), progress.state.used_ns);
    let grid_ns = grid_ns(which.cpu);
    let mut server = Server::resume(progress.reservation, Notice::Clock, grid_ns, progress.state);
    if let Some(ended) = server.look(now_ns, used_ns).ended {
        progress.totals.count(&ended);
    }
    server.change(reservation, now_ns);
    record.note(Progress {
        reservation,
        state: server.state(),
        ..progress
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Stop;
    use crate::lower::testing::Idle;
    use crate::page::Totals;
    use crate::rule::State;
    use std::path::Path;

    const MS: i64 = 1_000_000;
    const PLACE: usize = 5;

    fn of(budget_ms: i64, period_ms: i64) -> Reservation {
        Reservation::new(budget_ms * MS, period_ms * MS).unwrap()
    }

    /// A page on which a group stands that owes 5 ms of 10 ms in 1 s.
    fn page(path: &Path, inode: u64) -> (tempfile::TempDir, Arc<Page>) {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let page = Arc::new(Page::open_or_make(dir.path()).unwrap());
        page.group(PLACE).note(Progress {
            id: 1,
            reservation: of(10, 1_000),
            state: State {
                left_ns: -5 * MS,
                began_with_ns: 10 * MS,
                end_ns: Some(sys::now_ns() + 1_000_000 * MS),
                spent_ns: 15 * MS,
                looked_ns: sys::now_ns(),
                used_ns: 70 * MS,
            },
            lowered_at_ns: None,
            best_effort_ns: 0,
            totals: Totals::default(),
        });
        page.group(PLACE).appoint(1, (0, Stop::Freeze), path, inode);
        page.group(PLACE).set_not_held(Some(libc::ENOENT));
        (dir, page)
    }

    /// The class after a release of a thread recorded as lowered, and the text written to its group.
    fn released(is_another: bool) -> (i32, String) {
        use std::os::unix::fs::MetadataExt;
        let group = tempfile::tempdir_in("/dev/shm").unwrap();
        let idle = Idle::start();
        std::fs::write(group.path().join("cgroup.freeze"), "1").unwrap();
        let threads = format!("{}\n", idle.tid());
        std::fs::write(group.path().join("cgroup.threads"), threads).unwrap();
        let inode = std::fs::metadata(group.path()).unwrap().ino();
        let (_dir, page) = page(group.path(), inode + u64::from(is_another));
        let table = &page.group(PLACE).lowered;
        idle.pass_for_lowered(table);
        release(&page, PLACE).unwrap();
        assert!(page.groups().is_empty());
        assert!(table.least().is_none());
        let freeze = std::fs::read_to_string(group.path().join("cgroup.freeze"));
        (idle.class(), freeze.unwrap())
    }

    #[test]
    fn a_release_thaws_and_gives_back_and_a_group_made_again_has_nothing_to_get_back() {
        assert_eq!(released(false), (Idle::given_back(), "0".to_owned()));
        assert_eq!(released(true), (libc::SCHED_IDLE, "0".to_owned()));
    }

    #[test]
    fn a_group_that_is_gone_is_let_go_and_one_that_cannot_be_thawed_is_not() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (_dir, gone) = page(&dir.path().join("nowhere"), 7);
        release(&gone, PLACE).unwrap();
        assert!(gone.groups().is_empty());
        // A directory is not written to.
        std::fs::create_dir(dir.path().join("cgroup.freeze")).unwrap();
        let (_dir, there) = page(dir.path(), 7);
        let error = release(&there, PLACE).unwrap_err();
        assert_eq!(error.reason.raw_os_error(), Some(libc::EISDIR));
        assert_eq!(there.groups()[0].not_held, Some(libc::ENOENT));
    }

    #[test]
    fn a_change_is_found_by_who_takes_the_group_up_and_gives_nothing() {
        let (_dir, page) = page(Path::new("/nowhere"), 7);
        change(&page, PLACE, of(20, 100));
        let found = page.groups()[0].progress;
        assert_eq!(found.reservation, of(20, 100));
        assert_eq!(
            (found.state.left_ns, found.state.used_ns),
            (-5 * MS, 70 * MS)
        );
        // Its use meanwhile is not forgotten.
        let now_ns = sys::now_ns();
        let mut next = Server::resume(found.reservation, Notice::Clock, 0, found.state);
        next.look(now_ns, 77 * MS);
        assert_eq!(next.left_ns(), -12 * MS);
    }
}
