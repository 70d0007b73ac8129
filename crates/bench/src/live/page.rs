//! The control page, copied and read: a mapping would end this process with SIGBUS if its file were cut.

use std::mem::offset_of;

use probe::control::{self, Head, Slot};

/// A copy of the page.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<u8>);

/// A slot's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotSeen {
    pub state: u32,
    pub errno: i32,
    pub stage: u32,
    pub pid: i32,
}

impl Page {
    /// The copy's memory, long enough for `cells` cells.
    pub(super) fn room(&mut self, cells: usize) -> &mut [u8] {
        self.0.clear();
        self.0.resize(control::file_bytes(cells), 0);
        &mut self.0
    }

    /// Whether it is a page of this version of timecell.
    pub(super) fn is_ours(&self) -> bool {
        self.word(offset_of!(Head, magic)) == control::MAGIC
            && self.word(offset_of!(Head, version)) == control::VERSION
    }

    /// The published instant, CLOCK_MONOTONIC ns, once there is one.
    pub(super) fn go_ns(&self) -> Option<i64> {
        let at = offset_of!(Head, go_ns);
        let bytes = self.0.get(at..at + 8)?.try_into().ok()?;
        (self.word(offset_of!(Head, go)) == control::GO).then(|| i64::from_le_bytes(bytes))
    }

    pub(super) fn slot(&self, index: usize) -> SlotSeen {
        let word = |offset| self.word(size_of::<Head>() + index * size_of::<Slot>() + offset);
        SlotSeen {
            state: word(offset_of!(Slot, state)),
            errno: word(offset_of!(Slot, errno)).cast_signed(),
            stage: word(offset_of!(Slot, stage)),
            pid: word(offset_of!(Slot, pid)).cast_signed(),
        }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self
            .0
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Barrier;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn reads_what_a_barrier_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let barrier = Barrier::create(&path, 3).unwrap();
        let slot = barrier.slot(2);
        slot.state.store(4, Relaxed);
        slot.errno.store(-7, Relaxed);
        slot.stage.store(3, Relaxed);
        slot.pid.store(4321, Relaxed);
        let mut page = Page::default();
        page.room(3).copy_from_slice(&std::fs::read(&path).unwrap());
        assert!(page.is_ours());
        assert_eq!(page.go_ns(), None);
        let seen = page.slot(2);
        assert_eq!(
            (seen.state, seen.errno, seen.stage, seen.pid),
            (4, -7, 3, 4321)
        );
        assert_eq!(page.slot(1).pid, 0);
        let go_ns = barrier.open(5);
        page.room(3).copy_from_slice(&std::fs::read(&path).unwrap());
        assert_eq!(page.go_ns(), Some(go_ns));
        assert_eq!(page.slot(77).state, 0, "beyond the page is nothing");
    }
}
