//! The use that threads without a task make of the budget of their cell.

use std::collections::BTreeMap;

use crate::threads::Threads;

/// The threads of a cell that run no task, over the looks at them.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// The cpu time of each so far, by its id, ns; `None`: there was no look yet.
    used: Option<BTreeMap<i32, i64>>,
    /// Cpu time of those that count between the last two looks, and between the two before, ns.
    of_looks: [u64; 2],
}

impl Others {
    /// A thread that is new counts from its beginning; at the first look only those of a cell that `begins` are new. The freezer charges `every`
    /// thread to the budget, the kernel those of real-time classes.
    pub(super) fn look(&mut self, threads: &Threads, every: bool, begins: bool) {
        let before = self.used.take();
        let mut used = BTreeMap::new();
        let mut sum = 0;
        for (tid, is_real_time) in threads.others() {
            let Ok(Some(now)) = host::process::scheduled_ns(tid) else {
                continue;
            };
            let known = before.as_ref().and_then(|before| before.get(&tid));
            let since = match known {
                Some(known) => *known,
                None if before.is_some() || begins => 0,
                None => now,
            };
            if every || is_real_time {
                // A later thread with the id of one that has ended may have used less.
                sum += now.saturating_sub(since).max(0).unsigned_abs();
            }
            used.insert(tid, now);
        }
        self.used = Some(used);
        self.of_looks = [sum, self.of_looks[0]];
    }

    /// The time that counts since the last look but one, ns.
    pub(super) fn used_ns(&self) -> u64 {
        self.of_looks.iter().sum()
    }
}
